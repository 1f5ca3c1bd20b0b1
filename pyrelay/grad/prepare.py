"""A function made ready for its derivative.

In: a Core function without requests. Out: a copy in which every variable and symbol is fresh, calls
of functions that do not recurse are inlined, and a loop whose test does more than straight-line
work on floating values is rotated for reverse mode, so that this work is part of its body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyrelay.grad.activity import carries_derivative
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.nodes import (
    Block,
    FnCall,
    Function,
    If,
    Let,
    Loop,
    OpCall,
    Var,
)
from pyrelay.ir.types import Type
from pyrelay.ir.walk import Renaming
from pyrelay.records import dataclass

STAY, LEAVE = constant(False), constant(True)


def recursive_functions(functions: Mapping[str, Function]) -> set[str]:
    """Names of the functions that can call themselves, directly or through others."""
    calls = {name: walk.called(f) for name, f in functions.items()}
    found = set()
    for name in functions:
        seen, pending = set(), list(calls[name])
        while pending:
            callee = pending.pop()
            if callee not in seen:
                seen.add(callee)
                pending += calls.get(callee, ())
        if name in seen:
            found.add(name)
    return found


def prepared(
    function: Function, functions: Mapping[str, Function], recursive: set[str], *,
    rotate: bool = True,
) -> Function:
    """The copy of a function described above, under the same name; loops stay without `rotate`."""
    names = Renaming()
    symbols = tuple(map(names.symbol, function.dims))
    params = tuple(map(names.var, function.params))
    body = _Copier(functions, recursive, rotate).block(function.body, names)
    return replace(function, params=params, body=body, dims=symbols)


def definitions(block: Block) -> dict[Var, Let]:
    """The Let that binds each variable of a block and of the blocks inside it."""
    return {out: let for let in walk.nested_lets(block) for out in let.outs}


@dataclass(slots=True)
class _Inlined:
    """A function body being copied into its caller."""

    lets: Iterator[Let]
    names: Renaming
    call: Let | None  # of the caller
    body: Block


class _Copier:
    def __init__(
        self, functions: Mapping[str, Function], recursive: set[str], rotate: bool
    ) -> None:
        self.functions, self.recursive, self.rotate = functions, recursive, rotate

    def block(self, block: Block, names: Renaming) -> Block:
        """Copy a block, inlining calls; call depth is kept on a list."""
        lets: list[Let] = []
        stack = [_Inlined(iter(block.lets), names, None, block)]
        while stack:
            here = stack[-1]
            for let in here.lets:
                if isinstance(let.rhs, FnCall) and let.rhs.function not in self.recursive:
                    stack.append(self._enter(let, let.rhs, here.names))
                    break
                lets.append(self._let(let, here.names))
            else:
                stack.pop()
                if here.call is not None:
                    outer = stack[-1].names
                    results = map(here.names.atom, here.body.results)
                    outer.atoms.update(zip(here.call.outs, results, strict=True))
                    extents = map(here.names.extent, here.body.dims)
                    outer.dims.update(zip(here.call.dims, extents, strict=True))
        finals = tuple(map(names.atom, block.results))
        return Block(tuple(lets), finals, tuple(map(names.extent, block.dims)))

    def _enter(self, let: Let, call: FnCall, outer: Renaming) -> _Inlined:
        function = self.functions[call.function]
        names = Renaming(
            dict(zip(function.params, map(outer.atom, call.args), strict=True)),
            dict(zip(function.dims, map(outer.extent, call.dims), strict=True)),
        )
        return _Inlined(iter(function.body.lets), names, let, function.body)

    def _let(self, let: Let, names: Renaming) -> Let:
        rhs = walk.copy_rhs(let.rhs, names, self.block)
        if self.rotate and isinstance(rhs, Loop) and needs_rotation(rhs):
            rhs = rotated(rhs)
        symbols = tuple(map(names.symbol, let.dims))
        return Let(tuple(map(names.var, let.outs)), rhs, symbols, span=let.span)


def needs_rotation(loop: Loop) -> bool:
    """True if the test hands over floating values and holds more than plain op calls."""
    if loop.test is None or not any(carries_derivative(v.type) for v in loop.handed):
        return False
    return any(not isinstance(let.rhs, OpCall) or let.dims for let in loop.test.lets)


def rotated(loop: Loop) -> Loop:
    """The same loop without a test: its body runs the test, then itself or the exit."""
    assert loop.test is not None
    body = Builder()
    body.lets += loop.test.lets
    passed, *handed = loop.test.results
    names = Renaming(dict(zip(loop.handed, handed, strict=True)))
    then = walk.copy_block(loop.body, names)
    if not loop.exits:
        then = replace(then, results=(STAY, *then.results))
    leave = Block((), (LEAVE, *loop.carried), tuple(dims.of(s) for s in loop.dims))
    after = Renaming()
    symbols = tuple(map(after.symbol, loop.dims))
    out_types: list[Type] = [types.PY_BOOL]
    out_types += [types.substitute(v.type, after.dims) for v in loop.carried if v.type is not None]
    outs = body.bind(If(passed, then, leave), out_types, dims=symbols)
    ended = body.block(outs, [after.extent(dims.of(s)) for s in loop.dims])
    return replace(loop, body=ended, test=None, handed=(), exits=True)
