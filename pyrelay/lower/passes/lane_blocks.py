"""Writes a loop whose rounds begin with an inner loop as blocks of lanes.

In: a `Reading`, what `jammed_loops` has found in a loop. Out: the statements that stand in its
place: the loop itself for few rounds, and blocks for more. In a block the first statements of its
rounds are done for all lanes, with loops outside and lanes inside; then the rest of each round, one
by one. What one part leaves to another lies in small arrays with an element for each lane, which
LLVM keeps in vectors as long as an inner loop goes on. Integers that follow from a round's index
are computed anew where they are needed, so that positions of lanes are seen to be neighbours.
A block in which a check of a float fails is left, and its rounds go one by one: nothing has been
stored of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    For,
    If,
    Literal,
    Load,
    Local,
    LocalArray,
    Operand,
    Read,
    Statement,
    Store,
    bound_by,
    operands,
    statements,
)
from pyrelay.lower.passes.asked_extents import Sum, negative
from pyrelay.lower.passes.copies import Copy
from pyrelay.records import dataclass

_SHORTEST = 3  # rounds of inner loops
_ZERO = Literal(0, i64)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Statements that are done for one lane after the other: no loop is among them."""

    body: list[Statement]


Node: TypeAlias = Group | Statement


@dataclass(slots=True)
class Reading:
    """What a round of `loop` begins with: its first `length` statements, in groups, with those of
    loops and choices around groups in `inner`; what differs between rounds; integers that are
    computed anew where they are needed; what is kept for each lane; how many lanes a block has, and
    one of what is left, 0 if that goes round by round; and the bytes of the largest number, if the
    lanes are vectors.

    doubt: whether a check fails in the first part of a round, which is done without it: then the
    rounds of that block go one by one as they do in `whole`, the loop as it was. far: what lanes
    load from places that are no neighbours, one by one and before all else. asked: sums, as factors
    and what they multiply; if one is negative, the loop goes on as it was."""

    loop: For
    length: int
    nodes: list[Node]
    inner: dict[For | If, list[list[Node]]]
    varying: set[Operand]
    again: dict[Operand, Compute]
    kept: dict[Local, LocalArray] = field(default_factory=dict)
    lanes: int = 0
    rest_lanes: int = 0
    size: int = 0
    doubt: Local | None = None
    whole: For | None = None
    far: frozenset[Statement] = frozenset()
    asked: Sequence[Sum] = ()

    @property
    def body(self) -> Body:
        """The statements that are moved."""
        return self.loop.body[: self.length]

    @property
    def rest(self) -> Body:
        """Those that follow."""
        return self.loop.body[self.length :]


def groups(reading: Reading) -> Iterator[Group]:
    """The groups of what is moved."""
    waiting = [reading.nodes]
    while waiting:
        for node in waiting.pop():
            if isinstance(node, Group):
                yield node
            elif isinstance(node, (For, If)) and node in reading.inner:
                waiting += reading.inner[node]


def made_by(body: Sequence[Statement]) -> Iterator[Local]:
    """What statements compute, not those in their bodies."""
    for s in body:
        if isinstance(s, (Compute, Load, Read)):
            yield s.out


def read_by(body: Sequence[Statement]) -> set[Operand]:
    """What statements read, and those in their bodies."""
    return {o for s in statements(tuple(body)) for o in operands(s)}


def assigned(body: Sequence[Statement]) -> set[Local]:
    """The variables that statements set, and those in their bodies."""
    return {s.variable for s in statements(tuple(body)) if isinstance(s, Assign)}


def set_later(loop: For, length: int) -> tuple[For, int]:
    """A loop whose first statements leave it to the rest of a round to set what they do not read
    and the rest changes: a variable that starts anew in each round does so in front of that."""
    first, rest = loop.body[:length], loop.body[length:]
    changed = {s.variable for s in statements(rest) if isinstance(s, Assign)}
    times = Counter(s.variable for s in statements(first) if isinstance(s, Assign))
    read = read_by(first)
    later = tuple(
        s for s in first
        if isinstance(s, Assign) and isinstance(s.value, Literal) and s.variable in changed
        and s.variable not in read and times[s.variable] == 1
    )  # fmt: skip
    if not later:
        return loop, length
    first = tuple(s for s in first if s not in later)
    return replace(loop, body=(*first, *later, *rest)), len(first)


