"""The order of complex numbers as NumPy has it: by the real parts, then by the imaginary ones.

In: complex arrays. Out: what np.argmax and np.max of the last axis give, np.maximum, and those of
the least. A number with a part that is NaN comes before all others, the first of several.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def _places(z: Array) -> Array:
    """Where the largest number of each line is, as lines of one."""
    broken = np.isnan(z)
    real = np.where(broken, -np.inf, z.real)
    among = (real == np.max(real, axis=-1, keepdims=True)) & ~broken
    imag = np.where(among, z.imag, -np.inf)
    best = among & (imag == np.max(imag, axis=-1, keepdims=True))
    there = np.where(np.any(broken, axis=-1, keepdims=True), broken, best)
    return np.argmax(there, axis=-1, keepdims=True)


def argmax(z: Array) -> Array:
    """Where the largest number of each line is."""
    return _places(z)[..., 0]


def argmin(z: Array) -> Array:
    """Where the least number of each line is."""
    return argmax(_negative(z))


def _negative(z: Array) -> Array:
    """The same line in the other order; NaN stays first."""
    return np.where(np.isnan(z), z, -z)


def largest(z: Array) -> Array:
    """The largest number of each line."""
    return np.take_along_axis(z, _places(z), -1)[..., 0]


def least(z: Array) -> Array:
    """The least number of each line."""
    return np.take_along_axis(z, _places(_negative(z)), -1)[..., 0]


def maximum(x: Array, y: Array) -> Array:
    """The larger of two numbers; the first of two that are equal."""
    kept = (x.real > y.real) | ((x.real == y.real) & (x.imag >= y.imag))
    return np.where(np.isnan(x) | (kept & ~np.isnan(y)), x, y)


def minimum(x: Array, y: Array) -> Array:
    """The lesser of two numbers; the first of two that are equal."""
    kept = (x.real < y.real) | ((x.real == y.real) & (x.imag <= y.imag))
    return np.where(np.isnan(x) | (kept & ~np.isnan(y)), x, y)


def clip(x: Array, low: Array, high: Array) -> Array:
    """The number, or the bound that it is beyond."""
    return minimum(maximum(x, low), high)
