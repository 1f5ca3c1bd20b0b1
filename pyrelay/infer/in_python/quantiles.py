"""NumPy's medians and quantiles, in plain Python.

In and out: what the NumPy function of the same name takes and gives, for the arguments listed.
By the definitions of Hyndman and Fan, "Sample quantiles in statistical packages" (1996).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.infer.in_python.sorting import partitioned_lines
from pyrelay.infer.in_python.statistics import along_axes, nanmean, put, telling_nans

Array = Any

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]


def _lanes(a: Array, axis: Any) -> Array:
    """The axes to reduce as one last axis."""
    x = np.asarray(a)
    if axis is None:
        return x.ravel()
    if isinstance(axis, int):
        return np.moveaxis(x, axis, -1)
    if x.ndim == 0:
        raise ValueError("axis 0 is out of bounds for array of dimension 0")
    axes = tuple([k % x.ndim for k in axis])
    rest = tuple([k for k in range(x.ndim) if k not in axes])
    moved = np.transpose(x, rest + axes)
    return moved.reshape(*moved.shape[: len(rest)], math.prod([x.shape[k] for k in axes]))


def _with_axes(found: Array, a: Array, axis: Any, keepdims: bool, first: int = 0) -> Array:
    """The reduced axes back with extent 1, behind `first` axes of another origin."""
    if not keepdims:
        return found
    rank = np.ndim(a)
    axes = range(rank) if axis is None else ((axis,) if isinstance(axis, int) else axis)
    return np.expand_dims(found, tuple([first + k % rank for k in axes]))


def median(
    a: Array, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle of the sorted elements; NaN if there is a NaN."""
    x = _lanes(a, axis)
    n = x.shape[-1]
    if n == 0:
        return put(_with_axes(np.mean(x, axis=-1), a, axis, keepdims), out)
    ordered = _with_places(x, np.asarray([(n - 1) // 2, n // 2]))
    middle = np.mean(ordered[..., (n - 1) // 2 : n // 2 + 1], axis=-1)
    if x.dtype.kind in "fc":
        middle = np.where(np.isnan(ordered[..., -1]), ordered[..., -1], middle)[()]
    return put(_with_axes(middle, a, axis, keepdims), out)


def nanmedian(
    a: Array, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle of the sorted elements that are not NaN."""
    if np.size(a) == 0:
        return nanmean(a, axis, None, out, keepdims)
    x = _lanes(telling_nans(a), axis)
    if x.dtype.kind != "f":
        return median(a, axis, out, False, keepdims)
    count = np.sum(~np.isnan(x), axis=-1)
    before, after = np.maximum(count - 1, 0) // 2, np.where(count > 0, count // 2, 0)
    ordered = _with_places(x, np.stack([np.reshape(before, -1), np.reshape(after, -1)], axis=1))
    low, high = _picked(ordered, before), _picked(ordered, after)
    return put(_with_axes((low + high) / 2.0, a, axis, keepdims), out)


def _with_places(x: Array, places: Array) -> Array:
    """The lanes in an order that has the elements at these rising places, of all lanes or of each,
    where sorting puts them, and NaNs last."""
    if x.dtype.kind == "c":
        return np.sort(x)
    lines = x.reshape(-1, x.shape[-1])
    return partitioned_lines(lines, np.atleast_2d(places)).reshape(x.shape)


def _picked(ordered: Array, places: Array) -> Array:
    """From each lane the element at its place."""
    n = ordered.shape[-1]
    flat = ordered.reshape(-1, n)
    at = np.reshape(places, -1)
    return flat[np.arange(flat.shape[0]), at].reshape(ordered.shape[:-1])[()]


#: methods that give elements, and nothing between them
_DISCRETE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")


def _continuous() -> dict[str, tuple[float, float]]:
    """Plotting positions (alpha, beta) of the continuous methods."""
    return {
        "linear": (1.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0),
        "median_unbiased": (1.0 / 3.0, 1.0 / 3.0), "normal_unbiased": (3.0 / 8.0, 3.0 / 8.0),
        "interpolated_inverted_cdf": (0.0, 1.0),
    }


def _position(q: Any, n: Any, method: str) -> Any:
    """Where among n sorted elements the quantile lies, as a float."""
    if method == "lower":
        return np.floor(q * (n - 1))
    if method == "higher":
        return np.ceil(q * (n - 1))
    if method == "nearest":
        return np.rint(q * (n - 1))
    if method == "midpoint":
        return 0.5 * (np.floor(q * (n - 1)) + np.ceil(q * (n - 1)))
    if method == "inverted_cdf":
        return np.maximum(np.ceil(q * n) - 1.0, 0.0)
    if method == "averaged_inverted_cdf":
        place = q * n - 1.0
        return np.floor(place) + np.where(place == np.floor(place), 0.5, 1.0).astype(place.dtype)
    if method == "closest_observation":
        place = q * n - 1.5
        low = np.floor(place)
        return np.where((place == low) & (low % 2 == 1), low, low + 1.0)
    positions = _continuous()
    if method not in positions:
        raise ValueError(f"'{method}' is not a valid method.")
    alpha, beta = positions[method]
    if method == "linear":
        return q * (n - 1)
    return q * n + (alpha + q * (1.0 - alpha - beta)) - 1.0


def _not_brain(x: Array) -> Array:
    """Elements in the type that NumPy weighs them in: float32 for bfloat16."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def quantile(
    a: Array, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
) -> Array:
    """Quantiles of the sorted elements; NaN where there is a NaN."""
    _refuse_complex(a)
    if weights is not None:
        return put(_weighted(a, q, axis, method, keepdims, weights), out)
    x = _not_brain(_lanes(a, axis))
    _check_range(q)
    n = x.shape[-1]
    if n == 0:  # where NumPy looks for a NaN first
        at = -1 if x.dtype.kind == "f" else 0
        raise IndexError(f"index {at} is out of bounds for axis 0 with size 0")
    # Where q is a number it has the elements' type, as in NumPy.
    share = np.asarray(q) if np.ndim(q) or x.dtype.kind != "f" else np.asarray(q).astype(x.dtype)
    place = np.clip(_position(share, n, method), 0, n - 1)
    whole = np.floor(place)
    low = whole.astype(np.int64)
    high = np.minimum(low + 1, n - 1)
    places = np.sort(np.concatenate([low.reshape(-1), high.reshape(-1)]))
    ordered = np.moveaxis(_with_places(x, places), -1, 0)
    below, above = ordered[low], ordered[high]
    weight = (place - whole).reshape(np.shape(place) + (1,) * (x.ndim - 1))
    found = below if method in _DISCRETE else _between(below, above, weight)
    if x.dtype.kind == "f":
        found = np.where(np.isnan(ordered[-1]), ordered[-1], found)[()]
    return put(_with_axes(found, a, axis, keepdims, np.ndim(q)), out)


def _weighted(
    a: Array, q: Any, axis: Any, method: str, keepdims: bool, weights: Any
) -> Array:
    """The least elements that, with all that are not greater, have a share of the weight."""
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    _check_range(q)
    x, w = np.asarray(a), np.asarray(weights)
    if w.shape != x.shape:
        w = along_axes(w, x, axis)
    if np.any(w < 0):
        raise ValueError("Weights must be non-negative.")
    lanes = _lanes(x, axis)
    rows, masses = lanes.reshape(-1, lanes.shape[-1]), _lanes(w, axis).reshape(-1, lanes.shape[-1])
    shares = np.ravel(np.asarray(q))
    found = np.empty((shares.shape[0], rows.shape[0]), dtype=rows.dtype)
    for k in range(rows.shape[0]):
        order = np.argsort(rows[k])
        reached = np.cumsum(masses[k][order].astype(np.float64))
        reached = reached / reached[-1]
        first = np.searchsorted(reached, 0.0, side="right")  # the first of any weight
        at = np.maximum(np.searchsorted(reached, shares), first)
        found[:, k] = rows[k][order][np.minimum(at, rows.shape[1] - 1)]
        if rows.dtype.kind == "f" and np.any(np.isnan(rows[k])):
            found[:, k] = np.nan
    whole = found.reshape(np.shape(q) + lanes.shape[:-1])[()]
    return _with_axes(whole, a, axis, keepdims, np.ndim(q))


def _refuse_complex(a: Array) -> None:
    if np.asarray(a).dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")


def _between(low: Array, high: Array, weight: Array) -> Array:
    """A number between two, counted from the nearer one, so that it is that one at its end."""
    step = high - low
    return np.where(weight >= 0.5, high - step * (1 - weight), low + step * weight)[()]


def _check_range(q: Any) -> None:
    if not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")


def percentile(
    a: Array, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
) -> Array:
    """Quantiles, in percent."""
    if not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 100)):
        raise ValueError("Percentiles must be in the range [0, 100]")
    share = q / 100 if np.ndim(q) == 0 else np.asarray(q) / 100
    return quantile(a, share, axis, out, overwrite_input, method, keepdims, weights=weights)


def nanquantile(
    a: Array, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False,
) -> Array:
    """Quantiles of the elements that are not NaN."""
    if np.size(a) == 0:
        return nanmean(a, axis, None, out, keepdims)
    _refuse_complex(a)
    x = _lanes(telling_nans(a), axis)
    if x.dtype.kind != "f":
        return quantile(a, q, axis, out, overwrite_input, method, keepdims)
    _check_range(q)
    count = np.sum(~np.isnan(x), axis=-1)
    last = np.maximum(count - 1, 0)
    share = np.asarray(q) if np.ndim(q) else np.asarray(q).astype(x.dtype)
    shares = np.reshape(share, -1)
    found = []
    for k in range(shares.shape[0]):
        place = np.clip(_position(shares[k], count, method), 0, last)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, last)
        ordered = _with_places(x, np.stack([np.reshape(low, -1), np.reshape(high, -1)], axis=1))
        below, above = _picked(ordered, low), _picked(ordered, high)
        between = below if method in _DISCRETE else _between(below, above, place - low)
        found.append(between if np.ndim(q) else between.astype(x.dtype))
    stacked = np.stack(found).reshape(np.shape(q) + x.shape[:-1])
    return put(_with_axes(stacked[()], a, axis, keepdims, np.ndim(q)), out)


def nanpercentile(
    a: Array, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False,
) -> Array:
    """Quantiles of the elements that are not NaN, in percent."""
    share = q / 100 if np.ndim(q) == 0 else np.asarray(q) / 100
    return nanquantile(a, share, axis, out, overwrite_input, method, keepdims)
