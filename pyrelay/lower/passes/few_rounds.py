"""Which `while` loops end after a few rounds, whatever their data are.

In: a loop, intervals of its variables where a round begins and of what a round computes. Out: the
most rounds that it makes, or None. It then needs no look for Ctrl-C, and LLVM sees a loop with one
way out, which it may know an instruction for, as for the bits that `v &= v - 1` counts.

Each kind is a ranking function (Colon and Sipma, "Synthesis of linear ranking functions", TACAS
2001; here, of logarithms as well): a test that every round passes and a change that every round
makes allow no more rounds than an integer has bits, than a counter has steps to a constant, than
Euclid's algorithm takes (Lame, 1844: 92 for 64 bits), or than an interval can be halved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Break,
    Call,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Local,
    Operand,
    While,
    statements,
)
from pyrelay.lower.passes.intervals import ANY, GREATEST, LEAST, Interval, constant

_BITS = 66
_EUCLID = 96
_MOST_STEPS = 1 << 10  # of a counter
_DEEPEST = 16
_SWAPPED = {"greater": "less", "greater_equal": "less_equal"}
#: `a <= b + more`
_Order: TypeAlias = tuple[Operand, Operand, int]
#: A branch, and what its arms set a variable to.
_Choice: TypeAlias = tuple[If, Operand, Operand]


def most_rounds(
    loop: While, begins: Mapping[Local, Interval], of: Callable[[Operand], Interval]
) -> int | None:
    """The most rounds of a loop; `begins` is what is known of its variables when a round begins,
    `of` what is known of other scalars in it."""
    flat = list(statements(loop.body))
    if any(isinstance(s, (For, While, Call)) for s in flat):
        return None
    return _Round(loop, begins, of).most()


class _Round:
    """What one round of a loop does to its variables."""

    def __init__(
        self, loop: While, begins: Mapping[Local, Interval], of: Callable[[Operand], Interval]
    ) -> None:
        self.begins, self.of = begins, of
        self.makers = {s.out: s for s in statements(loop.body) if isinstance(s, Compute)}
        self.assigned: dict[Local, list[Assign]] = {}
        for s in statements(loop.body):
            if isinstance(s, Assign):
                self.assigned.setdefault(s.variable, []).append(s)
        #: What each round changes once, in whatever branch, and where in its text.
        self.changes: dict[Operand, tuple[int, Operand]] = {
            s.variable: (place, s.value) for place, s in enumerate(loop.body)
            if isinstance(s, Assign) and len(self.assigned[s.variable]) == 1
        }
        #: Variables that both arms of a branch set.
        self.chosen: dict[Operand, _Choice] = dict(self._choices(loop))
        self.exact = {
            (maker.primitive.removesuffix("_overflows"), maker.args)
            for s in statements(loop.body) if isinstance(s, Fail)
            if (maker := self._maker(s.cond)) is not None
        }
        self.breaks = {s.cond for s in loop.body if isinstance(s, Break)}
        self.orders: list[_Order] = []
        self.nonzero: set[Operand] = set()
        for s in loop.body:
            if isinstance(s, Break):
                self._note(s.cond, False, 0)

    def most(self) -> int | None:
        """The most rounds, by whichever variable shows it first."""
        for variable, (place, value) in self.changes.items():
            if not isinstance(variable, Local) or variable.dtype.kind not in "iu":
                continue
            value = self._held(value, place)
            if self._clears(variable, value) or self._halves(variable, value):
                return _BITS
            if self._doubles(variable, value):
                return _BITS
            steps = self._counts(variable, value)
            if steps is not None:
                return steps
            if self._is_euclid(variable, place, value):
                return _EUCLID
        integers = [v for v in self.changes if isinstance(v, Local) and v.dtype == i64]
        pairs = ((a, b) for a in integers for b in integers if a is not b)
        return _BITS if any(self._bisects(a, b) for a, b in pairs) else None

    # -- what a round says ---------------------------------------------------------------------

    def _maker(self, operand: Operand) -> Compute | None:
        return self.makers.get(operand) if isinstance(operand, Local) else None

    def _choices(self, loop: While) -> Iterator[tuple[Local, _Choice]]:
        for s in loop.body:
            if not isinstance(s, If):
                continue
            then, orelse = (
                {each.variable: each.value for each in arm if isinstance(each, Assign)}
                for arm in (s.then, s.orelse)
            )
            for variable in then.keys() & orelse.keys():
                if len(self.assigned[variable]) == 2:
                    yield variable, (s, then[variable], orelse[variable])

    def _note(self, cond: Operand, truth: bool, depth: int) -> None:
        """Note what holds in each round that goes on, as `cond` is `truth` in it."""
        if not isinstance(cond, Local) or depth > _DEEPEST:
            return
        if cond in self.chosen:
            branch, then, orelse = self.chosen[cond]
            for value, other, taken in ((then, orelse, True), (orelse, then, False)):
                if isinstance(other, Literal) and bool(other.value) is not truth:
                    self._note(branch.cond, taken, depth + 1)
                    self._note(value, truth, depth + 1)
            return
        maker = self.makers.get(cond)
        if maker is None:
            return
        name, args = maker.primitive, maker.args
        if name == "logical_not":
            self._note(args[0], not truth, depth + 1)
        elif name in (("logical_and", "bitwise_and") if truth else ("logical_or", "bitwise_or")):
            for arg in args:
                self._note(arg, truth, depth + 1)
        elif name == ("not_equal" if truth else "equal"):
            for a, b in (args, args[::-1]):
                if isinstance(b, Literal) and b.value == 0:
                    self.nonzero.add(a)
        elif name in ("less", "less_equal", "greater", "greater_equal"):
            a, b = args[::-1] if name in _SWAPPED else args
            less = -1 if _SWAPPED.get(name, name) == "less" else 0
            self.orders.append((a, b, less) if truth else (b, a, -1 - less))

    def _held(self, operand: Operand, place: int) -> Operand:
        """What a variable that a round sets once, before that place, holds if it goes on."""
        for _ in range(_DEEPEST):
            if operand in self.chosen and self.chosen[operand][0].cond in self.breaks:
                operand = self.chosen[operand][2]
                continue
            if operand not in self.changes:
                break
            set_at, value = self.changes[operand]
            if set_at >= place:
                break
            operand, place = value, set_at
        return operand

    def _constant(self, operand: Operand) -> int | None:
        return operand.value if isinstance(operand, Literal) else None

    def _low(self, variable: Local) -> int:
        if variable.dtype.kind == "u":
            return 0
        return self.begins.get(variable, ANY).low

    def _is_positive(self, variable: Local) -> bool:
        if variable in self.nonzero and self._low(variable) >= 0:
            return True
        return any(
            b is variable and self._limit(a, least=True) > more for a, b, more in self.orders
        )

    def _limit(self, operand: Operand, *, least: bool) -> int:
        """The least or the greatest value of what every round compares with."""
        if isinstance(operand, Local) and operand in self.assigned:
            return LEAST if least else GREATEST
        if isinstance(operand, Literal):
            found = constant(int(operand.value)) if operand.dtype.kind in "iu" else ANY
        else:
            found = self.of(operand)
        return found.low if least else found.high

    def _is_exact(self, maker: Compute) -> bool:
        """Whether a sum, difference or product has not left 64 bits."""
        known = self.of(maker.out)
        checked = (maker.primitive, maker.args) in self.exact
        return checked or (known.low, known.high) != (LEAST, GREATEST)

    # -- kinds of rounds -----------------------------------------------------------------------

    def _clears(self, v: Local, value: Operand) -> bool:
        """`v & (v - 1)`, `v - (v & -v)` or `v ^ (v & -v)`, while v is not 0."""
        maker = self._maker(value)
        if maker is None or not (v in self.nonzero or self._is_positive(v)):
            return False
        for a, b in (maker.args, maker.args[::-1]) if len(maker.args) == 2 else ():
            other = self._maker(b)
            if a is not v or other is None:
                continue
            if maker.primitive == "bitwise_and" and self._added(b, v) == -1:
                return True
            lowest = other.primitive == "bitwise_and" and v in other.args and any(
                (m := self._maker(arg)) is not None and m.primitive == "negative" and m.args == (v,)
                for arg in other.args
            )
            first = maker.primitive == "bitwise_xor" or b is maker.args[1]
            if lowest and first and maker.primitive in ("bitwise_xor", "subtract"):
                return True
        return False

    def _added(self, operand: Operand, v: Local) -> int | None:
        """The constant that a sum adds to a variable."""
        if operand is v:
            return 0
        maker = self._maker(operand)
        if maker is None or maker.primitive not in ("add", "subtract"):
            return None
        a, b = maker.args
        if maker.primitive == "add" and isinstance(a, Literal):
            a, b = b, a
        if a is not v or not isinstance(b, Literal):
            return None
        return int(b.value) if maker.primitive == "add" else -int(b.value)

    def _halves(self, v: Local, value: Operand) -> bool:
        """`v // 2`, `v >> 1`, `(v - 1) // 2`, while v is greater than 0."""
        maker = self._maker(value)
        if maker is None or not self._is_positive(v):
            return False
        by = self._constant(maker.args[-1])
        least = {"floor_divide": 2, "right_shift": 1}.get(maker.primitive)
        if least is None or by is None or by < least or (least == 1 and by > 63):
            return False
        added = self._added(maker.args[0], v)
        return added is not None and -_MOST_STEPS <= added <= 0

    def _doubles(self, v: Local, value: Operand) -> bool:
        """`2 * v`, `2 * v + 1` of what is greater than 0, as long as it fits in 64 bits."""
        maker = self._maker(value)
        more = 0
        if maker is not None and maker.primitive == "add":
            a, b = maker.args
            a, b = (b, a) if isinstance(a, Literal) else (a, b)
            if isinstance(b, Literal) and b.value >= 0 and self._is_exact(maker):
                maker, more = self._maker(a), int(b.value)
        if maker is None or v.dtype != i64 or self._low(v) < (0 if more else 1):
            return False
        if not self._is_exact(maker):
            return False
        if maker.primitive == "add":
            return maker.args == (v, v)
        a, b = maker.args[0], maker.args[-1]
        a, b = (b, a) if isinstance(a, Literal) else (a, b)
        least = {"multiply": 2, "left_shift": 1}.get(maker.primitive)
        return least is not None and a is v and isinstance(b, Literal) and b.value >= least

    def _counts(self, v: Local, value: Operand) -> int | None:
        """How many steps a counter takes to a bound, if these are few."""
        step = self._added(value, v)
        if not step or v.dtype != i64:
            return None
        found = []
        for a, b, more in self.orders:
            if step > 0 and a is v:
                found.append(self._limit(b, least=False) + more - self._low(v))
            elif step < 0 and b is v:
                high = self.begins.get(v, ANY).high
                found.append(high - self._limit(a, least=True) + more)
        rounds = min(found, default=GREATEST) // abs(step) + 2
        return max(rounds, 2) if rounds <= _MOST_STEPS else None

    def _is_euclid(self, b: Local, place: int, value: Operand) -> bool:
        """`a, b = b, a % b`, while b is not 0."""
        maker = self._maker(value)
        if maker is None or maker.primitive != "remainder" or maker.args[1] is not b:
            return False
        a = maker.args[0]
        if a not in self.changes or not (b in self.nonzero or self._is_positive(b)):
            return False
        after, given = self.changes[a]
        if given is b:
            return after < place
        copied, source = self.changes.get(given, (place, given))
        return copied < place and source is b

    def _bisects(self, lo: Local, hi: Local) -> bool:
        """Whether a round halves the distance of two integers, one of which it moves."""
        gap = self._gap(lo, hi)
        if gap is None:
            return False
        ends = [self._ways(self._held(self.changes[v][1], self.changes[v][0])) for v in (lo, hi)]
        if ends[0] is None or ends[1] is None or ends[0][0] is not ends[1][0]:
            return False
        for low, high in zip(ends[0][1:], ends[1][1:], strict=True):
            if high is hi:
                moved = self._from_middle(low, lo, hi)
                if moved is None or not 0 <= moved <= 1 or not (moved == 1 or gap >= 2):
                    return False
            elif low is lo:
                moved = self._from_middle(high, lo, hi)
                if moved is None or not -1 <= moved <= 0 or not (moved == -1 or gap >= 1):
                    return False
            else:
                return False
        return True

    def _ways(self, operand: Operand) -> tuple[Operand, Operand, Operand] | None:
        """A condition, and what a value is by it."""
        if operand in self.chosen:
            branch, then, orelse = self.chosen[operand]
            return branch.cond, then, orelse
        maker = self._maker(operand)
        if maker is None or maker.primitive != "where":
            return None
        cond, then, orelse = maker.args
        return cond, then, orelse

    def _gap(self, lo: Local, hi: Local) -> int | None:
        """The least `hi - lo` with which a round goes on, if the test says one."""
        for a, b, more in self.orders:
            if a is lo and b is hi:
                return -more
            maker = self._maker(b)
            if maker is None or maker.primitive != "subtract" or maker.args != (hi, lo):
                continue
            least = self._constant(a)
            if least is not None and least >= more and self._is_exact(maker):
                return least - more
        return None

    def _from_middle(self, operand: Operand, lo: Local, hi: Local) -> int | None:
        """What is added to the middle of two integers."""
        maker = self._maker(operand)
        if maker is not None and maker.primitive in ("add", "subtract") and (
            not self._is_middle(operand, lo, hi)
        ):
            a, b = maker.args
            a, b = (b, a) if isinstance(a, Literal) else (a, b)
            if not isinstance(b, Literal) or not self._is_middle(a, lo, hi):
                return None
            return int(b.value) if maker.primitive == "add" else -int(b.value)
        return 0 if self._is_middle(operand, lo, hi) else None

    def _is_middle(self, operand: Operand, lo: Local, hi: Local) -> bool:
        """`(lo + hi) // 2` or `lo + (hi - lo) // 2`."""
        half = self._half(operand)
        if half is not None and half.primitive == "add" and set(half.args) == {lo, hi}:
            return self._is_exact(half)
        maker = self._maker(operand)
        if maker is None or maker.primitive != "add" or lo not in maker.args:
            return False
        rest = self._half(maker.args[maker.args[0] is lo])
        if rest is None or rest.primitive != "subtract" or rest.args != (hi, lo):
            return False
        return self._is_exact(rest)

    def _half(self, operand: Operand) -> Compute | None:
        """What an operand is half of."""
        maker = self._maker(operand)
        if maker is None or len(maker.args) != 2:
            return None
        by = self._constant(maker.args[1])
        halves = (maker.primitive, by) in (("floor_divide", 2), ("right_shift", 1))
        return self._maker(maker.args[0]) if halves else None
