"""Kernel calls: Lets taken out of a block into a closed function of their own.

In: Lets of Core and which of their variables are read afterwards. Out: one Let that calls them as a
kernel, its free variables and extents passed as arguments; or the function alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import (
    Atom,
    Block,
    FnCall,
    Function,
    If,
    KernelCall,
    Let,
    Loop,
    OpCall,
    Rhs,
    Var,
)
from pyrelay.opt import places


def from_old_state(
    members: Sequence[Let], update: OpCall
) -> tuple[Sequence[Let], Mapping[Atom, Atom]]:
    """Members that read what `update` writes at other places: they read it as another variable.

    Also gives what that variable stands for: the planner makes a copy to write to.
    """
    base = update.args[0]
    assert isinstance(base, Var)
    old = Var(base.name, base.type, span=base.span)
    changed = []
    for let in members:
        rhs = let.rhs
        assert isinstance(rhs, OpCall)
        elsewhere = rhs is not update and base in rhs.args
        if elsewhere and not places.reads_same_part(let, update):
            args = tuple(old if a is base else a for a in rhs.args)
            let = replace(let, rhs=replace(rhs, args=args))
        changed.append(let)
    return changed, {old: base}


def with_extents(members: Sequence[Let], extents: Mapping[Var, Let]) -> Sequence[Let]:
    """Loops and branches with the extents they read, so that kernels know index ranges."""
    if all(isinstance(let.rhs, OpCall) for let in members):
        return members
    free = walk.free_vars(Block(tuple(members), ()))
    return (*(extents[v] for v in free if v in extents), *members)


def lets_of(let: Let) -> tuple[Let, ...]:
    """The Lets that a call of a kernel stands for; another Let itself."""
    if not isinstance(let.rhs, KernelCall):
        return (let,)
    names = walk.Renaming()
    names.atoms.update(zip(let.rhs.function.params, let.rhs.args, strict=True))
    names.dims.update(zip(let.rhs.function.dims, let.rhs.dims, strict=True))
    body = walk.copy_block(let.rhs.function.body, names)
    given = dict(zip(body.results, let.outs, strict=True))
    return tuple(
        replace(each, outs=tuple(given.get(v, v) for v in each.outs)) for each in body.lets
    )


def kernel_call(members: Sequence[Let], outs: Sequence[Var], copies: Mapping[Atom, Atom]) -> Let:
    """Lets as one call of a closed function with these results.

    For a free variable in `copies`, what it stands for is passed.
    """
    function, params, extents = closed(_name(members), members, outs)
    args = tuple(copies.get(p, p) for p in params)
    return Let(tuple(outs), KernelCall(function, args, extents), span=function.span)


def closed(
    name: str, members: Sequence[Let], outs: Sequence[Var], ends: Sequence[Symbol] = ()
) -> tuple[Function, tuple[Var, ...], tuple[Extent, ...]]:
    """Lets as a closed function with these results, and what a call of it passes in their place.

    `ends` are symbols of the results that the Lets bind.
    """
    inner = Block(tuple(members), tuple(outs), tuple(map(dims.of, ends)))
    params = walk.free_vars(inner)
    symbols = _symbols(inner, params)
    names = walk.Renaming()
    own_symbols = tuple(names.symbol(s) for s in symbols)
    own_params = tuple(names.var(p) for p in params)
    body = walk.copy_block(inner, names)
    function = Function(name, own_params, body, own_symbols, span=members[-1].span)
    return function, params, tuple(map(dims.of, symbols))


def fresh_name(stem: str, taken: Container[str]) -> str:
    """A name for a function, of the form `stem1`, that none of some others has."""
    return next(name for n in itertools.count(1) if (name := f"{stem}{n}") not in taken)


def _name(members: Sequence[Let]) -> str:
    """A name that tells what a kernel computes: its first ops."""
    words = [let.rhs.op.name if isinstance(let.rhs, OpCall) else "loop" for let in members]
    return "_".join(words[:4])


def _extents(rhs: Rhs) -> tuple[Extent, ...]:
    """The extents that a call passes, a loop begins with, and its blocks or a branch's end with."""
    match rhs:
        case FnCall(dims=passed) | KernelCall(dims=passed):
            return passed
        case If(then=then, orelse=orelse):
            return then.dims + orelse.dims
        case Loop(init_dims=first, body=body):
            return first + body.dims
    return ()


def _symbols(block: Block, params: Iterable[Var]) -> tuple[Symbol, ...]:
    """The symbols in types and attributes that are not bound inside, by first occurrence."""
    found: dict[Symbol, None] = {}
    bound: set[Symbol] = set()
    for param in params:
        if param.type is not None:
            found.update(dict.fromkeys(types.type_symbols(param.type)))
    for let in walk.nested_lets(block):
        bound.update(let.dims)
        for var in (*let.outs, *walk.block_binders(let.rhs)):
            if var.type is not None:
                found.update(dict.fromkeys(types.type_symbols(var.type)))
        if isinstance(let.rhs, OpCall):
            for value in let.rhs.attrs.values():
                found.update(dict.fromkeys(walk.attr_symbols(value)))
        if isinstance(let.rhs, Loop):
            bound.update(let.rhs.dims)
        for extent in _extents(let.rhs):
            found.update(dict.fromkeys(dims.symbols(extent)))
    return tuple(s for s in found if s not in bound)
