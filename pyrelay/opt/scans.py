"""Scans, scatters and places of truths as loops over elements, inside loops that are kernels by
that.

In: a module. Out: the module in which a loop with scans (`cumsum`, `cumprod`), scattered stores
(`x[i] += v`, `np.add.at` with an array of places) or places of what is true (`np.nonzero`, masks)
in its rounds has loops over elements in their place, if it can then be one kernel: launching a
kernel for each row costs more than the row. A scan along the last axis runs in registers, along
another one from row to row; a scatter visits the new elements in order, so that the last writer
wins.

`WRITERS`: the same loops for `lower.kernels.library`, which makes kernels of their own of the
others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrelay.ir import walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Block, Let, Loop, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DType, TensorType, i64
from pyrelay.ops.running import identity, step_of
from pyrelay.opt.elements import integer, read, stored
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_block
from pyrelay.opt.rows import rows_of_block
from pyrelay.opt.scalars import is_kernel, scalar_lets

Position = tuple[Handle, ...]
Visit = Callable[[Builder, Position, Handle], Handle]


def scans(module: Module) -> Module:
    """The module with its scans and scatters inside loops written out, where that makes kernels."""
    return module.with_bodies(lambda body: _in_block(body, ()))


def _in_block(block: Block, around: tuple[Let, ...]) -> Block:
    """around: Lets of extents that are known here."""
    lets = []
    for let in block.lets:
        if walk.is_call(let, "extent"):
            around = (*around, let)
        new = _written(let, around) if isinstance(let.rhs, Loop) and _has_any(let) else None
        if new is None:
            rhs = walk.replace_blocks(let.rhs, functools.partial(_in_block, around=around))
            new = let if rhs is let.rhs else replace(let, rhs=rhs)
        lets.append(new)
    if all(a is b for a, b in zip(lets, block.lets, strict=True)):
        return block
    return replace(block, lets=tuple(lets))


def _has_any(let: Let) -> bool:
    return any(
        isinstance(inner.rhs, OpCall) and inner.rhs.op.schedule in WRITERS
        for block in walk.blocks(let.rhs) for inner in walk.nested_lets(block)
    )


def _written(let: Let, around: tuple[Let, ...]) -> Let | None:
    """The loop of a Let with its scans and scatters as loops; None if it is no kernel even so."""
    block = rows_of_block(rewrite_block(Block((let,), let.outs), _rule))
    (new,) = block.lets
    return new if is_kernel(new, scalar_lets(Block((*around, new), new.outs))) else None


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    call = let.rhs
    if not isinstance(call, OpCall) or call.op.schedule not in WRITERS:
        return None
    args = [builder.handle(a) for a in call.args]
    if call.op.schedule in MAKERS:
        ty = let.outs[0].type
        assert isinstance(ty, TensorType)
        args.append(builder.undef(ty))
    return (WRITERS[call.op.schedule](builder, call.op.name, args, call.attrs).atom,)


def _over(
    build: Builder, shape: Sequence[Extent], state: Handle, visit: Visit, at: Position = ()
) -> Handle:
    """Loops over all positions of a shape, first axis outermost; `visit` returns the next state."""
    if len(at) == len(shape):
        return visit(build, at, state)

    def body(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Handle]:
        return [_over(inner, shape, carried[0], visit, (*at, integer(inner, k)))]

    (last,) = build.counted(build.extent(shape[len(at)]), [state], body)
    return last


def _read(build: Builder, x: Handle, position: Position) -> Handle:
    """An element of an array that is broadcast over the positions; a scalar is its own."""
    if not x.rank:
        return build.handle(x)
    own = position[len(position) - x.rank :]
    at = [0 if extent == 1 else k for extent, k in zip(x.shape, own, strict=True)]
    return read(build, x, *at)


# -- scans -----------------------------------------------------------------------------------------


def _scan(
    build: Builder, name: str, args: Sequence[Handle], attrs: Mapping[str, Any]
) -> Handle:
    *operands, result = args
    axis = attrs["axis"] % result.rank
    step, start = _step(name, result.dtype)

    def lines(build: Builder, at: Position, array: Handle) -> Handle:
        """The running values along the axis, at one position of the axes before it."""
        extent = build.extent(result.shape[axis])
        first = build.cast(start, result.dtype)

        def element(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Handle]:
            total, array = carried
            position = (*at, _place(inner, k, extent, attrs["reverse"]))
            total = step(total, *(_read(inner, x, position) for x in operands))
            return [total, stored(inner, array, total, *position)]

        def row(outer: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Handle]:
            """Elements that lie side by side, each after the one of the row before."""
            place = _place(outer, k, extent, attrs["reverse"])
            begins = k < 1
            back = outer.call(OPS["where"], begins, 0, -1 if not attrs["reverse"] else 1)

            def one(inner: Builder, position: Position, array: Handle) -> Handle:
                before = read(inner, array, *at, place + back, *position[axis + 1 :])
                total = inner.call(OPS["where"], begins, first, before)
                total = step(total, *(_read(inner, x, position) for x in operands))
                return stored(inner, array, total, *position)

            return [_over(outer, result.shape, carried[0], one, (*at, place))]

        if axis == result.rank - 1:
            return build.counted(extent, [first, array], element)[1]
        return build.counted(extent, [array], row)[0]

    return _over(build, result.shape[:axis], result, lines)


def _place(build: Builder, k: Handle, extent: Handle, reverse: bool) -> Handle:
    place = integer(build, k)
    return integer(build, build.handle(extent)) - 1 - place if reverse else place


#: How a scan goes on from the value before, and what stands before the first one. A sum starts at
#: -0.0, which added to -0.0 stays -0.0.
_STEPS: dict[str, tuple[Callable[..., Handle], float]] = {
    "cumsum": (lambda total, x: total + x, -0.0),
    "cumprod": (lambda total, x: total * x, 1),
    **dict.fromkeys(
        ("linear_scan", "steady_scan"), (lambda total, a, b: a * total + b, -0.0)
    ),
}


def _step(name: str, dtype: DType) -> tuple[Callable[..., Handle], Any]:
    repeated = step_of(name)
    if repeated is None:
        return _STEPS[name]
    op = OPS[repeated]
    return lambda total, x: total.builder.call(op, total, x), identity(repeated, dtype)


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
        after: Handle = build.call(update, array, new, *places, axes=tuple(range(array.rank)))
        return after

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


# -- places ----------------------------------------------------------------------------------------


def _places(
    build: Builder, name: str, args: Sequence[Handle], attrs: Mapping[str, Any]
) -> Handle:
    """Each place is stored where the next true one belongs, whether it is true or not: that needs
    no branch that a processor would guess wrong."""
    flags, places = args
    size = integer(build, build.extent(attrs["size"]))

    def goes_on(inner: Builder, carried: tuple[Handle, ...]) -> Handle:
        return carried[0] < size

    def look(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Handle]:
        found, places = carried
        place = integer(inner, k)
        flag = inner.handle(inner.cast(read(inner, flags, place), i64))
        return [integer(inner, found + flag), stored(inner, places, place, found)]

    extent = build.extent(flags.shape[0])
    return build.counted(extent, [integer(build, 0), places], look, goes_on)[1]


WRITERS = {"scan": _scan, "scatter": _scatter, "places": _places}

#: those that are also given an array for their result
MAKERS = frozenset(["scan", "places"])
