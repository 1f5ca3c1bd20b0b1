"""Functions of scipy.linalg about linear systems and triangular factors, in plain Python.

In and out: what the function of scipy.linalg of the same name takes and gives, for one matrix.
What cannot be solved raises the same class of error; where SciPy's text names a row that only
LAPACK tells, the text is NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse

Array = Any

__all__ = ["cho_factor", "cho_solve", "cholesky", "det", "inv", "solve", "solve_triangular"]


def checked(a: Any, check_finite: bool) -> Array:
    x = np.asarray(a)
    if check_finite and not np.all(np.isfinite(x)):
        raise ValueError("array must not contain infs or NaNs")
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def square(a: Any, check_finite: bool, text: str) -> Array:
    x = checked(a, check_finite)
    if x.ndim != 2:
        refuse("scipy.linalg is compiled for one matrix, not for stacks")
    if x.shape[0] != x.shape[1]:
        raise ValueError(text)
    return x


def _adjoint(a: Array) -> Array:
    return np.conj(a.T) if a.dtype.kind == "c" else a.T


def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, assume_a: Any = None, transposed: bool = False,
) -> Array:
    """x with a @ x = b, or a.T @ x = b if `transposed`."""
    m = square(a, check_finite, "Expected a square matrix")
    right = checked(b, check_finite)
    if m.shape[0] != right.shape[0]:
        raise ValueError("incompatible shapes between a and b")
    if assume_a in ("pos", "positive definite"):
        return cho_solve(cho_factor(m, lower, False, False), right, False, False)
    if assume_a not in (None, "gen", "general"):
        refuse("scipy.linalg.solve is compiled for general and positive definite matrices")
    return np.linalg.solve(m.T if transposed else m, right)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse."""
    return np.linalg.inv(square(a, check_finite, "Expected a square matrix"))


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant."""
    return np.linalg.det(square(a, check_finite, "Last 2 dimensions of the array must be square"))


def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """The triangular factor of a positive definite matrix, the upper one unless `lower`."""
    m = square(a, check_finite, "Input array is expected to be square")
    return np.linalg.cholesky(m, upper=not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """That factor, with what the matrix has in the other triangle, and `lower`."""
    m = square(a, check_finite, "Input array is expected to be square")
    factor = np.linalg.cholesky(m, upper=not lower)
    rest = np.triu(m, 1) if lower else np.tril(m, -1)
    return factor + rest, lower


def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """x with a @ x = b, where the first argument is `cho_factor(a)`."""
    c, lower = c_and_lower
    m = square(c, check_finite, "The factored matrix c is not square.")
    right = checked(b, check_finite)
    if m.shape[0] != right.shape[0]:
        raise ValueError(f"incompatible dimensions ({m.shape} and {right.shape})")
    factor = np.tril(m) if lower else _adjoint(np.triu(m))
    return np.linalg.solve(_adjoint(factor), np.linalg.solve(factor, right))


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, check_finite: bool = True,
) -> Array:
    """x with a @ x = b, where only one triangle of a is read; a transposed as `trans` says."""
    m = square(a, check_finite, "expected square matrix")
    right = checked(b, check_finite)
    if m.shape[0] != right.shape[0]:
        raise ValueError(f"shapes of a {m.shape} and b {right.shape} are incompatible")
    triangle = np.tril(m) if lower else np.triu(m)
    if unit_diagonal:
        triangle = triangle - np.diag(np.diag(triangle)) + np.eye(m.shape[0], dtype=m.dtype)
    zeros = np.diag(triangle) == 0
    if np.any(zeros):
        raise np.linalg.LinAlgError(
            f"singular matrix: resolution failed at diagonal {np.argmax(zeros)}"
        )
    if trans in (1, "T"):
        triangle = triangle.T
    elif trans in (2, "C"):
        triangle = _adjoint(triangle)
    return np.linalg.solve(triangle, right)
