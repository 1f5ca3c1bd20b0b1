"""NumPy functions composed of others, in plain Python that our own frontend compiles.

In and out: what the NumPy function of the same name takes and gives, for the arguments listed.
These functions run as they are; `names_composed` enters them in the table of names. Derivatives
follow from their bodies. Sorting is by merging (Knuth, The Art of Computer Programming, volume 3,
section 5.2.4), which is stable, searching by bisection (section 6.2.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


# -- along an axis ---------------------------------------------------------------------------------


def diff(a: Array, n: int = 1, axis: int = -1) -> Array:
    """Differences of neighbours, n times."""
    x = np.moveaxis(np.asarray(a), axis, -1)
    for _ in range(n):
        x = x[..., 1:] != x[..., :-1] if x.dtype == bool else x[..., 1:] - x[..., :-1]
    return np.moveaxis(x, -1, axis)


def ptp(a: Array, axis: Any = None) -> Array:
    """Greatest minus least element."""
    return np.max(a, axis=axis) - np.min(a, axis=axis)


def average(a: Array, axis: Any = None, weights: Array = None, keepdims: bool = False) -> Array:
    """np.average; weights have the shape of `a`, or one axis for an int `axis`."""
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    w = np.asarray(weights)
    if w.ndim < a.ndim:
        w = np.moveaxis(np.broadcast_to(w, (*np.moveaxis(a, axis, -1).shape,)), -1, axis)
    total = np.sum(w, axis=axis, keepdims=keepdims)
    return np.sum(a * w, axis=axis, keepdims=keepdims) / total


def trapezoid(y: Array, x: Array = None, dx: float = 1.0, axis: int = -1) -> Array:
    """Integral by the trapezoidal rule."""
    values = np.moveaxis(np.asarray(y), axis, -1)
    middle = (values[..., 1:] + values[..., :-1]) / 2.0
    if x is None:
        return np.sum(dx * middle, axis=-1)
    places = np.asarray(x)
    return np.sum((places[..., 1:] - places[..., :-1]) * middle, axis=-1)


def nansum(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Sum without NaNs."""
    return np.sum(np.where(np.isnan(a), 0, a), axis=axis, keepdims=keepdims)


