"""Operands whose extents only the running program knows, where NumPy stretches those that are 1.

In: operands of an op, and two of their extents that the op needs to be equal. Out: the operands
with one extent in both places, behind a check.

A program first takes such extents to be equal. Where the check finds that one is 1, the call begins
again with a program that stretches (`Program.stretches`), so that only calls that need it pay for
it. A call that writes into its arguments, or prints, cannot begin again, and raises; bodies of
`try` go on to their handlers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.op import OPS, Fusion, Op
from pyrelay.ir.types import TensorType

_UNEQUAL = "the extents {} and {} of the operands must be equal"


def met(
    it: Interpreter, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any], left: Extent,
    right: Extent,
) -> list[Any]:
    """The operands of an op that needs two extents to be equal, which nothing before it decides.

    Raises ShapeError where no operand has either.
    """
    broadcasts = op.fusion is Fusion.ELEMENTWISE and not it.handling
    if broadcasts and it.program.stretches:
        return _stretched(it, operands, left, right)
    found = [_refined(it, a, right, left, may_stretch=broadcasts) for a in operands]
    if all(a is b for a, b in zip(operands, found, strict=True)):
        # The right one stands in an attribute, e.g. a shape to fit into.
        fit = attrs.get("shape", ())
        found = [_refined(it, a, left, right, fit) for a in operands]
    if all(a is b for a, b in zip(operands, found, strict=True)):
        raise it.failure(
            errors.ShapeError,
            f"{it.operation(op)} needs {dims.show(left)} and {dims.show(right)} to be equal, which "
            "is known only at run time",
        ) from None
    return found


def _refined(
    it: Interpreter, operand: Any, own: Extent, other: Extent, fit: tuple[Extent, ...] = (), *,
    may_stretch: bool = False,
) -> Any:
    """The operand with `other` in place of its extent `own`, after a run-time check; only where
    a shape that it is to `fit` has it, if it does: its axes may be equal to several. may_stretch:
    the op broadcasts."""
    atom = it.builder.atom(operand)
    ty = atom.type
    if not isinstance(ty, TensorType) or own not in ty.shape:
        return operand
    again: dict[str, Any] = {"stretches": True} if may_stretch else {}
    it.builder.call(OPS["check_equal"], left=other, right=own, text=_UNEQUAL, **again)
    every = tuple(other if d == own else d for d in ty.shape)
    facing = (*[None] * (len(every) - len(fit)), *fit[max(0, len(fit) - len(every)):])
    one_by_one = tuple(
        e if e == f else d for d, e, f in zip(ty.shape, every, facing, strict=True)
    )
    shape = every if one_by_one == ty.shape else one_by_one
    return it.builder.call(OPS["refine"], atom, shape=shape)


def refined_along(it: Interpreter, value: V.Value, axis: int, other: Extent) -> V.Value:
    """An array with `other` as the extent of one axis, after a run-time check."""
    shape = it.tensor(value).shape
    it.builder.call(OPS["check_equal"], left=other, right=shape[axis], text=_UNEQUAL)
    return it.call("refine", value, shape=(*shape[:axis], other, *shape[axis + 1 :]))


def _stretched(
    it: Interpreter, operands: Sequence[Any], left: Extent, right: Extent
) -> list[Any]:
    """The operands with one extent at each place where they have both: that which is not 1.

    The extents are not known to be 1 by arguments.
    """
    common, others = right, [left]
    if not _is_told(it, right):
        common, others = left, [right]
        if not _is_told(it, left):
            common, others = _other_than_one(it, left, right), [left, right]
    for own in others:
        bound = _other_than_one(it, own, common)
        sides = (common, bound) if own == right else (bound, common)
        it.builder.call(OPS["check_equal"], left=sides[0], right=sides[1], text=_UNEQUAL)
    atoms = [it.builder.atom(o) for o in operands]
    shapes = [a.type.shape if isinstance(a.type, TensorType) else () for a in atoms]
    for place in range(1, max(map(len, shapes)) + 1):
        met = [s[-place] if place <= len(s) else 1 for s in shapes]
        if left in met and right in met:
            for k, own in enumerate(met):
                if own in others:
                    atoms[k] = _along(it, atoms[k], len(shapes[k]) - place, own, common)
    return atoms


def _is_told(it: Interpreter, extent: Extent) -> bool:
    """Whether the arguments tell an extent."""
    return it.program.guards.equal(extent, 1) is not None


def _other_than_one(it: Interpreter, extent: Extent, other: Extent) -> Extent:
    """A new extent: the first one, if it is not 1, else the other."""
    b = it.builder
    number = b.extent(extent)
    chosen = b.call(OPS["where"], b.call(OPS["equal"], number, 1), b.extent(other), number)
    _, (bound,) = b.call(OPS["as_extent"], b.cast(chosen.atom, types.i64, weak=True), name="n")
    return dims.of(bound) if isinstance(bound, dims.Symbol) else bound


def _along(it: Interpreter, atom: Any, axis: int, own: Extent, common: Extent) -> Any:
    """An array with another extent along an axis: its own elements, or one of them again and again.
    """
    b = it.builder
    step = b.cast(b.call(OPS["not_equal"], b.extent(own), 1).atom, types.i64)
    places = b.call(OPS["multiply"], b.call(OPS["iota"], size=common, dtype=types.i64), step)
    return b.call(OPS["gather_inside"], atom, places, axes=(axis,)).atom


__all__ = ["met", "refined_along"]
