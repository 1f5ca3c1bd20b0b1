"""What is computed of transposed arrays, as computed of the arrays that they are the transposes of.

In: a module whose derivatives are expanded. Out: one where what is computed of a transposed array
element by element, and summed or compared along its axes, is computed of the array as it lies,
along the axes that these are of it; results are transposed instead, which is an index. So is what
is transposed again, as results of a program are that lie turned in memory, and arrays of the caller
that do and are written: parts of them are updated, as parts are read, where they lie. The loops of
schedules go through memory in order then. What nobody reduces or transposes stays: it is stored in
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.ir import walk
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Atom, Function, Let, Module, OpCall, Var
from pyrelay.ir.op import OPS, Fusion
from pyrelay.ops.index import UPDATES
from pyrelay.ops.shape import inverse
from pyrelay.opt.rewrite import Replacement, Scope, rewrite
from pyrelay.opt.shapes import shape_of

_REDUCTIONS = frozenset(["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"])

Axes = tuple[int, ...]


def turned(module: Module) -> Module:
    """The module whose reductions go along axes of arrays as they lie."""
    return module.holding({name: _of(f) for name, f in module.functions.items()})


def _of(function: Function) -> Function:
    calls = {
        let.outs[0]: let.rhs for let in walk.nested_lets(function.body)
        if isinstance(let.rhs, OpCall) and len(let.outs) == 1
    }
    names = {call.op.name for call in calls.values()}
    if "transpose" not in names:
        return function
    again = _turned_again(calls)

    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        call = let.rhs
        if not isinstance(call, OpCall) or len(let.outs) != 1:
            return None
        if call.op.name in _REDUCTIONS:
            return _reduction(call, builder, scope)
        if call.op.name in ("index", "slice"):
            return _part(call, builder, scope)
        if let.outs[0] not in again:
            return None
        if call.op.name in UPDATES:
            return _update(call, builder, scope)
        return _elementwise(let, call, builder, scope)

    return rewrite(function, rule)


def _turned_again(calls: Mapping[Var, OpCall]) -> set[Atom]:
    """What is computed element by element and then reduced, or transposed again."""
    found: set[Atom] = set()
    waiting = [
        call.args[0] for call in calls.values()
        if call.op.name in _REDUCTIONS or call.op.name == "transpose"
    ]
    while waiting:
        atom = waiting.pop()
        call = calls.get(atom) if isinstance(atom, Var) else None
        if call is None or atom in found:
            continue
        if call.op.fusion is Fusion.ELEMENTWISE:
            waiting += call.args
        elif call.op.name in UPDATES:
            waiting += call.args[:2]
        else:
            continue
        found.add(atom)
    return found


def _reduction(call: OpCall, b: Builder, scope: Scope) -> Replacement:
    inner = scope.op(call.args[0], "transpose")
    if inner is None:
        return None
    order: Axes = inner.attrs["axes"]
    axes = [a % len(order) for a in call.attrs["axes"]]
    if "arg" in call.op.name and len(axes) != 1:
        return None  # positions count the axes in order
    along, keepdims = tuple(sorted(order[a] for a in axes)), call.attrs["keepdims"]
    made = b.call(call.op, inner.args[0], axes=along, keepdims=keepdims)
    left = order if keepdims else tuple(a for k, a in enumerate(order) if k not in axes)
    places = sorted(left)
    return (_transposed(made.atom, tuple(places.index(a) for a in left), b),)


def _elementwise(let: Let, call: OpCall, b: Builder, scope: Scope) -> Replacement:
    order: Axes | None = None
    for atom in call.args:
        inner = scope.op(atom, "transpose")
        if inner is None or _is_line(shape_of(atom)):
            continue
        if order is not None and order != inner.attrs["axes"]:
            return None
        order = inner.attrs["axes"]
    if order is None or len(shape_of(let.outs[0])) != len(order):
        return None
    found = [_turned(atom, order, b, scope) for atom in call.args]
    args = [atom for atom in found if atom is not None]
    if len(args) < len(found):
        return None
    made = b.call(call.op, *args, **call.attrs)
    return (_transposed(made.atom, order, b),)


def _part(call: OpCall, b: Builder, scope: Scope) -> Replacement:
    """A part of a transposed array, as one of the array."""
    inner = scope.op(call.args[0], "transpose")
    if inner is None:
        return None
    attrs, places, kept = _moved(call, call.args[1:], inner.attrs["axes"])
    made = b.call(call.op, inner.args[0], *places, **attrs)
    return (_transposed(made.atom, tuple(inverse(kept)), b),)


def _update(call: OpCall, b: Builder, scope: Scope) -> Replacement:
    """An update of a part of a transposed array, as one of the array: (x.T with [i] = v) is the
    transpose of (x with [:, i] = v.T)."""
    base, value = call.args[:2]
    inner = scope.op(base, "transpose")
    if inner is None:
        return None
    order: Axes = inner.attrs["axes"]
    attrs, places, kept = _moved(call, call.args[2:], order)
    if shape_of(value):
        missing = tuple(range(len(kept) - len(shape_of(value))))
        whole = b.call(OPS["expand_dims"], value, axes=missing).atom if missing else value
        value = _transposed(whole, kept, b)
    made = b.call(call.op, inner.args[0], value, *places, **attrs)
    return (_transposed(made.atom, order, b),)


def _moved(
    call: OpCall, places: Sequence[Atom], order: Axes
) -> tuple[dict[str, Any], Sequence[Atom], Axes]:
    """Attributes and positions of a part of a transposed array, as they are in the array whose axes
    it has in this order; the axes of the one part in the order in which the other has them."""
    attrs = dict(call.attrs)
    if "axes" not in attrs:
        for name in ("starts", "sizes", "steps"):
            attrs[name] = tuple(attrs[name][k] for k in inverse(order))
        return attrs, places, tuple(inverse(order))
    pairs = sorted(
        zip((order[a] for a in attrs["axes"]), places, strict=True), key=lambda pair: pair[0]
    )
    before, after = attrs["axes"], tuple(a for a, _ in pairs)
    one, other = (
        _axes_of_part(whole, taken, places)
        for whole, taken in ((order, before), (tuple(range(len(order))), after))
    )
    attrs["axes"] = after
    return attrs, [place for _, place in pairs], tuple(one.index(a) for a in other)


def _axes_of_part(whole: Axes, taken: Axes, places: Sequence[Atom]) -> list[int]:
    """The axes of an array that are left where positions along some of them, by their places in
    `whole`, are given, and of arrays of positions, which have negative numbers."""
    left = [a for k, a in enumerate(whole) if k not in taken]
    beside = tuple(taken) == tuple(range(taken[0], taken[0] + len(taken)))
    at = taken[0] if beside else 0
    return [*left[:at], *(-1 - k for k in range(max(map(len, map(shape_of, places))))), *left[at:]]


def _turned(atom: Atom, order: Axes, b: Builder, scope: Scope) -> Atom | None:
    """What is the operand after its axes are taken in this order, if that is no copy."""
    shape, inner = shape_of(atom), scope.op(atom, "transpose")
    if not shape:
        return atom
    if inner is not None and inner.attrs["axes"] == order:
        return inner.args[0]
    if not _is_line(shape):
        return None
    missing = tuple(range(len(order) - len(shape)))
    whole = b.call(OPS["expand_dims"], atom, axes=missing).atom if missing else atom
    return _transposed(whole, tuple(inverse(order)), b)


def _is_line(shape: Sequence[object]) -> bool:
    """Whether no more than one axis has elements side by side."""
    return sum(extent != 1 for extent in shape) <= 1


def _transposed(atom: Atom, order: Axes, b: Builder) -> Atom:
    if order == tuple(range(len(order))):
        return atom
    found: Atom = b.call(OPS["transpose"], atom, axes=order).atom
    return found
