"""Which accesses of a kernel a GPU's thread does for several neighbouring elements at once.

In: a kernel. Out: `Packs`, or None where each element is better done by itself: how many elements a
thread does together, and which loads and stores it does for all of them in one access of up to 16
bytes. A load of 16 bytes costs the instructions of one of 4, and keeps four times as many bytes on
their way: elementwise kernels get the bandwidth of the memory only so (Volkov, "Better performance
at lower occupancy", 2010).

A kernel qualifies if it is one loop over the whole range without loops, calls or failures inside:
what a thread does for an element is then the same as for its neighbours. Accesses that are not
taken together, those under a condition or at other places, stay as they are, one per element.
"""

from __future__ import annotations

from pyrelay.lower.kernels.kernel import (
    SLOT,
    Assign,
    Compute,
    For,
    If,
    Kernel,
    Load,
    LocalArray,
    Parameter,
    Read,
    Statement,
    Store,
    statements,
)
from pyrelay.records import dataclass

ACCESS = 16
"""Bytes of the widest access of a thread."""

LARGEST_PACK = 2 * ACCESS
"""Bytes of the elements of a pack."""

MOST_STATEMENTS = 512
"""In the text for all elements of a pack."""


@dataclass(frozen=True, slots=True)
class Packs:
    """`count` elements together, in these loads and stores of the loop over the range."""

    loop: For
    count: int
    loads: dict[Load, Parameter]
    stores: dict[Store, Parameter]

    @property
    def arrays(self) -> tuple[Parameter, ...]:
        """The arrays whose addresses have to be those of whole packs."""
        return tuple(dict.fromkeys((*self.loads.values(), *self.stores.values())))


def packs(kernel: Kernel) -> Packs | None:
    """How a thread does several elements of a kernel, None if it does one."""
    *before, loop = kernel.body or (None,)
    if kernel.routines or not isinstance(loop, For):
        return None
    if loop.start is not kernel.begin or loop.stop is not kernel.end:
        return None
    inside = list(statements(loop.body))
    if not all(isinstance(s, (Read, Compute, Load)) for s in before):
        return None
    if not all(isinstance(s, (Compute, Load, Store, Assign, If)) for s in inside):
        return None
    if any(isinstance(getattr(s, "array", None), LocalArray) for s in inside):
        return None
    stores = _stores(loop, inside)
    if stores is None:
        return None
    loads = {
        s: s.array for s in loop.body
        if isinstance(s, Load) and isinstance(s.array, Parameter)
        and s.index is loop.index and s.parallel
    }  # fmt: skip
    sizes = [array.dtype.size for array in (*loads.values(), *stores.values())]
    if not sizes:
        return None
    count = min(ACCESS // min(sizes), LARGEST_PACK // max(sizes))
    while count * len(inside) > MOST_STATEMENTS:
        count //= 2
    return Packs(loop, count, loads, stores) if count > 1 else None


def _stores(loop: For, inside: list[Statement]) -> dict[Store, Parameter] | None:
    """All stores of the loop, if they can wait for the end of a pack, and so after all loads: each
    writes an array of its own at the index of the loop, which is read only there and before."""
    stores = [s for s in inside if isinstance(s, Store)]
    arrays = [s.array for s in stores]
    at_top = set(map(id, loop.body))
    if len(set(arrays)) < len(arrays):
        return None
    if not all(id(s) in at_top and s.index is loop.index and s.parallel for s in stores):
        return None
    written: set[object] = set()
    for statement in inside:
        if isinstance(statement, Store):
            written.add(statement.array)
        elif isinstance(statement, Load) and statement.array in arrays and (
            statement.index is not loop.index or statement.array in written
        ):
            return None
    places = {s: s.array for s in stores if isinstance(s.array, Parameter)}
    return None if any(a.role == SLOT for a in places.values()) else places
