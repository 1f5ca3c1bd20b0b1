"""What draws of all generators share: arrays of them, checks of parameters, choices by weights.

In: a function that draws one number, the state of a generator, which it changes in place, and its
parameters. Out: arrays; or NumPy's errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

#: How far a sum of probabilities may be from 1: of 16, 32 and 64 bits. (Numbers, as a dict would be
#: an object that programs capture.)
_OF_HALVES, _OF_SINGLES, _OF_DOUBLES = (
    np.sqrt(np.finfo(kind).eps).item() for kind in (np.float16, np.float32, np.float64)
)


def many(
    draw: Any, state: tuple[Array, ...], shape: tuple[int, ...], kind: Any, parameters: Any
) -> Array:
    """An array of draws, row by row."""
    found = np.empty(shape, kind)
    flat = found.reshape(-1)
    for k in range(flat.shape[0]):
        flat[k] = draw(*state, *parameters)
    return found


def distributed(
    draw: Any, source: Any, state: tuple[Array, ...], shape: tuple[int, ...], kind: Any,
    parameters: Any,
) -> Array:
    """An array of draws, row by row, each of its own of the parameters that are arrays."""
    found = np.empty(shape, kind)
    flat = found.reshape(-1)
    lines = [p if np.ndim(p) == 0 else np.broadcast_to(p, shape).reshape(-1) for p in parameters]
    for k in range(flat.shape[0]):
        flat[k] = draw(source, state, *[p if np.ndim(p) == 0 else p[k] for p in lines])
    return found


def vectors(
    draw: Any, source: Any, state: tuple[Array, ...], shape: tuple[int, ...], kind: Any,
    parameters: Any,
) -> Array:
    """An array of draws of vectors."""
    found = np.empty(shape, kind)
    rows = found.reshape(-1, shape[-1])
    for k in range(rows.shape[0]):
        rows[k] = draw(source, state, *parameters)
    return found


# -- checks of parameters --------------------------------------------------------------------------


def check_scale(scale: Any) -> None:
    """Raise NumPy's error for a scale below 0."""
    if np.any(np.less(scale, 0)):
        raise ValueError("scale < 0")


def not_negative(value: Any, name: str) -> None:
    """Raise NumPy's error for a number below 0."""
    if np.any(np.less(value, 0)):
        raise ValueError(name + " < 0")


def positive(value: Any, name: str) -> None:
    """Raise NumPy's error for a number that is not above 0."""
    if np.any(np.less_equal(value, 0)):
        raise ValueError(name + " <= 0")


def probability(value: Any, name: str) -> None:
    """Raise NumPy's error for what is no probability."""
    if not np.all(np.logical_and(np.greater_equal(value, 0), np.less_equal(value, 1))):
        end = "is NaN" if np.ndim(value) == 0 else "contains NaNs"
        raise ValueError(f"{name} < 0, {name} > 1 or {name} {end}")


def some_probability(value: Any, name: str) -> None:
    """Raise NumPy's error for what is no probability above 0."""
    if not np.all(np.logical_and(np.greater(value, 0), np.less_equal(value, 1))):
        raise ValueError(f"{name} <= 0, {name} > 1 or {name} contains NaNs")


_MOST_EVENTS = 9.223372006484771e18  # ten deviations below the largest int


def rate(value: Any, name: str) -> None:
    """Raise NumPy's error for what is no rate of events."""
    if np.ndim(value) == 0:
        if not np.all(np.greater_equal(value, 0)):
            raise ValueError(name + " < 0 or " + name + " is NaN")
    elif np.any(np.less(value, 0)):
        raise ValueError(name + " < 0 or " + name + " contains NaNs")
    if not np.all(np.less_equal(value, _MOST_EVENTS)):
        raise ValueError(name + " value too large")


def triangle(left: Any, mode: Any, right: Any) -> None:
    """Raise NumPy's error for corners that are not in order, or all in one place."""
    if np.any(np.greater(left, mode)):
        raise ValueError("left > mode")
    if np.any(np.greater(mode, right)):
        raise ValueError("mode > right")
    if np.any(np.equal(left, right)):
        raise ValueError("left == right")


def chances(pvals: Array) -> None:
    """Raise NumPy's error for probabilities that do not add up to 1."""
    if not np.all(np.logical_and(np.greater_equal(pvals, 0), np.less_equal(pvals, 1))):
        raise ValueError("pvals < 0, pvals > 1 or pvals contains NaNs")
    total, lost = 0.0, 0.0  # (Kahan, Further Remarks on Reducing Truncation Errors, 1965)
    for k in range(pvals.shape[0] - 1):
        part = pvals[k] - lost
        after = total + part
        lost = (after - total) - part
        total = after
    if total > 1.0 + 1e-12:
        raise ValueError("sum(pvals[:-1]) > 1.0")


# -- choices ---------------------------------------------------------------------------------------


def check_sample(count: int, size: int, legacy: bool) -> None:
    """Raise the error of a choice of more things than there are."""
    if count <= 0 and size:
        how = "greater than 0" if legacy else "a positive integer"
        raise ValueError("a must be " + how + " unless no samples are taken")
    if size > count:
        how = "'replace=False'" if legacy else "replace is False"
        raise ValueError("Cannot take a larger sample than population when " + how)


def weighted_sample(
    uniform: Any, state: tuple[Array, ...], p: Any, count: int, size: int, legacy: bool
) -> Array:
    """Different places, i64[size], each drawn with its probability of those that are left."""
    running_sums(p, count, legacy)
    check_sample(count, size, legacy)
    left = np.array(p, dtype=np.float64)
    if np.count_nonzero(left > 0) < size:
        raise ValueError("Fewer non-zero entries in p than size")
    found = np.zeros(size, np.int64)
    done = 0
    while done < size:
        drawn = np.empty(size - done)
        for k in range(size - done):
            drawn[k] = uniform(*state)
        for k in range(done):
            left[found[k]] = 0.0
        sums = np.cumsum(left)
        sums = sums / sums[-1]
        first = done
        for u in drawn:
            place = np.searchsorted(sums, u, side="right")
            fresh = True
            for k in range(first, done):
                fresh = fresh and found[k] != place
            if fresh:
                found[done] = place
                done += 1
    return found


def running_sums(p: Any, count: int, legacy: bool) -> Array:
    """The sums, up to each of `count` things, of the probabilities to choose it.

    Raises ValueError in the words of Generator, or of RandomState.
    """
    tolerance = _OF_DOUBLES
    if isinstance(p, np.ndarray) and p.dtype in (np.float16, np.float32):
        tolerance = _OF_HALVES if p.dtype == np.float16 else _OF_SINGLES
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
