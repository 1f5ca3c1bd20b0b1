"""Bisection: where a question whose answers are first yes and then no begins to be answered no.

In: how many places there are, how to ask at one. Out: a loop that leaves the place in a scalar.

Without branches: neighbouring elements take the same steps, as many as the number of places has
binary digits, and a processor need not guess where to go on (Khuong and Morin, "Array layouts for
comparison-based searching", Journal of Experimental Algorithmics 22, 2017).
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.ir.dims import Extent
from pyrelay.ir.types import i64
from pyrelay.lower.kernels.emitter import Emitter
from pyrelay.lower.kernels.values import Value


def first_without(s: Emitter, extent: Extent, asked: Callable[[Value], Value]) -> Value:
    """The first of so many places where `asked` is not true, or their number if it is nowhere."""
    count = s.extent(extent)
    place, left = s.variable(s.const(0, i64)), s.variable(count)
    with s.loop(0, _digits(s, count)):
        here, rest = s.now(place), s.now(left)
        # It is one of `rest` places from `here` on, or the one behind them.
        shorter = s.primitive("right_shift", rest, 1)
        half = rest - shorter
        yes = asked(s.bounded(here + half - 1, extent))
        s.assign(place, s.where(yes, here + half, here))
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
