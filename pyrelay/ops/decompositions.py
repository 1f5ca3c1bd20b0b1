"""What is left of decompositions when derivatives have not to be taken of them any more.

In: matrices, as in `ops/linalg`. Out: eigenvalues and singular values alone (`opt/spectra`), and
what the loops of NumPy's ufuncs give, of which NumPy's functions are made (`opt/decompositions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir import dims
from pyrelay.ir.op import Op, Sample, not_differentiable
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.linalg import (
    cofactors_by_values,
    eig,
    eig_type,
    eigh,
    eigh_type,
    host,
    inv,
    matrix,
    qr_type,
    square_like,
    svd_type,
)
from pyrelay.ops.relations import tensors
from pyrelay.ops.samples import spread

Attributes = Mapping[str, Any]

_WRITTEN_LATE = not_differentiable("it is written after derivatives are expanded")
_SQUARES = tuple(Sample(s.args) for s in inv.samples)
_MATRICES = (Sample((spread((3, 3)),)), Sample((spread((2, 3, 2)),)))

eigvalsh: Op = host(
    "eigvalsh", lambda args, attrs: eigh_type(args, attrs)[:1],
    lambda a, *, upper: np.linalg.eigvalsh(a, "U" if upper else "L"), _WRITTEN_LATE, eigh.samples,
    "the eigenvalues of a symmetric matrix, of which one triangle is read",
)
svdvals: Op = host(
    "svdvals", lambda args, attrs: svd_type(args, {"full": False})[1:2],
    lambda a: np.linalg.svd(a, compute_uv=False), _WRITTEN_LATE,
    (*_MATRICES, Sample((spread((3, 3)).astype("f4"),))),
    "the singular values",
)


def _complex(values: Any, a: Any) -> Any:
    return values.astype(np.result_type(a.dtype, np.complex64))


def _eigvals(a: Any) -> Any:
    w = np.linalg.eigvals(a)
    return bool(w.dtype.kind != "c"), _complex(w, a)


eigvals: Op = host(
    "eigvals", lambda args, attrs: eig_type(args, attrs)[:2], _eigvals, _WRITTEN_LATE, eig.samples,
    "whether all eigenvalues are real, and these as complex numbers",
)
eig_values: Op = host(
    "eig_values", lambda args, attrs: eig_type(args, attrs)[1:2],
    lambda a: _complex(np.linalg.eigvals(a), a), _WRITTEN_LATE, eig.samples,
    "the eigenvalues of a finite matrix as complex numbers",
)
eig_vectors: Op = host(
    "eig_vectors", lambda args, attrs: eig_type(args, attrs)[1:],
    lambda a: tuple(_complex(each, a) for each in np.linalg.eig(a)), _WRITTEN_LATE, eig.samples,
    "the eigenvalues and eigenvectors of a finite matrix as complex numbers",
)


def _reflected(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (a,) = tensors(args)
    batch, rows, columns = matrix(a, "fc")
    return a, TensorType(a.dtype, (*batch, dims.minimum(rows, columns)))


def _raw(a: Any) -> Any:
    turned, factors = np.linalg.qr(a, mode="raw")
    return np.swapaxes(turned, -1, -2), factors


def _q_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    return qr_type(args[:1], attrs)[:1]


def _q(reflections: Any, factors: Any, *, full: bool) -> Any:
    from numpy.linalg import _umath_linalg  # the two functions that np.linalg.qr has for it

    return (_umath_linalg.qr_complete if full else _umath_linalg.qr_reduced)(reflections, factors)


qr_reflections: Op = host(
    "qr_reflections", _reflected, _raw, _WRITTEN_LATE, _MATRICES,
    "Householder's reflections of a matrix below the triangle that they leave, and their factors",
)
qr_product: Op = host(
    "qr_product", _q_type, _q, _WRITTEN_LATE, (
        *(Sample(_raw(s.args[0]), {"full": False}) for s in _MATRICES),
        Sample(_raw(_MATRICES[1].args[0]), {"full": True}),
    ),
    "the first columns of the product of `qr_reflections`, or all",
)

# -- determinants ----------------------------------------------------------------------------------


def _inverse(a: Any) -> Any:
    from numpy.linalg import _umath_linalg  # what np.linalg.inv calls before it looks for errors

    return _umath_linalg.inv(a)


inverse: Op = host(
    "inverse", square_like, _inverse, _WRITTEN_LATE, _SQUARES,
    "the inverse, of NaN where there is none",
)
all_cofactors: Op = host(
    "all_cofactors", square_like, cofactors_by_values, _WRITTEN_LATE, _SQUARES,
    "`cofactors`, by singular values, whatever the matrix",
)
