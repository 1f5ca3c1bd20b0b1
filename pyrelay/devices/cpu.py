"""The CPU as a device: kernels for `kernel_compiler`, our own matrix products.

In: nothing. Out: `DEVICE`.
"""

from __future__ import annotations

from pyrelay.devices.base import Device, Loaded
from pyrelay.devices.choices import DEFAULT, Choices
from pyrelay.devices.compiler.native import parts_of
from pyrelay.devices.routines import (
    attention,
    attention_gradient,
    convolution,
    convolution_chain,
    convolution_choice,
    convolution_first,
    matmul,
    sorting,
    true_places,
)
from pyrelay.devices.runtime.entry import Executable
from pyrelay.devices.runtime.ufunc_loops import has_loop
from pyrelay.ir.types import DType
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import Plan
from pyrelay.lower.planning.target import (
    FORWARD,
    AttentionGradientKernel,
    AttentionKernel,
    ChainKernel,
    ConvolutionKernel,
    LineSort,
    MatmulKernel,
    PanelKernel,
    PlacesKernel,
    Target,
)
from pyrelay.lower.text.emit_kernel import emit


def target(choices: Choices = DEFAULT) -> Target:
    """What the planner asks of the CPU, for programs compiled with some choices."""

    def product(dtype: DType, axes: int) -> MatmulKernel:
        source = matmul.matmul_kernel(dtype, None, choices)
        time = round(matmul.picoseconds_per_product(dtype))
        if dtype.kind != "f":
            return MatmulKernel(source, matmul.ROW_UNIT, matmul.COLUMN_UNIT, time)
        lanes = matmul.panel_lanes(dtype)
        panels = PanelKernel(
            *matmul.panel_kernels(dtype, None, choices), 2 * lanes, lanes,
            matmul.parts_by_name(["pack"], dtype, choices),
            matmul.parts_by_name(["panel_row"], dtype, choices),
        )
        return MatmulKernel(
            source, matmul.ROW_UNIT, matmul.COLUMN_UNIT, time, matmul.FINISHING_OPERANDS, panels,
            matmul.ways(dtype, choices),
        )

    def attended(dtype: DType) -> AttentionKernel:
        return AttentionKernel(
            attention.attention_kernel(dtype, None, choices), choices.targets,
            round(matmul.picoseconds_per_product(dtype)), matmul.FINISHING_OPERANDS, keeps=True,
            scales=True, ways=matmul.parts_by_name(attention.WAYS, dtype, choices),
        )

    def attended_gradient(dtype: DType) -> AttentionGradientKernel:
        return AttentionGradientKernel(
            attention_gradient.attention_gradient_kernel(dtype, None, choices),
            attention_gradient.ROWS, attention_gradient.COLUMNS,
            round(matmul.picoseconds_per_product(dtype)), matmul.FINISHING_OPERANDS,
            ways=matmul.parts_by_name(attention_gradient.WAYS, dtype, choices),
        )

    return Target(
        emit, product, _convolution, attended, points_inside=True, parts=True, chooses=True,
        resumes=True, attention_gradient=attended_gradient, chain=_chain, line_sort=_line_sort,
        places=PlacesKernel(true_places.places_kernel(), true_places.PICOSECONDS),
        has_loop=has_loop,
    )


def _line_sort(op: str, dtype: DType) -> LineSort:
    room = 8 if op == "argsort" else max(dtype.size, 4)
    return LineSort(sorting.line_sort(op, dtype), room, sorting.PICOSECONDS[op])


def _convolution(dtype: DType, what: str, channels_last: bool) -> ConvolutionKernel:
    first = what == FORWARD and not channels_last
    return ConvolutionKernel(
        convolution.convolution_kernel(dtype, what, channels_last), convolution.PIXELS,
        convolution.ROWS, convolution_first.OUTPUTS if first else convolution.COLUMNS,
        round(matmul.picoseconds_per_product(dtype)), matmul.FINISHING_OPERANDS if first else 0,
        evenly=first, calls=convolution_choice.calls(dtype, what, channels_last),
    )


def _chain(dtype: DType) -> ChainKernel:
    source = convolution_chain.chain_kernel(dtype)
    return ChainKernel(
        source, convolution_chain.ROOM, convolution_chain.CHANNELS, matmul.FINISHING_OPERANDS,
        tuple(parts_of(source).values()),
    )


def _load(plan: Plan) -> Loaded:
    encoded = encode(plan)
    return Loaded(Executable(encoded).call, encoded)


TARGET = target()
DEVICE = Device("cpu", TARGET, _load, native=True)
