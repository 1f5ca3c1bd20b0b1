"""Dead code elimination: what no result and no effect needs goes, inside branches and loops too.

In: a module. Out: the module without Lets nobody reads, without branch results and carried values
nobody reads, and without functions nobody calls. A loop or call that only computes goes too, even
if it would never end. Mark and sweep: linear in the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.effects import effect_of, of_functions
from pyrelay.ir.nodes import (
    Atom,
    Block,
    Function,
    If,
    Let,
    Loop,
    Module,
    OpCall,
    Var,
)
from pyrelay.ir.op import Effect
from pyrelay.ir.walk import attr_symbols, called, nested_lets, operands
from pyrelay.records import dataclass


def dce(module: Module) -> Module:
    """Remove what is not needed."""
    effects = of_functions(module)
    functions = {n: _swept(f, effects) for n, f in module.functions.items()}
    return reachable(module.holding(functions))


def reachable(module: Module) -> Module:
    """The module without functions that the entry never reaches."""
    kept: dict[str, Function] = {}
    pending = [module.entry]
    while pending:
        name = pending.pop()
        if name not in kept:
            kept[name] = module.functions[name]
            pending.extend(called(kept[name]))
    return module.holding({n: f for n, f in module.functions.items() if n in kept})


def _swept(function: Function, effects: Mapping[str, Effect]) -> Function:
    marker = _Marker(effects)
    marker.enter(function.body)
    for atom in function.body.results:
        marker.need(atom)
    for extent in function.body.dims:
        marker.need_extent(extent)
    marker.run()
    body = _Sweeper(marker).block(function.body, None)
    return function if body is function.body else replace(function, body=body)


@dataclass
class _Marker:
    """Marks needed variables, symbols and Lets by following definitions."""

    effects: Mapping[str, Effect]
    makers: dict[Var, tuple[Let, int]] = field(default_factory=dict)  # output -> its Let
    carriers: dict[Var, tuple[Let, int]] = field(default_factory=dict)  # carried -> its Let
    handed: dict[Var, tuple[Let, int]] = field(default_factory=dict)
    binders: dict[Symbol, Let] = field(default_factory=dict)
    parents: dict[int, Let | None] = field(default_factory=dict)  # id(Let) -> the one around it
    needed: set[Var] = field(default_factory=set)
    symbols: set[Symbol] = field(default_factory=set)
    alive: set[int] = field(default_factory=set)  # ids of Lets
    pending: list[Var] = field(default_factory=list)
    pending_symbols: list[Symbol] = field(default_factory=list)

    def enter(self, block: Block) -> None:
        """Index a block and those inside it; what has an effect is needed."""
        stack: list[tuple[Block, Let | None]] = [(block, None)]
        roots: list[Let] = []  # kept once everything is indexed
        while stack:
            here, outer = stack.pop()
            for let in here.lets:
                self.parents[id(let)] = outer
                for k, out in enumerate(let.outs):
                    self.makers[out] = (let, k)
                for symbol in let.dims:
                    self.binders[symbol] = let
                rhs = let.rhs
                if isinstance(rhs, Loop):
                    self._loop(let, rhs)
                    stack.append((rhs.body, let))
                    if rhs.test is not None:
                        stack.append((rhs.test, let))
                elif isinstance(rhs, If):
                    stack.append((rhs.then, let))
                    stack.append((rhs.orelse, let))
                elif effect_of(rhs, self.effects.get) is not Effect.PURE:  # type: ignore[arg-type]
                    roots.append(let)
        for let in roots:
            self.keep(let)

    def _loop(self, let: Let, loop: Loop) -> None:
        for k, var in enumerate(loop.carried):
            self.carriers[var] = (let, k)
        for k, var in enumerate(loop.handed):
            self.handed[var] = (let, k)
        for symbol in loop.dims:
            self.binders[symbol] = let

    def keep(self, let: Let) -> None:
        """A Let is needed: what it reads, what decides whether it runs, what is around it."""
        new: list[Let] = []
        outer: Let | None = let
        while outer is not None and id(outer) not in self.alive:
            self.alive.add(id(outer))
            new.append(outer)
            outer = self.parents[id(outer)]
        for each in reversed(new):
            self._inputs(each)

    def _inputs(self, let: Let) -> None:
        rhs = let.rhs
        if isinstance(rhs, If):
            self.need(rhs.cond)
            for block in (rhs.then, rhs.orelse):
                self._extents(block.dims)
        elif isinstance(rhs, Loop):
            if rhs.count is not None:
                self.need(rhs.count)
            if rhs.test is not None:
                self.need(rhs.test.results[0])
            if rhs.exits:
                self.need(rhs.body.results[0])
            self._extents(rhs.init_dims)
            self._extents(rhs.body.dims)
        else:
            for atom in operands(rhs):
                self.need(atom)
            self._extents(getattr(rhs, "dims", ()))
            if isinstance(rhs, OpCall):
                for symbol in (s for v in rhs.attrs.values() for s in attr_symbols(v)):
                    self.need_symbol(symbol)
            for out in let.outs:
                self._type(out)

    def _extents(self, extents: tuple[Extent, ...]) -> None:
        for extent in extents:
            self.need_extent(extent)

    def _type(self, var: Var) -> None:
        if var.type is not None:
            for symbol in types.type_symbols(var.type):
                self.need_symbol(symbol)

    def need_extent(self, extent: Extent) -> None:
        """The symbols of an extent are needed."""
        for symbol in dims.symbols(extent):
            self.need_symbol(symbol)

    def need_symbol(self, symbol: Symbol) -> None:
        """What binds a symbol is needed."""
        if symbol not in self.symbols:
            self.symbols.add(symbol)
            self.pending_symbols.append(symbol)

    def need(self, atom: Atom) -> None:
        """An atom is needed."""
        if isinstance(atom, Var) and atom not in self.needed:
            self.needed.add(atom)
            self.pending.append(atom)

    def run(self) -> None:
        """Follow needs to their sources."""
        while self.pending or self.pending_symbols:
            while self.pending_symbols:
                symbol = self.pending_symbols.pop()
                if symbol in self.binders:
                    self.keep(self.binders[symbol])
            if self.pending:
                self._follow(self.pending.pop())

    def _follow(self, var: Var) -> None:
        """Mark what a needed variable is made of."""
        self._type(var)
        if var in self.makers:
            let, k = self.makers[var]
            self.keep(let)
            rhs = let.rhs
            if isinstance(rhs, If):
                self.need(rhs.then.results[k])
                self.need(rhs.orelse.results[k])
            elif isinstance(rhs, Loop):
                self.need(rhs.carried[k])
        elif var in self.carriers:
            let, k = self.carriers[var]
            loop = let.rhs
            assert isinstance(loop, Loop)
            self.keep(let)
            self.need(loop.init[k])
            self.need(loop.body.results[k + loop.exits])
        elif var in self.handed:
            let, k = self.handed[var]
            loop = let.rhs
            assert isinstance(loop, Loop)
            assert loop.test is not None
            self.keep(let)
            self.need(loop.test.results[k + 1])


@dataclass
class _Sweeper:
    """Rebuilds blocks with what is marked."""

    marks: _Marker

    def block(self, block: Block, kept: list[int] | None) -> Block:
        """The block with live Lets; `kept` are the positions of the results that stay."""
        lets = []
        for let in block.lets:
            if id(let) in self.marks.alive:
                lets.append(self._let(let))
        results = block.results if kept is None else tuple(block.results[k] for k in kept)
        if len(lets) == len(block.lets) and len(results) == len(block.results) and all(
            a is b for a, b in zip(lets, block.lets, strict=True)
        ):
            return block
        return Block(tuple(lets), results, block.dims)

    def _let(self, let: Let) -> Let:
        rhs = let.rhs
        if isinstance(rhs, If):
            kept = [k for k, v in enumerate(let.outs) if v in self.marks.needed]
            then, orelse = self.block(rhs.then, kept), self.block(rhs.orelse, kept)
            if len(kept) == len(let.outs) and then is rhs.then and orelse is rhs.orelse:
                return let
            outs = tuple(let.outs[k] for k in kept)
            return Let(outs, If(rhs.cond, then, orelse), let.dims, span=let.span)
        if isinstance(rhs, Loop):
            return self._loop(let, rhs)
        return let

    def _loop(self, let: Let, loop: Loop) -> Let:
        needed = self.marks.needed
        kept = [
            k for k, (v, out) in enumerate(zip(loop.carried, let.outs, strict=True))
            if v in needed or out in needed
        ]
        lead = [0] if loop.exits else []
        body = self.block(loop.body, lead + [k + loop.exits for k in kept])
        handed = [k for k, v in enumerate(loop.handed) if v in needed]
        test = None if loop.test is None else self.block(loop.test, [0, *(k + 1 for k in handed)])
        same = len(kept) == len(loop.carried) and len(handed) == len(loop.handed)
        if same and body is loop.body and test is loop.test:
            return let
        new = replace(
            loop, carried=tuple(loop.carried[k] for k in kept),
            init=tuple(loop.init[k] for k in kept), body=body, test=test,
            handed=tuple(loop.handed[k] for k in handed),
        )
        return Let(tuple(let.outs[k] for k in kept), new, let.dims, span=let.span)


def count_lets(function: Function) -> int:
    """How many Lets a function has, nested ones included."""
    return sum(1 for _ in nested_lets(function.body))
