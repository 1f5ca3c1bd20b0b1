"""Products of matrices.

In: two arrays of at least two axes; leading axes are batch axes and broadcast. Out: their product,
either factor transposed in its last two axes if asked. (Vectors are expanded by the caller.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir import dims
from pyrelay.ir.build import Handle
from pyrelay.ir.op import Fusion, Promotion, RelationError, Sample, define
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.relations import broadcast, common_dtype, same_extent, tensors
from pyrelay.ops.samples import floats, integers


def _flags(a: bool = False, b: bool = False) -> dict[str, bool]:
    return {"transpose_a": a, "transpose_b": b}


def _matrix(ty: TensorType, arg: int, transposed: bool) -> tuple[Any, Any]:
    """Rows and columns of the last two axes, after transposition."""
    if ty.rank < 2:
        raise RelationError(f"multiplies matrices, not {ty}", arg=arg)
    rows, columns = ty.shape[-2:]
    return (columns, rows) if transposed else (rows, columns)


def _product_type(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    a, b = tensors(args)
    dtype = common_dtype((a, b))
    rows, inner = _matrix(a, 0, attrs["transpose_a"])
    other, columns = _matrix(b, 1, attrs["transpose_b"])
    if same_extent(inner, other) is None:
        turned = b.rank == 2 and columns == inner and not attrs["transpose_b"]
        raise RelationError(
            f"cannot multiply {a} and {b}", arg=1,
            note=f"the left one has {dims.show(inner)} columns, the right one "
            f"{dims.show(other)} rows.",
            hint="write '{arg}.T' to multiply by its transpose." if turned else None,
        )
    batch = broadcast((TensorType(dtype, a.shape[:-2]), TensorType(dtype, b.shape[:-2])))
    return (TensorType(dtype, (*batch, rows, columns)),)


def _product(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    with np.errstate(all="ignore"):
        found = np.matmul(left, right)
    return found if a.dtype == found.dtype else found.astype(a.dtype)  # of bfloat16 it is float32


def _cotangents(
    y: Handle, g: Handle, a: Handle, b: Handle, *, transpose_a: bool, transpose_b: bool
) -> tuple[Any, ...]:
    of_a = (
        matmul(b, g, **_flags(transpose_b, True)) if transpose_a
        else matmul(g, b, **_flags(False, not transpose_b))
    )
    of_b = (
        matmul(g, a, **_flags(True, transpose_a)) if transpose_b
        else matmul(a, g, **_flags(not transpose_a, False))
    )
    return of_a, of_b


matmul = define(
    "matmul", relation=_product_type, numpy=_product, fusion=Fusion.OPAQUE, schedule="matmul",
    vjp=_cotangents, promotion=Promotion.COMMON,
    samples=(
        floats((2, 3), (3, 4), attrs=_flags()), floats((3, 2), (3, 4), attrs=_flags(True)),
        floats((2, 3), (4, 3), attrs=_flags(False, True)),
        floats((3, 2), (4, 3), attrs=_flags(True, True)),
        floats((5, 2, 3), (3, 4), attrs=_flags()),
        floats((5, 1, 2, 3), (2, 4, 3), attrs=_flags(False, True)),
        integers((2, 3), (3, 2), attrs=_flags()),
        Sample((np.array([[1 + 2j, 3j]]), np.array([[1.5], [2 - 1j]])), _flags()),
        Sample((np.array([[True, False]]), np.array([[True], [True]])), _flags()),
        Sample((np.zeros((2, 0)), np.zeros((0, 3))), _flags()),
    ),
    doc="the matrix product; `transpose_a`, `transpose_b` transpose a factor first",
)
