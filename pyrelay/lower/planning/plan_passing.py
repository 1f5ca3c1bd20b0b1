"""Results of products that only other products read: memory that is soon given back.

In: a block. Out: the results, among those of products that other kernels finish, that nothing but
such products reads and that the block does not give back, as layers of a network in the middle.
They may lie in idle blocks of memory that are larger than they need
(``devices/runtime/memory.py``): the layers of a network take turns in a few blocks that stay in the
cache, where each would have its own. What lives longer, such as a result that the caller may keep,
gets memory of its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrelay.ir import walk
from pyrelay.ir.nodes import Atom, Block, KernelCall, Let, Var
from pyrelay.opt.shapes import is_array

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


def find(p: FunctionPlanner, block: Block) -> None:
    """Note in `p.passing` which results of the block's products are so."""
    products = [let for let in block.lets if _is_product(p, let)]
    if len(products) < 2:
        return
    kept: set[Atom] = set(block.results)
    for let in block.lets:
        if not _is_product(p, let):
            kept.update(walk.operands(let.rhs))
            for inner in walk.blocks(let.rhs):
                kept.update(walk.free_vars(inner))
    made = (out for let in products for out in let.outs)
    p.passing.update(out for out in made if is_array(out) and out not in kept)


def may_take(p: FunctionPlanner, out: Var, argument: Atom) -> bool:
    """Whether a result may be made in the memory of an argument that dies: what lives longer is not
    made in a block that may be too large for it."""
    return out in p.passing or argument not in p.passing


def _is_product(p: FunctionPlanner, let: Let) -> bool:
    call = let.rhs
    if not isinstance(call, KernelCall):
        return False
    return p.program.lowering(call.function).lowering.product is not None
