"""Results of kernels that lie in rows of an array from the start.

In: a block whose kernels make arrays that other kernels only copy into a row of an array, as the
forward loop of a derivative does with what it keeps of each iteration:

    v = kernel(...)
    rows' = index_update(rows, v, i)

Out: which results are made where row i lies, and which copies are left out for it. Only what cannot
be seen: `rows` is read by the copy alone, and nothing between the two can raise an exception.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyrelay.ir import dims, walk
from pyrelay.ir.effects import is_pure
from pyrelay.ir.nodes import Atom, Block, KernelCall, Let, OpCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.lower.planning.instructions import Binary, Slot
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an array, by its number."""

    array: Var
    index: Atom


def find(p: FunctionPlanner, block: Block) -> None:
    """Note in `p.rows` which results of the block's kernels are made in rows, in `p.kept` the Lets
    that would copy them there."""
    copies = [(k, let) for k, let in enumerate(block.lets) if _copied(let) is not None]
    if not copies or not p.program.target.points_inside:
        return
    makers = {out: k for k, let in enumerate(block.lets) for out in let.outs}
    reads = Counter(block.results)
    for let in block.lets:
        inside = (v for inner in walk.blocks(let.rhs) for v in walk.free_vars(inner))
        reads.update({*walk.operands(let.rhs), *inside})
    pure = [is_pure(let) for let in block.lets]
    for k, let in copies:
        found = _copied(let)
        assert found is not None
        row, value = found
        made_at = makers.get(value)
        if made_at is None or value in p.rows or not _is_result(p, block.lets[made_at], value):
            continue
        number = makers.get(row.index, -1) if isinstance(row.index, Var) else -1
        if not all(pure[made_at:k]) or number >= made_at:
            continue
        if value in block.results or reads[row.array] != 1 or not _is_ours(p, row.array):
            continue
        if reads[let.outs[0]] == 1 and let.outs[0] in block.results:
            p.rows[value] = row
            p.kept.add(let)


def address(p: FunctionPlanner, value: Var) -> int:
    """The slot of the address of the row that a result lies in."""
    row = p.rows[value]
    ty = value.type
    assert isinstance(ty, TensorType)
    distance, slot = p.frame.slot(), p.frame.slot()
    size = p.sizes.value(dims.multiply(ty.size, ty.dtype.size))
    p.frame.emit(Binary("mul.i64", distance, p.scalar(row.index), size))
    p.frame.emit(Binary("add.i64", slot, p.scalar(row.array), Slot(distance)))
    return slot


def keep(p: FunctionPlanner, let: Let) -> None:
    """Plan a copy that is left out: the array has its row."""
    found = _copied(let)
    assert found is not None
    buffer = p.buffer(found[0].array)
    p.take(buffer)
    p.define(let.outs[0], (buffer.slot,))


def _copied(let: Let) -> tuple[Row, Var] | None:
    """The row that a Let replaces, and by what, if it does only that."""
    call = let.rhs
    if not isinstance(call, KernelCall) or len(call.function.body.lets) != 1:
        return None
    (update,) = call.function.body.lets
    rhs, results = update.rhs, call.function.body.results
    if not isinstance(rhs, OpCall) or rhs.op.name != "index_update" or results != update.outs:
        return None
    given: dict[Atom, Atom] = dict(zip(call.function.params, call.args, strict=True))
    array, value, *index = (given.get(a, a) for a in rhs.args)
    whole, part = array.type, value.type
    assert isinstance(whole, TensorType)
    assert isinstance(part, TensorType)
    if rhs.attrs["axes"] != (0,) or len(index) != 1 or not part.shape:
        return None
    if not isinstance(array, Var) or not isinstance(value, Var) or part.dtype != whole.dtype:
        return None
    return (Row(array, index[0]), value) if part.shape == whole.shape[1:] else None


def _is_result(p: FunctionPlanner, let: Let, value: Var) -> bool:
    """Whether a Let makes an array in a buffer of its own that may as well lie elsewhere."""
    if not isinstance(let.rhs, KernelCall) or _copied(let) is not None:
        return False
    lowering = p.program.lowering(let.rhs.function).lowering
    if (lowering.attention or lowering.attention_gradient or lowering.half_product) is not None:
        return False
    return not lowering.aliases or lowering.aliases[let.outs.index(value)] is None


def _is_ours(p: FunctionPlanner, array: Var) -> bool:
    """Whether an array belongs to the block that is planned, alone."""
    buffer = p.buffers.get(array)
    return (
        buffer is not None and buffer.owned and buffer not in p.gone
        and buffer.scope is p.scope and buffer.readers == [array]
    )
