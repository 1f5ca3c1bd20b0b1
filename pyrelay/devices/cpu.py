"""The CPU as a device: kernels for `kernel_compiler`, our own matrix products.

In: nothing. Out: `DEVICE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay.devices import attention, convolution, matmul
from pyrelay.devices.base import Device
from pyrelay.devices.entry import Executable
from pyrelay.ir.types import DType
from pyrelay.lower.emit_numba import emit
from pyrelay.lower.encode import encode
from pyrelay.lower.instructions import Plan
from pyrelay.lower.target import FORWARD, AttentionKernel, ConvolutionKernel, MatmulKernel, Target


def _matmul(dtype: DType, axes: int) -> MatmulKernel:
    return MatmulKernel(
        matmul.matmul_kernel(dtype), matmul.ROW_UNIT, matmul.COLUMN_UNIT,
        round(matmul.picoseconds_per_product(dtype)),
        matmul.FINISHING_OPERANDS if dtype.kind == "f" else 0,
    )


def _convolution(dtype: DType, what: str, channels_last: bool) -> ConvolutionKernel:
    return ConvolutionKernel(
        convolution.convolution_kernel(dtype, what, channels_last), convolution.PIXELS,
        convolution.ROWS, convolution.COLUMNS, round(matmul.picoseconds_per_product(dtype)),
        matmul.FINISHING_OPERANDS if what == FORWARD and not channels_last else 0,
    )


def _attention(dtype: DType) -> AttentionKernel:
    return AttentionKernel(
        attention.attention_kernel(dtype), attention.ROWS,
        round(matmul.picoseconds_per_product(dtype)), matmul.FINISHING_OPERANDS,
    )


def _load(plan: Plan) -> Callable[..., Any]:
    return Executable(encode(plan)).call


TARGET = Target(emit, _matmul, _convolution, _attention)
DEVICE = Device("cpu", TARGET, _load, native=True)
