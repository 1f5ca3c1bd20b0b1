"""What phases of one kernel have to wait for.

In: a function of a plan; then, phase by phase, the buffers that each reads and writes. Out: for
whom it waits first: for nobody, for the threads of its block, for the blocks that share its rows,
or for all.

Slots that moves connect may hold the same buffer, so they count as one; but what was allocated
since ways of control joined last is known to be no other's. A buffer that is freed is nobody's
again before all have met. Phases of single threads go through their items alike, so that each
thread does the same items in all of them: where an item touches nothing but what no other item
touches (`Place`), nobody waits. Where blocks own elements (`Owned`), only they wait; where they
read whole rows beside (`Rows`), those of the same rows do (`row_groups`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Slot
from pyrelay.records import dataclass

Monomial: TypeAlias = "tuple[Any, ...]"
Frozen: TypeAlias = "frozenset[tuple[Monomial, int]]"

NOBODY, BLOCK, GROUP, ALL = 0, 1, 2, 3
"""For whom a phase waits."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where each item of a phase accesses a buffer: at its own number and `addend`, a polynomial as
    its monomials with their coefficients. `extent`: the number of items, in the same way; the size
    of an element."""

    addend: Frozen
    extent: Frozen
    size: int

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same in all rounds."""
        return is_fixed(self.addend) and is_fixed(self.extent)

    def is_own(self, other: Place) -> bool:
        """Whether no item touches here what another item touches at the other place."""
        if self.size != other.size:
            return False
        apart = difference(self.addend, other.addend)
        if not apart:
            return True
        if self.extent != other.extent or len(apart) != 1 or len(self.extent) != 1:
            return False
        # Whole multiples of the extent, or more: beyond all items.
        ((monomial, count),), ((own, least),) = apart.items(), self.extent
        return monomial == own and abs(count) >= least > 0


@dataclass(frozen=True, slots=True)
class Owned:
    """Where the phases of blocks that own elements access a buffer.

    An element is in a row and in a column; its owner hangs on the row and on the column's rest by
    `unit`. The access is at `row * stride + column + addend`. line: the columns of the phase, more
    than `unit` if it is `full`; single: whether there is one row; size: of an element. lanes: what
    tells that two phases deal elements out to threads in the same way, None for one of its own.
    """

    stride: Frozen
    addend: Frozen
    unit: Frozen
    line: Frozen
    single: bool
    size: int
    lanes: Frozen | None

    @property
    def full(self) -> bool:
        """Whether an owner has several columns of a row."""
        return self.line != self.unit

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same in all rounds."""
        return is_fixed(self.addend) and is_fixed(self.stride)

    def waits(self, other: Owned) -> tuple[int, tuple[Check, ...]]:
        """For whom the phase of one waits that comes after that of the other, if both touch the
        same buffer; and what has to be so, if not for all."""
        stays = (self.size, self.unit) == (other.size, other.unit)
        if not stays or not (self.single or self.stride == other.stride):
            return ALL, ()
        apart = divided(difference(self.addend, other.addend), self.unit)
        if apart is None:
            return ALL, ()
        alike = self.lanes is not None and self.lanes == other.lanes
        level = NOBODY if alike and (self == other or not (self.full or other.full)) else BLOCK
        if self.single:
            return level, ()
        units = apart.pop((), 0)
        # Behind each other in a row: a part of it is not before what is all of it.
        if apart or (self.full and units > 0) or (other.full and units < 0):
            return ALL, ()
        ends = frozenset((m, (abs(units) + 1) * count) for m, count in self.unit)
        wide = {ends, *(each.line for each in (self, other) if each.full)}
        return level, tuple((each, self.stride) for each in wide)


@dataclass(frozen=True, slots=True)
class Rows:
    """Where a phase reads whole rows of a matrix, each block those of the elements that it owns: so
    many elements from the first of a row on, rows `stride` apart, elements of so many bytes."""

    stride: Frozen
    line: Frozen
    size: int

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same in all rounds."""
        return is_fixed(self.stride) and is_fixed(self.line)


Touched: TypeAlias = "Place | Owned | Rows | None"
"""Where a phase accesses a buffer; None for who knows where."""

Check: TypeAlias = "tuple[Frozen, Frozen]"
"""A number of columns that is to be no more than what is from one row to the next."""

Places: TypeAlias = "Mapping[Any, frozenset[Touched]]"
_ANYWHERE: frozenset[Touched] = frozenset([None])


def is_fixed(polynomial: Frozen) -> bool:
    """Whether a polynomial is one of words that stay the same in all rounds."""
    return all(re.fullmatch(r"[sd]\d+", str(f)) for monomial, _ in polynomial for f in monomial)


def difference(a: Frozen, b: Frozen) -> dict[Monomial, int]:
    """The difference of two polynomials."""
    left = dict(a)
    for monomial, count in b:
        left[monomial] = left.get(monomial, 0) - count
    return {monomial: count for monomial, count in left.items() if count}


