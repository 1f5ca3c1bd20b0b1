"""Ends of a loop's integers that remainders and bits bound.

In: what computes the integers of a loop, and the ends of those that it steps. Out: for `i % n`,
`h & 63`, `i | bit` and `i ^ bit` the least and the greatest value, computed in front of the loop.

An integer of bits that two others have is no greater than the next number of ones only, 2^k - 1,
that neither of them exceeds. For places in an array of 2^n elements that is the last one, so that
nobody has to know that it has so many. None of the integers may be negative, which is asked. Bytes
have ends of their own: of a table of 256 elements each is a place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import Compute, Literal, Local, Operand
from pyrelay.lower.passes.loop_front import Front
from pyrelay.lower.passes.loop_slopes import Slopes

TOGETHER = frozenset(["bitwise_or", "bitwise_xor"])
LAST_BIT = 63
_FEW_BYTES = 2  # of an integer without a sign that tables may have an element for
_LAST_POWER = 62  # of two that an int64 may be
_Ends: TypeAlias = Callable[[Front], tuple[Operand, Operand]]
#: Computes the greatest value of an integer in front of a loop, and asks that none is negative.
_Most: TypeAlias = Callable[[Front], Operand]
_DEEPEST = 6
_ZERO, _ONE = Literal(0, i64), Literal(1, i64)


class BoundedPlaces:
    """Bounds of integers of a loop: `sources` are those it steps, with their ends."""

    def __init__(
        self, makers: Mapping[Local, Compute], sources: Mapping[Local, _Ends], slopes: Slopes,
        is_fixed: Callable[[Operand], bool],
    ) -> None:
        self._makers, self._sources = makers, sources
        self._slopes, self._is_fixed = slopes, is_fixed

    def ends(self, compute: Compute) -> _Ends | None:
        """The ends of a remainder, or of what is put together of bits, if they are known."""
        if compute.out.dtype != i64:
            return None
        match compute.primitive, compute.args:
            case "remainder", (_, n) if self._is_fixed(n):
                return None if isinstance(n, Literal) and n.value <= 0 else _below(n)
            case "bitwise_and", (_, Literal(value=most) as last) if most > 0:
                return lambda _: (_ZERO, last)
            case "cast", (x,) if x.dtype.kind == "u" and x.dtype.size <= _FEW_BYTES:
                greatest = Literal(2 ** (8 * x.dtype.size) - 1, i64)
                return lambda _: (_ZERO, greatest)
            case name, _ if name in TOGETHER:
                found = self._together(compute, 0)
                return None if found is None else lambda front: (_ZERO, found(front))
        return None

    def _together(self, compute: Compute, depth: int) -> _Most | None:
        parts = [self._most(a, depth) for a in compute.args]
        if None in parts:
            return None
        return lambda front: ones([part(front) for part in parts if part is not None], front)

    def _most(self, operand: Operand, depth: int) -> _Most | None:
        if isinstance(operand, Literal):
            return (lambda _: operand) if operand.value >= 0 else None
        if operand.dtype != i64 or depth > _DEEPEST:
            return None
        if operand in self._sources:
            ends, rises = self._sources[operand], self._slopes.of(operand) == 1
            return lambda front: _natural(*(ends(front) if rises else ends(front)[::-1]), front)
        if self._is_fixed(operand):
            return lambda front: _natural(operand, operand, front)
        compute = self._makers.get(operand)
        return None if compute is None else self._made(compute, depth + 1)

    def _made(self, compute: Compute, depth: int) -> _Most | None:
        """The most of what a loop computes and no longer steps."""
        match compute.primitive, compute.args:
            case "left_shift", (Literal(value=1), by):
                bits = self._most(by, depth)
                if bits is None:
                    return None

                def shifted(front: Front) -> Operand:
                    last = bits(front)
                    front.doubt(front.put("greater", last, Literal(_LAST_POWER, i64)))
                    return front.put("left_shift", _ONE, last)

                return shifted
            case "add", (a, b):
                first, second = self._most(a, depth), self._most(b, depth)
                if first is None or second is None:
                    return None
                return lambda front: front.exact("add", first(front), second(front))
            case "right_shift", (number, _):
                return self._most(number, depth)
            case "bitwise_and", (a, b):
                return self._most(a, depth) or self._most(b, depth)
            case name, _ if name in TOGETHER:
                return self._together(compute, depth)
        return None


def ones(parts: Sequence[Operand], front: Front) -> Operand:
    """The least number of ones only that none of several exceeds."""
    total, *others = parts
    for other in others:
        total = front.put("bitwise_or", total, other)
    for half in (1, 2, 4, 8, 16, 32):
        rest = front.put("right_shift", total, Literal(half, i64))
        total = front.put("bitwise_or", total, rest)
    return total


def _below(n: Operand) -> _Ends:
    def ends(front: Front) -> tuple[Operand, Operand]:
        if not isinstance(n, Literal):
            front.doubt(front.put("less", n, _ONE))
        return _ZERO, front.put("subtract", n, _ONE)

    return ends


def _natural(least: Operand, most: Operand, front: Front) -> Operand:
    """The greatest value of what must not be negative."""
    if not isinstance(least, Literal) or least.value < 0:
        front.doubt(front.put("less", least, _ZERO))
    return most
