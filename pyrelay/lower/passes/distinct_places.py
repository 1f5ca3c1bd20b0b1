"""Whether what rounds of a loop read first may lie where rounds before them store.

In: the body of a loop in two parts, of which the first only reads, and what is known of the
integers around it. Out: whether no round's first part reads what a round before it has stored, so
that the first parts of several rounds may run before all their second parts.

Positions are polynomials of extents and of the indices of loops, each of which lies between two
others; of two rounds the later one is the earlier, one, and as many more as there are. Positions
differ where their difference has a least value above zero (Banerjee, "Dependence analysis for
supercomputing", 1988). A number of which nothing is known is the difference of two that are not
negative, so that it leaves the sum where it is subtracted from itself. Where the least value hangs
on extents alone, as that of a matrix does that may have fewer columns than rows, the call is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    EXTENT,
    Body,
    Compute,
    For,
    Literal,
    Load,
    Local,
    Operand,
    Parameter,
    Pointed,
    Read,
    Statement,
    Store,
    bodies,
    replace_bodies,
)
from pyrelay.lower.passes.index_ranges import polynomial

_MOST_TERMS = 24  # of a polynomial
_MOST_NEAR = 3  # integers that a polynomial is a sum of
_MOST_TRIED = 6
_UNKNOWN = "u"  # the name of symbols for numbers of which nothing is known

Step: TypeAlias = tuple[Symbol, tuple[Extent, ...]]
"""The index of a loop, from its start, and what it never exceeds."""

Near: TypeAlias = tuple[tuple[tuple[int, Local], ...], int]
"""Integers with their signs, 1 or -1, the first of which is 1, and what else is added to them."""

Change: TypeAlias = "Callable[[For, Integers], Iterable[Statement] | None]"
"""What a pass makes of a loop, if anything, by what is known in front of it."""


class Integers:
    """What is known of the integers of a body and of those around it."""

    def __init__(self, around: Integers | None = None) -> None:
        self._around = around
        self._known: dict[Local, Extent] = {}
        self._extents: dict[Parameter, Extent] = {} if around is None else around._extents
        self._minima: dict[Local, tuple[Operand, ...]] = {}
        self.steps: list[Step] = []

    def of(self, operand: Operand) -> Extent:
        """The polynomial of an integer."""
        if isinstance(operand, Literal):
            return int(operand.value)
        here: Integers | None = self
        while here is not None:
            if operand in here._known:
                return here._known[operand]
            here = here._around
        return _unknown()

    def extent(self, symbol: Symbol) -> Local | None:
        """The number that a symbol of an extent stands for."""
        here: Integers | None = self
        while here is not None:
            for local, known in here._known.items():
                if known == dims.of(symbol) and known in self._extents.values():
                    return local
            here = here._around
        return None

    def learn(self, local: Local, known: Extent) -> None:
        """Takes an integer for a polynomial."""
        self._known[local] = known

    def of_extents(self, extent: Extent) -> bool:
        """Whether a polynomial is one of extents alone."""
        return all(self.extent(symbol) is not None for symbol in dims.symbols(extent))

    def steady(self) -> set[Symbol]:
        """What nothing is known of, but that it is there in front of a loop."""
        found: set[Symbol] = set()
        here: Integers | None = self
        while here is not None:
            found.update(symbol for known in here._known.values() for symbol in unknown(known))
            here = here._around
        return found

    def near(self, extent: Extent) -> Near | None:
        """One to three integers that are known, whose sum or difference a polynomial is, but for a
        constant."""
        wanted = set(dims.symbols(extent))
        fit: dict[Extent, Local] = {}
        here: Integers | None = self
        while here is not None:
            for local, known in here._known.items():
                if not isinstance(known, int) and wanted.issuperset(dims.symbols(known)):
                    fit.setdefault(known, local)
            here = here._around
        for terms in range(1, _MOST_NEAR + 1):
            found = _as_sum(extent, list(fit.items())[:_MOST_TRIED], terms)
            if found is not None:
                return found
        return None

    def _at_most(self, operand: Operand) -> tuple[Extent, ...]:
        """What an integer never exceeds: itself, and what it is the least of."""
        here: Integers | None = self
        while here is not None and isinstance(operand, Local):
            if operand in here._minima:
                least = here._minima[operand]
                return (self.of(operand), *(e for each in least for e in self._at_most(each)))
            here = here._around
        return (self.of(operand),)

    def all_steps(self) -> list[Step]:
        """The indices of loops, outer ones first: how far each is from its loop's start, and what
        this never exceeds."""
        return [*(self._around.all_steps() if self._around is not None else ()), *self.steps]

    def note(self, statement: Statement) -> None:
        """Learns what a statement computes."""
        match statement:
            case Read(out=out, parameter=parameter) if out.dtype == i64 and not out.variable:
                if parameter.role == EXTENT:
                    known = self._extents.setdefault(parameter, dims.fresh("n"))
                    self._known[out] = known
                else:
                    self._known[out] = _unknown()
            case Compute(out=out, primitive=name, args=args) if out.dtype == i64:
                made = polynomial(name, *map(self.of, args)) if len(args) == 2 else None
                if made is not None and not isinstance(made, int) and len(made.terms) > _MOST_TERMS:
                    made = None
                self._known[out] = _unknown() if made is None else made
                if name == "minimum":
                    self._minima[out] = args
                elif name == "negative":
                    self._known[out] = dims.multiply(-1, self.of(args[0]))
            case Load(out=out) if out.dtype == i64:
                self._known[out] = _unknown()

    def enter(self, loop: For) -> None:
        """Learns of a loop's index."""
        start = self.of(loop.start)
        before = dims.multiply(-1, dims.add(start, 1))
        step = Symbol("i")
        self.steps.append((step, tuple(dims.add(s, before) for s in self._at_most(loop.stop))))
        self._known[loop.index] = dims.add(start, dims.of(step))

    def later(self, loop: For) -> tuple[Integers, Integers]:
        """What is known in a round of a loop, and in one of those after it."""
        first, then = Integers(self), Integers(self)
        first.enter(loop)
        step, last = first.steps[0]
        more = Symbol("m")
        before = dims.add(dims.of(step), 1)
        rest = tuple(dims.add(each, dims.multiply(-1, before)) for each in last)
        then.steps = [*first.steps, (more, rest)]
        index = dims.add(self.of(loop.start), dims.add(before, dims.of(more)))
        then._known[loop.index] = index
        return first, then


