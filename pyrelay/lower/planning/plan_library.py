"""Ops with kernels of their own on a device: products of matrices and of images, scans,
scatters; and host calls.

In: the Let of such an op. Out: instructions that allocate its result and launch its kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyrelay.errors import InvariantError
from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import KernelCall, Let, OpCall
from pyrelay.ir.types import DType, TensorType, Type
from pyrelay.lower.planning import (
    host,
    plan_panels,
    plan_places,
    plan_scatters,
    plan_sorts,
    plan_ufuncs,
)
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import (
    Free,
    Immediate,
    KernelAddress,
    Launch,
    Slot,
    Value,
    Zero,
    immediate,
)
from pyrelay.lower.planning.target import (
    BACK,
    FORWARD,
    WEIGHTS,
    ConvolutionKernel,
    OnePassScan,
    ScanKernels,
    Target,
)
from pyrelay.opt.halves import is_half
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner
    from pyrelay.lower.planning.plan_panels import Panels
    from pyrelay.lower.planning.program import Group


_PICOSECONDS_PER_BYTE = 12  # of a matrix that lies in the second-level cache, on one core
_PICOSECONDS_PER_STEP = 1000  # of a scan
_WORD_BYTES = 8
_SPLIT_BLOCKS = 512
"""Blocks that sums of a product are cut for, where its result alone has fewer."""
_LEAST_PART = 512  # places of a sum that is cut
_AXES = 3  # of the images that convolutions take
_PRODUCTS = {"convolve": FORWARD, "convolve_weights": WEIGHTS, "convolve_back": BACK}


@dataclass(frozen=True, slots=True)
class Finish:
    """A kernel that finishes a product: its number, its operands but for those that the product
    fills in, and about how many picoseconds it spends on an element."""

    kernel: int
    operands: tuple[Value, ...]
    cost: Extent


def product(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan a product of matrices or images into a buffer of its own."""
    (out,) = let.outs
    address = p.allocate(out.type)
    a, b = map(p.scalar, call.args)
    types = [v.type for v in (*call.args, out)]
    panels = plan_panels.of_operation(p, call, out)
    launch_product(p, call, types, (a, b, Slot(address)), panels)
    p.define(out, (address,))


def half_product(p: FunctionPlanner, let: Let, call: KernelCall, group: Group) -> None:
    """Plan a group that is a product of matrices or images of 16-bit floats."""
    assert group.lowering.half_product is not None
    product, places = group.lowering.half_product
    assert isinstance(product.rhs, OpCall)
    operands = [call.args[k] for k in places]
    (out,) = let.outs
    address = p.allocate(out.type)
    addresses = (*(Slot(p.buffer(a).slot) for a in operands), Slot(address))
    names = walk.Renaming()
    names.dims.update(zip(group.dims, call.dims, strict=True))
    inner = replace(product.rhs, attrs=names.attrs(product.rhs.attrs))
    launch_product(p, inner, [a.type for a in (*operands, out)], addresses, None)
    p.define(out, (address,))


def launch_product(
    p: FunctionPlanner, call: OpCall, operand_types: Sequence[Type | None],
    addresses: Sequence[Value], panels: Panels | None, finish: Finish | None = None,
    when: Extent = 1,
) -> None:
    """A product of operands at addresses, into the last of them; `panels` hold the second operand,
    `finish` is done to the product. `when`: 1 or 0, whether a convolution is launched."""
    if call.op.schedule == "matmul":
        _launch_matmul(p, call.attrs, operand_types, addresses, panels, finish)
    else:
        _launch_convolution(p, call, operand_types, addresses, finish, when)


def finishing(finish: Finish | None) -> tuple[Value, Value]:
    """The kernel's address and the number of its operands; 0 for none."""
    if finish is None:
        return ZERO, ZERO
    return KernelAddress(finish.kernel), immediate(len(finish.operands))


