"""Numbers of which lengths were made are those lengths from there on.

In: a module. Out: the module in which a number that `as_extent` took, or the number that it is one
more or less than, is read as the extent after it: `np.zeros(n)` says that `range(n)` and `i < n`
stay within that array. What becomes an extent that is known already is that one.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir import dims, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, Const, Function, Let, Module, OpCall, Var
from pyrelay.ir.types import TensorType, i64
from pyrelay.opt.rewrite import renamed

_Makers = dict[Atom, Let]


def lengths(module: Module) -> Module:
    """Read numbers as the extents that they have become."""
    return module.holding({name: _in_function(f) for name, f in module.functions.items()})


def _in_function(function: Function) -> Function:
    makers: _Makers = {
        out: let for let in walk.nested_lets(function.body) for out in let.outs
    }
    body = _in_block(function.body, makers)
    return function if body is function.body else replace(function, body=body)


def _in_block(block: Block, makers: _Makers) -> Block:
    block = walk.with_blocks(block, lambda inner: _in_block(inner, makers))
    k = 0
    while k < len(block.lets):
        let = block.lets[k]
        if walk.is_call(let, "as_extent"):
            block = _known_from(block, k, makers)
        if k < len(block.lets) and block.lets[k] is let:  # else another one stands there now
            k += 1
    return block


def _known_from(block: Block, place: int, makers: _Makers) -> Block:
    """The block that reads what the Let there takes as an extent, after it."""
    let = block.lets[place]
    (symbol,) = let.dims
    rest = Block(block.lets[place + 1 :], block.results, block.dims)
    number = walk.call_of(let).args[0]
    known = makers.get(number)
    if known is not None and walk.is_call(known, "extent") and (
        dims.non_negative(size := walk.call_of(known).attrs["size"])
    ):
        rest = _renamed(rest, {}, {symbol: size}, makers)
        return Block((*block.lets[:place], *rest.lets), rest.results, rest.dims)
    read = set(walk.free_vars(rest))
    builder, names = Builder(), dict[Var, Atom]()
    with builder.at(let.span):
        for var, extent in _same_numbers(number, dims.of(symbol), makers):
            if var in read:
                assert isinstance(var.type, TensorType)
                found = builder.cast(builder.extent(extent), i64, weak=var.type.weak)
                names[var] = builder.atom(found)
    if not names:
        return block
    makers.update((out, made) for made in builder.lets for out in made.outs)
    rest = _renamed(rest, names, {}, makers)
    return Block((*block.lets[: place + 1], *builder.lets, *rest.lets), rest.results, rest.dims)


def _renamed(
    block: Block, names: dict[Var, Atom], extents: dict[Symbol, Extent], makers: _Makers
) -> Block:
    """The block that reads others; its variables are made by other Lets from there on."""
    new = renamed(block, names, extents)
    if new is not block:
        makers.update((out, let) for let in walk.nested_lets(new) for out in let.outs)
    return new


def _same_numbers(number: Atom, extent: Extent, makers: _Makers) -> list[tuple[Var, Extent]]:
    """The number itself, and those that it is a sum with, with a constant, or a difference from."""
    found = []
    while isinstance(number, Var) and _is_number(number):
        found.append((number, extent))
        call = getattr(makers.get(number), "rhs", None)
        if not isinstance(call, OpCall) or call.op.name not in ("add", "subtract"):
            break
        left, right = call.args
        if call.op.name == "add" and isinstance(left, Const):
            left, right = right, left
        if not isinstance(right, Const):
            break
        more = int(right.value) if call.op.name == "add" else -int(right.value)
        number, extent = left, dims.add(extent, -more)
    return found


def _is_number(var: Var) -> bool:
    return isinstance(var.type, TensorType) and var.type.dtype is i64 and not var.type.shape

