"""Functions of the user applied to vectors along an axis, over axes, and to elements.

In and out: as NumPy's functions of these names; `vectorized`, `vectorized_as` and `vectorized_over`
are what `np.vectorize(f)` calls.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any

__all__ = ["apply_along_axis", "apply_over_axes"]


#: functions that do along an axis what they do to a vector
_ALONG_AXES = (
    np.sort, np.argsort, np.cumsum, np.cumprod, np.sum, np.prod, np.mean, np.std, np.var, np.max,
    np.min, np.ptp, np.median, np.argmax, np.argmin, np.any, np.all,
)


def apply_along_axis(func1d: Any, axis: int, arr: Array, *args: Any, **kwargs: Any) -> Array:
    """A function of vectors applied to each vector along an axis."""
    x = np.asarray(arr)
    if func1d in _ALONG_AXES and len(args) == 0 and x.ndim > 1 and x.size > 0:
        return func1d(x, axis=axis, **kwargs)
    moved = np.moveaxis(x, axis, -1)
    at = axis % x.ndim
    lanes = moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])
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
        return tuple([out.reshape(shape) for out in found])
    single = np.zeros(count, dtype=np.asarray(first).dtype)
    if single.dtype.kind == "f" and isinstance(first, (int, np.integer, np.bool_)):
        raise TypeError(_ONE_KIND)  # only a program has one array for both
    for k in range(count):
        single[k] = function(*[a[k].item() for a in flat], **keywords)
    return single.reshape(shape)


def of_elements(function: Any, *args: Array) -> Any:
    """What a ufunc that numba makes of a function gives: of numbers a number."""
    return vectorized(function, *args)[()]


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
        return single.reshape(shape)
    found = [np.zeros(count, dtype=one) for one in otypes]
    for k in range(count):
        parts = function(*[a[k].item() for a in flat], **keywords)
        for out, part in zip(found, parts, strict=True):
            out[k] = part
    return tuple([out.reshape(shape) for out in found])


def vectorized_over(
    inputs: Any, outputs: Any, otypes: Any, function: Any, *args: Array
) -> Any:
    """What np.vectorize(function, signature=...) does: a call for each of the broadcast arguments'
    parts, which have the axes that the signature names, and the results side by side.

    inputs, outputs: the names of the axes of each. otypes: types of the results, or None.
    """
    if len(args) != len(inputs):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(inputs)}, got {len(args)}"
        )
    arrays = [np.asarray(a) for a in args]
    sizes: dict[str, Any] = {}
    for a, names in list(zip(arrays, inputs, strict=True)):
        if a.ndim < len(names):
            raise ValueError(
                f"{a.ndim}-dimensional argument does not have enough dimensions for all core "
                f"dimensions {names}"
            )
        for name, size in list(zip(names, a.shape[a.ndim - len(names) :], strict=True)):
            if name in sizes and sizes[name] != size:
                raise ValueError(
                    f"inconsistent size for core dimension '{name}': {size} vs {sizes[name]}"
                )
            sizes[name] = size
    ranks = [a.ndim - len(names) for a, names in list(zip(arrays, inputs, strict=True))]
    pairs = list(zip(arrays, ranks, strict=True))
    shape = np.broadcast_shapes(*[a.shape[:rank] for a, rank in pairs])
    count = math.prod(shape)
    if count == 0:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    flat = [
        np.broadcast_to(a, shape + a.shape[rank:]).reshape((count, *a.shape[rank:]))
        for a, rank in pairs
    ]
    first = function(*[a[0] for a in flat])
    parts = first if isinstance(first, tuple) else (first,)
    if len(parts) != len(outputs):
        raise ValueError(
            f"wrong number of outputs from pyfunc: expected {len(outputs)}, got {len(parts)}"
        )
    dtypes = [np.asarray(part).dtype for part in parts] if otypes is None else otypes
    found = [
        np.zeros((count, *np.shape(part)), dtype=dtype)
        for part, dtype in list(zip(parts, dtypes, strict=True))
    ]
    for k in range(count):
        results = function(*[a[k] for a in flat])
        for out, part in zip(
            found, results if isinstance(results, tuple) else (results,), strict=True
        ):
            out[k] = part
    whole = tuple([out.reshape(shape + out.shape[1:]) for out in found])
    return whole[0] if len(outputs) == 1 else whole
