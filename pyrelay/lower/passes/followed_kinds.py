"""What kind of number the greatest so far is follows from the number: it is not carried along.

In: the body of a scalar kernel. Out: the same without variables that only say which of two kinds a
number has, where the number tells.

After `best = 0; for ...: if x > best: best = x` there is Python's 0 or one of NumPy's numbers in
`best`, and a variable says which. Such a variable is assigned wherever the number is: `one` beside
a number that is L, `other` beside one that is beyond L. That holds where these are L and `one`,
where they are `x` and `other` on the condition that `x` is beyond L or beyond a number of which the
same holds, and where they are another such pair. It is proven for all pairs at once, of which those
go that it does not follow for, until the rest follow from each other (a greatest fixed point).
Where the kind is asked for, the number is compared with L.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    If,
    Literal,
    Load,
    Local,
    Operand,
    Statement,
    bodies,
    operands,
    renamed,
    replace_bodies,
    statements,
)
from pyrelay.lower.kernels.values import operand_key
from pyrelay.records import dataclass

_SWAPPED = {"greater": "less", "less": "greater"}

#: A number and what says its kind.
_Pair: TypeAlias = tuple[Local, Local]
#: Assigns that follow each other, and what holds there.
_Run: TypeAlias = tuple[Sequence[Assign], Sequence[Operand]]
#: What is known of a value at its first source.
_End: TypeAlias = tuple[Any, ...]
_Node = TypeVar("_Node", bound=Hashable)


@dataclass(frozen=True, slots=True)
class _Site:
    """What a number and its kind are assigned at one place, and which conditions hold there."""

    value: Operand
    kind: Operand
    holds: Sequence[Operand]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A condition and two values; the stretch of a body, in which nothing is assigned, where it
    stands."""

    args: Sequence[Operand]
    stretch: object


@dataclass(frozen=True, slots=True)
class _Rule:
    """A kind is `one` where the number is `start`, and `other` where it is beyond it."""

    beyond: str
    start: Literal
    one: Literal
    other: Literal


def without_followed_kinds(body: Body) -> Body:
    """The body without kinds of numbers that the numbers tell."""
    sites = _sites(body, dict(_choices(body)))
    makers: Mapping[Operand, Compute] = {
        s.out: s for s in statements(body) if isinstance(s, Compute)
    }
    found: dict[Local, tuple[Local, _Rule]] = {}
    told: set[Local] = set()  # the numbers that are asked for kinds
    for rule, pairs in _rules(sites):
        for value, kind in _following(rule, pairs, sites, makers):
            if value not in found and kind not in found and kind not in told:
                found[kind] = value, rule
                told.add(value)
    return _without(body, found) if found else body


# -- pairs ---------------------------------------------------------------------------------------


def _sites(body: Body, choices: Mapping[Operand, _Choice]) -> dict[_Pair, list[_Site]]:
    """Numbers and what may be their kinds: variables that are only assigned together; and where."""
    runs = tuple(_runs(body, ()))
    kinds = _kinds(runs, choices)
    together: dict[_Pair, list[_Site]] = {}
    total: Counter[Local] = Counter()
    for run, holds in runs:
        changed = {each.variable for each in run}
        total.update(each.variable for each in run)
        if len(changed) < len(run) or any(each.value in changed for each in run):
            continue
        for kind in run:
            if kind.variable in kinds:
                for each in run:
                    if each is not kind and each.variable.dtype.kind in "if":
                        pair = each.variable, kind.variable
                        site = _Site(each.value, kind.value, holds)
                        together.setdefault(pair, []).append(site)
    return {
        pair: [case for site in sites for case in _cases(site, choices)]
        for pair, sites in together.items() if total[pair[0]] == total[pair[1]] == len(sites)
    }  # fmt: skip


def _kinds(runs: Iterable[_Run], choices: Mapping[Operand, _Choice]) -> set[Local]:
    """Variables that are, as far as their values are followed, one of two literals."""
    values: dict[Local, list[Operand]] = {}
    for run, _ in runs:
        for each in run:
            if each.variable.dtype == i64:
                chosen = choices.get(each.value)
                arms = chosen.args[1:] if chosen else (each.value,)
                values.setdefault(each.variable, []).extend(arms)
    reached = _reached({
        v: [a if a in values else operand_key(a) for a in arms] for v, arms in values.items()
    })
    return {v for v, ends in reached.items() if all(end[0] == "literal" for end in ends)}


def _reached(sources: Mapping[_Node, Iterable[Any]]) -> dict[_Node, set[_End]]:
    """The ends that nodes reach by their sources, without the nodes that reach more than two."""
    reached: dict[_Node, set[_End]] = {}
    readers: dict[_Node, list[_Node]] = {}
    for node, others in sources.items():
        reached[node] = {other for other in others if other not in sources}
        for other in others:
            if other in sources:
                readers.setdefault(other, []).append(node)
    new = list(sources)
    while new:
        ends = reached[node := new.pop()]
        for reader in readers.get(node, ()):
            if len(reached[reader]) <= 2 and not ends <= reached[reader]:
                reached[reader] |= ends
                new.append(reader)
    return {node: ends for node, ends in reached.items() if len(ends) <= 2}


