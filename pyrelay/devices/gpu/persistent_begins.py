"""What comes right before a loop, as phases of its kernel.

In: a loop of a plan's function. Out: the launches, copies and zeros before it that its kernel may
do, and the loop with these in front.

A loop that one block runs is often as short as what it begins with: a product of all steps' inputs,
states of zeros, a copy of one of them. Each is a launch, which lasts some 4 us on the host and half
of that on the device, and is a microsecond or two of the one block. Memory for them is allocated
where it was; they themselves are put off to where the host knows how the loop will run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.hazards import Buffers
from pyrelay.devices.gpu.persistent import Loop, is_fit, worker
from pyrelay.devices.gpu.persistent_choice import BY_PRODUCT, BY_THREADS
from pyrelay.devices.gpu.persistent_phases import writes_of
from pyrelay.devices.gpu.stretches import flow, runs_on_host, stretches
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.accesses import fields_of
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Data,
    Immediate,
    Launch,
    Plan,
    PlanFunction,
    Slot,
)

_MOST = 8

_BYTE, _ITEM, _TILE = 100, 1000, 2400
"""Picoseconds of a core for a byte that is copied or filled with zeros, for an item of a kernel,
and for a place of the sums of a tile of a product, of 16 by 16 elements."""


def beginnings(
    plan: Plan, function: PlanFunction, loop: Loop, block: Sequence[ins.Instruction],
    on_device: frozenset[int], tapes: set[int],
) -> list[ins.Instruction]:
    """The instructions before a loop that may be done by its kernel, in order: those of the block
    of the plan that ends there, from the last one on that has to be done before."""
    code = function.code
    if loop.resumes or not isinstance(code[loop.last - 1], ins.LoopNext):
        return []
    found: list[ins.Instruction] = []
    kept: set[int] = set()  # slots that are written behind
    for step in reversed(block):
        match step:
            case ins.JumpUnless(condition=c) | ins.JumpIf(condition=c) if step is block[-1]:
                fits = not (isinstance(c, Slot) and c.index in on_device)
            case Launch() | ins.Copy() | ins.Zero():
                fits = _may_wait(plan, step, on_device) and not kept & {*flow(plan, (step,))[0]}
                found += [step] * fits
            case ins.Alloc() | ins.Unary() | ins.Binary() | ins.Select():
                fits = True
            case _:
                fits = False
        if not fits:
            break
        kept |= {*flow(plan, (step,))[1]}
    found.reverse()
    buffers = Buffers(code)
    # What a product of the loop keeps is read before all else.
    rights = {
        buffers.of(i.operands[1]) for i in code[loop.first : loop.last]
        if isinstance(i, Launch) and _is_product(plan, i)
    }
    while found and rights & {buffers.of(each) for each in writes_of(plan, found)}:
        found.pop(0)
    if len(found) > _MOST or not any(isinstance(step, Launch) for step in found):
        return []
    own = set(map(id, found))
    graphs = (part for part, worth_it in stretches(plan, block, on_device, tapes) if worth_it)
    return [] if any(id(step) in own for part in graphs for step in part) else found


def _may_wait(plan: Plan, step: Any, on_device: frozenset[int]) -> bool:
    """Whether nothing but memory hangs on an instruction, and a kernel of a loop can do it."""
    operands = list(fields_of(step))
    if any(isinstance(o, Slot) and o.index in on_device for o in operands):
        return False
    if not isinstance(step, Launch):
        return True
    kernel = plan.kernels[step.kernel]
    fails = cuda_library.can_fail(kernel.source) if kernel.code is None else kernel.code.sites
    if fails or any(isinstance(o, AddressOf) for o in operands):
        return False
    return is_fit(plan, step, set()) and not runs_on_host(plan, step, on_device)


def _is_product(plan: Plan, launch: Launch) -> bool:
    kernel = plan.kernels[launch.kernel]
    return kernel.code is None and cuda_library.product_of(kernel.source) is not None


def with_beginnings(
    plan: Plan, function: PlanFunction, loop: Loop, block: Sequence[ins.Instruction],
    found: Sequence[ins.Instruction],
) -> Loop:
    """The loop with what its kernel begins with, of a block."""
    code = function.code
    written = [slot for step in block for slot in flow(plan, (step,))[1]]
    renamed: dict[int, Slot] = {}  # a buffer has one name: that which the loop has for it
    for step in block:
        match step:
            case ins.Unary("move", target, Slot(source)) if target in loop.given:
                if written.count(target) == 1 and written.count(source) <= 1:
                    renamed[source] = Slot(target)
    steps = tuple(_renamed(step, renamed) for step in found)
    part = code[loop.first : loop.last]
    given = flow(plan, (*steps, *part))[0]
    work = tuple(_work(plan, step) for step in steps)
    data = [o.index for step in steps for o in fields_of(step) if isinstance(o, Data)]
    return replace(
        loop, given=tuple(given), begins=steps, begin_work=work,
        data=tuple(dict.fromkeys((*loop.data, *data))),
    )


def _work(plan: Plan, step: Any) -> tuple[Any, Any, int, str]:
    """How many items, a word and what each costs for it, what works on an item."""
    one = Immediate(1)
    if not isinstance(step, Launch):
        return step.nbytes, one, _BYTE, BY_THREADS
    by = worker(plan, step)
    return (step.extent, step.operands[5], _TILE, by) if by == BY_PRODUCT else (
        step.extent, one, _ITEM, by
    )


def _renamed(step: Any, names: dict[int, Slot]) -> Any:
    """An instruction with other slots for some."""
    def of(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(of, value))
        return names.get(value.index, value) if isinstance(value, Slot) else value

    if isinstance(step, Launch):
        return replace(step, operands=of(step.operands))
    if isinstance(step, ins.Copy):
        return replace(step, target=of(step.target), source=of(step.source))
    return replace(step, target=of(step.target))
