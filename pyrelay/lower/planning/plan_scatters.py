"""Scatters by a device's own kernels.

In: the Let of rows written or added at indices. Out: instructions that launch the kernel which goes
through all indices in order; or, where there are many, those which share them: rows are added in
the order of their places, which are sorted before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.types import DType, TensorType, i64, u32
from pyrelay.lower.planning import plan_sorts
from pyrelay.lower.planning.frame import ONE
from pyrelay.lower.planning.instructions import (
    Binary,
    Free,
    Jump,
    JumpUnless,
    Launch,
    Slot,
    Value,
    immediate,
)
from pyrelay.ops.index import OUT_OF_BOUNDS

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_PICOSECONDS = 1000  # for an element
_PLACE_BYTES = 8
_NUMBER_BYTES = 4

_MANY = 4096
"""Indices that are shared."""
_MOST = 1 << 32
"""Indices that are sorted, and rows where they add, at most: their numbers have 32 bits."""
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
            rare=text in (*kernel.many, kernel.few),
        ))

    many: Extent = 0
    if not p.scope.level:  # in loops it may be a phase of one kernel
        sorts = call.op.name == "scatter_add" and not kernel.counts
        many = _sorted(count, rows, width) if sorts else _at_least(count, _MANY)
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
    if kernel.counts:
        operands = [address, *given, *p.sizes.values((count, rows, width, *extents))]
        blocks, share = counting_blocks(dims.multiply(count, width))
        launch(kernel.many[0], operands, dims.multiply(blocks, many), share)
        p.define(let.outs[0], (address.index,))
        return
    if call.op.name == "scatter_add":
        adding, end = p.frame.slot(), p.frame.label("added")
        p.frame.emit(Binary("eq.i64", adding, p.sizes.value(many), ONE))
        p.frame.emit(JumpUnless(Slot(adding), end))
        numbers, order, few = p.frame.slot(), p.frame.slot(), p.frame.slot()
        p.frame.allocate(numbers, p.sizes.value(dims.multiply(count, _NUMBER_BYTES)))
        p.frame.allocate(order, p.sizes.value(dims.multiply(count, _PLACE_BYTES)))
        more, ordered = p.frame.label("more"), p.frame.label("ordered")
        p.frame.emit(Binary("le.i64", few, p.sizes.value(count), immediate(kernel.most_few)))
        p.frame.emit(JumpUnless(Slot(few), more))
        operands = [Slot(numbers), Slot(order), *given[1:], *p.sizes.values((count, *extents))]
        launch(kernel.few, operands, 1, count)
        p.frame.emit(Jump(ordered))
        p.frame.place(more)
        launch(kernel.many[0], [Slot(numbers), *given[1:], *p.sizes.values(extents)], count, 1)
        _order(p, call, Slot(numbers), order, (count, rows))
        p.frame.place(ordered)
        operands = [address, given[0], Slot(numbers), Slot(order)]
        _added(p, call, operands, (count, width), ty.dtype)
        p.frame.place(end)
    else:
        room = p.frame.slot()
        cleared, claimed, written = kernel.many
        p.frame.allocate(room, p.sizes.value(dims.product((rows, many, _PLACE_BYTES))))
        launch(cleared, (Slot(room),), dims.multiply(rows, many), 1)
        operands = [Slot(room), *given[1:], *p.sizes.values(extents)]
        launch(claimed, operands, dims.multiply(count, many), 1)
        operands = [address, given[0], Slot(room), *given[1:], *p.sizes.values((width, *extents))]
        launch(written, operands, dims.product((count, width, many)), 1)
        p.frame.emit(Free(Slot(room)))
    p.define(let.outs[0], (address.index,))


def counting_blocks(elements: Extent) -> tuple[Extent, int]:
    """How many blocks count so many elements, and how many of these each has, about."""
    return dims.minimum(dims.quotient_up(elements, _COUNTED), _BLOCKS), _COUNTED


def _order(
    p: FunctionPlanner, call: OpCall, numbers: Slot, order: int, extents: tuple[Extent, Extent]
) -> None:
    """The places that sort numbers of so many rows."""
    target, (count, rows) = p.program.target, extents
    assert target.sort is not None
    sorting = target.sort("argsort", u32, False, False)
    # Digits that no number has are not sorted by.
    passes: list[Extent] = [1]
    passes += [_at_least(rows, (1 << 8 * k) + 1) for k in range(1, sorting.passes)]
    plan_sorts.by_digits(p, call, sorting, numbers, order, (1, count), passes)


def _added(
    p: FunctionPlanner, call: OpCall, operands: list[Value], extents: tuple[Extent, Extent],
    dtype: DType,
) -> None:
    """Rows added in the order of the numbers of the array's rows: parameters as `SortedAdds` says;
    `operands` are its first ones. Frees the numbers and their order."""
    target, (count, width) = p.program.target, extents
    assert target.sorted_adds is not None
    kernels, carried = target.sorted_adds(dtype), p.frame.slot()
    chunks = dims.quotient_up(count, kernels.chunk)
    nbytes = dims.product((chunks, width, dtype.size))
    p.frame.allocate(carried, p.sizes.value(nbytes))
    beside = dims.maximum(dims.quotient(kernels.threads, dims.maximum(width, 1)), 1)
    parts = dims.quotient_up(width, kernels.threads)
    items = dims.multiply(dims.quotient_up(chunks, beside), parts)
    given = [*operands, Slot(carried), *p.sizes.values((count, width))]
    cost = dims.product((dims.minimum(width, kernels.threads), kernels.chunk, _PICOSECONDS))
    for text in (kernels.added, kernels.finished):
        p.frame.emit(Launch(
            p.program.source(text, call.op.name), tuple(given), p.sizes.value(items),
            p.sizes.value(cost), rare=True,
        ))
    for slot in (*operands[2:], Slot(carried)):
        p.frame.emit(Free(slot))


def _sorted(count: Extent, rows: Extent, width: Extent) -> Extent:
    """1 if rows had better be added in the order of their numbers, else 0."""
    found = dims.minimum(_at_least(count, _MANY), _at_least(dims.multiply(rows, width), 1))
    most = dims.maximum(count, rows)
    return dims.multiply(found, dims.add(1, dims.multiply(-1, _at_least(most, _MOST))))


def _at_least(extent: Extent, least: int) -> Extent:
    """1 if an extent is no less than that, else 0."""
    return dims.minimum(dims.quotient(extent, least), 1)
