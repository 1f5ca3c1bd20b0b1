"""NumPy's functions of sets, in plain Python: arrays of different elements, in order.

In and out: what the NumPy function of the same name takes and gives, for the arguments listed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse
from pyrelay.infer.in_python.sorting import items_inside, order_in, searchsorted, sort

Array = Any

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]

_ONE = np.ones(1)
UniqueAllResult: Any = type(np.unique_all(_ONE))
UniqueCountsResult: Any = type(np.unique_counts(_ONE))
UniqueInverseResult: Any = type(np.unique_inverse(_ONE))


def unique(
    ar: Array, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: Any = None, *, equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The different elements (slices along `axis`), sorted in any case; where they are, how many.
    """
    x = np.asarray(ar)
    if axis is None:
        flat = x.reshape(-1)
        if return_index or return_inverse:
            order = order_in(flat)
            taken = flat[order]
        else:
            taken = sort(flat)
        new = taken[1:] != taken[:-1]
        if equal_nan and x.dtype.kind in "fc":
            new = new & ~(np.isnan(taken[1:]) & np.isnan(taken[:-1]))
    else:
        rows = np.moveaxis(x, axis, 0)
        columns = rows.reshape(rows.shape[0], math.prod(rows.shape[1:]))
        order = np.arange(columns.shape[0])
        for c in range(columns.shape[1]):
            order = order[order_in(columns[order, columns.shape[1] - 1 - c])]
        taken = rows[order]
        flat_rows = columns[order]
        new = np.any(flat_rows[1:] != flat_rows[:-1], axis=1)
    n = taken.shape[0]
    first = np.concatenate([np.ones(min(1, n), dtype=bool), new])
    values = taken[first]
    found = [values if axis is None else np.moveaxis(values, 0, axis)]
    if return_index:
        found.append(order[first])
    if return_inverse:
        inverse = np.zeros(n, dtype=np.int64)
        inverse[order] = np.cumsum(first) - 1
        found.append(inverse.reshape(x.shape) if axis is None else inverse)
    if return_counts:
        starts = np.flatnonzero(first)
        found.append(np.concatenate([starts[1:], np.full(min(1, n), n)]) - starts)
    return found[0] if len(found) == 1 else tuple(found)


def unique_all(x: Array, /) -> Any:
    """The different elements, sorted, where they are first, which each element is, how many."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Array, /) -> Any:
    """The different elements, sorted, and how many there are of each."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_values(x: Array, /) -> Array:
    """The different elements, sorted."""
    return unique(x, equal_nan=False)


def unique_inverse(x: Array, /) -> Any:
    """The different elements, sorted, and which of them each element is."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


def isin(
    element: Array, test_elements: Array, assume_unique: bool = False, invert: bool = False,
    *, kind: Any = None,
) -> Array:
    """Which elements occur among others."""
    if isinstance(test_elements, (set, frozenset)):
        refuse("NumPy takes a set as one object, which no number equals: write list(...) of it")
    x, wanted = np.asarray(element), np.ravel(np.asarray(test_elements))
    whole = np.result_type(x, wanted).kind in "iu" and x.dtype != "u8" and wanted.dtype != "u8"
    found = _is_whole_among(x, wanted) if whole else _is_among(x, wanted)
    return ~found if invert else found


#: places of so many elements as are compared with sooner than looked for among
_FEW = tuple(range(48))


def _is_among(x: Array, wanted: Array) -> Array:
    """Which elements occur in a vector: each is compared with all of a few, in one kernel, else
    looked for in order."""
    count = wanted.shape[0]
    if count == 0:
        return np.zeros(x.shape, dtype=bool)
    if count <= len(_FEW):
        found = x == wanted[0]
        for k in _FEW:
            found = found | (x == wanted[min(k, count - 1)])
        return found
    ordered = sort(wanted)
    at = np.minimum(searchsorted(ordered, x), ordered.shape[0] - 1)
    return ordered[at] == x


def _is_whole_among(x: Array, wanted: Array) -> Array:
    """The same of whole numbers, by a table of all between the least and the greatest of the vector
    where it is no longer than NumPy's is allowed to be."""
    if wanted.shape[0] == 0:
        return np.zeros(x.shape, dtype=bool)
    least, most = int(np.min(wanted)), int(np.max(wanted))
    if float(most) - float(least) > 6.0 * (x.size + wanted.shape[0]):
        return _is_among(x, wanted)
    table = np.zeros(most - least + 1, dtype=bool)
    table[wanted.astype(np.int64) - least] = True
    inside = (x >= least) & (x <= most)
    return inside & items_inside(table, np.where(inside, x.astype(np.int64) - least, 0))


def union1d(ar1: Array, ar2: Array) -> Array:
    """The elements of either, sorted."""
    return unique(np.concatenate([np.ravel(np.asarray(ar1)), np.ravel(np.asarray(ar2))]))


def intersect1d(
    ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The elements of both, sorted; and where they are first in the one and in the other."""
    a, b = np.ravel(np.asarray(ar1)), np.ravel(np.asarray(ar2))
    if assume_unique:  # of one twice it is said that both have it
        return _neighbours(np.concatenate([a, b]), a.shape[0], return_indices)
    values = unique(a.astype(np.result_type(a, b)))
    values = values[_is_among(values, b)]
    if not return_indices:
        return values
    return values, _first_places(a, values), _first_places(b, values)


def _neighbours(both: Array, left: Any, return_indices: bool) -> Any:
    """The elements that are followed by an equal one where all are sorted."""
    if not return_indices:
        both = np.sort(both)
        return both[:-1][both[1:] == both[:-1]]
    order = np.argsort(both, kind="stable")
    both = both[order]
    again = both[1:] == both[:-1]
    return both[:-1][again], order[:-1][again], order[1:][again] - left


def _first_places(x: Array, values: Array) -> Array:
    """Where each of the sorted values is first in a vector that has them all."""
    different, places = unique(x, return_index=True)
    return places[searchsorted(different, values)]


def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The elements of the first that the other does not have, sorted unless `assume_unique`."""
    values = np.ravel(np.asarray(ar1)) if assume_unique else unique(ar1)
    return values[~_is_among(values, np.ravel(np.asarray(ar2)))]


def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The elements that only one of them has, sorted."""
    a, b = unique(ar1), unique(ar2)
    return sort(np.concatenate([a[~_is_among(a, b)], b[~_is_among(b, a)]]))
