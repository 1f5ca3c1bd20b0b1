"""Rows added at many indices, in the order of the places where they go.

In: a block, or a scatter of it that adds. Out: instructions that number and sort the rows which
indices mean, and add by that order. Where the array is zeros that nothing else reads, they are not
stored before: the kernel that numbers few indices fills the array, and the one that adds reads
nothing of it. Where one kernel makes nothing but the rows that are added, element by element, it is
not launched, unless there are few: the kernel that adds computes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, Const, KernelCall, Let, OpCall, Var
from pyrelay.ir.types import DType, TensorType, u32
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.kernels.row_elements import Given, row_element
from pyrelay.lower.planning import plan_called, plan_sorts
from pyrelay.lower.planning.instructions import (
    Binary,
    Free,
    Jump,
    JumpUnless,
    KernelAddress,
    Launch,
    Slot,
    Value,
    Zero,
    immediate,
)
from pyrelay.lower.planning.program import name_of
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.memory import Buffer
    from pyrelay.lower.planning.plan_function import FunctionPlanner
    from pyrelay.lower.planning.target import ScatterKernel

_PICOSECONDS = 1000  # for an element
_NUMBER_BYTES, _PLACE_BYTES = 4, 8

MANY = 4096
"""Indices that are shared."""
_MOST = 1 << 32
"""Indices that are sorted, and rows where they add, at most: their numbers have 32 bits."""

LaunchOf = Callable[[str, Sequence[Value], Extent, Extent], None]
"""Launches a text with operands, over so many items, each for so many elements."""


@dataclass(frozen=True, slots=True)
class Made:
    """What makes the rows that a scatter adds: the Let, its kernel, and that whose item is one
    element (`row_elements`)."""

    maker: Let
    kernel: kernel_ir.Kernel
    element: kernel_ir.Kernel


def find(p: FunctionPlanner, block: Block) -> None:
    """Note in `p.zeroed` which scatters of the block add to zeros of their own, in `p.made` which
    compute what they add, and in `p.uncalled` what makes these."""
    if p.program.target.scatter is None or p.scope.level:
        return
    makers: dict[Atom, int] = {}
    uses: dict[Var, int] | None = None
    for number, let in enumerate(block.lets):
        if isinstance(let.rhs, KernelCall) and len(let.outs) == 1:
            makers[let.outs[0]] = number
        if not walk.is_call(let, "scatter_add") or let in p.counts or not is_sorted(p, let):
            continue
        array, values, *_ = walk.call_of(let).args
        uses = walk.use_counts(block) if uses is None else uses
        own = [
            makers[a] for a in (array, values)
            if isinstance(a, Var) and a in makers and uses[a] == 1 and _is_apart(p, a)
        ]
        for each in own:
            maker = block.lets[each]
            if maker.outs[0] == array and _is_zeros(maker):
                p.zeroed.add(let)
                p.uncalled.add(maker)
            elif maker.outs[0] == values:
                made = _made(p, let, maker, block.lets[each + 1 : number])
                if made is not None:
                    p.made[let] = made
                    p.uncalled.add(maker)
                    plan_called.keep(p, maker, number)


def _is_apart(p: FunctionPlanner, var: Var) -> bool:
    """Whether a kernel's result lies in a buffer of its own."""
    return var not in p.rows and var not in p.commits


def _is_zeros(let: Let) -> bool:
    """Whether a Let makes an array of zeros and nothing else."""
    assert isinstance(let.rhs, KernelCall)
    (*others, made) = let.rhs.function.body.lets
    if others or not walk.is_call(made, "broadcast_to"):
        return False
    (value,) = walk.call_of(made).args
    if not isinstance(value, Const) or not isinstance(value.type, TensorType):
        return False
    return not any(np.asarray(value.value, value.type.dtype.numpy).tobytes())


def _made(
    p: FunctionPlanner, let: Let, maker: Let, between: Sequence[Let]
) -> Made | None:
    """What makes the rows that a scatter adds, if it may do so later and element by element."""
    call, (array, values, *indices) = maker.rhs, walk.call_of(let).args
    assert isinstance(call, KernelCall)
    assert isinstance(array.type, TensorType)
    assert isinstance(values.type, TensorType)
    kernel = plan_called.only_kernel(p, call)
    if kernel is None:
        return None
    if kernel.sites and any(map(functools.partial(_may_fail, p), between)):
        return None  # what Python would raise first is to be raised first
    dims_of = dict(zip(p.program.lowering(call.function).dims, call.dims, strict=True))
    width = sizes_of(array.type, len(indices))[1]
    count = dims.product(values.type.shape[: values.type.rank - array.type.rank + len(indices)])
    element = row_element(
        kernel, dims.substitute(kernel.extent, dims_of), Given(
            lambda q: call.dims[q.position] if q.size is None else None,
            lambda q: next((k for k, a in enumerate(indices) if a == call.args[q.position]), None),
            array.type.shape[: len(indices)], count, width,
        ),
    )
    return None if element is None else Made(maker, kernel, element)


