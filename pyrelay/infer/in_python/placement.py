"""NumPy's functions that read and write at given positions, in plain Python.

In and out: what the NumPy function of the same name takes and gives; `applied_at` is the method
`at` of ufuncs. Positions are checked as all indices are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

__all__ = ["ix_", "put", "put_along_axis", "take_along_axis"]


def applied_at(ufunc: Any, a: Array, indices: Any, b: Any = None) -> None:
    """a[indices] = ufunc(a[indices], b), one position after the other, so that repeats count."""
    places = np.arange(a.size).reshape(a.shape)[indices]
    where = np.ravel(places)
    flat = a.flat  # which is no copy however the array lies in memory
    if b is None:
        for k in range(where.shape[0]):
            flat[where[k]] = ufunc(flat[where[k]]).astype(a.dtype)
    else:
        given = np.ravel(np.broadcast_to(b, np.shape(places)))
        for k in range(where.shape[0]):
            flat[where[k]] = ufunc(flat[where[k]], given[k]).astype(a.dtype)


def subtracted_at(a: Array, indices: Any, b: Any) -> None:
    """np.subtract.at: what np.add.at does with the opposite, where nothing is cut off."""
    by = np.asarray(b)
    if np.result_type(a, by) == a.dtype:
        np.add.at(a, indices, -by)
    else:
        applied_at(np.subtract, a, indices, by)


def ix_(*args: Any) -> Any:
    """Indices of the rows, columns, ... given, which broadcast to those of all combinations."""
    grids = []
    for axis, given in enumerate(args):
        line = np.asarray(given)
        if line.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if line.dtype == np.bool_:
            line = np.nonzero(line)[0]
        shape = [1] * len(args)
        shape[axis] = line.shape[0]
        grids.append(np.reshape(line, shape))
    return tuple(grids)


def _along(shape: Any, indices: Array, axis: int) -> Any:
    """The key that has `indices` in one axis and in each other one its own positions."""
    rank = len(shape)
    if indices.ndim != rank:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    key = []
    for k in range(rank):
        if k == axis % rank:
            key.append(indices)
        else:
            grid = [1] * rank
            grid[k] = shape[k]
            key.append(np.reshape(np.arange(shape[k]), grid))
    return tuple(key)


def take_along_axis(arr: Array, indices: Array, axis: Any = -1) -> Array:
    """Along an axis the elements at positions that differ from line to line."""
    if axis is None:
        return np.ravel(arr)[_along((arr.size,), indices, 0)]
    return arr[_along(arr.shape, indices, axis)]


def put_along_axis(arr: Array, indices: Array, values: Any, axis: Any) -> None:
    """Along an axis, writes at positions that differ from line to line."""
    if axis is None:
        arr.flat[_along((arr.size,), indices, 0)] = values
    else:
        arr[_along(arr.shape, indices, axis)] = values


def put(a: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    """Writes at positions of the flattened array; values are repeated if there are too few."""
    where, given = np.ravel(np.asarray(ind)), np.ravel(np.asarray(v, a.dtype))
    if mode == "wrap":
        where = where % a.size
    elif mode == "clip":
        where = np.clip(where, 0, a.size - 1)
    a.flat[where] = given[np.arange(where.shape[0]) % given.shape[0]]


def refilled(flat: Array, v: Array) -> None:
    """The assignment a.flat = v: values are repeated if there are too few."""
    given = np.ravel(v)
    flat[:] = given[np.arange(flat.shape[0]) % given.shape[0]]


def spread(places: Array, count: Any, owns: Any) -> Array:
    """One place so many times; others are as many already.

    Raises IndexError if they are not; `owns` says which of the index arrays are such places.
    """
    many = places.shape[0]
    if many == 1:
        return np.full(count, places[0])
    if many != count:
        shapes = " ".join([f"({many},)" if own else f"({count},)" for own in owns])
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes "
            f"{shapes} "
        )
    return places + np.zeros(count, np.int64)
