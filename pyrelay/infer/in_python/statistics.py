"""NumPy's reductions that are made of others, in plain Python.

In and out: what the NumPy function of the same name takes and gives, for the arguments listed.
Medians and quantiles are in `quantiles.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse

Array = Any

__all__ = [
    "average", "corrcoef", "cov", "cumulative_prod", "cumulative_sum", "diff", "ediff1d",
    "gradient", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin",
    "nanprod", "nanstd", "nansum", "nanvar", "ptp", "trapezoid", "unwrap",
]


# -- along an axis ---------------------------------------------------------------------------------


def diff(a: Array, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Differences of neighbours, n times."""
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    x = np.asarray(a)
    if x.ndim > 0 and axis in (0, -x.ndim) and prepend is None and append is None:
        if n == 1:  # rows follow each other where they lie, and no loop carries a copy
            return _row_steps(x)
        for _ in range(n):
            x = _row_steps(x)
        return x
    x = np.moveaxis(x, axis, -1)
    if prepend is not None:
        x = np.concatenate([_edge(prepend, x, axis), x], axis=-1)
    if append is not None:
        x = np.concatenate([x, _edge(append, x, axis)], axis=-1)
    if n == 1:
        return np.moveaxis(_steps(x), -1, axis)
    for _ in range(n):
        x = _steps(x)
    return np.moveaxis(x, -1, axis)


def _row_steps(x: Array) -> Array:
    return x[1:] != x[:-1] if x.dtype == bool else x[1:] - x[:-1]


def _steps(x: Array) -> Array:
    return x[..., 1:] != x[..., :-1] if x.dtype == bool else x[..., 1:] - x[..., :-1]


def _edge(values: Any, x: Array, axis: int) -> Array:
    edge = np.asarray(values)
    if edge.ndim == 0:
        return np.broadcast_to(edge, (*x.shape[:-1], 1))
    return np.moveaxis(edge, axis, -1)


def ediff1d(ary: Array, to_end: Any = None, to_begin: Any = None) -> Array:
    """Differences of neighbours of the flattened elements."""
    x = np.ravel(ary)
    found = x[1:] - x[:-1]
    if to_begin is not None:
        found = np.concatenate([np.ravel(to_begin).astype(x.dtype), found])
    if to_end is not None:
        found = np.concatenate([found, np.ravel(to_end).astype(x.dtype)])
    return found


