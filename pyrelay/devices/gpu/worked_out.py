"""Words that follow from those a function of a plan begins with: worked out once for each of these.

In: the instructions of a function without jumps, as they are written. Out: those of them that are
done ahead, by a function of its own whose results are kept: sizes of buffers, numbers of items, and
whether indices need 64 bits. A call with extents that came before does none of that again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrelay.devices.gpu.stretches import flow
from pyrelay.devices.gpu.word_texts import operands_of
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Plan, Slot

FEWEST = 8
"""Operations that are worth a look into a table."""


class Ahead:
    """What a function of a plan does before anything else.

    taken: instructions; given: the parameters that these hang on. tests: Python text of conditions,
    and the names of what they gave. operations: about how many.
    """

    def __init__(self, plan: Plan, parameters: Iterable[int], on_device: frozenset[int]) -> None:
        self.plan = plan
        self.fixed = {k: {k} for k in parameters if k not in on_device}  # by what they hang on
        self.touched: set[int] = set()
        self.taken: list[ins.Instruction] = []
        self.given: dict[int, None] = {}
        self.tests: dict[str, str] = {}
        self.operations = 0

    def take(self, step: ins.Instruction) -> bool:
        """Whether an instruction, the next one, is done ahead."""
        operands = operands_of(step)
        slots = [o.index for o in operands if isinstance(o, Slot)]
        if slots and _is_whole(step) and self._knows(slots):
            (target,) = flow(self.plan, (step,))[1]
            if target not in self.touched and target not in self.fixed:
                self._hang(slots)
                self.fixed[target] = set().union(*(self.fixed[k] for k in slots))
                self.taken.append(step)
                self.operations += 1
                return True
        self.passed((step,))
        return False

    def passed(self, part: Sequence[ins.Instruction]) -> None:
        """Instructions that are not done ahead."""
        read, written = flow(self.plan, part)
        self.touched.update(read, written)
        for slot in written:
            self.fixed.pop(slot, None)

    def tested(self, text: str, slots: Iterable[int]) -> str:
        """The name of a condition on slots that is found ahead; its text, if it cannot be."""
        slots = list(slots)
        if not slots or not self._knows(slots):
            return f"({text})"
        self._hang(slots)
        self.operations += text.count("*") + 1
        return self.tests.setdefault(text, f"t{len(self.tests)}")

    def _knows(self, slots: Iterable[int]) -> bool:
        return all(k in self.fixed for k in slots)

    def _hang(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self.given.update(dict.fromkeys(sorted(self.fixed[slot])))


def _is_whole(step: ins.Instruction) -> bool:
    """Whether an instruction computes an integer, and cannot fail: sizes are made by such."""
    if any(isinstance(o, ins.Data) for o in operands_of(step)):
        return False
    if isinstance(step, (ins.Unary, ins.Binary)):
        return step.op.endswith(".i64")
    return isinstance(step, ins.Select)
