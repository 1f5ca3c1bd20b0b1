"""Functions of np.linalg, in plain Python over decompositions.

In and out: what the function of np.linalg of the same name takes and gives, for the arguments
listed. The decompositions (the functions of `PRIMITIVES`) are ops when they are compiled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse
from pyrelay.numpy_release import RELEASE

Array = Any

__all__ = [
    "cholesky", "cond", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet",
    "solve", "svd", "svdvals", "tensorinv", "tensorsolve", "trace", "vector_norm",
]

_ONE = np.eye(1)
EigResult: Any = type(np.linalg.eig(_ONE))
EighResult: Any = type(np.linalg.eigh(_ONE))
QRResult: Any = type(np.linalg.qr(_ONE))
SlogdetResult: Any = type(np.linalg.slogdet(_ONE))
SVDResult: Any = type(np.linalg.svd(_ONE))


# -- primitives ------------------------------------------------------------------------------------


def _solve(a: Array, b: Array) -> Array:
    return np.linalg.solve(a, b)


def _inv(a: Array) -> Array:
    return np.linalg.inv(a)


def _det(a: Array) -> Array:
    return np.linalg.det(a)


def _slogdet(a: Array) -> Any:
    return tuple(np.linalg.slogdet(a))


def _pinv(a: Array, rcond: float, cut: bool) -> Array:
    return np.linalg.pinv(a, rcond)


def _least_squares(a: Array, b: Array, rcond: float, cut: bool) -> Any:
    return np.linalg.lstsq(a, b, rcond)


def _cholesky(a: Array, upper: bool) -> Array:
    return np.linalg.cholesky(a, upper=upper)


def _qr(a: Array, full: bool) -> Any:
    return tuple(np.linalg.qr(a, "complete" if full else "reduced"))


_EIG_IS_COMPLEX = RELEASE >= (2, 5)


def _eigh(a: Array, upper: bool) -> Any:
    return tuple(np.linalg.eigh(a, "U" if upper else "L"))


def _svd(a: Array, full: bool) -> Any:
    return tuple(np.linalg.svd(a, full))


def _eig(a: Array) -> Any:
    w, v = np.linalg.eig(a)
    kind = np.result_type(a.dtype, np.complex64)
    real = a.dtype.kind != "c" and not np.any(np.imag(w))
    return real, w.astype(kind), v.astype(kind)


#: function -> op and the names of its attributes, which follow the operands
PRIMITIVES: Any = {
    _solve: ("solve", ()), _inv: ("inv", ()), _det: ("det", ()), _slogdet: ("slogdet", ()),
    _pinv: ("pinv", ("cut",)), _least_squares: ("least_squares", ("cut",)),
    _cholesky: ("cholesky", ("upper",)), _qr: ("qr", ("full",)),
    _eigh: ("eigh", ("upper",)), _svd: ("svd", ("full",)), _eig: ("eig", ()),
}


def _float(a: Array) -> Array:
    x = np.asarray(a)
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


# -- systems and inverses --------------------------------------------------------------------------


def solve(a: Array, b: Array) -> Array:
    """x with a @ x = b, for a vector or the columns of matrices."""
    m, right = _float(a), _float(b)
    if right.ndim == 1:
        return _solve(m, right[:, None])[..., 0]
    return _solve(m, right)


def inv(a: Array) -> Array:
    """The inverse."""
    return _inv(_float(a))


def det(a: Array) -> Array:
    """The determinant."""
    return _det(_float(a))


def slogdet(a: Array) -> Any:
    """The sign and the logarithm of the determinant."""
    sign, logarithm = _slogdet(_float(a))
    return SlogdetResult(sign, logarithm)


def pinv(a: Array, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """The Moore-Penrose inverse."""
    if rcond is not None and rtol is not None:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    x = _mirrored(_float(a)) if hermitian else _float(a)
    if x.size == 0:
        return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    least = rtol if rcond is None else rcond
    return _pinv(x, 1e-15 if least is None else float(least), least is not None)


def _mirrored(a: Array) -> Array:
    """The symmetric matrix whose lower triangle is given."""
    return np.tril(a) + np.conj(np.swapaxes(np.tril(a, -1), -1, -2))


def lstsq(a: Array, b: Array, rcond: Any = None) -> Any:
    """The least-squares solution of least norm, its residuals, the rank, the singular values."""
    m, right = _float(a), _float(b)
    if m.ndim != 2 or right.ndim > 2:
        wrong = right.ndim if m.ndim == 2 else m.ndim
        raise np.linalg.LinAlgError(
            f"{wrong}-dimensional array given. Array must be two-dimensional"
        )
    rows, columns = m.shape
    if right.shape[0] != rows:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    both = np.result_type(m.dtype, right.dtype)
    share = float(np.finfo(both).eps) * max(rows, columns) if rcond is None else float(rcond)
    return _fitted(m.astype(both), right.astype(both), share, rcond is not None)


def _fitted(m: Array, right: Array, share: float, cut: bool) -> Any:
    """As `lstsq`, for a vector or columns of the matrix's type."""
    rows, columns = m.shape
    behind = right if right.ndim == 2 else right[:, None]
    x, squares, rank, s = _least_squares(m, behind, share, cut)
    if rows == 0:
        x = np.zeros_like(x)
    residuals = squares[np.full(squares.shape[0], (rank == columns) & (rows > columns))]
    return x if right.ndim == 2 else x[:, 0], residuals, rank, s


