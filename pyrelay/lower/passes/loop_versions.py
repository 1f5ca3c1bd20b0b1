"""Loop versioning: checks that a look at both ends of a loop settles leave the loop.

In: the body of a scalar kernel. Out: the same, in which an innermost loop stands twice: without
the checks that cannot fail if they hold at the first and at the last round, and as it was, for
every other case. A test in front of the loop chooses.

An integer that is made of a loop's index (or of a counter that the loop steps by a constant) by
sums, differences and multiples lies between its values at both ends, as long as none of the steps
to it leaves 64 bits there. So does what is made of a remainder by a constant, or of a variable that
each round sets to one, as in a linear congruence: its ends are 0 and the greatest remainder. And so
does what compares it with something that the loop does not change: index checks, overflow checks,
and whether an index counts from the end. In a branch that compares the loop's index the ends are
those of the rounds that take it (Gupta, "Optimizing array bound checks using flow analysis", LOPLAS
2, 1993; Wuerthinger, Wimmer and Moessenboeck, "Array bounds check elimination for the Java HotSpot
client compiler", PPPJ 2007). A `while` loop over such a counter becomes a counted loop, which can
be vectorised. Of other `while` loops one end is known: what a counter that only grows is not below
at first, it is never below (as in `counters`, nobody counts to 2^63), so that two texts that are
compared from two places on ask no more whether these count from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Break,
    Call,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Load,
    Local,
    Operand,
    Read,
    Statement,
    Store,
    While,
    bodies,
    operands,
    statements,
)
from pyrelay.lower.passes.bounded_places import LAST_BIT, BoundedPlaces
from pyrelay.lower.passes.copies import Copy
from pyrelay.lower.passes.counters import counters
from pyrelay.lower.passes.early_loads import without_early_loads
from pyrelay.lower.passes.loop_front import (
    BOTH,
    EITHER,
    NEGATED,
    ORDER,
    OVERFLOWS,
    SUMS,
    SWAPPED,
    Front,
)
from pyrelay.lower.passes.loop_slopes import Slopes
from pyrelay.lower.passes.loop_totals import Total, Totals, sum_key
from pyrelay.records import dataclass

_ZERO = Literal(0, i64)
_SHORTEST = 8  # rounds that pay for the test in front
_GREATEST_STEP = 16  # of what a `while` loop counts to no certain end
_GREATEST_START = 1 << 61
_LARGEST_BODY = 200  # statements of a loop that may stand twice


def with_versions(
    body: Body, counting: set[Local] | None = None, negative: Container[Operand] = (),
    extents: Container[Operand] = (),
) -> Body:
    """The body with its innermost loops in two versions where that removes checks; `counting` are
    the integers that are known to be counters, `negative` those that are known not to be above 0,
    `extents` those of arrays.
    """
    if counting is None:
        counting = counters(body)
    # Inner bodies first; loops nest no deeper than Python's own.
    out: list[Statement] = []
    for statement in body:
        match statement:
            case If():
                then, orelse = (
                    with_versions(arm, counting, negative, extents) for arm in bodies(statement)
                )
                out.append(replace(statement, then=then, orelse=orelse))
            case For() | While():
                if any(isinstance(s, (For, While)) for s in statements(statement.body)):
                    inner = with_versions(statement.body, counting, negative, extents)
                    out.append(replace(statement, body=inner))
                else:
                    out += _versioned(statement, counting, negative, extents)
            case _:
                out.append(statement)
    return tuple(out)


def _versioned(
    loop: For | While, counting: set[Local], negative: Container[Operand],
    extents: Container[Operand],
) -> list[Statement]:
    if isinstance(loop, For) and isinstance(loop.stop, Literal) and loop.stop.value < _SHORTEST:
        return [loop]
    inside = list(statements(loop.body))
    if len(inside) > _LARGEST_BODY or any(isinstance(s, Call) for s in inside):
        return [loop]
    version = _Version(loop, counting, extents)
    early = without_early_loads(loop) if isinstance(loop, For) else None
    if early is not None:
        before, without = early
        other = _Version(without, counting, extents)
        if len(other.wanted()) > len(version.wanted()):
            rounds = Local(bool_)
            arm = (*before, *other.written(Front(negative, extents)))
            return [
                Compute(rounds, "less", (without.start, without.stop)), If(rounds, arm, ()),
            ]  # fmt: skip
    return [loop] if not version.wanted() else version.written(Front(negative, extents))


#: Conditions, and whether they hold, of the branches around a statement.
_Guards: TypeAlias = tuple[tuple[Local, bool], ...]
#: An integer that a loop steps: computes its values in the first and the last round.
_Source: TypeAlias = Callable[[Front], tuple[Operand, Operand]]


@dataclass(slots=True, eq=False)
class _Straight:
    """What is linear in one source (None: the same in every round), and how it is computed."""

    source: Local | None
    chain: dict[Compute, None] = field(default_factory=dict)


class _Version:
    """One loop, looked at."""

    def __init__(
        self, loop: For | While, counting: set[Local], extents: Container[Operand]
    ) -> None:
        self.loop, self.counting, self.extents = loop, counting, extents
        flat = list(statements(loop.body))
        self.bound = {s.out for s in flat if isinstance(s, (Compute, Load, Read))}
        self.assigned: dict[Local, list[Assign]] = {}
        for each in flat:
            if isinstance(each, Assign):
                self.assigned.setdefault(each.variable, []).append(each)
        self.makers = {s.out: s for s in flat if isinstance(s, Compute)}
        self.chosen = dict(self._choices(flat))
        self.flat = flat
        self.sources: dict[Local, _Source] = {}
        self.totals: dict[tuple[object, ...], Local] = {}  # by the sums that add to them
        self.slopes = Slopes(self.makers)
        #: Which way counters of a `while` loop go that end nowhere, and what is made of them.
        self.ways: dict[Operand, int] = {}
        #: A `while` loop as a counted one: its body and the number of rounds.
        self.counted: tuple[Body, Callable[[Front], Operand]] | None = None
        self._find_sources()
        self.straight: dict[Local, _Straight] = {}
        self.shifts: set[Local] = set()  # what is asked of their bits
        for compute in self.makers.values():
            self._look_at(compute)
        self.false = self._settled()
        self.guards = dict(self._guarded(loop.body, ()))

    def _guarded(self, body: Body, guards: _Guards) -> Iterator[tuple[Statement, _Guards]]:
        """The statements of a body, each with the branches in which it stands."""
        for statement in body:
            yield statement, guards
            if isinstance(statement, If) and isinstance(statement.cond, Local):
                yield from self._guarded(statement.then, (*guards, (statement.cond, True)))
                yield from self._guarded(statement.orelse, (*guards, (statement.cond, False)))
            elif isinstance(statement, If):
                yield from self._guarded((*statement.then, *statement.orelse), guards)

    def _choices(self, flat: Sequence[Statement]) -> Iterator[tuple[Local, tuple[Operand, ...]]]:
        """Variables that both arms of one branch set and nothing else in the loop does."""
        for statement in flat:
            if not isinstance(statement, If):
                continue
            then, orelse = (
                {s.variable: s.value for s in arm if isinstance(s, Assign)}
                for arm in (statement.then, statement.orelse)
            )
            for variable in then.keys() & orelse.keys():
                if len(self.assigned[variable]) == 2:
                    yield variable, (then[variable], orelse[variable])

    def _is_new(self, variable: Local) -> bool:
        """Whether each round sets a variable before it reads it."""
        last = max(self.flat.index(assign) for assign in self.assigned[variable])
        return not any(variable in operands(s) for s in self.flat[:last])

    # -- sources -------------------------------------------------------------------------------

    def _find_sources(self) -> None:
        loop = self.loop
        if isinstance(loop, For):
            one = Literal(1, i64)
            self.sources[loop.index] = lambda front: (
                loop.start, front.put("subtract", loop.stop, one)
            )
            self.slopes.known[loop.index] = 1
            for variable in self.assigned:
                self._counter(variable, loop)
        else:
            self._condition(loop)
        for variable in self.assigned:
            self._reduced(variable)
        places = BoundedPlaces(self.makers, self.sources, self.slopes, self._is_fixed)
        for local, compute in self.makers.items():
            if (bounds := places.ends(compute)) is not None:
                self.sources[local], self.slopes.known[local] = bounds, 1
        if isinstance(loop, For):
            fresh = {v: arms for v, arms in self.chosen.items() if self._is_new(v)}
            totals = Totals(self.makers, fresh)
            for variable, assigns in self.assigned.items():
                total = None if variable in self.sources else totals.of(variable, assigns)
                if total is not None:
                    self._total(variable, total, loop)
        else:
            for variable in self.assigned:
                if variable not in self.sources:
                    self._endless(variable)

    def _is_fixed(self, operand: Operand) -> bool:
        """Whether an operand is the same in every round, and known in front of the loop."""
        if isinstance(operand, Literal):
            return True
        if isinstance(self.loop, For) and operand is self.loop.index:
            return False
        return operand not in self.bound and operand not in self.assigned

    def _last_assign(self, variable: Local) -> Assign | None:
        """The one Assign of a variable that other bodies know too, if nothing reads it later."""
        found = self.assigned[variable]
        if len(found) != 1 or found[0] not in self.loop.body or variable.dtype != i64:
            return None
        place = self.flat.index(found[0])
        later = (o for s in self.flat[place + 1 :] for o in operands(s))
        return None if variable in later else found[0]

    def _counter(self, variable: Local, loop: For) -> None:
        """A variable to which each round adds one of some constants of one sign, or nothing."""
        assign = self._last_assign(variable)
        steps = self._steps(variable, assign.value) if assign is not None else None
        if not steps or (min(steps) < 0 < max(steps)):
            return
        step = min(steps) if min(steps) < 0 else max(steps)
        if step == 0:
            return

        def ends(front: Front) -> tuple[Operand, Operand]:
            rounds = front.exact("subtract", loop.stop, loop.start)
            last = front.put("maximum", front.put("subtract", rounds, Literal(1, i64)), _ZERO)
            reach = front.exact("multiply", last, Literal(step, i64))
            return variable, front.exact("add", variable, reach)

        self.sources[variable] = ends
        self.slopes.known[variable] = 1 if step > 0 else -1

    def _total(self, variable: Local, total: Total, loop: For) -> None:
        """A variable to which each round adds something between constants."""

        def ends(front: Front) -> tuple[Operand, Operand]:
            rounds = front.put("maximum", front.exact("subtract", loop.stop, loop.start), _ZERO)
            reach = (
                front.exact("multiply", rounds, Literal(each, i64)) if each else _ZERO
                for each in (total.least, total.greatest)
            )
            low, high = (front.exact("add", variable, each) for each in reach)
            return low, high

        self.sources[variable], self.slopes.known[variable] = ends, 1
        self.totals.update(dict.fromkeys(total.sums, variable))

    def _endless(self, variable: Local) -> None:
        """A variable to which each round adds small constants of one sign, or nothing."""
        steps: set[int] = set()
        for assign in self.assigned[variable]:
            more = self._steps(variable, assign.value) if variable.dtype == i64 else None
            if more is None:
                return
            steps |= more
        most = max(steps, key=abs)
        if most == 0 or abs(most) > _GREATEST_STEP or min(steps) < 0 < max(steps):
            return
        self.ways[variable] = 1 if most > 0 else -1
        self.slopes.known[variable] = None
        self.sources[variable] = lambda _: (variable, variable)

    def _way(self, compute: Compute) -> int | None:
        """Which way a sum, or the difference of what is compared, goes in a `while` loop without a
        certain end; None if that is not known."""
        first, second = (self.ways.get(a, 0) for a in compute.args)
        if compute.primitive not in ("add", "add_overflows"):
            second = -second
        return None if first * second < 0 else first or second

    def _reduced(self, variable: Local) -> None:
        """A variable that each round sets to a remainder by a constant."""
        if variable.dtype != i64 or variable in self.sources:
            return
        limits = [self._limit(change.value) for change in self.assigned[variable]]
        if None in limits:
            return
        greatest = Literal(max(n for n in limits if n is not None), i64)

        def ends(front: Front) -> tuple[Operand, Operand]:
            front.doubt(front.put("less", variable, _ZERO))
            front.doubt(front.put("greater", variable, greatest))
            return _ZERO, greatest

        self.sources[variable], self.slopes.known[variable] = ends, 1

    def _limit(self, operand: Operand) -> int | None:
        """The greatest value of `k % n` or `k & n` for a constant n."""
        maker = self.makers.get(operand) if isinstance(operand, Local) else None
        if maker is None or maker.primitive not in ("remainder", "bitwise_and"):
            return None
        by = maker.args[1]
        if not isinstance(by, Literal) or by.value <= 0:
            return None
        return by.value - (maker.primitive == "remainder")

    def _steps(self, variable: Local, value: Operand) -> set[int] | None:
        """What `value` may add to a variable; None if that is not one of some constants."""
        if value is variable:
            return {0}
        if not isinstance(value, Local):
            return None
        if value.variable:
            found: set[int] = set()
            for each in self.chosen.get(value, (None,)):
                steps = None if each is None else self._steps(variable, each)
                if steps is None:
                    return None
                found |= steps
            return found
        maker = self.makers.get(value)
        if maker is None or maker.primitive not in SUMS:
            return None
        a, b = maker.args
        if maker.primitive == "add" and isinstance(a, Literal):
            a, b = b, a
        if a is not variable or not isinstance(b, Literal):
            return None
        return {b.value if maker.primitive == "add" else -b.value}

    def _condition(self, loop: While) -> None:
        """A `while` loop that ends when a counter reaches a bound."""
        acts = (Assign, Break, Fail, If, Store)
        test = next((s for s in loop.body if isinstance(s, acts)), None)
        if not isinstance(test, Break) or not isinstance(test.cond, Local):
            return
        negated = self.makers.get(test.cond)
        if negated is None or negated.primitive != "logical_not":
            return
        goes_on = self.makers.get(negated.args[0])  # type: ignore[arg-type]
        if goes_on is None or goes_on.primitive not in ("less", "less_equal"):
            return
        variable, stop = goes_on.args
        if not isinstance(variable, Local) or variable not in self.assigned:
            return
        assign = self._last_assign(variable)
        if assign is None or not self._is_fixed(stop) or stop.dtype != i64:
            return
        step = self._step(variable, assign.value)
        if step is None:
            return
        less = Literal(1 if goes_on.primitive == "less" else 0, i64)

        def ends(front: Front) -> tuple[Operand, Operand]:
            """The greatest value with which a round begins is next to the bound."""
            last = front.exact("subtract", stop, less)
            front.doubt(front.put("less_equal", step, _ZERO))
            front.exact("add", last, step)
            return variable, last

        def rounds(front: Front) -> Operand:
            _, last = ends(front)
            more = front.exact("add", front.exact("subtract", last, variable), step)
            whole = front.put("floor_divide", more, front.put("maximum", step, Literal(1, i64)))
            return front.put("maximum", whole, _ZERO)

        self.sources[variable], self.slopes.known[variable] = ends, 1
        self.counted = tuple(s for s in loop.body if s is not test), rounds

    def _step(self, variable: Local, value: Operand) -> Operand | None:
        """What is added to a variable, if that is the same in every round."""
        maker = self.makers.get(value) if isinstance(value, Local) else None
        if maker is None or maker.primitive != "add":
            return None
        a, b = maker.args
        if b is variable:
            a, b = b, a
        return b if a is variable and self._is_fixed(b) else None

    # -- linear values -------------------------------------------------------------------------

    def _look_at(self, compute: Compute) -> None:
        """Notes whether a value is linear in one source."""
        if compute.out.dtype != i64:
            return
        found = self._operands(compute.args)
        if found is None:
            return
        moving = sum(self._moves(a) for a in compute.args)
        name = compute.primitive
        fits = name in SUMS or name == "negative" or (name == "multiply" and moving < 2)
        if not fits:
            return
        if found.source in self.ways:
            way = self._way(compute) if name in SUMS else None
            if way is None:
                return
            self.ways[compute.out] = way
        found.chain[compute] = None
        self.straight[compute.out] = found

    def _moves(self, operand: Operand) -> bool:
        if operand in self.sources:
            return True
        known = self.straight.get(operand) if isinstance(operand, Local) else None
        return known is not None and known.source is not None

    def _operands(self, args: Sequence[Operand]) -> _Straight | None:
        """Operands together: of one source, each linear in it."""
        found = _Straight(None)
        for arg in args:
            if arg.dtype != i64:
                return None
            if isinstance(arg, Local) and arg in self.sources:
                known = _Straight(arg)
            elif isinstance(arg, Local) and arg in self.straight:
                known = self.straight[arg]
            elif self._is_fixed(arg):
                continue
            else:
                return None
            if known.source is not None:
                if found.source is not None and found.source is not known.source:
                    return None
                found.source = known.source
            found.chain.update(known.chain)
        return found

    # -- conditions ----------------------------------------------------------------------------

    def _settled(self) -> dict[Local, _Straight]:
        """Conditions that are false in every round if they are so at both ends."""
        found: dict[Local, _Straight] = {}
        for local, compute in self.makers.items():
            name = compute.primitive
            if name in OVERFLOWS and sum_key(compute) in self.totals:
                found[local] = _Straight(self.totals[sum_key(compute)])  # as its ends say
            elif name in ORDER or name in OVERFLOWS:
                known = self._operands(compute.args)
                if known is None or (
                    name == "multiply_overflows" and sum(map(self._moves, compute.args)) > 1
                ):
                    continue
                if known.source in self.ways and not self._stays_false(compute):
                    continue
                known.chain[compute] = None
                found[local] = known
            elif name in EITHER and all(a in found for a in compute.args):
                parts = [found[a] for a in compute.args]  # type: ignore[index]
                moving = {p.source for p in parts} - {None}
                if len(moving) < 2:
                    both = _Straight(next(iter(moving), None))
                    for part in parts:
                        both.chain.update(part.chain)
                    both.chain[compute] = None
                    found[local] = both
            elif name in BOTH:  # one of the two settles it
                settled = [a for a in compute.args if a in found]
                if settled:
                    found[local] = found[settled[0]]
        found.update(self._long_shifts())
        return found

    def _long_shifts(self) -> Iterator[tuple[Local, _Straight]]:
        """Whether a number is shifted by all bits that it has, or more: no check asks for that."""
        if isinstance(getattr(self.loop, "stop", None), Literal):
            return  # it is known anyway
        for shift in self.makers.values():
            by = shift.args[-1]
            known = self._operands([by]) if shift.primitive == "right_shift" else None
            if known is not None and known.source is not None and known.source not in self.ways:
                for name, bits in (("less", 0), ("greater", LAST_BIT)):
                    test = Compute(Local(bool_), name, (by, Literal(bits, i64)))
                    self.shifts.add(test.out)
                    yield test.out, _Straight(known.source, {**known.chain, test: None})

    def _stays_false(self, compute: Compute) -> bool:
        """Whether a condition on a counter without a certain end is false for good once it is."""
        way = self._way(compute)
        if compute.primitive in OVERFLOWS:
            return way is not None and compute.primitive != "multiply_overflows"
        falls = compute.primitive in ("greater", "greater_equal")
        return way is not None and (way <= 0 if falls else way >= 0)

    def wanted(self) -> dict[Local, set[_Guards]]:
        """The settled conditions whose falsehood makes the loop simpler, and where it does."""
        wanted: dict[Local, set[_Guards]] = {cond: {()} for cond in self.shifts}
        for statement in self.flat:
            match statement:
                case Fail(cond=Local() as cond) if cond in self.false:
                    wanted.setdefault(cond, set()).add(self.guards[statement])
                case Compute(primitive="where", args=(Local() as cond, a, b)):
                    # An index that may count from the end: where(k < 0, k + n, k).
                    maker = self.makers.get(a) if isinstance(a, Local) else None
                    if cond in self.false and maker is not None and b in maker.args:
                        wanted.setdefault(cond, set()).add(self.guards[statement])
        # Whether it counts from the end is asked with the other side of the check at once.
        checked = {
            self.false[s.cond].source for s in self.flat
            if isinstance(s, Fail) and isinstance(s.cond, Local) and s.cond in wanted
        }  # fmt: skip
        return {
            cond: places for cond, places in wanted.items()
            if (source := self.false[cond].source) not in self.ways or source in checked
        }  # fmt: skip

    # -- writing -------------------------------------------------------------------------------

    def written(self, front: Front) -> list[Statement]:
        """The test in front, and both versions."""
        wanted = self.wanted()
        for cond, places in wanted.items():
            known = self.false[cond]
            for guards in places:
                ends = self._ends(known.source, guards, front)
                for k, end in enumerate(dict.fromkeys(ends)):
                    self._ask(known, end, k if ends[0] is not ends[1] else None, front)
        return front.choice(self.loop, self._fast(wanted, front))

    def _ask(self, known: _Straight, end: Operand, place: int | None, front: Front) -> None:
        """Asks what must be false where a source is at one end: the first or the second, or, if
        that is None, the only one."""
        values: dict[Operand, Operand] = {} if known.source is None else {known.source: end}
        for compute in known.chain:
            name, args = compute.primitive, [values.get(a, a) for a in compute.args]
            if name in ORDER or name in OVERFLOWS:
                if place is None or self.slopes.end(compute) in (place, None):
                    front.doubt(front.put(name, *args))
            elif name not in EITHER:
                near = known.source in self.ways and compute.out in self.counting
                values[compute.out] = (
                    front.put(name, *args) if near else front.linear(name, args)
                )
        for operand, value in values.items():
            if operand in self.ways and operand not in self.counting:
                self._doubt_far(value, self.ways[operand], front)

    def _ends(
        self, source: Local | None, guards: _Guards, front: Front
    ) -> tuple[Operand, Operand]:
        """The least and the greatest value of a source where these branches are taken."""
        if source is None:
            return _ZERO, _ZERO
        low, high = self.sources[source](front)
        if not isinstance(self.loop, For) or source is not self.loop.index:
            return low, high
        one, narrower = Literal(1, i64), False
        for cond, truth in guards:
            found = self._bound(cond, truth, source)
            if found is None:
                continue
            name, bound = found
            narrower = True
            if name == "greater":
                bound = front.exact("add", bound, one)
            elif name == "less":
                bound = front.exact("subtract", bound, one)
            if name in ("greater", "greater_equal"):
                low = front.put("maximum", low, bound)
            else:
                high = front.put("minimum", high, bound)
        # Where nothing is left between them the branch is never taken.
        return low, front.put("maximum", low, high) if narrower else high

    def _bound(self, cond: Local, truth: bool, source: Local) -> tuple[str, Operand] | None:
        """How a condition compares a source with what is the same in every round."""
        maker = self.makers.get(cond)
        if maker is None or maker.primitive not in ORDER:
            return None
        name, (a, b) = maker.primitive, maker.args
        if b is source:
            a, b, name = b, a, SWAPPED[name]
        if a is not source or b.dtype != i64 or not self._is_fixed(b):
            return None
        return name if truth else NEGATED[name], b

    @staticmethod
    def _doubt_far(first: Operand, way: int, front: Front) -> None:
        """Asks whether what goes one way without a certain end starts too far on that way."""
        if isinstance(first, Literal) and abs(first.value) <= _GREATEST_START:
            return
        name, most = ("greater", _GREATEST_START) if way > 0 else ("less", -_GREATEST_START)
        front.doubt(front.put(name, first, Literal(most, i64)))

    def _is_bounded(self, wanted: dict[Local, set[_Guards]]) -> bool:
        """Whether each round looks at another place of one array, so that there are no more of
        them than it has."""
        loop = self.loop
        asked = (self.false[cond] for cond, places in wanted.items() if () in places)
        return isinstance(loop, For) and any(
            self.slopes.goes_through(known.chain, loop.index, loop.start, self.extents)
            for known in asked if known.source is loop.index
        )

    def _fast(self, wanted: dict[Local, set[_Guards]], front: Front) -> For | While:
        """The loop without the conditions that are known to be false."""
        loop, false = self.loop, set(wanted)
        if isinstance(loop, For):
            index = Local(i64)
            body = Copy({loop.index: index}, false).body(loop.body)
            bounded = loop.bounded or self._is_bounded(wanted)
            return replace(loop, index=index, body=body, bounded=bounded)
        if self.counted is None:
            return replace(loop, body=Copy({}, false).body(loop.body))
        body, rounds = self.counted
        return For(Local(i64), _ZERO, rounds(front), Copy({}, false).body(body), True, False)
