"""Fusion: which ops become one kernel.

In: Core after the other passes. Out: Core in which computations stand in `KernelCall`s, but for
opaque ops, calls, loops and branches of the plan, and views of arrays.

The Lets of a block are taken from the last to the first. A Let joins the group that reads it, if
the group can compute it where it needs it without doing work twice; if others read it as well, it
becomes another result of that group. Of several groups it can only join the one that runs first:
then everything that reads its results runs later, so groups never wait for each other in a circle.
A group that reduces rows or columns takes in what reads the result (`slices.py`). One that joins a
few arrays of one shape computes them together, and stores each where it lies in the result. A
product of matrices joins the group that finishes its elements (`finishing.py`). A group runs where
its last Let stood. Every Let is looked at once, so fusion takes linear time, and what a
kernel computes again is bounded, so kernels never grow exponentially.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir import walk
from pyrelay.ir.contents import Contents
from pyrelay.ir.nodes import Atom, Block, If, Let, Loop, Module, OpCall
from pyrelay.opt import places
from pyrelay.opt.grouping import Grouping
from pyrelay.opt.scalars import scalar_lets
from pyrelay.opt.spares import with_spares
from pyrelay.opt.storage import uses_linearly, with_copies
from pyrelay.opt.stores import Stores


def fuse(module: Module) -> Module:
    """The module with its computations grouped into kernel calls."""
    stores = Stores(module)
    functions = {
        name: replace(f, body=_fuse_body(f.body, stores.lets(f)))
        for name, f in module.functions.items()
    }
    return module.holding(functions)


def _fuse_body(body: Block, stores: frozenset[Let]) -> Block:
    scalar = scalar_lets(body)
    separate = _Separate()
    visited: list[Block] = []
    pending = [body]
    unchanged: dict[Block, frozenset[Atom]] = {body: frozenset()}
    while pending:
        block = pending.pop()
        visited.append(block)
        for let in block.lets:
            if isinstance(let.rhs, OpCall) and places.is_view(let.rhs):
                scalar.discard(let)  # the plan does it, at no cost
            if isinstance(let.rhs, (If, Loop)):
                if let in scalar and not separate.allows(let):
                    scalar.discard(let)
                if let not in scalar:
                    inner = walk.blocks(let.rhs)
                    pending.extend(inner)
                    unchanged.update((b, _unchanged(let, b, unchanged[block])) for b in inner)
    extents = {
        let.outs[0]: let
        for let in walk.nested_lets(body)
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "extent"
    }
    done: dict[Block, Block] = {}
    contents = Contents()
    for block in reversed(visited):
        lets = [
            separate.loops.get(let)
            or replace(let, rhs=walk.replace_blocks(let.rhs, lambda b: done.get(b, b)))
            for let in block.lets
        ]
        kept = {new for new, old in zip(lets, block.lets, strict=True) if old in scalar}
        grouping = Grouping(
            lets, block, kept, extents, separate.sources, contents, unchanged[block],
            {new for new, old in zip(lets, block.lets, strict=True) if old in stores},
        )
        done[block] = grouping.block()
    return done[body]


def _unchanged(let: Let, block: Block, around: frozenset[Atom]) -> frozenset[Atom]:
    """What the loop around a block inside a Let does not change: `around` is that for the Let."""
    if not isinstance(let.rhs, Loop):
        return around
    own = {*let.rhs.carried, *let.rhs.handed}
    return frozenset(v for v in walk.free_vars(block) if v not in own)


class _Separate:
    """Loops that update an array and read its old state too: they get a second copy of it.

    `loops` are the loops with new variables for the first values of what they update; `sources`
    tells what those variables stand for: a kernel call passes that, and the planner copies it.
    """

    def __init__(self) -> None:
        self.loops: dict[Let, Let] = {}
        self.sources: dict[Atom, Atom] = {}

    def allows(self, let: Let) -> bool:
        """Whether a Let can update its arrays in their buffers, as it is or with copies."""
        loop, fresh = let, dict[Atom, Atom]()
        if not uses_linearly([let], let.outs):
            if not isinstance(let.rhs, Loop):
                return False
            loop, fresh = with_copies(let, let.rhs)
            if not fresh or not uses_linearly([loop], let.outs):
                return False
        spared = with_spares(loop, loop.rhs) if isinstance(loop.rhs, Loop) else None
        if spared is not None:
            loop = spared[0]
            fresh.update((var, fresh.get(first, first)) for var, first in spared[1].items())
        if loop is not let:
            self.loops[let] = loop
            self.sources.update(fresh)
        return True
