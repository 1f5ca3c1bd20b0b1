"""Functions that are written out in arithmetic, as the ops that they are.

`recognise`. In: a module before its derivatives are expanded. Out: one that computes
1 / (1 + exp(-x)) by the op for it. That rounds once or twice less than the formula, does not
overflow inside, and its derivative needs its result only: the formula's needs the exponential too,
so a loop would keep both for every round.

Python's own floats stay as they are: `math.exp` raises an exception where the result is too large.

A softmax, its logarithm and the logarithm of a sum of exponentials keep their formulas, whose value
an op takes on that has the function's derivative (`ops/normalised.py`). Any number may be
subtracted before the exponential that is the same along the axes, or none, and rows whose sum is 0
may be guarded.

`plain`. In: a module whose derivatives are expanded. Out: one without those ops, and without the
rules of derivatives that users give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Atom, Let, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ir.walk import is_number
from pyrelay.ops.relations import without_axes
from pyrelay.opt.dce import reachable
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module
from pyrelay.opt.shapes import shape_of
from pyrelay.records import dataclass


def recognise(module: Module) -> Module:
    """The module with the ops in place of the formulas, or of their values."""
    return rewrite_module(module, _rule)


def plain(module: Module) -> Module:
    """The module with values in place of the ops that say what they are values of."""
    return reachable(rewrite_module(module, _value))


_GIVEN = frozenset(["softmax", "log_softmax", "logsumexp"])


def _value(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if isinstance(rhs, OpCall) and rhs.op.name == "ruled":
        return rhs.args[: rhs.attrs["count"]]
    if not isinstance(rhs, OpCall) or rhs.op.name not in _GIVEN:
        return None
    value = rhs.args[1]
    stopped = scope.op(value, "stop_gradient")
    return (value if stopped is None else stopped.args[0],)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs, ty = let.rhs, let.outs[0].type if let.outs else None
    if not isinstance(rhs, OpCall) or not isinstance(ty, TensorType):
        return None
    if ty.dtype.kind != "f" or ty.weak:
        return None
    sigmoid = _sigmoid(rhs, ty, builder, scope)
    if sigmoid is not None or not ty.shape:
        return sigmoid
    find = _FINDERS.get(rhs.op.name)
    found = None if find is None else find(rhs, scope)
    if found is None or found.type != ty:
        return None
    value = builder.call(rhs.op, *rhs.args, **rhs.attrs)
    given = builder.call(OPS["stop_gradient"], value)
    return (builder.call(OPS[found.name], found.x, given, **found.attrs).atom,)


def _sigmoid(rhs: OpCall, ty: TensorType, builder: Builder, scope: Scope) -> Replacement:
    if rhs.op.name == "reciprocal":
        below = rhs.args[0]
    elif rhs.op.name == "divide" and is_number(rhs.args[0], 1):
        below = rhs.args[1]
    else:
        return None
    x = _exponent(below, scope)
    if x is None or x.type != ty:
        return None
    return (builder.call(OPS["sigmoid"], x).atom,)


def _exponent(below: Atom, scope: Scope) -> Atom | None:
    """`x` of `1 + exp(-x)`."""
    total = scope.op(below, "add")
    if total is None:
        return None
    for one, power in (total.args, total.args[::-1]):
        exp = scope.op(power, "exp") if is_number(one, 1) else None
        turned = None if exp is None else scope.op(exp.args[0], "negative")
        if turned is not None:
            return turned.args[0]
    return None


# -- sums of exponentials --------------------------------------------------------------------------

Axes = tuple[int, ...]
Layout = tuple[int | None, ...]
"""Per axis of a reduced array, the axis of the operand that it is; None for one of extent 1, or
along which the elements are repeated."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Which op a value is that of, its operand and its attributes."""

    name: str
    x: Atom
    axes: Axes
    keepdims: bool | None = None  # of a reduction

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the op."""
        attrs: dict[str, Any] = {"axes": self.axes}
        return attrs if self.keepdims is None else {**attrs, "keepdims": self.keepdims}

    @property
    def type(self) -> TensorType:
        """The type of its result."""
        ty = self.x.type
        assert isinstance(ty, TensorType)
        if self.keepdims is None:
            return ty
        return TensorType(ty.dtype, without_axes(ty.shape, self.axes, self.keepdims))


@dataclass(frozen=True, slots=True)
class _Reduced:
    """A reduction over axes of an array, seen through views."""

    call: OpCall
    axes: Axes
    layout: Layout

    def broadcasts(self) -> bool:
        """Whether it stands, beside the operand, at what each element was reduced with."""
        shape = shape_of(self.call.args[0])
        rest = [a for a, d in enumerate(shape) if a not in self.axes and d != 1]
        places = len(shape) - len(self.layout)
        at = {places + k: axis for k, axis in enumerate(self.layout) if axis is not None}
        return all(place == axis for place, axis in at.items()) and set(at) >= set(rest)


def _reduced(atom: Atom, name: str, scope: Scope) -> _Reduced | None:
    """The reduction that an atom is a view of."""
    views: list[OpCall] = []
    while True:
        rhs = scope.definition(atom)
        if not isinstance(rhs, OpCall):
            return None
        if rhs.op.name == name:
            break
        if rhs.op.name not in _VIEWS:
            return None
        views.append(rhs)
        atom = rhs.args[0]
    rank = len(shape_of(rhs.args[0]))
    axes = tuple(sorted(a % rank for a in rhs.attrs["axes"]))
    layout = _layout(rank, axes, rhs.attrs["keepdims"])
    for view in reversed(views):
        moved = _through(view, layout)
        if moved is None:
            return None
        layout = moved
    return _Reduced(rhs, axes, layout)


def _layout(rank: int, axes: Axes, keepdims: bool) -> Layout:
    """The layout of a reduction of an array of `rank` axes."""
    if keepdims:
        return tuple(None if a in axes else a for a in range(rank))
    return tuple(a for a in range(rank) if a not in axes)


_VIEWS = frozenset(
    ["reshape", "expand_dims", "squeeze", "index", "broadcast_to", "stop_gradient"]
)


def _through(view: OpCall, layout: Layout) -> Layout | None:
    """The layout of a view of an array; None if its axes are not those of the array."""
    if view.op.name == "stop_gradient":
        return layout
    before = shape_of(view.args[0])
    if view.op.name == "broadcast_to":
        shape = tuple(view.attrs["shape"])
        missing = len(shape) - len(layout)
        return (None,) * missing + tuple(
            axis if d == e else None
            for axis, d, e in zip(layout, before, shape[missing:], strict=True)
        )
    if view.op.name == "reshape":
        shape = tuple(view.attrs["shape"])
        left = [(d, axis) for d, axis in zip(before, layout, strict=True) if d != 1]
        if [d for d, _ in left] != [d for d in shape if d != 1]:
            return None
        rest = iter(left)
        return tuple(None if d == 1 else next(rest)[1] for d in shape)
    axes = view.attrs["axes"]
    if view.op.name == "index" and any(before[a] != 1 for a in axes):
        return None
    if view.op.name in ("squeeze", "index"):
        gone = {a % len(layout) for a in axes}
        return tuple(axis for k, axis in enumerate(layout) if k not in gone)
    rank = len(layout) + len(axes)
    new, old = {a % rank for a in axes}, iter(layout)
    return tuple(None if k in new else next(old) for k in range(rank))


def _same_along(atom: Atom, axes: Axes, rank: int) -> bool:
    """Whether an array, broadcast to `rank` axes, is the same along some of them."""
    shape = shape_of(atom)
    missing = rank - len(shape)
    return missing >= 0 and all(a < missing or shape[a - missing] == 1 for a in axes)


def _unshifted(z: Atom, axes: Axes, scope: Scope) -> tuple[Atom, Atom | None]:
    """`x` and `m` of `x - m` if `m` is the same along the axes; else `z` and None."""
    call = scope.op(z, "subtract")
    if call is not None and call.args[0].type == z.type:
        x, m = call.args
        if _same_along(m, axes, len(shape_of(z))):
            return x, m
    return z, None


def _softmax(call: OpCall, scope: Scope) -> _Found | None:
    """`exp(z) / sum(exp(z))`, or 1 in place of a sum that is 0."""
    power, below = call.args
    exp = scope.op(power, "exp")
    if exp is None:
        return None
    total = _reduced(below, "sum", scope) or _guarded(below, scope)
    if total is None or total.call.args[0] is not power or not total.broadcasts():
        return None
    x, _ = _unshifted(exp.args[0], total.axes, scope)
    return _Found("softmax", x, total.axes)


def _guarded(below: Atom, scope: Scope) -> _Reduced | None:
    """The sum `s` of `where(s == 0, 1, s)`."""
    chosen = scope.op(below, "where")
    if chosen is None or not is_number(chosen.args[1], 1):
        return None
    test = scope.op(chosen.args[0], "equal")
    if test is None or test.args[0] is not chosen.args[2] or not is_number(test.args[1], 0):
        return None
    return _reduced(chosen.args[2], "sum", scope)


def _log_softmax(call: OpCall, scope: Scope) -> _Found | None:
    """`z - log(sum(exp(z)))`."""
    z, logarithm = call.args
    total = _logarithm(logarithm, scope)
    if total is None or not total.broadcasts() or _exponential(total, scope) is not z:
        return None
    x, _ = _unshifted(z, total.axes, scope)
    return _Found("log_softmax", x, total.axes)


def _logsumexp(call: OpCall, scope: Scope) -> _Found | None:
    """`log(sum(exp(x - m))) + m` for the largest element `m`."""
    for logarithm, largest in (call.args, call.args[::-1]):
        total = _logarithm(logarithm, scope)
        added = _reduced(largest, "max", scope)
        z = None if total is None else _exponential(total, scope)
        if total is None or added is None or z is None or added.layout != total.layout:
            continue
        x, m = _unshifted(z, total.axes, scope)
        shift = None if m is None else _reduced(m, "max", scope)
        if shift is None or shift.call is not added.call or not shift.broadcasts():
            continue
        if added.axes != total.axes or added.call.args[0] is not x:
            continue
        rank = len(shape_of(x))
        keepdims = len(total.layout) == rank
        if total.layout == _layout(rank, total.axes, keepdims):
            return _Found("logsumexp", x, total.axes, keepdims)
    return None


def _logarithm(atom: Atom, scope: Scope) -> _Reduced | None:
    """The sum that an atom is the logarithm of, both seen through views."""
    views: list[OpCall] = []
    rhs = scope.definition(atom)
    while isinstance(rhs, OpCall) and rhs.op.name in _VIEWS:
        views.append(rhs)
        rhs = scope.definition(rhs.args[0])
    if not isinstance(rhs, OpCall) or rhs.op.name != "log":
        return None
    total = _reduced(rhs.args[0], "sum", scope)
    for view in reversed(views):
        layout = None if total is None else _through(view, total.layout)
        if total is None or layout is None:
            return None
        total = _Reduced(total.call, total.axes, layout)
    return total


def _exponential(total: _Reduced, scope: Scope) -> Atom | None:
    """`z` of a sum of `exp(z)`."""
    exp = scope.op(total.call.args[0], "exp")
    return None if exp is None else exp.args[0]


_FINDERS: dict[str, Callable[[OpCall, Scope], _Found | None]] = {
    "divide": _softmax, "subtract": _log_softmax, "add": _logsumexp,
}
