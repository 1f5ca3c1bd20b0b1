"""Decompositions and inverses of matrices, computed by NumPy: by its loops, called by the program
itself (`lower/planning/plan_ufuncs`), or through the host gate.

In: matrices of floats in the last two axes; leading axes are batch axes. Out: what the function of
`np.linalg` gives. The derivatives are made of ops again, so that every order exists. The functions
that read one triangle of a symmetric matrix have derivatives by that triangle, the other's are 0.
Eigenvalues and singular values that are equal: the derivative of their vectors leaves out the
rotation among them (0 in place of 1 / 0), which is right for functions that do not depend on it.

Rules: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008); Murray, "Differentiation of the Cholesky decomposition" (2016); Townsend,
"Differentiating the singular value decomposition" (2016); Walter and Lehmann, "Algorithmic
differentiation of linear algebra functions" (2013), for qr; Boeddeker et al., "On the computation
of complex-valued gradients with application to statistically optimum beamforming" (2017), for eig.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.errors import GradientError
from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.op import (
    Effect,
    Fusion,
    Op,
    Promotion,
    RelationError,
    Sample,
    define,
)
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.arithmetic import conj, imag, make_complex, real
from pyrelay.ops.contract import matmul
from pyrelay.ops.index import iota
from pyrelay.ops.logic import equal, less_equal, masked, where
from pyrelay.ops.reduce import argmax, sum_
from pyrelay.ops.relations import broadcast, common_dtype, require_kind, same_extent, tensors
from pyrelay.ops.samples import spread
from pyrelay.ops.shape import concatenate, expand_dims, slice_, transpose

Attributes = Mapping[str, Any]

#: Rows of a matrix for which elimination by element costs less than a call of the library. The
#: attribute `small`, of the ops in `SIZED`, says that a matrix is known to have 1 to this many.
SMALL = 32
SIZED = frozenset(["solve", "inv", "det", "slogdet", "cofactors", "cholesky"])


# -- types -----------------------------------------------------------------------------------------


def matrix(ty: TensorType, kinds: str = "f") -> tuple[tuple[Extent, ...], Extent, Extent]:
    """Batch axes, rows, columns of an operand."""
    if ty.rank < 2:
        said = f"{ty.rank}-dimensional array given. Array must be at least two-dimensional"
        raise RelationError(
            f"takes matrices, and got {ty}", arg=0, raises=(np.linalg.LinAlgError, said)
        )
    require_kind((ty,), kinds)
    return ty.shape[:-2], ty.shape[-2], ty.shape[-1]


def _square(ty: TensorType, kinds: str = "f") -> tuple[tuple[Extent, ...], Extent]:
    """Batch axes and rows of a square operand."""
    batch, rows, columns = matrix(ty, kinds)
    if same_extent(rows, columns) is None:
        said = "Last 2 dimensions of the array must be square"
        raise RelationError(
            f"takes square matrices, and got {ty}", arg=0, raises=(np.linalg.LinAlgError, said)
        )
    return batch, rows


def square_like(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    """The type of a square matrix's matrix."""
    (a,) = tensors(args)
    _square(a, "fc")
    return (a,)


def real_of(ty: TensorType) -> Any:
    """The dtype of absolute values."""
    return {"c64": types.f32, "c128": types.f64}.get(ty.dtype.name, ty.dtype)


def of_reals(rule: Any) -> Any:
    """A derivative that is written for real matrices; an error for complex ones."""
    def vjp(y: Any, g: Any, a: Handle, *others: Handle, **attrs: Any) -> tuple[Any, ...]:
        if a.dtype.kind == "c":
            raise GradientError(
                "this decomposition has no derivative by a complex matrix.",
                span=a.builder.span,
                hints=("write it with the real matrix [[re, -im], [im, re]]",),
            )
        found: tuple[Any, ...] = rule(y, g, a, *others, **attrs)
        return found

    return vjp


def host(
    name: str, relation: Any, numpy: Any, vjp: Any, samples: Any, doc: str,
    promotion: Promotion = Promotion.FLOAT,
) -> Op:
    def meaning(*args: Any, small: bool = False, **attrs: Any) -> Any:
        with np.errstate(all="ignore"):
            return numpy(*args, **attrs)

    return define(
        name, relation=relation, numpy=meaning, fusion=Fusion.OPAQUE, vjp=vjp, schedule="host",
        promotion=promotion, effect=Effect.RAISES, samples=samples, doc=doc,
    )


# -- handles ---------------------------------------------------------------------------------------


