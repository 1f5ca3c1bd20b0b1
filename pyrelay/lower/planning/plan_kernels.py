"""Kernel launches: the buffers that a fused group writes, reuses and needs in between.

A group's result takes the buffer of an argument that dies here where the kernels allow it; an
argument that the kernels write is owned, or a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, KernelCall, Let, Var
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.planning import plan_attention, plan_commits, plan_finishing, plan_scalars
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import (
    Free,
    Launch,
    Slot,
    Value,
)
from pyrelay.lower.planning.memory import Buffer
from pyrelay.lower.planning.plan_called import operands_of
from pyrelay.lower.planning.plan_library import half_product
from pyrelay.lower.planning.program import name_of
from pyrelay.opt.shapes import is_array

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


def kernel_call(p: FunctionPlanner, let: Let, call: KernelCall) -> None:
    """Plan a fused group: as instructions if it is a little scalar arithmetic, else as launches."""
    if plan_scalars.inline(p, let, call):
        return
    group = p.program.lowering(call.function)
    if group.lowering.product is not None:
        plan_finishing.finished_product(p, let, call, group)
        return
    if group.lowering.half_product is not None:
        half_product(p, let, call, group)
        return
    if group.lowering.attention is not None:
        plan_attention.attention(p, let, call, group)
        return
    if group.lowering.attention_gradient is not None:
        plan_attention.gradient(p, let, call, group)
        return
    lowering, extents = group.lowering, dict(zip(group.dims, call.dims, strict=True))
    arrays, copies = _arguments(p, call.args, lowering)
    outputs = _outputs(p, let, call, lowering, arrays)
    long = lowering.long
    when: Extent = 0
    if long is not None and not (p.scope.level and dims.symbols(long.when)):
        when = long.when  # in a loop of unknown rows its kernels may be phases of one
    name = name_of(call.function)
    sets = [(lowering.kernels, lowering.scratch, dims.add(1, dims.multiply(-1, when)), False)]
    if long is not None:
        sets.append((long.kernels, long.scratch, when, when != 1))
    for kernels, sizes, share, rare in sets:
        if share == 0:
            continue
        scratch: list[Value] = []
        for size in sizes:
            slot = p.frame.slot()
            p.frame.allocate(slot, p.sizes.substituted(dims.multiply(size, share), extents))
            scratch.append(Slot(slot))
        for kernel in kernels:
            operands = operands_of(p, kernel, call, arrays, outputs, scratch)
            extent = dims.substitute(dims.multiply(kernel.extent, share), extents)
            cost = dims.substitute(kernel.cost, extents)
            begin: Value = ZERO
            end = p.sizes.value(extent)
            if p.part is not None and let in p.part.of:
                begin, end = p.part.range(p, extent, cost)
            p.frame.emit(
                Launch(
                    p.program.kernel(kernel, name), operands, end, p.sizes.value(cost),
                    first_site=p.program.sites_of(kernel), rare=rare, begin=begin,
                )
            )
        for address in scratch:
            p.frame.emit(Free(address))
    for address in copies:
        p.frame.emit(Free(address))
    for position in lowering.written - set(lowering.aliases):
        p.frame.emit(Free(arrays[position]))


def _arguments(
    p: FunctionPlanner, args: Sequence[Atom], lowering: kernel_ir.Lowering
) -> tuple[dict[int, Value], list[Value]]:
    """The address of each array argument, those that are written ours alone; and what to free.

    What is read in its old state while it is written is read from a copy: an array of the caller's
    keeps its place.
    """
    buffers = {k: p.buffer(a) for k, a in enumerate(args) if is_array(a)}
    uses = Counter(buffers.values())
    read = {buffer for k, buffer in buffers.items() if k not in lowering.written}
    addresses: dict[int, Value] = {}
    copies: dict[Buffer, Value] = {}
    taken: set[Buffer] = set()
    for k in sorted(lowering.written):
        buffer = buffers[k]
        if uses[buffer] > 1 and buffer not in taken and p.is_free_to_take(buffer):
            if buffer in read:
                copies[buffer] = p.copied(buffer, args[k].type)
            taken.add(buffer)
            p.take(buffer)
            addresses[k] = Slot(buffer.slot)
        else:
            shared = (buffer,) if uses[buffer] > 1 else ()
            (addresses[k],) = p.hand_over((args[k],), shared)
    for k, buffer in buffers.items():
        addresses.setdefault(k, copies.get(buffer, Slot(buffer.slot)))
    return addresses, list(copies.values())


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
            p.define(out, (address.index,))
            slots.append(address.index)
            continue
        shared = lowering.shares[j] if lowering.shares else ()
        slots.append(made_or_reused(p, call, out, shared, uses))
    return slots


def made_or_reused(
    p: FunctionPlanner, call: KernelCall, out: Var, allowed: Iterable[int], uses: Counter[Buffer]
) -> int:
    """The slot of a result's buffer, that of an argument where it may be; the result is defined.

    A result that is committed to an array of the caller's is made there.
    """
    if out in p.rows:
        return p.make(out)
    allowed = tuple(allowed)
    reused = plan_commits.place(p, call, out, allowed, uses) if out in p.commits else None
    if reused is None:
        reused = _reused_buffer(p, call, allowed, uses)
    if reused is None:
        return p.make(out)
    p.define(out, (reused,))
    return reused


def _reused_buffer(
    p: FunctionPlanner, call: KernelCall, allowed: Iterable[int], uses: Counter[Buffer]
) -> int | None:
    """The address slot of an argument, one of those allowed, that dies here and may be
    overwritten with a result."""
    for k in sorted(allowed):
        buffer = p.buffer(call.args[k])
        if uses[buffer] == 1 and p.is_free_to_take(buffer):
            p.take(buffer)
            return buffer.slot
    return None
