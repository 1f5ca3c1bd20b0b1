"""The CPU as the planner sees it: kernels for `kernel_compiler`, our own matrix products."""

from __future__ import annotations

from pyrelay.devices import convolution, matmul
from pyrelay.ir.types import DType
from pyrelay.lower.emit_numba import emit
from pyrelay.lower.target import ConvolutionKernel, MatmulKernel, Target


def _matmul(dtype: DType) -> MatmulKernel:
    return MatmulKernel(
        matmul.matmul_kernel(dtype), matmul.ROW_UNIT, matmul.COLUMN_UNIT,
        round(matmul.picoseconds_per_product(dtype)),
    )


def _convolution(dtype: DType, what: str, channels_last: bool) -> ConvolutionKernel:
    return ConvolutionKernel(
        convolution.convolution_kernel(dtype, what, channels_last), convolution.PIXELS,
        convolution.ROWS, convolution.COLUMNS, round(matmul.picoseconds_per_product(dtype)),
    )


TARGET = Target(emit, _matmul, _convolution)
