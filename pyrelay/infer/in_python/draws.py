"""What draws of all generators share: arrays of them, and the checks of their parameters.

In: a function that draws one number, the state of a generator, which it changes in place, and its
parameters. Out: arrays; or NumPy's errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

#: By dtype: how far a sum of probabilities may be from 1.
_TOLERANCE = {
    kind: np.sqrt(np.finfo(kind).eps).item() for kind in (np.float16, np.float32, np.float64)
}


def many(
    draw: Any, state: tuple[Array, ...], shape: tuple[int, ...], kind: Any, parameters: Any
) -> Array:
    """An array of draws, row by row."""
    found = np.empty(shape, kind)
    flat = found.reshape(-1)
    for k in range(flat.shape[0]):
        flat[k] = draw(*state, *parameters)
    return found


def check_scale(scale: Any) -> None:
    """Raise NumPy's error for a scale below 0."""
    if np.any(np.less(scale, 0)):
        raise ValueError("scale < 0")


def running_sums(p: Any, count: int, legacy: bool) -> Array:
    """The sums, up to each of `count` things, of the probabilities to choose it.

    Raises ValueError in the words of Generator, or of RandomState.
    """
    tolerance = _TOLERANCE[np.float64]
    if isinstance(p, np.ndarray) and p.dtype in (np.float16, np.float32):
        tolerance = _TOLERANCE[p.dtype.type]
    p = np.asarray(p, dtype=np.float64)
    if p.ndim != 1:
        raise ValueError("'p' must be 1-dimensional" if legacy else "p must be 1-dimensional")
    if p.size != count:
        raise ValueError(
            "'a' and 'p' must have same size" if legacy else "a and p must have same size"
        )
    total = np.sum(p)
    start = "probabilities" if legacy else "Probabilities"
    if np.isnan(total):
        raise ValueError(start + " contain NaN")
    if np.any(p < 0):
        raise ValueError(start + " are not non-negative")
    if abs(total - 1.0) > tolerance:
        more = "" if legacy else ". See Notes section of docstring for more information."
        raise ValueError(start + " do not sum to 1" + more)
    sums = np.cumsum(p)
    return sums / sums[-1]
