"""Generic walks over blocks: atoms and blocks of a node, free variables, uses, copying.

Everything here keeps its own stack per *nesting of blocks* only through Python calls in
`map_blocks`-style functions; straight-line code, however long, never recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace

from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import (
    Atom,
    Attrs,
    Block,
    Const,
    FnCall,
    Function,
    If,
    Jvp,
    KernelCall,
    Let,
    Loop,
    OpCall,
    PyCall,
    Rhs,
    Var,
    Vjp,
)
from pyrelay.ir.types import TapeType, TensorType
from pyrelay.records import dataclass, once


def operands(rhs: Rhs) -> tuple[Atom, ...]:
    """The atoms a node reads itself, not those inside its blocks."""
    match rhs:
        case OpCall(args=args) | FnCall(args=args) | KernelCall(args=args) | PyCall(args=args):
            return args
        case Vjp(args=args, seeds=seeds) | Jvp(args=args, seeds=seeds):
            return args + seeds
        case If(cond=cond):
            return (cond,)
        case Loop():
            extra = tuple(a for a in (rhs.count, rhs.iterable) if a is not None)
            return rhs.init + extra
    raise AssertionError(rhs)


def blocks(rhs: Rhs) -> tuple[Block, ...]:
    """The blocks of a control-flow node, in order of execution."""
    if isinstance(rhs, If):
        return (rhs.then, rhs.orelse)
    if isinstance(rhs, Loop):
        return (rhs.body,) if rhs.test is None else (rhs.test, rhs.body)
    return ()


def block_binders(rhs: Rhs) -> tuple[Var, ...]:
    """The variables that a node binds for its blocks (a loop's carried, handed, index, item)."""
    if not isinstance(rhs, Loop):
        return ()
    extra = tuple(v for v in (rhs.index, rhs.item) if v is not None)
    return rhs.carried + rhs.handed + extra


@once
def nested_lets(block: Block) -> tuple[Let, ...]:
    """Every Let in the block and in blocks inside it, outer ones first, in order."""
    found: list[Let] = []
    pending = [iter(block.lets)]
    while pending:
        for let in pending[-1]:
            found.append(let)
            if isinstance(let.rhs, (If, Loop)):
                pending.extend(iter(b.lets) for b in reversed(blocks(let.rhs)))
                break
        else:
            pending.pop()
    return tuple(found)


def nested_blocks(block: Block) -> Iterator[Block]:
    """The block and every block inside it, outer ones first."""
    yield block
    for let in nested_lets(block):
        yield from blocks(let.rhs)


@once
def free_vars(block: Block) -> tuple[Var, ...]:
    """Variables that a block reads and does not bind, in order of first use."""
    found: dict[Var, None] = {}
    bound: set[Var] = set()
    reads: list[Var] = []
    for here in nested_blocks(block):
        for let in here.lets:
            bound.update(let.outs)
            bound.update(block_binders(let.rhs))
    for let in nested_lets(block):
        reads += [a for a in operands(let.rhs) if isinstance(a, Var)]
    for here in nested_blocks(block):
        reads += [a for a in here.results if isinstance(a, Var)]
    for var in reads:
        if var not in bound:
            found[var] = None
    return tuple(found)


def use_counts(block: Block) -> dict[Var, int]:
    """How often each variable is read in the block and inside it (results included)."""
    counts: dict[Var, int] = {}
    for let in nested_lets(block):
        for atom in operands(let.rhs):
            if isinstance(atom, Var):
                counts[atom] = counts.get(atom, 0) + 1
    for here in nested_blocks(block):
        for atom in here.results:
            if isinstance(atom, Var):
                counts[atom] = counts.get(atom, 0) + 1
    return counts


def attr_symbols(value: object) -> Iterator[Symbol]:
    """Symbols inside an attribute value (extents, types, tuples of them)."""
    if isinstance(value, dims.Dim):
        yield from dims.symbols(value)
    elif isinstance(value, (TensorType, TapeType)):
        yield from types.type_symbols(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from attr_symbols(item)


def rhs_symbols(rhs: Rhs) -> set[Symbol]:
    """Symbols in a node's own attributes and extents, and at the ends of its blocks."""
    found: set[Symbol] = set()
    if isinstance(rhs, OpCall):
        for value in rhs.attrs.values():
            found.update(attr_symbols(value))
    extents: tuple[Extent, ...] = getattr(rhs, "init_dims", ())
    if not isinstance(rhs, Loop):
        extents += getattr(rhs, "dims", ())
    for block in blocks(rhs):
        extents += block.dims
    for extent in extents:
        found.update(dims.symbols(extent))
    return found


def _map_attr(value: object, mapping: Mapping[Symbol, Extent]) -> object:
    if isinstance(value, dims.Dim):
        return dims.substitute(value, mapping)
    if isinstance(value, (TensorType, TapeType)):
        return types.substitute(value, dict(mapping))
    if isinstance(value, tuple):
        return tuple(_map_attr(item, mapping) for item in value)
    return value


@dataclass(slots=True)
class Renaming:
    """What to put for variables and symbols while copying."""

    atoms: dict[Var, Atom] = field(default_factory=dict)
    dims: dict[Symbol, Extent] = field(default_factory=dict)

    def atom(self, atom: Atom) -> Atom:
        """The replacement of an atom."""
        return self.atoms.get(atom, atom) if isinstance(atom, Var) else atom

    def extent(self, extent: Extent) -> Extent:
        """The replacement of an extent."""
        return dims.substitute(extent, self.dims)

    def attrs(self, attrs: Attrs) -> Attrs:
        """Attributes with extents replaced."""
        if not self.dims or not any(True for v in attrs.values() for _ in attr_symbols(v)):
            return attrs
        return Attrs(**{k: _map_attr(v, self.dims) for k, v in attrs.items()})

    def var(self, var: Var) -> Var:
        """A fresh copy of a binder, entered in the renaming."""
        ty = types.substitute(var.type, self.dims) if var.type is not None else None
        copy = Var(var.name, ty, span=var.span)
        self.atoms[var] = copy
        return copy

    def symbol(self, symbol: Symbol) -> Symbol:
        """A fresh copy of a bound symbol, entered in the renaming."""
        copy = Symbol(symbol.name, symbol.origin, most=symbol.most)
        self.dims[symbol] = dims.of(copy)
        return copy


def copy_rhs(
    rhs: Rhs, names: Renaming, nested: Callable[[Block, Renaming], Block] | None = None
) -> Rhs:
    """The node with atoms and extents replaced and everything bound inside it renamed.

    `nested` copies its blocks in place of `copy_block`.
    """
    atoms, block = names.atom, nested or copy_block
    match rhs:
        case OpCall(op, args, attrs):
            return OpCall(op, tuple(map(atoms, args)), names.attrs(attrs))
        case PyCall(kind, args, attrs):
            return PyCall(kind, tuple(map(atoms, args)), attrs)
        case FnCall(function, args, extents):
            return FnCall(function, tuple(map(atoms, args)), tuple(map(names.extent, extents)))
        case KernelCall(fn, args, extents):
            return KernelCall(fn, tuple(map(atoms, args)), tuple(map(names.extent, extents)))
        case Vjp() | Jvp():
            return replace(
                rhs, args=tuple(map(atoms, rhs.args)), seeds=tuple(map(atoms, rhs.seeds)),
                dims=tuple(map(names.extent, rhs.dims)),
            )
        case If(cond, then, orelse):
            return If(atoms(cond), block(then, names), block(orelse, names))
        case Loop():
            init = tuple(map(atoms, rhs.init))
            count = None if rhs.count is None else atoms(rhs.count)
            iterable = None if rhs.iterable is None else atoms(rhs.iterable)
            init_dims = tuple(map(names.extent, rhs.init_dims))
            symbols = tuple(map(names.symbol, rhs.dims))
            carried = tuple(map(names.var, rhs.carried))
            index = None if rhs.index is None else names.var(rhs.index)
            item = None if rhs.item is None else names.var(rhs.item)
            test = None if rhs.test is None else block(rhs.test, names)
            handed = tuple(map(names.var, rhs.handed))
            body = block(rhs.body, names)
            return Loop(
                carried, init, body, test, handed, count, index, rhs.exits, symbols, init_dims,
                iterable, item,
            )
    raise AssertionError(rhs)


def copy_let(let: Let, names: Renaming) -> Let:
    """A copy of a Let with fresh outputs, which are entered in `names`."""
    rhs = copy_rhs(let.rhs, names)
    symbols = tuple(map(names.symbol, let.dims))
    return Let(tuple(map(names.var, let.outs)), rhs, symbols, span=let.span)


def copy_block(block: Block, names: Renaming | None = None) -> Block:
    """A copy of a block in which every binder is fresh and `names` is applied to what is free."""
    names = names or Renaming()
    lets = tuple(copy_let(let, names) for let in block.lets)
    return Block(lets, tuple(map(names.atom, block.results)), tuple(map(names.extent, block.dims)))


def instantiate(
    function: Function, args: Iterable[Atom], extents: Iterable[Extent]
) -> Block:
    """The body of a function as a fresh block for these arguments: inlining, one call deep."""
    names = Renaming(
        dict(zip(function.params, args, strict=True)),
        dict(zip(function.dims, extents, strict=True)),
    )
    return copy_block(function.body, names)


def replace_blocks(rhs: Rhs, change: Callable[[Block], Block]) -> Rhs:
    """The node with `change` applied to each of its blocks; the node itself if none changed."""
    match rhs:
        case If(cond, then, orelse):
            a, b = change(then), change(orelse)
            return rhs if a is then and b is orelse else If(cond, a, b)
        case Loop(test=test, body=body):
            t = None if test is None else change(test)
            b = change(body)
            return rhs if t is test and b is body else replace(rhs, test=t, body=b)
    return rhs


def with_blocks(block: Block, change: Callable[[Block], Block]) -> Block:
    """The block with `change` applied to each block of its Lets; itself if none changed."""
    return with_lets(block, lambda let: with_inner_blocks(let, change))


def with_inner_blocks(let: Let, change: Callable[[Block], Block]) -> Let:
    """The Let with `change` applied to each of its blocks; itself if none changed."""
    rhs = replace_blocks(let.rhs, change)
    return let if rhs is let.rhs else replace(let, rhs=rhs)


def with_lets(block: Block, change: Callable[[Let], Let]) -> Block:
    """The block with `change` applied to each of its Lets; itself if none changed."""
    lets = tuple(map(change, block.lets))
    same = all(new is old for new, old in zip(lets, block.lets, strict=True))
    return block if same else replace(block, lets=lets)


@once
def called(function: Function) -> tuple[str, ...]:
    """Names of the functions that a function calls, differentiates or has as rules, each once."""
    names: dict[str, None] = {}
    for let in nested_lets(function.body):
        if isinstance(let.rhs, (FnCall, Vjp, Jvp)):
            names[let.rhs.function] = None
        elif isinstance(let.rhs, OpCall) and "rule" in let.rhs.attrs:
            names[let.rhs.attrs["rule"]] = None
    return tuple(names)


def is_call(let: Let | None, op: str) -> bool:
    """Whether a Let, if there is one, calls the op of this name."""
    return let is not None and isinstance(let.rhs, OpCall) and let.rhs.op.name == op


def call_of(let: Let) -> OpCall:
    """The call of an op that a Let is known to be."""
    assert isinstance(let.rhs, OpCall)
    return let.rhs


def is_number(atom: Atom, value: complex) -> bool:
    """True if the atom is a scalar constant equal to `value`."""
    return isinstance(atom, Const) and atom.type is not None and bool(atom.value == value)
