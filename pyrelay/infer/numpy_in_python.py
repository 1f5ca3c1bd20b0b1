"""NumPy functions written with simpler ones, in the Python that pyrelay compiles.

Each has the parameters and the meaning of NumPy's function of its name. `infer` interprets them in place
of NumPy's as it does any function of a program's, so they need no handler, and derive like it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def array_equal(a1: Array, a2: Array) -> Array:
    """np.array_equal."""
    x, y = np.asarray(a1), np.asarray(a2)
    if x.shape != y.shape:
        return False
    return bool(np.all(x == y))


def average(a: Array, axis: Any = None, weights: Array = None, keepdims: bool = False) -> Array:
    """np.average; weights have the shape of `a`, or one axis for an int `axis`."""
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    w = np.asarray(weights)
    if w.ndim < a.ndim:
        w = np.moveaxis(np.broadcast_to(w, (*np.moveaxis(a, axis, -1).shape,)), -1, axis)
    total = np.sum(w, axis=axis, keepdims=keepdims)
    return np.sum(a * w, axis=axis, keepdims=keepdims) / total


def column_stack(tup: Any) -> Array:
    """np.column_stack."""
    return np.concatenate([a[:, None] if a.ndim == 1 else a for a in tup], axis=1)


def cross(a: Array, b: Array) -> Array:
    """np.cross of vectors of three along the last axis."""
    first = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    second = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    third = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return np.stack((first, second, third), axis=-1)


def deg2rad(x: Array) -> Array:
    """np.deg2rad."""
    return x * (np.pi / 180.0)


def diff(a: Array, n: int = 1, axis: int = -1) -> Array:
    """np.diff."""
    last = np.moveaxis(a, axis, -1)
    for _ in range(n):
        last = last[..., 1:] - last[..., :-1]
    return np.moveaxis(last, -1, axis)


def heaviside(x1: Array, x2: Array) -> Array:
    """np.heaviside."""
    return np.where(x1 < 0, 0.0, np.where(x1 > 0, 1.0, np.where(x1 == 0, x2, x1)))


def kron(a: Array, b: Array) -> Array:
    """np.kron of two vectors or two matrices."""
    if a.ndim == 1:
        return np.reshape(a[:, None] * b[None, :], (a.shape[0] * b.shape[0],))
    blocks = a[:, None, :, None] * b[None, :, None, :]
    return np.reshape(blocks, (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]))


def meshgrid(*xi: Array, indexing: str = "xy") -> Any:
    """np.meshgrid of vectors."""
    count = len(xi)
    grids = []
    shape = tuple([len(x) for x in xi])
    for k, x in enumerate(xi):
        ones = tuple([len(x) if j == k else 1 for j in range(count)])
        grid = np.broadcast_to(np.reshape(x, ones), shape)
        grids.append(np.swapaxes(grid, 0, 1) if indexing == "xy" and count > 1 else grid)
    return tuple(grids)


def nan_to_num(x: Array, copy: bool = True, nan: float = 0.0) -> Array:
    """np.nan_to_num of NaNs; infinities become the largest numbers of the dtype."""
    largest = np.finfo(x.dtype).max
    return np.clip(np.where(np.isnan(x), nan, x), -largest, largest)


def nanmax(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """np.nanmax."""
    return np.max(np.where(np.isnan(a), -np.inf, a), axis=axis, keepdims=keepdims)


def nanmin(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """np.nanmin."""
    return np.min(np.where(np.isnan(a), np.inf, a), axis=axis, keepdims=keepdims)


def nansum(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """np.nansum."""
    return np.sum(np.where(np.isnan(a), 0, a), axis=axis, keepdims=keepdims)


def nanmean(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """np.nanmean."""
    count = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims)
    return nansum(a, axis, keepdims) / count.astype(a.dtype)


def polyval(p: Array, x: Array) -> Array:
    """np.polyval, by Horner's rule."""
    y = 0 * x
    for coefficient in p:
        y = y * x + coefficient
    return y


def ptp(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """np.ptp."""
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def rad2deg(x: Array) -> Array:
    """np.rad2deg."""
    return x * (180.0 / np.pi)


def rot90(m: Array, k: int = 1) -> Array:
    """np.rot90 of the first two axes."""
    for _ in range(k % 4):
        m = np.flip(np.swapaxes(m, 0, 1), 0)
    return m


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    """np.select."""
    result = default
    for k in range(len(condlist) - 1, -1, -1):
        result = np.where(condlist[k], choicelist[k], result)
    return result


def sinc(x: Array) -> Array:
    """np.sinc."""
    y = np.pi * np.where(x == 0, 1.0e-20, x)
    return np.sin(y) / y


def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    """np.tensordot over the last `axes` axes of a and the first of b, or over the named ones."""
    if isinstance(axes, int):
        count = axes
    else:
        left, right = axes
        left = (left,) if isinstance(left, int) else tuple(left)
        right = (right,) if isinstance(right, int) else tuple(right)
        count = len(left)
        left = tuple([k % a.ndim for k in left])
        right = tuple([k % b.ndim for k in right])
        a = np.transpose(a, tuple([k for k in range(a.ndim) if k not in left]) + left)
        b = np.transpose(b, right + tuple([k for k in range(b.ndim) if k not in right]))
    kept, inner, rest = a.shape[: a.ndim - count], b.shape[:count], b.shape[count:]
    rows, size, columns = 1, 1, 1
    for extent in kept:
        rows = rows * extent
    for extent in inner:
        size = size * extent
    for extent in rest:
        columns = columns * extent
    flat = np.reshape(a, (rows, size)) @ np.reshape(b, (size, columns))
    return np.sum(flat) if not kept and not rest else np.reshape(flat, kept + rest)


def trapezoid(y: Array, x: Array = None, dx: float = 1.0) -> Array:
    """np.trapezoid along the last axis."""
    steps = dx if x is None else x[..., 1:] - x[..., :-1]
    return np.sum(steps * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


#: NumPy's function -> the one that stands for it
SUBSTITUTES: dict[Any, Any] = {
    getattr(np, f.__name__): f
    for f in (
        array_equal, average, column_stack, cross, deg2rad, diff, heaviside, kron, meshgrid,
        nan_to_num, nanmax, nanmean, nanmin, nansum, polyval, ptp, rad2deg, rot90, select, sinc,
        tensordot, trapezoid,
    )
    if hasattr(np, f.__name__)
}
SUBSTITUTES[np.radians] = deg2rad
SUBSTITUTES[np.degrees] = rad2deg
