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
    axes: Any = None,
) -> Array:
    """np.pad. What is put at the ends of an axis is made of each piece that lies behind one
    another in the axes before; all pieces are joined at the end, so that none is copied twice."""
    x = np.asarray(array)
    widths = _pairs(pad_width, x.ndim)
    lengths = [None] * x.ndim if stat_length is None else _pairs(stat_length, x.ndim)
    values = _pairs(end_values if mode == "linear_ramp" else constant_values, x.ndim)
    padded = range(x.ndim) if axes is None else axes  # else widths are known to be 0
    for axis in padded:
        before, after = widths[axis]
        if before < 0 or after < 0:
            raise ValueError("index can't contain negative values")
        if mode not in ("constant", "empty") and x.shape[axis] == 0 and (before or after):
            raise ValueError(
                f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
            )
    if len(padded) == 0:
        return x.copy()
    pieces = [x]
    for axis in padded:
        before, after = widths[axis]
        parts = []
        for piece in pieces:
            head, tail = _ends(
                np.moveaxis(piece, axis, 0), before, after, mode, values[axis], lengths[axis],
                reflect_type,
            )
            parts += [np.moveaxis(head, 0, axis), piece, np.moveaxis(tail, 0, axis)]
        pieces = parts
    for axis in padded[::-1]:
        pieces = [
            np.concatenate(pieces[at : at + 3], axis=axis) for at in range(0, len(pieces), 3)
        ]
    return pieces[0]


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


def _ends(
    x: Array, before: Any, after: Any, mode: str, values: Any, stat_length: Any, reflect_type: str
) -> Any:
    """What goes in front of the first axis, and behind it."""
    n = x.shape[0]
    if mode == "empty":
        return np.empty((before, *x.shape[1:]), x.dtype), np.empty((after, *x.shape[1:]), x.dtype)
    if mode == "constant":
        head = np.full((before, *x.shape[1:]), values[0], dtype=x.dtype)
        return head, np.full((after, *x.shape[1:]), values[1], dtype=x.dtype)
    if mode == "edge":
        return _repeated(x[:1], before), _repeated(x[-1:], after)
    if mode == "linear_ramp":
        head = np.linspace(values[0], x[0], before, endpoint=False)
        tail = np.linspace(values[1], x[-1], after, endpoint=False)[::-1]
        return head.astype(x.dtype), tail.astype(x.dtype)
    if mode in ("mean", "maximum", "minimum", "median"):
        first, last = (n, n) if stat_length is None else stat_length
        if (first < 1 or last < 1) and mode in ("maximum", "minimum"):
            raise ValueError("stat_length of 0 yields no value for padding")
        head, tail = _statistic(x[:first], mode), _statistic(x[max(n - last, 0) :], mode)
        return _repeated(head, before), _repeated(tail, after)
    if mode not in ("wrap", "reflect", "symmetric"):
        raise ValueError(f"mode '{mode}' is not supported")
    once = 1 if mode == "reflect" else 0  # elements at the ends that do not stand twice
    near = max(before, after) <= n - once
    if reflect_type == "odd" and mode != "wrap" and not near:
        refuse("odd reflections are compiled for less than the axis has")
    if not near:
        return _folded(x, np.arange(-before, 0), mode), _folded(x, np.arange(n, n + after), mode)
    if mode == "wrap":
        return x[n - before :], x[:after]
    head, tail = x[once : before + once][::-1], x[n - once - after : n - once][::-1]
    if reflect_type == "odd":
        return 2 * x[0] - head, 2 * x[-1] - tail
    return head, tail


def _repeated(one: Array, count: Any) -> Array:
    """The only element of the first axis, so many times."""
    return np.broadcast_to(one, (count, *one.shape[1:]))


def _folded(x: Array, places: Any, mode: str) -> Array:
    """What stands at places outside of the first axis."""
    n = x.shape[0]
    if mode == "wrap":
        return np.take(x, places % n, axis=0)
    if mode == "symmetric":
        folded = places % (2 * n)
        return np.take(x, np.where(folded < n, folded, 2 * n - 1 - folded), axis=0)
    period = max(2 * n - 2, 1)
    folded = places % period
    return np.take(x, np.where(folded < n, folded, period - folded), axis=0)


def _statistic(x: Array, mode: str) -> Array:
    """What stands for all elements of the first axis, in an axis of one."""
    if mode == "maximum":
        return np.max(x, axis=0, keepdims=True)
    if mode == "minimum":
        return np.min(x, axis=0, keepdims=True)
    middle = np.mean(x, axis=0) if mode == "mean" else np.median(x, axis=0)
    found = np.round(middle) if x.dtype.kind in "iu" else middle
    return np.reshape(found, (1, *x.shape[1:])).astype(x.dtype)
