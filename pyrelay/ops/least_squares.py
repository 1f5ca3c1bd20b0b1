"""Pseudoinverses and least squares, computed as the decompositions of `ops/linalg`.

In: matrices of floats. Out: what the function of `np.linalg` gives. Where only those singular
values count as 0 that rounding left, derivatives are made of the inverse itself (Golub and Pereyra,
1973), which no equal singular values disturb; where others may be cut off, of singular vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.nodes import Const, OpCall
from pyrelay.ir.op import Op, Promotion, RelationError, Sample
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.linalg import (
    as_column,
    as_row,
    general,
    host,
    matrix,
    of_reals,
    product,
    real_of,
    svd,
    turned,
)
from pyrelay.ops.logic import equal, less, where
from pyrelay.ops.reduce import max_
from pyrelay.ops.relations import same_extent, tensors
from pyrelay.ops.samples import spread

Attributes = Mapping[str, Any]

_COMPLEX = general() + 1j * spread((3, 3), -0.5, 0.5, 7)


def _cut() -> Any:
    """A matrix of which two singular values, unequal, are less than 0.2 times the greatest."""
    u, v = (np.linalg.qr(spread((4, 4), -1.0, 1.0, k))[0] for k in (3, 5))
    return (u * [4.0, 3.0, 0.5, 0.2]) @ v


def _pinv_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    a, rcond = tensors(args)
    batch, rows, columns = matrix(a, "fc")
    if rcond.shape or rcond.dtype.kind != "f":
        raise RelationError(f"takes a float as rcond, and got {rcond}", arg=1)
    return (TensorType(a.dtype, (*batch, columns, rows)),)


def _cotangent_of_pinv(
    y: Handle, g: Handle, a: Handle, rcond: Handle, *, cut: bool
) -> tuple[Any, ...]:
    if cut:
        return _of_cut(turned(g), a, rcond), None
    other = turned(g)
    left = other - product(a, product(y, other))
    right = other - product(product(other, y), a)
    return (
        product(product(left, y), y, right=True)
        + product(y, product(y, right), left=True)
        - product(product(y, g, left=True), y, right=True),
        None,
    )


def _of_cut(g: Handle, a: Handle, rcond: Handle) -> Handle:
    """The same where singular values that are not 0 count as 0: the transposed inverse is u f(s) vt
    with an odd f, whose differences are divided by those of s where signs agree and by sums where
    they do not. g: of the transposed inverse."""
    u, s, vt = svd(a, full=False)
    greatest = max_(s, axes=(s.rank - 1,), keepdims=True)
    kept = less(greatest * rcond, s)
    f = where(kept, 1 / where(kept, s, 1), 0)
    size = dims.minimum(a.shape[-2], a.shape[-1])
    left, right = product(u, g, left=True), product(g, vt, right=True)
    inner = product(left, vt, right=True)
    alike = equal(as_column(kept), as_row(kept))
    apart = (as_column(f) - as_row(f)) / where(alike, 1, as_column(s) - as_row(s))
    differences = where(alike, -as_column(f) * as_row(f), apart)
    some = less(0, as_column(f) + as_row(f))
    sums = (as_column(f) + as_row(f)) / where(some, as_column(s) + as_row(s), 1)
    even, odd = inner + turned(inner), inner - turned(inner)
    both = product(u, 0.5 * (differences * even + sums * odd))
    found = product(both, vt)
    if a.shape[-2] != size:  # rows beyond the singular vectors
        found = found + product((right - product(u, inner)) * as_row(f * f), vt)
    if a.shape[-1] != size:
        found = found + product(u * as_row(f * f), left - product(inner, vt))
    return found


pinv: Op = host(
    "pinv", _pinv_type, lambda a, rcond, *, cut: np.linalg.pinv(a, rcond),
    of_reals(_cotangent_of_pinv),
    (
        *(Sample((a, 1e-15), {"cut": False}) for a in (general()[:, :2], general(2)[:, :2])),
        Sample((general(dtype="f4"), 1e-3), {"cut": False}),
        Sample((_COMPLEX, 1e-15), {"cut": False}, False),
        Sample((_cut(), 0.2), {"cut": True}), Sample((_cut()[:, :2], 0.2), {"cut": True}),
        Sample((_cut()[:2], 0.2), {"cut": True}),
    ),
    "the Moore-Penrose inverse; singular values of up to rcond times the greatest count as 0, and "
    "`cut` says that these may be more than those which rounding left",
    Promotion.NONE,
)

def _least_squares_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    a, b, rcond = tensors(args)
    batch, rows, columns = matrix(a, "fc")
    if batch or b.rank != 2:
        raise RelationError(f"takes one matrix and the columns of another, not {a} and {b}", arg=1)
    if same_extent(rows, b.shape[0]) is None or a.dtype != b.dtype:
        raise RelationError(f"cannot solve with {a} for {b}: their rows differ", arg=1)
    if rcond.shape or rcond.dtype.kind != "f":
        raise RelationError(f"takes a float as rcond, and got {rcond}", arg=2)
    real_ = real_of(a)
    return (
        TensorType(a.dtype, (columns, b.shape[1])), TensorType(real_, (b.shape[1],)),
        TensorType(types.i32, ()), TensorType(real_, (dims.minimum(rows, columns),)),
    )


def _least_squares(a: Any, b: Any, rcond: Any, *, cut: bool) -> tuple[Any, ...]:
    x, squares, rank, s = np.linalg.lstsq(a, b, rcond)
    return x, squares if squares.size else np.full(b.shape[1], np.nan, s.dtype), rank, s


def _cotangent_of_least_squares(
    y: Any, g: Any, a: Handle, b: Handle, rcond: Handle, *, cut: bool
) -> tuple[Any, ...]:
    """x is the pseudoinverse times b, and nothing that a spans is left of b - a x."""
    (x, _, _, _), (of_x, of_squares, _, of_s) = y, g
    inverse = pinv(a, rcond, cut=cut)
    of_a, _ = _cotangent_of_pinv(inverse, product(of_x, b, right=True), a, rcond, cut=cut)
    of_b = product(inverse, of_x, left=True)
    if not _is_zero(of_squares):
        misfit = (b - product(a, x)) * (2 * as_row(of_squares))
        of_a, of_b = of_a - product(misfit, x, right=True), of_b + misfit
    if not _is_zero(of_s):
        u, _, vt = svd(a, full=False)
        of_a = of_a + product(u * as_row(of_s), vt)
    return of_a, of_b, None


def _is_zero(g: Handle) -> bool:
    """Whether a cotangent was filled in for a result that has none."""
    made = next((let.rhs for let in reversed(g.builder.lets) if g.atom in let.outs), None)
    return isinstance(made, OpCall) and made.args[:1] == (Const(0.0, made.args[0].type),)


least_squares: Op = host(
    "least_squares", _least_squares_type, _least_squares, of_reals(_cotangent_of_least_squares),
    tuple(
        Sample((a, b, 1e-15), {"cut": False}, differentiable) for a, b, differentiable in (
            (general()[:, :2], spread((3, 2)), True), (general(), spread((3, 1)), False),
            (general()[:2], spread((2, 2)), False), (_COMPLEX, spread((3, 2)) + 0j, False),
        )
    ),
    "what np.linalg.lstsq gives, with NaN for the sums of squares where it leaves them out",
    Promotion.NONE,
)
