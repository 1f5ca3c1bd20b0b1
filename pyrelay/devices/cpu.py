"""The CPU as the planner sees it: kernels for `kernel_compiler`, our own matrix products."""

from __future__ import annotations

from pyrelay.devices import matmul
from pyrelay.ir.types import DType
from pyrelay.lower.emit_numba import emit
from pyrelay.lower.target import MatmulKernel, Target


def _matmul(
    dtype: DType, transpose_a: bool, transpose_b: bool, batch_rank: int
) -> MatmulKernel:
    form = matmul.Form(transpose_a, transpose_b, batch_rank)
    return MatmulKernel(
        matmul.matmul_kernel(dtype, form), matmul.ROW_UNIT, matmul.COLUMN_UNIT,
        round(matmul.picoseconds_per_product(dtype)),
    )


TARGET = Target(emit, _matmul)
