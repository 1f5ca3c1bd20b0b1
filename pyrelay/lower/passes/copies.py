"""Copies of bodies: loops that stand twice, calls that are made in line.

In: statements. Out: the same with names of their own. Variables keep theirs, unless they are given
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Break,
    Call,
    Compute,
    Fail,
    For,
    If,
    Load,
    Local,
    Operand,
    Read,
    Statement,
    Store,
    While,
    pointed,
    replace_bodies,
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
                array = pointed(s.array, at)
                yield Load(self._bind(s.out), array, place, s.parallel)
            case Store():
                array = pointed(s.array, at)
                yield replace(s, array=array, index=at(s.index), value=at(s.value))
            case Assign():
                variable = at(s.variable)
                assert isinstance(variable, Local)
                yield Assign(variable, at(s.value))
            case Break():
                yield Break(at(s.cond))
            case Fail():
                yield Fail(at(s.cond), s.site, tuple(map(at, s.values)))
            case If(then=then, orelse=orelse):
                then, orelse = self.body(then), self.body(orelse)
                yield replace(s, cond=at(s.cond), then=then, orelse=orelse)
            case For(index=index, start=start, stop=stop):
                bounds = at(start), at(stop)
                index = self._bind(index)
                yield replace(s, index=index, start=bounds[0], stop=bounds[1],
                              body=self.body(s.body))
            case While():
                yield replace(s, body=self.body(s.body))
            case Call(outs=outs, args=args):
                values = tuple(map(at, args))
                yield replace(s, outs=tuple(map(self._bind, outs)), args=values)


def without(body: Body, dropped: Set[Statement]) -> Body:
    """The body without some statements, wherever they stand in it."""
    return tuple(
        replace_bodies(s, lambda b: without(b, dropped)) for s in body if s not in dropped
    )


def makers(body: Sequence[Statement], index: Operand) -> tuple[Compute, ...]:
    """What of a body computes a number, such as a position."""
    wanted, made = {index}, list[Compute]()
    for s in reversed(body):
        if isinstance(s, Compute) and s.out in wanted:
            wanted |= set(s.args)
            made.append(s)
    return tuple(reversed(made))
