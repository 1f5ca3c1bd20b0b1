"""NumPy functions that repeat elements, put some in and leave some out, in plain Python.

In and out: what the NumPy function of the same name takes and gives, for the arguments listed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

__all__ = ["delete", "insert", "resize", "trim_zeros"]


def repeat(a: Array, repeats: Array, axis: int) -> Array:
    """Each slice along the axis as often as its count says."""
    n = a.shape[axis]
    counts = np.broadcast_to(repeats, n)
    if np.any(counts < 0):
        raise ValueError("repeats may not contain negative values.")
    ends = np.cumsum(counts)
    total = int(ends[-1]) if n > 0 else 0
    # A slice is left as often as something ends before a place, which is added up from place to
    # place: what a search among the ends finds, in fewer steps.
    left = np.zeros(total + 1, dtype=np.int64)
    np.add.at(left, ends, 1)
    return np.take(a, np.cumsum(left)[:total], axis=axis)


def insert(arr: Array, obj: Any, values: Any, axis: Any = None) -> Array:
    """Values put before known places, which are counted in the array as it was."""
    x = np.ravel(arr) if axis is None else np.moveaxis(np.asarray(arr), axis, 0)
    n = x.shape[0]
    if isinstance(obj, int):
        at = obj + n if obj < 0 else obj
        if at < 0 or at > n:
            along = 0 if axis is None else axis
            raise IndexError(f"index {obj} is out of bounds for axis {along} with size {n}")
        given = np.asarray(values, x.dtype)
        if axis is None or x.ndim == 1:
            new = given.reshape(-1)
        elif given.ndim == x.ndim:
            new = np.moveaxis(given, axis, 0)
        else:
            new = np.broadcast_to(given, x.shape[1:])[None]
        joined = np.concatenate([x[:at], new, x[at:]])
        return joined if axis is None else np.moveaxis(joined, 0, axis)
    if isinstance(obj, slice):
        places = np.arange(n)[obj]
    elif np.asarray(obj).dtype.kind == "b":
        places = np.flatnonzero(obj)
    else:
        places = np.asarray(obj)
    places = np.where(places < 0, places + n, places)
    count = places.shape[0]
    order = np.argsort(places)
    targets = np.zeros(count, dtype=np.int64)
    targets[order] = places[order] + np.arange(count)
    kept = np.ones(n + count, dtype=bool)
    kept[targets] = False
    result = np.zeros((n + count, *x.shape[1:]), dtype=x.dtype)
    given = np.asarray(values, x.dtype)
    if axis is not None and x.ndim > 1:  # as many as places along the axis, or the same for all
        shape = np.moveaxis(result[:count], 0, axis).shape
        given = np.moveaxis(np.broadcast_to(given, shape), axis, 0)
    result[targets] = given
    result[np.flatnonzero(kept)] = x
    return result if axis is None else np.moveaxis(result, 0, axis)


def delete(arr: Array, obj: Any, axis: Any = None) -> Array:
    """What is left without the elements at some indices, of a slice or of a mask."""
    x = np.ravel(arr) if axis is None else np.moveaxis(np.asarray(arr), axis, 0)
    n = x.shape[0]
    if isinstance(obj, int):
        at = obj + n if obj < 0 else obj
        if at < 0 or at >= n:
            raise IndexError(
                f"index {obj} is out of bounds for axis {axis or 0} with size {n}"
            )
        left = np.concatenate([x[:at], x[at + 1 :]])
    else:
        kept = np.ones(n, dtype=bool)
        if isinstance(obj, slice):
            kept[obj] = False
        else:
            places = np.asarray(obj)
            kept[places.astype(np.int64) if places.size == 0 else places] = False
        left = x[kept]
    return left if axis is None else np.moveaxis(left, 0, axis)


def in_turn(values: Array, places: Array) -> Array:
    """As many values, in turn, as there are places; of no values what is there."""
    return resize(values, places.shape[0]) if values.size > 0 else places.astype(values.dtype)


def resize(a: Array, new_shape: Any) -> Array:
    """The elements in C order, repeated until the new shape is full."""
    shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    size = 1
    for extent in shape:
        size = size * extent
    flat = np.ravel(a)
    if flat.shape[0] == 0:
        return np.zeros(shape, dtype=flat.dtype)
    if size % flat.shape[0] == 0:
        return np.tile(flat, size // flat.shape[0]).reshape(shape)
    found = np.empty(size, dtype=flat.dtype)
    done = min(flat.shape[0], size)
    found[:done] = flat[:done]
    while done < size:  # twice as many each time: few steps, however short the array is
        count = min(done, size - done)
        found[done : done + count] = found[:count]
        done += count
    return found.reshape(shape)


def trim_zeros(filt: Array, trim: str = "fb", axis: Any = None) -> Array:
    """An array without the slices at the ends of its axes that have nothing but zeros."""
    x = np.asarray(filt)
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for k in list(axes):
        others = tuple([j for j in range(x.ndim) if j != k % x.ndim])
        nothing = np.all(x == 0, axis=others)
        n = nothing.shape[0]
        first, last = 0, n
        if "f" in trim or "F" in trim:
            while first < n and nothing[first]:
                first += 1
        if "b" in trim or "B" in trim:
            while last > first and nothing[last - 1]:
                last -= 1
        x = np.moveaxis(np.moveaxis(x, k, 0)[first:last], 0, k)
    return x
