"""Scatters by a device's own kernels.

In: the Let of rows written or added at indices. Out: instructions that launch the kernel which goes
through all indices in order; or, where there are many, those which share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.planning.instructions import Free, Launch, Slot, Value
from pyrelay.ops.index import OUT_OF_BOUNDS

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_PICOSECONDS = 1000  # for an element
_PLACE_BYTES = 8
_NEIGHBOURS = 32  # elements that a block adds up the parts of

_MANY = 4096
"""Indices that are shared."""
_PART, _PARTS, _BLOCKS = 1024, 1024, 2048
"""Indices in a part, at least; parts, at most; about how many blocks fill a device."""
_COUNTED = 4096  # elements that a block counts, at least
_ROOM = 4
"""The arrays of all parts have at most so many rows for each index."""


def scatter(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan a scatter at leading axes: parameters as `target.ScatterKernel` says."""
    array, values, *indices = call.args
    ty, chosen = let.outs[0].type, indices[0].type
    assert isinstance(ty, TensorType)
    assert isinstance(chosen, TensorType)
    assert p.program.target.scatter is not None
    kernel = p.program.target.scatter(call.op.name, ty.dtype, len(indices))
    read = [p.buffer(a) for a in (values, *indices)]
    (address,) = p.hand_over((array,), read)
    assert isinstance(address, Slot)
    given = [p.scalar(a) for a in (values, *indices)]
    extents = ty.shape[: len(indices)]
    rows, width = dims.product(extents), dims.product(ty.shape[len(indices) :])
    count = dims.product(chosen.shape)
    site = p.program.site("IndexError", OUT_OF_BOUNDS, (i64, i64, i64), let.span)

    def launch(text: str, operands: Sequence[Value], items: Extent, cost: Extent) -> None:
        number = p.program.source(text, call.op.name)
        p.frame.emit(Launch(
            number, tuple(operands), p.sizes.value(items),
            p.sizes.value(dims.multiply(cost, _PICOSECONDS)), first_site=site,
            rare=text in kernel.many,
        ))

    many: Extent = 0
    counts = call.op.name == "scatter_add" and len(kernel.many) == 1
    if not p.scope.level:  # in loops it may be a phase of one kernel
        adds = call.op.name == "scatter_add" and not counts
        many = _adds(count, rows) if adds else _at_least(count, _MANY)
    each = dims.maximum(width, 1)
    if many != 1:
        share = dims.maximum(dims.quotient_up(rows, kernel.most), 1)
        alone = dims.add(1, dims.multiply(-1, many))
        operands = [address, *given, *p.sizes.values((count, rows, width, share, *extents))]
        launch(
            kernel.source, operands, dims.multiply(dims.quotient_up(rows, share), alone),
            dims.multiply(count, each),
        )
    if many == 0:
        p.define(let.outs[0], (address.index,))
        return
    if counts:
        operands = [address, *given, *p.sizes.values((count, rows, width, *extents))]
        shares = dims.quotient_up(dims.multiply(count, width), _COUNTED)
        blocks = dims.minimum(shares, _BLOCKS // 2)
        launch(kernel.many[0], operands, dims.multiply(blocks, many), _COUNTED)
        p.define(let.outs[0], (address.index,))
        return
    room = p.frame.slot()
    if call.op.name == "scatter_add":
        parts = _parts(count, rows)
        ranges = dims.maximum(dims.quotient(_BLOCKS, parts), 1)
        share = dims.maximum(dims.quotient_up(rows, dims.minimum(ranges, kernel.most)), 1)
        chunk = dims.quotient_up(count, parts)
        # Some parts may be left without indices: what they would be is counted again.
        parts = dims.multiply(dims.quotient_up(count, dims.maximum(chunk, 1)), many)
        elements = dims.multiply(rows, width)
        nbytes = dims.product((parts, elements, ty.dtype.size))
        p.frame.allocate(room, p.sizes.value(nbytes))
        adding, totals = kernel.many
        operands = [Slot(room), *given]
        operands += p.sizes.values((count, rows, width, share, dims.maximum(chunk, 1), *extents))
        launch(
            adding, operands, dims.multiply(dims.quotient_up(rows, share), parts),
            dims.multiply(chunk, each),
        )
        operands = [address, Slot(room), *p.sizes.values((elements, parts))]
        adders = dims.quotient_up(elements, _NEIGHBOURS)
        launch(totals, operands, dims.multiply(adders, many), parts)
    else:
        cleared, claimed, written = kernel.many
        p.frame.allocate(room, p.sizes.value(dims.product((rows, many, _PLACE_BYTES))))
        launch(cleared, (Slot(room),), dims.multiply(rows, many), 1)
        operands = [Slot(room), *given[1:], *p.sizes.values(extents)]
        launch(claimed, operands, dims.multiply(count, many), 1)
        operands = [address, given[0], Slot(room), *given[1:], *p.sizes.values((width, *extents))]
        launch(written, operands, dims.product((count, width, many)), 1)
    p.frame.emit(Free(Slot(room)))
    p.define(let.outs[0], (address.index,))


def _adds(count: Extent, rows: Extent) -> Extent:
    """1 if indices at which rows are added had better be cut into parts, else 0."""
    enough = dims.minimum(_at_least(count, _MANY), _at_least(_parts(count, rows), 4))
    return dims.multiply(enough, _at_least(rows, 1))


def _parts(count: Extent, rows: Extent) -> Extent:
    """Into how many parts, 1 or more."""
    room = dims.quotient(dims.multiply(_ROOM, count), dims.maximum(rows, 1))
    parts = dims.minimum(dims.minimum(dims.quotient(count, _PART), room), _PARTS)
    return dims.maximum(parts, 1)


def _at_least(extent: Extent, least: int) -> Extent:
    """1 if an extent is no less than that, else 0."""
    return dims.minimum(dims.quotient(extent, least), 1)
