"""What phases of one kernel have to wait for.

In: a function of a plan; then, phase by phase, the buffers that each reads and writes. Out: whether
it has to meet the others first.

Slots that moves connect may hold the same buffer, so they count as one. A buffer that was freed may
be taken again under another slot's name: what it is written for waits for all that used it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyrelay.lower import instructions as ins
from pyrelay.lower.instructions import Slot


class Buffers:
    """Which slots may hold the same buffer."""

    def __init__(self, code: Sequence[ins.Instruction]) -> None:
        self.parents: dict[int, int] = {}
        for step in code:
            match step:
                case ins.Unary(op="move", target=target, a=Slot(index)):
                    self._join(target, index)
                case ins.Select(target=target, a=a, b=b):
                    for each in (a, b):
                        if isinstance(each, Slot):
                            self._join(target, each.index)

    def of(self, operand: Any) -> Any:
        """What stands for the buffer of an operand."""
        return self._root(operand.index) if isinstance(operand, Slot) else operand

    def _root(self, slot: int) -> int:
        while (parent := self.parents.get(slot, slot)) != slot:
            slot = parent
        return slot

    def _join(self, a: int, b: int) -> None:
        self.parents[self._root(a)] = self._root(b)


class Pending:
    """What was read and written since all have met."""

    def __init__(self, buffers: Buffers) -> None:
        self.buffers = buffers
        self.clear()

    def clear(self) -> None:
        """All have met."""
        self.read: set[Any] = set()
        self.written: set[Any] = set()
        self.freed = False
        self.taken: set[Any] = set()  # since something in use was freed

    def __bool__(self) -> bool:
        return bool(self.read or self.written)

    def waits(self, reads: Iterable[Any], writes: Iterable[Any]) -> bool:
        """Whether a phase that reads and writes these has to wait."""
        of = self.buffers.of
        if any(of(r) in self.written for r in reads):
            return True
        stored = {of(w) for w in writes}
        return bool(stored & (self.read | self.written | self.taken))

    def add(self, reads: Iterable[Any], writes: Iterable[Any]) -> None:
        """Such a phase has begun."""
        self.read |= {self.buffers.of(r) for r in reads}
        self.written |= {self.buffers.of(w) for w in writes}

    def free(self, address: Any) -> None:
        """A buffer may be taken again."""
        if self.buffers.of(address) in self.read | self.written:
            self.freed = True

    def take(self, slot: int) -> None:
        """A slot has a buffer that may be one that was freed."""
        if self.freed:
            self.taken.add(self.buffers.of(Slot(slot)))
