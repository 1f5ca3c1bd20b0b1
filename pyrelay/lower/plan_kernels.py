"""Kernel launches: the buffers that a fused group writes, reuses and needs in between.

A group's result takes the buffer of an argument that dies here where the kernels allow it; an
argument that the kernels write is owned, or a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrelay.errors import InvariantError
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, KernelCall, Let, OpCall
from pyrelay.ir.types import TensorType
from pyrelay.lower import host, plan_scalars
from pyrelay.lower import kernel as kernel_ir
from pyrelay.lower.instructions import (
    AddressOf,
    Alloc,
    Free,
    Launch,
    Operand,
    Slot,
    Value,
)
from pyrelay.lower.memory import Buffer, is_array
from pyrelay.lower.program import name_of

if TYPE_CHECKING:
    from pyrelay.lower.plan_function import FunctionPlanner


_PICOSECONDS_PER_BYTE = 12  # of a matrix that lies in the second-level cache, on one core


def kernel_call(p: FunctionPlanner, let: Let, call: KernelCall) -> None:
    """Plan a fused group: as instructions if it is a little scalar arithmetic, else as launches."""
    if plan_scalars.inline(p, let, call):
        return
    group = p.program.lowering(call.function)
    lowering, extents = group.lowering, dict(zip(group.dims, call.dims, strict=True))
    arrays = _arguments(p, call.args, lowering)
    outputs = _outputs(p, let, call, lowering, arrays)
    scratch: list[Value] = []
    for size in lowering.scratch:
        slot = p.frame.slot()
        p.frame.emit(Alloc(slot, p.sizes.substituted(size, extents)))
        scratch.append(Slot(slot))
    name = name_of(call.function)
    for kernel in lowering.kernels:
        operands: list[Operand] = []
        for parameter in kernel.parameters:
            k = parameter.position
            match parameter.role:
                case kernel_ir.ARRAY:
                    operands.append(arrays[k])
                case kernel_ir.SCALAR:
                    operands += p.value(call.args[k])
                case kernel_ir.EXTENT:
                    operands.append(p.sizes.value(call.dims[k]))
                case kernel_ir.OUTPUT:
                    operands.append(Slot(outputs[k]))
                case kernel_ir.SLOT:
                    operands.append(AddressOf(outputs[k]))
                case kernel_ir.SCRATCH | kernel_ir.ROW:
                    operands.append(scratch[k])
        p.frame.emit(
            Launch(
                p.program.kernel(kernel, name), tuple(operands),
                p.sizes.substituted(kernel.extent, extents),
                p.sizes.substituted(kernel.cost, extents),
                first_site=p.program.sites_of(kernel),
            )
        )
    for address in scratch:
        p.frame.emit(Free(address))
    for position in lowering.written - set(lowering.aliases):
        p.frame.emit(Free(arrays[position]))


def _arguments(
    p: FunctionPlanner, args: Sequence[Atom], lowering: kernel_ir.Lowering
) -> dict[int, Value]:
    """The address of each array argument; those that are written are ours alone."""
    buffers = {k: p.buffer(a) for k, a in enumerate(args) if is_array(a)}
    uses = Counter(buffers.values())
    addresses: dict[int, Value] = {}
    for k, buffer in buffers.items():
        if k in lowering.written:
            shared = (buffer,) if uses[buffer] > 1 else ()
            (addresses[k],) = p.hand_over((args[k],), shared)
        else:
            addresses[k] = Slot(buffer.slot)
    return addresses


def _outputs(
    p: FunctionPlanner, let: Let, call: KernelCall, lowering: kernel_ir.Lowering,
    arrays: dict[int, Value],
) -> list[int]:
    """For each result its first slot: of a scalar's words, or of the address of its buffer."""
    uses = Counter(p.buffer(a) for a in call.args if is_array(a))
    slots: list[int] = []
    for j, out in enumerate(let.outs):
        if not is_array(out):
            slots.append(p.fresh(out)[0])
            continue
        source = lowering.aliases[j] if lowering.aliases else None
        if source is not None:
            address = arrays[source]
            assert isinstance(address, Slot)
            slot = address.index
        else:
            reused = _reused(p, call, lowering, j, uses)
            slot = p.allocate(out.type) if reused is None else reused
        p.define(out, (slot,))
        slots.append(slot)
    return slots


def _reused(
    p: FunctionPlanner, call: KernelCall, lowering: kernel_ir.Lowering, j: int,
    uses: Counter[Buffer],
) -> int | None:
    """The address slot of an argument that dies here and may be overwritten with result `j`."""
    if not lowering.shares:
        return None
    for k in sorted(lowering.shares[j]):
        buffer = p.buffer(call.args[k])
        if uses[buffer] == 1 and p.is_free_to_take(buffer):
            p.take(buffer)
            return buffer.slot
    return None


# -- library ops -----------------------------------------------------------------------------------

def matmul(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan a matrix product: parameters as `target.MatmulKernel` says."""
    a, b = (arg.type for arg in call.args)
    (out,) = let.outs
    c = out.type
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    assert isinstance(c, TensorType)
    transpose_a, transpose_b = call.attrs["transpose_a"], call.attrs["transpose_b"]
    m, n = c.shape[-2:]
    k = a.shape[-2] if transpose_a else a.shape[-1]
    batch = c.shape[:-2]
    kernel = p.program.target.matmul(c.dtype)
    address = p.allocate(c)
    operands: list[Value] = [p.scalar(call.args[0]), p.scalar(call.args[1]), Slot(address)]
    operands += p.sizes.values((m, n, k, int(transpose_a), int(transpose_b), 0, len(batch)))
    strides = _batch_strides(a, batch), _batch_strides(b, batch)
    for along in zip(batch, *strides, strict=True):
        operands += p.sizes.values(along)
    rows = dims.quotient(dims.add(m, kernel.row_unit - 1), kernel.row_unit)
    columns = dims.quotient(dims.add(n, kernel.column_unit - 1), kernel.column_unit)
    height, width = dims.minimum(m, kernel.row_unit), dims.minimum(n, kernel.column_unit)
    # Each element of b is read once and serves `height` products: few rows wait for memory.
    reading = c.dtype.size * _PICOSECONDS_PER_BYTE
    spent = dims.add(dims.multiply(height, kernel.picoseconds), reading)
    p.frame.emit(
        Launch(
            p.program.source(kernel.source, "matmul"), tuple(operands),
            p.sizes.value(dims.product((rows, columns, *batch))),
            p.sizes.value(dims.product((width, k, spent))),
        )
    )
    p.define(out, (address,))


def _batch_strides(operand: TensorType, batch: Sequence[Extent]) -> list[Extent]:
    """How many elements the operand advances along each batch axis; 0 where it is broadcast."""
    own = operand.shape[:-2]
    strides: list[Extent] = [0] * (len(batch) - len(own))
    for axis, extent in enumerate(own):
        strides.append(0 if extent == 1 else dims.product(operand.shape[axis + 1 :]))
    return strides


_LIBRARY = {"matmul": matmul, "host": host.host_call}


def library_call(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan an op with kernels of its own, or one that Python computes."""
    if call.op.schedule not in _LIBRARY:
        raise InvariantError(f"{call.op.name} has no kernel", span=let.span)
    _LIBRARY[call.op.schedule](p, let, call)
