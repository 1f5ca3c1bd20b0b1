"""Branches whose conditions wait for what the branches chose a round before are guessed.

In: the body of a kernel, for the CPU. Out: the same, in which

    for i in range(n):
        y = x + step(i)
        if u(i) < exp(x * x - y * y): v = y
        else: v = x
        x = v

has a `guessed` branch. Its arms are so short that LLVM would compute both and choose. Then each
round waits for all that the condition is made of, from the number that the round before chose on:
where that takes some L cycles, a branch that is guessed wrong with probability p costs p * (L + M)
instead, M for what has been begun in vain, some 15 cycles. So from L = M on a branch is never
slower, however hard to guess ("The predictability of branches in libraries", Calder, Grunwald and
Srivastava, MICRO 1995, have how seldom they are).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    For,
    If,
    Load,
    Local,
    Operand,
    Statement,
    While,
    replace_bodies,
    statements,
)

_LONG = 20  # cycles from a choice to the condition of the next one
_MOST_BRANCHES = 24  # of a round
_MOST_STATEMENTS = 600  # of a round

#: Cycles until the result of a primitive of floats is there, but for elementary functions.
_FLOATS = {
    "add": 3, "subtract": 3, "multiply": 3, "divide": 13, "true_quotient": 20, "sqrt": 15,
    "fma": 4, "where": 2, "minimum": 2, "maximum": 2, "negative": 1, "absolute": 1,
    "floor": 4, "ceil": 4, "trunc": 4, "rint": 4, "cast": 7,
}  # fmt: skip
_FUNCTION = 20
#: Of integers and truth values; all others take a cycle.
_INTEGERS = {"multiply": 3, "floor_divide": 14, "remainder": 14, "cast": 5}
_COMPARED = frozenset(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
_LOAD = 4

_Ages = dict[Operand, int]


def with_guessed_branches(body: Body) -> Body:
    """The body with branches that are guessed."""
    out: list[Statement] = []
    for statement in body:
        changed = replace_bodies(statement, with_guessed_branches)
        if isinstance(changed, While) or (isinstance(changed, For) and not changed.lanes):
            changed = _round(changed)
        out.append(changed)
    return tuple(out)


def _round(loop: For | While) -> For | While:
    branches = [s for s in _branches(loop.body) if _is_short(s)]
    if not branches or len(branches) > _MOST_BRANCHES:
        return loop
    if sum(1 for _ in statements(loop.body)) > _MOST_STATEMENTS:
        return loop
    waiting = {branch for branch in branches if _cycles(loop.body, branch) >= _LONG}
    return replace(loop, body=_marked(loop.body, waiting)) if waiting else loop


def _branches(body: Body) -> Iterator[If]:
    """The branches of a round, not of loops inside."""
    for s in body:
        if isinstance(s, If) and not s.unlikely:
            yield s
            yield from _branches(s.then)
            yield from _branches(s.orelse)


def _is_short(branch: If) -> bool:
    """Whether the arms only compute and assign, branches in them included."""
    inside = (*statements(branch.then), *statements(branch.orelse))
    return not branch.guessed and all(isinstance(s, (Compute, Load, Assign, If)) for s in inside)


def _cycles(body: Body, branch: If) -> int:
    """Cycles from what a branch assigns to its condition in the round behind; 0 if it does not
    depend on that."""
    walk = _Walk(branch)
    ages = walk.through(body, {})
    walk.through(body, ages)
    return walk.found


class _Walk:
    """Follows what a branch assigns through a round."""

    def __init__(self, branch: If) -> None:
        self.branch = branch
        self.found = 0

    def through(self, body: Body, ages: _Ages) -> _Ages:
        """How long ago a branch chose what operands are made of, behind a body."""
        for s in body:
            match s:
                case Compute(out=out, args=args):
                    _enter(ages, out, args, latency(s))
                case Load(out=out, index=index):
                    _enter(ages, out, (index,), _LOAD)
                case Assign(variable=variable, value=value):
                    _enter(ages, variable, (value,), 0)
                case If() if s is self.branch:
                    self.found = ages.get(s.cond, 0)
                    for each in (*statements(s.then), *statements(s.orelse)):
                        if isinstance(each, Assign):
                            ages[each.variable] = 0
                case If(then=then, orelse=orelse):
                    first, second = (self.through(arm, dict(ages)) for arm in (then, orelse))
                    ages = first
                    for operand, age in second.items():
                        ages[operand] = max(age, ages.get(operand, 0))
                case For() | While():
                    for each in statements(s.body):
                        if isinstance(each, Assign):
                            ages.pop(each.variable, None)
        return ages


def _enter(ages: _Ages, out: Local, args: tuple[Operand, ...], cycles: int) -> None:
    known = [ages[a] for a in args if a in ages]
    if known:
        ages[out] = max(known) + cycles
    else:
        ages.pop(out, None)


def latency(s: Compute) -> int:
    """Cycles until what a primitive computes is there."""
    kinds = {a.dtype.kind for a in s.args}
    if s.out.dtype.kind == "f" or "f" in kinds:
        if s.primitive in _COMPARED or s.out.dtype.kind == "b":
            return 3
        return _FLOATS.get(s.primitive, _FUNCTION)
    return _INTEGERS.get(s.primitive, 1)


def _marked(body: Body, waiting: set[If]) -> Body:
    def one(s: Statement) -> Statement:
        if isinstance(s, (For, While)):
            return s
        changed = replace_bodies(s, lambda inner: _marked(inner, waiting))
        if s in waiting:
            assert isinstance(changed, If)
            return replace(changed, guessed=True)
        return changed

    return tuple(map(one, body))