def _may_fail(p: FunctionPlanner, let: Let) -> bool:
    """Whether a Let may raise, or do anything else that is noticed."""
    if not isinstance(let.rhs, KernelCall):
        return not isinstance(let.rhs, OpCall) or let.rhs.op.schedule != "matmul"
    return any(kernel.sites for kernel in p.program.lowering(let.rhs.function).lowering.kernels)


def is_sorted(p: FunctionPlanner, let: Let) -> bool:
    """Whether rows may be added in the order of their places."""
    array, _, *indices = walk.call_of(let).args
    ty, chosen = array.type, indices[0].type
    assert isinstance(ty, TensorType)
    assert isinstance(chosen, TensorType)
    assert p.program.target.scatter is not None
    if p.program.target.scatter("scatter_add", ty.dtype, len(indices)).counts:
        return False
    rows, width = sizes_of(ty, len(indices))
    return many(dims.product(chosen.shape), rows, width) != 0


def sizes_of(ty: TensorType, axes: int) -> tuple[Extent, Extent]:
    """How many rows an array has at so many leading axes, and how many elements a row."""
    return dims.product(ty.shape[:axes]), dims.product(ty.shape[axes:])


def made_alone(p: FunctionPlanner, let: Let, alone: Extent) -> Slot:
    """The rows that a scatter adds, in memory, if `alone` is 1: then it computes none of them."""
    found, values = p.made[let], walk.call_of(let).args[1]
    call = found.maker.rhs
    assert isinstance(call, KernelCall)
    assert isinstance(values.type, TensorType)
    slot, ty = p.frame.slot(), values.type
    p.frame.allocate(slot, p.sizes.value(dims.product((ty.size, ty.dtype.size, alone))))
    arrays: dict[int, Value] = {
        k: Slot(p.buffer(a).slot) for k, a in enumerate(call.args) if is_array(a)
    }
    dims_of = dict(zip(p.program.lowering(call.function).dims, call.dims, strict=True))
    extent = dims.multiply(dims.substitute(found.kernel.extent, dims_of), alone)
    p.frame.emit(Launch(
        p.program.kernel(found.kernel, name_of(call.function)),
        plan_called.operands_of(p, found.kernel, call, arrays, (slot,)), p.sizes.value(extent),
        p.sizes.value(dims.substitute(found.kernel.cost, dims_of)),
        first_site=p.program.sites_of(found.kernel),
    ))
    return Slot(slot)


def read_by(p: FunctionPlanner, let: Let) -> list[Buffer]:
    """The buffers that a scatter reads beside its array."""
    _, values, *indices = walk.call_of(let).args
    made = p.made.get(let)
    read = [values] if made is None else [a for a in walk.operands(made.maker.rhs) if is_array(a)]
    return [p.buffer(a) for a in (*read, *indices)]


def sorted_adds(
    p: FunctionPlanner, let: Let, kernel: ScatterKernel, launch: LaunchOf, address: Slot,
    adding: Extent,
) -> None:
    """Add rows by the order of their places, if `adding` is 1: parameters as
    `target.ScatterKernel` says. The array is at the address, or if `let` is in `p.zeroed`, room for
    it is."""
    _, _, *indices = walk.call_of(let).args
    ty, chosen, is_zeroed = let.outs[0].type, indices[0].type, let in p.zeroed
    assert isinstance(ty, TensorType)
    assert isinstance(chosen, TensorType)
    extents, count = ty.shape[: len(indices)], dims.product(chosen.shape)
    rows, width = sizes_of(ty, len(indices))
    given = [p.scalar(a) for a in indices]
    if_so, end = p.frame.slot(), p.frame.label("added")
    p.frame.emit(Binary("eq.i64", if_so, p.sizes.value(adding), immediate(1)))
    p.frame.emit(JumpUnless(Slot(if_so), end))
    numbers, order, few = p.frame.slot(), p.frame.slot(), p.frame.slot()
    p.frame.allocate(numbers, p.sizes.value(dims.multiply(count, _NUMBER_BYTES)))
    p.frame.allocate(order, p.sizes.value(dims.multiply(count, _PLACE_BYTES)))
    more, ordered = p.frame.label("more"), p.frame.label("ordered")
    p.frame.emit(Binary("le.i64", few, p.sizes.value(count), immediate(kernel.most_few)))
    p.frame.emit(JumpUnless(Slot(few), more))
    share = dims.maximum(dims.quotient_up(count, kernel.shares), 1)
    nbytes: Extent = dims.multiply(ty.size, ty.dtype.size) if is_zeroed else 0
    operands = [Slot(numbers), Slot(order), address, *given]
    operands += p.sizes.values((count, share, nbytes, *extents))
    items = dims.quotient_up(count, share), dims.quotient_up(nbytes, kernel.zeroed)
    launch(kernel.few, operands, dims.add(*items), count)
    p.frame.emit(Jump(ordered))
    p.frame.place(more)
    if is_zeroed:
        p.frame.emit(Zero(address, p.bytes_of(ty)))
    launch(kernel.many[0], [Slot(numbers), *given, *p.sizes.values(extents)], count, 1)
    _order(p, walk.call_of(let), Slot(numbers), order, (count, rows))
    p.frame.place(ordered)
    _added(p, let, (address, Slot(numbers), Slot(order)), (count, width), ty.dtype)
    p.frame.emit(Free(Slot(numbers)))
    p.frame.emit(Free(Slot(order)))
    p.frame.place(end)


