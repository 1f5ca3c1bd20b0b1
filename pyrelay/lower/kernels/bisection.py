"""Bisection: where a question whose answers are first yes and then no begins to be answered no.

In: how many places there are, how to ask at one. Out: a loop that leaves the place in a scalar.

Without branches: neighbouring elements take the same steps, as many as the number of places has
binary digits, and a processor need not guess where to go on (Khuong and Morin, "Array layouts for
comparison-based searching", Journal of Experimental Algorithmics 22, 2017). Where one thread goes
through many elements, each looks first around the place of the one before, where that was right
for the last ones: those of sorted numbers are neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.ir.dims import Extent
from pyrelay.ir.types import i64
from pyrelay.lower.kernels.emitter import Emitter
from pyrelay.lower.kernels.values import Value

_AROUND = 8  # so far from the place before are others looked at first
_IN_ORDER = 8  # after so many neighbours, of which others count twice, another one is likely


def first_without(s: Emitter, extent: Extent, asked: Callable[[Value], Value]) -> Value:
    """The first of so many places where `asked` is not true, or their number if it is nowhere."""
    count, zero = s.extent(extent), s.const(0, i64)
    rounds = _digits(s, count)

    def anywhere() -> Value:
        return _bisected(s, extent, asked, zero, count, rounds)

    if not s.alone:
        return anywhere()
    with s.at(0):  # in front of the loop over elements, if one stands around
        last, neighbours = s.variable(zero), s.variable(zero)
    near, before = s.copy(s.now(last)), s.copy(s.now(neighbours))
    # Of known extents, too, it is a branch: outside of one a rule that reads what is not computed
    # yet runs again, each time with another variable.
    place = s.choose(
        s.primitive("greater", before, _IN_ORDER), lambda: _near(s, extent, asked, near, anywhere),
        anywhere,
    )
    moved = s.primitive("absolute", place - near)
    reach = s.primitive("minimum", s.primitive("right_shift", count, 3), _AROUND)
    score = before + s.where(s.primitive("less", moved, reach), 1, -2)
    within = s.primitive("maximum", s.primitive("minimum", score, 2 * _IN_ORDER), 0)
    s.assign(neighbours, within)
    s.assign(last, place)
    return place


def _near(
    s: Emitter, extent: Extent, asked: Callable[[Value], Value], near: Value,
    anywhere: Callable[[], Value],
) -> Value:
    """The place, looked for around that of the element before. These are branches, as what a
    processor guesses need not wait for the element before."""
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
        return s.choose(is_near, lambda: _counted(s, extent, asked, first), anywhere)

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
