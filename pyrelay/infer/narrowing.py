"""Narrowing: what a run-time test says about values that are one of several cases.

In: unions and questions about them whose answer each case settles (`x is None`, `isinstance`). Out:
the run-time bool, with a `Fact` kept for it; a branch on the bool sees the narrower values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrelay.infer import values as V
from pyrelay.ir.nodes import Var

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter

Kept = tuple[V.Union, frozenset[int]]  # the value is one of these cases


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


def decide(
    it: Interpreter, value: V.Union, answer: Callable[[V.Value], V.Value]
) -> V.Value | None:
    """The bool `answer(value)` if every case settles it without computing anything, else None."""
    trial = it.builder.nested()
    with it.inside(trial, it.heap.copy()):
        answers = [answer(case) for case in value.cases]
    if trial.lets or not all(isinstance(a, V.Known) and type(a.value) is bool for a in answers):
        return None
    true = frozenset(i for i, a in enumerate(answers) if a == V.Known(True))
    false = frozenset(range(len(answers))) - true
    if not true or not false:
        return V.Known(bool(true))
    few, op = (true, "equal") if len(true) <= len(false) else (false, "not_equal")
    tests = [it.call(op, value.tag, i) for i in sorted(few)]
    result = tests[0]
    for other in tests[1:]:
        result = it.call("logical_or" if op == "equal" else "logical_and", result, other)
    note(it, result, Fact(((value, true),), ((value, false),)))
    return result


def joined(
    it: Interpreter, test: V.Value, then: Sequence[V.Value], orelse: Sequence[V.Value],
    results: Sequence[V.Value],
) -> None:
    """Keep what a branch on `test` says about the bools it results in (`and`, `or`)."""
    fact = fact_of(it, test)
    for yes, no, result in zip(then, orelse, results, strict=True):
        on_yes, on_no = fact_of(it, yes), fact_of(it, no)
        if_true: tuple[Kept, ...] = ()
        if_false: tuple[Kept, ...] = ()
        if no == V.Known(False):
            if_true = fact.if_true + on_yes.if_true
        elif yes == V.Known(False):
            if_true = fact.if_false + on_no.if_true
        if yes == V.Known(True):
            if_false = fact.if_false + on_no.if_false
        elif no == V.Known(True):
            if_false = fact.if_true + on_yes.if_false
        note(it, result, Fact(if_true, if_false))


@contextmanager
def assuming(it: Interpreter, kept: Sequence[Kept]) -> Iterator[None]:
    """Variables of the innermost activation hold the narrower values inside."""
    env = it.frame.env
    saved: dict[Var, V.Value] = {}
    try:
        for union, cases in kept:
            narrow: V.Value | None = None
            for var, value in list(env.items()):
                if value is union:
                    narrow = narrowed(it, union, cases) if narrow is None else narrow
                    saved.setdefault(var, value)
                    env[var] = narrow
        yield
    finally:
        env.update(saved)


def keep(it: Interpreter, kept: Sequence[Kept]) -> None:
    """Variables of the innermost activation hold the narrower values up to the block's end."""
    env = it.frame.env
    for union, cases in kept:
        holders = [var for var, value in env.items() if value is union]
        if holders:
            narrow = narrowed(it, union, cases)
            for var in holders:
                it.assumed.append((env, var, union))
                env[var] = narrow


def forget(it: Interpreter, mark: int) -> None:
    """Undo what `keep` did since `it.assumed` had this length."""
    while len(it.assumed) > mark:
        env, var, value = it.assumed.pop()
        env[var] = value


def narrowed(it: Interpreter, value: V.Union, cases: frozenset[int]) -> V.Value:
    """The value, known to be one of these cases (numbers of `value.cases`)."""
    kept = tuple(c for i, c in enumerate(value.cases) if i in cases)
    if len(kept) == 1:
        return kept[0]
    tag = it.builder.handle(value.tag)
    shifted = tag
    for absent in sorted(set(range(len(value.cases))) - cases):
        above = it.emit("cast", it.emit("greater", tag, absent), dtype=tag.dtype, weak=True)
        shifted = it.emit("subtract", shifted, above)
    return V.Union(shifted.atom, kept)
