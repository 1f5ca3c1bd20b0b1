"""Narrowing: what a run-time test says about values that are one of several cases.

In: unions and questions about them whose answer each case settles (`x is None`, `isinstance`). Out:
the run-time bool, with a `Fact` kept for it. Where the bool is known, every union with the tag that
it tells about has fewer cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.ir.nodes import Atom, Var
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter

Kept = tuple[Atom, frozenset[int]]  # what has this tag is one of these cases


@dataclass(frozen=True, slots=True)
class Fact:
    """What follows from a bool being true, and from its being false."""

    if_true: tuple[Kept, ...] = ()
    if_false: tuple[Kept, ...] = ()

    def negated(self) -> Fact:
        """The fact about the opposite bool."""
        return Fact(self.if_false, self.if_true)


NOTHING = Fact()


def fact_of(it: Interpreter, value: V.Value) -> Fact:
    """What is known of a bool of the program."""
    if isinstance(value, V.Scalar) and isinstance(value.atom, Var):
        return it.facts.get(value.atom, NOTHING)
    return NOTHING


def note(it: Interpreter, value: V.Value, fact: Fact) -> None:
    """Keep a fact about a bool of the program."""
    useful = fact.if_true or fact.if_false
    if useful and isinstance(value, V.Scalar) and isinstance(value.atom, Var):
        it.facts[value.atom] = fact


def settled(it: Interpreter, value: V.Union, true: frozenset[int]) -> V.Value:
    """The bool that is true in these cases of a union and false in its others."""
    false = frozenset(value.alive) - true
    if not true or not false:
        return V.Known(bool(true))
    few, op = (true, "equal") if len(true) <= len(false) else (false, "not_equal")
    tests = [it.call(op, value.tag, i) for i in sorted(few)]
    result = tests[0]
    for other in tests[1:]:
        result = it.call("logical_or" if op == "equal" else "logical_and", result, other)
    note(it, result, Fact(((value.tag, true),), ((value.tag, false),)))
    return result


def joined(
    it: Interpreter, test: V.Value, then: Sequence[V.Value], orelse: Sequence[V.Value],
    results: Sequence[V.Value],
) -> None:
    """Keep what a branch on `test` says about the bools it results in (`and`, `or`, flags)."""
    fact = fact_of(it, test)
    chosen = [
        result.tag for yes, no, result in zip(then, orelse, results, strict=True)
        if isinstance(result, V.Union) and len(result.cases) == 2 and not V.node_of(result)
        and not isinstance(yes, V.Union) and not isinstance(no, V.Union)
    ]
    yes_cases = tuple((tag, frozenset((0,))) for tag in chosen)
    no_cases = tuple((tag, frozenset((1,))) for tag in chosen)
    for yes, no, result in zip(then, orelse, results, strict=True):
        on_yes, on_no = fact_of(it, yes), fact_of(it, no)
        if_true: tuple[Kept, ...] = ()
        if_false: tuple[Kept, ...] = ()
        if no == V.Known(False):
            if_true = fact.if_true + on_yes.if_true + yes_cases
            if_false = _either(fact.if_false, on_yes.if_false)
        elif yes == V.Known(False):
            if_true = fact.if_false + on_no.if_true + no_cases
            if_false = _either(fact.if_true, on_no.if_false)
        if yes == V.Known(True):
            if_false = fact.if_false + on_no.if_false + no_cases
            if_true = _either(fact.if_true, on_no.if_true)
        elif no == V.Known(True):
            if_false = fact.if_true + on_yes.if_false + yes_cases
            if_true = _either(fact.if_false, on_yes.if_true)
        note(it, result, Fact(if_true, if_false))


def _either(a: Sequence[Kept], b: Sequence[Kept]) -> tuple[Kept, ...]:
    """What follows where one of two things is so, of each of which something follows."""
    found: list[dict[Atom, frozenset[int]]] = [{}, {}]
    for side, kept in zip(found, (a, b), strict=True):
        for tag, cases in kept:
            side[tag] = side.get(tag, cases) & cases
    first, second = found
    return tuple((tag, cases | second[tag]) for tag, cases in first.items() if tag in second)


@contextmanager
def assuming(it: Interpreter, kept: Sequence[Kept]) -> Iterator[None]:
    """Unions have fewer cases inside."""
    mark = len(it.assumed)
    keep(it, kept)
    try:
        yield
    finally:
        forget(it, mark)


def keep(it: Interpreter, kept: Sequence[Kept]) -> None:
    """Unions have fewer cases up to the block's end."""
    for tag, cases in kept:
        before = it.cases.get(tag)
        it.assumed.append((tag, before))
        it.cases[tag] = cases if before is None else cases & before


def forget(it: Interpreter, mark: int) -> None:
    """Undo what `keep` did since `it.assumed` had this length."""
    while len(it.assumed) > mark:
        tag, before = it.assumed.pop()
        if before is None:
            del it.cases[tag]
        else:
            it.cases[tag] = before


def narrowed(it: Interpreter, value: V.Value) -> V.Value:
    """The value, with the cases that are left of it here."""
    while isinstance(value, V.Union):
        cases = it.cases.get(value.tag)
        alive = value.alive if cases is None else tuple(i for i in value.alive if i in cases)
        if not alive:  # nothing gets here
            raise needs.Diverges
        if len(alive) > 1:
            return value if len(alive) == len(value.alive) else V.Union(
                value.tag, value.cases, alive
            )
        value = value.cases[alive[0]]
    return value