class Blocks:
    """Writes a loop as blocks of lanes."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.out: list[Statement] = []
        self.failing = Local(bool_, variable=True)  # whether a check fails in a block
        used = read_by(reading.rest)
        used |= {a for compute in _again(reading, used) for a in compute.args}
        # What the first part of a round computes for all lanes alike, and the second one reads.
        self.alike: dict[Operand, Operand] = {
            o: Local(o.dtype, variable=True) for o in made_by(reading.body)
            if o in used and o not in reading.varying
        }  # fmt: skip

    def _compute(self, name: str, *args: Operand, dtype: object = i64) -> Local:
        out = Local(dtype)  # type: ignore[arg-type]
        self.out.append(Compute(out, name, args))
        return out

    def statements(self) -> list[Statement]:
        """What stands in place of the loop."""
        reading = self.reading
        loop, lanes = reading.whole or reading.loop, reading.lanes
        few = self.reading.rest_lanes
        difference = self._compute("subtract", loop.stop, loop.start)
        count = self._compute("maximum", difference, _ZERO)
        alone: Operand = self._compute("less", count, Literal(few or lanes, i64), dtype=bool_)
        rounds = self._rounds()
        if rounds is not None:
            brief = self._compute("less", rounds, Literal(_SHORTEST, i64), dtype=bool_)
            alone = self._compute("logical_or", alone, brief, dtype=bool_)
        for terms in reading.asked:
            made, fails = negative(terms)
            self.out += made
            alone = self._compute("logical_or", alone, fails, dtype=bool_)
        before, self.out = self.out, []

        whole = self._compute("right_shift", count, _log2(lanes))
        done = self._compute("left_shift", whole, _log2(lanes))
        blocks = self._whole(loop, whole, done)
        if few:
            blocks = self._with_rest(loop, count, whole, done)
        return [*before, If(alone, (loop,), tuple(blocks))]

    def _with_rest(
        self, loop: For, count: Operand, whole: Operand, done: Operand
    ) -> Iterator[Statement]:
        """Whole blocks, and smaller ones of what is left, of which the last begins early enough."""
        few = self.reading.rest_lanes
        wide, narrow = Literal(self.reading.lanes, i64), Literal(few, i64)
        more = self._compute("subtract", count, done)
        rounded = self._compute("add", more, Literal(few - 1, i64))
        parts = self._compute("right_shift", rounded, _log2(few))
        blocks = self._compute("add", whole, parts)
        last = self._compute("subtract", loop.stop, narrow)
        yield from self.out
        self.out = []

        number = Local(i64)
        is_whole = self._compute("less", number, whole, dtype=bool_)
        beyond = self._compute("subtract", number, whole)
        in_rest = self._compute("add", done, self._compute("multiply", beyond, narrow))
        in_whole = self._compute("left_shift", number, _log2(self.reading.lanes))
        offset = self._compute("where", is_whole, in_whole, in_rest)
        first = self._compute("add", loop.start, offset)
        far = self._compute("where", is_whole, wide, narrow)
        stop = self._compute("minimum", loop.stop, self._compute("add", first, far))
        base = self._compute("minimum", first, last)
        arms = tuple(self._lanes(first, self.reading.lanes)), tuple(self._lanes(base, few))
        self.out.append(If(is_whole, *arms))
        self._rest_of_rounds(loop, base, first, stop)
        yield replace(loop, index=number, start=_ZERO, stop=blocks, body=tuple(self.out))

    def _whole(self, loop: For, whole: Operand, done: Operand) -> Iterator[Statement]:
        """Whole blocks, and what is left round by round."""
        more = self._compute("add", loop.start, done)
        yield from self.out
        self.out = []

        number = Local(i64)
        in_whole = self._compute("left_shift", number, _log2(self.reading.lanes))
        first = self._compute("add", loop.start, in_whole)
        stop = self._compute("add", first, Literal(self.reading.lanes, i64))
        self.out += self._lanes(first, self.reading.lanes)
        self._rest_of_rounds(loop, first, first, stop)
        yield replace(loop, index=number, start=_ZERO, stop=whole, body=tuple(self.out))
        index = Local(i64)
        body = Copy({loop.index: index}, set()).body(loop.body)
        yield replace(loop, index=index, start=more, body=body)

    def _rest_of_rounds(self, loop: For, base: Operand, first: Operand, stop: Operand) -> None:
        """What follows the lanes in the rounds of a block."""
        rest = replace(
            loop, start=first, stop=stop, program=False, bounded=True,
            body=tuple(self._round(base)),
        )  # fmt: skip
        if self.reading.doubt is None:
            self.out.append(rest)
        else:
            index = Local(i64)
            one_by_one = replace(
                rest, index=index, body=Copy({loop.index: index}, set()).body(loop.body)
            )
            self.out.append(If(self.failing, (one_by_one,), (rest,), unlikely=True))

    def _rounds(self) -> Operand | None:
        """How many rounds the inner loops of a round have, as far as that is known before it."""
        bound = {o for s in statements(self.reading.loop.body) for o in bound_by(s)}
        total: Operand | None = None
        body: Body = self.reading.body
        while loop := next((s for s in body if isinstance(s, For)), None):
            body = loop.body
            if loop.start in bound or loop.stop in bound:
                continue
            rounds = self._compute("subtract", loop.stop, loop.start)
            total = rounds if total is None else self._compute("multiply", total, rounds)
        return total

    # -- the lanes of the first part ---------------------------------------------------------------

    def _lanes(self, base: Operand, count: int) -> Iterator[Statement]:
        copy = Copy({}, set())
        yield from self._nodes(self.reading.nodes, base, count, copy)
        for local, variable in self.alike.items():
            assert isinstance(variable, Local)
            yield Assign(variable, copy.operand(local))
        if self.reading.doubt is not None:
            lane, either = Local(i64), Local(bool_)
            out: list[Statement] = []
            truth = _taken(self.reading.doubt, self.reading.kept[self.reading.doubt], lane, out)
            out += [
                Compute(either, "logical_or", (self.failing, truth)), Assign(self.failing, either),
            ]  # fmt: skip
            yield Assign(self.failing, Literal(False, bool_))
            yield For(lane, _ZERO, Literal(count, i64), tuple(out))

    def _nodes(
        self, nodes: list[Node], base: Operand, count: int, copy: Copy
    ) -> Iterator[Statement]:
        for node in nodes:
            if isinstance(node, Group):
                yield from self._group(node, base, count, copy)
            elif isinstance(node, (For, If)) and node in self.reading.inner:
                inner = self.reading.inner[node]
                if isinstance(node, For):
                    index = Local(i64)
                    bounds = copy.operand(node.start), copy.operand(node.stop)
                    copy.names[node.index] = index
                    body = tuple(self._nodes(inner[0], base, count, copy))
                    yield replace(
                        node, index=index, start=bounds[0], stop=bounds[1], body=body,
                        program=node.program and not node.bounded,
                    )  # fmt: skip
                else:
                    cond = copy.operand(node.cond)
                    arms = [tuple(self._nodes(arm, base, count, copy)) for arm in inner]
                    yield replace(node, cond=cond, then=arms[0], orelse=arms[1])
            else:
                yield from copy.body((node,))

    def _gathered(
        self, group: Group, base: Operand, count: int, around: Copy
    ) -> tuple[dict[Statement, LocalArray], list[Statement]]:
        """Where the lanes' elements of far places are put, and the loop that does it."""
        arrays: dict[Statement, LocalArray] = {}
        needed: set[Operand] = set()
        slice_: list[Statement] = []
        for s in reversed(group.body):
            if s in self.reading.far:
                assert isinstance(s, Load)
                arrays[s] = LocalArray(s.out.dtype, count)
            elif not (isinstance(s, (Compute, Load)) and s.out in needed):
                continue
            needed.update(operands(s))
            slice_.append(s)
        if not arrays:
            return {}, []
        lane, index = Local(i64), Local(i64)
        out: list[Statement] = [Compute(index, "add", (base, lane))]
        copy = Copy({**around.names, self.reading.loop.index: index}, set())
        out += copy.body(tuple(_again(self.reading, needed - set(made_by(group.body)))))
        for s in reversed(slice_):
            out += copy.body((s,))
            if s in arrays:
                assert isinstance(s, Load)
                out.append(Store(arrays[s], lane, copy.operand(s.out), True))
        return arrays, [For(lane, _ZERO, Literal(count, i64), tuple(out))]

    def _group(
        self, group: Group, base: Operand, count: int, around: Copy
    ) -> Iterator[Statement]:
        reading = self.reading
        arrays, gathering = self._gathered(group, base, count, around)
        yield from gathering
        lane, index = Local(i64), Local(i64)
        if arrays:
            group = Group([
                Load(s.out, arrays[s], lane, True)
                if isinstance(s, Load) and s in arrays else s for s in group.body
            ])  # fmt: skip
        out: list[Statement] = [Compute(index, "add", (base, lane))]
        copy = Copy({**around.names, reading.loop.index: index}, set())
        made = set(made_by(group.body))
        used = read_by(group.body)
        out += copy.body(tuple(_again(reading, used - made)))
        every = list(statements(tuple(group.body)))
        assigned = {s.variable for s in every if isinstance(s, Assign)}
        for local, array in reading.kept.items():
            if local in made or not (local in used or local in assigned):
                continue
            if local.variable:
                own = Local(local.dtype, variable=True)
                if local in used or not any(
                    isinstance(s, Assign) and s.variable is local for s in group.body
                ):
                    out.append(Assign(own, _taken(local, array, lane, out)))
                copy.names[local] = own
            else:
                copy.names[local] = _taken(local, array, lane, out)
        for local in assigned:
            if local not in reading.kept:
                copy.names[local] = Local(local.dtype, variable=True)
        out += copy.body(tuple(group.body))
        for local, array in reading.kept.items():
            if local in assigned or local in made:
                _put(copy.operand(local), array, lane, out)
        yield For(lane, _ZERO, Literal(count, i64), tuple(out), lanes=reading.size)

    # -- a round behind its lanes ------------------------------------------------------------------

    def _round(self, base: Operand) -> list[Statement]:
        reading = self.reading
        lane = Local(i64)
        out: list[Statement] = [Compute(lane, "subtract", (reading.loop.index, base))]
        used = read_by(reading.rest)
        copy = Copy({}, set())
        copy.names.update(self.alike)
        out += copy.body(tuple(_again(reading, used)))
        for local, array in reading.kept.items():
            if local.variable:
                out.append(Assign(local, _taken(local, array, lane, out)))
            elif local in used:
                copy.names[local] = _taken(local, array, lane, out)
        return [*out, *copy.body(reading.rest)]


