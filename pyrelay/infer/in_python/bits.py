"""NumPy's functions of the bits of bytes, in plain Python.

In and out: what the NumPy function of the same name takes and gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python.arrangement import normalised_axis

Array = Any

__all__ = ["packbits", "unpackbits"]


def packbits(a: Array, /, axis: Any = None, bitorder: str = "big") -> Array:
    """Eight truths in each byte, along an axis; those that are missing in the last are 0."""
    x = np.asarray(a)
    if x.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    lines = np.ravel(x) if axis is None else x
    place = normalised_axis(0 if axis is None else axis, lines.ndim)
    before, size, behind = lines.shape[:place], lines.shape[place], lines.shape[place + 1 :]
    count = (size + 7) // 8
    whole = lines != 0
    if size % 8 != 0:
        padded = np.zeros((*before, 8 * count, *behind), dtype=bool)
        padded[(slice(None),) * place + (slice(size),)] = whole
        whole = padded
    groups = whole.reshape((*before, count, 8, *behind))
    # a sum of what each of them is worth, which goes through vectors
    worth = (np.uint8(1) << _shifts(bitorder)).reshape((8,) + (1,) * len(behind))
    found: Array = np.sum(np.where(groups, worth, np.uint8(0)), axis=place + 1, dtype=np.uint8)
    return found


def unpackbits(
    a: Array, /, axis: Any = None, count: Any = None, bitorder: str = "big"
) -> Array:
    """The bits of each byte, along an axis: the first `count`, or all but the last -`count`."""
    x = np.asarray(a)
    if x.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    lines = np.ravel(x) if axis is None else x
    place = normalised_axis(0 if axis is None else axis, lines.ndim)
    before, size, behind = lines.shape[:place], 8 * lines.shape[place], lines.shape[place + 1 :]
    shifts = _shifts(bitorder).reshape((8,) + (1,) * len(behind))
    bits = (np.expand_dims(lines, place + 1) >> shifts) & np.uint8(1)
    found = bits.reshape((*before, size, *behind))
    return found if count is None else _cut(found, place, count)


def _cut(bits: Array, place: int, count: int) -> Array:
    size, part = bits.shape[place], (slice(None),) * place
    if count < 0:
        if -count > size:
            raise ValueError("-count larger than number of elements")
        return bits[(*part, slice(size + count))]
    if count <= size:
        return bits[(*part, slice(count))]
    found = np.zeros((*bits.shape[:place], count, *bits.shape[place + 1 :]), dtype=np.uint8)
    found[(*part, slice(size))] = bits
    return found


def _shifts(bitorder: str) -> Array:
    """How far the bits of a byte are from its lowest, in their order."""
    if bitorder != "big" and bitorder != "little":
        raise ValueError("'order' must be either 'little' or 'big'")
    upwards = np.arange(8).astype(np.uint8)
    return upwards if bitorder == "little" else upwards[::-1]
