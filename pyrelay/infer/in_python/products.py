"""NumPy's products, polynomials and convolutions, and accumulations of ufuncs, in plain Python.

In and out: what the NumPy function of the same name takes and gives, for the arguments listed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.numpy_release import RELEASE

Array = Any

__all__ = [
    "convolve", "correlate", "cross", "kron", "matvec", "poly", "polyadd", "polyder", "polydiv",
    "polyint", "polymul", "polysub", "polyval", "tensordot", "vecdot", "vecmat",
]


# -- products --------------------------------------------------------------------------------------


_OF_PLANES = RELEASE < (2, 5)


def cross(
    a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Array:
    """Products of vectors of three components; of two, before NumPy 2.5: the third component of
    theirs."""
    u = np.moveaxis(np.asarray(a), axisa if axis is None else axis, -1)
    v = np.moveaxis(np.asarray(b), axisb if axis is None else axis, -1)
    if not _OF_PLANES and (u.shape[-1] != 3 or v.shape[-1] != 3):
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{u.shape[-1]} and {v.shape[-1]} dimensional instead."
        )
    if u.shape[-1] not in (2, 3) or v.shape[-1] not in (2, 3):
        raise ValueError(
            "incompatible dimensions for cross product\n(dimension must be 2 or 3)"
        )
    if u.shape[-1] == v.shape[-1] == 2:
        return np.array(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])
    if u.shape[-1] == 2:
        u = np.concatenate([u, np.zeros((*u.shape[:-1], 1), u.dtype)], axis=-1)
    if v.shape[-1] == 2:
        v = np.concatenate([v, np.zeros((*v.shape[:-1], 1), v.dtype)], axis=-1)
    found = np.stack([
        u[..., 1] * v[..., 2] - u[..., 2] * v[..., 1],
        u[..., 2] * v[..., 0] - u[..., 0] * v[..., 2],
        u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0],
    ], axis=-1)
    return np.moveaxis(found, -1, axisc if axis is None else axis)


def kron(a: Array, b: Array) -> Array:
    """The Kronecker product."""
    x, y = np.asarray(a), np.asarray(b)
    rank = max(x.ndim, y.ndim)
    x = x.reshape((1,) * (rank - x.ndim) + x.shape)
    y = y.reshape((1,) * (rank - y.ndim) + y.shape)
    left: Any = ()
    right: Any = ()
    shape: Any = ()
    for k in range(rank):
        left = (*left, x.shape[k], 1)
        right = (*right, 1, y.shape[k])
        shape = (*shape, x.shape[k] * y.shape[k])
    return (x.reshape(left) * y.reshape(right)).reshape(shape)


def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    """np.tensordot over the last `axes` axes of a and the first of b, or over the named ones."""
    a, b = np.asarray(a), np.asarray(b)
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
    if a.shape[a.ndim - count :] != b.shape[:count]:
        raise ValueError("shape-mismatch for sum")
    kept, inner, rest = a.shape[: a.ndim - count], b.shape[:count], b.shape[count:]
    rows, size, columns = 1, 1, 1
    for extent in kept:
        rows = rows * extent
    for extent in inner:
        size = size * extent
    for extent in rest:
        columns = columns * extent
    flat = np.dot(np.reshape(a, (rows, size)), np.reshape(b, (size, columns)))
    return np.reshape(flat, kept + rest)


def vecdot(x1: Array, x2: Array, axis: int = -1) -> Array:
    """Products of vectors along an axis, the first conjugated."""
    u, v = np.moveaxis(np.asarray(x1), axis, -1), np.moveaxis(np.asarray(x2), axis, -1)
    left = np.conj(u) if u.dtype.kind == "c" else u
    if u.ndim == v.ndim == 1:
        return left @ v
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(
            "vecdot: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"(n),(n)->() (size {v.shape[-1]} is different from {u.shape[-1]})"
        )
    # Sums of lines: a product of matrices for each pair of vectors would take longer to begin.
    found = left * v
    return np.sum(found, axis=-1, dtype=found.dtype)


def matvec(x1: Array, x2: Array) -> Array:
    """Matrices times vectors."""
    if np.ndim(x1) < 2 or np.ndim(x2) < 1:
        raise ValueError("np.matvec needs matrices and vectors")
    return (np.asarray(x1) @ np.asarray(x2)[..., :, None])[..., 0]


def vecmat(x1: Array, x2: Array) -> Array:
    """Conjugated vectors times matrices."""
    if np.ndim(x1) < 1 or np.ndim(x2) < 2:
        raise ValueError("np.vecmat needs vectors and matrices")
    u = np.asarray(x1)
    left = np.conj(u) if u.dtype.kind == "c" else u
    return (left[..., None, :] @ np.asarray(x2))[..., 0, :]


# -- polynomials -----------------------------------------------------------------------------------


def polyval(p: Array, x: Array) -> Array:
    """The value at x, by Horner's rule."""
    coefficients = p.coeffs if hasattr(p, "coeffs") else p
    x = np.asarray(x)
    y = np.zeros_like(x, dtype=np.result_type(x, np.asarray(coefficients)))
    for coefficient in coefficients:
        y = y * x + coefficient
    return y