def tensorsolve(a: Array, b: Array, axes: Any = None) -> Array:
    """x with np.tensordot(a, x, x.ndim) equal to b."""
    m, right = _float(a), _float(b)
    if axes is not None:
        rest = [k for k in range(m.ndim) if k not in axes]
        m = np.transpose(m, tuple(rest) + tuple(axes))
    shape = m.shape[right.ndim :]
    return solve(m.reshape(np.size(right), -1), right.ravel()).reshape(shape)


def tensorinv(a: Array, ind: int = 2) -> Array:
    """The inverse of np.tensordot(a, x, ind)."""
    m = _float(a)
    rows, columns = m.shape[:ind], m.shape[ind:]
    size = 1
    for extent in rows:
        size = size * extent
    return inv(m.reshape(size, -1)).reshape(columns + rows)


# -- factors ---------------------------------------------------------------------------------------


def cholesky(a: Array, /, *, upper: bool = False) -> Array:
    """The triangular factor of a positive definite matrix."""
    return _cholesky(_float(a), upper)


def qr(a: Array, mode: str = "reduced") -> Any:
    """The orthogonal and the upper triangular factor."""
    m = _float(a)
    if mode not in ("reduced", "r", "complete"):
        refuse("only the modes 'reduced', 'complete' and 'r' are compiled")
    if mode == "complete" and m.shape[-2] > m.shape[-1]:
        q, r = _qr(m, True)
    else:
        q, r = _qr(m, False)
    return r if mode == "r" else QRResult(q, r)


def eigh(a: Array, UPLO: str = "L") -> Any:  # noqa: N803
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    w, v = _eigh(_float(a), UPLO in ("U", "u"))
    return EighResult(w, v)


def eigvalsh(a: Array, UPLO: str = "L") -> Array:  # noqa: N803
    """Eigenvalues of a symmetric matrix."""
    return _eigh(_float(a), UPLO in ("U", "u"))[0]


def eig(a: Array) -> Any:
    """Eigenvalues and eigenvectors; before NumPy 2.5 complex numbers only if one of them is."""
    m = _float(a)
    real, w, v = _eig(m)
    if not _EIG_IS_COMPLEX and m.dtype.kind != "c" and real:
        return EigResult(np.real(w), np.real(v))
    return EigResult(w, v)


def eigvals(a: Array) -> Array:
    """Eigenvalues; before NumPy 2.5 complex numbers only if one of them is."""
    m = _float(a)
    real, w, _ = _eig(m)
    if not _EIG_IS_COMPLEX and m.dtype.kind != "c" and real:
        return np.real(w)
    return w


