"""Plans without the scalars that nothing on a GPU reads.

In: a plan. Out: the same plan without instructions that compute what no other one reads. What a
launch costs tells the CPU whether threads share it; on a GPU it counts in loops only, which may be
one kernel or not by that, and the arithmetic that leads there is Python's at each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyrelay.devices.gpu.device_words import loop_regions
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.accesses import fields_of
from pyrelay.lower.planning.instructions import AddressOf, Immediate, Launch, Plan, Slot


def without_unread(plan: Plan) -> Plan:
    """The plan without such scalars."""
    return replace(plan, functions=tuple(map(_leaner, plan.functions)))


def _leaner(function: ins.PlanFunction) -> ins.PlanFunction:
    regions = loop_regions(function)
    code: list[ins.Instruction] = []
    for place, step in enumerate(function.code):
        inside = any(first <= place <= last for first, last in regions)
        if isinstance(step, Launch) and not inside:
            step = replace(step, cost=Immediate(0))
        code.append(step)
    while True:
        read = {slot for step in code for slot in _read(step)}
        kept = [
            step for step in code
            if not isinstance(step, (ins.Unary, ins.Binary, ins.Select)) or step.target in read
        ]
        if len(kept) == len(code):
            return replace(function, code=tuple(code))
        code = kept


def _read(step: ins.Instruction) -> Iterator[int]:
    for each in fields_of(step):
        if isinstance(each, (Slot, AddressOf)):
            yield each.index
    if isinstance(step, ins.LoopNext):
        yield step.counter