def polyadd(a1: Array, a2: Array) -> Array:
    """Sum of polynomials."""
    a, b = np.atleast_1d(a1), np.atleast_1d(a2)
    n = max(a.shape[0], b.shape[0])
    left = np.concatenate([np.zeros(n - a.shape[0], dtype=a.dtype), a])
    return left + np.concatenate([np.zeros(n - b.shape[0], dtype=b.dtype), b])


def polysub(a1: Array, a2: Array) -> Array:
    """Difference of polynomials."""
    return polyadd(a1, -np.atleast_1d(a2))


def polymul(a1: Array, a2: Array) -> Array:
    """Product of polynomials, without zeros in front."""
    return convolve(_without_zeros(a1), _without_zeros(a2))


def _without_zeros(coefficients: Array) -> Array:
    """What np.poly1d keeps: the first is not 0, unless it is the only one."""
    given = np.atleast_1d(coefficients)
    found = np.trim_zeros(given, "f")
    return np.zeros(1, dtype=given.dtype) if len(found) == 0 else found


def polydiv(u: Array, v: Array) -> Any:
    """Quotient and remainder of polynomials whose first coefficients are not 0."""
    top = np.atleast_1d(u) + 0.0
    bottom = np.atleast_1d(v) + 0.0
    steps = top.shape[0] - bottom.shape[0] + 1
    dtype = np.result_type(top, bottom)
    rest = top.astype(dtype)
    quotient = np.zeros(max(steps, 1), dtype)
    scale = 1.0 / bottom[0]
    for k in range(steps):
        quotient[k] = scale * rest[k]
        rest[k : k + bottom.shape[0]] -= quotient[k] * bottom
    low = np.trim_zeros(np.where(np.abs(rest) <= 1e-8, 0.0, rest), "f")
    kept = max(low.shape[0], 1)
    return quotient, rest[rest.shape[0] - kept :]


def polyder(p: Array, m: int = 1) -> Array:
    """The m-th derivative."""
    found = np.asarray(p)
    for _ in range(m):
        found = found[:-1] * np.arange(found.shape[0] - 1, 0, -1)
    return found


def polyint(p: Array, m: int = 1, k: Any = None) -> Array:
    """The m-th antiderivative, with the constants k."""
    found = np.asarray(p) * 1.0
    constants = [0.0] * m if k is None else (list(k) if isinstance(k, (list, tuple)) else [k] * m)
    for constant in constants:
        scaled = found / np.arange(found.shape[0], 0, -1)
        found = np.concatenate([scaled, np.reshape(np.asarray(constant) * 1.0, 1)])
    return found


