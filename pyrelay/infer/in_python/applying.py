"""Functions of the user applied to vectors along an axis, over axes, and to elements.

In and out: as NumPy's functions of these names; `vectorized` is what `np.vectorize(f)` calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

__all__ = ["apply_along_axis", "apply_over_axes"]


def apply_along_axis(func1d: Any, axis: int, arr: Array, *args: Any, **kwargs: Any) -> Array:
    """A function of vectors applied to each vector along an axis."""
    x = np.asarray(arr)
    moved = np.moveaxis(x, axis, -1)
    at = axis % x.ndim
    lanes = moved.reshape(-1, moved.shape[-1])
    first = np.asarray(func1d(lanes[0], *args, **kwargs))
    found = np.zeros((lanes.shape[0], *first.shape), dtype=first.dtype)
    found[0] = first
    for k in range(1, lanes.shape[0]):
        found[k] = func1d(lanes[k], *args, **kwargs)
    whole = found.reshape(moved.shape[:-1] + first.shape)
    for k in range(first.ndim):
        whole = np.moveaxis(whole, x.ndim - 1 + k, at + k)
    return whole


def apply_over_axes(func: Any, a: Array, axes: Any) -> Array:
    """A reduction applied over several axes, which stay with extent 1."""
    x = np.asarray(a)
    for axis in [axes] if isinstance(axes, int) else list(axes):
        found = func(x, axis)
        x = found if np.ndim(found) == x.ndim else np.expand_dims(found, axis)
    return x


_ONE_KIND = (
    "np.vectorize takes the type of its results from the first, a whole number here, and others "
    "are floats: give it otypes=[float]"
)


def vectorized(function: Any, *args: Array, **keywords: Any) -> Any:
    """What np.vectorize(function) does: a call for each element of the broadcast arguments.

    Raises TypeError where NumPy would cut off what is behind the point of all results, as the first
    is a whole number by chance.
    """
    arrays = np.broadcast_arrays(*args)
    shape = arrays[0].shape
    flat = [a.reshape(-1) for a in arrays]
    count = flat[0].shape[0]
    if count == 0:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    # A call with elements as they are says the types; the others are given Python's numbers.
    first = function(*[a[0] for a in flat], **keywords)
    if isinstance(first, tuple):
        found = [np.zeros(count, dtype=np.asarray(part).dtype) for part in first]
        for k in range(count):
            parts = function(*[a[k].item() for a in flat], **keywords)
            for out, part in zip(found, parts, strict=True):
                out[k] = part
        return tuple([out.reshape(shape)[()] for out in found])
    single = np.zeros(count, dtype=np.asarray(first).dtype)
    if single.dtype.kind == "f" and isinstance(first, (int, np.integer, np.bool_)):
        raise TypeError(_ONE_KIND)  # only a program has one array for both
    for k in range(count):
        single[k] = function(*[a[k].item() for a in flat], **keywords)
    return single.reshape(shape)[()]


def vectorized_as(otypes: Any, function: Any, *args: Array, **keywords: Any) -> Any:
    """What np.vectorize(function, otypes) does: elements of one type, or of as many as there are
    results."""
    arrays = np.broadcast_arrays(*args)
    shape = arrays[0].shape
    flat = [a.reshape(-1) for a in arrays]
    count = flat[0].shape[0]
    if len(otypes) == 1:
        single = np.zeros(count, dtype=otypes[0])
        for k in range(count):
            single[k] = function(*[a[k].item() for a in flat], **keywords)
        return single.reshape(shape)[()]
    found = [np.zeros(count, dtype=one) for one in otypes]
    for k in range(count):
        parts = function(*[a[k].item() for a in flat], **keywords)
        for out, part in zip(found, parts, strict=True):
            out[k] = part
    return tuple([out.reshape(shape)[()] for out in found])
