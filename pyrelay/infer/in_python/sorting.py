"""NumPy's sorting, searching and counting, in plain Python.

In and out: what the NumPy function of the same name takes and gives, for the arguments listed.
Searching is by bisection (Knuth, The Art of Computer Programming, volume 3, section 6.2.1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.infer.in_python.arrangement import normalised_axis
from pyrelay.infer.in_python.bin_rules import count_of_bins

Array = Any

__all__ = [
    "argpartition", "argsort", "bincount", "compress", "digitize", "extract", "histogram",
    "histogram2d", "histogram_bin_edges", "histogramdd", "interp", "lexsort", "partition", "place",
    "putmask", "searchsorted", "sort", "sort_complex",
]


# -- sorting ---------------------------------------------------------------------------------------


def order_of(x: Array) -> Array:
    """Indices that sort each line of a matrix, equal elements in their order; NaNs go last.

    Written out for complex numbers; others have an op for it (`ops/order.py`). Only where real
    parts are equal, or a part is NaN, the imaginary parts count: first come the numbers without
    NaN, then those whose imaginary part is NaN, then those whose real part is.
    """
    if x.dtype.kind != "c":
        return np.argsort(x, axis=1, kind="stable")
    order = order_of(x.real)
    ordered = _arranged(x.real, order)
    broken = np.any(np.isnan(x))
    if broken or np.any(ordered[:, 1:] == ordered[:, :-1]):
        order = order_of(x.imag)
        order = _arranged(order, order_of(_arranged(x.real, order)))
        if broken:
            kinds = np.isnan(x.imag) + 2 * np.isnan(x.real)
            order = _arranged(order, order_of(_arranged(kinds, order)))
    return order


def sorted_lines(x: Array) -> Array:
    """Each line of a matrix sorted; zeros of both signs are equal.

    Written out for complex numbers; others have an op for it (`ops/order.py`).
    """
    return _arranged(x, order_of(x))


def _arranged(x: Array, order: Array) -> Array:
    """The elements of each line of a matrix in an order."""
    places = order + x.shape[1] * np.arange(x.shape[0])[:, None]
    return items_inside(x.reshape(-1), places.reshape(-1)).reshape(x.shape)


def order_in(x: Array) -> Array:
    """Indices that sort a vector."""
    return order_of(x.reshape(1, -1)).reshape(-1)


def _check_kind(kind: Any) -> None:
    """Raises what NumPy does if there is no way to sort of that name."""
    if kind not in (None, "quicksort", "quick", "heapsort", "heap", "mergesort", "merge", "stable"):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")


def _lines(x: Array) -> Array:
    """What lies along the last axis, as lines of a matrix. Not by -1: lines may have no element."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def sort_complex(a: Array) -> Array:
    """Complex numbers in order: by real parts, and where these are equal by imaginary ones."""
    x = np.asarray(a)
    narrow = x.dtype.kind in "iu" and x.dtype.itemsize < 4
    kind = x.dtype if x.dtype.kind == "c" else np.complex64 if narrow else np.complex128
    return sort(x.astype(kind))


