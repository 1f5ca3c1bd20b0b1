"""Ops with kernels of their own on a device: products of matrices and of images; and host calls.

In: the Let of such an op. Out: instructions that allocate its result and launch its kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrelay.errors import InvariantError
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.types import TensorType, Type
from pyrelay.lower import host
from pyrelay.lower.frame import ZERO
from pyrelay.lower.instructions import KernelAddress, Launch, Slot, Value, immediate
from pyrelay.lower.target import BACK, FORWARD, WEIGHTS

if TYPE_CHECKING:
    from pyrelay.lower.plan_function import FunctionPlanner


_PICOSECONDS_PER_BYTE = 12  # of a matrix that lies in the second-level cache, on one core
_AXES = 3  # of the images that convolutions take
_PRODUCTS = {"convolve": FORWARD, "convolve_weights": WEIGHTS, "convolve_back": BACK}


@dataclass(frozen=True, slots=True)
class Finish:
    """A kernel that finishes a product: its number, its operands but for those that the product
    fills in, and about how many picoseconds it spends on an element."""

    kernel: int
    operands: tuple[Value, ...]
    cost: Extent


def matmul(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan a matrix product into a buffer of its own."""
    (out,) = let.outs
    address = p.allocate(out.type)
    a, b = map(p.scalar, call.args)
    launch_matmul(p, call.attrs, [v.type for v in (*call.args, out)], (a, b, Slot(address)))
    p.define(out, (address,))


def launch_matmul(
    p: FunctionPlanner, attrs: Mapping[str, Any], operand_types: Sequence[Type | None],
    addresses: Sequence[Value], finish: Finish | None = None,
) -> None:
    """A matrix product: parameters as `target.MatmulKernel` says."""
    a, b, c = operand_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    assert isinstance(c, TensorType)
    transpose_a, transpose_b = attrs["transpose_a"], attrs["transpose_b"]
    m, n = c.shape[-2:]
    k = a.shape[-2] if transpose_a else a.shape[-1]
    batch = c.shape[:-2]
    kernel = p.program.target.matmul(c.dtype, len(batch))
    operands = [*addresses]
    operands += p.sizes.values(
        (m, n, k, int(transpose_a), int(transpose_b), 0, a.shape[-1], b.shape[-1], n, len(batch))
    )
    finisher = (KernelAddress(finish.kernel), len(finish.operands)) if finish else (ZERO, 0)
    operands += [finisher[0], immediate(finisher[1])]
    strides = _batch_strides(a, batch), _batch_strides(b, batch)
    for along in zip(batch, *strides, strict=True):
        operands += p.sizes.values(along)
    if finish is not None:
        operands += finish.operands
    rows = dims.quotient(dims.add(m, kernel.row_unit - 1), kernel.row_unit)
    columns = dims.quotient(dims.add(n, kernel.column_unit - 1), kernel.column_unit)
    height, width = dims.minimum(m, kernel.row_unit), dims.minimum(n, kernel.column_unit)
    # Each element of b is read once and serves `height` products: few rows wait for memory.
    reading = c.dtype.size * _PICOSECONDS_PER_BYTE
    spent = dims.product((k, dims.add(dims.multiply(height, kernel.picoseconds), reading)))
    if finish is not None:
        spent = dims.add(spent, dims.multiply(height, finish.cost))
    p.frame.emit(
        Launch(
            p.program.source(kernel.source, "matmul"), tuple(operands),
            p.sizes.value(dims.product((rows, columns, *batch))),
            p.sizes.value(dims.product((width, spent))),
        )
    )


def _batch_strides(operand: TensorType, batch: Sequence[Extent]) -> list[Extent]:
    """How many elements the operand advances along each batch axis; 0 where it is broadcast."""
    own = operand.shape[:-2]
    strides: list[Extent] = [0] * (len(batch) - len(own))
    for axis, extent in enumerate(own):
        strides.append(0 if extent == 1 else dims.product(operand.shape[axis + 1 :]))
    return strides


def convolution(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan one of the products of a convolution: parameters as `ConvolutionKernel` says."""
    attrs, what = call.attrs, _PRODUCTS[call.op.name]
    (out,) = let.outs
    left, right = (arg.type for arg in call.args)
    result = out.type
    assert isinstance(left, TensorType)
    assert isinstance(right, TensorType)
    assert isinstance(result, TensorType)
    x, w, y = {
        FORWARD: (left, right, result), WEIGHTS: (left, result, right), BACK: (result, right, left)
    }[what]
    last, groups = attrs["channels_last"], attrs["groups"]
    kernel = p.program.target.convolution(result.dtype, what, last)
    address = p.allocate(result)
    operands: list[Value] = [p.scalar(call.args[0]), p.scalar(call.args[1]), Slot(address)]
    entries, channels, extents = _image(x, last)
    _, outputs, positions = _image(y, last)
    taps = w.shape[:-2] if last else w.shape[2:]
    share, own = dims.quotient(channels, groups), dims.quotient(outputs, groups)
    operands += p.sizes.values((entries, groups, share, own))
    operands += p.sizes.values((1, 1, 1, 1, 1, 0) * (_AXES - len(extents)))
    for along in zip(
        extents, taps, positions, attrs["stride"], attrs["dilation"], attrs["before"], strict=True
    ):
        operands += p.sizes.values(along)
    values, pixels = dims.product((share, *taps)), dims.product(positions)
    columns: Extent = own
    if what == BACK:
        blocks, work = entries, dims.product((own, pixels, *taps))
        columns = share
    elif what == WEIGHTS:
        blocks, work = _blocks(values, kernel.rows), dims.product((entries, pixels, kernel.rows))
    elif last:
        blocks = _blocks(dims.multiply(entries, pixels), kernel.pixels)
        work = dims.multiply(values, kernel.pixels)
    else:
        blocks = dims.multiply(entries, _blocks(pixels, kernel.pixels))
        work = dims.multiply(values, dims.minimum(pixels, kernel.pixels))
    width = dims.minimum(columns, kernel.columns)
    p.frame.emit(
        Launch(
            p.program.source(kernel.source, call.op.name), tuple(operands),
            p.sizes.value(dims.product((blocks, groups, _blocks(columns, kernel.columns)))),
            p.sizes.value(dims.product((work, width, kernel.picoseconds))),
        )
    )
    p.define(out, (address,))


def _image(ty: TensorType, last: bool) -> tuple[Extent, Extent, tuple[Extent, ...]]:
    """Entries, channels, extents."""
    if last:
        return ty.shape[0], ty.shape[-1], ty.shape[1:-1]
    return ty.shape[0], ty.shape[1], ty.shape[2:]


def _blocks(extent: Extent, unit: int) -> Extent:
    return dims.quotient(dims.add(extent, unit - 1), unit)


_LIBRARY = {"matmul": matmul, "convolution": convolution, "host": host.host_call}


def library_call(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan an op with kernels of its own, or one that Python computes."""
    if call.op.schedule not in _LIBRARY:
        raise InvariantError(f"{call.op.name} has no kernel", span=let.span)
    _LIBRARY[call.op.schedule](p, let, call)
