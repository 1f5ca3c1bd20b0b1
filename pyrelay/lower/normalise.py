"""The last step before planning: everything that is not plan code becomes a KernelCall.

In: a module after `fuse`. Out: a module whose OpCalls are plan ops (`plan_ops.PLAN_OPS`) and
library ops with kernels of their own: a single op with an element rule becomes a group, a scan or
scatter becomes loops (`library.py`).
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import (
    Block,
    Function,
    KernelCall,
    Let,
    Module,
    OpCall,
    Var,
)
from pyrelay.ir.types import TensorType
from pyrelay.lower.library import expanded
from pyrelay.lower.plan_ops import PLAN_OPS


def kernels_only(module: Module) -> Module:
    """Wrap each op that is left outside kernels; everything else stays as it is."""
    functions = {
        name: replace(function, body=_block(function.body))
        for name, function in module.functions.items()
    }
    return Module(functions, module.entry)


def _block(block: Block) -> Block:
    lets = tuple(new for let in block.lets for new in _lets(let))
    return Block(lets, block.results, block.dims)


def _lets(let: Let) -> tuple[Let, ...]:
    rhs = let.rhs
    if isinstance(rhs, OpCall):
        if rhs.op.name in PLAN_OPS:
            return (let,)
        if rhs.op.element is not None:
            return (Let(let.outs, group(let), let.dims, span=let.span),)
        return expanded(let) or (let,)
    return (Let(let.outs, walk.replace_blocks(rhs, _block), let.dims, span=let.span),)


def group(let: Let) -> KernelCall:
    """The op of a Let as a fused group of its own."""
    call = let.rhs
    assert isinstance(call, OpCall)
    args = tuple(dict.fromkeys(a for a in call.args if isinstance(a, Var)))
    names = walk.Renaming()
    symbols = tuple(dict.fromkeys(_symbols(let, args)))
    inner = tuple(map(names.symbol, symbols))
    params = tuple(map(names.var, args))
    body = walk.copy_block(Block((let,), let.outs), names)
    function = Function(call.op.name, params, body, inner, span=let.span)
    return KernelCall(function, args, tuple(map(dims.of, symbols)))


def _symbols(let: Let, args: tuple[Var, ...]) -> list[Symbol]:
    assert isinstance(let.rhs, OpCall)
    found: list[Symbol] = []
    for var in (*args, *let.outs):
        assert isinstance(var.type, TensorType)
        found += types.type_symbols(var.type)
    for value in let.rhs.attrs.values():
        found += walk.attr_symbols(value)
    return found