def _cases(site: _Site, choices: Mapping[Operand, _Choice]) -> tuple[_Site, ...]:
    """A number and its kind that one condition chooses, read at once, are two cases."""
    value, kind = choices.get(site.value), choices.get(site.kind)
    if value is None or kind is None or value.stretch is not kind.stretch:
        return (site,)
    cond, a, b = value.args
    if kind.args[0] is not cond:
        return (site,)
    return _Site(a, kind.args[1], (*site.holds, cond)), _Site(b, kind.args[2], site.holds)


def _choices(body: Body) -> Iterator[tuple[Operand, _Choice]]:
    """What is one of two values."""
    stretch = object()
    for statement in body:
        match statement:
            case Compute(out=out, primitive="where", args=args):
                yield out, _Choice(args, stretch)
            case Compute() | Load():
                pass
            case _:
                stretch = object()
                for inner in bodies(statement):
                    yield from _choices(inner)


def _runs(body: Body, holds: Sequence[Operand]) -> Iterator[_Run]:
    run: list[Assign] = []
    for statement in body:
        if isinstance(statement, Assign):
            run.append(statement)
            continue
        if run:
            yield run, holds
            run = []
        if isinstance(statement, If):
            yield from _runs(statement.then, (*holds, statement.cond))
            yield from _runs(statement.orelse, holds)
        else:
            for inner in bodies(statement):
                yield from _runs(inner, holds)
    if run:
        yield run, holds


# -- what follows --------------------------------------------------------------------------------


def _rules(sites: Mapping[_Pair, Iterable[_Site]]) -> Iterator[tuple[_Rule, list[_Pair]]]:
    """What might hold of pairs: of those whose literals say so, and of those that these read."""
    literals: dict[_End, tuple[Literal, Literal]] = {}

    def source(site: _Site) -> _Pair | _End:
        if not isinstance(site.kind, Literal):
            return site.value, site.kind
        if isinstance(site.value, Literal):
            end: _End = ("start", operand_key(site.value), operand_key(site.kind))
            literals[end] = site.value, site.kind
        else:
            end = ("other", operand_key(site.kind))
            literals[end] = site.kind, site.kind
        return end

    sources = {pair: [source(site) for site in each] for pair, each in sites.items()}
    together: dict[tuple[_End, _End], list[_Pair]] = {}
    reached = _reached(sources)
    for pair, ends in reached.items():
        starts, others = ([e for e in ends if e[0] == name] for name in ("start", "other"))
        if len(starts) == len(others) == 1 and starts[0][2] != others[0][1]:
            together.setdefault((starts[0], others[0]), []).append(pair)
    for (first, second), pairs in together.items():
        known = set(pairs)
        for pair in pairs:  # more are added meanwhile
            read = [p for p in sources[pair] if p in sources and p not in known]
            known.update(read)
            pairs.extend(dict.fromkeys(read))
        start, one = literals[first]
        other, _ = literals[second]
        for beyond in _SWAPPED:
            yield _Rule(beyond, start, one, other), pairs


def _following(
    rule: _Rule, candidates: Iterable[_Pair], sites: Mapping[_Pair, Sequence[_Site]],
    makers: Mapping[Operand, Compute],
) -> Iterable[_Pair]:
    """The pairs that a rule holds of."""
    pairs = dict.fromkeys(candidates)
    while True:
        values = {value for value, _ in pairs}
        left = [p for p in pairs if all(_follows(s, rule, pairs, values, makers) for s in sites[p])]
        if len(left) == len(pairs):
            return pairs
        pairs = dict.fromkeys(left)


def _follows(
    site: _Site, rule: _Rule, pairs: Container[_Pair], values: set[Local],
    makers: Mapping[Operand, Compute],
) -> bool:
    start, kind = operand_key(rule.start), operand_key(site.kind)
    if not isinstance(site.kind, Literal):
        return (site.value, site.kind) in pairs
    if kind == operand_key(rule.one):
        return operand_key(site.value) == start
    if kind != operand_key(rule.other) or isinstance(site.value, Literal) or site.value.variable:
        return False
    for cond in site.holds:
        maker = makers.get(cond)
        if maker is None or maker.primitive not in _SWAPPED:
            continue
        name, (a, b) = maker.primitive, maker.args
        if b is site.value:
            a, b, name = b, a, _SWAPPED[name]
        if a is site.value and name == rule.beyond and (b in values or operand_key(b) == start):
            return True
    return False


def _without(body: Body, found: Mapping[Local, tuple[Local, _Rule]]) -> Body:
    """The body in which kinds are asked of the numbers."""
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, Assign) and statement.variable in found:
            continue
        names: dict[Operand, Operand] = {}
        for kind in operands(statement):
            if kind not in found or kind in names:
                continue
            value, rule = found[kind]  # type: ignore[index]
            is_beyond, told = Local(bool_), Local(i64)
            out.append(Compute(is_beyond, rule.beyond, (value, rule.start)))
            out.append(Compute(told, "where", (is_beyond, rule.other, rule.one)))
            names[kind] = told
        statement = renamed(statement, names)
        out.append(replace_bodies(statement, lambda b: _without(b, found)))
    return tuple(out)
