"""Bounds of int64 scalars of a kernel: constants, and upper bounds relative to other scalars.

In: operands and the primitives that make them. Out: for each the least value that it may have, the
greatest, and scalars that it exceeds by no more than a constant, which is what index checks ask
(the upper half of pentagons: Logozzo and Faehndrich, "Pentagons: a weakly relational abstract
domain for the efficient validation of array accesses", SAC 2008).

A sum is bounded only where it cannot leave 64 bits, for NumPy's integers wrap around. Arrays have
fewer than 2^62 elements along an axis. A scalar that others are compared with here never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType

from pyrelay.ir.types import DType, i64
from pyrelay.lower.kernels.kernel import Compute, Literal, Local, Operand
from pyrelay.lower.passes.float_bounds import FARTHEST, Ends, FloatBounds
from pyrelay.records import dataclass

LEAST, GREATEST = -(2**63), 2**63 - 1
LONGEST = 2**62
"""No axis of an array has more elements."""
_FEW = 4
_NONE: Mapping[Local, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Interval:
    """What is known of an integer: `low <= k <= high`, and `k <= scalar + above[scalar]`."""

    low: int
    high: int
    above: Mapping[Local, int]

    def joined(self, other: Interval) -> Interval:
        """What holds of one that is either."""
        both = self.above.keys() & other.above.keys()
        above = {s: max(self.above[s], other.above[s]) for s in both}
        return Interval(min(self.low, other.low), max(self.high, other.high), above)

    def kept(
        self, other: Interval, limits: Sequence[int] = (), most: Mapping[Local, int] = _NONE
    ) -> Interval:
        """What of this holds of another one as well, as it is said here, or that it has no sign, is
        no more than one of `limits`, which ascend, or than a scalar less 1, plus 0 or `most`."""
        low = self.low if other.low >= self.low else 0 if min(self.low, other.low) >= 0 else LEAST
        high = self.high
        if other.high > high:
            high = next((n for n in limits if n >= other.high), GREATEST)
        above = {}
        for s, n in self.above.items():
            own = other.above.get(s, GREATEST)
            found = next((m for m in (n, -1, 0, most.get(s, 0)) if max(own, n) <= m), None)
            if found is not None:
                above[s] = found
        return Interval(low, high, above)

    def met(self, other: Interval) -> Interval:
        """What holds of one that is both."""
        above = dict(self.above)
        for s, more in other.above.items():
            above[s] = min(more, above.get(s, more))
        return Interval(max(self.low, other.low), min(self.high, other.high), above)


ANY = Interval(LEAST, GREATEST, {})


def constant(value: int) -> Interval:
    """What is known of a number."""
    return Interval(value, value, {})


class Intervals:
    """Intervals of operands as far as they are known at one place of a program.

    What is found out later can be undone, as at the end of a branch.
    """

    def __init__(self) -> None:
        self._known: dict[Local, Interval] = {}
        self._same: dict[Local, tuple[Local, int]] = {}  # a scalar plus a constant
        self._perhaps_same: dict[Local, tuple[Local, int]] = {}  # the same, unless it wraps around
        self._less: dict[Local, tuple[int, Local]] = {}  # a constant less a scalar
        self._multiples: dict[Local, tuple[Local, int]] = {}  # a scalar times a constant
        self._summands: dict[Operand, tuple[Interval, Interval]] = {}  # of sums
        self._trail: list[tuple[Local, Interval]] = []
        self.floats = FloatBounds()

    def copy(self) -> Intervals:
        """The same, of which more can be found out apart."""
        new = Intervals()
        new._known, new._same = dict(self._known), dict(self._same)
        new._summands, new._less = dict(self._summands), dict(self._less)
        new._perhaps_same, new._multiples = dict(self._perhaps_same), dict(self._multiples)
        new.floats = self.floats.copy()
        return new

    def mark(self) -> tuple[int, int]:
        """A place to come back to."""
        return len(self._trail), self.floats.mark()

    def undo(self, mark: tuple[int, int]) -> None:
        """Forget what was found out since then."""
        self.floats.undo(mark[1])
        while len(self._trail) > mark[0]:
            local, before = self._trail.pop()
            self._known[local] = before

    def of(self, operand: Operand) -> Interval:
        """What is known of an operand."""
        if isinstance(operand, Literal):
            return constant(int(operand.value)) if operand.dtype.kind in "iu" else ANY
        found = self._known.get(operand)
        if found is None:
            return _whole(operand.dtype)
        if operand not in self._same:
            return found
        base, distance = self._same[operand]
        own = self._known.get(base, ANY)
        low, high = max(found.low, own.low + distance), min(found.high, own.high + distance)
        return Interval(low, high, found.above)

    def value(self, operand: Operand) -> Interval:
        """What is known of a variable that is set to an operand: that it is no more than this."""
        found = self.of(operand)
        if not isinstance(operand, Local) or operand.variable:
            return found
        base, distance = self._base(operand, 0)
        above = {**found.above, base: min(distance, found.above.get(base, distance))}
        return Interval(found.low, found.high, above)

    def put(self, local: Local, interval: Interval) -> None:
        """Note all that is known of a scalar from here on: of a float nothing."""
        if local.dtype.kind == "f":
            self.floats.put(local, None)
        whole = _whole(local.dtype)
        self._trail.append((local, self._known.get(local, whole)))
        self._known[local] = whole if interval == ANY else interval

    def at_most(self, a: Operand, b: Operand, more: int) -> bool:
        """Whether `a <= b + more` is certain."""
        found, limit = self.of(a), self.of(b)
        if found.high <= limit.low + more:
            return True
        if isinstance(b, Literal):
            return False
        base, more = self._base(b, more)
        if isinstance(a, Local):
            own, less = self._base(a, 0)
            if own is base and less <= more:
                return True
        for scalar, distance in found.above.items():
            if scalar is base and distance <= more:
                return True
            further = self.of(scalar).above.get(base)
            if further is not None and distance + further <= more:
                return True
        return False

    def is_below_twice(self, a: Operand, b: Operand) -> bool:
        """Whether `a < 2 * b` is certain: it is the sum of two of which one is below b and the
        other no more than it."""
        if self.at_most(a, b, 0):
            return True
        if a not in self._summands or not isinstance(b, Local):
            return False
        base, distance = self._base(b, 0)
        parts = [each.above.get(base) for each in self._summands[a]]
        return None not in parts and sum(p for p in parts if p is not None) < 2 * distance

    def assume_at_most(self, a: Operand, b: Operand, more: int) -> None:
        """Note that `a <= b + more`, `more` being 0 or less."""
        found, limit = self.of(a), self.of(b)
        if isinstance(a, Local):
            above = {s: d + more for s, d in limit.above.items()}
            if isinstance(b, Local):
                base, distance = self._base(b, more)
                if not base.variable:
                    above[base] = min(distance, above.get(base, distance))
            self.put(a, found.met(Interval(LEAST, limit.high + more, above)))
            most = limit.high + more
            while (known := self._base_now(a))[0] is not a:  # a is a base plus a distance
                a, distance = known
                most -= distance
                above = {s: d - distance for s, d in above.items() if s is not a}
                self.put(a, self.of(a).met(Interval(LEAST, most, above)))
        if isinstance(b, Local):
            self.put(b, limit.met(Interval(found.low - more, GREATEST, {})))
            base, distance = self._base(b, more)
            left, right = self._less.get(base, (0, None))
            if right is not None:  # left - right + distance is no less than a
                least = Interval(LEAST, left + distance - found.low, {})
                self.put(right, self.of(right).met(least))

    def assume_other(self, a: Local, value: int) -> None:
        """Note that `a` is not that number."""
        found = self.of(a)
        if value in (found.low, found.high):
            low, high = found.low + (found.low == value), found.high - (found.high == value)
            self.put(a, Interval(low, high, found.above))

    def _base(self, local: Local, more: int) -> tuple[Local, int]:
        """The scalar that another one is but for a constant, and that plus `more`."""
        base, distance = self._same.get(local, (local, 0))
        return base, distance + more

    def _base_now(self, local: Local) -> tuple[Local, int]:
        """The same as far as it is known by now, of a sum that could have left 64 bits before."""
        base, distance = self._perhaps_same.get(local, (local, 0))
        found, own = self.of(local), self.of(base)
        beyond = found.high > GREATEST + distance and own.low < LEAST - distance
        above = found.low < LEAST + distance and own.high > GREATEST - distance
        return self._base(local, 0) if base is local or beyond or above else (base, distance)

    # -- what primitives make ------------------------------------------------------------------

    def make(self, s: Compute) -> None:
        """Note what is known of a result."""
        if s.out.dtype == i64:
            self.put(s.out, self._made(s))
        elif s.out.dtype.kind in "iu":
            self.put(s.out, self._of_other_size(s))
        elif s.out.dtype.kind == "f":
            self.floats.make(s, self._ends_of_integer)

    def of_result(self, s: Compute) -> Interval:
        """What would be known of a result of 64 bits."""
        return self._made(s)

    def _ends_of_integer(self, operand: Operand) -> Ends | None:
        """Between what an integer or a truth lies, as floats are said to."""
        if operand.dtype.kind == "b":
            return 0.0, 1.0
        if operand.dtype.kind not in "iu":
            return None
        found = self.of(operand)
        return float(found.low), float(found.high)

    def _of_other_size(self, s: Compute) -> Interval:
        """What is known of a result that wraps around beyond its own bits: its ends."""
        whole = _whole(s.out.dtype)
        if s.primitive == "cast":
            found = self.of(s.args[0]) if s.args[0].dtype.kind in "iu" else whole
        elif any(a.dtype != s.out.dtype for a in s.args):
            return whole
        else:
            found = _by_ends(s.primitive, [self.of(a) for a in s.args]) or whole
        fits = whole.low <= found.low and found.high <= whole.high
        return Interval(found.low, found.high, {}) if fits else whole

    def _made(self, s: Compute) -> Interval:
        if s.primitive in ("cast", "whole"):
            return self._cast(s.args[0])
        values = s.args[1:] if s.primitive == "where" else s.args
        if any(v.dtype != i64 for v in values):
            return ANY
        found = [self.of(v) for v in values]
        match s.primitive, found:
            case "add", [a, b]:
                return self._sum(s, a, b)
            case "subtract", [a, b]:
                return self._difference(s, a, b)
            case "multiply", [a, b]:
                self._note_multiple(s)
                if s.args[0] is s.args[1]:
                    return _square(a)
                return _within(_corners(a, b))
            case "left_shift", [a, b] if b.low >= 0 and b.high < 63:
                return _within(_corners(a, Interval(1 << b.low, 1 << b.high, {})))
            case "negative", [a] if a.low > LEAST:
                return Interval(-a.high, -a.low, {})
            case "absolute", [a] if a.low > LEAST:
                low = max(a.low, -a.high, 0)
                return Interval(low, max(-a.low, a.high), a.above if a.low >= 0 else {})
            case "where", [a, b]:
                return a.joined(b)
            case "minimum", [a, b]:
                return Interval(min(a.low, b.low), min(a.high, b.high), a.met(b).above)
            case "maximum", [a, b]:
                return Interval(max(a.low, b.low), max(a.high, b.high), a.joined(b).above)
            case "remainder", [a, b] if b.low > 0:
                return self._remainder(s.args[1], a, b)
            case "floor_divide", [a, b] if b.low > 0:
                low, high = a.low // (b.high if a.low >= 0 else b.low), a.high
                high //= b.low if a.high >= 0 else b.high
                above = self._shared(a, b.low if b.low == b.high else 0)
                if b.low == b.high == 2:
                    above = self._halved(s.args[0], above)
                return Interval(low, high, above)
            case "right_shift", [a, b] if b.low >= 0 and b.high < 64:
                low, high = a.low >> (b.high if a.low >= 0 else b.low), a.high
                high >>= b.low if a.high >= 0 else b.high
                above = self._shared(a, 1 << b.low if b.low == b.high else 0)
                if b.low == b.high == 1:
                    above = self._halved(s.args[0], above)
                return Interval(low, high, above)
            case "bitwise_and", [a, b]:
                parts = [each for each in (a, b) if each.low >= 0]
                return _smaller(parts) if parts else ANY
            case ("bitwise_or" | "bitwise_xor"), [a, b] if a.low >= 0 and b.low >= 0:
                return Interval(0, (1 << max(a.high, b.high).bit_length()) - 1, {})
        return ANY

    def _note_multiple(self, s: Compute) -> None:
        """Notes a product of a length, or what is no longer, and a few: if that wraps around, it is
        no more than 0."""
        for base, factor in (s.args, s.args[::-1]):
            if isinstance(base, Local) and not base.variable and isinstance(factor, Literal):
                known = self.of(base)
                if 0 < factor.value <= _FEW and known.low >= 0 and known.high <= LONGEST:
                    self._multiples[s.out] = base, int(factor.value)

    def _shared(self, number: Interval, by: int) -> Mapping[Local, int]:
        """What a quotient is at most, if its number has no sign: what that is, and below `by * n`
        it is below `n`."""
        if number.low < 0:
            return _NONE
        above = dict(number.above)
        for scalar, more in number.above.items():
            base, factor = self._multiples.get(scalar, (scalar, 0))
            if 0 < by == factor and more < 0:
                above[base] = min(more // by, above.get(base, 0))
        return above

    def _halved(self, total: Operand, above: Mapping[Local, int]) -> Mapping[Local, int]:
        """What half of a sum is at most, for it lies between its summands."""
        a, b = self._summands.get(total, (ANY, ANY))
        middle = {t: (a.above[t] + b.above[t]) // 2 for t in a.above.keys() & b.above.keys()}
        return {**above, **middle}

    def _cast(self, operand: Operand) -> Interval:
        dtype = operand.dtype
        if dtype == i64:
            return self.of(operand)
        if dtype.kind == "b":
            return Interval(0, 1, {})
        if dtype.kind == "f":
            low, high = self.floats.of(operand) or (-FARTHEST, FARTHEST)
            inside = low >= -FARTHEST and high < FARTHEST
            return Interval(int(low), int(high), {}) if inside else ANY
        if dtype.kind not in "iu":
            return ANY
        found = self.of(operand)
        return ANY if found.high > GREATEST else Interval(found.low, found.high, {})

    def _sum(self, s: Compute, a: Interval, b: Interval) -> Interval:
        if a.low + b.low < LEAST or a.high + b.high > GREATEST:
            self._wraps(s, 1)
            return ANY
        self._summands[s.out] = self.value(s.args[0]), self.value(s.args[1])
        for value, other in ((s.args[0], b), (s.args[1], a)):
            if isinstance(value, Local) and not value.variable and other.low == other.high:
                self._same[s.out] = self._base(value, other.low)
        above = {t: more + b.high for t, more in a.above.items()}
        for t, more in b.above.items():
            above[t] = min(more + a.high, above.get(t, more + a.high))
        return Interval(a.low + b.low, a.high + b.high, above)

    def _wraps(self, s: Compute, sign: int) -> None:
        """Notes a sum with a constant that may wrap around for all that is known here."""
        match s.args:
            case (Local(variable=False) as base, Literal(value=int(more))):
                self._perhaps_same[s.out] = base, sign * more

    def _difference(self, s: Compute, a: Interval, b: Interval) -> Interval:
        left = s.args[0]
        if a.low - b.high < LEAST or a.high - b.low > GREATEST:
            self._wraps(s, -1)
            return ANY
        low, right = a.low - b.high, s.args[1]
        if isinstance(left, Literal) and isinstance(right, Local) and not right.variable:
            self._less[s.out] = int(left.value), right
        if isinstance(left, Local):
            if not left.variable and b.low == b.high:
                self._same[s.out] = self._base(left, -b.low)
            base, distance = self._base(left, 0)
            if base in b.above:  # right <= base + c and left = base + distance
                low = max(low, distance - b.above[base])
        above = {t: more - b.low for t, more in a.above.items()}
        return Interval(low, a.high - b.low, above)

    def exact(self, name: str, args: Sequence[Operand]) -> Interval:
        """What a sum or a difference is that has not left 64 bits, as a check in front says."""
        a, b = map(self.value, args)
        if name == "subtract":
            above = {t: more - b.low for t, more in a.above.items() if b.low > LEAST}
            return Interval(a.low - b.high, a.high - b.low, above)
        above = {t: more + b.high for t, more in a.above.items() if b.high < GREATEST}
        for t, more in b.above.items():
            if a.high < GREATEST:
                above[t] = min(more + a.high, above.get(t, more + a.high))
        return Interval(a.low + b.low, a.high + b.high, above)

    def _remainder(self, divisor: Operand, a: Interval, b: Interval) -> Interval:
        above = dict(a.above) if a.low >= 0 else {}
        if isinstance(divisor, Local):
            base, distance = self._base(divisor, -1)
            if not base.variable:
                above[base] = min(distance, above.get(base, distance))
        high = min(a.high, b.high - 1) if a.low >= 0 else b.high - 1
        return Interval(0, high, above)


def whatever_variables_are(
    makers: Iterable[Compute], chosen: Mapping[Local, Sequence[Operand]]
) -> Intervals:
    """What is known of what a loop computes, in any round: as of nothing but the numbers there.

    makers: in the order of the text. chosen: variables that each round sets to one of some operands
    before it reads them.
    """
    known, computed = Intervals(), tuple(makers)
    for s in computed:
        known.make(s)
    if chosen:
        for variable, arms in chosen.items():
            known.put(variable, reduce(Interval.joined, map(known.of, arms)))
        for s in computed:
            known.make(s)
    return known


def _whole(dtype: DType) -> Interval:
    """All that an integer of a type may be; of others nothing is said."""
    if dtype.kind not in "iu":
        return ANY
    bits = 8 * dtype.size
    if dtype.kind == "u":
        return Interval(0, 2**bits - 1, {})
    return Interval(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, {})


def _by_ends(primitive: str, found: Sequence[Interval]) -> Interval | None:
    """A result by the ends of what it is made of, as if it had bits enough."""
    if len(found) != 2:
        return None
    a, b = found
    match primitive:
        case "add":
            return Interval(a.low + b.low, a.high + b.high, {})
        case "subtract":
            return Interval(a.low - b.high, a.high - b.low, {})
        case "multiply":
            ends = _corners(a, b)
            return Interval(min(ends), max(ends), {})
        case "bitwise_and" if a.low >= 0 or b.low >= 0:
            return Interval(0, min(each.high for each in (a, b) if each.low >= 0), {})
        case "right_shift" if a.low >= 0 and b.low >= 0:
            return Interval(0, a.high >> min(b.low, 64), {})
        case "floor_divide" if a.low >= 0 and b.low > 0:
            return Interval(0, a.high // b.low, {})
        case "remainder" if b.low > 0:
            return Interval(0, b.high - 1 if a.low < 0 else min(a.high, b.high - 1), {})
    return None


def _corners(a: Interval, b: Interval) -> list[int]:
    """The products among which the least and the greatest are."""
    return [x * y for x in (a.low, a.high) for y in (b.low, b.high)]


def _square(a: Interval) -> Interval:
    """What a square is, which has no sign unless it leaves 64 bits."""
    found = _within(_corners(a, a))
    return ANY if found is ANY else Interval(max(found.low, 0), found.high, {})


def _within(ends: list[int]) -> Interval:
    """What lies between the least and the greatest of these, unless one leaves 64 bits."""
    if min(ends) < LEAST or max(ends) > GREATEST:
        return ANY
    return Interval(min(ends), max(ends), {})


def _smaller(parts: list[Interval]) -> Interval:
    """What holds of an integer from 0 on that is no more than any of these."""
    found = parts[0]
    for each in parts[1:]:
        found = found.met(each)
    return Interval(0, found.high, found.above)
