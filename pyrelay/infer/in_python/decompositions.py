"""Functions of scipy.linalg that take matrices apart, and exponentials of them, in plain Python.

In and out: what the function of scipy.linalg of the same name takes and gives, for one matrix.
`expm` scales and squares a Padé approximant (Higham, The scaling and squaring method for the matrix
exponential revisited, 2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse
from pyrelay.infer.in_python.triangular import checked, square

Array = Any

__all__ = ["block_diag", "eigvalsh", "expm", "norm", "pinv", "qr", "svd", "svdvals"]


def _matrix(a: Any, check_finite: bool) -> Array:
    x = checked(a, check_finite)
    if x.ndim != 2:
        refuse("scipy.linalg is compiled for one matrix, not for stacks")
    return x


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Any:
    """The singular value decomposition, or the singular values alone."""
    x = _matrix(a, check_finite)
    if lapack_driver != "gesdd":
        refuse("scipy.linalg.svd is compiled with lapack_driver='gesdd'")
    if not compute_uv:
        return np.linalg.svd(x, compute_uv=False)
    u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
    return u, s, vh


def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The singular values, the greatest first."""
    return np.linalg.svd(_matrix(a, check_finite), compute_uv=False)


def qr(
    a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full",
    pivoting: bool = False, check_finite: bool = True,
) -> Any:
    """An orthogonal and a triangular factor; the second alone for mode "r"."""
    if mode not in ("full", "qr", "r", "economic", "raw"):
        raise ValueError("Mode argument should be one of ['full', 'r', 'economic', 'raw']")
    if mode == "raw" or pivoting:
        refuse("scipy.linalg.qr is compiled without pivoting, and for factors as matrices")
    x = _matrix(a, check_finite)
    if mode == "economic":
        return np.linalg.qr(x)
    q, r = np.linalg.qr(x, mode="complete")
    return (r,) if mode == "r" else (q, r)


def eigvalsh(
    a: Any, b: Any = None, *, lower: bool = True, overwrite_a: bool = False,
    overwrite_b: bool = False, type: int = 1, check_finite: bool = True,
    subset_by_index: Any = None, subset_by_value: Any = None, driver: Any = None,
) -> Array:
    """The eigenvalues of a symmetric or Hermitian matrix, the least first."""
    if b is not None or subset_by_index is not None or subset_by_value is not None:
        refuse("scipy.linalg.eigvalsh is compiled for all eigenvalues of one matrix")
    x = square(a, check_finite, 'expected square "a" matrix')
    return np.linalg.eigvalsh(x, UPLO="L" if lower else "U")


def pinv(
    a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudo-inverse; with the rank if that is asked for."""
    x = _matrix(a, check_finite)
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    least = max(x.shape) * np.finfo(s.dtype).eps
    bound = (0.0 if atol is None else atol) + np.max(s, initial=0.0) * (
        rtol if rtol is not None else least if atol is None else 0.0
    )
    kept = s > bound
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    found = np.conj((u * inverse) @ vh).T
    return (found, np.sum(kept)) if return_rank else found


def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    """A norm of a vector or a matrix."""
    return np.linalg.norm(checked(a, check_finite), ord, axis, keepdims)


def block_diag(*arrs: Any) -> Array:
    """A matrix with these blocks along its diagonal."""
    rows, columns, dtype = 0, 0, np.dtype(np.float64)
    blocks = [np.atleast_2d(np.asarray(block)) for block in arrs or ((),)]
    for k, block in enumerate(blocks):
        if block.ndim != 2:
            raise ValueError("arguments in the following positions have dimension greater than 2")
        dtype = np.result_type(dtype, block.dtype) if k else block.dtype
        rows += block.shape[0]
        columns += block.shape[1]
    found = np.zeros((rows, columns), dtype)
    row = column = 0
    for block in blocks:
        found[row : row + block.shape[0], column : column + block.shape[1]] = block
        row += block.shape[0]
        column += block.shape[1]
    return found


_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
    40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)


def expm(A: Any) -> Array:  # noqa: N803
    """The exponential of a square matrix."""
    x = _matrix(A, False)
    if x.shape[0] != x.shape[1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    if x.shape[0] == 0:
        return x
    size = np.max(np.sum(np.abs(x), axis=0))
    halvings = 0
    while size > 5.371920351148152 and halvings < 1100:  # what the approximant is good for
        size = size * 0.5
        halvings += 1
    x = x * 0.5**halvings
    b, one = _PADE, np.eye(x.shape[0], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x @ (
        x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one
    )
    even = (
        x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    )
    found = np.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        found = found @ found
    return found