def nanmean(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Mean without NaNs."""
    count = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims)
    return nansum(a, axis=axis, keepdims=keepdims) / count


def nanmax(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Greatest element that is not NaN; NaN if there is none."""
    found = np.max(np.where(np.isnan(a), -np.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis=axis, keepdims=keepdims), np.nan, found)[()]


def nanmin(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Least element that is not NaN; NaN if there is none."""
    found = np.min(np.where(np.isnan(a), np.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis=axis, keepdims=keepdims), np.nan, found)[()]


# -- sorting and searching -------------------------------------------------------------------------


def _merged_order(x: Array) -> Array:
    """Indices that sort one axis: runs of 1, 2, 4, ... are merged; NaNs go last."""
    n = x.shape[0]
    order = np.arange(n)
    merged = np.arange(n)
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, end):
                left = i < middle
                if left and j < end:
                    a, b = x[order[i]], x[order[j]]
                    left = not (b < a or (np.isnan(a) and not np.isnan(b)))
                if left:
                    merged[k] = order[i]
                    i += 1
                else:
                    merged[k] = order[j]
                    j += 1
        order[:] = merged
        width *= 2
    return order


def argsort(a: Array, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Array:
    """Indices that sort an axis, equal elements in their order."""
    x = np.asarray(a)
    if axis is None:
        return _merged_order(x.ravel())
    if x.ndim == 1:
        return _merged_order(x)
    last = np.moveaxis(x, axis, -1)
    rows = last.reshape(-1, last.shape[-1])
    orders = np.zeros(rows.shape, dtype=np.int64)
    for r in range(rows.shape[0]):
        orders[r] = _merged_order(rows[r])
    return np.moveaxis(orders.reshape(last.shape), -1, axis)


def sort(a: Array, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Array:
    """A sorted copy; its derivative goes to where the elements came from."""
    x = np.asarray(a)
    if axis is None:
        x = x.ravel()
        return x[_merged_order(x)]
    if x.ndim == 1:
        return x[_merged_order(x)]
    last = np.moveaxis(x, axis, -1)
    size = last.shape[-1]
    rows = last.reshape(-1, size)
    ordered = np.zeros(rows.shape, dtype=x.dtype)
    for r in range(rows.shape[0]):
        row = rows[r]
        ordered[r] = row[_merged_order(row)]
    return np.moveaxis(ordered.reshape(last.shape), -1, axis)


def median(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The middle of the sorted elements."""
    x = np.ravel(a) if axis is None else np.moveaxis(np.asarray(a), axis, -1)
    ordered = sort(x)
    n = x.shape[-1]
    middle = (ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2.0
    if keepdims and axis is not None:
        return np.expand_dims(middle, axis)
    return middle


def quantile(a: Array, q: Array, axis: int | None = None) -> Array:
    """Quantiles by linear interpolation."""
    x = np.ravel(a) if axis is None else np.moveaxis(np.asarray(a), axis, -1)
    ordered = sort(x)
    n = x.shape[-1]
    place = np.asarray(q) * (n - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, n - 1)
    weight = place - low
    taken = np.moveaxis(ordered, -1, 0)
    below, above = taken[low], taken[high]
    for _ in range(below.ndim - weight.ndim):
        weight = weight[..., None]
    return below + (above - below) * weight


def percentile(a: Array, q: Array, axis: int | None = None) -> Array:
    """Quantiles by linear interpolation, in percent."""
    return quantile(a, np.asarray(q) / 100.0, axis)


def _place(a: Array, value: Any, right: bool) -> int:
    """How many elements of a sorted array stand before `value`."""
    low, high = 0, a.shape[0]
    while low < high:
        middle = (low + high) // 2
        if a[middle] < value or (right and a[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


def searchsorted(a: Array, v: Array, side: str = "left") -> Array:
    """Where elements belong in a sorted array."""
    values = np.asarray(v)
    flat = values.reshape(-1)
    places = np.zeros(flat.shape[0], dtype=np.int64)
    for k in range(flat.shape[0]):
        places[k] = _place(np.asarray(a), flat[k], side == "right")
    return places.reshape(values.shape)[()]


def digitize(x: Array, bins: Array, right: bool = False) -> Array:
    """Numbers of the bins, whose edges ascend."""
    return searchsorted(bins, x, side="left" if right else "right")


def interp(x: Array, xp: Array, fp: Array) -> Array:
    """Piecewise linear interpolation, constant outside."""
    places, values, at = np.asarray(xp), np.asarray(fp), np.asarray(x)
    n = places.shape[0]
    k = np.clip(searchsorted(places, at, side="right") - 1, 0, max(n - 2, 0))
    following = np.minimum(k + 1, n - 1)
    width = places[following] - places[k]
    inside = np.clip(at, places[0], places[n - 1])
    weight = np.where(width > 0, (inside - places[k]) / np.where(width > 0, width, 1.0), 0.0)
    return values[k] + (values[following] - values[k]) * weight


def bincount(x: Array, weights: Array = None, minlength: int = 0) -> Array:
    """How often each number from 0 occurs, or the sum of its weights."""
    values = np.asarray(x)
    size = minlength
    for v in values:
        if v < 0:
            raise ValueError("'list' argument must have no negative elements")
        size = max(size, int(v) + 1)
    if weights is None:
        counts = np.zeros(size, dtype=np.int64)
        np.add.at(counts, values, 1)
        return counts
    sums = np.zeros(size)
    np.add.at(sums, values, np.asarray(weights))
    return sums


def unique(ar: Array) -> Array:
    """The different elements, sorted."""
    ordered = sort(ar, axis=None)
    return ordered[np.concatenate([np.ones(min(1, ordered.shape[0]), dtype=bool),
                                   ordered[1:] != ordered[:-1]])]


def isin(element: Array, test_elements: Array) -> Array:
    """Which elements occur among others."""
    return np.any(np.asarray(element)[..., None] == np.ravel(test_elements), axis=-1)


def positions(start: Any, stop: Any, step: int, size: int) -> Array:
    """The indices that the slice start:stop:step means in an axis of `size` elements."""
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first, last = (low, high) if step > 0 else (high, low)
    if start is not None:
        first = min(max(start + size if start < 0 else start, low), high)
    if stop is not None:
        last = min(max(stop + size if stop < 0 else stop, low), high)
    return np.arange(first, last, step)


# -- products --------------------------------------------------------------------------------------


def cross(a: Array, b: Array) -> Array:
    """Products of vectors of three components along the last axis."""
    u, v = np.asarray(a), np.asarray(b)
    return np.stack([
        u[..., 1] * v[..., 2] - u[..., 2] * v[..., 1],
        u[..., 2] * v[..., 0] - u[..., 0] * v[..., 2],
        u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0],
    ], axis=-1)


def kron(a: Array, b: Array) -> Array:
    """The Kronecker product of two vectors or two matrices."""
    x, y = np.asarray(a), np.asarray(b)
    if x.ndim == 1:
        return (x[:, None] * y[None, :]).reshape(-1)
    product = x[:, None, :, None] * y[None, :, None, :]
    return product.reshape(x.shape[0] * y.shape[0], x.shape[1] * y.shape[1])


def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    """np.tensordot over the last `axes` axes of a and the first of b, or over the named ones."""
    if isinstance(axes, int):
        count = axes
    else:
        left, right = axes
        left = (left,) if isinstance(left, int) else tuple(left)
        right = (right,) if isinstance(right, int) else tuple(right)
        count = len(left)
        left = tuple([k % a.ndim for k in left])
        right = tuple([k % b.ndim for k in right])
        a = np.transpose(a, tuple([k for k in range(a.ndim) if k not in left]) + left)
        b = np.transpose(b, right + tuple([k for k in range(b.ndim) if k not in right]))
    kept, inner, rest = a.shape[: a.ndim - count], b.shape[:count], b.shape[count:]
    rows, size, columns = 1, 1, 1
    for extent in kept:
        rows = rows * extent
    for extent in inner:
        size = size * extent
    for extent in rest:
        columns = columns * extent
    flat = np.reshape(a, (rows, size)) @ np.reshape(b, (size, columns))
    return np.sum(flat) if not kept and not rest else np.reshape(flat, kept + rest)


def polyval(p: Array, x: Array) -> Array:
    """np.polyval, by Horner's rule."""
    y = 0 * x
    for coefficient in p:
        y = y * x + coefficient
    return y


def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    """Discrete convolution of two vectors."""
    x, h = np.asarray(a), np.asarray(v)
    if x.shape[0] < h.shape[0]:
        x, h = h, x
    n, m = x.shape[0], h.shape[0]
    y = np.zeros(n + m - 1, dtype=(x[:1] * h[:1]).dtype)
    for k in range(m):
        y[k : k + n] += h[k] * x
    if mode == "full":
        return y
    if mode == "same":
        return y[(m - 1) // 2 : (m - 1) // 2 + n]
    if mode == "valid":
        return y[m - 1 : n]
    raise ValueError("mode must be one of 'valid', 'same', or 'full'")


def correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    """Cross-correlation of two vectors, the first at least as long as the second."""
    return convolve(a, np.conj(np.asarray(v)[::-1]), mode)


def cov(m: Array, rowvar: bool = True, ddof: int = 1) -> Array:
    """The covariance matrix; each row is a variable (each column without `rowvar`)."""
    x = np.asarray(m) if rowvar else np.asarray(m).T
    if x.ndim == 1:
        return np.var(x, ddof=ddof)
    centred = x - x.mean(axis=1, keepdims=True)
    return centred @ np.conj(centred.T) / (x.shape[1] - ddof)


def corrcoef(x: Array, y: Array = None) -> Array:
    """Correlation coefficients of the rows, or of two vectors."""
    c = cov(x if y is None else np.stack([x, y]))
    d = np.sqrt(np.diag(c))
    return c / d[:, None] / d[None, :]


# -- elements --------------------------------------------------------------------------------------


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    """The first choice whose condition holds."""
    result = default
    for k in range(len(condlist) - 1, -1, -1):
        result = np.where(condlist[k], choicelist[k], result)
    return result


def heaviside(x1: Array, x2: Array) -> Array:
    """0 for negative numbers, 1 for positive ones, x2 for 0."""
    return np.where(np.isnan(x1), np.nan, np.where(x1 == 0, x2, np.where(x1 < 0, 0.0, 1.0)))[()]


def nan_to_num(x: Array, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """NaN and infinities replaced by numbers."""
    a = np.asarray(x)
    if a.dtype.kind != "f":
        return a.copy()
    limits = np.finfo(a.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    finite = np.where(a == np.inf, high, np.where(a == -np.inf, low, a))
    return np.where(np.isnan(a), nan, finite).astype(a.dtype)[()]


def fix(x: Array) -> Array:
    """Rounded towards zero."""
    return np.trunc(x)


def fmod(x1: Array, x2: Array) -> Array:
    """The remainder with the sign of the dividend."""
    r = np.abs(x1) % np.abs(x2)
    return np.where(np.asarray(x1) < 0, -r, r)[()]


def degrees(x: Array) -> Array:
    """Radians as degrees."""
    return x * (180.0 / np.pi)


def radians(x: Array) -> Array:
    """Degrees as radians."""
    return x * (np.pi / 180.0)


def angle(z: Array) -> Array:
    """The argument of complex numbers."""
    return np.arctan2(np.imag(z), np.real(z))


def sinc(x: Array) -> Array:
    """sin(pi x) / (pi x), 1 at 0."""
    y = np.pi * np.where(x == 0, 1.0e-20, x)
    return np.sin(y) / y


def isreal(x: Array) -> Array:
    """Which elements have no imaginary part."""
    return np.imag(x) == 0


def iscomplex(x: Array) -> Array:
    """Which elements have an imaginary part."""
    return np.imag(x) != 0


def array_equal(a1: Array, a2: Array) -> bool:
    """True for arrays of one shape and equal elements."""
    x, y = np.asarray(a1), np.asarray(a2)
    return x.shape == y.shape and bool(np.all(x == y))


def np_divmod(x1: Array, x2: Array) -> Any:
    """Floor division and its remainder."""
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


# -- arrangement -----------------------------------------------------------------------------------


def fliplr(m: Array) -> Array:
    """The second axis reversed."""
    return m[:, ::-1]


def flipud(m: Array) -> Array:
    """The first axis reversed."""
    return m[::-1]


def rot90(m: Array, k: int = 1) -> Array:
    """np.rot90 of the first two axes."""
    for _ in range(k % 4):
        m = np.flip(np.swapaxes(m, 0, 1), 0)
    return m


def column_stack(tup: Any) -> Array:
    """Vectors as columns, beside matrices."""
    return np.concatenate([a[:, None] if a.ndim == 1 else a for a in tup], axis=1)


def append(arr: Array, values: Array, axis: int | None = None) -> Array:
    """Values put behind an array, both flattened without an axis."""
    if axis is None:
        return np.concatenate([np.ravel(np.asarray(arr)), np.ravel(np.asarray(values))])
    return np.concatenate([np.asarray(arr), np.asarray(values)], axis=axis)


def meshgrid(*xi: Array, indexing: str = "xy") -> Any:
    """Coordinates of a grid: a tuple of arrays."""
    rank = len(xi)
    places = list(range(rank))
    if indexing == "xy" and rank > 1:
        places[0], places[1] = 1, 0
    shape = [1] * rank
    for k in range(rank):
        shape[places[k]] = len(xi[k])
    grids = []
    for k in range(rank):
        own = [1] * rank
        own[places[k]] = len(xi[k])
        grids.append(np.broadcast_to(np.reshape(xi[k], tuple(own)), tuple(shape)))
    return tuple(grids)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0
) -> Array:
    """Numbers evenly spaced on a logarithmic scale."""
    return np.power(base, np.linspace(start, stop, num, endpoint=endpoint))


def unravel_index(indices: Array, shape: Any) -> Any:
    """Indices of flat positions, one array (or number) for each axis."""
    flat = np.asarray(indices)
    found = []
    for k in range(len(shape) - 1, -1, -1):
        found.append(flat % shape[k])
        flat = flat // shape[k]
    return tuple(found[::-1])


def tri(N: int, M: Any = None, k: int = 0) -> Array:  # noqa: N803
    """Ones on and below a diagonal."""
    return np.tril(np.ones((N, N if M is None else M)), k)


def atleast_2d(a: Array) -> Array:
    """An array of at least two axes."""
    x = np.asarray(a)
    if x.ndim == 0:
        return x.reshape(1, 1)
    return x[None, :] if x.ndim == 1 else x


def fill_diagonal(a: Array, val: Any) -> None:
    """Write the main diagonal of a matrix."""
    for i in range(min(a.shape[0], a.shape[1])):
        a[i, i] = val


# -- numbers ---------------------------------------------------------------------------------------


def gcd(a: int, b: int) -> int:
    """The greatest common divisor of two ints (math.gcd)."""
    while b:
        a, b = b, a % b
    return abs(a)


def lcm(a: int, b: int) -> int:
    """The least common multiple of two ints (math.lcm)."""
    return abs(a // gcd(a, b) * b) if a and b else 0


def factorial(n: int) -> int:
    """n! (math.factorial)."""
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    result = 1
    for k in range(2, n + 1):
        result *= k
    return result


def comb(n: int, k: int) -> int:
    """Binomial coefficients (math.comb)."""
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")
    result = 1 if k <= n else 0
    for i in range(min(k, n - k)):
        result = result * (n - i) // (i + 1)
    return result


def isqrt(n: int) -> int:
    """The floor of the square root of an int (math.isqrt), by Newton's method."""
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    x = n
    y = x // 2 + 1 if n > 0 else 0
    while y < x:
        x = y
        y = (x + n // x) // 2
    return x


def isclose(a: float, b: float, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    """math.isclose of finite numbers."""
    return a == b or abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)


def math_fmod(x: float, y: float) -> float:
    """math.fmod: the remainder with the sign of x."""
    r = abs(x) % abs(float(y))
    return -r if x < 0 else r


def math_degrees(x: float) -> float:
    """math.degrees."""
    return x * (180.0 / 3.141592653589793)


def math_radians(x: float) -> float:
    """math.radians."""
    return x * (3.141592653589793 / 180.0)


def math_dist(p: Any, q: Any) -> float:
    """math.dist of two points."""
    return float(sum((float(a) - float(b)) ** 2 for a, b in zip(p, q, strict=True)) ** 0.5)
