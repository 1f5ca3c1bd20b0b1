"""Remainders and shifts of integers whose bounds are known take fewer instructions.

In: the body of a scalar kernel, its loops in versions. Out: the same, in which

    (i + 1) % n       is  i + 1 if i + 1 < n else 0
    (i - 1) % n       is  i - 1 if i - 1 >= 0 else i - 1 + n
    m >> j            has no look whether there are as many bits
    k % 10, k // 10   are those of integers without a sign, of as few bits as hold `k`
    int(x)            has no look whether an int64 holds it

where `i` is known to lie below `n`, as the index of a loop over a ring, `j` below 64, `k` not
below 0, and `x` between floats that an int64 holds. What is known is what `implied` knows, which
notices on the way what the versions settle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay.ir.types import bool_, f32, f64, i64, u16, u32, u64
from pyrelay.lower.kernels.kernel import Body, Compute, Literal, Local, Statement, statements
from pyrelay.lower.passes.bounded_places import LAST_BIT
from pyrelay.lower.passes.float_bounds import FARTHEST
from pyrelay.lower.passes.implied import walked
from pyrelay.lower.passes.intervals import Intervals

_DIVISIONS = frozenset(["remainder", "floor_divide"])
_SHIFTS = frozenset(["left_shift", "right_shift"])


def with_bounded_numbers(body: Body) -> Body:
    """The body with remainders that are choices, and shifts and casts that look no further."""
    return walked(body, _rule) if any(map(_takes_long, statements(body))) else body


def _takes_long(s: Statement) -> bool:
    return isinstance(s, Compute) and s.out.dtype == i64 and (
        ((s.primitive == "remainder" or s.primitive in _SHIFTS) and isinstance(s.args[1], Local))
        or _is_by_constant(s) or _is_int(s)
    )


def _is_int(s: Compute) -> bool:
    """Whether it makes an integer of a float."""
    return s.primitive == "cast" and s.args[0].dtype in (f32, f64)


def _is_by_constant(s: Compute) -> bool:
    """Whether it is a quotient or a remainder of a number by a constant that bits do not give."""
    by = s.args[-1]
    return s.primitive in _DIVISIONS and isinstance(by, Literal) and by.value & (by.value - 1) > 0


def _rule(s: Compute, known: Intervals) -> Sequence[Compute]:
    if not _takes_long(s):
        return (s,)
    if _is_int(s):
        ends = known.floats.of(s.args[0])
        fits = ends is not None and ends[0] >= -FARTHEST and ends[1] < FARTHEST
        return (replace(s, primitive="whole"),) if fits else (s,)
    if _is_by_constant(s):
        found = known.of(s.args[0])
        return _natural(s, found.high) if s.args[1].value > 0 and found.low >= 0 else (s,)  # type: ignore[union-attr]
    return _remainder(s, known) if s.primitive == "remainder" else _shift(s, known)


def _remainder(s: Compute, known: Intervals) -> Sequence[Compute]:
    """A remainder for which the divisor is subtracted or added once at most."""
    a, n = s.args
    low, near, moved = known.of(a).low, Local(bool_), Local(i64)
    if known.of(n).low <= 0:
        return (s,)
    if low >= 0 and known.is_below_twice(a, n):
        compared, name = Compute(near, "less", (a, n)), "subtract"
    elif low >= -1 and known.at_most(a, n, -1):
        compared, name = Compute(near, "greater_equal", (a, Literal(0, i64))), "add"
    else:
        return (s,)
    if name == "subtract" and known.at_most(a, n, 0):
        return (compared, Compute(s.out, "where", (near, a, Literal(0, i64))))
    chosen = Compute(s.out, "where", (near, a, moved))
    return (compared, Compute(moved, name, (a, n)), chosen)


def _natural(s: Compute, high: int) -> Sequence[Compute]:
    """What is divided has no sign, nor has what comes out: no look at signs, a shorter product, of
    as few bits as the greatest one has."""
    number, by = s.args
    most = max(high, by.value)  # type: ignore[union-attr]
    dtype = next(each for each in (u16, u32, u64) if most < 1 << 8 * each.size)
    name = "bitcast" if dtype == u64 else "cast"
    bits, out = Local(dtype), Local(dtype)
    return (
        Compute(bits, name, (number,)),
        Compute(out, s.primitive, (bits, Literal(by.value, dtype))),  # type: ignore[union-attr]
        Compute(s.out, name, (out,)),
    )


def _shift(s: Compute, known: Intervals) -> Sequence[Compute]:
    number, by = s.args
    found = known.of(by)
    if found.low < 0 or found.high > LAST_BIT:
        return (s,)
    few = Local(i64)
    return (
        Compute(few, "bitwise_and", (by, Literal(LAST_BIT, i64))),
        replace(s, args=(number, few)),
    )
