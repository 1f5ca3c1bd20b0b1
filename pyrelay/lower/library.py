"""Ops without an element rule, written as loops over elements in Core: scans and scatters.

In: the Let of such an op. Out: Lets that compute the same, a KernelCall whose function
`kernelise` turns into one serial kernel that writes its result's buffer in place. A scan runs along
its axis in registers; a scatter visits the new elements in order, so the last writer wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Function, KernelCall, Let, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, Type, i64

Position = tuple[Handle, ...]
Visit = Callable[[Builder, Position, Handle], Handle]


def expanded(let: Let) -> tuple[Let, ...] | None:
    """The Lets in place of a scan or scatter; None for another op."""
    call = let.rhs
    if not isinstance(call, OpCall) or call.op.schedule not in _WRITERS:
        return None
    build = Builder(let.span)
    args: tuple[Atom, ...] = call.args
    if call.op.schedule == "scan":
        args = (*args, build.undef(_tensor(let.outs[0].type)).atom)
    (out,) = let.outs
    symbols = tuple(dict.fromkeys(_symbols(out, args, call)))
    names = walk.Renaming()
    inner = tuple(map(names.symbol, symbols))
    params = tuple(Var("x", types.substitute(_tensor(a.type), names.dims)) for a in args)
    body = Builder(let.span)
    handles = tuple(map(body.handle, params))
    result = _WRITERS[call.op.schedule](body, call.op.name, handles, names.attrs(call.attrs))
    function = Function(call.op.name, params, body.block((result,)), inner, span=let.span)
    node = KernelCall(function, args, tuple(map(dims.of, symbols)))
    return (*build.lets, Let(let.outs, node, span=let.span))


def _tensor(ty: Type | None) -> TensorType:
    assert isinstance(ty, TensorType)
    return ty


def _symbols(out: Var, args: Sequence[Atom], call: OpCall) -> list[Symbol]:
    found = [s for a in (*args, out) for s in types.type_symbols(_tensor(a.type))]
    for value in call.attrs.values():
        found += walk.attr_symbols(value)
    return found


def _over(
    build: Builder, shape: Sequence[Extent], state: Handle, visit: Visit, at: Position = ()
) -> Handle:
    """Loops over all positions of a shape, first axis outermost; `visit` returns the next state."""
    if len(at) == len(shape):
        return visit(build, at, state)

    def body(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Handle]:
        return [_over(inner, shape, carried[0], visit, (*at, _plain(inner, k)))]

    (last,) = build.counted(build.extent(shape[len(at)]), [state], body)
    return last


def _plain(build: Builder, k: Handle) -> Handle:
    """A loop index whose arithmetic needs no check for overflow."""
    return build.handle(build.cast(k, i64))


def _read(build: Builder, x: Handle, position: Position) -> Handle:
    """An element of an array that is broadcast over the positions; a scalar is its own."""
    if not x.rank:
        return build.handle(x)
    own = position[len(position) - x.rank :]
    at = [0 if extent == 1 else k for extent, k in zip(x.shape, own, strict=True)]
    element: Handle = build.call(OPS["index"], x, *at, axes=tuple(range(x.rank)))
    return element


# -- scans -----------------------------------------------------------------------------------------


def _scan(
    build: Builder, name: str, args: Sequence[Handle], attrs: Mapping[str, Any]
) -> Handle:
    *operands, result = args
    axis = attrs["axis"] % result.rank
    others = [extent for k, extent in enumerate(result.shape) if k != axis]
    step, start = _STEPS[name]

    def line(build: Builder, at: Position, array: Handle) -> Handle:
        """The running values along the axis, at one position of the other axes."""
        extent = build.extent(result.shape[axis])

        def body(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Handle]:
            total, array = carried
            place = _plain(inner, k)
            if attrs["reverse"]:
                place = _plain(inner, inner.handle(extent)) - 1 - place
            position = (*at[:axis], place, *at[axis:])
            total = step(total, *(_read(inner, x, position) for x in operands))
            axes = tuple(range(result.rank))
            stored = inner.call(OPS["index_update"], array, total, *position, axes=axes)
            return [total, stored]

        first = build.cast(start, result.dtype)
        return build.counted(extent, [first, array], body)[1]

    return _over(build, others, result, line)


#: How a scan goes on from the value before, and what stands before the first one. A sum starts at
#: -0.0, which added to -0.0 stays -0.0.
_STEPS: dict[str, tuple[Callable[..., Handle], float]] = {
    "cumsum": (lambda total, x: total + x, -0.0),
    "cumprod": (lambda total, x: total * x, 1),
    "linear_scan": (lambda total, a, b: a * total + b, -0.0),
}


# -- scatters --------------------------------------------------------------------------------------


def _scatter(
    build: Builder, name: str, args: Sequence[Handle], attrs: Mapping[str, Any]
) -> Handle:
    array, value, *indices = args
    axes: tuple[int, ...] = attrs["axes"]
    rest = [extent for k, extent in enumerate(array.shape) if k not in axes]
    adjacent = axes == tuple(range(axes[0], axes[0] + len(axes)))
    first = axes[0] if adjacent else 0
    chosen = _common_shape(indices)
    update = OPS[{"scatter_update": "index_update", "scatter_add": "index_add"}[name]]

    def store(build: Builder, at: Position, array: Handle) -> Handle:
        numbers = at[first : first + len(chosen)]
        others = iter(at[:first] + at[first + len(chosen) :])
        places = []
        for k, extent in enumerate(array.shape):
            if k in axes:
                number = _read(build, indices[axes.index(k)], numbers)
                places.append(build.call(OPS["check_index"], number, size=extent, axis=k))
            else:
                places.append(next(others))
        new = _read(build, value, at)
        stored: Handle = build.call(update, array, new, *places, axes=tuple(range(array.rank)))
        return stored

    return _over(build, [*rest[:first], *chosen, *rest[first:]], array, store)


def _common_shape(indices: Sequence[Handle]) -> list[Extent]:
    """The shape of index arrays broadcast among themselves."""
    rank = max(x.rank for x in indices)
    shape: list[Extent] = [1] * rank
    for x in indices:
        for place in range(1, x.rank + 1):
            if x.shape[-place] != 1:
                shape[-place] = x.shape[-place]
    return shape


_WRITERS = {"scan": _scan, "scatter": _scatter}
