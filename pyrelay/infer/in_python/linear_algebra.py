"""Dense linear algebra in plain Python over NumPy, which our own frontend compiles.

In: one square matrix (no batches). Out: what the function of the same name in np.linalg gives.
Elimination with partial pivoting and the Cholesky factorisation as in Golub and Van Loan, Matrix
Computations, 4th edition, sections 3.4 and 4.2. Derivatives follow from the steps, of any order;
they keep every step's matrix, so they are meant for matrices of up to a few hundred rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

__all__ = ["cholesky", "det", "inv", "solve"]


def _checked(a: Array) -> Array:
    """A fresh floating copy of a square matrix."""
    if a.ndim != 2:
        raise ValueError("np.linalg functions are compiled for one matrix, not for batches")
    if a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return a.copy() if a.dtype.kind in "fc" else a.astype(np.float64)


def _pivot(m: Array, k: int) -> int:
    """The row, from k on, whose element in column k is greatest."""
    return k + int(np.argmax(np.abs(m[k:, k])))


def solve(a: Array, b: Array) -> Array:
    """x with a @ x = b, for a vector or the columns of a matrix."""
    m = _checked(np.asarray(a))
    given = np.asarray(b)
    right = given.reshape(given.shape[0], -1) * np.ones((1, 1), dtype=m.dtype)
    n = m.shape[0]
    for k in range(n):
        p = _pivot(m, k)
        if m[p, k] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
        if p != k:
            row, other = m[k].copy(), right[k].copy()
            m[k], right[k] = m[p], right[p]
            m[p], right[p] = row, other
        factors = m[k + 1 :, k] / m[k, k]
        m[k + 1 :] -= factors[:, None] * m[k]
        right[k + 1 :] -= factors[:, None] * right[k]
    for k in range(n - 1, -1, -1):
        right[k] = (right[k] - m[k, k + 1 :] @ right[k + 1 :]) / m[k, k]
    return right.reshape(given.shape)


def inv(a: Array) -> Array:
    """The inverse."""
    x = np.asarray(a)
    return solve(x, np.eye(x.shape[0], dtype=x.dtype if x.dtype.kind in "fc" else np.float64))


def det(a: Array) -> Array:
    """The determinant: the product of the pivots, with the sign of the exchanges."""
    m = _checked(np.asarray(a))
    n = m.shape[0]
    result = np.ones((), dtype=m.dtype)[()]
    for k in range(n):
        p = _pivot(m, k)
        if m[p, k] == 0:
            return result * 0
        if p != k:
            row = m[k].copy()
            m[k] = m[p]
            m[p] = row
            result = -result
        result = result * m[k, k]
        m[k + 1 :] -= (m[k + 1 :, k] / m[k, k])[:, None] * m[k]
    return result


def cholesky(a: Array) -> Array:
    """The lower triangular factor of a positive definite matrix."""
    m = _checked(np.asarray(a))
    n = m.shape[0]
    low = np.zeros(m.shape, dtype=m.dtype)
    for k in range(n):
        rest = m[k:, k] - low[k:, :k] @ np.conj(low[k, :k])
        if np.real(rest[0]) <= 0:
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        low[k:, k] = rest / np.sqrt(rest[0])
    return low
