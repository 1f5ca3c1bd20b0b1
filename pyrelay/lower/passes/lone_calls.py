"""Functions of floats that wait for each other from round to round are the C library's.

In: a body of kernel IR, for the CPU. Out: the same, in which exponentials, logarithms, powers and
the like are `lone_...` where a round needs what one before it made of them:

    for i in range(n):              for i in range(n):
        x = math.exp(-x)       as       x = lone_exp(-x)

Ours have no branches and no tables, so that loops of them are vectors: many at a time, but each
takes long. Rounds that hand on what such a function gives to its own operand are never vectors, and
what they take is the time of one after the other, in which the C library, which looks up tables and
asks whether an operand is special, is a third faster. So are rounds whose end hangs on one, and
those that add floats up one after the other, `if r < 2.0: s += math.exp(-r)`, or hand on arrays
that loops inside them go through, unless they have become lanes (`jammed_loops`): then it stays so
in what is left of them. Any other call stays as it is: it may be part of a vector, and its numbers
the same in all its lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from typing import TypeAlias

from pyrelay.ir.types import f32, f64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Break,
    Compute,
    For,
    If,
    Literal,
    Load,
    Operand,
    Statement,
    Store,
    While,
    operands,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.ordered_sums import adds_in_order

_QUICK = {
    f32: frozenset(["exp", "exp2", "log", "log2", "power", "sin", "cos"]),
    f64: frozenset([
        "exp", "exp2", "log", "log2", "log10", "log1p", "power", "erf", "arcsinh", "arccosh",
        "arctanh",
    ]),
}  # fmt: skip
"""Functions of which the C library's take less time, one after the other. Sines of doubles are its
own anyway."""

_ORDERED = frozenset(["add", "subtract", "multiply", "divide", "fma"])
_END: object = object()  # what a round's being the last one hangs on
_Readers: TypeAlias = dict[object, list[object]]


def with_lone_calls(body: Body) -> Body:
    """The body with calls of the C library in place of functions that wait for each other."""
    if not any(_is_quick(s) for s in statements(body)):
        return body
    lanes = {
        inner.primitive for s in statements(body) if isinstance(s, For) and s.lanes
        for inner in statements(s.body) if isinstance(inner, Compute)
    }  # fmt: skip

    def walked(part: Body) -> Body:
        return tuple(replace_bodies(_in_loop(s, lanes), walked) for s in part)

    return walked(body)


def _is_quick(statement: Statement) -> bool:
    return (
        isinstance(statement, Compute)
        and statement.primitive in _QUICK.get(statement.out.dtype, ())
    )


def _in_loop(loop: Statement, lanes: Set[str]) -> Statement:
    """A loop with those of its calls as others that stand in it, but in no loop inside; `lanes`:
    functions that stand in lanes."""
    if not isinstance(loop, (For, While)) or (
        isinstance(loop, For) and (loop.lanes or adds_in_order(loop))
    ):
        return loop
    computed = [s for s in _own(loop.body) if isinstance(s, Compute)]
    calls = [s for s in computed if _is_quick(s)]
    if not calls:
        return loop
    readers = _readers(loop.body, memory=False)
    waiting = {s for s in calls if _is_waiting(s, readers)}
    others = [s for s in calls if s.primitive not in lanes]
    if len(waiting) < len(calls) and any(
        s.primitive in _ORDERED and s.out.dtype.kind == "f" and _is_waiting(s, readers)
        for s in computed
    ):
        waiting.update(others)
    elif others and _has_long_loops(loop.body):
        readers = _readers(loop.body, memory=True)
        waiting.update(s for s in others if _is_waiting(s, readers))
    return replace_bodies(loop, lambda body: _renamed(body, waiting)) if waiting else loop


def _has_long_loops(body: Body) -> bool:
    """Whether a body has loops that LLVM does not write out: then what is around is no vector."""
    return any(
        isinstance(s, While) or (isinstance(s, For) and not isinstance(s.stop, Literal))
        for s in statements(body)
    )


def _own(body: Body) -> Iterator[Statement]:
    """The statements of a body and of its branches."""
    for s in body:
        if isinstance(s, If):
            yield from _own(s.then)
            yield from _own(s.orelse)
        else:
            yield s


def _readers(body: Body, memory: bool) -> _Readers:
    """What is computed with each number of a round, or chosen by it; and with each array as a
    whole, if `memory` says so."""
    readers: _Readers = {}
    anew = _told_anew(body)
    now: dict[Operand, object] = {}  # what variables stand for that each round tells anew

    def enter(given: Iterable[Operand], result: object) -> None:
        for operand in given:
            if not isinstance(operand, Literal):
                readers.setdefault(now.get(operand, operand), []).append(result)

    def walk(part: Body, conditions: tuple[Operand, ...]) -> None:
        for s in part:
            match s:
                case Compute(out, _, args):
                    enter(args, out)
                case Load(out=out, array=array, index=index):
                    enter([index], out)
                    if memory:
                        readers.setdefault(array, []).append(out)
                case Store(array=array, value=value) if memory:
                    enter([value, *conditions], array)
                case Assign(variable, value):
                    found = object() if variable in anew else variable
                    enter([value, *conditions], found)
                    if variable in anew:
                        now[variable] = found
                case Break(cond):
                    enter([cond, *conditions], _END)
                case If(cond, then, orelse):
                    walk(then, (*conditions, cond))
                    walk(orelse, (*conditions, cond))
                case For(start=start, stop=stop, body=inner):
                    walk(inner, (*conditions, start, stop))
                case While(body=inner):
                    walk(inner, conditions)

    walk(body, ())
    return readers


def _told_anew(body: Body) -> Set[Operand]:
    """Variables of which a round reads what it has assigned to them, outside branches and loops."""
    mentioned: set[Operand] = set()
    anew: set[Operand] = set()
    for s in body:
        if isinstance(s, Assign):
            if s.variable not in mentioned:
                anew.add(s.variable)
            mentioned.add(s.variable)
        for inner in statements((s,)):
            mentioned.update(operands(inner))
            if isinstance(inner, Assign) and inner is not s:
                mentioned.add(inner.variable)
                anew.discard(inner.variable)
    return anew


def _is_waiting(call: Compute, readers: _Readers) -> bool:
    """Whether a call is made of its own result, or a round is the last one by it."""
    wanted = {_END, call.out, *call.args}
    seen: set[object] = {call.out}
    pending: list[object] = [call.out]
    while pending:
        for result in readers.get(pending.pop(), ()):
            if result in wanted:
                return True
            if result not in seen:
                seen.add(result)
                pending.append(result)
    return False


def _renamed(body: Body, waiting: set[Compute]) -> Body:
    def one(s: Statement) -> Statement:
        if isinstance(s, Compute):
            return replace(s, primitive=f"lone_{s.primitive}") if s in waiting else s
        return replace_bodies(s, lambda inner: _renamed(inner, waiting))

    return tuple(map(one, body))
