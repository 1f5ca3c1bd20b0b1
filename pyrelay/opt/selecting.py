"""Loops that partition lines, where that belongs in the kernel of a loop around it.

In: a builder, lines and the places asked of them. Out: the lines in an order in which the elements
at these places are those of the sorted line, NaNs last.

A part of the line in which the place lies is divided by the median of three of its elements, again
and again (Hoare, "Algorithm 65: find", CACM 4(7), 1961); each element is exchanged, and only how
many belong in the first part depends on it, so that nothing is guessed. Where none is less than the
pivot what equals it is set apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.op import OPS
from pyrelay.ir.types import i64
from pyrelay.opt.elements import integer, read, stored

Rule = Callable[[Builder, Handle], Handle]


def partitioned(builder: Builder, x: Handle, places: Handle) -> Handle:
    """The lines partitioned, by loops."""
    lines, length = x.shape
    n, asked = (integer(builder, builder.extent(each)) for each in (length, places.shape[1]))
    own = places.shape[0] != 1

    def line(inner: Builder, k: Handle, carried: tuple[Handle, ...]) -> list[Any]:
        row = integer(inner, k)
        of = row if own else integer(inner, 0)

        def place(deeper: Builder, j: Handle, state: tuple[Handle, ...]) -> list[Any]:
            j = integer(deeper, j)
            wanted = read(deeper, places, of, j)
            following = deeper.call(OPS["minimum"], j + 1, asked - 1)
            following = read(deeper, places, of, following)
            return list(_selected(deeper, row, wanted, following, n, *state))

        zero = integer(inner, 0)
        return [inner.counted(asked, [zero, n, carried[0]], place)[2]]

    return builder.counted(builder.extent(lines), [x], line)[0]


def _selected(
    build: Builder, row: Handle, place: Handle, following: Handle, n: Handle, low: Handle,
    high: Handle, x: Handle,
) -> tuple[Handle, ...]:
    """Part `low` to `high` of a line with one more element in place; the part in which that at the
    following place lies."""
    def parted(inner: Builder, state: tuple[Handle, ...]) -> Handle:
        low, high, _, _ = state
        more: Handle = high - low > 1
        return more

    def step(inner: Builder, state: tuple[Handle, ...]) -> list[Any]:
        low, high, bound, x = state
        ends = low, low + (high - low) // 2, high - 1
        pivot = _median(inner, *(read(inner, x, row, at) for at in ends))
        middle, x = _divided(inner, x, row, low, high, lambda b, v: comes_before(b, v, pivot))

        def same(deeper: Builder) -> list[Any]:
            last, lasting = _divided(
                deeper, x, row, low, high, lambda b, v: ~comes_before(b, pivot, v)
            )
            found = last > place
            start = deeper.call(OPS["where"], found, place, last)
            end = deeper.call(OPS["where"], found, place, high)
            return [start, end, bound, lasting]

        def parts(deeper: Builder) -> list[Any]:
            where, first = OPS["where"], deeper.handle(middle) > place
            farther = deeper.call(where, first & (deeper.handle(middle) > following), middle, bound)
            return [
                deeper.call(where, first, low, middle), deeper.call(where, first, middle, high),
                farther, x,
            ]

        return list(inner.cond(inner.call(OPS["equal"], middle, low), same, parts))

    found = build.repeated([low, high, high, x], parted, step)
    beyond = build.call(OPS["where"], following < found[2], found[2], n)
    return build.handle(place), beyond, found[3]


def _divided(
    build: Builder, x: Handle, row: Handle, low: Handle, high: Handle, is_first: Rule
) -> tuple[Handle, ...]:
    """Where the second part begins, and the line with elements of the first part before it."""
    def exchange(inner: Builder, k: Handle, state: tuple[Handle, ...]) -> list[Any]:
        end, x = state
        at = integer(inner, k) + low
        value, other = read(inner, x, row, at), read(inner, x, row, end)
        x = stored(inner, stored(inner, x, other, row, at), value, row, end)
        return [end + inner.cast(is_first(inner, inner.handle(value)), i64), x]

    return build.counted(build.handle(high) - low, [low, x], exchange)


def _median(build: Builder, a: Handle, b: Handle, c: Handle) -> Handle:
    """The middle one of three."""
    def chosen(test: Handle, x: Handle, y: Handle) -> Handle:
        found: Handle = build.call(OPS["where"], test, x, y)
        return found

    first = comes_before(build, b, a)
    low, high = chosen(first, b, a), chosen(first, a, b)
    high = chosen(comes_before(build, c, high), c, high)
    return chosen(comes_before(build, high, low), low, high)


def comes_before(build: Builder, a: Handle, b: Handle) -> Handle:
    """Whether a comes before b; NaNs come last."""
    a, b = build.handle(a), build.handle(b)
    if a.dtype.kind == "b":
        a, b = (integer(build, each) for each in (a, b))
    less: Handle = a < b
    if a.dtype.kind == "f":
        differs = OPS["not_equal"]
        less = less | (build.call(differs, b, b) & ~build.call(differs, a, a))
    return less
