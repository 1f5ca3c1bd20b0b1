"""Sorting by a device's own kernels.

In: the Let of a `sort`, an `argsort` or a `partition`. Out: a launch of a kernel that sorts lines,
or partitions them; or launches of one that sorts several short lines at once, and of those that
sort long ones digit by digit, from one pair of buffers to another: a sorted line is partitioned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.types import DType, TensorType
from pyrelay.lower.planning.instructions import (
    Binary,
    Free,
    Jump,
    JumpUnless,
    Launch,
    Slot,
    Value,
    Zero,
    immediate,
)
from pyrelay.lower.planning.target import LineSort, SortKernels

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_WORD_BYTES = 8
_NARROW = 1 << 32  # elements of a line whose places have 32 bits, at most
_PICOSECONDS = 1000  # for an element, in each pass


def sort(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan the op by what the device has for it."""
    if p.program.target.line_sort is not None:
        _lines(p, let, call, p.program.target.line_sort)
    else:
        _digits(p, let, call)


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
    operands = [p.scalar(call.args[0]), Slot(result), Slot(room), *p.sizes.values((length,))]
    if call.op.name == "partition":
        places = call.args[1].type
        assert isinstance(places, TensorType)
        each = places.shape[0] != 1  # line has places of its own
        steps = (places.shape[1], places.shape[1] if each else 0)
        operands += [p.scalar(call.args[1]), *p.sizes.values(steps)]
    p.frame.emit(Launch(
        p.program.source(kernel.source, call.op.name), tuple(operands),
        p.sizes.value(lines), p.sizes.value(dims.multiply(length, kernel.picoseconds)),
    ))
    p.frame.emit(Free(Slot(room)))
    p.define(let.outs[0], (result,))


def _digits(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """By digits: parameters as `target.SortKernels` says."""
    ty, x = let.outs[0].type, call.args[0].type
    assert isinstance(ty, TensorType)
    assert isinstance(x, TensorType)
    assert p.program.target.sort is not None
    lines, length = ty.shape
    # A kernel of a loop has all that its rounds may do: there places have 64 bits always.
    wide = call.op.name == "argsort"
    name = "argsort" if wide else "sort"
    in_loop = bool(p.scope.level)
    kernels = p.program.target.sort(name, x.dtype, wide, in_loop)
    emit, result = p.frame.emit, p.allocate(ty)
    test, long, end = p.frame.slot(), p.frame.label("long"), p.frame.label("sorted")
    emit(Binary("le.i64", test, p.sizes.value(length), immediate(kernels.tile)))
    emit(JumpUnless(Slot(test), long))
    fitting = dims.quotient(kernels.tile, dims.maximum(length, 1))
    together = dims.maximum(dims.minimum(fitting, kernels.most), 1)
    operands = [p.scalar(call.args[0]), Slot(result)]
    operands += p.sizes.values((length, lines, together))
    items = dims.multiply(dims.quotient_up(lines, together), dims.minimum(length, 1))
    _launch(p, call, kernels.lines, operands, items, kernels.tile)
    emit(Jump(end))
    p.frame.place(long)
    if wide and not in_loop:
        longer = p.frame.label("longer")
        emit(Binary("le.i64", test, p.sizes.value(length), immediate(_NARROW)))
        emit(JumpUnless(Slot(test), longer))
        _long(p, call, result, p.program.target.sort(name, x.dtype, False, False))
        emit(Jump(end))
        p.frame.place(longer)
    _long(p, call, result, kernels)
    p.frame.place(end)
    p.define(let.outs[0], (result,))


def _long(p: FunctionPlanner, call: OpCall, result: int, kernels: SortKernels) -> None:
    """Long lines of an operand."""
    ty = call.args[0].type
    assert isinstance(ty, TensorType)
    by_digits(p, call, kernels, p.scalar(call.args[0]), result, ty.shape, [1] * kernels.passes)


def by_digits(
    p: FunctionPlanner, call: OpCall, kernels: SortKernels, numbers: Value, result: int,
    shape: Sequence[Extent], passes: Sequence[Extent],
) -> None:
    """Launches that sort long lines: all digits are counted, then one after the other is sorted,
    of the least ones for which `passes` has a 1."""
    (lines, length), values, emit = shape, p.sizes.values, p.frame.emit
    of_line = dims.quotient_up(length, kernels.part)
    parts, groups = dims.multiply(lines, of_line), dims.quotient_up(of_line, kernels.group)
    counts = dims.add(dims.multiply(lines, dims.add(groups, kernels.passes)), parts)
    words = dims.add(kernels.head, dims.multiply(counts, kernels.values))
    memory, nbytes = p.frame.slot(), p.sizes.value(dims.multiply(words, _WORD_BYTES))
    p.frame.allocate(memory, nbytes)
    emit(Zero(Slot(memory), nbytes))
    chunks = dims.multiply(lines, dims.quotient_up(length, kernels.chunk))
    _launch(
        p, call, kernels.count, (numbers, Slot(memory), *values((length,))), chunks, kernels.chunk
    )
    pairs: list[list[int]] = []
    for size in (kernels.key_bytes, kernels.place_bytes)[: 1 + (kernels.place_bytes > 0)]:
        # The first pass reads the numbers, the last one writes the result.
        pair = [p.frame.slot() for _ in range(max(min(kernels.passes - 1, 2), 1))]
        for slot in pair:
            p.frame.allocate(slot, p.sizes.value(dims.product((lines, length, size))))
        pairs.append(pair)
    for number, done in enumerate(passes):
        turned = [Slot(pair[(number + k) % len(pair)]) for pair in pairs for k in (1, 0)]
        then = passes[number + 1] if number + 1 < len(passes) else 0
        ends = p.sizes.value(dims.add(done, dims.multiply(-1, then)))
        operands = [numbers, *turned, Slot(result), Slot(memory), *values((length, lines))]
        _launch(
            p, call, kernels.move, [*operands, immediate(number), ends],
            dims.multiply(parts, done), kernels.part,
        )
    for slot in (memory, *(slot for pair in pairs for slot in pair)):
        emit(Free(Slot(slot)))


def _launch(
    p: FunctionPlanner, call: OpCall, text: str, operands: Sequence[Value], items: Extent,
    elements: int,
) -> None:
    """A launch of a kernel whose items have so many elements; it is compiled when it is needed,
    or with the others of the loop that it is part of."""
    p.frame.emit(Launch(
        p.program.source(text, call.op.name), tuple(operands), p.sizes.value(items),
        immediate(elements * _PICOSECONDS), rare=not p.scope.level,
    ))
