"""Short loops over checked indices do several rounds at a time.

In: the body of a kernel, its checks in unlikely branches (`cold_paths`). Out: the same, in which an
innermost loop with few statements and an index that it has to check does four rounds in one, and
the rest one by one. LLVM does so itself where a loop has one way out only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay.ir.types import i64
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
from pyrelay.lower.passes.copies import Copy

_LARGEST = 14  # statements of a round, checks not counted
_MOST_CHECKS = 3
_ZERO, _TWO = Literal(0, i64), Literal(2, i64)


def unrolled(body: Body) -> Body:
    """The body with its short checked loops unrolled."""
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, For) and _pays(statement):
            out += _by_four(statement)
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
