"""Pooling of images: extremes and means of windows, which share nothing among channels.

Images are [batch, channels, *extents], or [batch, *extents, channels] if `channels_last`; windows,
strides and paddings are one number for all extents or one each. Pooling is done along one extent
after the other. The derivative of a maximum is shared by equal elements of a window.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Sizes = int | tuple[int, ...]


def _extents(x: Array, channels_last: bool) -> tuple[int, ...]:
    """The axes that are pooled."""
    return tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))


def _each(value: Sizes, count: int) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,) * count


def _pooled(x: Array, axis: int, window: int, stride: int, combine: Callable[..., Any]) -> Array:
    """What `combine` makes of the elements of each window along an axis, one after the other.

    The first elements of all windows are a slice of the axis, and so are the second ones. Those of
    small windows are one expression, which is one kernel.
    """
    size = x.shape[axis]
    if size < window:
        raise ValueError("the window reaches beyond the image")
    reach = (size - window) // stride * stride + 1
    before = (slice(None),) * axis
    result = x[(*before, slice(0, reach, stride))]
    for k in (1, 2, 3, 4, 5, 6, 7):
        if k < window:
            result = combine(result, x[(*before, slice(k, k + reach, stride))])
    if window > 8:
        for k in range(8, window):
            result = combine(result, x[(*before, slice(k, k + reach, stride))])
    return result


def _padded(x: Array, axis: int, amount: int, value: float) -> Array:
    if amount == 0:
        return x
    widths = [(0, 0)] * x.ndim
    widths[axis] = (amount, amount)
    return np.pad(x, widths, constant_values=value)


def max_pool(
    x: Array, window: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    *, channels_last: bool = False,
) -> Array:
    """The greatest element of each window; `stride` is the window by default.

    Padding counts as -inf. Raises ValueError where a window is larger than the padded image.
    """
    axes = _extents(x, channels_last)
    sizes, paddings = _each(window, len(axes)), _each(padding, len(axes))
    steps = sizes if stride is None else _each(stride, len(axes))
    for axis, size, step, amount in list(zip(axes, sizes, steps, paddings, strict=True)):
        x = _padded(x, axis, amount, -math.inf)
        x = _pooled(x, axis, size, step, np.maximum)
    return x


def avg_pool(
    x: Array, window: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    *, count_include_pad: bool = True, channels_last: bool = False,
) -> Array:
    """The mean of each window; the zeros of the padding count if `count_include_pad`."""
    axes = _extents(x, channels_last)
    sizes, paddings = _each(window, len(axes)), _each(padding, len(axes))
    steps = sizes if stride is None else _each(stride, len(axes))
    for axis, size, step, amount in list(zip(axes, sizes, steps, paddings, strict=True)):
        total = _pooled(_padded(x, axis, amount, 0.0), axis, size, step, np.add)
        if count_include_pad or amount == 0:
            x = total / size
        else:
            ones = _padded(np.ones(x.shape[axis], dtype=x.dtype), 0, amount, 0.0)
            count = _pooled(ones, 0, size, step, np.add)
            x = total / np.reshape(count, (-1, *(1,) * (x.ndim - 1 - axis)))
    return x


def _bins(x: Array, axis: int, count: int, empty: float) -> Any:
    """The axis as two: bins of nearly equal size, and their elements; how many each bin has."""
    size = x.shape[axis]
    number = np.arange(count)
    starts = number * size // count
    ends = -(-(number + 1) * size // count)
    width = -(-size // count) + 1
    places = starts[:, None] + np.arange(width)
    inside = places < ends[:, None]
    taken = np.take(x, np.minimum(places, size - 1), axis=axis)
    mask = np.reshape(inside, (count, width, *(1,) * (x.ndim - 1 - axis)))
    return np.where(mask, taken, empty), ends - starts


def adaptive_avg_pool(x: Array, size: Sizes, *, channels_last: bool = False) -> Array:
    """The means of `size` bins along each extent, whatever that is."""
    axes = _extents(x, channels_last)
    for axis, count in list(zip(axes, _each(size, len(axes)), strict=True)):
        parts, counts = _bins(x, axis, count, 0.0)
        divisor = np.reshape(counts, (-1, *(1,) * (x.ndim - 1 - axis))).astype(x.dtype)
        x = np.sum(parts, axis=axis + 1) / divisor
    return x


def adaptive_max_pool(x: Array, size: Sizes, *, channels_last: bool = False) -> Array:
    """The greatest elements of `size` bins along each extent, whatever that is."""
    axes = _extents(x, channels_last)
    for axis, count in list(zip(axes, _each(size, len(axes)), strict=True)):
        parts, _ = _bins(x, axis, count, -math.inf)
        x = np.max(parts, axis=axis + 1)
    return x


def global_avg_pool(
    x: Array, *, keepdims: bool = False, channels_last: bool = False
) -> Array:
    """The mean of each channel: [batch, channels]."""
    return np.mean(x, axis=_extents(x, channels_last), keepdims=keepdims)


def global_max_pool(
    x: Array, *, keepdims: bool = False, channels_last: bool = False
) -> Array:
    """The greatest element of each channel: [batch, channels]."""
    return np.max(x, axis=_extents(x, channels_last), keepdims=keepdims)
