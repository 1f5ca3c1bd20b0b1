"""Integers added at places that the kernel which adds them up computes itself.

In: a block. Out: its scatters of integers, whose sums are the same in any order, together with the
kernels that make nothing but their places and values: such a kernel is not launched, its items are
computed by the one that adds. So the bins of a histogram, and whether a number is in one, are never
in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrelay.ir import dims, walk
from pyrelay.ir.nodes import Atom, Block, KernelCall, Let, Var
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.planning import plan_called
from pyrelay.lower.planning.instructions import (
    KernelAddress,
    Launch,
    Slot,
    immediate,
)
from pyrelay.lower.planning.plan_scatters import counting_blocks
from pyrelay.lower.planning.program import name_of
from pyrelay.ops.index import OUT_OF_BOUNDS
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_PICOSECONDS = 1000  # for an element


@dataclass(frozen=True, slots=True)
class Counted:
    """What a scatter adds: the Let that makes it, its kernel, and which of its results are the
    values and their places."""

    maker: Let
    kernel: kernel_ir.Kernel
    values: int
    places: int


def find(p: FunctionPlanner, block: Block) -> None:
    """Note in `p.counts` which scatters of the block compute what they add, and in `p.uncalled`
    what makes that."""
    target = p.program.target
    if target.scatter is None or p.scope.level:
        return
    made: dict[Atom, tuple[int, Let]] = {}
    uses: dict[Var, int] | None = None
    for number, let in enumerate(block.lets):
        if isinstance(let.rhs, KernelCall):
            made.update((out, (number, let)) for out in let.outs)
        if not walk.is_call(let, "scatter_add") or len(walk.call_of(let).args) != 3:
            continue
        array, values, places = walk.call_of(let).args
        ty = array.type
        if values not in made or made.get(places) != made[values] or values == places:
            continue
        assert isinstance(ty, TensorType)
        if len(ty.shape) != 1 or not target.scatter("scatter_add", ty.dtype, 1).computing:
            continue
        _, maker = made[values]
        uses = walk.use_counts(block) if uses is None else uses
        if any(uses[out] != (out in (values, places)) for out in maker.outs):
            continue
        kernel = _kernel(p, maker, places)
        if kernel is None:
            continue
        outs: list[Atom] = [*maker.outs]
        p.counts[let] = Counted(maker, kernel, outs.index(values), outs.index(places))
        p.uncalled.add(maker)
        plan_called.keep(p, maker, number)


def _kernel(p: FunctionPlanner, maker: Let, places: Atom) -> kernel_ir.Kernel | None:
    """The kernel of a Let, if an item of it makes an element of each result and does nothing else
    that is noticed; None for others."""
    call = maker.rhs
    assert isinstance(call, KernelCall)
    kernel = plan_called.only_kernel(p, call)
    if kernel is None:
        return None
    ty, group = places.type, p.program.lowering(call.function)
    assert isinstance(ty, TensorType)
    extent = dims.substitute(kernel.extent, dict(zip(group.dims, call.dims, strict=True)))
    if kernel.sites or len(ty.shape) != 1 or extent != ty.shape[0]:
        return None
    last, every = kernel.body[-1], list(kernel_ir.statements(kernel.body))
    if not isinstance(last, kernel_ir.For) or (last.start, last.stop) != (kernel.begin, kernel.end):
        return None
    if any(isinstance(s, kernel_ir.For | kernel_ir.While) and s is not last for s in every):
        return None  # what comes before the items would be done for each
    stored = [s.array for s in every if isinstance(s, kernel_ir.Store)]
    at_once = [s.array for s in last.body if isinstance(s, kernel_ir.Store)]
    outputs = [q for q in kernel.parameters if q.role == kernel_ir.OUTPUT]
    whole = len(stored) == len(at_once) == len(outputs) == len(maker.outs)
    return kernel if whole and set(at_once) == set(outputs) else None


def counted(p: FunctionPlanner, let: Let) -> None:
    """Plan a scatter that computes what it adds: parameters as `target.ScatterKernel` says."""
    call, found = walk.call_of(let), p.counts[let]
    made = found.maker.rhs
    assert isinstance(made, KernelCall)
    array, _, places = call.args
    ty, chosen = array.type, places.type
    assert isinstance(ty, TensorType)
    assert isinstance(chosen, TensorType)
    assert p.program.target.scatter is not None
    text = p.program.target.scatter(call.op.name, ty.dtype, 1).computing
    read = [p.buffer(a) for a in made.args if is_array(a)]
    (address,) = p.hand_over((array,), read)
    assert isinstance(address, Slot)
    operands = plan_called.operands_without_results(p, found.kernel, made)
    number = p.program.kernel(found.kernel, f"found_{name_of(made.function)}")
    (rows,), (count,) = ty.shape, chosen.shape
    blocks, each_has = counting_blocks(count)
    p.frame.emit(Launch(
        p.program.source(text, call.op.name),
        (
            address, *p.sizes.values((count, rows)), KernelAddress(number),
            immediate(found.values), immediate(found.places), *operands,
        ),
        p.sizes.value(blocks), p.sizes.value(each_has * _PICOSECONDS),
        first_site=p.program.site("IndexError", OUT_OF_BOUNDS, (i64, i64, i64), let.span),
    ))
    p.define(let.outs[0], (address.index,))
    p.release(found.maker)
