"""Bisection: where a question whose answers are first yes and then no begins to be answered no.

In: how many places there are, how to ask at one. Out: a loop that leaves the place in a scalar.

Without branches: neighbouring elements take the same steps, as many as the number of places has
binary digits, and a processor need not guess where to go on (Khuong and Morin, "Array layouts for
comparison-based searching", Journal of Experimental Algorithmics 22, 2017). Where one thread goes
through many elements, each looks first around the place of the one before, where that was right
for the last ones: those of sorted numbers are neighbours. Among numbers at equal distances the
place is computed instead, which some of them say at first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyrelay.ir.dims import Extent
from pyrelay.ir.types import bool_, f64, i64
from pyrelay.lower.kernels.emitter import Emitter
from pyrelay.lower.kernels.values import Value

_AROUND = 8  # so far from the place before are others looked at first
_SEVERAL = 16  # among fewer places none is computed
_ASKED = 8  # so many parts have numbers at their ends that say whether all are at equal distances
_NO_LESS = 1e-6  # places that are computed are by rounding no less than they should be
_IN_ORDER = 170  # of 256: the share of neighbours among the last ones by which another is likely


class Evenly(NamedTuple):
    """A number that is looked for, and the one at a place, as doubles."""

    value: Value
    element: Callable[[Value], Value]


def first_without(
    s: Emitter, extent: Extent, asked: Callable[[Value], Value],
    number: Evenly | None = None,
) -> Value:
    """The first of so many places where `asked` is not true, or their number if it is nowhere.

    number: what is looked for, among numbers that may be at equal distances.
    """
    count, zero = s.extent(extent), s.const(0, i64)
    rounds = _digits(s, count)

    def anywhere() -> Value:
        return _bisected(s, extent, asked, zero, count, rounds)

    if not s.alone:
        return anywhere()
    with s.at(0):  # in front of the loop over elements, if one stands around
        last, neighbours = s.variable(zero), s.variable(zero)
        # Of known extents, too, these are branches: outside of one a rule that reads what is not
        # computed yet runs again, each time with another variable.
        at_first = s.primitive("equal", s.now(last), zero)
        even, line = _line(s, extent, at_first, number)
    near, before = s.copy(s.now(last)), s.copy(s.now(neighbours))
    nowhere = s.const(-1, i64)

    def computed() -> Value:
        if number is None:
            return nowhere
        return _around(s, extent, asked, line(number.value))

    sought = s.choose(
        s.primitive("greater", before, _IN_ORDER), lambda: _near(s, extent, asked, near),
        lambda: s.choose(even, computed, lambda: nowhere),
    )
    place = s.choose(s.primitive("less", sought, 0), anywhere, lambda: sought)
    moved = s.primitive("absolute", place - near)
    reach = s.primitive("minimum", s.primitive("right_shift", count, 3), _AROUND)
    is_neighbour = s.primitive("less", moved, reach)
    within = before - s.primitive("right_shift", before, 4) + s.where(is_neighbour, 16, 0)
    s.assign(neighbours, within)
    s.assign(last, place)
    return place


def _line(
    s: Emitter, extent: Extent, at_first: Value, number: Evenly | None
) -> tuple[Value, Callable[[Value], Value]]:
    """Whether some of the numbers are where they would be at equal distances, and where a number
    would be: the last that is not greater has this place, or the one before."""
    count = s.extent(extent)
    several = s.primitive("greater_equal", count, _SEVERAL)
    if number is None or several.literal is False:
        return s.const(False, bool_), lambda value: count
    several = at_first if several.literal else several
    end, nothing = s.cast(count - 1, f64), s.const(0.0, f64)

    def at(k: Value) -> Value:
        return number.element(s.bounded(k, extent))

    def slope() -> Value:
        return s.primitive("divide", end, at(count - 1) - at(s.const(0, i64)))

    first = s.choose(several, lambda: at(s.const(0, i64)), lambda: nothing)
    steep = s.choose(several, slope, lambda: nothing)

    def line(value: Value) -> Value:
        share = (value - first) * steep + _NO_LESS
        inside = s.where(s.primitive("greater_equal", share, 0.0), share, 0.0)  # NaN is not
        return s.cast(s.where(s.primitive("less", inside, end), inside, end), i64)

    def is_even() -> Value:
        even = s.variable(s.const(True, bool_))
        with s.loop(1, _ASKED) as k:
            place = s.primitive("floor_divide", count * k, _ASKED)
            right = s.primitive("equal", place, line(at(place)))
            s.assign(even, s.logical_and(s.now(even), right))
        return s.copy(s.now(even))

    return s.choose(several, is_even, lambda: s.const(False, bool_)), line


def _around(
    s: Emitter, extent: Extent, asked: Callable[[Value], Value], guess: Value
) -> Value:
    """The place, if it is a guessed one or the next one; else -1."""
    last, first = s.extent(extent) - 1, guess

    def yes(k: Value) -> Value:
        return asked(s.bounded(k, extent))

    behind = s.logical_or(
        s.primitive("equal", first, 0), yes(s.primitive("maximum", first - 1, 0))
    )
    end = s.primitive("minimum", first + 1, last)
    before = s.logical_or(s.primitive("equal", first, last), s.logical_not(yes(end)))
    place = first + s.cast(yes(first), i64)
    return s.where(s.logical_and(behind, before), place, -1)


def _near(
    s: Emitter, extent: Extent, asked: Callable[[Value], Value], near: Value
) -> Value:
    """The place, looked for around that of the element before, or -1. These are branches, as what
    a processor guesses need not wait for the element before."""
    count = s.extent(extent)

    def yes(k: Value) -> Value:
        """The answer at a place; behind the last one it is no."""
        inside = s.primitive("maximum", s.primitive("minimum", k, count - 1), 0)
        return s.logical_and(asked(s.bounded(inside, extent)), s.primitive("less", k, count))

    # Comparisons of answers, not `and`, of which a compiler makes two branches: of these the
    # first is anybody's guess where numbers come in no order.
    behind = s.logical_or(s.primitive("equal", near, 0), yes(near - 1))
    is_here = s.primitive("not_equal", behind, yes(near))
    end = s.where(behind, near + _AROUND, near - _AROUND - 1)
    inside = s.logical_and(s.primitive("greater_equal", end, 0), s.primitive("less", end, count))
    is_near = s.logical_and(inside, s.primitive("not_equal", behind, yes(end)))
    is_next = s.logical_and(behind, s.primitive("logical_not", yes(near + 1)))

    def further() -> Value:
        first = s.where(behind, near + 1, near - _AROUND)
        return s.choose(
            is_near, lambda: _counted(s, extent, asked, first), lambda: s.const(-1, i64)
        )

    return s.choose(
        is_here, lambda: near, lambda: s.choose(is_next, lambda: near + 1, further)
    )


def _counted(
    s: Emitter, extent: Extent, asked: Callable[[Value], Value], first: Value
) -> Value:
    """One of the few places from the first on, or the one behind them: as many are asked at once,
    none of which waits for another."""
    place = first
    for k in range(_AROUND - 1):
        place = place + s.cast(asked(s.bounded(first + k, extent)), i64)
    return place


def _bisected(
    s: Emitter, extent: Extent, asked: Callable[[Value], Value],
    first: Value, count: Value, rounds: Value,
) -> Value:
    """The one of `count` places from the first on, or the one behind them."""
    place, left = s.variable(first), s.variable(count)
    with s.loop(0, rounds):
        here, rest = s.now(place), s.now(left)
        # It is one of `rest` places from `here` on, or the one behind them.
        shorter = s.primitive("right_shift", rest, 1)
        half = rest - shorter
        yes = asked(s.bounded(here + half - 1, extent))
        s.assign(place, s.primitive("where_unpredictable", yes, here + half, here))
        s.assign(left, shorter)
    return place


def _digits(s: Emitter, n: Value) -> Value:
    """How many binary digits a number has that is no less than 0."""
    if n.literal is not None:
        return s.const(int(n.literal).bit_length(), i64)
    count = s.const(0, i64)
    for step in (32, 16, 8, 4, 2, 1):
        more = s.where(s.primitive("greater_equal", n, 1 << step), step, 0)
        count, n = count + more, s.primitive("right_shift", n, more)
    return count + s.cast(s.primitive("greater", n, 0), i64)
