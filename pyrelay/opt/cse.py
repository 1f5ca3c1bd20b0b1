"""Common subexpression elimination: what a dominating Let computed already is not computed again.

In: a module. Out: the module in which equal pure ops on equal operands appear once, and equal calls
of functions without effects. What may raise is merged with an equal one before it: had it raised,
the program would not have come here.
Extents that are the same number, bound in one block, are one extent.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Atom, Const, FnCall, Let, Module, OpCall
from pyrelay.ir.op import Effect
from pyrelay.ir.types import TapeType
from pyrelay.ir.walk import called, nested_lets
from pyrelay.opt.rewrite import Replaced, Replacement, Scope, rewrite_module
from pyrelay.records import dataclass

#: Ops of which no two give the same: a placeholder, and what is to be computed again.
_NEVER_EQUAL = frozenset(["undef", "barrier"])


def cse(module: Module) -> Module:
    """Merge equal computations."""
    pure = _pure(module)
    return rewrite_module(module, lambda: _Merge(pure), fresh=True)


def _pure(module: Module) -> frozenset[str]:
    """The functions that Python sees nothing of, all that they call included."""
    calls, impure = dict[str, set[str]](), set[str]()
    if len(module.functions) == 1:
        return frozenset()
    for name, function in module.functions.items():
        calls[name] = set(called(function))
        if any(
            isinstance(let.rhs, OpCall) and let.rhs.op.effect is Effect.HOST
            for let in nested_lets(function.body)
        ):
            impure.add(name)
    while more := {name for name, own in calls.items() if own & impure} - impure:
        impure |= more
    return frozenset(calls.keys() - impure)


def atom_key(atom: Atom) -> Any:
    """Equal for the same variable, and for constants of equal type and bits."""
    if isinstance(atom, Const):
        return (atom.type, type(atom.value), repr(atom.value))
    return atom


@dataclass
class _Merge:
    pure: frozenset[str]
    known: dict[Any, Let] = field(default_factory=dict)
    extents: dict[Any, tuple[Builder, Symbol]] = field(default_factory=dict)

    def __call__(self, let: Let, builder: Builder, scope: Scope) -> Replacement:
        rhs = let.rhs
        if isinstance(rhs, OpCall) and rhs.op.name == "as_extent":
            return self._extent(let, rhs, builder)
        if not isinstance(rhs, (OpCall, FnCall)) or not let.outs or let.dims:
            return None
        if any(isinstance(v.type, TapeType) for v in (*let.outs, *rhs.args)):
            return None
        key: Any = tuple(map(atom_key, rhs.args))
        if isinstance(rhs, FnCall):
            if rhs.function not in self.pure:
                return None
            key = (rhs.function, key, rhs.dims)
        elif rhs.op.effect is Effect.HOST or rhs.op.name in _NEVER_EQUAL:
            return None
        else:
            key = (rhs.op.name, key, rhs.attrs)
        found = self.known.get(key)
        # An entry from a finished block is stale: its variables are out of sight.
        if found is not None and found.outs[0] in scope.definitions:
            return found.outs
        self.known[key] = let
        return None

    def _extent(self, let: Let, call: OpCall, builder: Builder) -> Replacement:
        key = atom_key(call.args[0])
        block, symbol = self.extents.get(key, (None, None))
        if block is builder and symbol is not None:
            return Replaced((), (dims.of(symbol),))
        self.extents[key] = builder, let.dims[0]
        return None