def divided(polynomial: Mapping[Monomial, int], by: Frozen) -> dict[Monomial, int] | None:
    """A polynomial divided by one of a single term; None where something is left."""
    if len(by) != 1:
        return None
    ((own, least),) = by
    found: dict[Monomial, int] = {}
    for monomial, count in polynomial.items():
        left = list(monomial)
        for factor in own:
            if factor not in left:
                return None
            left.remove(factor)
        if count % least:
            return None
        found[tuple(left)] = count // least
    return found


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
    """What was read and written since all have met who may wait for it, and since the threads of a
    block have.

    by_rows: what stands for buffers of which no two groups of blocks touch the same rows.
    checks: what has to be so where blocks that own elements do not wait for others. touched: where
    each buffer is accessed.
    """

    def __init__(self, buffers: Buffers, by_rows: frozenset[Any] = frozenset()) -> None:
        self.buffers, self.by_rows = buffers, by_rows
        self.touched: dict[Any, frozenset[Touched]] = {}
        self.fresh: dict[int, str] = {}  # slots of what was allocated since ways joined
        self.roots: dict[str, Any] = {}  # what stands for those after that
        self.checks: dict[Check, None] = {}
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
        for used in self._all():
            for name, by in list(used):
                if name in names and names[name] != name:
                    _add(used, (names[name], by), used.pop((name, by)))

    def rebound(self, slot: int) -> None:
        """A slot holds another buffer from now on."""
        for used in self._all():
            for name, by in list(used):
                if by == slot:
                    _add(used, (name, None), used.pop((name, by)))

    def _all(self) -> tuple[_Accessed, ...]:
        return (*self.grid, *self.block)

    def clear(self) -> None:
        """All have met."""
        self.grid: Used = {}, {}  # what was read, what was written
        self.joined()

    def met_by_rows(self) -> None:
        """The blocks of each group have met."""
        for used in self.grid:
            for key in [k for k in used if self.is_by_rows(k[0])]:
                del used[key]
        self.joined()

    def is_by_rows(self, name: Any) -> bool:
        """Whether only blocks that share rows wait for each other where they use a buffer."""
        return self.roots.get(name, name) in self.by_rows

    @property
    def only_by_rows(self) -> bool:
        """Whether all that is pending is so."""
        return all(self.is_by_rows(name) for used in self.grid for name, _ in used)

    def joined(self) -> None:
        """The threads of each block have met."""
        self.block: Used = {}, {}

    def left(self) -> Used:
        """What a round leaves to the next one, in which slots have other words."""
        found: Used = {}, {}
        for used, kept in zip(self.grid, found, strict=True):
            for (name, _), places in used.items():
                settled = frozenset(p if p is not None and p.is_fixed else None for p in places)
                _add(kept, (self.roots.get(name, name), None), settled)
        return found

    def resume(self, left: Used) -> None:
        """A round begins with what the one before has left."""
        self.grid = dict(left[0]), dict(left[1])
        self.block = dict(left[0]), dict(left[1])

    def __bool__(self) -> bool:
        return any(self.grid)

    def uses(self, address: Any) -> bool:
        """Whether a buffer was read or written since all have met."""
        name = self.of(address)
        return any(name == each for used in self.grid for each, _ in used)

    def waits(
        self, reads: Iterable[Any], writes: Iterable[Any], places: Places | None = None
    ) -> int:
        """For whom a phase that reads and writes these has to wait; places tell where, as far as
        that is known."""
        reads, writes = tuple(reads), tuple(writes)
        level = self._level(self.grid, reads, writes, places)
        if level >= GROUP:
            return level
        return BLOCK if self._level(self.block, reads, writes, places) else NOBODY

    def _level(
        self, used: Used, reads: Iterable[Any], writes: Iterable[Any],
        places: Places | None,
    ) -> int:
        known, level = places or {}, NOBODY
        read, written = used
        pairs = [(written, operand) for operand in reads]
        pairs += [(each, operand) for operand in writes for each in (read, written)]
        for found, operand in pairs:
            name = self.of(operand)
            most = GROUP if self.is_by_rows(name) else ALL
            for there in {p for (each, _), places in found.items() if each == name for p in places}:
                for here in known.get(operand, _ANYWHERE):
                    level = max(level, min(most, self._between(here, there)))
        return level

    def _between(self, here: Touched, there: Touched) -> int:
        """For whom an access waits that comes after another one of the same buffer."""
        if isinstance(here, Place) and isinstance(there, Place):
            return NOBODY if here.is_own(there) else ALL
        if isinstance(here, Owned) and isinstance(there, Owned):
            level, checks = here.waits(there)
            self.checks.update(dict.fromkeys(checks))
            return level
        return ALL

    def add(
        self, reads: Iterable[Any], writes: Iterable[Any], places: Places | None = None
    ) -> None:
        """Such a phase has begun."""
        known, of = places or {}, self.of
        for operand in (*reads, *writes):
            root = self.buffers.of(operand)
            before = self.touched.get(root, frozenset())
            self.touched[root] = before | known.get(operand, _ANYWHERE)
        for layer in (self.grid, self.block):
            for found, operands in zip(layer, (reads, writes), strict=True):
                for operand in operands:
                    by = operand.index if isinstance(operand, Slot) else None
                    _add(found, (of(operand), by), known.get(operand, _ANYWHERE))

    def own(self, slot: int) -> None:
        """A slot has a buffer of its own."""
        name = f"fresh{len(self.roots)}"
        self.fresh[slot] = name
        self.roots[name] = self.buffers.of(Slot(slot))

    def free(self, address: Any) -> None:
        """A buffer is used no more: nobody has to wait for what was done to it."""
        if not isinstance(address, Slot):
            return
        name, own = self.of(address), address.index in self.fresh
        for used in self._all():
            for key in [k for k in used if k[0] == name and (own or k[1] == address.index)]:
                del used[key]


_Accessed: TypeAlias = "dict[tuple[Any, int | None], frozenset[Touched]]"
Used: TypeAlias = "tuple[_Accessed, _Accessed]"
"""What was read, and what was written: buffers, and the slots that held them, if they still do."""


def _add(
    used: _Accessed, key: tuple[Any, int | None], places: frozenset[Touched]
) -> None:
    used[key] = used.get(key, frozenset()) | places
