"""Cotangents under construction.

In: cotangents of single uses, as derivative rules give them. Out: one cotangent per variable, of
the variable's own shape and element type. Summing over broadcast axes, casting, taking the real
part and adding happen here and nowhere else; a zero is the absence of a cotangent.

A rule may give a function instead of a value: it adds the cotangent to an accumulator. The
cotangent of `x[i]` then costs one element, and a loop over all elements costs one array of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from pyrelay.ir import dims
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.nodes import Atom, Let, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TAPE, TapeType, TensorType, Type

Cotangent = Handle | Callable[[Handle], Handle]


def cotangent_type(ty: Type | None) -> Type:
    """The type of the cotangent of a value: NumPy's kind, so that its arithmetic never raises."""
    if isinstance(ty, TapeType):
        return TAPE
    assert isinstance(ty, TensorType)
    return TensorType(ty.dtype, ty.shape)


def zero(builder: Builder, ty: Type) -> Handle:
    """The zero cotangent of a type; of a tape, the empty tape."""
    if isinstance(ty, TapeType):
        handle: Handle = builder.call(OPS["tape_new"])
        return handle
    return builder.zeros(ty)


def fit(builder: Builder, cotangent: Any, ty: Type) -> Handle:
    """A cotangent with the type of what it belongs to (see `cotangent_type`).

    Sums over the axes along which the value was broadcast, broadcasts a cotangent with fewer axes,
    takes the real part for a real value and casts.
    """
    g = builder.handle(cotangent)
    if isinstance(ty, TapeType) or g.type == ty:
        return g
    if g.dtype.kind == "c" and ty.dtype.kind != "c":
        g = builder.call(OPS["real"], g)
    g = _sum_broadcast(builder, g, ty)
    g = builder.handle(builder.cast(g, ty.dtype))
    if g.rank < ty.rank or any(n == 1 != m for n, m in zip(g.shape, ty.shape, strict=True)):
        return builder.full(g, ty.shape, ty.dtype) if not g.rank else _call(
            builder, "broadcast_to", g, shape=ty.shape
        )
    return same_extents(builder, g, ty)


def same_extents(builder: Builder, value: Handle, ty: Type) -> Handle:
    """The value typed with extents that are equal at run time but spelled otherwise."""
    if isinstance(ty, TapeType) or value.shape == ty.shape:
        return value
    return _call(builder, "refine", value, shape=ty.shape)


def _sum_broadcast(builder: Builder, g: Handle, ty: TensorType) -> Handle:
    extra = g.rank - ty.rank
    axes = list(range(extra))
    axes += [k for k in range(max(extra, 0), g.rank)
             if ty.shape[k - extra] == 1 and g.shape[k] != 1]
    if not axes:
        return g
    g = _call(builder, "sum", g, axes=tuple(axes), keepdims=False)
    if g.rank < ty.rank:
        g = _call(builder, "reshape", g, shape=ty.shape)
    return g


def strong(builder: Builder, atom: Atom) -> Handle:
    """An operand as derivative rules see it: a Python float becomes a NumPy one."""
    ty = atom.type
    if isinstance(ty, TensorType) and ty.weak and ty.dtype.is_float:
        return builder.handle(builder.cast(atom, ty.dtype))
    return builder.handle(atom)


def _call(builder: Builder, name: str, *operands: Any, **attrs: Any) -> Handle:
    handle: Handle = builder.call(OPS[name], *operands, **attrs)
    return handle


class Sink:
    """The cotangents known at one point of one backward block.

    `builder` collects the block, `values` holds the cotangents so far (never of inactive
    variables), `tape` is the tape as the block has left it. `updated` are the variables whose
    cotangent somewhere in the function starts as zeros that are then updated in parts. `postpone`
    may take over the cotangents of an op's operands: it gets the Let, its call, the cotangent of
    its result and the sink, and returns the operands' positions.
    """

    __slots__ = ("active", "builder", "postpone", "tape", "updated", "values")

    def __init__(
        self, builder: Builder, active: Container[Var], updated: set[Var] | None = None
    ) -> None:
        self.builder, self.active = builder, active
        self.values: dict[Var, Handle] = {}
        self.tape: Atom = Var("tape", TAPE)
        self.updated: set[Var] = set() if updated is None else updated
        self.postpone: Callable[[Let, OpCall, Handle, Sink], set[int]] | None = None

    def child(self) -> Sink:
        """A sink for a block inside this one, without cotangents yet."""
        return Sink(self.builder.nested(), self.active, self.updated)

    def add(self, atom: Atom, cotangent: Cotangent | None) -> None:
        """Add the cotangent of one use of a value."""
        if cotangent is None or not isinstance(atom, Var) or atom not in self.active:
            return
        ty = cotangent_type(atom.type)
        known = self.values.get(atom)
        if callable(cotangent):
            if known is None:
                self.updated.add(atom)
            base = zero(self.builder, ty) if known is None else self.builder.handle(known)
            self.values[atom] = fit(self.builder, cotangent(base), ty)
            return
        g = fit(self.builder, cotangent, ty)
        if known is not None:
            assert not isinstance(ty, TapeType), "a tape was used twice"
            g = self.builder.call(OPS["add"], known, g)
        self.values[atom] = g

    def take(self, var: Var) -> Handle | None:
        """The finished cotangent of a variable whose uses all have been seen, None for zero.

        A tape always has one (see `activity`).
        """
        g = self.values.pop(var, None)
        if g is None:
            if isinstance(var.type, TapeType) and var in self.active:
                return zero(self.builder, TAPE)
            return None
        return self.builder.handle(g)

    def get(self, var: Var) -> Handle:
        """The cotangent so far, zeros if there is none."""
        known = self.values.get(var)
        if known is None:
            return zero(self.builder, cotangent_type(var.type))
        return self.builder.handle(known)


def is_static(ty: Type | None, varying: Container[dims.Symbol]) -> bool:
    """True if no extent of a type is among `varying`."""
    if not isinstance(ty, TensorType):
        return True
    return not any(s in varying for extent in ty.shape for s in dims.symbols(extent))
