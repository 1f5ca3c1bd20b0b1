"""What phases of one kernel have to wait for.

In: a function of a plan; then, phase by phase, the buffers that each reads and writes. Out: whether
it has to meet the others first.

Slots that moves connect may hold the same buffer, so they count as one; but what was allocated
since ways of control joined last is known to be no other's. A buffer that was freed may be taken
again under another slot's name: what it is written for waits for all that used it before. Phases of
single threads go through their items alike, so that each thread does the same items in all of them:
where an item touches nothing but what no other item touches (`Place`), nobody waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pyrelay.lower import instructions as ins
from pyrelay.lower.instructions import Slot
from pyrelay.records import dataclass

Monomial: TypeAlias = "tuple[Any, ...]"


@dataclass(frozen=True, slots=True)
class Place:
    """Where each item of a phase accesses a buffer: at its own number and `addend`, a polynomial as
    its monomials with their coefficients. `extent`: the number of items, in the same way; the size
    of an element."""

    addend: frozenset[tuple[Monomial, int]]
    extent: frozenset[tuple[Monomial, int]]
    size: int

    def is_own(self, other: Place) -> bool:
        """Whether no item touches here what another item touches at the other place."""
        if self.size != other.size:
            return False
        left = dict(self.addend)
        for monomial, count in other.addend:
            left[monomial] = left.get(monomial, 0) - count
        apart = {monomial: count for monomial, count in left.items() if count}
        if not apart:
            return True
        if self.extent != other.extent or len(apart) != 1 or len(self.extent) != 1:
            return False
        # Whole multiples of the extent, or more: beyond all items.
        ((monomial, count),), ((own, least),) = apart.items(), self.extent
        return monomial == own and abs(count) >= least > 0


_Places: TypeAlias = "Mapping[Any, frozenset[Place | None]]"
_ANYWHERE: frozenset[Place | None] = frozenset([None])


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
        self.fresh: dict[int, str] = {}  # slots of what was allocated since ways joined
        self.count = 0
        self.clear()

    def of(self, operand: Any) -> Any:
        """What stands for the buffer of an operand here."""
        if isinstance(operand, Slot) and operand.index in self.fresh:
            return self.fresh[operand.index]
        return self.buffers.of(operand)

    def join(self) -> None:
        """Ways of control join."""
        self.fresh.clear()

    def move(self, target: int, source: Any) -> None:
        """A slot holds the buffer of another one."""
        self.fresh.pop(target, None)
        if isinstance(source, Slot) and source.index in self.fresh:
            self.fresh[target] = self.fresh[source.index]

    def select(self, target: int, sources: Iterable[Any]) -> None:
        """A slot holds the buffer of one of some others."""
        self.fresh.pop(target, None)
        names = {self.of(source): self.buffers.of(source) for source in sources}
        for slot, name in list(self.fresh.items()):
            if name in names:
                del self.fresh[slot]
        for name, root in names.items():
            for used in (self.read, self.written):
                if name in used:
                    used[root] = used.get(root, frozenset()) | used.pop(name)
            if name in self.taken:
                self.taken.add(root)

    def clear(self) -> None:
        """All have met."""
        self.read: dict[Any, frozenset[Place | None]] = {}
        self.written: dict[Any, frozenset[Place | None]] = {}
        self.freed = False
        self.taken: set[Any] = set()  # since something in use was freed

    def __bool__(self) -> bool:
        return bool(self.read or self.written)

    def waits(
        self, reads: Iterable[Any], writes: Iterable[Any], places: _Places | None = None
    ) -> bool:
        """Whether a phase that reads and writes these has to wait; places tell where, as far as
        that is known."""
        known, of = places or {}, self.of
        for operand in reads:
            if _meet(self.written, of(operand), known.get(operand, _ANYWHERE)):
                return True
        for operand in writes:
            here = known.get(operand, _ANYWHERE)
            if of(operand) in self.taken:
                return True
            if any(_meet(each, of(operand), here) for each in (self.read, self.written)):
                return True
        return False

    def add(
        self, reads: Iterable[Any], writes: Iterable[Any], places: _Places | None = None
    ) -> None:
        """Such a phase has begun."""
        known, of = places or {}, self.of
        for found, operands in ((self.read, reads), (self.written, writes)):
            for operand in operands:
                here = known.get(operand, _ANYWHERE)
                found[of(operand)] = found.get(of(operand), frozenset()) | here

    def free(self, address: Any) -> None:
        """A buffer may be taken again."""
        buffer = self.of(address)
        if buffer in self.read or buffer in self.written:
            self.freed = True

    def take(self, slot: int) -> None:
        """A slot has a buffer that may be one that was freed."""
        self.own(slot)
        if self.freed:
            self.taken.add(self.fresh[slot])

    def own(self, slot: int) -> None:
        """A slot has a buffer of its own."""
        self.count += 1
        self.fresh[slot] = f"fresh{self.count}"


def _meet(used: _Places, buffer: Any, here: frozenset[Place | None]) -> bool:
    """Whether some item may touch here what another one has."""
    return any(
        a is None or b is None or not a.is_own(b)
        for a in used.get(buffer, frozenset()) for b in here
    )