def _launch_matmul(
    p: FunctionPlanner, attrs: Mapping[str, Any], operand_types: Sequence[Type | None],
    addresses: Sequence[Value], panels: Panels | None, finish: Finish | None,
) -> None:
    """A matrix product, by panels where they were laid: parameters as `target` says."""
    a, b, c = operand_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    assert isinstance(c, TensorType)
    transpose_a, transpose_b = attrs["transpose_a"], attrs["transpose_b"]
    m, n, k = extents_of_product(attrs, a, c)
    batch = c.shape[:-2]
    if a.rank > b.rank == 2 and not transpose_a and panels is None:
        # The rows of all matrices follow each other: they are those of one.
        m, batch = dims.product((*batch, m)), ()
        a = TensorType(a.dtype, (m, k))
    target = p.program.target
    if is_half(a.dtype):
        assert target.half_matmul is not None
        kernel = target.half_matmul(a.dtype, c.dtype, len(batch))
    else:
        kernel = target.matmul(c.dtype, len(batch))
    source, operands, gates = kernel.source, [*addresses], 1
    by_rows = panels is not None and panels.gates != plan_panels.SINGLE
    if not by_rows:
        p.program.expect_product(kernel, (m, n, k), transpose_a, transpose_b)
    form: Value = Immediate(int(transpose_b))
    line = n
    if panels is not None:
        assert kernel.panels is not None
        operands[1], form = panels.address, panels.form
        if by_rows:
            source, gates = kernel.panels.source, panels.gates
            n = dims.quotient(n, gates)
    operands += (*p.sizes.values((m, n, k, int(transpose_a))), form)
    operands += p.sizes.values((0, a.shape[-1], b.shape[-1], line, len(batch)))
    operands += finishing(finish)
    strides = batch_strides(a, batch), batch_strides(b, batch)
    for along in zip(batch, *strides, strict=True):
        operands += p.sizes.values(along)
    rows = dims.quotient_up(m, kernel.row_unit)
    columns = dims.quotient_up(n, kernel.column_unit)
    height, width = dims.minimum(m, kernel.row_unit), dims.minimum(n, kernel.column_unit)
    # Each element of b is read once and serves `height` products: few rows wait for memory.
    reading = c.dtype.size * _PICOSECONDS_PER_BYTE
    spent = dims.product((gates, k, dims.add(dims.multiply(height, kernel.picoseconds), reading)))
    if finish is not None:
        spent = dims.add(spent, dims.multiply(height, finish.cost))
    extent, cost = dims.product((rows, columns, *batch)), dims.product((width, spent))
    if by_rows:
        part: tuple[Value, ...] = p.sizes.values((0, m))
        operands += part if p.part is None else p.part.product(extent, cost)
    if finish is not None:
        operands += finish.operands
    p.frame.emit(
        Launch(
            p.program.source(source, "matmul"), tuple(operands), p.sizes.value(extent),
            p.sizes.value(cost), evenly=True,
        )
    )


def extents_of_product(
    attrs: Mapping[str, Any], a: TensorType, c: TensorType
) -> tuple[Extent, Extent, Extent]:
    """m, n and k of a product c with a left operand a."""
    return c.shape[-2], c.shape[-1], a.shape[-2 if attrs["transpose_a"] else -1]


def batch_strides(operand: TensorType, batch: Sequence[Extent]) -> list[Extent]:
    """How many elements the operand advances along each batch axis; 0 where it is broadcast."""
    own = operand.shape[:-2]
    strides: list[Extent] = [0] * (len(batch) - len(own))
    for axis, extent in enumerate(own):
        strides.append(0 if extent == 1 else dims.product(operand.shape[axis + 1 :]))
    return strides


def _launch_convolution(
    p: FunctionPlanner, call: OpCall, operand_types: Sequence[Type | None],
    addresses: Sequence[Value], finish: Finish | None, when: Extent,
) -> None:
    """One of the products of a convolution: parameters as `target.ConvolutionKernel` says."""
    what, last, groups = _PRODUCTS[call.op.name], call.attrs["channels_last"], call.attrs["groups"]
    left, _, result = operand_types
    assert isinstance(left, TensorType)
    assert isinstance(result, TensorType)
    kernel = convolution_of(p.program.target, call, left.dtype, result.dtype)
    operands = [*addresses]
    sizes, axes = extents_of_convolution(call, operand_types)
    p.program.expect_convolution(kernel, sizes, axes)
    for along in (sizes, *axes):
        operands += p.sizes.values(along)
    entries, _, share, own = sizes
    extents, taps, positions = (tuple(axis[k] for axis in axes) for k in range(3))
    operands += finishing(finish)
    if finish is not None:
        operands += finish.operands
    values, pixels = dims.product((share, *taps)), dims.product(positions)
    columns: Extent = own
    if what == BACK:
        blocks, work = entries, dims.product((own, pixels, *taps))
        columns = share
        if kernel.back_pixels:
            blocks = dims.quotient_up(dims.product((entries, *extents)), kernel.back_pixels)
            work = dims.product((own, kernel.back_pixels, *taps))
    elif what == WEIGHTS:
        blocks = dims.quotient_up(values, kernel.rows)
        work = dims.product((entries, pixels, kernel.rows))
    elif last:
        blocks = dims.quotient_up(dims.multiply(entries, pixels), kernel.pixels)
        work = dims.multiply(values, kernel.pixels)
    else:
        blocks = dims.multiply(entries, dims.quotient_up(pixels, kernel.pixels))
        work = dims.multiply(values, dims.minimum(pixels, kernel.pixels))
    width = dims.minimum(columns, kernel.columns)
    spent = dims.multiply(work, kernel.picoseconds)
    if finish is not None:
        spent = dims.add(spent, dims.multiply(dims.minimum(pixels, kernel.pixels), finish.cost))
    tiles = dims.product((blocks, groups, dims.quotient_up(columns, kernel.columns)))
    cost = p.sizes.value(dims.multiply(width, spent))
    parts: Extent = 0
    if kernel.parts is not None:
        parts = _convolution_parts(
            p, call, kernel, operands, tiles, dims.multiply(entries, pixels), result
        )
    if parts == 1:
        return
    p.frame.emit(
        Launch(
            p.program.source(kernel.source, call.op.name), tuple(operands),
            p.sizes.value(dims.product((tiles, dims.add(1, dims.multiply(-1, parts)), when))),
            cost, evenly=kernel.evenly,
        )
    )


