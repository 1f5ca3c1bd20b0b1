"""How the elements of arguments lie in memory.

In: an array of NumPy's or of a GPU's. Out: its axes in the order in which they lie, and whether
there are gaps. Calls ask this of each of their arrays.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from pyrelay.infer.arrays.device_arrays import DeviceArray

Layout = tuple[tuple[int, ...], tuple[bool, ...]]
"""Axes from the outermost in memory to the innermost; for each whether its stride is the way
through the next one (of the last: whether its elements lie one after the other)."""

_C_CONTIGUOUS, _F_CONTIGUOUS = 1, 2
"""NumPy's flags."""


def layout_of(array: Any) -> Layout | None:
    """How an argument lies in memory; None if that is contiguous, its last axis fastest."""
    if isinstance(array, DeviceArray):
        if array.contiguous:
            return None
        strides = array.strides
        assert strides is not None
    elif array.flags.c_contiguous:
        return None
    else:
        strides = array.strides
    extents, rank = array.shape, array.ndim
    order = sorted(range(rank), key=lambda k: -abs(strides[k]) if extents[k] > 1 else 0)
    long = [k for k in order if extents[k] > 1]
    through = dict.fromkeys(range(rank), True)
    for outer, inner in itertools.pairwise(long):
        through[outer] = strides[outer] == strides[inner] * extents[inner]
    through[long[-1]] = strides[long[-1]] == array.dtype.itemsize
    return tuple(order), tuple(through[k] for k in order)


def turns(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    """The axes of an array without gaps from the outermost in memory to the innermost; nothing for
    one whose last axis is fastest, and one with gaps."""
    flags = array.flags.num
    if flags & _C_CONTIGUOUS or array.ndim < 2:
        return ()
    if flags & _F_CONTIGUOUS and 1 not in array.shape:
        return tuple(range(array.ndim - 1, -1, -1))
    outer = (strides := array.strides).index(max(strides))
    if array.ndim == 2 or strides[outer] * array.shape[outer] != array.nbytes:
        return ()  # told soon, as calls ask it of each array with gaps
    layout = layout_of(array)
    return layout[0] if layout is not None and all(layout[1]) else ()