def poly(seq_of_zeros: Array) -> Array:
    """The polynomial that has these zeros."""
    zeros = np.atleast_1d(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.shape[0] > 0:
        found = poly(np.linalg.eigvals(zeros.astype(np.result_type(zeros, np.complex64))))
        return found if zeros.dtype.kind == "c" else np.real(found)
    if zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    n = zeros.shape[0]
    found = np.zeros(n + 1, dtype=(zeros * 1.0).dtype)
    found[0] = 1.0
    for k in range(n):
        found[1:] = found[1:] - zeros[k] * found[:-1]
    return found


# -- convolutions ----------------------------------------------------------------------------------


def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    """Discrete convolution of two vectors."""
    x, h = np.atleast_1d(a), np.atleast_1d(v)
    if x.ndim > 1 or h.ndim > 1:
        raise ValueError("object too deep for desired array")
    if x.shape[0] == 0:
        raise ValueError("a cannot be empty")
    if h.shape[0] == 0:
        raise ValueError("v cannot be empty")
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
    """Cross-correlation of two vectors, the second conjugated."""
    x, h = np.asarray(a), np.asarray(v)
    if x.shape[0] < h.shape[0]:
        turned = correlate(h, x, mode)[::-1]
        return np.conj(turned) if turned.dtype.kind == "c" else turned
    return convolve(x, np.conj(h[::-1]) if h.dtype.kind == "c" else h[::-1], mode)


# -- accumulations ---------------------------------------------------------------------------------


def reduced(
    ufunc: Any, x: Array, axis: Any = 0, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> Array:
    """What `ufunc.reduce` gives: along axes the ufunc of all elements, of its loop's type."""
    if x.ndim == 0 and (axis == 0 or axis == -1):
        axis = None  # NumPy takes it of what has none
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    identity = _identity(ufunc.__name__, x)
    if identity is None and len(axes) > 1 and ufunc.__name__ not in ("fmax", "fmin"):
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may "
            "be specified"
        )
    start = identity if initial is None else initial
    rows = _first(x, axes)
    if start is None:
        if where is not True:
            raise ValueError(
                f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a "
                "where mask one has to specify 'initial'"
            )
        if rows.shape[0] == 0:
            raise ValueError(
                f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
            )
        found = rows[0] if rows.ndim == 1 else rows[0].copy()  # which is no view of what is given
        for k in range(1, rows.shape[0]):
            found = ufunc(found, rows[k])
    else:
        found = np.full(rows.shape[1:], start, dtype=x.dtype)[()]
        if where is True:
            for row in rows:
                found = ufunc(found, row)
        else:
            chosen = _first(np.broadcast_to(where, x.shape), axes)
            for k in range(rows.shape[0]):
                found = np.where(chosen[k], ufunc(found, rows[k]), found)[()]
    return np.expand_dims(found, axes) if keepdims else found


def _identity(ufunc: str, x: Array) -> Any:
    """What does not change the other operand; None if there is nothing, or an order matters."""
    if ufunc == "bitwise_and":
        return ~np.zeros((), x.dtype)
    if ufunc in ("logaddexp", "logaddexp2"):
        return -math.inf
    return 0 if ufunc in ("bitwise_or", "bitwise_xor", "gcd", "logical_xor", "hypot") else None


def _first(x: Array, axes: Any) -> Array:
    """These axes as the first one."""
    if len(axes) == 1:
        return np.moveaxis(x, axes[0], 0)
    moved = np.moveaxis(x, axes, tuple(range(len(axes))))
    return moved.reshape(math.prod(moved.shape[: len(axes)]), *moved.shape[len(axes) :])


def accumulated(ufunc: Any, array: Array, axis: int = 0) -> Array:
    """What `ufunc.accumulate` gives: along an axis the ufunc of all elements so far."""
    rows = np.moveaxis(np.asarray(array), axis, 0)
    found = rows.copy()
    for k in range(1, rows.shape[0]):
        found[k] = ufunc(found[k - 1], rows[k])
    return np.moveaxis(found, 0, axis)


def reduced_between(
    ufunc: Any, array: Array, indices: Any, axis: int = 0, dtype: Any = None
) -> Array:
    """What `ufunc.reduceat` gives: the ufunc of the elements from each index up to the next."""
    rows = np.moveaxis(np.asarray(array), axis, 0)
    if dtype is not None:
        rows = rows.astype(dtype)
    elif ufunc.__name__ in ("logical_and", "logical_or", "logical_xor"):
        rows = rows.astype(bool)
    elif ufunc.__name__ in ("add", "multiply") and rows.dtype.kind in "biu":
        rows = rows.astype(np.uint64 if rows.dtype.kind == "u" else np.int64)
    else:  # as the loop has its results: floats where it divides integers
        rows = rows.astype(ufunc(rows[:1], rows[:1]).dtype)
    starts = np.asarray(indices)
    if starts.size == 0:
        starts = starts.astype(np.int64)
    count = starts.shape[0]
    ends = np.concatenate([starts[1:], np.full(1, rows.shape[0])])
    found = rows[starts]
    for k in range(count):
        for j in range(starts[k] + 1, ends[k]):
            found[k] = ufunc(found[k], rows[j])
    return np.moveaxis(found, 0, axis)