def _order(
    p: FunctionPlanner, call: OpCall, numbers: Slot, order: int, extents: tuple[Extent, Extent]
) -> None:
    """The places that sort numbers of so many rows."""
    target, (count, rows) = p.program.target, extents
    assert target.sort is not None
    sorting = target.sort("argsort", u32, False, False)
    # Digits that no number has are not sorted by.
    passes: list[Extent] = [1]
    passes += [at_least(rows, (1 << 8 * k) + 1) for k in range(1, sorting.passes)]
    plan_sorts.by_digits(p, call, sorting, numbers, order, (1, count), passes)


def _added(
    p: FunctionPlanner, let: Let, operands: tuple[Slot, Slot, Slot], extents: tuple[Extent, Extent],
    dtype: DType,
) -> None:
    """Rows added in the order of the numbers of the array's rows: parameters as `SortedAdds` says,
    of which `operands` are the array, the numbers and their order."""
    call, target, (count, width) = walk.call_of(let), p.program.target, extents
    assert target.sorted_adds is not None
    kernels, carried = target.sorted_adds(dtype, let in p.zeroed), p.frame.slot()
    chunks = dims.quotient_up(count, kernels.chunk)
    nbytes = dims.product((chunks, width, dtype.size))
    p.frame.allocate(carried, p.sizes.value(nbytes))
    beside = dims.maximum(dims.quotient(kernels.threads, dims.maximum(width, 1)), 1)
    narrow = dims.multiply(
        dims.quotient_up(chunks, beside), dims.quotient_up(width, kernels.threads)
    )
    wide = dims.multiply(chunks, dims.quotient_up(width, kernels.threads * kernels.columns))
    is_wide = at_least(width, 2 * kernels.threads + 1)
    shared: list[Value] = [*operands, Slot(carried), *p.sizes.values((count, width))]
    made = p.made.get(let)
    if made is None:
        first, given = kernels.added, [shared[0], p.scalar(call.args[1]), *shared[1:]]
    else:
        maker = made.maker.rhs
        assert isinstance(maker, KernelCall)
        number = p.program.kernel(made.element, f"found_{name_of(maker.function)}")
        others = plan_called.operands_without_results(p, made.kernel, maker)
        first, given = kernels.computing, [*shared, KernelAddress(number), *others]
    cost = dims.product((dims.minimum(width, kernels.threads), kernels.chunk, _PICOSECONDS))
    for text, each, items in (
        (first[0], given, dims.multiply(narrow, dims.add(1, dims.multiply(-1, is_wide)))),
        (first[1], given, dims.multiply(wide, is_wide)), (kernels.finished, shared, narrow),
    ):
        if items != 0:
            p.frame.emit(Launch(
                p.program.source(text, call.op.name), tuple(each), p.sizes.value(items),
                p.sizes.value(cost), rare=True,
            ))
    p.frame.emit(Free(Slot(carried)))


def many(count: Extent, rows: Extent, width: Extent) -> Extent:
    """1 if rows had better be added in the order of their numbers, else 0."""
    found = dims.minimum(at_least(count, MANY), at_least(dims.multiply(rows, width), 1))
    most = dims.maximum(count, rows)
    return dims.multiply(found, dims.add(1, dims.multiply(-1, at_least(most, _MOST))))


def at_least(extent: Extent, least: int) -> Extent:
    """1 if an extent is no less than that, else 0."""
    return dims.minimum(dims.quotient(extent, least), 1)