def svd(
    a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """The singular value decomposition."""
    m = _float(a)
    if hermitian:  # by the eigenvalues, whose magnitudes they are
        w, v = _eigh(m, False)
        order = np.argsort(np.abs(w), axis=-1)[..., ::-1]
        w = np.take_along_axis(w, order, axis=-1)
        if not compute_uv:
            return np.abs(w)
        u = np.take_along_axis(v, order[..., None, :], axis=-1)
        vt = np.swapaxes(np.conj(u * np.sign(w)[..., None, :]), -1, -2)
        return SVDResult(u, np.abs(w), vt)
    if not compute_uv:
        return svdvals(m)
    u, s, vt = _svd(m, full_matrices)
    return SVDResult(u, s, vt)


def svdvals(x: Array) -> Array:
    """Singular values."""
    return _svd(_float(x), False)[1]


# -- norms -----------------------------------------------------------------------------------------


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """A norm of vectors or matrices; its derivative at 0 is 0."""
    a = _float(x)
    if axis is None:
        if ord is None or (ord == 2 and a.ndim == 1) or (ord == "fro" and a.ndim == 2):
            return _length(a, tuple(range(a.ndim)), keepdims)
        axes = tuple(range(a.ndim))
    else:
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if len(axes) == 1:
        return _vector_norm(a, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _matrix_norm(a, ord, axes[0] % a.ndim, axes[1] % a.ndim, keepdims)


def _length(a: Array, axes: Any, keepdims: bool) -> Array:
    if a.dtype.kind == "c":
        square = np.sum(a.real * a.real + a.imag * a.imag, axis=axes, keepdims=keepdims)
    else:
        square = np.sum(a * a, axis=axes, keepdims=keepdims)
    zero = square == 0
    return np.where(zero, 0, np.sqrt(np.where(zero, 1, square))).astype(square.dtype)[()]


def _vector_norm(a: Array, ord: Any, axis: int, keepdims: bool) -> Array:
    if ord is None or ord == 2:
        return _length(a, (axis,), keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    size = np.abs(a)
    if ord == np.inf:
        if a.shape[axis] == 0:
            return np.sum(size, axis=axis, keepdims=keepdims)
        return np.max(size, axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum((a != 0).astype(size.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    total = np.sum(size**ord, axis=axis, keepdims=keepdims)
    zero = total == 0
    root = np.where(zero, 1, total) ** (1.0 / ord)
    return np.where(zero, 0, root).astype(total.dtype)[()]


def _matrix_norm(a: Array, ord: Any, row: int, column: int, keepdims: bool) -> Array:
    if row == column:
        raise ValueError("Duplicate axes given.")
    if ord is None or ord == "fro":
        return _length(a, (row, column), keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        first, other = (row, column) if ord in (1, -1) else (column, row)
        sums = np.sum(np.abs(a), axis=first, keepdims=True)
        if ord > 0:
            found = np.max(sums, axis=other, keepdims=True)
        else:
            found = np.min(sums, axis=other, keepdims=True)
        return found if keepdims else np.squeeze(found, axis=(row, column))[()]
    values = svdvals(np.moveaxis(a, (row, column), (-2, -1)))
    if ord == 2:
        chosen = np.max(values, axis=-1)
    elif ord == -2:
        chosen = np.min(values, axis=-1)
    elif ord == "nuc":
        chosen = np.sum(values, axis=-1)
    else:
        raise ValueError("Invalid norm order for matrices.")
    return np.expand_dims(chosen, tuple(sorted((row, column)))) if keepdims else chosen


def vector_norm(
    x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> Array:
    """A norm of vectors, of all elements without an axis."""
    a = _float(x)
    if axis is None:
        found = _vector_norm(a.ravel(), ord, 0, False)
        return np.reshape(found, (1,) * a.ndim) if keepdims else found
    if isinstance(axis, int):
        return _vector_norm(a, ord, axis, keepdims)
    axes = tuple([k % a.ndim for k in axis])
    rest = tuple([k for k in range(a.ndim) if k not in axes])
    moved = np.transpose(a, rest + axes)
    count = math.prod([a.shape[k] for k in axes])
    found = _vector_norm(moved.reshape(*moved.shape[: len(rest)], count), ord, -1, False)
    return np.expand_dims(found, tuple(sorted(axes))) if keepdims else found


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """A norm of matrices."""
    return norm(x, ord, (-2, -1), keepdims)


def cond(x: Array, p: Any = None) -> Array:
    """The condition number."""
    a = _float(x)
    if p is None or p == 2 or p == -2:
        values = svdvals(a)
        high, low = values[..., 0], values[..., -1]
        return low / high if p == -2 else high / low
    return norm(a, p, (-2, -1)) * norm(inv(a), p, (-2, -1))


def matrix_rank(
    A: Array, tol: Any = None, hermitian: bool = False, *, rtol: Any = None,  # noqa: N803
) -> Array:
    """How many singular values are greater than the tolerance."""
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    a = _float(A)
    if a.ndim < 2:
        return int(np.any(a != 0))
    values = svdvals(_mirrored(a) if hermitian else a)
    if tol is None:
        least = rtol
        if rtol is None:
            least = max(a.shape[-2:]) * float(np.finfo(values.dtype).eps)
        share = np.asarray(least)
        largest = np.max(values, axis=-1, keepdims=True, initial=0.0)
        bound = largest * share.reshape((*share.shape, 1))
    else:
        bound = np.reshape(tol, (*np.shape(tol), 1))
    return np.count_nonzero(values > bound, axis=-1)


# -- products --------------------------------------------------------------------------------------


def matrix_power(a: Array, n: int) -> Array:
    """The n-th power of square matrices, by squaring."""
    m = np.asarray(a)
    if n < 0:
        m, n = inv(m), -n
    result = np.broadcast_to(np.eye(m.shape[-1], dtype=m.dtype), m.shape)
    started = False
    while n > 0:
        if n % 2 == 1:
            result = result @ m if started else m
            started = True
        n = n // 2
        if n > 0:
            m = m @ m
    return result


def multi_dot(arrays: Any) -> Array:
    """The product of several matrices; the first and the last may be vectors."""
    parts = list(arrays)
    if len(parts) < 2:
        raise ValueError("Expecting at least two arrays.")
    if np.ndim(parts[-1]) == 1:
        found = parts[-1]
        for part in reversed(parts[:-1]):
            found = np.dot(part, found)
        return found
    found = parts[0]
    for part in parts[1:]:
        found = np.dot(found, part)
    return found


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Diagonals of the last two axes."""
    return np.diagonal(x, offset, -2, -1)


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sums of the diagonals of the last two axes."""
    return np.trace(x, offset, -2, -1, dtype)


def spread_by_covariance(
    x: Array, mean: Array, cov: Array, method: str, legacy: bool
) -> Array:
    """Independent normal numbers made into vectors with a mean and a covariance."""
    c = _float(cov)
    if method == "cholesky":
        factor = _cholesky(c, False)
    elif method == "eigh":
        s, u = _eigh(c, False)
        factor = u * np.sqrt(np.abs(s))
    else:
        u, s, vt = _svd(c, True)
        factor = (vt.T if legacy else u) * np.sqrt(s)
    return mean + x @ factor.T


# -- polynomials -----------------------------------------------------------------------------------


def polyfit(
    x: Array, y: Array, deg: int, rcond: Any = None, full: bool = False, w: Any = None,
    cov: Any = False,
) -> Any:
    """np.polyfit: coefficients of the least-squares polynomial."""
    places, values = _float(x), _float(y)
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if places.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if places.shape[0] == 0:
        raise TypeError("expected non-empty vector for x")
    if values.ndim < 1 or values.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if places.shape[0] != values.shape[0]:
        raise TypeError("expected x and y to have same length")
    left = np.vander(places, deg + 1)
    share = places.shape[0] * float(np.finfo(places.dtype).eps) if rcond is None else rcond
    if w is not None:
        weights = np.asarray(w)
        if weights.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if weights.shape[0] != values.shape[0]:
            raise TypeError("expected w and y to have the same length")
        left = left * weights[:, None]
        values = values * (weights if values.ndim == 1 else weights[:, None])
    scale = np.sqrt(np.sum(left * left, axis=0))
    left = left / scale
    both = np.result_type(left.dtype, values.dtype)
    left, values = left.astype(both), values.astype(both)
    c, residuals, rank, s = _fitted(left, values, float(share), rcond is not None)
    found = (c.T / scale).T
    if full:
        return found, residuals, rank, s, np.float64(share) if rcond is None else rcond
    if not cov:
        return found
    spread = inv(left.T @ left) / np.outer(scale, scale)
    if not isinstance(cov, str):  # "unscaled": the weights are known, and not only relative
        free = places.shape[0] - (deg + 1)
        if free <= 0:
            raise ValueError(
                "the number of data points must exceed order to scale the covariance matrix"
            )
        rest = np.sum((values - left @ c) ** 2, axis=0) / free
        return found, spread * rest if values.ndim == 1 else spread[:, :, None] * rest
    return found, spread if values.ndim == 1 else spread[:, :, None]


def roots(p: Array) -> Array:
    """np.roots: the zeros of a polynomial; coefficients of 0 at its end are zeros that are 0."""
    given = _float(np.atleast_1d(p))
    if given.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    some = np.flatnonzero(given)
    if some.shape[0] == 0:
        return np.zeros(0)
    c = given[some[0] : some[-1] + 1]
    n = c.shape[0]
    at_zero = np.zeros(given.shape[0] - 1 - some[-1], dtype=c.dtype)
    if n == 1:
        return at_zero
    rows = np.concatenate([-c[1:][None] / c[0], np.eye(n - 2, n - 1, dtype=c.dtype)])
    real, w, _ = _eig(rows)
    if rows.dtype.kind != "c" and real:
        return np.append(np.real(w), at_zero)
    return np.append(w, at_zero)
