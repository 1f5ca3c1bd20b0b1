"""Lets in an order in which each follows those that it reads.

In: a block, and Lets in place of its own, in any order. Out: those that the block's results and
effects need, in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay.ir import walk
from pyrelay.ir.effects import is_pure
from pyrelay.ir.nodes import Block, KernelCall, Let, OpCall
from pyrelay.opt.stores import is_update


def ordered(body: Block, lets: Sequence[Let]) -> tuple[Let, ...] | None:
    """The Lets that the block's results and effects need, in order, but each after those that it
    reads; None if one with an effect would have to move."""
    makers = {out: let for let in lets for out in let.outs}

    def read(let: Let) -> list[Let]:
        inside = (v for inner in walk.blocks(let.rhs) for v in walk.free_vars(inner))
        atoms = dict.fromkeys((*walk.operands(let.rhs), *inside))
        return [makers[a] for a in atoms if a in makers]

    needed: set[Let] = set()
    pending = [let for let in lets if not _may_move(let)]
    pending += [makers[a] for a in body.results if a in makers]
    while pending:
        let = pending.pop()
        if let not in needed:
            needed.add(let)
            pending += read(let)
    done: dict[Let, None] = {}
    for root in lets:
        stack = [root] if root in needed else []
        while stack:
            waiting = [x for x in read(stack[-1]) if x not in done]
            if waiting:
                if not all(map(_may_move, waiting)):
                    return None
                stack += waiting
            else:
                done[stack.pop()] = None
    return tuple(done)


def _may_move(let: Let) -> bool:
    """Whether a Let may be computed earlier, or not at all where nothing reads it. Stores stay
    where they are: others read the array as it was before (`commits.py`)."""
    if not isinstance(let.rhs, (OpCall, KernelCall)) or let.dims or not is_pure(let):
        return False
    return not (isinstance(let.rhs, OpCall) and is_update(let.rhs))
