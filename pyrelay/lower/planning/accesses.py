"""Which slots an instruction of a plan reads and writes, and what is done after it.

In: an instruction, and the plan, whose kernels tell what a launch writes; or the code of a
function. Out: numbers of slots; places in the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import AddressOf, Launch, Plan, PlanFunction, Slot

ENDS = (ins.Jump, ins.Return, ins.Raise)
"""Instructions that do not go on to the next one."""


def fields_of(instruction: Any) -> Iterator[Any]:
    """What an instruction holds, tuples one by one: its operands among others."""
    for name in instruction.__dataclass_fields__:
        value = getattr(instruction, name)
        yield from value if isinstance(value, tuple) else (value,)


def read(instruction: Any) -> Iterator[int]:
    """The slots whose values an instruction takes."""
    for each in fields_of(instruction):
        if isinstance(each, Slot):
            yield each.index
    if isinstance(instruction, ins.LoopNext):
        yield instruction.counter


def written(plan: Plan, instruction: Any) -> Iterator[int]:
    """The slots that have other values after it."""
    match instruction:
        case Launch(operands=operands):
            code = plan.kernels[instruction.kernel].code
            if code is not None:
                for parameter, words in code.split(operands):
                    for word in words:
                        if isinstance(word, AddressOf):
                            yield word.index
                            if parameter.dtype.size == 16:
                                yield word.index + 1
        case ins.LoopNext(counter=counter):
            yield counter
        case ins.Parts(first=first, end=end, inside=inside):
            yield from (first, end, inside)
        case ins.Call(results=results) | ins.HostCall(results=results):
            yield from results
        case ins.TapePop(targets=targets):
            yield from targets
        case _ if hasattr(instruction, "target") and isinstance(instruction.target, int):
            yield instruction.target


def bits(slots: Iterable[int]) -> int:
    """A set of slots as an int, a bit for each: plans have as many sets as instructions."""
    found = 0
    for slot in slots:
        found |= 1 << slot
    return found


def targets(code: Sequence[ins.Instruction]) -> list[int | None]:
    """For each instruction of a function the place that it may jump to; None if it never does."""
    places = {step.name: k for k, step in enumerate(code) if isinstance(step, ins.Label)}
    return [places.get(getattr(step, "label", "")) for step in code]


def shares_rows(function: PlanFunction) -> bool:
    """Whether threads do rows of a loop of a function, each with a frame of its own."""
    return any(isinstance(step, ins.Parts) for step in function.code)
