"""Loops over arrays whose length is computed run one way for few elements, and another for many.

In: a module whose loops are what they will be, for a device with few threads. Out: the module in
which a loop that would be one kernel if its arrays had few elements stands in a branch that asks
whether they have: there their lengths say so of themselves (`ir/dims`, `Symbol.most`), and that
they are not among the shortest, so that parts like `u[1:-1]` have a length of their own.

Lengths of arguments are asked for before (`infer/short_arrays`), and need no branch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from operator import is_

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Atom, Block, If, Let, Loop, Module, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ops.work import element_work, most_elements
from pyrelay.opt.scalars import is_kernel, scalar_lets

_LEAST = 4  # elements along an axis; loops over fewer launch
_MOST_LETS = 200  # of a loop that is compiled twice
_MOST_SYMBOLS = 2


def near_loops(module: Module) -> Module:
    """Ask which way such loops run."""
    functions = {}
    for name, function in module.functions.items():
        body = _in_block(function.body)
        functions[name] = function if body is function.body else replace(function, body=body)
    return module.holding(functions)


def _in_block(block: Block) -> Block:
    lets: list[Let] = []
    for let in block.lets:
        if isinstance(let.rhs, Loop):
            lets += _two_ways(let, let.rhs) or (let,)
        elif isinstance(let.rhs, If):
            rhs = walk.replace_blocks(let.rhs, _in_block)
            lets.append(let if rhs is let.rhs else replace(let, rhs=rhs))
        else:
            lets.append(let)
    if len(lets) == len(block.lets) and all(map(is_, lets, block.lets)):
        return block
    return replace(block, lets=tuple(lets))


def _two_ways(let: Let, loop: Loop) -> list[Let] | None:
    """Lets that choose between two copies of a loop; None if one does."""
    shapes = list(_shapes(loop))
    bound = {s for each in walk.nested_lets(loop.body) for s in each.dims} | set(loop.dims)
    found = dict.fromkeys(
        s for shape in shapes for e in shape for s in dims.symbols(e) if s not in bound
    )
    symbols = [s for s in found if s.origin is Origin.RUNTIME and s.most is None]
    if not 0 < len(symbols) <= _MOST_SYMBOLS or len(symbols) < len(found) or loop.dims:
        return None
    if sum(1 for _ in walk.nested_lets(loop.body)) > _MOST_LETS or let in _kernels(let):
        return None
    axes = max(sum(bool(dims.symbols(e)) for e in shape) for shape in shapes)
    most = int(most_elements(_work(loop)) ** (1 / axes))
    builder = Builder()
    with builder.at(let.span):
        sizes = [builder.extent(dims.of(symbol)) for symbol in symbols]
        first, *others = [
            builder.call(OPS[op], size, limit) for size in sizes
            for op, limit in (("greater_equal", _LEAST), ("less_equal", most))
        ]
        fits = functools.reduce(lambda a, b: builder.call(OPS["logical_and"], a, b), others, first)
        near = _near(let, symbols, most)
        kept = near.lets[[isinstance(each.rhs, Loop) for each in near.lets].index(True)]
        if not (let.outs and is_kernel(kept, _kernels(kept))):
            return None
        names = walk.Renaming()
        far = walk.copy_let(let, names)
        orelse = Block((far,), far.outs)
        choice = Let(let.outs, If(builder.atom(fits), near, orelse), span=let.span)
    return [*builder.lets, choice]


def _kernels(let: Let) -> set[Let]:
    return scalar_lets(Block((let,), let.outs))


def _near(let: Let, symbols: list[Symbol], most: int) -> Block:
    """A copy of a loop in which extents are known to lie between `_LEAST` and `most`."""
    builder, extents = Builder(), dict[Symbol, Extent]()
    with builder.at(let.span):
        for symbol in symbols:
            more = builder.extent(dims.add(dims.of(symbol), -_LEAST))
            rest = replace(symbol, serial=Symbol("").serial, most=most - _LEAST)
            builder.lets.append(Let((), OpCall(OPS["as_extent"], (builder.atom(more),)), (rest,)))
            extents[symbol] = dims.add(dims.of(rest), _LEAST)
        atoms: dict[Var, Atom] = {}
        for var in walk.free_vars(Block((let,), ())):
            shape = _renamed(var, extents)
            if shape is not None:
                atoms[var] = builder.call(OPS["refine"], var, shape=shape).atom
        copy = walk.copy_let(let, walk.Renaming(atoms, dict(extents)))
        builder.lets.append(copy)
        results = [
            new if new.type == old.type
            else builder.call(OPS["refine"], new, shape=old.type.shape).atom  # type: ignore[union-attr]
            for new, old in zip(copy.outs, let.outs, strict=True)
        ]
        return builder.block(results)


def _renamed(var: Var, extents: dict[Symbol, Extent]) -> tuple[Extent, ...] | None:
    """The shape of an array with other extents; None if it has none of them."""
    ty = var.type
    if not isinstance(ty, TensorType) or not set(types.type_symbols(ty)) & set(extents):
        return None
    return tuple(dims.substitute(e, extents) for e in ty.shape)


def _shapes(loop: Loop) -> Iterator[tuple[Extent, ...]]:
    for each in walk.nested_lets(loop.body):
        for atom in (*each.outs, *walk.operands(each.rhs)):
            if isinstance(atom.type, TensorType) and atom.type.shape:
                yield atom.type.shape


def _work(loop: Loop) -> int:
    return sum(
        element_work(each.rhs) for each in walk.nested_lets(loop.body)
        if isinstance(each.rhs, OpCall)
        and any(isinstance(v.type, TensorType) and v.type.shape for v in each.outs)
    )

