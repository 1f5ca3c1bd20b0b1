"""Whether what rounds of a loop read first may lie where rounds before them store.

In: the body of a loop in two parts, of which the first only reads, and what is known of the
integers around it. Out: whether no round's first part reads what a round before it has stored, so
that the first parts of several rounds may run before all their second parts.

Positions are polynomials of extents and of the indices of loops, each of which lies between two
others; of two rounds the later one is the earlier, one, and as many more as there are. Positions
differ where their difference has a least value above zero (Banerjee, "Dependence analysis for
supercomputing", 1988). A number of which nothing is known is the difference of two that are not
negative, so that it leaves the sum where it is subtracted from itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
)
from pyrelay.lower.passes.index_ranges import polynomial

_MOST_TERMS = 24  # of a polynomial


class Integers:
    """What is known of the integers of a body and of those around it."""

    def __init__(self, around: Integers | None = None) -> None:
        self._around = around
        self._known: dict[Local, Extent] = {}
        self._extents: dict[Parameter, Extent] = {} if around is None else around._extents
        self.steps: list[tuple[Symbol, Extent | None]] = []

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

    def all_steps(self) -> list[tuple[Symbol, Extent | None]]:
        """The indices of loops, outer ones first: how far each is from its loop's start, and the
        greatest that this may be."""
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
            case Load(out=out) if out.dtype == i64:
                self._known[out] = _unknown()

    def enter(self, loop: For) -> None:
        """Learns of a loop's index."""
        start, stop = self.of(loop.start), self.of(loop.stop)
        step = Symbol("i")
        self.steps.append((step, dims.add(dims.add(stop, dims.multiply(-1, start)), -1)))
        self._known[loop.index] = dims.add(start, dims.of(step))

    def later(self, loop: For) -> tuple[Integers, Integers]:
        """What is known in a round of a loop, and in one of those after it."""
        first, then = Integers(self), Integers(self)
        first.enter(loop)
        step, last = first.steps[0]
        assert last is not None
        more = Symbol("m")
        before = dims.add(dims.of(step), 1)
        then.steps = [
            *first.steps, (more, dims.add(last, dims.multiply(-1, before))),
        ]  # fmt: skip
        index = dims.add(self.of(loop.start), dims.add(before, dims.of(more)))
        then._known[loop.index] = index
        return first, then


def reads_before_stores(loop: For, reading: int, around: Integers) -> bool:
    """Whether no round's statements in front of number `reading` load what the others of a round
    before it store."""
    first, then = around.later(loop)
    stored = [a for a in _accesses(loop.body, first) if isinstance(a[0], Store)]
    loaded = [a for a in _accesses(loop.body[:reading], then) if isinstance(a[0], Load)]
    steps = [*then.all_steps(), *first.steps[1:]]
    # Indices of inner loops lie between what outer ones leave: those of both rounds come last.
    for store, position in stored:
        for load, place in loaded:
            if isinstance(store.array, Pointed) or isinstance(load.array, Pointed):
                return False
            if store.array == load.array and not _differ(position, place, steps):
                return False
    return True


def strides(loop: For, reading: int, around: Integers) -> dict[Load, Extent | None]:
    """By how much the positions of the loads in front of statement number `reading` of a loop grow
    from round to round; None for no certain number."""
    _, then = around.later(loop)
    step = then.steps[-1][0]
    found: dict[Load, Extent | None] = {}
    for access, position in _accesses(loop.body[:reading], then):
        if isinstance(access, Load):
            parts = _split(position, step)
            found[access] = None if parts is None else parts[0]
    return found


def places(loop: For, around: Integers) -> dict[Load | Store, Extent]:
    """Where a loop loads and stores."""
    return dict(_accesses(loop.body, _inside(loop, around)))


def never_at(loop: For, store: Store, loads: Sequence[Load], around: Integers) -> bool:
    """Whether loads of a loop are never where one of its stores, which does not move, stores."""
    inside = _inside(loop, around)
    known = dict(_accesses(loop.body, inside))
    steps = inside.all_steps()
    return all(_differ(known[store], known[load], steps) for load in loads)


def _inside(loop: For, around: Integers) -> Integers:
    inside = Integers(around)
    inside.enter(loop)
    return inside


def _accesses(body: Body, integers: Integers) -> Iterator[tuple[Load | Store, Extent]]:
    for statement in body:
        integers.note(statement)
        if isinstance(statement, (Load, Store)):
            yield statement, integers.of(statement.index)
        if isinstance(statement, For):
            integers.enter(statement)
        for inner in bodies(statement):
            yield from _accesses(inner, integers)


def _unknown() -> Extent:
    return dims.add(dims.fresh("u"), dims.multiply(-1, dims.fresh("u")))


def _differ(a: Extent, b: Extent, steps: list[tuple[Symbol, Extent | None]]) -> bool:
    difference = dims.add(a, dims.multiply(-1, b))
    return _positive(difference, steps) or _positive(dims.multiply(-1, difference), steps)


def _positive(extent: Extent, steps: list[tuple[Symbol, Extent | None]]) -> bool:
    """Whether an integer is at least one: inner indices are replaced by the end of their range that
    makes it least, then those around them."""
    for step, most in reversed(steps):
        parts = _split(extent, step)
        if parts is None:
            return False
        slope, rest = parts
        if dims.non_negative(slope):
            extent = rest
        elif most is not None and dims.non_negative(dims.multiply(-1, slope)):
            extent = dims.add(rest, dims.multiply(slope, most))
        else:
            return False
    return dims.non_negative(dims.add(extent, -1))


def _split(extent: Extent, step: Symbol) -> tuple[Extent, Extent] | None:
    """The factor of an index in a polynomial, and what is left; None if that is not linear."""
    if step not in dims.symbols(extent):
        return 0, extent
    rest = dims.substitute(extent, {step: 0})
    slope = dims.add(dims.substitute(extent, {step: 1}), dims.multiply(-1, rest))
    again = dims.add(rest, dims.multiply(slope, dims.of(step)))
    return (slope, rest) if again == extent else None
