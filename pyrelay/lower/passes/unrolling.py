"""Short loops over checked indices, and short `while` loops, do several rounds at a time.

In: the body of a kernel, its checks in unlikely branches (`cold_paths`). Out: the same, in which an
innermost loop with few statements and an index that it has to check does four rounds in one, and
the rest one by one. LLVM does so itself where a loop has one way out only. An innermost `while`
loop does four or two rounds in one, and may end after each of them: it has to count its rounds, for
Ctrl-C, which costs a short one as much as what it computes. Beside a division or a function of
floats that is nothing, and where several conditions are asked in each round, of which data decide
some, processors learn the branches of one round sooner than those of four.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

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
    Statement,
    Store,
    While,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.cleaning import is_slow
from pyrelay.lower.passes.copies import Copy

_LARGEST = 14  # statements of a round, checks not counted
_MOST_CHECKS = 3
_TIMES = ((24, 4), (48, 2))  # at most so many statements of a `while` loop: rounds in one
_MOST_ASKED = 2  # branches in the test of a loop that does several rounds in one
_ZERO, _TWO = Literal(0, i64), Literal(2, i64)


def unrolled(body: Body) -> Body:
    """The body with its short checked loops unrolled."""
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, For) and _pays(statement):
            out += _by_four(statement)
        elif isinstance(statement, While) and (times := _times(statement)) > 1:
            rounds = [Copy({}, set()).body(statement.body) for _ in range(times)]
            out.append(While(tuple(s for each in rounds for s in each), times))
        else:
            out.append(replace_bodies(statement, unrolled))
    return tuple(out)


def _pays(loop: For) -> bool:
    made = {s.out: s.primitive for s in loop.body if isinstance(s, Compute)}
    checks = [s for s in loop.body if isinstance(s, If) and s.unlikely]
    if not 0 < len(checks) <= _MOST_CHECKS:
        return False
    if not any(made.get(s.cond) == "outside" for s in checks):  # type: ignore[arg-type]
        return False
    if any(isinstance(s, (For, While, Break, Call)) for s in statements(loop.body)):
        return False
    usual = [s for s in loop.body if s not in checks]
    if any(isinstance(s, (If, Fail)) for s in usual):
        return False
    costly = [s for s in usual if isinstance(s, (Compute, Load, Store, Assign))]
    return len(costly) <= _LARGEST


def _times(loop: While) -> int:
    """How many rounds of a loop are one; where they are few, none is counted."""
    if loop.most is not None:
        return 1
    if any(isinstance(s, (For, While, Call)) for s in statements(loop.body)):
        return 1
    if any(isinstance(s, Compute) and is_slow(s) for s in _usual(loop.body)):
        return 1
    if _has_joined_test(loop):
        return 1
    size = sum(1 for s in _usual(loop.body) if not isinstance(s, (Fail, If)))
    return next((times for most, times in _TIMES if size <= most), 1)


def _has_joined_test(loop: While) -> bool:
    """Whether each round first asks for several conditions, as `while i < n and j < n and x[i] <
    y[j]`."""
    makers = {s.out: s for s in loop.body if isinstance(s, Compute)}
    for place, statement in enumerate(loop.body):
        if isinstance(statement, (Assign, Store)):
            return False
        if isinstance(statement, Break):
            maker = makers.get(statement.cond)  # type: ignore[arg-type]
            tested = statement.cond if maker is None else maker.args[0]
            if not (isinstance(tested, Local) and tested.variable and tested.dtype == bool_):
                return False
            asked = [s for s in _usual(loop.body[:place]) if isinstance(s, If) and not s.unlikely]
            return len(asked) >= _MOST_ASKED
    return False


def _usual(body: Body) -> Iterator[Statement]:
    """The statements of a body but for those of unlikely branches."""
    waiting = [body]
    while waiting:
        for s in waiting.pop():
            yield s
            if isinstance(s, If):
                waiting += [s.orelse] if s.unlikely else [s.then, s.orelse]


def _by_four(loop: For) -> Sequence[Statement]:
    count, some, quarters, done, more, start = (Local(i64) for _ in range(6))
    four, first = Local(i64), Local(i64)
    rounds: list[Statement] = [
        Compute(four, "left_shift", (start, _TWO)), Compute(first, "add", (four, loop.start)),
    ]  # fmt: skip
    for k in range(4):
        index = Local(i64)
        rounds.append(Compute(index, "add", (first, Literal(k, i64))))
        rounds += Copy({loop.index: index}, set()).body(loop.body)
    return (
        Compute(count, "subtract", (loop.stop, loop.start)),
        Compute(some, "maximum", (count, _ZERO)),
        Compute(quarters, "right_shift", (some, _TWO)),
        replace(loop, index=start, start=_ZERO, stop=quarters, body=tuple(rounds)),
        Compute(done, "left_shift", (quarters, _TWO)),
        Compute(more, "add", (done, loop.start)), replace(loop, start=more),
    )  # fmt: skip
