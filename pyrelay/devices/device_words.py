"""Which slots of a plan may hold scalars that lie on the device.

In: a plan. Out: per function the slots that a kernel may have written, or that such a slot may have
been moved to. Scalars of all other slots are computed by the host from what it knows, and never
wait for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrelay.lower.instructions import (
    AddressOf,
    Call,
    Instruction,
    Launch,
    Load,
    Plan,
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

