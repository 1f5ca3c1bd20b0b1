"""What nested blocks read and do, found once for each block.

In: blocks of a program under construction. Out: the same answers as `walk.free_vars`,
`effects.effect_of` and so on, kept per block. A pass that asks at every level of a nest then takes
time linear in the program, where walking through all inner blocks each time is quadratic.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Symbol
from pyrelay.ir.effects import effect_of
from pyrelay.ir.nodes import Block, FnCall, If, Jvp, KernelCall, Let, Loop, OpCall, Rhs, Var, Vjp
from pyrelay.ir.op import Effect


class Contents:
    """Answers about blocks.

    names: variables and symbols stand for others, which count in their place. A block that has been
    asked about is not looked at again, so what it reads must be in `names` by then.
    """

    __slots__ = ("_effects", "_free", "_names", "_symbols")

    def __init__(self, names: walk.Renaming | None = None) -> None:
        self._names = walk.Renaming() if names is None else names
        self._free: dict[Block, dict[Var, None]] = {}
        self._symbols: dict[Block, set[Symbol]] = {}
        self._effects: dict[Block, Effect] = {}

    # -- variables -----------------------------------------------------------------------------

    def free(self, block: Block) -> Iterable[Var]:
        """Variables that a block reads and does not bind, each once."""
        if block not in self._free:
            for here in _inner_first(block, self._free):
                self._free[here] = self._free_here(here)
        return self._free[block]

    def reads(self, let: Let) -> Iterable[Var]:
        """Variables that a Let reads, those of its blocks included, each once."""
        found = {a: None for a in walk.operands(let.rhs) if isinstance(a, Var)}
        found.update(self._in_blocks(let.rhs))
        return found

    def _in_blocks(self, rhs: Rhs) -> dict[Var, None]:
        found: dict[Var, None] = {}
        for block in walk.blocks(rhs):
            self.free(block)
            found.update(self._free[block])
        for var in walk.block_binders(rhs):
            found.pop(var, None)
        return found

    def _free_here(self, block: Block) -> dict[Var, None]:
        found: dict[Var, None] = {}
        bound: set[Var] = set()
        for let in block.lets:
            for atom in walk.operands(let.rhs):
                if isinstance(atom, Var):
                    found[atom] = None
            if isinstance(let.rhs, (If, Loop)):
                found.update(self._in_blocks(let.rhs))
            bound.update(let.outs)
        found.update((a, None) for a in block.results if isinstance(a, Var))
        named = map(self._names.atom, found)
        return {a: None for a in named if isinstance(a, Var) and a not in bound}

    # -- symbols -------------------------------------------------------------------------------

    def symbols(self, block: Block) -> set[Symbol]:
        """Symbols that occur in a block, whether bound in it or not."""
        if block not in self._symbols:
            for here in _inner_first(block, self._symbols):
                found = {s for extent in here.dims for s in dims.symbols(extent)}
                for let in here.lets:
                    found |= self.let_symbols(let)
                self._symbols[here] = {
                    t for s in found for t in dims.symbols(self._names.extent(dims.of(s)))
                }
        return self._symbols[block]

    def let_symbols(self, let: Let) -> set[Symbol]:
        """Symbols in the types, attributes and extents of a Let, those of its blocks included."""
        rhs = let.rhs
        found: set[Symbol] = set()
        for atom in (*let.outs, *walk.block_binders(rhs), *walk.operands(rhs)):
            if atom.type is not None:
                found.update(types.type_symbols(atom.type))
        if isinstance(rhs, OpCall):
            found.update(s for v in rhs.attrs.values() for s in walk.attr_symbols(v))
        elif isinstance(rhs, (FnCall, KernelCall, Vjp, Jvp)):
            found.update(s for extent in rhs.dims for s in dims.symbols(extent))
        elif isinstance(rhs, Loop):
            found.update(s for extent in rhs.init_dims for s in dims.symbols(extent))
        for block in walk.blocks(rhs):
            found |= self.symbols(block)
        return found

    # -- effects -------------------------------------------------------------------------------

    def effect(self, rhs: Rhs) -> Effect:
        """The effect of a node, that of its blocks included."""
        inner = walk.blocks(rhs)
        if not inner:
            return effect_of(rhs)
        strongest = Effect.PURE
        for block in inner:
            if block not in self._effects:
                for here in _inner_first(block, self._effects):
                    found = (self.effect(let.rhs) for let in here.lets)
                    self._effects[here] = max(found, default=Effect.PURE)
            strongest = max(strongest, self._effects[block])
        return strongest


def _inner_first(block: Block, known: object) -> Iterable[Block]:
    """The block and those inside it that are not known, inner ones before outer ones."""
    assert isinstance(known, dict)
    found = [block]
    for here in found:  # grows while it is walked through
        for let in here.lets:
            found += [b for b in walk.blocks(let.rhs) if b not in known]
    return reversed(found)
