"""Which rows the threads of a GPU's block keep in shared memory while they go through them again.

In: a kernel and its `Cooperation`. Out: `HeldRows`: the parts of arrays that several loops over an
item's elements read, one behind the other, and how many elements the loops go through.

A softmax goes through its row three times. The cache holds what a few blocks have read, not what
all of them have: of rows that are copied to shared memory when an item begins (`cp.async`, so that
no thread waits for one element after another), each is read from memory once. How much of a row
there is room for is seen at run time; the rest is read again.
"""

from __future__ import annotations

from pyrelay.lower.kernels.kernel import (
    EXTENT,
    For,
    Kernel,
    Literal,
    Load,
    Operand,
    Parameter,
    Read,
    Store,
    statements,
)
from pyrelay.lower.passes.cooperation import Cooperation
from pyrelay.lower.passes.long_chunks import chunks_of
from pyrelay.lower.passes.packs import ACCESS
from pyrelay.lower.passes.row_packs import START, Place, row_packs
from pyrelay.records import dataclass

ROOM = 224 * 1024
"""Bytes that a block has for them at most, where GPUs are of compute capability 9.0."""


@dataclass(frozen=True, slots=True)
class HeldRows:
    """`places` are held, `length` elements of each, from in front of the loop `before` on; `again`
    are the loads of all loops that go through a place but the first."""

    before: For
    length: Operand
    places: tuple[Place, ...]
    again: frozenset[Load]

    @property
    def nbytes(self) -> int:
        """Bytes of an element of all of them."""
        return sum(array.dtype.size for array, _ in self.places)


def item_loops(kernel: Kernel, shared: Cooperation) -> dict[For, tuple[For, Operand]]:
    """The shared loops over an item's elements from the first one on, each with the statement of
    the item that it is or is part of, and how many elements it goes through."""
    item = next(
        (s for s in kernel.body if isinstance(s, For) and s.stop is kernel.end), None
    )
    found: dict[For, tuple[For, Operand]] = {}
    for loop in item.body if item is not None else kernel.body:
        if not isinstance(loop, For):
            continue
        if loop in shared.loops:
            if _is_zero(loop.start):
                found[loop] = loop, loop.stop
            continue
        chunks = chunks_of(loop)
        if chunks is not None and _is_zero(chunks.first):
            found.update(
                (s, (loop, chunks.last)) for s in loop.body
                if isinstance(s, For) and s in shared.loops
            )
    return found


def held_rows(kernel: Kernel, shared: Cooperation) -> HeldRows | None:
    """What is held, None if nothing is read again."""
    stored = {s.array for s in statements(kernel.body) if isinstance(s, Store)}
    loops = item_loops(kernel, shared)
    lengths = list(dict.fromkeys(map(_key, (length for _, length in loops.values()))))
    if len(lengths) != 1:
        return None
    readers: dict[Place, list[For]] = {}
    loads: dict[Place, list[Load]] = {}
    for loop in loops:
        found = row_packs(loop)
        for load, (array, base) in found.loads.items() if found is not None else ():
            if array in stored or base is START or array.dtype.size > ACCESS:
                continue
            by = readers.setdefault((array, base), [])
            if loop not in by:
                by.append(loop)
            loads.setdefault((array, base), []).append(load)
    places = tuple(place for place, by in readers.items() if len(by) > 1)
    if not places:
        return None
    first = next(loop for loop in loops if any(loop in readers[p] for p in places))
    before, length = loops[first]
    again = frozenset(load for place in places for load in loads[place][1:])
    return HeldRows(before, length, places, again)


def length_of(kernel: Kernel, shared: Cooperation) -> Parameter | int | None:
    """How many elements the loops over an item go through, where the host knows it: an extent or
    a number."""
    lengths = {_key(length): length for _, length in item_loops(kernel, shared).values()}
    if len(lengths) != 1:
        return None
    (length,) = lengths.values()
    if isinstance(length, Literal):
        return int(length.value)
    return next((
        s.parameter for s in statements(kernel.body)
        if isinstance(s, Read) and s.out is length and s.parameter.role == EXTENT
    ), None)  # fmt: skip


def _key(operand: Operand) -> object:
    return int(operand.value) if isinstance(operand, Literal) else operand


def _is_zero(operand: Operand) -> bool:
    return isinstance(operand, Literal) and operand.value == 0
