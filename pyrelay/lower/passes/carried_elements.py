"""The element at a place that a loop hands on is handed on with it.

In: the body of a scalar kernel. Out: the same, in which

    at = 0                                      at, best = 0, a[0]
    for i in range(1, n):                       for i in range(1, n):
        if a[i] < a[at]: at = i         as          if a[i] < best: at, best = i, a[i]

The place is the one in front of the loop or that of an element that an earlier round has read, so
that rounds need not read it again, each at a place that it waits for; what only compares the place
with others is settled for both, the checks of it mostly. Rounds that leave all as it was are then
skipped in blocks (`idle_rounds`). Nothing in the loop may store into the array, or fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
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
    Pointed,
    Statement,
    Store,
    bodies,
    has_loops,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.copies import Copy, makers, without
from pyrelay.lower.passes.distinct_places import Integers, least
from pyrelay.lower.passes.lane_blocks import assigned
from pyrelay.records import dataclass

_LARGEST = 60  # statements of a round
# comparison -> the least difference for which it surely holds, and the greatest; for which it fails
_ENDS = {
    "less": ((None, -1), (0, None)), "less_equal": ((None, 0), (1, None)),
    "greater": ((1, None), (None, 0)), "greater_equal": ((0, None), (None, -1)),
}  # fmt: skip


def with_carried_elements(body: Body) -> Body:
    """The body of a kernel with elements handed on."""
    found: list[_Carried] = []
    made = tuple(_walked(body, Integers(), found))
    return made if found else body


def _walked(body: Body, integers: Integers, found: list[_Carried]) -> Iterator[Statement]:
    values: dict[Local, Operand] = {}  # of variables, as they were set last
    for s in body:
        integers.note(s)
        if isinstance(s, For):
            carried = _carried(s, integers, values)
            if carried is not None:
                found.append(carried)
                yield from carried.statements()
            else:
                inside = Integers(integers)
                inside.enter(s)
                yield replace(s, body=tuple(_walked(s.body, inside, found)))
        elif bodies(s):
            yield replace_bodies(s, lambda b: tuple(_walked(b, Integers(integers), found)))
        else:
            yield s
        for variable in assigned((s,)):
            values.pop(variable, None)
        match s:
            case Assign(variable=variable, value=Local(variable=True) as value):
                if value in values:
                    values[variable] = values[value]
            case Assign(variable=variable, value=value):
                values[variable] = value


@dataclass(frozen=True, slots=True, eq=False)
class _Carried:
    """A loop that hands on a place, `at`: which branch chooses the next one, into which variable;
    the element there, if it is taken; the loads at the place; and comparisons that are settled."""

    loop: For
    at: Local
    branch: If
    chosen: Local
    element: Load
    loads: list[Load]
    settled: dict[Operand, Literal]

    def statements(self) -> Iterator[Statement]:
        """The loop, and what reads the first element."""
        loop, kept = self.loop, Local(self.element.out.dtype, variable=True)
        goes, first = Local(bool_), Local(kept.dtype)
        front = Copy({**self.settled, loop.index: loop.start}, set())
        made = front.body(makers(
            without(self.loop.body, self._answered()), self.loads[0].index
        ))  # fmt: skip
        load = Load(first, self.element.array, front.operand(self.loads[0].index), False)
        yield Compute(goes, "less", (loop.start, loop.stop))
        yield If(goes, (*made, load, Assign(kept, first)))
        anew = Local(kept.dtype, variable=True)
        body: list[Statement] = []
        for s in loop.body:
            if s is self.branch:
                then, orelse = (
                    (*arm, Assign(anew, self.element.out if taken else kept))
                    for arm, taken in zip(bodies(s), self._taken(), strict=True)
                )
                body.append(replace(self.branch, then=then, orelse=orelse))
            else:
                body.append(s)
            if isinstance(s, Assign) and s.variable is self.at:
                body.append(Assign(kept, anew))
        names: dict[Operand, Operand] = {load.out: kept for load in self.loads}
        inside = without(tuple(body), {*self.loads, *self._answered()})
        yield from Copy({**names, **self.settled}, set()).body((replace(loop, body=inside),))

    def _answered(self) -> set[Statement]:
        """What asks for what is settled."""
        return {
            s for s in statements(self.loop.body)
            if isinstance(s, Compute) and s.out in self.settled
        }

    def _taken(self) -> tuple[bool, bool]:
        """In which arm the place is another one."""
        then, orelse = (_set_to(arm, self.chosen) is not self.at for arm in bodies(self.branch))
        return then, orelse


def _set_to(body: Body, variable: Local) -> Operand | None:
    """What a body itself leaves in a variable."""
    found: Operand | None = None
    for s in body:
        if isinstance(s, Assign) and s.variable is variable:
            found = s.value
    return found


def _carried(loop: For, around: Integers, values: dict[Local, Operand]) -> _Carried | None:
    """What a loop hands on, if it is such a place."""
    every = list(statements(loop.body))
    if len(every) > _LARGEST or has_loops(loop.body):
        return None
    if any(isinstance(s, (Break, Call)) for s in every):
        return None
    if loop.rescaled is not None or loop.lanes:
        return None
    stores = [s for s in every if isinstance(s, Store)]
    times = Counter(s.variable for s in every if isinstance(s, Assign))
    for s in loop.body:
        match s:
            case Assign(variable=at, value=Local(variable=True) as chosen) if (
                at.dtype == i64 and times[at] == 1 and times[chosen] == 2 and at in values
            ):
                found = _choice(loop, at, chosen, stores)
                if found is not None:
                    settled = _settled(loop, found, around, values[at])
                    if not _may_fail(loop, settled):
                        return replace(found, settled=settled)
    return None


def _choice(loop: For, at: Local, chosen: Local, stores: list[Store]) -> _Carried | None:
    """The branch that chooses the next place, and what is read there."""
    place = next(
        n for n, s in enumerate(loop.body) if isinstance(s, Assign) and s.variable is at
    )
    ahead = loop.body[:place]
    for number, branch in enumerate(ahead):
        if not isinstance(branch, If) or chosen not in assigned((branch,)):
            continue
        ends = [_set_to(arm, chosen) for arm in bodies(branch)]
        others = [end for end in ends if end is not at]
        if None in ends or len(others) != 1:
            return None
        elements = [s for s in loop.body[:number] if isinstance(s, Load) and s.index is others[0]]
        for element in elements:
            if any(s.array == element.array or isinstance(s.array, Pointed) for s in stores):
                continue
            if isinstance(element.array, Pointed) and stores:
                continue
            loads = [
                s for s in loop.body[:number]
                if isinstance(s, Load) and s.array == element.array and _is_at(s.index, at, loop)
            ]
            if loads and loads[0].index.dtype == i64:
                return _Carried(loop, at, branch, chosen, element, loads, {})
        return None
    return None


def _may_fail(loop: For, settled: dict[Operand, Literal]) -> bool:
    """Whether a round may fail: that the first place is one may hang on that none has."""
    never: set[Operand] = {o for o, truth in settled.items() if not truth.value}
    for s in statements(loop.body):
        if isinstance(s, Compute) and s.primitive == "logical_or" and never.issuperset(s.args):
            never.add(s.out)
        if isinstance(s, Fail) and s.cond not in never:
            return True
    return False


def _is_at(index: Operand, at: Local, loop: For) -> bool:
    """Whether an index is a place, or counts from the end if that is negative."""
    if index is at:
        return True
    made = {s.out: s for s in loop.body if isinstance(s, Compute)}
    maker = made.get(index)  # type: ignore[arg-type]
    if maker is None or maker.primitive != "where" or maker.args[2] is not at:
        return False
    more = made.get(maker.args[1])  # type: ignore[arg-type]
    return more is not None and more.primitive == "add" and at in more.args


def _settled(
    loop: For, found: _Carried, around: Integers, start: Operand
) -> dict[Operand, Literal]:
    """The comparisons of the place that have the same answer for the first place and for all that
    follow: in a loop that has a round at least."""
    inside = Integers(around)
    inside.enter(loop)
    last = inside.steps[0][1]
    first = around.of(start)
    known: dict[Operand, Literal] = {}
    for s in loop.body:
        inside.note(s)
        if not isinstance(s, Compute) or s.primitive not in _ENDS or found.at not in s.args:
            continue
        a, b = s.args
        sign, other = (1, b) if a is found.at else (-1, a)
        if other is found.at or (isinstance(other, Local) and other.variable):
            continue
        beyond = inside.of(other)
        for truth, (low, high) in zip((True, False), _ENDS[s.primitive], strict=True):
            holds = True
            for place, some in ((first, True), (inside.of(found.element.index), False)):
                difference = dims.multiply(sign, dims.add(place, dims.multiply(-1, beyond)))
                bounds: list[Extent] = []
                if low is not None:
                    bounds = [dims.add(difference, -low)]
                elif high is not None:
                    bounds = [dims.add(high, dims.multiply(-1, difference))]
                if some:  # there is a round, so the last one's number is not negative
                    rest = [dims.add(e, dims.multiply(-1, end)) for e in bounds for end in last]
                    bounds += rest
                else:
                    bounds = [e for bound in bounds for e in least(bound, inside.steps)]
                holds = holds and any(map(dims.non_negative, bounds))
            if holds:
                known[s.out] = Literal(truth, bool_)
    return known
