"""Which accesses of a loop that a block shares a thread does for several neighbours at once.

In: a loop whose rounds `cooperation` deals out to the threads of a block. Out: `RowPacks`, or None
where a thread does better with single elements: how many rounds it does together, and which loads
and stores are one access of up to 16 bytes for all of them. As for whole kernels (`packs`), a row
that comes by 4 bytes at a time leaves the memory waiting for instructions (Volkov, "Better
performance at lower occupancy", 2010).

An access takes part if it is made in every round, at the loop's index behind a place that the loop
does not change. Stores wait for the end of a pack, so arrays that are stored are read at the same
place only, and before. Whether addresses and the length are those of whole packs is seen at run
time; a loop without them goes by single elements.
"""

from __future__ import annotations

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    SLOT,
    Assign,
    Compute,
    For,
    If,
    Literal,
    Load,
    Local,
    Operand,
    Parameter,
    Store,
    statements,
)
from pyrelay.lower.passes.packs import ACCESS, LARGEST_PACK, MOST_STATEMENTS
from pyrelay.records import dataclass

_AHEAD, _LARGEST_AHEAD = 4, 128  # packs, bytes of a thread that are on their way

Place = tuple[Parameter, Operand]
"""An array, and where in it the element of round 0 is."""

START = Literal(0, i64)
"""The first element of an array."""


@dataclass(frozen=True, slots=True)
class RowPacks:
    """`count` rounds together, with these loads and stores; the loads of so many packs are `ahead`
    of what is done with them."""

    count: int
    loads: dict[Load, Place]
    stores: dict[Store, Place]
    ahead: int


def row_packs(loop: For) -> RowPacks | None:
    """How a thread does several rounds of a loop, None if it does one."""
    inside = list(statements(loop.body))
    if not all(isinstance(s, (Compute, Load, Store, Assign, If)) for s in inside):
        return None
    made = {s.out: s for s in inside if isinstance(s, (Compute, Load))}
    places = {
        s: place for s in loop.body if isinstance(s, (Load, Store))
        if (place := _place(s, loop.index, made)) is not None
    }  # fmt: skip
    stores = {s: places.get(s) for s in inside if isinstance(s, Store)}
    loads = {s: places[s] for s in loop.body if isinstance(s, Load) and s in places}
    held = {s: place for s, place in stores.items() if place is not None}
    if len(held) < len(stores) or len({array for array, _ in held.values()}) < len(held):
        return None
    written: set[object] = set()
    for statement in inside:
        if isinstance(statement, Store):
            written.add(statement.array)
        elif isinstance(statement, Load):
            own = [place for place in held.values() if place[0] == statement.array]
            if own and (statement.array in written or loads.get(statement) != own[0]):
                return None
    sizes = [array.dtype.size for array, _ in (*loads.values(), *held.values())]
    if not sizes:
        return None
    count = min(ACCESS // min(sizes), LARGEST_PACK // max(sizes))
    while count * len(inside) > MOST_STATEMENTS:
        count //= 2
    if count < 2:
        return None
    taken = count * sum(array.dtype.size for array, _ in loads.values())
    ahead = min(_AHEAD, max(_LARGEST_AHEAD // max(taken, 1), 1))
    while ahead * count * len(inside) > MOST_STATEMENTS:
        ahead //= 2
    return RowPacks(count, loads, held, max(ahead, 1))


def _place(
    access: Load | Store, index: Local, made: dict[Local, Compute | Load]
) -> Place | None:
    """Where an access is, if it is one of neighbours in neighbouring rounds."""
    array = access.array
    if not isinstance(array, Parameter) or array.role == SLOT or not access.parallel:
        return None
    if access.index is index:
        return array, START
    step = made.get(access.index) if isinstance(access.index, Local) else None
    if not isinstance(step, Compute) or step.primitive != "add" or index not in step.args:
        return None
    base = next((a for a in step.args if a is not index), index)
    fixed = isinstance(base, Literal) or (
        base is not index and base not in made and not base.variable
    )
    return (array, base) if fixed else None
