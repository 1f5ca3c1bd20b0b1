"""Buffers of a loop that groups of blocks divide by rows.

In: where the phases of a loop access its buffers, the rows of the elements that blocks own. Out:
the buffers of which blocks touch none but the rows that they own elements of, and what has to be
so. For these only the blocks of the same rows wait for each other.

A recurrent network whose sequences are several computes each of them by itself: the next state of
a sequence hangs on all of its state, and on nothing of another one's. Blocks that have tiles of a
product of matrices side by side share rows; those above each other share none, and whoever meets
with fewer waits for less (a barrier of a subset, as of `MPI_Comm_split`; Valiant, "A bridging model
for parallel computation", 1990, 2.2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyrelay.devices.gpu.hazards import Check, Frozen, Owned, Rows, Touched, divided, is_fixed
from pyrelay.devices.gpu.item_places import product, sum_of
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Buffers of which no group of blocks writes what another one touches; what has to be so,
    numbers of columns that are to be no more than what is from one row to the next."""

    buffers: frozenset[Any]
    checks: tuple[Check, ...]


NONE = RowGroups(frozenset(), ())


def row_groups(
    touched: Mapping[Any, Collection[Touched]], rows: Frozen, written: Collection[Any],
    taken: Iterable[tuple[Any, Any]],
) -> RowGroups:
    """The buffers that are not written, and those that are divided into so many rows, if there are
    any of these. taken: buffers that are taken from an arena, with what tells their size: one may
    be taken where another one was, so all of a size have rows of as many bytes, or none of them is
    divided."""
    found = {
        name: row for name in written
        if (row := _row(touched.get(name, frozenset([None])), rows)) is not None
    }
    sizes: dict[Any, set[Any]] = {}
    for name, size in taken:
        sizes.setdefault(size, set()).add(name)
    while True:
        unlike = {
            name for names in sizes.values() for name in names & {*found}
            if any(each not in found or found[each].nbytes != found[name].nbytes for each in names)
        }
        if not unlike:
            break
        for name in unlike:
            del found[name]
    if not found:
        return NONE
    checks = dict.fromkeys(check for row in found.values() for check in row.checks)
    return RowGroups(frozenset({*found, *touched} - ({*written} - {*found})), tuple(checks))


@dataclass(frozen=True, slots=True)
class _Row:
    """Bytes from one row to the next, and what has to be so."""

    nbytes: Frozen
    checks: frozenset[Check]


def _row(places: Collection[Touched], rows: Frozen) -> _Row | None:
    """The rows of a buffer that is accessed at these places; None if it is not divided by them."""
    found = [row for place in places if (row := _row_of(place, rows)) is not None]
    if len(found) < max(len(places), 1) or len({row.nbytes for row in found}) > 1:
        return None
    return _Row(found[0].nbytes, frozenset(check for row in found for check in row.checks))


def _row_of(place: Touched, rows: Frozen) -> _Row | None:
    """The rows of one place: from its stride on, it touches what is before the next row."""
    if not isinstance(place, (Owned, Rows)) or len(place.stride) != 1 or len(rows) != 1:
        return None
    end = dict(place.line)
    if isinstance(place, Owned):
        # Whole matrices further is the same row of another one; else so many units further.
        whole = frozenset(product(dict(rows), dict(place.stride)).items())
        rest = {m: c for m, c in place.addend if divided({m: c}, whole) is None}
        units = divided(rest, place.unit)
        if units is None or {*units} - {()} or units.get((), 0) < 0:
            return None
        end = sum_of(end, rest, 1)
    check = frozenset(end.items()), place.stride
    if not all(map(is_fixed, check)):
        return None
    nbytes = frozenset((monomial, count * place.size) for monomial, count in place.stride)
    return _Row(nbytes, frozenset([check]))