def _as_sum(extent: Extent, fit: Sequence[tuple[Extent, Local]], terms: int) -> Near | None:
    """A polynomial as a sum of so many integers, the first of which is added, and a constant."""
    if not terms:
        return ((), extent) if isinstance(extent, int) else None
    for known, local in fit:
        for sign in (1, -1):
            found = _as_sum(dims.add(extent, dims.multiply(-sign, known)), fit, terms - 1)
            if found is not None and (sign == 1 or found[0]):
                signed = sorted(((sign, local), *found[0]), key=lambda term: -term[0])
                if signed[0][0] == 1:
                    return tuple(signed), found[1]
    return None


def with_loops(body: Body, around: Integers, change: Change) -> Body:
    """The body with what `change` makes of its loops, outer ones first; where that is None the loop
    stays, and those in it are looked at. `around` learns what the body computes."""
    out: list[Statement] = []
    for statement in body:
        around.note(statement)
        if isinstance(statement, For):
            changed = change(statement, around)
            if changed is None:
                inside = _inside(statement, around)
                changed = [replace(statement, body=with_loops(statement.body, inside, change))]
            out += changed
        else:
            out.append(replace_bodies(
                statement, lambda b: with_loops(b, Integers(around), change)
            ))  # fmt: skip
    return tuple(out)


def reads_before_stores(loop: For, reading: int, around: Integers) -> list[Extent] | None:
    """Whether no round's statements in front of number `reading` load what the others of a round
    before it store: sums of extents that must not be negative for that, mostly none; None if they
    may."""
    first, then = around.later(loop)
    stored = [a for a in accesses(loop.body, first) if isinstance(a[0], Store)]
    loaded = [a for a in accesses(loop.body[:reading], then) if isinstance(a[0], Load)]
    steps = [*then.all_steps(), *first.steps[1:]]
    asked: dict[Extent, None] = {}
    # Indices of inner loops lie between what outer ones leave: those of both rounds come last.
    for store, position in stored:
        for load, place in loaded:
            if isinstance(store.array, Pointed) or isinstance(load.array, Pointed):
                return None
            if store.array != load.array or _differ(position, place, steps):
                continue
            condition = _may_differ(position, place, steps, around)
            if condition is None:
                return None
            asked[condition] = None
    return list(asked)


def strides(loop: For, reading: int, around: Integers) -> dict[Load | Store, Extent | None]:
    """By how much the positions of what is in front of statement number `reading` of a loop grow
    from round to round; None for no certain number."""
    _, then = around.later(loop)
    step = then.steps[-1][0]
    found: dict[Load | Store, Extent | None] = {}
    for access, position in accesses(loop.body[:reading], then):
        parts = linear(position, step)
        found[access] = None if parts is None else parts[0]
    return found