def turned(x: Handle) -> Handle:
    """The last two axes exchanged."""
    order = (*range(x.rank - 2), x.rank - 1, x.rank - 2)
    result: Handle = transpose(x, axes=order)
    return result


def product(a: Handle, b: Handle, left: bool = False, right: bool = False) -> Handle:
    """a @ b; `left` and `right` say which factor is transposed."""
    result: Handle = matmul(a, b, transpose_a=left, transpose_b=right)
    return result


def as_row(w: Handle) -> Handle:
    result: Handle = expand_dims(w, axes=(w.rank - 1,))
    return result


def as_column(w: Handle) -> Handle:
    result: Handle = expand_dims(w, axes=(w.rank,))
    return result


def _lower(x: Handle, offset: int = 0) -> Handle:
    """The triangle on and below a diagonal, 0 elsewhere."""
    b = x.builder
    row = expand_dims(b.call(iota, size=x.shape[-2], dtype=types.i64), axes=(1,))
    column = expand_dims(b.call(iota, size=x.shape[-1], dtype=types.i64), axes=(0,))
    return masked(less_equal(column, row + offset), x)


def _of_triangle(s: Handle, upper: bool = False) -> Handle:
    """The derivative by the triangle that is read, from that by independent elements."""
    both = s + turned(s)
    if upper:
        return both - _lower(both) + (_lower(s) - _lower(s, -1))
    return _lower(both, -1) + (_lower(s) - _lower(s, -1))


def _inverse_differences(w: Handle, v: Handle) -> Handle:
    """1 / (v[j] - w[i]), 0 where they are equal."""
    difference = as_row(v) - as_column(w)
    same = equal(difference, 0)
    result: Handle = where(same, 0, 1 / where(same, 1, difference))
    return result


def _columns(x: Handle, start: Extent, size: Extent) -> Handle:
    """Some of the last axis."""
    starts = (*(0 for _ in x.shape[:-1]), start)
    result: Handle = slice_(x, starts=starts, sizes=(*x.shape[:-1], size), steps=(1,) * x.rank)
    return result


# -- samples ---------------------------------------------------------------------------------------


def general(*batch: int, n: int = 3, dtype: str = "f8") -> Any:
    return (spread((*batch, n, n), -1.0, 1.0, 5) + 2.0 * np.eye(n)).astype(dtype)


def _definite(*batch: int, n: int = 3) -> Any:
    m = spread((*batch, n, n), -1.0, 1.0, 3)
    return m @ np.swapaxes(m, -1, -2) + np.diag(np.arange(1.0, n + 1))


_SQUARES = (
    Sample((general(),)), Sample((general(2, n=2),)), Sample((general(dtype="f4"),)),
    Sample((np.zeros((0, 0)),), {}, False), Sample((np.array([[2, 1], [1, 3]]),)),
)
_COMPLEX = Sample((general() + 1j * spread((3, 3), -0.5, 0.5, 7),))
_HERMITIAN = (_COMPLEX.args[0] @ np.conj(_COMPLEX.args[0].T) + np.eye(3),)


def _sized(*samples: Sample) -> tuple[Sample, ...]:
    """Samples for an op that says whether its matrices are small."""
    def small(sample: Sample) -> bool:
        return 0 < np.shape(sample.args[0])[-1] <= SMALL

    return tuple(
        Sample(s.args, {**s.attrs, "small": small(s)}, s.differentiable) for s in samples
    )


# -- linear systems --------------------------------------------------------------------------------