def _taken(local: Local, array: LocalArray, lane: Local, out: list[Statement]) -> Local:
    """What is kept for a lane. Truth values are numbers as wide as others, for they are chosen
    between by vectors of such."""
    found = Local(array.dtype)
    out.append(Load(found, array, lane, True))
    if local.dtype != bool_:
        return found
    truth = Local(bool_)
    out.append(Compute(truth, "not_equal", (found, Literal(0, array.dtype))))
    return truth


def _put(value: Operand, array: LocalArray, lane: Local, out: list[Statement]) -> None:
    """Keeps a value for a lane."""
    if value.dtype == bool_:
        number = Local(array.dtype)
        chosen = (value, Literal(1, array.dtype), Literal(0, array.dtype))
        out.append(Compute(number, "where", chosen))
        value = number
    out.append(Store(array, lane, value, True))


def _again(reading: Reading, used: set[Operand]) -> list[Compute]:
    """What computes the integers that are needed and follow from a round's index."""
    needed: set[Operand] = set()
    waiting = [o for o in used if o in reading.again]
    while waiting:
        each = waiting.pop()
        if each not in needed:
            needed.add(each)
            waiting += [a for a in reading.again[each].args if a in reading.again]
    return [compute for local, compute in reading.again.items() if local in needed]


def _log2(number: int) -> Literal:
    return Literal(number.bit_length() - 1, i64)
