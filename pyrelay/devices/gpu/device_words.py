"""Which slots of a plan may hold scalars that lie on the device.

In: a plan. Out: per function the slots that a kernel may have written, or that such a slot may have
been moved to. Scalars of all other slots are computed by the host from what it knows, and never
wait for the device.

What is computed of scalars of the device is computed there as well, by a kernel of one thread
(`word_texts`), unless the host needs it to go on: then it reads the operands and computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyrelay.devices.gpu.word_texts import is_spelled, operands_of
from pyrelay.lower.kernels.kernel import SCALAR, SLOT
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Call,
    Instruction,
    Launch,
    Load,
    Plan,
    PlanFunction,
    Return,
    Select,
    Slot,
    TapePop,
    TapePush,
    Unary,
    Value,
)


def device_slots(
    plan: Plan, on_host: Callable[[Launch, frozenset[int]], bool], known: Sequence[set[int]]
) -> list[set[int]]:
    """The slots of each function, the least fixpoint above those that are known to be.

    `on_host(launch, slots)` tells whether a launch is the host's own work while these slots may be
    on the device.
    """
    found = _Slots(plan, on_host, known)
    while found.step():
        pass
    return found.slots


class _Slots:
    def __init__(
        self, plan: Plan, on_host: Callable[[Launch, frozenset[int]], bool],
        known: Sequence[set[int]],
    ) -> None:
        self.plan, self.on_host = plan, on_host
        self.slots: list[set[int]] = [set(slots) for slots in known]
        self.results: list[set[int]] = [set() for _ in plan.functions]
        self.tapes = False  # whether any tape may hold such scalars
        self.needed = [needed_slots(plan, function) for function in plan.functions]

    def step(self) -> bool:
        """Go through all functions once; True if anything is new."""
        before = self._size()
        for number, function in enumerate(self.plan.functions):
            for instruction in function.code:
                self._visit(number, instruction)
        return self._size() != before

    def _size(self) -> tuple[int, int, bool]:
        return sum(map(len, self.slots)), sum(map(len, self.results)), self.tapes

    def _visit(self, number: int, instruction: Instruction) -> None:
        here = self.slots[number]
        match instruction:
            case Launch() if not self.on_host(instruction, frozenset(here)):
                for operand in instruction.operands:
                    if isinstance(operand, AddressOf):
                        here.update((operand.index, *self._second(instruction, operand)))
            case Load(target=target):
                here.add(target)
            case _ if self._is_computed(number, instruction):
                here.add(getattr(instruction, "target", -1))
            case Unary(op="move", target=target, a=a):
                self._flow(here, target, (a,))
            case Select(target=target, a=a, b=b):
                self._flow(here, target, (a, b))
            case Call(function=callee, arguments=arguments, results=results):
                for k, argument in enumerate(arguments):
                    self._flow_into(self.slots[callee], k, here, (argument,))
                here.update(r for k, r in enumerate(results) if k in self.results[callee])
            case Return(values=values):
                for k, value in enumerate(values):
                    self._flow_into(self.results[number], k, here, (value,))
            case TapePush(values=values):
                self.tapes = self.tapes or any(_is_in(here, v) for v in values)
            case TapePop(targets=targets) if self.tapes:
                here.update(targets)

    def _is_computed(self, number: int, instruction: Any) -> bool:
        """Whether a scalar of the device is made of others, none of which the host has to read."""
        if getattr(instruction, "op", None) == "move" or not is_spelled(instruction):
            return False
        here, needed = self.slots[number], self.needed[number]
        read = [
            o.index for o in operands_of(instruction) if isinstance(o, Slot) and o.index in here
        ]
        return bool(read) and instruction.target not in needed and not needed.issuperset(read)

    def _second(self, launch: Launch, operand: AddressOf) -> Sequence[int]:
        """The other word of a slot that holds complex128."""
        code = self.plan.kernels[launch.kernel].code
        if code is not None:
            for parameter, words in code.split(launch.operands):
                if words[0] is operand and parameter.dtype.size == 16:
                    return (operand.index + 1,)
        return ()

    def _flow(self, here: set[int], target: int, sources: Sequence[Value]) -> None:
        self._flow_into(here, target, here, sources)

    def _flow_into(
        self, into: set[int], target: int, here: set[int], sources: Sequence[Value]
    ) -> None:
        if any(_is_in(here, s) for s in sources):
            into.add(target)


def _is_in(here: set[int], value: object) -> bool:
    return isinstance(value, Slot) and value.index in here


# -- what the host needs ---------------------------------------------------------------------------


def labels_of(code: Sequence[Instruction]) -> dict[str, int]:
    """The place of each label."""
    return {i.name: k for k, i in enumerate(code) if isinstance(i, ins.Label)}


def loop_regions(function: PlanFunction) -> list[tuple[int, int]]:
    """The first and the last instruction of each loop of a function: a label and the last jump
    back to it."""
    labels = labels_of(function.code)
    found: dict[int, int] = {}
    for place, instruction in enumerate(function.code):
        goal = labels.get(getattr(instruction, "label", ""), place)
        if goal < place:
            found[goal] = place
    return sorted(found.items())


def needed_slots(plan: Plan, function: PlanFunction) -> set[int]:
    """The slots that the host reads to go on, and those that such a slot is computed of. Branches
    in loops are not among what it needs: it may guess them (`guesses`)."""
    regions = loop_regions(function)
    found: set[int] = set()
    for place, instruction in enumerate(function.code):
        inside = any(first <= place <= last for first, last in regions)
        if not (inside and isinstance(instruction, (ins.JumpIf, ins.JumpUnless))):
            found.update(o.index for o in _demanded(plan, instruction) if isinstance(o, Slot))
    made = [
        (getattr(i, "target", -1), [o.index for o in operands_of(i) if isinstance(o, Slot)])
        for i in function.code if operands_of(i)
    ]
    while True:
        before = len(found)
        for target, read in made:
            if target in found:
                found.update(read)
        if len(found) == before:
            return found


def _demanded(plan: Plan, instruction: Any) -> Iterable[Any]:
    """The operands whose values an instruction takes from the host."""
    match instruction:
        case Launch(kernel=number, operands=operands, extent=extent):
            code = plan.kernels[number].code
            if code is None:
                return (*operands, extent)
            plain = [
                word for parameter, words in code.split(operands)
                if parameter.role not in (SCALAR, SLOT) for word in words
            ]
            return (*plain, extent)
        case ins.JumpIf(condition=condition) | ins.JumpUnless(condition=condition):
            return (condition,)
        case ins.Guard(condition=condition):
            return (condition,)
        case ins.LoopNext(counter=counter, limit=limit):
            return (Slot(counter), limit)
        case ins.Alloc(nbytes=nbytes):
            return (nbytes,)
        case ins.Copy(nbytes=nbytes) | ins.Zero(nbytes=nbytes):
            return (nbytes,)
        case ins.TapePushBytes(nbytes=nbytes) | ins.TapePopBytes(nbytes=nbytes):
            return (nbytes,)
        case Load(index=index) | ins.Store(index=index):
            return (index,)
        case ins.HostCall(arguments=arguments):
            return arguments
        case ins.Raise(values=values):
            return values
    return ()