def _system(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    a, b = tensors(args)
    batch, rows = _square(a, "fc")
    if b.rank < 2 or same_extent(rows, b.shape[-2]) is None:
        raise RelationError(f"cannot solve with {a} for {b}: their rows differ", arg=1)
    dtype = common_dtype((a, b))
    outer = broadcast((TensorType(dtype, batch), TensorType(dtype, b.shape[:-2])))
    return (TensorType(dtype, (*outer, rows, b.shape[-1])),)


def _cotangents_of_solve(
    y: Handle, g: Handle, a: Handle, b: Handle, *, small: bool
) -> tuple[Any, ...]:
    of_b = solve(turned(a), g, small=small)
    return -product(of_b, y, right=True), of_b


solve: Op = host(
    "solve", _system, np.linalg.solve, _cotangents_of_solve,
    _sized(
        Sample((general(), spread((3, 2)))), Sample((general(2), spread((3, 1)))),
        Sample((general(n=2), spread((4, 2, 3)))),
        Sample((_COMPLEX.args[0], spread((3, 2)) + 0j)),
    ),
    "x with a @ x = b, b of at least two axes",
)


def _cotangent_of_inv(y: Handle, g: Handle, a: Handle, *, small: bool) -> tuple[Any, ...]:
    return (-product(product(y, g, left=True), y, right=True),)


inv: Op = host(
    "inv", square_like, np.linalg.inv, _cotangent_of_inv, _sized(*_SQUARES, _COMPLEX), "the inverse"
)


# -- determinants ----------------------------------------------------------------------------------


def _number(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (a,) = tensors(args)
    batch, _ = _square(a, "fc")
    return (TensorType(a.dtype, batch),)


#: Product of the norms of a matrix and its inverse (roots of sums of squares) up to which this
#: gives the cofactors.
WELL_CONDITIONED = 1e6


def _cofactors(a: Any) -> Any:
    """det(a) times the transposed inverse, also where that does not exist: by singular values
    there, and where the inverse is inexact."""
    wide = a.astype(np.result_type(a, np.float64))
    try:
        inverse = np.linalg.inv(wide)
    except np.linalg.LinAlgError:
        return cofactors_by_values(wide).astype(a.dtype)
    norms = (np.linalg.norm(m, axis=(-2, -1)) for m in (wide, inverse))
    if not np.all(math.prod(norms) < WELL_CONDITIONED):
        return cofactors_by_values(wide).astype(a.dtype)
    whole = np.linalg.det(wide)[..., None, None]
    return (whole * np.swapaxes(inverse, -1, -2)).astype(a.dtype)


def cofactors_by_values(a: Any) -> Any:
    """The cofactors by singular values, whatever the matrix."""
    u, s, v = np.linalg.svd(a)
    size = s.shape[-1]
    kept = np.where(np.eye(size, dtype=bool), 1.0, s[..., None, :])
    others = np.prod(kept, axis=-1)
    sign = (np.linalg.det(u) * np.linalg.det(v))[..., None, None]
    found = sign * ((np.conj(u) * others[..., None, :]) @ np.conj(v))
    return found.astype(a.dtype)


def _cotangent_of_cofactors(y: Handle, g: Handle, a: Handle, *, small: bool) -> tuple[Any, ...]:
    """At regular matrices only: it divides by the determinant."""
    total = expand_dims(
        sum_(g * y, axes=(a.rank - 2, a.rank - 1), keepdims=False), axes=(a.rank - 2, a.rank - 1)
    )
    whole = expand_dims(det(a, small=small), axes=(a.rank - 2, a.rank - 1))
    return ((total * y - product(product(y, g, right=True), y)) / whole,)


cofactors: Op = host(
    "cofactors", square_like, _cofactors, _cotangent_of_cofactors, _sized(*_SQUARES[:3], _COMPLEX),
    "the derivative of the determinant by each element",
)


def _cotangent_of_det(y: Handle, g: Handle, a: Handle, *, small: bool) -> tuple[Any, ...]:
    return (expand_dims(g, axes=(a.rank - 2, a.rank - 1)) * cofactors(a, small=small),)


det: Op = host(
    "det", _number, np.linalg.det, _cotangent_of_det,
    _sized(*_SQUARES, _COMPLEX, Sample((np.array([[1.0, 2.0], [2.0, 4.0]]),), {}, False)),
    "the determinant; its derivative holds at singular matrices too",
)


def _sign_and_logarithm(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (a,) = tensors(args)
    batch, _ = _square(a, "fc")
    return TensorType(a.dtype, batch), TensorType(real_of(a), batch)


def _cotangent_of_slogdet(y: Any, g: Any, a: Handle, *, small: bool) -> tuple[Any, ...]:
    if g[1] is None:
        return (None,)
    return (expand_dims(g[1], axes=(a.rank - 2, a.rank - 1)) * turned(inv(a, small=small)),)


slogdet: Op = host(
    "slogdet", _sign_and_logarithm, lambda a: tuple(np.linalg.slogdet(a)),
    of_reals(_cotangent_of_slogdet),
    _sized(*_SQUARES[:3], Sample(_COMPLEX.args, {}, False)),
    "the sign and the logarithm of the determinant",
)

# -- factors ---------------------------------------------------------------------------------------


def _cholesky(a: Any, *, upper: bool) -> Any:
    return np.linalg.cholesky(a, upper=upper)


def _cotangent_of_cholesky(
    y: Handle, g: Handle, a: Handle, *, upper: bool, small: bool
) -> tuple[Any, ...]:
    low, moved = (turned(y), turned(g)) if upper else (y, g)
    inner = product(low, moved, left=True)
    half = _lower(inner, -1) + 0.5 * (_lower(inner) - _lower(inner, -1))
    inverse = inv(low, small=small)  # one system, and products, which take less than another
    both = product(product(inverse, half, left=True), inverse)
    return (_of_triangle(both, upper),)


cholesky: Op = host(
    "cholesky", square_like, _cholesky, of_reals(_cotangent_of_cholesky),
    _sized(
        Sample((_definite(),), {"upper": False}), Sample((_definite(2, n=2),), {"upper": False}),
        Sample((_definite(),), {"upper": True}), Sample(_HERMITIAN, {"upper": False}, False),
        Sample(_HERMITIAN, {"upper": True}, False),
    ),
    "the triangular factor of a positive definite matrix, of which one triangle is read",
)


def qr_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (a,) = tensors(args)
    batch, rows, columns = matrix(a, "fc")
    inner = rows if attrs["full"] else dims.minimum(rows, columns)
    return (
        TensorType(a.dtype, (*batch, rows, inner)), TensorType(a.dtype, (*batch, inner, columns)),
    )


def _cotangent_of_qr(y: Any, g: Any, a: Handle, *, full: bool) -> tuple[Any, ...]:
    """a = q [u | v] with a square u: the last columns are q v, and q is the factor of the first.

    Where there are at least as many rows as columns, v has no columns.
    """
    if full:
        raise GradientError(
            "the complete q of a matrix with more rows than columns has no derivative.",
            span=a.builder.span,
            notes=("only its first columns follow from the matrix; the others may be any that "
                   "complete them to a basis",),
            hints=("write np.linalg.qr(a), or np.linalg.qr(a, mode='r') for r alone",),
        )
    (q, r), (of_q, of_r) = y, g
    size, columns = r.shape[-2], a.shape[-1]
    rest = dims.add(columns, dims.multiply(-1, size))
    of_last = _columns(of_r, size, rest)
    of_q = of_q + product(_columns(a, size, rest), of_last, right=True)
    first = _of_tall(q, _columns(r, 0, size), of_q, _columns(of_r, 0, size))
    return (concatenate(first, product(q, of_last), axis=a.rank - 1),)


def _of_tall(q: Handle, r: Handle, of_q: Handle, of_r: Handle) -> Handle:
    inner = product(r, of_r, right=True) - product(of_q, q, left=True)
    mirrored = _lower(inner) + turned(_lower(inner, -1))
    return turned(solve(r, turned(of_q + product(q, mirrored)), small=False))


qr: Op = host(
    "qr", qr_type, lambda a, *, full: tuple(np.linalg.qr(a, "complete" if full else "reduced")),
    of_reals(_cotangent_of_qr),
    (
        *(Sample((a,), {"full": False}) for a in (
            general(), general(2)[..., :2], general()[:2], general(dtype="f4"),
        )),
        Sample(_COMPLEX.args, {"full": False}, False),
        Sample((general(2)[..., :2],), {"full": True}, False),
    ),
    "the orthogonal and the upper triangular factor, as thin as they can be; `full`, of a matrix "
    "with more rows than columns: all columns of the first",
)

# -- eigenvalues and singular values ---------------------------------------------------------------


def eigh_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (a,) = tensors(args)
    batch, rows = _square(a, "fc")
    return TensorType(real_of(a), (*batch, rows)), a


def _cotangent_of_eigh(y: Any, g: Any, a: Handle, *, upper: bool) -> tuple[Any, ...]:
    (w, v), (of_w, of_v) = y, g
    turns = _inverse_differences(w, w) * product(v, of_v, left=True)
    whole = product(product(v, turns) + v * as_row(of_w), v, right=True)
    return (_of_triangle(whole, upper),)


eigh: Op = host(
    "eigh", eigh_type, lambda a, *, upper: tuple(np.linalg.eigh(a, "U" if upper else "L")),
    of_reals(_cotangent_of_eigh),
    (
        Sample((_definite(),), {"upper": False}), Sample((_definite(2, n=2),), {"upper": True}),
        Sample((np.eye(3),), {"upper": False}, False), Sample(_HERMITIAN, {"upper": True}, False),
    ),
    "eigenvalues and eigenvectors of a symmetric matrix, of which one triangle is read",
)


def svd_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (a,) = tensors(args)
    batch, rows, columns = matrix(a, "fc")
    inner = dims.minimum(rows, columns)
    left, right = (rows, columns) if attrs["full"] else (inner, inner)
    return (
        TensorType(a.dtype, (*batch, rows, left)), TensorType(real_of(a), (*batch, inner)),
        TensorType(a.dtype, (*batch, right, columns)),
    )


def _cotangent_of_svd(y: Any, g: Any, a: Handle, *, full: bool) -> tuple[Any, ...]:
    """With u = [u1 | u2] and v = [v1 | v2], of which u1 and v1 belong to the singular values."""
    (u, s, vt), (of_u, of_s, of_vt) = y, g
    v, of_v = turned(vt), turned(of_vt)
    size = s.shape[-1]
    u1, of_u1 = _columns(u, 0, size), _columns(of_u, 0, size)
    v1, of_v1 = _columns(v, 0, size), _columns(of_v, 0, size)
    differences = _inverse_differences(s * s, s * s)
    zero = equal(s, 0)
    inverse = where(zero, 0, 1 / where(zero, 1, s))
    of_left = product(u1, of_u1, left=True)
    of_right = product(v1, of_v1, left=True)
    inner = differences * (of_left - turned(of_left)) * as_row(s)
    inner = inner + differences * (of_right - turned(of_right)) * as_column(s)
    found = product(product(u1, inner) + u1 * as_row(of_s), v1, right=True)
    beside_u = (of_u1 - product(u1, of_left)) * as_row(inverse)
    beside_v = (of_v1 - product(v1, of_right)) * as_row(inverse)
    if full:
        beside_u = beside_u - _crossed(u, u1, of_u) * as_row(inverse)
        beside_v = beside_v - _crossed(v, v1, of_v) * as_row(inverse)
    return (found + product(beside_u, v1, right=True) + product(u1, beside_v, right=True),)


def _crossed(u: Handle, u1: Handle, of_u: Handle) -> Handle:
    """u2 (u1' of_u2)': the columns beyond the singular values turn against the others."""
    size, whole = u1.shape[-1], u.shape[-1]
    rest = dims.add(whole, dims.multiply(-1, size))
    u2, of_u2 = _columns(u, size, rest), _columns(of_u, size, rest)
    return product(u2, product(of_u2, u1, left=True))


svd: Op = host(
    "svd", svd_type, lambda a, *, full: tuple(np.linalg.svd(a, full)),
    of_reals(_cotangent_of_svd),
    (
        Sample((general(),), {"full": False}), Sample((general(2)[..., :2],), {"full": False}),
        Sample((general()[:2],), {"full": False}), Sample((np.eye(2),), {"full": True}, False),
        Sample((general()[:2],), {"full": True}, False),
        Sample(_COMPLEX.args, {"full": False}, False),
    ),
    "left singular vectors, singular values, right singular vectors as rows",
)


def eig_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (a,) = tensors(args)
    batch, rows = _square(a, "fc")
    dtype = types.c64 if a.dtype.name in ("f32", "c64") else types.c128
    shape = (*batch, rows)
    return types.PY_BOOL, TensorType(dtype, shape), TensorType(dtype, (*shape, rows))


def _eig(a: Any) -> Any:
    w, v = np.linalg.eig(a)
    complex_type = np.result_type(a.dtype, np.complex64)
    real = a.dtype.kind != "c" and not np.any(np.imag(w))
    return bool(real), w.astype(complex_type), v.astype(complex_type)


def _cotangent_of_eig(y: Any, g: Any, a: Handle) -> tuple[Any, ...]:
    """With vectors of length 1 whose greatest component is real, as LAPACK gives them."""
    (_, w, v), (_, of_w, of_v) = y, g
    along = sum_(of_v * v, axes=(v.rank - 2,), keepdims=False)
    free = of_v - conj(v) * as_row(real(along)) + _of_phases(v, imag(along))
    inner = _inverse_differences(w, w) * product(v, free, left=True)
    found = solve(turned(v), product(inner, v, right=True) + turned(v * as_row(of_w)), small=False)
    return (found if a.dtype.kind == "c" else real(found),)


def _of_phases(v: Handle, turn: Handle) -> Handle:
    """What the greatest component of each column receives, as it is turned to be real."""
    b, axis = v.builder, v.rank - 2
    sizes = real(v * conj(v))
    place = argmax(sizes, axes=(axis,), keepdims=True)
    rows = expand_dims(b.call(iota, size=v.shape[axis], dtype=types.i64), axes=(1,))
    greatest = equal(rows, place)
    phase = make_complex(0, -as_row(turn) / where(greatest, real(v), 1))
    result: Handle = where(greatest, phase, 0)
    return result


eig: Op = host(
    "eig", eig_type, _eig, _cotangent_of_eig,
    (*_SQUARES[:3], Sample((np.array([[0.0, 1.0], [-1.0, 0.0]]),), {}, False), _COMPLEX),
    "whether all eigenvalues are real, the eigenvalues and the eigenvectors as complex numbers",
)
