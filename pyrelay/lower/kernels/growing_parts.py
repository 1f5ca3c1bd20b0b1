"""What makes room where a list, dict or set grows becomes a function, which native code calls.

In: a module after `normalise`. Out: the module with more functions, and their names. Native code
allocates nothing, but what an append does that finds no room does little else:

    storage = if more: pad(storage) else: storage   as   if more: append_part1(storage) else: ...

The plan runs such a function, seldom, and native code goes on (`recursion`).
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir import walk
from pyrelay.ir.nodes import Block, FnCall, Function, If, KernelCall, Let, Module
from pyrelay.lower.kernels.threaded_arrays import computes, computes_vectors
from pyrelay.opt.kernel_calls import closed, fresh_name
from pyrelay.opt.shapes import is_array


def with_growing_parts(module: Module) -> tuple[Module, frozenset[str]]:
    """The module, in which branches that make arrays longer call functions for it, and these."""
    parts = _Parts(module)
    functions = {
        name: replace(f, body=parts.block(name, f.body)) for name, f in module.functions.items()
    }
    if not parts.made:
        return module, frozenset()
    return module.holding({**functions, **parts.made}), frozenset(parts.made)


class _Parts:
    def __init__(self, module: Module) -> None:
        self.taken = set(module.functions)
        self.made: dict[str, Function] = {}

    def block(self, caller: str, block: Block, grows: bool = False) -> Block:
        """A block; one that `grows` calls functions for what native code does not compute."""
        return walk.with_lets(block, lambda let: self._let(caller, let, grows))

    def _let(self, caller: str, let: Let, grows: bool) -> Let:
        rhs = let.rhs
        if isinstance(rhs, KernelCall):
            native = computes(let, stores=True) or computes_vectors(let)
            return let if native or not grows else self._part(caller, let)
        return walk.with_inner_blocks(
            let, lambda b: self.block(caller, b, grows or (isinstance(rhs, If) and _grows(b)))
        )

    def _part(self, caller: str, let: Let) -> Let:
        name = fresh_name(f"{caller}_part", self.taken)
        function, params, extents = closed(name, [let], let.outs, let.dims)
        self.taken.add(name)
        self.made[name] = function
        return replace(let, rhs=FnCall(name, params, extents))


def _grows(block: Block) -> bool:
    """Whether a block makes an array longer."""
    return any(
        isinstance(let.rhs, KernelCall) and any(map(is_array, let.outs)) and any(
            walk.is_call(each, "pad") for each in walk.nested_lets(let.rhs.function.body)
        )
        for let in walk.nested_lets(block)
    )
