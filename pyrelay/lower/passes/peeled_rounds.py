"""First and last rounds of loops that ask `if i == 0`, `if j < m - 1` or `(i + 1) % n` stand apart.

In: the body of a scalar kernel. Out: the same, in which

    for i in range(n):                              if 0 < n: s[0] = x[0]
        if i == 0: s[i] = x[i]                as    for i in range(1, n): s[i] = s[i - 1] + x[i]
        else: s[i] = s[i - 1] + x[i]

All other rounds ask nothing, so that checks in them are settled, tables are computed by
`skewed_rows`, and neighbours are read by vectors (loop peeling: Allen and Kennedy, "Optimizing
Compilers for Modern Architectures", 2001). A comparison is looked at as the sign of a polynomial of
the loop's index and of what the loop does not change, which indices of loops inside it leave
between two others. It is taken to be one of the first or last rounds if it has the same answer in
all the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

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
    Local,
    Operand,
    Statement,
    While,
    bodies,
    has_loops,
    operands,
    renamed,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.asked_extents import FAR
from pyrelay.lower.passes.copies import Copy
from pyrelay.lower.passes.distinct_places import Integers, Near, least, linear
from pyrelay.lower.passes.guessed_branches import latency
from pyrelay.lower.passes.jammed_loops import Uses, counted, sets_first
from pyrelay.lower.passes.lane_blocks import assigned
from pyrelay.lower.passes.written import Text, number
from pyrelay.records import dataclass

_LARGEST = 120  # statements of a round
_SHORTEST = 8  # rounds, if they are known
_MOST_ALONE = 2  # rounds that stand one by one
_SLOW = 13  # cycles of a quotient: several at once are worth two loops
# comparison -> differences for which it holds: from the least to the greatest, None for all
_HOLDS: Mapping[str, tuple[tuple[int | None, int | None], ...]] = {
    "less": ((None, -1),), "less_equal": ((None, 0),), "greater": ((1, None),),
    "greater_equal": ((0, None),), "equal": ((0, 0),), "not_equal": ((None, -1), (1, None)),
}  # fmt: skip
_FAILS: Mapping[str, tuple[tuple[int | None, int | None], ...]] = {
    "less": _HOLDS["greater_equal"], "less_equal": _HOLDS["greater"],
    "greater": _HOLDS["less_equal"], "greater_equal": _HOLDS["less"],
    "equal": _HOLDS["not_equal"], "not_equal": _HOLDS["equal"],
}  # fmt: skip

_EQUAL = frozenset(["equal", "not_equal"])
_JOINED = frozenset(["logical_or", "logical_and", "logical_not"])

_Given: TypeAlias = "frozenset[tuple[_Asked, bool]]"
_Ends: TypeAlias = tuple[Extent, Extent]
"""The first round and the last."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A comparison: its name, by how much its difference grows from round to round, 1 or -1, and
    between what the rest of that lies. It is `given` that others have certain answers, where it is
    one of what branches have chosen."""

    out: Local
    name: str
    slope: int
    low: list[Extent]
    high: list[Extent]
    given: _Given

    def truth(self, ends: _Ends) -> bool | None:
        """Its answer, if that is the same in all rounds from one to another."""
        if any(other.truth(ends) is not truth for other, truth in self.given):
            return None
        first, last = ends if self.slope == 1 else ends[::-1]
        low = [dims.add(each, dims.multiply(self.slope, first)) for each in self.low]
        high = [dims.add(each, dims.multiply(self.slope, last)) for each in self.high]
        for truth, found in ((True, _HOLDS), (False, _FAILS)):
            for least_, most in found[self.name]:
                over = least_ is None or _some(dims.add(each, -least_) for each in low)
                under = most is None or _some(
                    dims.add(most, dims.multiply(-1, each)) for each in high
                )
                if over and under:
                    return truth
        return None


def _some(extents: Iterator[Extent]) -> bool:
    return any(map(dims.non_negative, extents))


def with_peeled_rounds(body: Body) -> Body:
    """The body of a kernel with first and last rounds apart."""
    peeled = tuple(_walked(body, Integers(), counted(body)))
    return peeled if sum(1 for _ in statements(peeled)) > sum(1 for _ in statements(body)) else body


def _walked(
    body: Body, integers: Integers, uses: Uses, *, nested: bool = False
) -> Iterator[Statement]:
    for statement in body:
        integers.note(statement)
        if isinstance(statement, For):
            yield from _loop(statement, integers, uses, nested)
        elif bodies(statement):
            yield replace_bodies(
                statement, lambda b: tuple(_walked(b, Integers(integers), uses, nested=nested))
            )
        else:
            yield statement


def _loop(loop: For, integers: Integers, uses: Uses, nested: bool) -> Iterator[Statement]:
    """A loop, or its first rounds, those between and the last; one that is `nested` is in those
    between of another one."""
    inside = Integers(integers)
    inside.enter(loop)
    found = _Comparisons(loop, integers) if _is_fit(loop, inside) else None
    first, last = (0, 0) if found is None else found.apart()
    point = None if found is None or first or last else found.point()
    if found is None or (not first and not last and point is None):
        yield replace(loop, body=tuple(_walked(loop.body, inside, uses, nested=nested)))
        return
    outside = uses - counted((loop,))
    own = [
        v for v in assigned(loop.body) if not outside[v] and sets_first(loop.body, {v}, set())
    ]
    if point is not None:
        yield from _Peel(loop, [point.asked], found.last, own).around(point)
        return
    peel, text = _Peel(loop, list(found.turns), found.last, own), _Bounds(integers)
    start = text.more(loop.start, first, 1)
    stop = text.more(loop.stop, last, -1)
    worth = None if isinstance(first, int) and isinstance(last, int) else text.worth(
        loop, start, stop
    )
    for s in text.body:
        integers.note(s)
        yield s
    parted = peel.first(first, start)
    between = _bounds_outside(peel.between(first, last, start, stop), integers, parted)
    parted += _walked((between,), integers, outside + counted((between,)), nested=True)
    parted += peel.last(last, start, stop)
    if worth is not None:
        yield If(worth, tuple(parted), peel.whole(few=nested))
    elif all(integers.of_extents(integers.of(o)) for o in (loop.start, loop.stop)):
        yield from parted
    else:  # where there are no rounds, a round more or less may be one of the farthest integers
        goes = Local(bool_)
        yield Compute(goes, "less", (loop.start, loop.stop))
        yield If(goes, tuple(parted))


def _bounds_outside(loop: For, integers: Integers, out: list[Statement]) -> For:
    """The loop, with bounds of loops in it that do not hang on it computed in front of it."""
    inside = Integers(integers)
    inside.enter(loop)
    ((step, _),) = inside.steps
    body: list[Statement] = []
    for s in loop.body:
        inside.note(s)
        if isinstance(s, For):
            bounds = [s.start, s.stop]
            for place, bound in enumerate(bounds):
                known = inside.of(bound)
                near = integers.near(known) if step not in dims.symbols(known) else None
                if near is not None and isinstance(bound, Local):
                    text = Text()
                    bounds[place] = text.sum(near)
                    for each in text.body:
                        integers.note(each)
                    out += text.body
            inside.enter(s)
            s = replace(s, start=bounds[0], stop=bounds[1])
        body.append(s)
    return replace(loop, body=tuple(body))


class _Bounds(Text):
    """What computes the bounds of the parts of a loop, of integers in front of it."""

    def __init__(self, integers: Integers) -> None:
        super().__init__()
        self._integers = integers
        self._others: dict[Local, None] = {}  # that are made of something else than extents

    def more(self, operand: Operand, rounds: Extent, sign: int) -> Operand:
        """So much more, or less, than an integer; a number that is not known counts from zero."""
        if isinstance(rounds, int):
            return self.plus(operand, sign * rounds)
        near, known = self._integers.near(rounds), self._integers
        assert near is not None
        others = (o for _, o in near[0] if not known.of_extents(known.of(o)))
        self._others.update(dict.fromkeys(others))
        found = self.new("maximum", self.sum(near), number(0))
        return self.new("add" if sign > 0 else "subtract", operand, found)

    def worth(self, loop: For, start: Operand, stop: Operand) -> Operand:
        """Whether the rounds from `start` to `stop` are half of a loop's, and all integers so small
        that sums of few of them fit in 64 bits."""
        every = self.new("subtract", loop.stop, loop.start)
        between = self.new("subtract", stop, start)
        others = self.new("subtract", every, between)
        half = self.new("greater_equal", between, others, dtype=bool_)
        some = self.new("less", loop.start, loop.stop, dtype=bool_)
        worth = self.new("logical_and", some, half, dtype=bool_)
        for local in self._others:
            for primitive, most in (("less_equal", FAR), ("greater_equal", -FAR)):
                small = self.new(primitive, local, number(most), dtype=bool_)
                worth = self.new("logical_and", worth, small, dtype=bool_)
        return worth


@dataclass(frozen=True, slots=True, eq=False)
class _Peel:
    """A loop that is parted: what it asks, the number of its last round, and the variables that
    each round sets anew."""

    loop: For
    asked: list[_Asked]
    end: Extent
    own: list[Local]

    def whole(self, *, few: bool) -> Body:
        """The loop as it was, with variables of its own."""
        return Copy(self._names(), set()).body((replace(self.loop, few=few),))

    def first(self, rounds: Extent, start: Operand) -> list[Statement]:
        """The rounds in front of those between: one by one, or as a loop."""
        loop, text = self.loop, Text()
        if not isinstance(rounds, int) or rounds > _MOST_ALONE:
            text.add(self._rounds(loop.start, text.new("minimum", start, loop.stop)))
            return text.body
        for each in range(rounds):
            index = text.plus(loop.start, each)
            goes = text.new("less", index, loop.stop, dtype=bool_)
            text.add(If(goes, self._round((each, each), index)))
        return text.body

    def between(self, first: Extent, last: Extent, start: Operand, stop: Operand) -> For:
        """All rounds but those."""
        ends = first, dims.add(self.end, dims.multiply(-1, last))
        body, known = self._decided(ends)
        (loop,) = Copy(known, set()).body((replace(self.loop, start=start, stop=stop, body=body),))
        assert isinstance(loop, For)
        return loop

    def last(self, rounds: Extent, start: Operand, stop: Operand) -> list[Statement]:
        """The rounds behind those between, of which `start` is the first."""
        loop, text = self.loop, Text()
        if not isinstance(rounds, int) or rounds > _MOST_ALONE:
            text.add(self._rounds(text.new("maximum", start, stop), loop.stop))
            return text.body
        for each in range(rounds, 0, -1):
            index = text.plus(loop.stop, -each)
            goes = text.new("greater_equal", index, start, dtype=bool_)
            place = dims.add(self.end, 1 - each)
            text.add(If(goes, self._round((place, place), index)))
        return text.body

    def around(self, point: _Point) -> Iterator[Statement]:
        """The rounds before one in the middle, that one, and those behind it."""
        loop, text = self.loop, Text()
        index = text.sum(point.near)
        end = text.new("minimum", index, loop.stop)
        stop = text.new("maximum", end, loop.start)
        behind = text.new("minimum", text.plus(end, 1), loop.stop)
        start = text.new("maximum", behind, loop.start)
        begun = text.new("greater_equal", index, loop.start, dtype=bool_)
        open_ = text.new("less", index, loop.stop, dtype=bool_)
        goes = text.new("logical_and", begun, open_, dtype=bool_)
        body, known = self._decided((0, dims.add(point.place, -1)))
        first = replace(loop, stop=stop, body=body)
        last = replace(loop, start=start, body=body)
        yield from text.body
        yield from Copy(known, set()).body((first,))
        yield If(goes, self._round((point.place, point.place), index))
        yield from Copy({**known, **self._names()}, set()).body((last,))

    def _rounds(self, start: Operand, stop: Operand) -> Statement:
        loop = replace(self.loop, start=start, stop=stop, few=True)
        (copy,) = Copy(self._names(), set()).body((loop,))
        return copy

    def _round(self, ends: _Ends, index: Operand) -> Body:
        body, known = self._decided(ends)
        return Copy({self.loop.index: index, **self._names(), **known}, set()).body(body)

    def _names(self) -> dict[Operand, Operand]:
        """Names of their own for variables."""
        return {v: Local(v.dtype, variable=True) for v in self.own}

    def _decided(self, ends: _Ends) -> tuple[Body, dict[Operand, Operand]]:
        """What some rounds do but for what is known in them, and that."""
        known: dict[Operand, Literal] = {}
        for each in self.asked:
            truth = each.truth(ends)
            if truth is not None:
                known[each.out] = Literal(truth, bool_)

        taken: dict[Operand, Operand] = {}
        every = Counter(s.variable for s in statements(self.loop.body) if isinstance(s, Assign))

        def rest(body: Body) -> Iterator[Statement]:
            for s in body:
                if isinstance(s, Compute) and s.out in known:
                    continue
                if isinstance(s, If) and s.cond in known and (choice := _choice(s)) is not None:
                    variable, *values = choice
                    value = values[not known[s.cond].value]
                    free = not (isinstance(value, Local) and value.variable)
                    if free and variable in self.own and every[variable] == 2:
                        taken[variable] = taken.get(value, value)
                        continue
                yield replace_bodies(renamed(s, taken), lambda b: tuple(rest(b)))

        return tuple(rest(self.loop.body)), dict(known)


def _choice(branch: If) -> tuple[Local, Operand, Operand] | None:
    """The variable that a branch only sets, and to what."""
    match branch:
        case If(then=(Assign(variable=v, value=one),), orelse=(Assign(variable=w, value=two),)):
            return (v, one, two) if v is w else None
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """A round in the middle of a loop that alone has another answer to a comparison: its number,
    and the integer in front of the loop that its index is so much more than."""

    asked: _Asked
    place: Extent
    near: Near


def _is_fit(loop: For, inside: Integers) -> bool:
    start, stop = loop.start, loop.stop
    known = isinstance(start, Literal) and isinstance(stop, Literal)
    if known and stop.value - start.value <= _SHORTEST:  # type: ignore[union-attr]
        return False  # it is unrolled
    every = list(statements(loop.body))
    single = len(inside.steps[0][1]) == 1 and loop.rescaled is None and not loop.lanes
    return single and len(every) <= _LARGEST and not any(
        isinstance(s, (While, Break, Call)) for s in every
    )


def _wanted(body: Body) -> set[Operand]:
    """What statements read, but for what only checks do: in rounds that fail nothing else is of
    interest."""
    found: set[Operand] = set()
    for s in reversed(list(statements(body))):
        joined = isinstance(s, Compute) and s.primitive in _JOINED
        if not isinstance(s, Fail) and not (joined and s.out not in found):  # type: ignore[union-attr]
            found.update(operands(s))
    return found


class _Comparisons:
    """What a loop asks of its index, in loops inside it too.

    turns   of each, at which end, 0 or 1, how many rounds may have other answers than all others,
            and the answer of those.
    """

    def __init__(self, loop: For, around: Integers) -> None:
        self._around, self._integers = around, Integers(around)
        self._integers.enter(loop)
        self._step, (self.last, *_) = self._integers.steps[0]
        self.turns: dict[_Asked, tuple[int, Extent, bool]] = {}
        self._points: list[_Point] = []
        self._start = around.of(loop.start)
        self._slow = not has_loops(loop.body) and any(
            isinstance(s, Compute) and latency(s) >= _SLOW for s in statements(loop.body)
        )
        self._asked: dict[Operand, _Asked] = {}
        #: The answers that an integer is known for, and variables that one branch alone sets.
        self._given: dict[Operand, _Given] = {}
        self._chosen = _chosen(loop.body)
        self._wanted, self._bounding = _wanted(loop.body), _bounding(loop.body)
        self._choices = {
            s.cond: choice for s in statements(loop.body)
            if isinstance(s, If) and (choice := _choice(s)) is not None and choice[0].dtype == i64
        }  # fmt: skip
        self._look(loop.body)

    def _look(self, body: Body) -> None:
        for s in body:
            self._integers.note(s)
            if isinstance(s, Compute):
                self._given[s.out] = self._needed(*s.args)
                if s.out in self._wanted and s.primitive in _HOLDS:
                    self._note(s)
            if isinstance(s, For):
                self._integers.enter(s)
                self._given[s.index] = self._needed(s.start, s.stop)
            for inner in bodies(s):
                self._look(inner)
            if isinstance(s, If) and s.cond in self._asked:
                self._choose(s, self._asked[s.cond])

    def _needed(self, *operands: Operand) -> _Given:
        return frozenset().union(*(self._given.get(o, frozenset()) for o in operands))

    def _note(self, s: Compute) -> None:
        if s.args[0].dtype != i64:
            return
        a, b = map(self._integers.of, s.args)
        parts = linear(dims.add(a, dims.multiply(-1, b)), self._step)
        if parts is None or parts[0] not in (1, -1):
            return
        slope, rest = 1 if parts[0] == 1 else -1, parts[1]
        steps = self._integers.steps[1:]
        low = least(rest, steps)
        high = [dims.multiply(-1, each) for each in least(dims.multiply(-1, rest), steps)]
        given, moves = self._needed(*s.args), self._moving(s.out)
        asked = _Asked(s.out, s.primitive, slope, low, high, given)
        inside = not {each for each, _ in steps}.isdisjoint(dims.symbols(rest))
        inside |= s.out in self._bounding
        for at, rounds in self._numbers(asked, inside, moves is not None):
            ends: list[Extent] = [0, 0]
            ends[at] = rounds
            for other, so_many, _ in (self.turns[each] for each, _ in given):
                ends[other] = _more(ends[other], so_many)
            truth = asked.truth((ends[0], dims.add(self.last, dims.multiply(-1, ends[1]))))
            if truth is not None and moves in (None, truth):
                self.turns[asked] = at, rounds, truth
                self._asked[s.out] = asked
                return
        place = dims.multiply(-slope, rest)
        near = self._around.near(dims.add(self._start, place))
        if self._slow and near is not None and not given and s.primitive in _EQUAL:
            self._points.append(_Point(asked, place, near))

    def point(self) -> _Point | None:
        """The only round that is another one than all others, wherever it is, if rounds take
        long."""
        return self._points[0] if len(self._points) == 1 else None

    def _moving(self, cond: Operand) -> bool | None:
        """The answer with which a branch chooses an integer that goes from round to round, where
        the other one stays: so it does in most of them."""
        if cond not in self._choices:
            return None
        _, *values = self._choices[cond]
        one, two = (self._step in dims.symbols(self._integers.of(value)) for value in values)
        return None if one is two else one

    def _numbers(
        self, asked: _Asked, inside: bool, moves: bool
    ) -> Iterator[tuple[int, Extent]]:
        """At which end how many rounds may have other answers: few, or, if loops `inside` have a
        part in it or hang on it, as many as is known in front of the loop."""
        yield 0, 0
        for few in range(1, _MOST_ALONE + 1):
            yield from ((0, few), (1, few))
        every: list[tuple[int, Extent]] = []
        for least_, most in (*_HOLDS[asked.name], *_FAILS[asked.name]) if inside else ():
            if most is None and least_ is not None:
                every += (
                    (int(asked.slope == -1), dims.add(least_, dims.multiply(-1, low)))
                    for low in asked.low
                )
            elif least_ is None and most is not None:
                every += ((int(asked.slope == 1), dims.add(high, -most)) for high in asked.high)
        of_all = set() if moves else set(dims.symbols(self.last))
        for at, rounds in every:
            rounds = dims.add(rounds, self.last) if at else rounds
            others = dims.add(self.last, dims.multiply(-1, rounds))
            if isinstance(others, int) and not (isinstance(rounds, int) and rounds < others):
                continue  # there may be no others
            if of_all and of_all.isdisjoint(dims.symbols(others)):
                continue
            if isinstance(rounds, int) or self._around.near(rounds) is not None:
                yield at, rounds

    def _choose(self, branch: If, asked: _Asked) -> None:
        """Takes a variable that a branch sets for what it is in most rounds."""
        truth, choice = self.turns[asked][2], _choice(branch)
        if choice is not None and choice[0] in self._chosen:
            variable, *values = choice
            value = values[not truth]
            self._integers.learn(variable, self._integers.of(value))
            self._given[variable] = asked.given | self._needed(value) | {(asked, truth)}

    def apart(self) -> tuple[Extent, Extent]:
        """How many rounds at both ends of the loop are others than those between."""
        found: list[Extent] = [0, 0]
        for at, rounds, _ in self.turns.values():
            found[at] = _more(found[at], rounds)
        return found[0], found[1]


def _more(one: Extent, other: Extent) -> Extent:
    """The greater of two numbers of rounds, or that which is not known."""
    more = dims.add(other, dims.multiply(-1, one))
    return other if (more > 0 if isinstance(more, int) else isinstance(one, int)) else one


def _chosen(body: Body) -> set[Local]:
    """The integers that one branch sets, in rounds that do not read what rounds before have set."""
    every = Counter(s.variable for s in statements(body) if isinstance(s, Assign))
    choices = (_choice(s) for s in statements(body) if isinstance(s, If))
    found = {choice[0] for choice in choices if choice is not None}
    return {
        v for v in found
        if v.dtype == i64 and every[v] == 2 and sets_first(body, {v}, set())
    }  # fmt: skip


def _bounding(body: Body) -> set[Operand]:
    """Conditions of what bounds of loops inside are made of."""
    found: set[Operand] = set()
    conditions: set[Operand] = set()
    for s in reversed(list(statements(body))):
        match s:
            case For(start=start, stop=stop):
                found |= {start, stop}
            case Compute(out=out, args=args) if out in found:
                found.update(args)
            case Assign(variable=variable, value=value) if variable in found:
                found.add(value)
            case If(cond=cond) if (choice := _choice(s)) is not None and choice[0] in found:
                conditions.add(cond)
    return conditions
