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
from pyrelay.opt.kernel_calls import closed, fresh_name


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
        self.functions = module.functions
        self.taken = set(module.functions)
        self.made: dict[str, Function] = {}

    def block(self, caller: str, block: Block) -> Block:
        return walk.with_lets(block, lambda let: self._let(caller, let))

    def _let(self, caller: str, let: Let) -> Let:
        if isinstance(let.rhs, Loop) and computes(let, stores=True):
            called = self._called(caller, let)
            if called is not None:
                return called
        return walk.with_inner_blocks(let, lambda b: self.block(caller, b))

    def _called(self, caller: str, let: Let) -> Let | None:
        """The call of a function that is the loop, if native code can run it."""
        native = self.recursion.native
        inside = [each.rhs for block in walk.blocks(let.rhs) for each in walk.nested_lets(block)]
        called = {rhs.function for rhs in inside if isinstance(rhs, FnCall)}
        if not called or not called <= native.keys():
            return None
        name = fresh_name(f"{caller}_loop", self.taken)
        function, params, extents = closed(name, [let], let.outs, let.dims)
        reached = dict.fromkeys(n for each in called for n in self.recursion.reached(each))
        functions = (self.functions[each] for each in reached)
        found = threaded([*functions, function], stores=True, parts=self.parts)
        if replace(self.recursion, native=found).passing(caller, function.name) is None:
            return None
        self.taken.add(function.name)
        self.made[function.name] = function
        return replace(let, rhs=FnCall(function.name, params, extents))
