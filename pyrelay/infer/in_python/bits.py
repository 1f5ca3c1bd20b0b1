"""NumPy's functions of the bits of bytes, in plain Python.

In and out: what the NumPy function of the same name takes and gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

__all__ = ["packbits", "unpackbits"]


def packbits(a: Array, /, axis: Any = None, bitorder: str = "big") -> Array:
    """Eight truths in each byte, along an axis; those that are missing in the last are 0."""
    x = np.asarray(a)
    if x.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    lines = np.ravel(x) if axis is None else np.moveaxis(x, axis, -1)
    size = lines.shape[-1]
    count = (size + 7) // 8
    whole = lines != 0
    if size % 8 != 0:
        padded = np.zeros((*lines.shape[:-1], 8 * count), dtype=bool)
        padded[..., :size] = whole
        whole = padded
    groups = whole.reshape((*lines.shape[:-1], count, 8))
    # a sum of what each of them is worth, which goes through vectors
    worth = np.where(groups, np.uint8(1) << _shifts(bitorder), np.uint8(0))
    found: Array = np.sum(worth, axis=-1, dtype=np.uint8)
    return found if axis is None else np.moveaxis(found, -1, axis)


def unpackbits(
    a: Array, /, axis: Any = None, count: Any = None, bitorder: str = "big"
) -> Array:
    """The bits of each byte, along an axis: the first `count`, or all but the last -`count`."""
    x = np.asarray(a)
    if x.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    lines = np.ravel(x) if axis is None else np.moveaxis(x, axis, -1)
    size = 8 * lines.shape[-1]
    bits = (lines[..., None] >> _shifts(bitorder)) & np.uint8(1)
    found = bits.reshape((*lines.shape[:-1], size))
    if count is not None:
        found = _cut(found, size, count)
    return found if axis is None else np.moveaxis(found, -1, axis)


def _cut(bits: Array, size: int, count: int) -> Array:
    if count < 0:
        if -count > size:
            raise ValueError("-count larger than number of elements")
        return bits[..., : size + count]
    if count <= size:
        return bits[..., :count]
    found = np.zeros((*bits.shape[:-1], count), dtype=np.uint8)
    found[..., :size] = bits
    return found


def _shifts(bitorder: str) -> Array:
    """How far the bits of a byte are from its lowest, in their order."""
    if bitorder != "big" and bitorder != "little":
        raise ValueError("'order' must be either 'little' or 'big'")
    upwards = np.arange(8).astype(np.uint8)
    return upwards if bitorder == "little" else upwards[::-1]
