"""Scatters by a device's own kernels.

In: the Let of rows written or added at indices. Out: instructions that launch the kernel which goes
through all indices in order; or, where there are many, those which share them. Rows are added in
the order of their places then (`plan_sorted_adds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.planning import plan_sorted_adds
from pyrelay.lower.planning.instructions import Free, Launch, Slot, Value
from pyrelay.lower.planning.plan_sorted_adds import MANY, at_least, sizes_of
from pyrelay.ops.index import OUT_OF_BOUNDS

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_PICOSECONDS = 1000  # for an element
_PLACE_BYTES = 8
_BLOCKS = 1024  # about how many fill a device
_COUNTED = 4096  # elements that a block counts, at least


def scatter(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan a scatter at leading axes: parameters as `target.ScatterKernel` says."""
    array, values, *indices = call.args
    ty, chosen = let.outs[0].type, indices[0].type
    assert isinstance(ty, TensorType)
    assert isinstance(chosen, TensorType)
    assert p.program.target.scatter is not None
    kernel = p.program.target.scatter(call.op.name, ty.dtype, len(indices))
    read = plan_sorted_adds.read_by(p, let)
    if let in p.zeroed:
        address: Value = Slot(p.allocate(ty))
    else:
        (address,) = p.hand_over((array,), read)
    assert isinstance(address, Slot)
    places = [p.scalar(a) for a in indices]
    extents, (rows, width) = ty.shape[: len(indices)], sizes_of(ty, len(indices))
    count = dims.product(chosen.shape)
    site = p.program.site("IndexError", OUT_OF_BOUNDS, (i64, i64, i64), let.span)

    def launch(text: str, operands: Sequence[Value], items: Extent, cost: Extent) -> None:
        number = p.program.source(text, call.op.name)
        p.frame.emit(Launch(
            number, tuple(operands), p.sizes.value(items),
            p.sizes.value(dims.multiply(cost, _PICOSECONDS)), first_site=site,
            rare=text in (*kernel.many, kernel.few),
        ))

    many: Extent = 0
    sorts = call.op.name == "scatter_add" and not kernel.counts
    if not p.scope.level:  # in loops it may be a phase of one kernel
        many = plan_sorted_adds.many(count, rows, width) if sorts else at_least(count, MANY)
    each = dims.maximum(width, 1)
    if many != 1:
        share = dims.maximum(dims.quotient_up(rows, kernel.most), 1)
        alone = dims.add(1, dims.multiply(-1, many))
        made = plan_sorted_adds.made_alone(p, let, alone) if let in p.made else p.scalar(values)
        sizes = count, rows, width, share, int(let in p.zeroed), *extents
        operands = [address, made, *places, *p.sizes.values(sizes)]
        launch(
            kernel.source, operands, dims.multiply(dims.quotient_up(rows, share), alone),
            dims.multiply(count, each),
        )
        if let in p.made:
            p.frame.emit(Free(made))
    if many == 0:
        p.define(let.outs[0], (address.index,))
        return
    if kernel.counts:
        operands = [address, p.scalar(values), *places]
        operands += p.sizes.values((count, rows, width, *extents))
        blocks, share = counting_blocks(dims.multiply(count, width))
        launch(kernel.many[0], operands, dims.multiply(blocks, many), share)
        p.define(let.outs[0], (address.index,))
        return
    if sorts:
        plan_sorted_adds.sorted_adds(p, let, kernel, launch, address, many)
    else:
        room = p.frame.slot()
        cleared, claimed, written = kernel.many
        p.frame.allocate(room, p.sizes.value(dims.product((rows, many, _PLACE_BYTES))))
        launch(cleared, (Slot(room),), dims.multiply(rows, many), 1)
        operands = [Slot(room), *places, *p.sizes.values(extents)]
        launch(claimed, operands, dims.multiply(count, many), 1)
        operands = [address, p.scalar(values), Slot(room), *places]
        operands += p.sizes.values((width, *extents))
        launch(written, operands, dims.product((count, width, many)), 1)
        p.frame.emit(Free(Slot(room)))
    p.define(let.outs[0], (address.index,))
    if let in p.made:
        p.release(p.made[let].maker)


def counting_blocks(elements: Extent) -> tuple[Extent, int]:
    """How many blocks count so many elements, and how many of these each has, about."""
    return dims.minimum(dims.quotient_up(elements, _COUNTED), _BLOCKS), _COUNTED
