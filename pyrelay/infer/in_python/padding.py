"""np.pad in all its modes, in plain Python; one constant is the op `pad` instead (names/shape.py).

In: an array and widths, known while compiling or computed. Out: the array with more elements at its
ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse

Array = Any


def pad(
    array: Array, pad_width: Any, mode: str = "constant", constant_values: Any = 0,
    end_values: Any = 0, stat_length: Any = None, reflect_type: str = "even",
) -> Array:
    """np.pad; one axis is padded after the other."""
    x = np.asarray(array)
    widths = _pairs(pad_width, x.ndim)
    lengths = [None] * x.ndim if stat_length is None else _pairs(stat_length, x.ndim)
    values = _pairs(end_values if mode == "linear_ramp" else constant_values, x.ndim)
    for axis in range(x.ndim):
        before, after = widths[axis]
        if before < 0 or after < 0:
            raise ValueError("index can't contain negative values")
        if (before or after) and mode not in ("constant", "empty") and x.shape[axis] == 0:
            raise ValueError(
                f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
            )
        if (before or after) and mode == "edge":
            head, tail = _repeated(x, axis, 0, before), _repeated(x, axis, -1, after)
            x = np.concatenate([head, x, tail], axis=axis)
        elif before or after:
            x = _padded(x, axis, before, after, mode, values[axis], lengths[axis], reflect_type)
    return x


def _pairs(given: Any, rank: int) -> Any:
    """A pair for each axis of what np.pad takes: a number, a pair, or a pair for each axis."""
    if isinstance(given, dict):  # of some axes
        found = [(0, 0)] * rank
        for axis, width in given.items():
            found[axis] = width if isinstance(width, tuple) else (width, width)
        return found
    if not isinstance(given, (tuple, list)):
        return [(given, given)] * rank
    items = list(given)
    if not isinstance(items[0], (tuple, list)):
        if len(items) == 1:
            return [(items[0], items[0])] * rank
        return [(items[0], items[1])] * rank
    pairs = [(p[0], p[0]) if len(p) == 1 else (p[0], p[1]) for p in items]
    return pairs * rank if len(pairs) == 1 else pairs


def _repeated(x: Array, axis: int, place: int, count: int) -> Array:
    """What is at a place of an axis, so many times."""
    one = np.expand_dims(x[(slice(None),) * axis + (place,)], axis)
    return np.broadcast_to(one, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _joined(head: Array, x: Array, tail: Array, axis: int) -> Array:
    """An array between what has the same axis in front."""
    return np.concatenate([np.moveaxis(head, 0, axis), x, np.moveaxis(tail, 0, axis)], axis=axis)


def _padded(
    whole: Array, axis: int, before: int, after: int, mode: str, values: Any, stat_length: Any,
    reflect_type: str,
) -> Array:
    """One axis padded."""
    x = np.moveaxis(whole, axis, 0)
    n = x.shape[0]
    if mode == "constant":
        head = np.full((before, *x.shape[1:]), values[0], dtype=x.dtype)
        tail = np.full((after, *x.shape[1:]), values[1], dtype=x.dtype)
        return _joined(head, whole, tail, axis)
    if mode == "empty":
        return _padded(whole, axis, before, after, "constant", (0, 0), None, "even")
    if mode == "linear_ramp":
        head = np.linspace(values[0], x[0], before, endpoint=False)
        tail = np.linspace(values[1], x[-1], after, endpoint=False)[::-1]
        return _joined(head.astype(x.dtype), whole, tail.astype(x.dtype), axis)
    if mode in ("mean", "maximum", "minimum", "median"):
        first, last = (n, n) if stat_length is None else stat_length
        if (first < 1 or last < 1) and mode in ("maximum", "minimum"):
            raise ValueError("stat_length of 0 yields no value for padding")
        head = np.broadcast_to(_statistic(x[:first], mode), (before, *x.shape[1:]))
        tail = np.broadcast_to(_statistic(x[max(n - last, 0):], mode), (after, *x.shape[1:]))
        return _joined(head, whole, tail, axis)
    once = 1 if mode == "reflect" else 0  # elements at the ends that do not stand twice
    if mode in ("wrap", "reflect", "symmetric") and max(before, after) <= n - once:
        if mode == "wrap":
            return _joined(x[n - before :], whole, x[:after], axis)
        head, tail = x[once : before + once][::-1], x[n - once - after : n - once][::-1]
        if reflect_type == "odd":
            head, tail = 2 * x[0] - head, 2 * x[-1] - tail
        return _joined(head, whole, tail, axis)
    places = np.arange(-before, n + after)
    if mode == "wrap":
        return np.take(whole, places % n, axis=axis)
    if mode == "symmetric":
        folded = places % (2 * n)
        taken = np.take(whole, np.where(folded < n, folded, 2 * n - 1 - folded), axis=axis)
        turns = places // n
    elif mode == "reflect":
        period = max(2 * n - 2, 1)
        folded = places % period
        taken = np.take(whole, np.where(folded < n, folded, period - folded), axis=axis)
        turns = places // max(n - 1, 1)
    else:
        raise ValueError(f"mode '{mode}' is not supported")
    if reflect_type == "odd":
        if before >= n or after >= n:
            refuse("odd reflections are compiled for less than the axis has")
        column = (1,) * axis + (-1,) + (1,) * (x.ndim - axis - 1)
        first, last = np.expand_dims(x[0], axis), np.expand_dims(x[-1], axis)
        edge = np.where(turns.reshape(column) < 0, first, last)
        outside = (places < 0) | (places >= n)
        return np.where(outside.reshape(column), 2 * edge - taken, taken)
    return taken


def _statistic(x: Array, mode: str) -> Array:
    """What stands for all elements of the first axis, in an axis of one."""
    if mode == "maximum":
        return np.max(x, axis=0, keepdims=True)
    if mode == "minimum":
        return np.min(x, axis=0, keepdims=True)
    middle = np.mean(x, axis=0) if mode == "mean" else np.median(x, axis=0)
    found = np.round(middle) if x.dtype.kind in "iu" else middle
    return np.reshape(found, (1, *x.shape[1:])).astype(x.dtype)
