"""Kernel calls: Lets taken out of a block into a closed function of their own.

In: Lets of Core and which of their variables are read afterwards. Out: one Let that calls them as a
kernel, its free variables and extents passed as arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Atom, Block, Function, KernelCall, Let, OpCall, Var


def kernel_call(members: Sequence[Let], outs: Sequence[Var], copies: Mapping[Atom, Atom]) -> Let:
    """Lets as one call of a closed function with these results.

    For a free variable in `copies`, what it stands for is passed.
    """
    inner = Block(tuple(members), tuple(outs))
    params = walk.free_vars(inner)
    symbols = _symbols(inner, params)
    names = walk.Renaming()
    own_symbols = tuple(names.symbol(s) for s in symbols)
    own_params = tuple(names.var(p) for p in params)
    body = walk.copy_block(inner, names)
    span = members[-1].span
    function = Function(_name(members), own_params, body, own_symbols, span=span)
    args = tuple(copies.get(p, p) for p in params)
    call = KernelCall(function, args, tuple(dims.of(s) for s in symbols))
    return Let(tuple(outs), call, span=span)


def _name(members: Sequence[Let]) -> str:
    """A name that tells what a kernel computes: its first ops."""
    words = [let.rhs.op.name if isinstance(let.rhs, OpCall) else "loop" for let in members]
    return "_".join(words[:4])


def _symbols(block: Block, params: Iterable[Var]) -> tuple[Symbol, ...]:
    """The symbols in types and attributes, in order of first occurrence."""
    found: dict[Symbol, None] = {}
    for param in params:
        if param.type is not None:
            found.update(dict.fromkeys(types.type_symbols(param.type)))
    for let in walk.nested_lets(block):
        for var in (*let.outs, *walk.block_binders(let.rhs)):
            if var.type is not None:
                found.update(dict.fromkeys(types.type_symbols(var.type)))
        if isinstance(let.rhs, OpCall):
            for value in let.rhs.attrs.values():
                found.update(dict.fromkeys(walk.attr_symbols(value)))
    return tuple(found)
