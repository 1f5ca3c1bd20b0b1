"""The axes that a kernel runs through, and which of them one index counts together.

In: extents, and the shapes or the orders of axes of the arrays that are read. Out: a `Space`, whose
runs are as long as the arrays allow without dividing an index for each element.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from pyrelay.ir.dims import Extent
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Space:
    """Axes, and how they are grouped into runs that one index counts each."""

    extents: tuple[Extent, ...]
    runs: tuple[int, ...]  # how many axes each run has
    turned: bool = False  # the last run but one ends with the last axis of an array that is read

    def run_extents(self) -> tuple[tuple[Extent, ...], ...]:
        """The extents of each run."""
        found, start = [], 0
        for count in self.runs:
            found.append(self.extents[start : start + count])
            start += count
        return tuple(found)


def one_by_one(extents: Sequence[Extent]) -> Space:
    """The space with every axis counted by itself."""
    return Space(tuple(extents), (1,) * len(extents))


def long_rows(extents: Sequence[Extent]) -> list[Space]:
    """Spaces whose last axes are one run: rows of pixels, where an image is cut or turned along
    other axes than that of its colours."""
    rank = len(extents)
    return [Space(tuple(extents), (1,) * (rank - k) + (k,)) for k in range(2, rank)]


def longest_rows_first(spaces: Iterable[Space]) -> list[Space]:
    """Spaces by how many axes their last run has."""
    return sorted(spaces, key=lambda space: -space.runs[-1] if space.runs else 0)


def collapsed(
    extents: Sequence[Extent], shapes: Sequence[Sequence[Extent]], *, sliced: bool = False
) -> Space:
    """The space with runs as long as arrays of `shapes`, aligned at the right, allow; if `sliced`,
    their first axes may be longer or shorter. Axes of extent 1 belong to the run before them, the
    first to the first: their index is always 0, so no loop may be over them alone."""
    rank = len(extents)
    counted = [axis for axis, extent in enumerate(extents) if extent != 1]
    cuts = {0, rank}
    for shape in shapes:
        if not shape or len(shape) > rank:
            continue
        offset = rank - len(shape)
        # Neighbours along which the array is repeated are one run, as those along which it is not.
        repeated: dict[int, bool | None] = dict.fromkeys(range(offset))
        repeated |= {k: shape[k - offset] != extents[k] for k in range(offset, rank)}
        if repeated[offset] and sliced and shape[0] != 1:
            repeated[offset] = False
        cuts |= {b for a, b in itertools.pairwise(counted) if repeated[a] != repeated[b]}
    ends = sorted(cuts)
    return Space(tuple(extents), tuple(b - a for a, b in itertools.pairwise(ends)))


def turned_space(extents: Sequence[Extent], orders: Sequence[Sequence[int]]) -> Space | None:
    """The space of an array that arrays of these orders of axes are transposed to: axes that stay
    neighbours are a run. None if rows do not end where one of the arrays ends."""
    rank = len(extents)
    cuts = {0, rank}
    for order in orders:
        cuts |= {k for k in range(1, rank) if order[k] != order[k - 1] + 1}
    ends = sorted(cuts)
    runs = tuple(b - a for a, b in itertools.pairwise(ends))
    if len(runs) < 3 or not any(order[rank - runs[-1] - 1] == rank - 1 for order in orders):
        return None
    return Space(tuple(extents), runs, turned=True)