def reads_across(loop: For, reading: int, around: Integers) -> bool:
    """Whether a loop in front of statement number `reading` of a loop loads from places that are no
    neighbours, round after round, as a sum over the columns of a matrix does."""
    inside = _inside(loop, around)

    def across(body: Body, step: Symbol | None) -> bool:
        for statement in body:
            inside.note(statement)
            if isinstance(statement, Load) and step is not None:
                parts = linear(inside.of(statement.index), step)
                if parts is not None and parts[0] not in (0, 1):
                    return True
            own = step
            if isinstance(statement, For):
                inside.enter(statement)
                own = inside.steps[-1][0]
            if any(across(inner, own) for inner in bodies(statement)):
                return True
        return False

    return across(loop.body[:reading], None)


def places(loop: For, around: Integers) -> dict[Load | Store, Extent]:
    """Where a loop loads and stores."""
    return dict(accesses(loop.body, _inside(loop, around)))


def never_at(loop: For, store: Store, loads: Sequence[Load], around: Integers) -> bool:
    """Whether loads of a loop are never where one of its stores, which does not move, stores."""
    inside = _inside(loop, around)
    known = dict(accesses(loop.body, inside))
    steps = inside.all_steps()
    return all(_differ(known[store], known[load], steps) for load in loads)


def _inside(loop: For, around: Integers) -> Integers:
    inside = Integers(around)
    inside.enter(loop)
    return inside


def accesses(body: Body, integers: Integers) -> Iterator[tuple[Load | Store, Extent]]:
    """The loads and stores of a body, each with its position; `integers` learns what is computed.
    """
    for statement in body:
        integers.note(statement)
        if isinstance(statement, (Load, Store)):
            yield statement, integers.of(statement.index)
        if isinstance(statement, For):
            integers.enter(statement)
        for inner in bodies(statement):
            yield from accesses(inner, integers)


def _unknown() -> Extent:
    return dims.add(dims.fresh(_UNKNOWN), dims.multiply(-1, dims.fresh(_UNKNOWN)))


def unknown(extent: Extent) -> list[Symbol]:
    """What of a position nothing is known of; it may differ from round to round."""
    return [symbol for symbol in dims.symbols(extent) if symbol.name == _UNKNOWN]


def _differ(a: Extent, b: Extent, steps: list[Step]) -> bool:
    difference = dims.add(a, dims.multiply(-1, b))
    ways = _ways(difference)
    return any(dims.non_negative(dims.add(e, -1)) for way in ways for e in least(way, steps))


def _may_differ(a: Extent, b: Extent, steps: list[Step], around: Integers) -> Extent | None:
    """A sum of extents, not negative where all are alike; if it is not negative, two positions
    differ."""
    for way in _ways(dims.add(a, dims.multiply(-1, b))):
        for each in least(way, steps):
            condition = dims.add(each, -1)
            if may_ask(condition, around):
                return condition
    return None


def may_ask(condition: Extent, around: Integers) -> bool:
    """Whether a sum of extents that the kernel knows is not negative where all are alike."""
    if isinstance(condition, int):
        return False
    single = all(sum(p for _, p in monomial) <= 1 for monomial, _ in condition.terms)
    likely = sum(factor for monomial, factor in condition.terms if monomial) >= 0
    return single and likely and around.of_extents(condition)


def _ways(difference: Extent) -> tuple[Extent, Extent]:
    return difference, dims.multiply(-1, difference)


def least(extent: Extent, steps: list[Step]) -> list[Extent]:
    """What an integer is at least: inner indices are replaced by the end of their range that makes
    it least, then those around them."""
    if not steps:
        return [extent]
    step, most = steps[-1]
    parts = linear(extent, step)
    if parts is None:
        return []
    slope, rest = parts
    if dims.non_negative(slope):
        return least(rest, steps[:-1])
    if not dims.non_negative(dims.multiply(-1, slope)):
        return []
    ends = (dims.add(rest, dims.multiply(slope, end)) for end in most)
    return [each for end in ends for each in least(end, steps[:-1])]


def linear(extent: Extent, step: Symbol) -> tuple[Extent, Extent] | None:
    """The factor of an index in a polynomial, and what is left; None if that is not linear."""
    if step not in dims.symbols(extent):
        return 0, extent
    rest = dims.substitute(extent, {step: 0})
    slope = dims.add(dims.substitute(extent, {step: 1}), dims.multiply(-1, rest))
    again = dims.add(rest, dims.multiply(slope, dims.of(step)))
    return (slope, rest) if again == extent else None