def extents_of_convolution(
    call: OpCall, operand_types: Sequence[Type | None]
) -> tuple[tuple[Extent, ...], list[tuple[Extent, ...]]]:
    """Entries, groups, channels and outputs of a group, and of three axes what
    `ConvolutionSizes` says."""
    attrs, what = call.attrs, _PRODUCTS[call.op.name]
    left, right, result = operand_types
    assert isinstance(left, TensorType)
    assert isinstance(right, TensorType)
    assert isinstance(result, TensorType)
    x, w, y = {
        FORWARD: (left, right, result), WEIGHTS: (left, result, right), BACK: (result, right, left)
    }[what]
    last, groups = attrs["channels_last"], attrs["groups"]
    entries, channels, extents = _image(x, last)
    _, outputs, positions = _image(y, last)
    taps = w.shape[:-2] if last else w.shape[2:]
    axes: list[tuple[Extent, ...]] = [(1, 1, 1, 1, 1, 0)] * (_AXES - len(extents))
    axes += zip(
        extents, taps, positions, attrs["stride"], attrs["dilation"], attrs["before"], strict=True
    )
    share, own = dims.quotient(channels, groups), dims.quotient(outputs, groups)
    return (entries, groups, share, own), axes


def _convolution_parts(
    p: FunctionPlanner, call: OpCall, whole: ConvolutionKernel, operands: Sequence[Value],
    tiles: Extent, length: Extent, result: TensorType,
) -> Extent:
    """A convolution with long sums, in parts, where its result has too few blocks to fill a device;
    1 if the extents of a call are such, else 0, and then nothing is launched."""
    kernel = whole.parts
    assert kernel is not None
    few = dims.quotient(_SPLIT_BLOCKS, dims.maximum(tiles, 1))
    parts = dims.maximum(dims.minimum(few, dims.quotient(length, _LEAST_PART)), 1)
    when = dims.minimum(dims.quotient(parts, 2), 1)
    if when == 0:
        return 0
    chunk = dims.multiply(dims.quotient_up(dims.quotient_up(length, parts), 32), 32)
    parts = dims.multiply(dims.quotient_up(length, dims.maximum(chunk, 1)), when)
    elements = dims.product(result.shape)
    room = p.frame.slot()
    p.frame.allocate(room, p.sizes.value(dims.product((parts, elements, kernel.sums.size))))
    p.frame.emit(Launch(
        p.program.source(kernel.source, call.op.name),
        (*operands[:2], Slot(room), *operands[3:-2], p.sizes.value(chunk), operands[-1]),
        p.sizes.value(dims.multiply(tiles, parts)), ZERO, rare=kernel.source != whole.source,
    ))
    p.frame.emit(Launch(
        p.program.source(kernel.totals, call.op.name),
        (operands[2], Slot(room), *p.sizes.values((elements, parts))),
        p.sizes.value(dims.multiply(dims.quotient_up(elements, 32), when)), ZERO, rare=True,
    ))
    p.frame.emit(Free(Slot(room)))
    return when


def convolution_of(target: Target, call: OpCall, of: DType, made: DType) -> ConvolutionKernel:
    """The device's kernel for a product of images, with operands `of` a type."""
    what, last = _PRODUCTS[call.op.name], call.attrs["channels_last"]
    if not is_half(of):
        return target.convolution(made, what, last)
    assert target.half_convolution is not None
    return target.half_convolution(of, made, what, last)


def is_in_registers(target: Target, call: OpCall, operand_types: Sequence[Type | None]) -> bool:
    """Whether a product is finished before it is in memory."""
    if call.op.schedule == "matmul":
        return False
    of, made = operand_types[0], operand_types[-1]
    assert isinstance(of, TensorType)
    assert isinstance(made, TensorType)
    return convolution_of(target, call, of.dtype, made.dtype).in_registers


