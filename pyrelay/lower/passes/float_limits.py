"""Checks of floats of which integers are made, and of these integers, as one check of the float.

In: the statements of a round, any of whose checks has all of it done in another way. Out:

    fail if isnan(x)
    fail if isinf(x)                                fail unless -1 < x < 256
    fail unless -2**63 <= x < 2**63         as      n = whole(x)
    n = int64(x)
    fail if n < 0 or n > 255

where `whole` is any number for what the check says is none. What stands behind the point is left
out of the integer, so it is less than 0 where the float is -1 or less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import Compute, Fail, Literal, Local, Operand, Statement
from pyrelay.lower.passes.float_bounds import FARTHEST

_EXACT = {4: 2**24, 8: 2**53}  # up to which floats of so many bytes hold all integers


class _Limits(NamedTuple):
    """The numbers between two others, and perhaps the least one itself: what checks let pass."""

    least: float
    most: float
    closed: bool = False

    def both(self, other: _Limits) -> _Limits:
        """What both let pass."""
        lower = max(self, other, key=lambda each: (each.least, not each.closed))
        return _Limits(lower.least, min(self.most, other.most), lower.closed)


_NUMBERS = _Limits(-math.inf, math.inf, True)  # with infinity, which `isinf` is about
_FINITE = _Limits(-math.inf, math.inf)
_Makers = Mapping[Operand, Compute]


def with_float_limits(body: Sequence[Statement]) -> list[Statement]:
    """The statements with one check of each float of which an integer is made."""
    makers: _Makers = {s.out: s for s in body if isinstance(s, Compute)}
    asked = {
        s.cond: found
        for s in body if isinstance(s, Fail) and (found := _asked(s.cond, makers))
    }
    limits: dict[Operand, _Limits] = {}
    for x, each in asked.values():
        limits[x] = limits[x].both(each) if x in limits else each
    made = {s.args[0] for s in makers.values() if _is_integer_of_float(s)}
    kept = {
        x: each for x, each in limits.items()
        if x in made and each.least >= -FARTHEST and each.most <= FARTHEST
    }
    waiting = dict(kept)
    out: list[Statement] = []
    for s in body:
        if isinstance(s, Fail) and s.cond in asked and asked[s.cond][0] in kept:
            x = asked[s.cond][0]
            if x in waiting:
                out += _check(x, waiting.pop(x))
        elif isinstance(s, Compute) and _is_integer_of_float(s) and (
            s.args[0] in kept and s.args[0] not in waiting
        ):
            out.append(replace(s, primitive="whole"))
        else:
            out.append(s)
    return out


def _is_integer_of_float(s: Compute) -> bool:
    return s.primitive == "cast" and s.out.dtype == i64 and s.args[0].dtype.kind == "f"


def _check(x: Operand, limits: _Limits) -> list[Statement]:
    """Fails for a float that is not within limits, or NaN."""
    above, below, within, outside = (Local(bool_) for _ in range(4))
    least, most = (Literal(float(end), x.dtype) for end in limits[:2])
    return [
        Compute(above, "greater_equal" if limits.closed else "greater", (x, least)),
        Compute(below, "less", (x, most)),
        Compute(within, "logical_and", (above, below)),
        Compute(outside, "logical_not", (within,)),
        Fail(outside, 0),
    ]


def _asked(cond: Operand, makers: _Makers) -> tuple[Operand, _Limits] | None:
    """The float that a check is about, and what it lets pass."""
    match makers.get(cond):
        case Compute(primitive="isnan", args=(x,)):
            return x, _NUMBERS
        case Compute(primitive="isinf", args=(x,)):
            return x, _FINITE
        case Compute(primitive="logical_and", args=(first, _)) if (
            (found := _asked(first, makers)) is not None and found[1] == _NUMBERS
        ):
            return found  # of what is NaN where something else is not
        case Compute(primitive="logical_not", args=(inside,)):
            return _inside(inside, makers)
        case Compute(primitive="logical_or", args=(first, second)):
            both = _of_integer(first, makers), _of_integer(second, makers)
            if both[0] is None or both[1] is None or both[0][0] is not both[1][0]:
                return None
            return both[0][0], both[0][1].both(both[1][1])
    return _of_integer(cond, makers)


def _inside(cond: Operand, makers: _Makers) -> tuple[Operand, _Limits] | None:
    """What a check lets pass that fails unless a float lies between two numbers."""
    both = makers.get(cond)
    if both is None or both.primitive != "logical_and":
        return None
    match makers.get(both.args[0]), makers.get(both.args[1]):
        case (
            Compute(primitive="greater_equal", args=(x, Literal(value=least))),
            Compute(primitive="less", args=(y, Literal(value=most))),
        ) if x is y and x.dtype.kind == "f":
            return x, _Limits(least, most, True)
    return None


def _of_integer(cond: Operand, makers: _Makers) -> tuple[Operand, _Limits] | None:
    """What a check lets pass that fails for integers of floats that are too small or too large."""
    match makers.get(cond):
        case Compute(primitive="less", args=(n, Literal(value=end))):
            limits = _Limits(end - 1, math.inf)
        case Compute(primitive="greater", args=(n, Literal(value=end))):
            limits = _Limits(-math.inf, end + 1, True)
        case _:
            return None
    made = makers.get(n)
    if made is None or not _is_integer_of_float(made):
        return None
    (x,) = made.args
    return (x, limits) if abs(end) < _EXACT.get(x.dtype.size, 0) else None
