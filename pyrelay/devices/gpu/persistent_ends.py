"""Scalars of which the host knows what a loop leaves in them.

In: the loops of a plan that may run as one kernel. Out: those loops without such scalars among what
their kernels leave, and Python that computes them: how far a loop has counted whose limit the host
knows, and constants that each round leaves. Read back from the device they would have the host wait
for all rounds, or compute with them there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pyrelay.devices.gpu.persistent import Loop
from pyrelay.devices.gpu.stretches import flow
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Immediate, Plan, PlanFunction, Slot

Ends = dict[int, Any]
"""By slot, the last instruction of a round that writes it."""


def ends(plan: Plan, function: PlanFunction, loop: Loop) -> Ends:
    """The scalars that a loop leaves as constants or counters, if nothing but its count ends it:
    those constants that are written where all ways through a round have met again."""
    head, *body, last = function.code[loop.first : loop.last]
    if loop.resumes or not isinstance(last, ins.LoopNext):
        return {}
    assert isinstance(head, ins.Label)
    if last.label != head.name:
        return {}
    inside = {i.name for i in body if isinstance(i, ins.Label)}
    if any(hasattr(i, "label") and i.label not in inside for i in body):
        return {}
    turns = [k for k, i in enumerate(body) if isinstance(i, ins.Label) or hasattr(i, "label")]
    met = {id(i) for i in body[max(turns, default=-1) + 1 :]}
    found: Ends = {}
    changed = {slot for i in (*body, last) for slot in flow(plan, (i,))[1]}
    for slot in loop.scalars:
        writers = [i for i in (*body, last) if slot in flow(plan, (i,))[1]]
        match writers[-1]:
            case ins.Unary(op="move", a=Immediate()) as move if id(move) in met:
                found[slot] = move
            case ins.LoopNext(limit=limit) as count if len(writers) == 1:
                if not (isinstance(limit, Slot) and limit.index in changed):
                    found[slot] = count
    return found


def without(
    loops: Sequence[Sequence[Loop]], told: Sequence[Sequence[Ends]],
    on_device: Callable[[Sequence[set[int]]], list[set[int]]],
) -> tuple[list[list[Loop]], list[list[Ends]], list[set[int]]]:
    """The loops of each function without the scalars that the host knows, these, and the slots that
    may lie on the device. `on_device` tells the latter, of those that kernels of loops leave.

    A counter is known where no start and no limit of it comes from the device, which may hang on
    what other loops leave: all are taken to be known, until none is found that is not.
    """
    known = [[dict(each) for each in of] for of in told]
    while True:
        left = [
            [
                replace(loop, scalars=tuple(s for s in loop.scalars if s not in ends_of))
                for loop, ends_of in zip(of, ends, strict=True)
            ]
            for of, ends in zip(loops, known, strict=True)
        ]
        slots = on_device([{s for loop in of for s in loop.scalars} for of in left])
        wrong = [
            (each, slot) for ends, device in zip(known, slots, strict=True) for each in ends
            for slot, step in each.items() if _hangs_on(step, device)
        ]
        if not wrong:
            return left, known, slots
        for each, slot in wrong:
            del each[slot]


def _hangs_on(step: Any, device: set[int]) -> bool:
    if not isinstance(step, ins.LoopNext):
        return False
    limit = step.limit
    return step.counter in device or (isinstance(limit, Slot) and limit.index in device)


def text(slot: int, step: Any, word: Callable[[Any], str]) -> str:
    """Python that sets a scalar as the loop leaves it; `word` gives the text of an operand."""
    if isinstance(step, ins.Unary):
        return f"s{slot} = {word(step.a)}"
    rounds = f"max(1, -((s{slot} - {word(step.limit)}) // {step.step}))"
    return f"s{slot} += {step.step} * {rounds}"
