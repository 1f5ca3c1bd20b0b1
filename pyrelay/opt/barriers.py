"""Barriers that keep nothing apart are what they let through.

In: a module whose derivatives are expanded, calls written out. Out: one with a `barrier` only where
something else is computed from its operand in the same round, of which what follows the barrier
could be taken. A row of what a loop has kept, which nothing else reads, needs none; nor does what
comes from outside of a loop, so that what is computed of it alone still leaves the loop.
"""

from __future__ import annotations

from dataclasses import field

from pyrelay.ir import walk
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Atom, Block, Let, Loop, Module, Var
from pyrelay.opt.rewrite import Replacement, Scope, rewrite
from pyrelay.records import dataclass


def barriers(module: Module) -> Module:
    """Remove the barriers that keep nothing apart."""
    functions = {}
    for name, function in module.functions.items():
        found = _Found()
        found.function(function.params, function.body)
        functions[name] = rewrite(function, found.rule) if found.any else function
    return module.holding(functions)


@dataclass
class _Found:
    """By variable: in which loop it is bound, and how many times it is read; by barrier, its loop.
    """

    bound: dict[Atom, Loop | None] = field(default_factory=dict)
    reads: dict[Atom, int] = field(default_factory=dict)
    any: bool = False

    def function(self, params: tuple[Var, ...], body: Block) -> None:
        self.bound.update(dict.fromkeys(params))
        pending: list[tuple[Block, Loop | None]] = [(body, None)]
        while pending:
            block, loop = pending.pop()
            for let in block.lets:
                self.any |= walk.is_call(let, "barrier")
                self.bound.update(dict.fromkeys(let.outs, loop))
                self._read(walk.operands(let.rhs))
                inner = let.rhs if isinstance(let.rhs, Loop) else loop
                self.bound.update(dict.fromkeys(walk.block_binders(let.rhs), inner))
                pending += ((b, inner) for b in walk.blocks(let.rhs))
            self._read(block.results)

    def _read(self, atoms: tuple[Atom, ...]) -> None:
        for atom in atoms:
            self.reads[atom] = self.reads.get(atom, 0) + 1

    def rule(self, let: Let, builder: Builder, scope: Scope) -> Replacement:
        if not walk.is_call(let, "barrier"):
            return None
        x = walk.call_of(let).args[0]
        around = self.bound.get(let.outs[0])
        outside = around is not None and self.bound.get(x, around) is not around
        return (x,) if outside or self.reads.get(x, 0) <= 1 else None
