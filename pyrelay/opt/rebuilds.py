"""Tables that are made larger in a loop, before a round rather than in it.

In: a branch that makes a table again with more slots because it is crowded (op `crowded`,
`infer/in_python/tables`), and what its arrays and counts are at the beginning of a round. Out: a
loop in front of the rounds that does what the branch does until so many entries more find room.

Nobody sees how many slots a table has, so it may be made larger at any time; `opt/rooms` parts
loops by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Atom, Block, If, Let, Loop, Var
from pyrelay.ir.op import OPS
from pyrelay.records import dataclass


def is_rebuild(let: Let, makers: Mapping[Var, Let]) -> bool:
    """Whether a Let makes a crowded table larger in one case, and leaves it in the other."""
    node = let.rhs
    if not isinstance(node, If) or len(let.dims) != 1 or node.orelse.lets:
        return False
    return walk.is_call(makers.get(node.cond), "crowded")  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """A branch that makes a table larger.

    count     the slots before it, as the branch finds them; `results` has their number after it
    arrays    of the slots, likewise
    """

    then: Block
    count: Var
    arrays: tuple[Var, ...]
    positions: tuple[int, ...]  # of count and arrays among the results of the branch

    @staticmethod
    def of(let: Let, slots: Atom) -> Rebuild | None:
        """The branch of a Let that asks whether a table of so many slots is crowded."""
        node = let.rhs
        assert isinstance(node, If)
        (extent,) = node.orelse.dims
        symbol = dims.plain_symbol(extent)
        kept = node.orelse.results
        held = [
            k for k, v in enumerate(kept)
            if isinstance(v, Var) and symbol in types.type_symbols(v.type)  # type: ignore[arg-type]
        ]
        if not isinstance(slots, Var) or symbol is None or not held or slots not in kept:
            return None
        arrays = tuple(v for k in held if isinstance(v := kept[k], Var))
        return Rebuild(node.then, slots, arrays, (kept.index(slots), *held))

    def needed(self) -> tuple[list[Let], list[Atom]]:
        """The Lets of the branch that make the table larger, and what these make of it."""
        results = [self.then.results[k] for k in self.positions]
        wanted: set[Atom | Symbol] = {*results, *dims.symbols(self.then.dims[0])}
        kept: list[Let] = []
        for let in reversed(self.then.lets):
            if not wanted.isdisjoint(let.outs) or not wanted.isdisjoint(let.dims):
                kept.append(let)
                wanted.update(_read(let))
        return kept[::-1], results

    def emitted(
        self, b: Builder, entries: Handle, now: Callable[[Var], Atom],
        extents: Mapping[Symbol, Extent], size: tuple[Symbol, Extent],
    ) -> list[Atom]:
        """Number and arrays of the slots after a loop that makes room for so many entries.

        now       what a variable of the branch is at the beginning of a round
        extents   what its symbols are
        size      the symbol of the arrays after the loop, and their extent before it
        """
        after, before = size
        inside = Symbol("d", Origin.RUNTIME)
        names = walk.Renaming(dims={
            s: dims.of(inside) if e == dims.of(after) else e for s, e in extents.items()
        })
        held = (self.count, *self.arrays)
        carried = tuple(Var("c", types.substitute(
            v.type, {s: dims.of(inside) for s in types.type_symbols(v.type)}  # type: ignore[arg-type]
        )) for v in held)
        names.atoms.update(zip(held, carried, strict=True))
        lets, results = self.needed()
        for var in _free(lets, results):
            names.atoms.setdefault(var, now(var))
        body = Block(
            tuple(walk.copy_let(let, names) for let in lets), tuple(map(names.atom, results)),
            (names.extent(self.then.dims[0]),),
        )
        ask = b.nested()
        go = ask.call(OPS["crowded"], entries, carried[0])
        loop = Loop(
            carried, tuple(now(v) for v in held), body, ask.block((go,)), dims=(inside,),
            init_dims=(before,),
        )
        out_types = [types.substitute(v.type, {inside: dims.of(after)}) for v in carried]  # type: ignore[arg-type]
        return [h.atom for h in b.bind(loop, out_types, dims=(after,))]


def _read(let: Let) -> Iterator[Atom | Symbol]:
    """What a Let and those inside it read."""
    yield from walk.rhs_symbols(let.rhs)
    yield from walk.operands(let.rhs)
    for block in walk.blocks(let.rhs):
        yield from walk.free_vars(block)


def _free(lets: list[Let], results: list[Atom]) -> tuple[Var, ...]:
    return walk.free_vars(Block(tuple(lets), tuple(results)))