def gradient(f: Array, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives by central differences, one-sided at the ends (Fornberg, 1988)."""
    values = np.asarray(f)
    if values.dtype.kind == "b":
        refuse("differences of truth values are not defined; write f.astype(float)")
    if values.dtype.kind not in "fc":
        values = values.astype(np.float64)
    given = list(range(values.ndim)) if axis is None else axis
    axes = [given] if isinstance(given, int) else list(given)
    spacings = list(varargs) if len(varargs) else [1.0]
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError("invalid number of arguments")
    found = []
    for k, spacing in list(zip(axes, spacings, strict=True)):
        rows = np.moveaxis(values, k, 0)
        if np.ndim(spacing) > 1:
            raise ValueError("distances must be either scalars or 1d")
        if np.ndim(spacing) == 1 and np.size(spacing) != rows.shape[0]:
            raise ValueError(
                "when 1d, distances must match the length of the corresponding dimension"
            )
        result = np.zeros_like(values)
        _fill_slopes(np.moveaxis(result, k, 0), rows, spacing, edge_order)
        found.append(result)
    return found[0] if len(axes) == 1 else tuple(found)


def _fill_slopes(result: Array, y: Array, spacing: Any, edge_order: int) -> None:
    """Write derivatives along the first axis; the spacing is a number or the places."""
    if y.shape[0] < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
            "elements are required."
        )
    if np.ndim(spacing) == 0:
        result[1:-1] = (y[2:] - y[:-2]) / (2.0 * spacing)
        if edge_order == 1:
            result[0] = (y[1] - y[0]) / spacing
            result[-1] = (y[-1] - y[-2]) / spacing
        else:
            result[0] = (-1.5 * y[0] + 2.0 * y[1] - 0.5 * y[2]) / spacing
            result[-1] = (1.5 * y[-1] - 2.0 * y[-2] + 0.5 * y[-3]) / spacing
        return
    step = np.asarray(spacing)[1:] - np.asarray(spacing)[:-1]
    column = (-1,) + (1,) * (y.ndim - 1)
    before, after = step[:-1].reshape(column), step[1:].reshape(column)
    result[1:-1] = (
        -after / (before * (before + after)) * y[:-2]
        + (after - before) / (before * after) * y[1:-1]
        + before / (after * (before + after)) * y[2:]
    )
    if edge_order == 1:
        result[0] = (y[1] - y[0]) / step[0]
        result[-1] = (y[-1] - y[-2]) / step[-1]
        return
    p, q = step[0], step[1]
    result[0] = (
        -(2.0 * p + q) / (p * (p + q)) * y[0] + (p + q) / (p * q) * y[1] - p / (q * (p + q)) * y[2]
    )
    p, q = step[-2], step[-1]
    result[-1] = (
        q / (p * (p + q)) * y[-3] - (q + p) / (p * q) * y[-2]
        + (2.0 * q + p) / (q * (p + q)) * y[-1]
    )


def trapezoid(y: Array, x: Array = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Integral by the trapezoidal rule."""
    values = np.moveaxis(np.asarray(y), axis, -1)
    if x is None:
        return np.sum(dx * (values[..., 1:] + values[..., :-1]) / 2.0, axis=-1)
    places = np.asarray(x) if np.ndim(x) == 1 else np.moveaxis(np.asarray(x), axis, -1)
    width = places[..., 1:] - places[..., :-1]
    return np.sum(width * (values[..., 1:] + values[..., :-1]) / 2.0, axis=-1)


def unwrap(p: Array, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Array:
    """Angles with jumps of half a period or more taken out by whole periods."""
    x = np.moveaxis(np.asarray(p), axis, -1)
    step = x[..., 1:] - x[..., :-1]
    least = period / 2 if discont is None else discont
    if step.dtype.kind in "iu" and isinstance(period, int):
        low, ambiguous = -(period // 2), period % 2 == 0
    else:
        low, ambiguous = -period / 2, True
    wrapped = (step - low) % period + low
    if ambiguous:
        wrapped = np.where((wrapped == low) & (step > 0), -low, wrapped)
    change = np.where(np.abs(step) < least, 0, wrapped - step)
    rest = x[..., 1:] + np.cumsum(change, axis=-1)
    kind = np.result_type(np.asarray(p), period)
    return np.moveaxis(np.concatenate([x[..., :1], rest], axis=-1).astype(kind), -1, axis)


def ptp(a: Array, axis: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """Greatest minus least element."""
    if axis is None and np.size(a) == 0:
        raise ValueError("zero-size array to reduction operation maximum which has no identity")
    high, low = np.max(a, axis=axis, keepdims=keepdims), np.min(a, axis=axis, keepdims=keepdims)
    return put(high - low, out)


def cumulative_sum(
    x: Array, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Running sums; with `include_initial` they start with 0."""
    return _cumulative(np.cumsum, 0, np.atleast_1d(x), axis, dtype, include_initial)


def cumulative_prod(
    x: Array, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Running products; with `include_initial` they start with 1."""
    return _cumulative(np.cumprod, 1, np.atleast_1d(x), axis, dtype, include_initial)


def _cumulative(
    scan: Any, first: int, x: Array, axis: Any, dtype: Any, include_initial: bool
) -> Array:
    if axis is None and x.ndim != 1:
        raise ValueError(
            "For arrays which have more than one dimension ``axis`` argument is required."
        )
    running = np.moveaxis(scan(x, axis=0 if axis is None else axis, dtype=dtype), axis or 0, 0)
    if include_initial:
        start = np.full((1, *running.shape[1:]), first, dtype=running.dtype)
        running = np.concatenate([start, running])
    return np.moveaxis(running, 0, axis or 0)


# -- averages and their kin ------------------------------------------------------------------------


def average(
    a: Array, axis: Any = None, weights: Array = None, returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The weighted mean; weights have the shape of `a`, or one axis for an int `axis`."""
    x = np.asarray(a)
    if weights is None:
        found = np.mean(x, axis=axis, keepdims=keepdims)
        count = np.ones(np.shape(found)) * (np.size(x) / np.size(found))
        return (found, count[()]) if returned else found
    w = np.asarray(weights)
    if w.shape != x.shape:
        w = along_axes(w, x, axis)
    total = np.sum(w, axis=axis, keepdims=keepdims, dtype=np.float64 if w.dtype.kind in "biu" and
                   x.dtype.kind in "biu" else None)
    if np.any(total == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    found = np.sum(x * w, axis=axis, keepdims=keepdims) / total
    return (found, total * 1.0) if returned else found


def along_axes(w: Array, x: Array, axis: Any) -> Array:
    """Weights of one axis, or of several in their order, with the rank of what they weigh."""
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple([k % x.ndim for k in given])
    if w.shape != tuple([x.shape[k] for k in axes]):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    ordered = np.transpose(w, tuple([axes.index(k) for k in sorted(axes)]))
    shape = tuple([x.shape[k] if k in axes else 1 for k in range(x.ndim)])
    return np.broadcast_to(ordered.reshape(shape), x.shape)


def cov(
    m: Array, y: Array = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Array:
    """The covariance matrix; each row is a variable (each column without `rowvar`)."""
    x = _variables(m, rowvar)
    if y is not None:
        x = np.concatenate([x, _variables(y, rowvar)])
    if dtype is not None:
        x = x.astype(dtype)
    lost = (0 if bias else 1) if ddof is None else ddof
    if fweights is None and aweights is None:
        centred = x - np.mean(x, axis=1, keepdims=True)
        count = np.asarray(max(x.shape[1] - lost, 0)).astype(np.real(x).dtype)
        found = centred @ np.conj(centred.T) / count
        return np.squeeze(found) if x.shape[0] == 1 else found
    w = np.ones(x.shape[1])
    if fweights is not None:
        w = w * np.asarray(fweights)
    if aweights is not None:
        w = w * np.asarray(aweights)
    total = np.sum(w)
    if lost == 0:
        rest = total
    elif aweights is None:
        rest = total - lost
    else:
        rest = total - lost * np.sum(w * np.asarray(aweights)) / total
    centred = x - (np.sum(x * w, axis=1) / total)[:, None]
    found = (centred * w) @ np.conj(centred.T) / rest
    return np.squeeze(found) if x.shape[0] == 1 else found


def _variables(m: Array, rowvar: bool) -> Array:
    x = np.asarray(m)
    x = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    if x.ndim < 2:
        return x.reshape(1, -1)
    return x if rowvar else x.T


def corrcoef(x: Array, y: Array = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """Correlation coefficients of the variables, between -1 and 1."""
    c = cov(x, y, rowvar, dtype=dtype)
    if np.ndim(c) == 0:
        return c / c
    d = np.sqrt(np.real(np.diag(c)))
    found = c / d[:, None] / d[None, :]
    return found if found.dtype.kind == "c" else np.clip(found, -1.0, 1.0)


# -- without NaNs ----------------------------------------------------------------------------------


def nansum(
    a: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Array:
    """Sum without NaNs."""
    x = _filled(a, 0)
    return np.sum(x, axis, dtype, out, keepdims, initial=initial, where=where)


def nanprod(
    a: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Array:
    """Product without NaNs."""
    x = _filled(a, 1)
    return np.prod(x, axis, dtype, out, keepdims, initial=initial, where=where)


def nancumsum(a: Array, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Running sum without NaNs."""
    return np.cumsum(_filled(a, 0), axis=axis, dtype=dtype, out=out)


def nancumprod(a: Array, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Running product without NaNs."""
    return np.cumprod(_filled(a, 1), axis=axis, dtype=dtype, out=out)


def nanmean(
    a: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
    *, where: Any = True,
) -> Array:
    """Mean without NaNs."""
    if np.asarray(a).dtype.kind not in "fc":
        return np.mean(a, axis=axis, dtype=dtype, out=out, keepdims=keepdims, where=where)
    _refuse_whole(dtype)
    total = nansum(a, axis, dtype, keepdims=keepdims, where=where)
    count = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims, where=where)
    return put(total / (count.astype(total.dtype) if total.dtype.kind in "fc" else count), out)


def nanvar(
    a: Array, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None,
) -> Array:
    """Variance without NaNs."""
    lost = ddof if correction is None else correction
    if np.asarray(a).dtype.kind not in "fc" and mean is None:
        return np.var(a, axis=axis, dtype=dtype, out=out, ddof=lost, keepdims=keepdims, where=where)
    _refuse_whole(dtype)
    x = np.asarray(a) if dtype is None else np.asarray(a).astype(dtype)
    centre = nanmean(x, axis, keepdims=True, where=where) if mean is None else mean
    centred = np.where(np.isnan(x), 0, x - centre)
    squares = np.abs(centred) ** 2 if x.dtype.kind == "c" else centred * centred
    total = np.sum(squares, axis=axis, keepdims=keepdims, where=where)
    count = np.sum(~np.isnan(x), axis=axis, keepdims=keepdims, where=where)
    enough = np.where(count > lost, count - lost, 1).astype(total.dtype)
    kind = total.dtype if dtype is None else x.dtype
    return put(np.where(count > lost, total / enough, np.nan)[()].astype(kind), out)


def nanstd(
    a: Array, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None,
) -> Array:
    """Standard deviation without NaNs."""
    squared = nanvar(
        a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
    )
    return put(np.sqrt(squared), out)


def _refuse_whole(dtype: Any) -> None:
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")


def nanmax(
    a: Array, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> Array:
    """Greatest element that is not NaN; NaN if there is none."""
    x = telling_nans(a)
    if x.dtype.kind != "f":
        return np.max(x, axis, out, keepdims, initial=initial, where=where)
    found = np.max(np.fmax(x, -np.inf), axis, None, keepdims, initial=initial, where=where)
    return put(_unless_all_nan(found, x, axis, keepdims, initial, where), out)


def nanmin(
    a: Array, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> Array:
    """Least element that is not NaN; NaN if there is none."""
    x = telling_nans(a)
    if x.dtype.kind != "f":
        return np.min(x, axis, out, keepdims, initial=initial, where=where)
    found = np.min(np.fmin(x, np.inf), axis, None, keepdims, initial=initial, where=where)
    return put(_unless_all_nan(found, x, axis, keepdims, initial, where), out)


def telling_nans(a: Array) -> Array:
    """The array; NumPy's functions without NaNs do not know those of bfloat16."""
    x = np.asarray(a)
    if x.dtype.name == "bfloat16":
        refuse("NaNs of bfloat16 are not left out by NumPy; convert with x.astype(np.float32)")
    return x


def _filled(a: Array, value: Any) -> Array:
    """The elements with a value in place of each NaN."""
    x = telling_nans(a)
    return np.where(np.isnan(x), value, x) if x.dtype.kind in "fc" else x


def _unless_all_nan(
    found: Array, x: Array, axis: Any, keepdims: bool, initial: Any, where: Any
) -> Array:
    """What was found; NaN where there were only NaNs to choose from."""
    if initial is not None:
        return found
    return np.where(np.all(np.isnan(x), axis=axis, keepdims=keepdims), np.nan, found)[()]


def put(found: Array, out: Any) -> Array:
    """The result, written to `out` where that is given."""
    if out is None:
        return found
    out[...] = found
    return out


def nanargmax(
    a: Array, axis: Any = None, out: Any = None, *, keepdims: bool = False
) -> Array:
    """Position of the greatest element that is not NaN."""
    _refuse_only_nans(a, axis)
    found = np.argmax(np.where(np.isnan(a), -np.inf, a), axis=axis, keepdims=keepdims)
    return put(found, out)


def nanargmin(
    a: Array, axis: Any = None, out: Any = None, *, keepdims: bool = False
) -> Array:
    """Position of the least element that is not NaN."""
    _refuse_only_nans(a, axis)
    found = np.argmin(np.where(np.isnan(a), np.inf, a), axis=axis, keepdims=keepdims)
    return put(found, out)


def _refuse_only_nans(a: Array, axis: Any) -> None:
    if np.any(np.all(np.isnan(telling_nans(a)), axis=axis)):
        raise ValueError("All-NaN slice encountered")
