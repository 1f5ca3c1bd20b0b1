"""Sorting in loops, where that belongs in the kernel of a loop around it.

In: a module with the ops `argsort`, `sort` and `partition`. Out: `sorting` leaves those outside of
loops to the device's kernels, which sort numbers of 32 and 64 bits and whole ones; inside it writes
loops in their place.

In loops runs of 16 elements, sorted by insertion, are merged, then those of 32, 64, ... (Knuth, The
Art of Computer Programming, volume 3, sections 5.2.1 and 5.2.4), which is stable. Which of two
elements comes next is a branch: a processor guesses it and reads on meanwhile. To insert one of 16,
it has to guess right but once. Lines are partitioned by `opt/selecting`.
"""

from __future__ import annotations

from typing import Any

from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.nodes import Let, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, f32, i32, i64
from pyrelay.ops.order import among_all
from pyrelay.opt.elements import integer, read, stored
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module
from pyrelay.opt.selecting import comes_before, partitioned

_RUN = 16  # elements that are sorted by insertion
_MOST_PASSES = 29  # pairs of them: a longer run is longer than any array


def sorting(module: Module) -> Module:
    """The module with loops in place of the ops that are in loops."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.schedule != "sort":
        return None
    x = builder.handle(rhs.args[0])
    if scope.loops and rhs.op.name == "partition":
        return (partitioned(builder, x, builder.handle(rhs.args[1])).atom,)
    if scope.loops:
        order = _loops(builder, x)
        return (order.atom if rhs.op.name == "argsort" else _picked(builder, x, order).atom,)
    if x.dtype.size >= 4 or x.dtype.is_integer:
        return None
    wide = builder.handle(builder.cast(x, f32 if x.dtype.kind == "f" else i32))
    found = builder.call(rhs.op, wide, *rhs.args[1:])
    if rhs.op.name != "argsort":
        found = builder.handle(builder.cast(found, x.dtype))
    return (found.atom,)


def _picked(builder: Builder, x: Handle, order: Handle) -> Handle:
    """The elements of each line in this order."""
    places, reshape = among_all(order), OPS["reshape"]
    found = builder.call(
        OPS["gather"], builder.call(reshape, x, shape=places.shape), places, axes=(0,)
    )
    return builder.call(reshape, found, shape=x.shape)


def _loops(builder: Builder, x: Handle) -> Handle:
    """The order of each line, by loops."""
    lines, length = x.shape
    ty = TensorType(i64, x.shape)
    n = integer(builder, builder.extent(length))

    def doubled(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        """Counts every other width of runs that are shorter than a line."""
        width = inner.call(OPS["left_shift"], integer(inner, _RUN), integer(inner, k) * 2)
        return [carried[0] + inner.cast(width < n, i64)]

    (passes,) = builder.counted(_MOST_PASSES, [integer(builder, 0)], doubled)

    def line(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        return list(_line(inner, x, integer(inner, k), n, passes, carried))

    order, _ = builder.counted(
        builder.extent(lines), [builder.undef(ty), builder.undef(ty)], line
    )
    return order


def _line(
    build: Builder, x: Handle, row: Handle, n: Handle, passes: Handle, carried: tuple[Handle, ...]
) -> tuple[Handle, ...]:
    """The order of one line, in the first of two arrays."""
    def insert(inner: Builder, k: Handle, state: tuple[Handle, ...]) -> list[Any]:
        return [_inserted(inner, x, row, integer(inner, k), state[0])]

    (order,) = build.counted(n, carried[:1], insert)

    def merge(inner: Builder, k: Handle, state: tuple[Handle, ...]) -> list[Any]:
        order, other = state
        width = inner.call(OPS["left_shift"], integer(inner, _RUN), integer(inner, k) * 2)
        other = _pass(inner, x, row, n, width, order, other)
        order = _pass(inner, x, row, n, width * 2, other, order)
        return [order, other]

    return build.counted(passes, [order, carried[1]], merge)


def _inserted(build: Builder, x: Handle, row: Handle, new: Handle, order: Handle) -> Handle:
    """The order with element `new` among those before it in its run."""
    first = new - build.call(OPS["bitwise_and"], new, _RUN - 1)
    value = read(build, x, row, new)

    def goes_on(inner: Builder, state: tuple[Handle, ...]) -> Handle:
        at, order = state

        def is_less(deeper: Builder) -> list[Any]:
            before = read(deeper, order, row, at - 1)
            return [comes_before(deeper, deeper.handle(value), read(deeper, x, row, before))]

        more = at > first
        return inner.cond(more, is_less, lambda deeper: [more])[0]

    def step(inner: Builder, state: tuple[Handle, ...]) -> list[Any]:
        at, order = state
        before = at - 1
        return [before, stored(inner, order, read(inner, order, row, before), row, at)]

    at, order = build.repeated([new, order], goes_on, step)
    return stored(build, order, new, row, at)


def _pass(
    build: Builder, x: Handle, row: Handle, n: Handle, width: Handle, order: Handle, other: Handle
) -> Handle:
    """All pairs of neighbouring runs of `order` merged into `other`."""

    def pair(inner: Builder, p: Handle, state: tuple[Handle, ...]) -> list[Any]:
        start = integer(inner, p) * width * 2
        return [_merged(inner, x, row, n, start, width, order, *state)]

    return build.counted((width * 2 + n - 1) // (width * 2), [other], pair)[0]


def _merged(
    build: Builder, x: Handle, row: Handle, n: Handle, start: Handle, width: Handle,
    order: Handle, other: Handle,
) -> Handle:
    """Two neighbouring runs of `order` as one of `other`."""
    minimum = OPS["minimum"]
    middle, end = build.call(minimum, start + width, n), build.call(minimum, start + width * 2, n)

    def step(inner: Builder, k: Handle, state: tuple[Handle, ...]) -> list[Any]:
        i, j, other = state
        more = i < middle

        def compared(deeper: Builder) -> list[Any]:
            a, b = (read(deeper, x, row, read(deeper, order, row, at)) for at in (i, j))
            return [~comes_before(deeper, b, a)]

        (left,) = inner.cond(more & (j < end), compared, lambda deeper: [more])

        place = integer(inner, k) + start

        def from_left(deeper: Builder) -> list[Any]:
            taken = read(deeper, order, row, i)
            return [_next(deeper, i), j, stored(deeper, other, taken, row, place)]

        def from_right(deeper: Builder) -> list[Any]:
            taken = read(deeper, order, row, j)
            return [i, _next(deeper, j), stored(deeper, other, taken, row, place)]

        return list(inner.cond(left, from_left, from_right))

    return build.counted(end - start, [start, middle, other], step)[2]


def _next(build: Builder, k: Handle) -> Handle:
    return integer(build, k) + 1
