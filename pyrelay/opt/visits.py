"""How many rounds a loop can have before it has been at every place of an array.

In: a loop. Out: an extent of which its rounds are at most twice as many and one.

A round that asks for the element at a number that each round steps to another one, as
`for k in range(start[u], start[u + 1])` does with `neighbours[k]`, is refused unless the number is
one of `-n` to `n - 1`. No two rounds ask for the same number, so after `2 * n` of them the next one
raises, whatever the loop's count says. A place that nobody asks about is there: a row of a list of
lists has room for the items that its count says.
"""

from __future__ import annotations

from collections.abc import Container

from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, Const, Loop, OpCall, Var
from pyrelay.ir.types import TensorType

_STEPS = ("add", "subtract")


def visited(loop: Loop, changing: Container[Symbol]) -> Extent | None:
    """The length of an array in which each round of a loop reads another place.

    changing: symbols that may have other values later on. None if there is no such array.
    """
    inside = {
        v for b in walk.blocks(loop) for let in walk.nested_lets(b)
        for v in (*let.outs, *walk.block_binders(let.rhs))
    }
    inside.update(walk.block_binders(loop))
    different = _stepped(loop)
    for let in loop.body.lets:
        call = let.rhs
        if not isinstance(call, OpCall) or not different.intersection(call.args):
            continue
        sizes: list[Extent] = []
        match call.op.name, call.args:
            case name, (x, y) if name in _STEPS and _is_wide(let.outs[0]) and (
                (x in different and y not in inside) or (y in different and x not in inside)
            ):
                different.add(let.outs[0])
            case "cast", (_,) if _is_wide(let.outs[0]):
                different.add(let.outs[0])
            case "check_index", _:
                sizes = [call.attrs["size"]]
            case "index", (array, *places) if isinstance(array.type, TensorType):
                shape, axes = array.type.shape, call.attrs["axes"]
                pairs = zip(axes, places, strict=True)
                sizes = [shape[axis] for axis, place in pairs if place in different]
        for size in sizes:
            if not any(symbol in changing for symbol in dims.symbols(size)):
                return size
    return None


def _stepped(loop: Loop) -> set[Atom]:
    """The integers of a loop that have another value in each round."""
    results = loop.body.results[1:] if loop.exits else loop.body.results
    found: set[Atom] = set() if loop.index is None else {loop.index}
    makers = _makers(loop.body)
    for var, after in zip(loop.carried, results, strict=True):
        call = makers.get(after)
        if call is None or call.op.name not in _STEPS or not _is_wide(var):
            continue
        first, second = call.args
        if call.op.name == "add" and second is var:
            first, second = second, first
        if first is var and isinstance(second, Const) and second.value:
            found.add(var)
    return found


def _makers(block: Block) -> dict[Atom, OpCall]:
    return {let.outs[0]: let.rhs for let in block.lets if isinstance(let.rhs, OpCall) and let.outs}


def _is_wide(var: Var) -> bool:
    """Whether a variable is one integer of 64 bits."""
    return isinstance(var.type, TensorType) and not var.type.shape and var.type.dtype == types.i64
