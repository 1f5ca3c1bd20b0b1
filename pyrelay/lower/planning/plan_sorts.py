"""Sorting by a device's own kernels.

In: the Let of a `sort` or an `argsort`. Out: a launch of a kernel that sorts lines; or instructions
that sort tiles of each line and then merge runs of twice the length again and again, from one pair
of buffers to another, until a run is a line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyrelay.ir import dims
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.types import DType, TensorType
from pyrelay.lower.planning.instructions import (
    Binary,
    Free,
    Jump,
    JumpUnless,
    Launch,
    Poll,
    Slot,
    Unary,
    immediate,
)
from pyrelay.lower.planning.target import LineSort

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_PLACE_BYTES = 8
_PICOSECONDS = 1000  # for an element, in each pass


def sort(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan the op by what the device has for it."""
    if p.program.target.line_sort is not None:
        _lines(p, let, call, p.program.target.line_sort)
    else:
        _tiles(p, let, call)


def _lines(
    p: FunctionPlanner, let: Let, call: OpCall, kernels: Callable[[str, DType], LineSort]
) -> None:
    """By one launch: parameters as `target.LineSort` says."""
    ty, x = let.outs[0].type, call.args[0].type
    assert isinstance(ty, TensorType)
    assert isinstance(x, TensorType)
    kernel = kernels(call.op.name, x.dtype)
    lines, length = ty.shape
    result, room = p.allocate(ty), p.frame.slot()
    p.frame.allocate(room, p.sizes.value(dims.product((lines, length, kernel.room_bytes))))
    p.frame.emit(Launch(
        p.program.source(kernel.source, call.op.name),
        (p.scalar(call.args[0]), Slot(result), Slot(room), *p.sizes.values((length,))),
        p.sizes.value(lines), p.sizes.value(dims.multiply(length, kernel.picoseconds)),
    ))
    p.frame.emit(Free(Slot(room)))
    p.define(let.outs[0], (result,))


def _tiles(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Places by tiles and merges: parameters as `target.SortKernels` says."""
    ty, x = let.outs[0].type, call.args[0].type
    assert isinstance(ty, TensorType)
    assert isinstance(x, TensorType)
    assert p.program.target.sort is not None
    kernels = p.program.target.sort(x.dtype)
    lines, length = ty.shape
    emit = p.frame.emit
    tiles = dims.quotient_up(length, kernels.tile)
    parts = dims.quotient_up(length, kernels.part)
    # One tile is sorted when it is: then nothing is kept of the keys.
    merges = dims.minimum(dims.maximum(dims.add(tiles, -1), 0), 1)
    count = dims.product((lines, length, merges))
    order = p.allocate(ty)
    other, keys, other_keys = p.frame.slot(), p.frame.slot(), p.frame.slot()
    p.frame.allocate(other, p.sizes.value(dims.multiply(count, _PLACE_BYTES)))
    for slot in (keys, other_keys):
        p.frame.allocate(slot, p.sizes.value(dims.multiply(count, kernels.key_bytes)))
    emit(Launch(
        p.program.source(kernels.tiles, "argsort"),
        (p.scalar(call.args[0]), Slot(keys), Slot(order), *p.sizes.values((length, merges))),
        p.sizes.value(dims.multiply(lines, tiles)), immediate(kernels.tile * _PICOSECONDS),
    ))
    width, shorter, kept = p.frame.slot(), p.frame.slot(), p.frame.slot()
    head, end = p.frame.label("merge"), p.frame.label("merged")
    emit(Unary("move", width, immediate(kernels.tile)))
    p.frame.place(head)
    emit(Binary("lt.i64", shorter, Slot(width), p.sizes.value(length)))
    emit(JumpUnless(Slot(shorter), end))
    emit(Launch(
        p.program.source(kernels.merge, "argsort"),
        (
            Slot(keys), Slot(order), Slot(other_keys), Slot(other), p.sizes.value(length),
            Slot(width),
        ),
        p.sizes.value(dims.multiply(lines, parts)), immediate(kernels.part * _PICOSECONDS),
    ))
    for one, two in ((order, other), (keys, other_keys)):
        emit(Unary("move", kept, Slot(one)))
        emit(Unary("move", one, Slot(two)))
        emit(Unary("move", two, Slot(kept)))
    emit(Binary("add.i64", width, Slot(width), Slot(width)))
    emit(Poll())
    emit(Jump(head))
    p.frame.place(end)
    for slot in (other, keys, other_keys):
        emit(Free(Slot(slot)))
    p.define(let.outs[0], (order,))
