"""Nests of loops in two versions: without the checks that one look in front of the nest settles.

In: the body of a scalar kernel. Out: the same, in which a loop around loops stands twice: without
checks that cannot fail whatever the rounds, and as it was, for every other case. A test in front of
the outermost loop chooses, so that inner loops of a few rounds ask nothing, and what needs loops
that cannot fail (`jammed_loops`, `held_elements`) finds them.

An integer is a polynomial of what the nest does not change, of the indices of its loops, each of
which lies between two others, and of choices, which are one of several others. What a check asks is
that polynomials are not negative. They are if they are so at both ends of each index, inner indices
first, and for each choice (Banerjee, "Dependence analysis for supercomputing", 1988); what falls
with the lesser of two is no less than at either of them, so that one settles it. The ends hold
only what the nest does not change, and are computed in front of it. There it is asked as well
whether these numbers are small, for then no sum or product of few of them leaves 64 bits.

Index checks in branches, behind an end of their loop and in `while` loops are left to
`loop_versions`, which looks at the innermost loops of what runs where nothing fails: they need not
hold in all rounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    EXTENT,
    Assign,
    Body,
    Call,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Local,
    Operand,
    Read,
    Statement,
    While,
    bound_by,
    breaks,
    has_loops,
    operands,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.copies import Copy
from pyrelay.lower.passes.counters import counters
from pyrelay.lower.passes.index_ranges import polynomial
from pyrelay.lower.passes.loop_front import BOTH, EITHER, ORDER, OVERFLOWS, SUMS, Front
from pyrelay.lower.passes.loop_versions import with_versions
from pyrelay.records import dataclass

_LARGEST_NEST = 300  # statements of a nest that may stand twice
_LARGEST = 1 << 30  # what the nest does not change is no further from zero
_LONGEST = 1 << 32  # rounds of a loop that need no look for Ctrl-C
_MOST_TERMS = 24  # of a polynomial
_MOST_ENDS = 16  # polynomials that settle one condition
_MOST_ASKED = 64  # polynomials that are computed in front of a nest
_ZERO = Literal(0, i64)
_LINEAR = SUMS | frozenset(["multiply", "negative"])
# comparison -> which operand is subtracted from which (0 from 1, or 1 from 0), and what else is
# subtracted, for a difference that is not negative where the comparison is false
_FALSE_IF = {
    "less": (0, 1, 0), "less_equal": (0, 1, 1), "greater": (1, 0, 0), "greater_equal": (1, 0, 1),
}  # fmt: skip


def with_nest_versions(body: Body) -> Body:
    """The body with its nests of loops, and innermost loops, in two versions where that removes
    checks."""
    extents = {
        s.out for s in statements(body) if isinstance(s, Read) and s.parameter.role == EXTENT
    }
    around = _Around(extents, _assignments(body), _touches(body), {}, counters(body), set())
    return tuple(_walked(body, around))


@dataclass(frozen=True, slots=True)
class _Around:
    """Extents of arrays, how many statements set each variable, how often each is set and read,
    what computes the integers that are known in front of a nest, which integers are counters, and
    which are extents with the other sign.
    """

    extents: set[Local]
    total: Counter[Local]
    touches: Counter[Operand]
    makers: dict[Local, Compute]
    counters: set[Local]
    negative: set[Operand]


def _assignments(body: Body) -> Counter[Local]:
    return Counter(s.variable for s in statements(body) if isinstance(s, Assign))


def _touches(body: Body) -> Counter[Operand]:
    found: Counter[Operand] = Counter(_assignments(body))
    for s in statements(body):
        found.update(operands(s))
    return found


def _walked(body: Body, around: _Around) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Compute) and not any(
            isinstance(a, Local) and a.variable for a in statement.args
        ):
            around.makers[statement.out] = statement
            match statement.args:
                case (Literal(value=0), Local() as size) if (
                    statement.primitive == "subtract" and size in around.extents
                ):
                    around.negative.add(statement.out)
        if isinstance(statement, For) and statement.few:
            yield statement
            continue
        if isinstance(statement, (For, While)) and not has_loops(statement.body):
            yield from with_versions(
                (statement,), around.counters, around.negative, around.extents
            )
            continue
        written = None
        if isinstance(statement, For) and _fits(statement):
            written = _Nest(statement, around).written()
        if written is None:
            yield replace_bodies(statement, lambda b: tuple(_walked(b, around)))
        else:
            yield from written


def _fits(loop: For) -> bool:
    inside = list(statements(loop.body))
    return len(inside) <= _LARGEST_NEST and not any(isinstance(s, Call) for s in inside)


@dataclass(frozen=True, slots=True)
class _False:
    """When a condition is false: where polynomials are not negative. `made` are those and others
    that must not leave 64 bits."""

    asked: tuple[Extent, ...]
    made: tuple[Extent, ...]


class _Nest:
    """One loop around loops, looked at."""

    def __init__(self, loop: For, around: _Around) -> None:
        self.loop, self.around = loop, around
        self.extents, self.total = around.extents, around.total
        self.bound = {o for s in statements((loop,)) for o in bound_by(s)}
        self.known: dict[Local, Extent] = {}
        #: What the nest does not change, and the symbol that stands for it.
        self.fixed: dict[Symbol, Local] = {}
        #: Indices and choices: the values among which there are the least and the greatest.
        self.ends: dict[Symbol, tuple[Extent, ...]] = {}
        self.indices: set[Symbol] = set()
        self.compared: dict[Local, tuple[Extent, Extent]] = {}  # conditions: the lesser, if true
        self.lesser: dict[Symbol, bool] = {}  # choices of the lesser of two, or of the greater
        self.positive: set[Symbol] = set()
        self.far: dict[Symbol, int] = {}  # how far from zero a symbol may be
        self.order: list[Symbol] = []
        self.stops: dict[For, Extent] = {}  # of loops inside that end at what they compute
        self.false: dict[Local, _False] = {}
        #: Conditions that are wanted to be false, and what must not be negative for that.
        self.settled: dict[Local, tuple[Extent, ...]] = {}
        self.inside = False  # whether one of them is asked in an inner loop
        self._enter(loop)
        self._look_at(loop.body, True, 0)

    # -- polynomials ---------------------------------------------------------------------------

    def _of(self, operand: Operand) -> Extent | None:
        """The polynomial of an integer, if it has one."""
        if isinstance(operand, Literal):
            return int(operand.value)
        if operand.dtype != i64:
            return None
        if operand not in self.known and operand not in self.bound:
            maker = self.around.makers.get(operand)
            made = None if maker is None or maker.primitive not in _LINEAR else self._made(maker)
            if made is not None and self._is_small(made):
                self.known[operand] = made
                return made
            symbol = self._symbol(_LARGEST, operand in self.extents)
            self.fixed[symbol] = operand
            self.known[operand] = dims.of(symbol)
        return self.known.get(operand)

    def _symbol(self, far: int, positive: bool) -> Symbol:
        symbol = Symbol("i")
        self.far[symbol] = far
        if positive:
            self.positive.add(symbol)
        return symbol

    def _among(self, ends: tuple[Extent, ...], positive: bool) -> Symbol:
        symbol = self._symbol(max(map(self._reach, ends)), positive)
        self.ends[symbol] = ends
        self.order.append(symbol)
        return symbol

    def _reach(self, extent: Extent) -> int:
        """How far from zero a polynomial may be."""
        if isinstance(extent, int):
            return abs(extent)
        total = 0
        for monomial, coefficient in extent.terms:
            term = abs(coefficient)
            for atom, power in monomial:
                assert isinstance(atom, Symbol)
                term *= self.far[atom] ** power
            total += term
        return total

    def _is_positive(self, extent: Extent) -> bool:
        """Whether a polynomial is certainly not negative."""
        if isinstance(extent, int):
            return extent >= 0
        return all(
            coefficient >= 0 and all(atom in self.positive for atom, _ in monomial)
            for monomial, coefficient in extent.terms
        )

    def _enter(self, loop: For) -> None:
        """Learns of a loop's index."""
        start, stop = self._of(loop.start), self._of(loop.stop)
        if start is not None and stop is not None:
            fixed = not any(s in self.ends for s in dims.symbols(stop))
            if loop.stop in self.bound and fixed and self._reach(stop) <= _LONGEST:
                self.stops[loop] = stop
            symbol = self._among((start, dims.add(stop, -1)), self._is_positive(start))
            self.indices.add(symbol)
            self.known[loop.index] = dims.of(symbol)

    def _compute(self, s: Compute) -> None:
        """Learns what a statement computes."""
        name = s.primitive
        if name in ORDER and all(a.dtype == i64 for a in s.args):
            self._compare(s)
        elif name in OVERFLOWS:
            made = polynomial(name.removesuffix("_overflows"), *map(self._of, s.args))
            if made is not None and self._reach(made) < 2**63:
                self.false[s.out] = _False((), (made,))
        elif name == "equal" and isinstance(s.args[1], Literal):  # as is asked before `-k`
            made = self._of(s.args[0])
            if made is not None and self._reach(made) < abs(s.args[1].value):
                self.false[s.out] = _False((), (made,))
        elif name in EITHER:
            parts = [p for p in map(self._when_false, s.args) if p is not None]
            if len(parts) == len(s.args):
                asked = tuple(e for part in parts for e in part.asked)
                self.false[s.out] = _False(asked, tuple(e for part in parts for e in part.made))
        elif name in BOTH:  # one of the two settles it
            settled = [p for p in map(self._when_false, s.args) if p is not None]
            if settled:
                self.false[s.out] = settled[0]
        elif s.out.dtype == i64:
            made = self._made(s)
            if made is not None and self._is_small(made):
                self.known[s.out] = made

    def _compare(self, s: Compute) -> None:
        less, more, distance = _FALSE_IF[s.primitive]
        a, b = self._of(s.args[less]), self._of(s.args[more])
        if a is not None and b is not None:
            self.compared[s.out] = a, b
            difference = dims.add(dims.add(a, dims.multiply(-1, b)), -distance)
            if self._reach(difference) < 2**63:
                self.false[s.out] = _False((difference,), (difference,))

    def _when_false(self, operand: Operand) -> _False | None:
        if isinstance(operand, Literal):
            return None if operand.value else _False((), ())
        return self.false.get(operand)

    def _made(self, s: Compute) -> Extent | None:
        match s.primitive, s.args:
            case ("add" | "subtract" | "multiply" as name), (a, b):
                return polynomial(name, self._of(a), self._of(b))
            case "negative", (a,):
                return polynomial("multiply", -1, self._of(a))
            case "where", (cond, a, b):
                return self._chosen(cond, self._of(a), self._of(b))
            case ("minimum" | "maximum" as name), (a, b):
                return self._one_of([self._of(a), self._of(b)], name == "minimum")
            case ("remainder" | "bitwise_and" as name), (_, Literal(value=int(by))) if by > 0:
                symbol = self._among((0, by - (name == "remainder")), True)
                return dims.of(symbol)
        return None

    def _one_of(
        self, values: Sequence[Extent | None], lesser: bool | None = None
    ) -> Extent | None:
        """What is one of several values; of two the lesser, or the greater, if that is known."""
        ends = tuple(v for v in dict.fromkeys(values) if v is not None)
        if None in values:
            return None
        if len(ends) == 1:
            return ends[0]
        sure = any if lesser is False else all
        symbol = self._among(ends, sure(map(self._is_positive, ends)))
        if lesser is not None:
            self.lesser[symbol] = lesser
        return dims.of(symbol)

    def _chosen(self, cond: Operand, a: Extent | None, b: Extent | None) -> Extent | None:
        """What is one of two values, by a condition that may compare these."""
        compared = self.compared.get(cond)  # type: ignore[arg-type]
        lesser = None if compared not in ((a, b), (b, a)) else compared == (a, b)
        return self._one_of([a, b], lesser)

    def _is_small(self, extent: Extent) -> bool:
        few = isinstance(extent, int) or len(extent.terms) <= _MOST_TERMS
        return few and self._reach(extent) < 2**63

    # -- statements ----------------------------------------------------------------------------

    def _look_at(self, body: Body, always: bool, depth: int) -> None:
        """Learns of statements in their order; `always` if each round comes to them. `depth` is
        of loops."""
        for number, s in enumerate(body):
            match s:
                case Compute(primitive="where", args=(Local() as cond, a, b)):
                    self._compute(s)
                    if self._counts_from_end(a, b, body[:number]):
                        self._want(cond, always, depth)
                case Compute():
                    self._compute(s)
                case Fail(cond=Local() as cond):
                    self._want(cond, always, depth)
                case Assign(variable=variable, value=value) if self.total[variable] == 1:
                    found = self._of(value)
                    if found is not None:
                        self.known[variable] = found
                case For():
                    self._enter(s)
                    self._look_at(s.body, always, depth + 1)
                    self._forget(s)
                case If():
                    arms = [self._arm(s.then, depth), self._arm(s.orelse, depth)]
                    for variable in arms[0].keys() & arms[1].keys():
                        found = self._chosen(s.cond, *(arm[variable] for arm in arms))
                        if found is not None and self.total[variable] == 2:
                            self.known[variable] = found
                case While():
                    self._look_at(s.body, False, depth + 1)
                    self._forget(s)
            always = always and not breaks((s,))

    @staticmethod
    def _counts_from_end(a: Operand, b: Operand, before: Body) -> bool:
        """Whether `where` chooses between a position and that from the end: k + n and k."""
        made = next((s for s in reversed(before) if isinstance(s, Compute) and s.out is a), None)
        return made is not None and made.primitive == "add" and b in made.args

    def _forget(self, statement: Statement) -> None:
        """Forgets variables that a statement may have set."""
        for s in statements((statement,)):
            if isinstance(s, Assign):
                self.known.pop(s.variable, None)

    def _arm(self, body: Body, depth: int) -> dict[Local, Extent | None]:
        """Learns of an arm of a branch: the integers that it sets itself."""
        self._look_at(body, False, depth)
        found = {
            s.variable: self._of(s.value) for s in body
            if isinstance(s, Assign) and s.variable.dtype == i64
        }  # fmt: skip
        for s in body:
            self._forget(s)
        return found

    def _want(self, cond: Local, always: bool, depth: int) -> None:
        """Settles a condition, if what it takes is not too much, nor certainly untrue; in a branch
        if it takes nothing but small numbers."""
        known = self.false.get(cond)
        if known is None or cond in self.settled or not (always or known.asked == ()):
            return
        found: dict[Extent, None] = {}
        waiting = list(known.asked)
        for _ in range(4 * _MOST_ENDS):
            if not waiting:
                break
            extent = waiting.pop()
            if self._is_positive(extent):
                continue
            if self._is_positive(dims.add(dims.multiply(-1, extent), -1)):
                return
            ends = self._at_ends(extent)
            if ends is None or not all(map(self._is_small, ends)):
                return
            if ends == (extent,):
                found[extent] = None
            else:
                waiting += ends
        if not waiting and len(found) <= _MOST_ENDS:
            self.settled[cond] = tuple(found)
            self.inside |= depth > 0

    def _at_ends(self, extent: Extent) -> tuple[Extent, ...] | None:
        """A polynomial at the ends of the last of its indices and choices at which it may be least;
        None if it is not linear in it."""
        inside = dims.symbols(extent)
        last = next((s for s in reversed(self.order) if s in inside), None)
        if last is None:
            return (extent,)
        rest = dims.substitute(extent, {last: 0})
        slope = dims.add(dims.substitute(extent, {last: 1}), dims.multiply(-1, rest))
        ends = [dims.add(rest, dims.multiply(slope, end)) for end in self.ends[last]]
        if dims.add(rest, dims.multiply(slope, dims.of(last))) != extent:
            return None
        if last in self.indices and self._is_positive(slope):
            ends = ends[:1]
        elif last in self.indices and self._is_positive(dims.multiply(-1, slope)):
            ends = ends[1:]
        elif last in self.lesser and self._is_positive(
            dims.multiply(-1, slope) if self.lesser[last] else slope
        ):
            ends = [min(ends, key=self._doubt)]
        return tuple(dict.fromkeys(ends))

    def _doubt(self, extent: Extent) -> tuple[bool, int, int]:
        """How far it is from sure that a polynomial is not negative: by what is left in it."""
        inside = dims.symbols(extent)
        terms = 0 if isinstance(extent, int) else len(extent.terms)
        return not self._is_positive(extent), sum(s in self.indices for s in inside), terms

    # -- writing -------------------------------------------------------------------------------

    def written(self) -> list[Statement] | None:
        """The test in front, and both versions; None if there is nothing to gain."""
        asked = dict.fromkeys(e for extents in self.settled.values() for e in extents)
        if not self.inside or len(asked) > _MOST_ASKED:
            return None
        front = Front()
        for local in self._involved():
            front.doubt(front.put("greater", local, Literal(_LARGEST, i64)))
            if local not in self.extents:
                front.doubt(front.put("less", local, Literal(-_LARGEST, i64)))
        for extent in asked:
            front.doubt(front.put("less", self._value(extent, front), _ZERO))
        stops = {loop: self._value(stop, front) for loop, stop in self.stops.items()}
        # Variables of the nest alone are others in each version.
        elsewhere = self.around.touches - _touches((self.loop,))
        own: dict[Operand, Operand] = {
            v: Local(v.dtype, variable=True) for v in _assignments((self.loop,))
            if not elsewhere[v]
        }  # fmt: skip
        copy = Copy(own, set(self.settled))
        (fast,) = copy.body(_ending((self.loop,), stops))
        assert isinstance(fast, For)
        touches = elsewhere + _touches(fast.body)
        counting = {c for o in self.around.counters if isinstance(c := copy.operand(o), Local)}
        around = replace(
            self.around, total=_assignments(fast.body), touches=touches,
            counters=self.around.counters | counting,
        )  # fmt: skip
        inner = _walked(fast.body, around)
        return front.choice(self.loop, replace_bodies(fast, lambda _: tuple(inner)))

    def _involved(self) -> Iterator[Local]:
        """What of outside of the nest has a part in what is known."""
        waiting = [e for cond in self.settled for e in self.false[cond].made]
        waiting += self.stops.values()
        seen: dict[Symbol, None] = {}
        while waiting:
            for symbol in dims.symbols(waiting.pop()):
                if symbol not in seen:
                    seen[symbol] = None
                    waiting += self.ends.get(symbol, ())
        return (self.fixed[s] for s in seen if s in self.fixed)

    def _value(self, extent: Extent, front: Front) -> Operand:
        """Computes a polynomial of what the nest does not change."""
        if isinstance(extent, int):
            return Literal(extent, i64)
        total: Operand = _ZERO
        for monomial, coefficient in extent.terms:
            factors = [self.fixed[atom] for atom, power in monomial for _ in range(power)]  # type: ignore[index]
            name = "subtract" if coefficient < 0 and factors else "add"
            term: Operand | None = None
            for factor in factors:
                term = factor if term is None else front.put("multiply", term, factor)
            if term is None:
                term = Literal(coefficient, i64)
            elif abs(coefficient) != 1:
                term = front.put("multiply", term, Literal(abs(coefficient), i64))
            is_first = total is _ZERO and name == "add"
            total = term if is_first else front.put(name, total, term)
        return total


def _ending(body: Body, stops: dict[For, Operand]) -> Body:
    """The body in which loops end where it is said, so that how long they are is seen, and that
    they end in seconds."""
    out: list[Statement] = []
    for s in body:
        if isinstance(s, For) and s in stops:
            s = replace(s, stop=stops[s], bounded=True, body=_ending(s.body, stops))
        else:
            s = replace_bodies(s, lambda b: _ending(b, stops))
        out.append(s)
    return tuple(out)
