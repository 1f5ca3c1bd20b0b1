"""Loops whose rounds call recursive functions become functions, which native code can run whole.

In: a module after `normalise`, which of its functions recurse, and which are parts
(`growing_parts`). Out: the module with more functions. Where a plan runs such a loop, each round of
it enters native code anew, and leaves it:

    for i in range(n):                      def found_loop(labels, size, n):
        if labels[i] == 0:           as         for i in range(n): ...
            size += found(labels, i)            return labels, size

The native function of the loop calls those of the recursion as these call each other.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir import walk
from pyrelay.ir.nodes import Block, FnCall, Function, Let, Loop, Module
from pyrelay.lower.kernels.recursion import Recursion, recursion
from pyrelay.lower.kernels.threaded_arrays import computes, threaded
from pyrelay.opt.kernel_calls import closed


def with_called_loops(
    module: Module, recursive: frozenset[str], parts: frozenset[str]
) -> tuple[Module, frozenset[str]]:
    """The module whose loops, outermost first, are functions if native code can run them, and these
    functions. Loops of functions that recurse stay as they are.
    """
    found = recursion(module, recursive, resumes=True, parts=parts)
    if recursive.isdisjoint(found.native):
        return module, frozenset()
    loops = _Loops(found, module, parts)
    functions = {}
    for name, f in module.functions.items():
        body = f.body if name in recursive else loops.block(name, f.body)
        functions[name] = f if body is f.body else replace(f, body=body)
    return module.holding({**functions, **loops.made}), frozenset(loops.made)


class _Loops:
    def __init__(self, recursion: Recursion, module: Module, parts: frozenset[str]) -> None:
        self.recursion, self.parts = recursion, parts
        self.functions = [module.functions[name] for name in recursion.native]
        self.taken = set(module.functions)
        self.made: dict[str, Function] = {}

    def block(self, caller: str, block: Block) -> Block:
        lets = tuple(self._let(caller, let) for let in block.lets)
        same = all(new is old for new, old in zip(lets, block.lets, strict=True))
        return block if same else replace(block, lets=lets)

    def _let(self, caller: str, let: Let) -> Let:
        if isinstance(let.rhs, Loop) and computes(let, stores=True):
            called = self._called(caller, let)
            if called is not None:
                return called
        rhs = walk.replace_blocks(let.rhs, lambda b: self.block(caller, b))
        return let if rhs is let.rhs else replace(let, rhs=rhs)

    def _called(self, caller: str, let: Let) -> Let | None:
        """The call of a function that is the loop, if native code can run it."""
        inside = [each.rhs for block in walk.blocks(let.rhs) for each in walk.nested_lets(block)]
        if not any(isinstance(rhs, FnCall) for rhs in inside):
            return None
        function, params, extents = closed(self._name(caller), [let], let.outs, let.dims)
        found = threaded([*self.functions, function], stores=True, parts=self.parts)
        if not replace(self.recursion, native=found).is_worth_it(caller, function.name):
            return None
        self.taken.add(function.name)
        self.made[function.name] = function
        return replace(let, rhs=FnCall(function.name, params, extents))

    def _name(self, caller: str) -> str:
        number = 1
        while (name := f"{caller}_loop{number}") in self.taken:
            number += 1
        return name
