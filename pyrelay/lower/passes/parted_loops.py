"""Loops over what lies in several parts: `np.concatenate`, `np.roll`, `np.pad`.

In: the body of a kernel. Out: the same, in which an innermost loop with a branch that asks whether
its index has reached a number that does not change is two loops, one up to that number and one from
there on, without the branch: each reads one part, by vectors where LLVM sees that it can ("index
set splitting", Wolfe, "High performance compilers for parallel computing", 1996).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    Body,
    Break,
    Compute,
    For,
    If,
    Literal,
    Local,
    Operand,
    Statement,
    While,
    bound_by,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.copies import Copy

_LARGEST = 60  # statements of a round
_SHORTEST = 16  # rounds, if they are known
_DEEPEST = 3  # numbers that an index is compared with


def parted(body: Body) -> Body:
    """The body with its loops over several parts as loops over one part each."""
    if not any(isinstance(s, If) for s in statements(body)):
        return body
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, For) and _is_fit(statement):
            out += _parts(statement, 0)
        else:
            out.append(replace_bodies(statement, parted))
    return tuple(out)


def _is_fit(loop: For) -> bool:
    start, stop = loop.start, loop.stop
    known = isinstance(start, Literal) and isinstance(stop, Literal)
    if known and stop.value - start.value <= _SHORTEST:  # type: ignore[union-attr]
        return False  # LLVM makes no loop of it
    inside = list(statements(loop.body))
    if len(inside) > _LARGEST or loop.rescaled is not None:
        return False
    return not any(isinstance(s, (For, While, Break)) for s in inside)


def _parts(loop: For, depth: int) -> Iterator[Statement]:
    found = _asked(loop) if depth < _DEEPEST else None
    if found is None:
        yield loop
        return
    cond, end, maker = found
    if maker is not None:
        end = Local(i64)
        yield Compute(end, maker.primitive, maker.args)
    least, middle = Local(i64), Local(i64)
    yield Compute(least, "minimum", (end, loop.stop))
    yield Compute(middle, "maximum", (least, loop.start))
    before = replace(loop, stop=middle, body=_decided(loop.body, cond, True))
    yield from _parts(before, depth + 1)
    after = replace(loop, start=middle, body=_decided(loop.body, cond, False))
    (copy,) = Copy({}, set()).body((after,))
    assert isinstance(copy, For)
    yield from _parts(copy, depth + 1)


def _asked(loop: For) -> tuple[Local, Operand, Compute | None] | None:
    """What a branch of a loop asks, the first index for which that is false, and what computes this
    inside the loop, if that is the place."""
    made = {s.out: s for s in loop.body if isinstance(s, Compute)}
    bound: set[Operand] = {o for s in statements((loop,)) for o in bound_by(s)}
    for s in loop.body:
        asked = made.get(s.cond) if isinstance(s, If) and isinstance(s.cond, Local) else None
        if asked is None or asked.primitive != "less" or asked.args[0] is not loop.index:
            continue
        end = asked.args[1]
        if end not in bound:
            return asked.out, end, None
        maker = made.get(end) if isinstance(end, Local) else None
        if maker is not None and bound.isdisjoint(maker.args):
            return asked.out, end, maker
    return None


def _decided(body: Body, cond: Local, truth: bool) -> Body:
    """The body in which a condition is known."""
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, If) and statement.cond is cond:
            out += statement.then if truth else statement.orelse
        else:
            out.append(statement)
    return tuple(out)