def _image(ty: TensorType, last: bool) -> tuple[Extent, Extent, tuple[Extent, ...]]:
    """Entries, channels, extents."""
    if last:
        return ty.shape[0], ty.shape[-1], ty.shape[1:-1]
    return ty.shape[0], ty.shape[1], ty.shape[2:]


def scan(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan a scan along an axis: parameters as `target.ScanKernels` says."""
    ty = let.outs[0].type
    assert isinstance(ty, TensorType)
    assert p.program.target.scan is not None
    axis = call.attrs["axis"] % ty.rank
    outer, inner = dims.product(ty.shape[:axis]), dims.product(ty.shape[axis + 1 :])
    length, lines = ty.shape[axis], dims.multiply(outer, inner)
    kernels = p.program.target.scan(call.op.name, ty.dtype, inner == 1)
    chunk: Extent = dims.maximum(length, 1)
    if kernels.most > 1:
        whole = dims.multiply(length, dims.minimum(dims.quotient(lines, kernels.enough), 1))
        shortest = dims.maximum(dims.quotient_up(length, kernels.most), kernels.shortest)
        chunk = dims.maximum(whole, shortest)
    chunks, once = dims.quotient_up(length, chunk), _once(p, kernels, lines, length)
    # Chunks where it takes more than one pass; all but a line's last have totals.
    several = dims.multiply(lines, dims.add(1, dims.multiply(-1, once)))
    before = dims.multiply(several, dims.maximum(dims.add(chunks, -1), 0))
    address, totals, sizes = p.allocate(ty), p.frame.slot(), p.sizes
    told = _told_bytes(kernels.once, lines, length, once)
    p.frame.allocate(totals, sizes.value(dims.add(dims.multiply(before, kernels.nbytes), told)))
    places = [*map(p.scalar, call.args), Slot(totals), Slot(address)]
    reverse, cost = int(call.attrs["reverse"]), dims.multiply(chunk, _PICOSECONDS_PER_STEP)
    operands = *places, *sizes.values((outer, length, inner, chunk, reverse))
    launches = [
        (kernels.totals, operands, before),
        (kernels.scan, operands, dims.multiply(several, chunks)),
    ]
    if kernels.once is not None and once != 0:
        p.frame.emit(Zero(Slot(totals), sizes.value(told)))
        tiles = dims.product((lines, dims.quotient_up(length, kernels.once.tile), once))
        own = *places, *sizes.values((lines, length, reverse))
        launches.append((kernels.once.source, own, tiles))
    for place, (text, given, items) in enumerate(launches):
        if text and items != 0:
            number = p.program.source(text, call.op.name)
            extent, late = sizes.value(items), place > 1
            p.frame.emit(Launch(number, given, extent, sizes.value(cost), rare=late))
    p.frame.emit(Free(Slot(totals)))
    p.define(let.outs[0], (address,))


def _once(p: FunctionPlanner, kernels: ScanKernels, lines: Extent, length: Extent) -> Extent:
    """1 where a scan goes in one pass over memory, or 0."""
    if kernels.once is None or p.scope.level:
        return 0
    many = dims.minimum(dims.quotient(lines, kernels.enough), 1)
    elements = dims.product((lines, length, dims.add(1, dims.multiply(-1, many))))
    return dims.minimum(dims.quotient(elements, kernels.once.least), 1)


def _told_bytes(
    kernel: OnePassScan | None, lines: Extent, length: Extent, once: Extent
) -> Extent:
    """How many bytes of memory tiles tell each other what they come to by."""
    if kernel is None:
        return 0
    tiles = dims.quotient_up(length, kernel.tile)
    groups = dims.quotient_up(tiles, kernel.group)
    places = dims.add(dims.add(tiles, groups), dims.quotient_up(groups, kernel.larger))
    words = dims.add(kernel.head, dims.product((lines, places, kernel.words)))
    return dims.product((words, _WORD_BYTES, once))


def _host(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    if not plan_ufuncs.ufunc_call(p, let, call):
        host.host_call(p, let, call)


_LIBRARY = {
    "matmul": product, "convolution": product, "scan": scan, "scatter": plan_scatters.scatter,
    "sort": plan_sorts.sort, "places": plan_places.places, "host": _host,
}  # fmt: skip


def library_call(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan an op with kernels of its own, or one that Python computes."""
    if call.op.schedule not in _LIBRARY:
        raise InvariantError(f"{call.op.name} has no kernel", span=let.span)
    _LIBRARY[call.op.schedule](p, let, call)
