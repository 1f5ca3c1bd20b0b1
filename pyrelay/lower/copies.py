"""Copies of the bodies of innermost loops.

In: statements without loops. Out: the same with names of their own, as a loop that stands twice
needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyrelay.lower.kernel import (
    Assign,
    Body,
    Break,
    Compute,
    Fail,
    If,
    Load,
    Local,
    Operand,
    Read,
    Statement,
    Store,
)


class Copy:
    """Copies statements with names of their own, and conditions known to be false left out."""

    def __init__(self, names: Mapping[Operand, Operand], false: set[Local]) -> None:
        self.names = dict(names)
        self.false = false

    def operand(self, operand: Operand) -> Operand:
        """What an operand is called in the copy."""
        return self.names.get(operand, operand)

    def _bind(self, out: Local) -> Local:
        fresh = Local(out.dtype)
        self.names[out] = fresh
        return fresh

    def body(self, body: Body) -> Body:
        """The copy of a body."""
        return tuple(copy for s in body for copy in self._statement(s))

    def _statement(self, s: Statement) -> Iterator[Statement]:
        at = self.operand
        match s:
            case Fail(cond=cond) if cond in self.false:
                return
            case Compute(out=out, primitive="where", args=(cond, _, b)) if cond in self.false:
                self.names[out] = at(b)
            case Compute(out=out, args=args):
                values = tuple(map(at, args))
                yield Compute(self._bind(out), s.primitive, values)
            case Read(out=out):
                yield Read(self._bind(out), s.parameter)
            case Load(index=index):
                place = at(index)
                yield Load(self._bind(s.out), s.array, place, s.parallel)
            case Store():
                yield replace(s, index=at(s.index), value=at(s.value))
            case Assign():
                yield Assign(s.variable, at(s.value))
            case Break():
                yield Break(at(s.cond))
            case Fail():
                yield Fail(at(s.cond), s.site, tuple(map(at, s.values)))
            case If(then=then, orelse=orelse):
                then, orelse = self.body(then), self.body(orelse)
                yield replace(s, cond=at(s.cond), then=then, orelse=orelse)
            case _:
                raise AssertionError("an innermost loop holds no loop")
