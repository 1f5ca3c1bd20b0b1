"""NumPy's objects that make arrays of what stands in brackets: `np.r_`, `np.c_`, grids.

In: the key, slices among it. Out: what NumPy's own object gives for it; where text is in it, that
object's own code says.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_as_text_says: Any = type(np.r_).__getitem__


def r_(key: Any) -> Any:
    """np.r_[key]: numbers, ranges and arrays behind each other."""
    if _has_text(key):
        return _as_text_says(np.r_, key)
    parts = [_part(item) for item in _items(key)]
    dtype = np.result_type(*[_kind(part) for part in parts])
    return np.concatenate([np.array(part, copy=None, ndmin=1, dtype=dtype) for part in parts])


def c_(key: Any) -> Any:
    """np.c_[key]: columns beside each other."""
    if _has_text(key):
        return _as_text_says(np.c_, key)
    parts = [_part(item) for item in _items(key)]
    dtype = np.result_type(*[_kind(part) for part in parts])
    return np.concatenate([_column(np.asarray(part, dtype=dtype)) for part in parts], axis=-1)


def s_(key: Any) -> Any:
    """np.s_[key]: the key."""
    return key


def index_exp(key: Any) -> Any:
    """np.index_exp[key]: the key, a tuple in any case."""
    return key if isinstance(key, tuple) else (key,)


def mgrid(key: Any) -> Any:
    """np.mgrid[key]: the places of a grid, an array for each axis."""
    if not isinstance(key, tuple):
        return _line(key)
    size = [_count(bounds) for bounds in key]
    return np.stack([np.broadcast_to(line, size) for line in ogrid(key)])


def ogrid(key: Any) -> Any:
    """np.ogrid[key]: the places along each axis."""
    if not isinstance(key, tuple):
        return _line(key)
    numbers: list[Any] = [0]
    for bounds in key:
        first, step = _begin(bounds)
        numbers += [first, bounds.stop, abs(step) if isinstance(step, complex) else step]
    dtype = np.result_type(*numbers)
    lines = []
    for k, bounds in enumerate(key):
        first, step = _begin(bounds)
        line = np.arange(_count(bounds), dtype=dtype) * _by(bounds, first, step) + first
        lines.append(line.astype(dtype).reshape([-1 if j == k else 1 for j in range(len(key))]))
    return tuple(lines)


def _items(key: Any) -> Any:
    return key if isinstance(key, tuple) else (key,)


def _has_text(key: Any) -> Any:
    """Whether text says how arrays are joined, which NumPy reads itself."""
    return any(isinstance(item, str) for item in _items(key))


def _part(item: Any) -> Any:
    """A range as an array; all else as it is."""
    if isinstance(item, slice):
        first, step = _begin(item)
        if isinstance(step, complex):
            return np.linspace(first, item.stop, int(abs(step)))
        return np.arange(first, item.stop, step)
    return item


def _kind(part: Any) -> Any:
    """What a part says of the dtype: a number of Python's little."""
    return part if isinstance(part, (bool, int, float, complex)) else np.asarray(part).dtype


def _column(part: Any) -> Any:
    """An array of no or one axis as a column."""
    return part.reshape(-1, 1) if part.ndim < 2 else part


def _begin(bounds: Any) -> Any:
    """The first place and the step of a slice."""
    return (
        0 if bounds.start is None else bounds.start, 1 if bounds.step is None else bounds.step
    )  # fmt: skip


def _count(bounds: Any) -> Any:
    """How many places a slice has: as many as the number times 1j that is its step."""
    first, step = _begin(bounds)
    if isinstance(step, complex):
        return int(abs(step))
    return math.ceil((bounds.stop - first) / step)


def _by(bounds: Any, first: Any, step: Any) -> Any:
    """From one place to the next."""
    if not isinstance(step, complex):
        return step
    count = int(abs(step))
    return (bounds.stop - first) / float(count - 1) if count != 1 else 1


def _line(bounds: Any) -> Any:
    """The places of one axis alone."""
    first, step = _begin(bounds)
    if not isinstance(step, complex):
        return np.arange(first, bounds.stop, step)
    dtype = np.result_type(first, bounds.stop, abs(step))
    return np.arange(0, int(abs(step)), 1, dtype=dtype) * _by(bounds, first, step) + first


_OBJECTS = (
    (np.r_, r_), (np.c_, c_), (np.mgrid, mgrid), (np.ogrid, ogrid), (np.s_, s_),
    (np.index_exp, index_exp),
)  # fmt: skip


def index_trick(value: Any) -> Any:
    """What stands for the brackets of one of these objects; None for all else."""
    return next((function for made, function in _OBJECTS if made is value), None)