def argsort(a: Array, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Array:
    """Indices that sort an axis, equal elements in their order; of a number as of one element."""
    x = np.atleast_1d(a)
    _check_kind(kind)
    if axis is None:
        return order_in(x.ravel())
    normalised_axis(axis, x.ndim)
    if x.ndim == 1:
        return _truths_last(x) if x.dtype.kind == "b" else order_in(x)
    last = np.moveaxis(x, axis, -1)
    orders = order_of(_lines(last))
    return np.moveaxis(orders.reshape(last.shape), -1, axis)


def _truths_last(x: Array) -> Array:
    """The order of truth values: where there is none, then where there is one."""
    order = np.empty(x.shape[0], np.int64)
    first, last = np.flatnonzero(~x), np.flatnonzero(x)
    order[: first.shape[0]] = first
    order[first.shape[0] :] = last
    return order


def sort(a: Array, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Array:
    """A sorted copy; its derivative goes to where the elements came from."""
    x = np.asarray(a)
    _check_kind(kind)
    if axis is None:
        return sort(x.ravel(), 0, kind, stable=stable)
    normalised_axis(axis, x.ndim)
    # The signs of zeros stay in their order, if that was asked for.
    keeps = x.dtype.kind == "f" and (kind == "stable" or kind == "mergesort" or stable)
    if x.ndim == 1:
        # A copy, which costs nothing, is no view of a line: loops may write it in place.
        return x[order_in(x)] if keeps else sorted_lines(x.reshape(1, -1)).reshape(-1).copy()
    last = np.moveaxis(x, axis, -1)
    lines = _lines(last)
    ordered = _arranged(lines, order_of(lines)) if keeps else sorted_lines(lines)
    return np.moveaxis(ordered.reshape(last.shape), -1, axis)


def partition(
    a: Array, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Array:
    """A copy in which elements stand where sorting puts them, greater ones behind them."""
    x = np.asarray(a)
    if axis is None:
        return partition(x.ravel(), kth, 0)
    places = np.sort(_places_of(x, kth, axis)).reshape(1, -1)
    if x.ndim == 1:
        return partitioned_lines(x.reshape(1, -1), places).reshape(-1).copy()
    last = np.moveaxis(x, axis, -1)
    found = partitioned_lines(_lines(last), places)
    return np.moveaxis(found.reshape(last.shape), -1, axis)


def partitioned_lines(x: Array, places: Array) -> Array:
    """Each line of a matrix in an order in which these elements, of rising places, stand where
    sorting puts them; the places are those of each line, or one line of them for all.

    Written out for complex numbers; others have an op for it (`ops/order.py`).
    """
    return sorted_lines(x)


def argpartition(
    a: Array, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Array:
    """The indices of `partition`."""
    x = np.asarray(a)
    if axis is None:
        return argpartition(x.ravel(), kth, 0)
    places = _places_of(x, kth, axis)
    last = np.moveaxis(x, axis, -1)
    lines = _lines(last)
    if x.dtype.kind == "c" or places.shape[0] != 1 or x.shape[axis] == 0:
        return np.moveaxis(order_of(lines).reshape(last.shape), -1, axis)
    middle = partitioned_lines(lines, places.reshape(1, 1))[:, places[0]]
    if x.ndim == 1:
        return _about(x, middle[0])
    found = np.zeros(lines.shape, dtype=np.int64)
    for r in range(lines.shape[0]):
        found[r] = _about(lines[r], middle[r])
    return np.moveaxis(found.reshape(last.shape), -1, axis)


def _about(x: Array, middle: Any) -> Array:
    """The indices of elements less than a number, of those equal to it, and of the others."""
    before = x < middle if middle == middle else x == x
    same = x == middle if middle == middle else x != x
    return np.concatenate([
        np.flatnonzero(before), np.flatnonzero(same), np.flatnonzero(~(before | same))
    ])


def _places_of(x: Array, kth: Any, axis: int) -> Array:
    """The asked places as a vector, those that count from the end too."""
    n = x.shape[axis]
    asked = np.asarray(kth).reshape(-1)
    if asked.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    places = np.where(asked < 0, asked + n, asked).astype(np.int64)
    for place in places:
        if (place < 0 or place >= n) and x.size:
            raise ValueError(f"kth(={place}) out of bounds ({n})")
    return places


def lexsort(keys: Any, axis: int = -1) -> Array:
    """Indices that sort by the last key, where it is equal by the one before, and so on."""
    columns = [np.moveaxis(np.asarray(key), axis, -1) for key in keys]
    for key in columns[1:]:
        if key.shape != columns[0].shape:
            raise ValueError("all keys need to be the same shape")
    order = argsort(columns[0])
    for key in columns[1:]:
        places = argsort(np.take_along_axis(key, order, -1))
        order = np.take_along_axis(order, places, -1)
    return np.moveaxis(order, -1, axis)


# -- searching -------------------------------------------------------------------------------------


def places_among(a: Array, v: Array, right: bool) -> Array:
    """How many elements of a sorted axis stand before each of others; NaNs stand last.

    Written out for single numbers and for complex ones; others have an op for it (`ops/order.py`).
    """
    flat = v.reshape(-1)
    places = np.zeros(flat.shape[0], dtype=np.int64)
    for k in range(flat.shape[0]):
        places[k] = _place(a, flat[k], right)
    return places.reshape(v.shape)


def _place(a: Array, value: Any, right: bool) -> int:
    """How many elements of a sorted array stand before `value`."""
    low, high = 0, a.shape[0]
    while low < high:
        middle = (low + high) // 2
        other = a[middle]
        before = not _is_less(value, other) if right else _is_less(other, value)
        if before:
            low = middle + 1
        else:
            high = middle
    return low


def _is_less(a: Any, b: Any) -> Any:
    return a < b or (np.isnan(b) and not np.isnan(a))


def searchsorted(a: Array, v: Array, side: str = "left", sorter: Array = None) -> Array:
    """Where elements belong in a sorted array."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    sorted_ = np.asarray(a) if sorter is None else np.asarray(a)[sorter]
    return places_among(sorted_, np.asarray(v), side == "right")[()]


def digitize(x: Array, bins: Array, right: bool = False) -> Array:
    """Numbers of the bins, whose edges ascend or descend."""
    if np.asarray(x).dtype.kind == "c":
        raise TypeError("x may not be complex")
    edges = np.asarray(bins)
    ascends, descends = np.all(edges[1:] >= edges[:-1]), np.all(edges[1:] <= edges[:-1])
    if not ascends and not descends:
        raise ValueError("bins must be monotonically increasing or decreasing")
    sorted_ = np.where(ascends, edges, edges[::-1])
    up = searchsorted(sorted_, x, side="left" if right else "right")
    return np.where(ascends, up, edges.shape[0] - up)[()]


def items_inside(x: Array, k: Array) -> Array:
    """Elements at places all of which lie in the vector. By a handler none is looked at again."""
    return x[k]


def interp(
    x: Array, xp: Array, fp: Array, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """Piecewise linear interpolation, constant outside.

    Rounded as NumPy does it: from the place before by the slope, at the last place exactly; where
    infinite values leave a NaN so, from the place behind.
    """
    places, at = np.asarray(xp), np.asarray(x)
    for given in (at, places):
        if given.dtype.kind == "c":
            raise TypeError(
                f"Cannot cast array data from dtype('{given.dtype.name}') to dtype('float64') "
                "according to the rule 'safe'"
            )
    places, at = places.astype(np.float64), at.astype(np.float64)
    values = np.asarray(fp)
    values = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    if places.shape[0] == 0:
        raise ValueError("array of sample points is empty")
    if values.shape[0] != places.shape[0]:
        raise ValueError("fp and xp are not of the same length.")
    if period is not None:
        width = np.abs(period)
        at, places = at % width, places % width
        order = argsort(places)
        places, values = places[order], values[order]
        places = np.concatenate([places[-1:] - width, places, places[:1] + width])
        values = np.concatenate([values[-1:], values, values[:1]])
    n = places.shape[0]
    k = np.clip(searchsorted(places, at, side="right") - 1, 0, max(n - 2, 0))
    before, behind = items_inside(places, k), items_inside(places, np.minimum(k + 1, n - 1))
    low, high = items_inside(values, k), items_inside(values, np.minimum(k + 1, n - 1))
    width = np.where(behind > before, behind - before, 1.0)
    slope = (high - low) * (1.0 / width) if values.dtype.kind == "c" else (high - low) / width
    ends = at == behind
    nearest, value = np.where(ends, behind, before), np.where(ends, high, low)
    found = slope * (at - nearest) + value
    other = slope * (at - behind) + high
    exact = (at == nearest) | (np.isnan(other) & (low == high) & ((at == at) | (n == 1)))
    found = np.where(np.isnan(found), np.where(exact, value, other), found)
    first = values[0] if period is not None or left is None else left
    last = values[n - 1] if period is not None or right is None else right
    return np.where(at < places[0], first, np.where(at > places[n - 1], last, found))[()]


# -- choosing elements -----------------------------------------------------------------------------


def extract(condition: Array, arr: Array) -> Array:
    """The elements of the flattened array where the condition holds."""
    return np.ravel(arr)[np.ravel(condition).astype(bool)]


def compress(condition: Array, a: Array, axis: Any = None) -> Array:
    """The slices along an axis where the condition holds."""
    kept = np.flatnonzero(np.asarray(condition))
    return np.ravel(a)[kept] if axis is None else np.take(a, kept, axis=axis)


def place(arr: Array, mask: Array, vals: Any) -> None:
    """Write values, repeated as needed, where the mask holds."""
    chosen = np.asarray(mask).astype(bool)
    values = np.ravel(np.asarray(vals)).astype(arr.dtype)
    count = np.sum(chosen)
    if count > 0 and values.shape[0] == 0:
        raise ValueError("Cannot insert from an empty array!")
    arr[chosen] = values[np.arange(count) % values.shape[0]]


def putmask(a: Array, mask: Array, values: Any) -> None:
    """Write where the mask holds the values of the same places, repeated as needed."""
    given = np.ravel(np.asarray(values)).astype(a.dtype)
    spread = given[np.arange(np.size(a)) % given.shape[0]].reshape(a.shape)
    a[...] = np.where(mask, spread, a)


# -- counting --------------------------------------------------------------------------------------


def bincount(x: Array, weights: Array = None, minlength: int = 0) -> Array:
    """How often each number from 0 occurs, or the sum of its weights."""
    values = np.asarray(x)
    if values.ndim > 1:
        raise ValueError("object too deep for desired array")
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    size = minlength
    if values.shape[0] > 0:
        if np.asarray(x).dtype.kind == "i" and np.min(values) < 0:
            raise ValueError("'list' argument must have no negative elements")
        size = max(size, int(np.max(values)) + 1)
    if weights is None:
        counts = np.zeros(size, dtype=np.int64)
        np.add.at(counts, values, 1)
        return counts
    if np.shape(weights) != values.shape:
        raise ValueError("The weights and list don't have the same length.")
    sums = np.zeros(size)
    np.add.at(sums, values, np.asarray(weights))
    return sums


def _outer_edges(x: Array, bins: Any, range: Any) -> Any:
    """The least and the greatest edge of equal bins, as floats."""
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if range is not None:
        first, last = range[0] * 1.0, range[1] * 1.0
        if first > last:
            raise ValueError("max must be larger than min in range parameter.")
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"supplied range of [{first}, {last}] is not finite")
    elif x.shape[0] == 0:
        first, last = 0.0, 1.0
    else:
        first, last = np.min(x), np.max(x)
        if x.dtype.kind != "f":
            first, last = float(first), float(last)
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"autodetected range of [{first}, {last}] is not finite")
    if first == last:
        first, last = first - 0.5, last + 0.5
    return first, last


def _equal_edges(x: Array, bins: Any, range: Any, weights: Any) -> Any:
    """The first, the last and all edges of equal bins, so many or by a rule, in the type of the
    numbers if these are floats."""
    by_rule = isinstance(bins, str)
    if by_rule and weights is not None:
        raise TypeError(
            "Automated estimation of the number of bins is not supported for weighted data"
        )
    first, last = _outer_edges(x, 1 if by_rule else bins, range)
    if by_rule:
        bins = count_of_bins(x, bins, first, last, range is None)
    dtype = x.dtype if x.dtype.kind == "f" or x.dtype.name == "bfloat16" else np.float64
    return first, last, np.linspace(first, last, bins + 1, dtype=dtype)


def _given_edges(bins: Any) -> Array:
    """Edges that are given."""
    edges = np.asarray(bins)
    if np.any(edges[:-1] > edges[1:]):
        raise ValueError("`bins` must increase monotonically, when an array")
    return edges


def histogram_bin_edges(
    a: Array, bins: Any = 10, range: Any = None, weights: Array = None
) -> Array:
    """The edges of a histogram's bins."""
    if not isinstance(bins, str) and np.ndim(bins):
        return _given_edges(bins)
    _, _, edges = _equal_edges(np.ravel(a), bins, range, weights)
    return edges


def _equal_bin(x: Array, edges: Array, first: Any, last: Any) -> Array:
    """The bins of numbers that lie between the first edge and the last one: by arithmetic, which
    rounding may put one bin off. So NumPy does."""
    number = edges.shape[0] - 1
    # of edges that are given the way between them is one of NumPy's doubles
    found = ((x - first) / np.subtract(last, first) * number).astype(np.int64)
    k = np.where(found == number, number - 1, found)
    # Nothing is clipped: this says that no place is outside.
    k = k - (x < np.take(edges, k, mode="clip"))
    return k + ((x >= np.take(edges, k + 1, mode="clip")) & (k != number - 1))


def histogram(
    a: Array, bins: Any = 10, range: Any = None, density: bool = False, weights: Array = None
) -> Any:
    """Counts (or sums of weights) in bins, and the edges; the last bin is closed."""
    x = np.ravel(a)
    if not isinstance(bins, str) and np.ndim(bins):
        edges = _given_edges(bins)
        inside = (x >= edges[0]) & (x <= edges[-1])
        number = edges.shape[0] - 1
        k = np.minimum(searchsorted(edges, x, side="right") - 1, number - 1)
    else:
        first, last, edges = _equal_edges(x, bins, range, weights)
        inside = (x >= first) & (x <= last)
        number = edges.shape[0] - 1
        k = _equal_bin(np.where(inside, x.astype(edges.dtype), first), edges, first, last)
    k = np.where(inside, k, 0)
    if weights is None:
        counts = np.zeros(number, dtype=np.int64)
        np.add.at(counts, k, inside.astype(np.int64))
    else:
        if np.shape(weights) != np.shape(a):
            raise ValueError("weights should have the same shape as a.")
        mass = np.ravel(weights)
        wide = np.float64 if mass.dtype.kind == "f" else mass.dtype
        sums = np.zeros(number, dtype=wide)
        np.add.at(sums, k, np.where(inside, mass, 0).astype(wide))
        counts = sums.astype(mass.dtype)
    if density:
        width = edges[1:] - edges[:-1]
        return counts / width / np.sum(counts), edges
    return counts, edges


def histogram2d(
    x: Array, y: Array, bins: Any = 10, range: Any = None, density: bool = False,
    weights: Array = None,
) -> Any:
    """Counts in the cells of a grid, as floats, and the edges of both axes."""
    _refuse_rule(bins)
    both = isinstance(bins, (tuple, list)) and len(bins) == 2
    first = histogram_bin_edges(x, bins[0] if both else bins, None if range is None else range[0])
    other = histogram_bin_edges(y, bins[1] if both else bins, None if range is None else range[1])
    i, i_inside = _cell(np.asarray(x), first)
    j, j_inside = _cell(np.asarray(y), other)
    inside = i_inside & j_inside
    counts = np.zeros((first.shape[0] - 1, other.shape[0] - 1))
    mass = np.ones(i.shape[0]) if weights is None else np.asarray(weights)
    np.add.at(
        counts, (np.where(inside, i, 0), np.where(inside, j, 0)), np.where(inside, mass, 0.0)
    )
    if density:
        area = (first[1:] - first[:-1])[:, None] * (other[1:] - other[:-1])
        counts = counts / area / np.sum(counts)
    return counts, first, other


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Counts in the cells of a grid, as floats, and the edges of all axes."""
    _refuse_rule(bins)
    given = isinstance(sample, (tuple, list))
    columns = list(sample) if given else list(np.unstack(np.asarray(sample), axis=1))
    several = isinstance(bins, (tuple, list))
    edges = [
        histogram_bin_edges(
            column, bins[k] if several else bins, None if range is None else range[k]
        )
        for k, column in enumerate(columns)
    ]
    if weights is not None and np.shape(weights) != np.shape(columns[0]):
        raise ValueError("The weights and list don't have the same length.")
    shape: Any = ()
    place: Any = np.zeros(np.shape(columns[0]), dtype=np.int64)
    inside: Any = np.ones(np.shape(columns[0]), dtype=bool)
    for column, edge in list(zip(columns, edges, strict=True)):
        k, within = _cell(np.asarray(column), edge)
        place = place * (edge.shape[0] - 1) + np.where(within, k, 0)
        inside = inside & within
        shape = (*shape, edge.shape[0] - 1)
    mass = np.ones(place.shape[0]) if weights is None else np.asarray(weights)
    flat = np.zeros(math.prod(shape))
    np.add.at(flat, np.where(inside, place, 0), np.where(inside, mass, 0.0))
    counts = flat.reshape(shape)
    if density:
        total = np.sum(counts)
        for axis, edge in list(enumerate(edges)):
            width = (edge[1:] - edge[:-1]).reshape((-1,) + (1,) * (len(columns) - 1 - axis))
            counts = counts / width
        counts = counts / total
    return counts, edges


def _refuse_rule(bins: Any) -> None:
    if isinstance(bins, str):
        raise TypeError("the name of a rule for `bins` is for np.histogram")


def _cell(x: Array, edges: Array) -> Any:
    k = searchsorted(edges, x, side="right") - 1
    k = np.where(x == edges[-1], edges.shape[0] - 2, k)
    return k, (x >= edges[0]) & (x <= edges[-1])
