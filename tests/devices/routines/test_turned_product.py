"""Products whose vectors lie along the outputs: what they read; their values, and that they are
taken, are tested by convolutions."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.codegen import kernel_machine
from pyrelay.devices.routines import turned_product
from pyrelay.devices.routines.convolution import convolution_kernel
from pyrelay.ir.types import DTYPES
from tests.devices.running_kernels import run


def test_a_tile_reads_each_value_once_and_is_not_unrolled() -> None:
    """Of 6 positions, of 4 and of 2: a value of the image for each, two vectors of the panel, and a
    product for each of both; of 6 where half of a panel counts, one. Unrolled, values were read too
    early, and spilled."""
    module = ir.Module("", "")
    turned_product.turned_product_f32x8.write(module, "product")
    optimised = llvm.parse_assembly(str(module))
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    passes = llvm.create_pass_builder(kernel_machine(), options)
    passes.getModulePassManager().run(optimised, passes)
    text = str(optimised)
    assert len(re.findall(r"call .{0,40}@llvm\.fmuladd\.v8f32", text)) == 2 * (6 + 4 + 2) + 6
    assert len(re.findall(r"= load float", text)) == 6 + 4 + 2 + 6


@pytest.mark.parametrize(("stride", "extent"), [(1, 5), (1, 7), (2, 7)])
def test_weights_beyond_the_image_are_no_terms(stride: int, extent: int) -> None:
    """As in plain NumPy, where such a tap has no slice: infinite weights reach no other output."""
    source = convolution_kernel(DTYPES["f32"], "forward", False)
    x = np.ones((2, 40, extent, extent), np.float32)
    w = np.ones((32, 40, 3, 3), np.float32)
    w[:, :, 0, :] = np.inf
    out = (extent - 1) // stride + 1
    y = np.zeros((2, 32, out, out), np.float32)
    axes = (1, 1, 1, 1, 1, 0, *(extent, 3, out, stride, 1, 1) * 2)
    run(source, x, w, y, 2, 1, 40, 32, *axes, 0, 0, ranges=[(0, 4)])
    sees = np.arange(out) * stride > 0
    assert np.isinf(y[:, :, sees]).all()
    seen = np.where(np.isin(np.arange(out) * stride, (0, extent - 1)), 2, 3)
    np.testing.assert_array_equal(y[1, 31, 0], 40 * 2 * seen)


@pytest.mark.parametrize("ranges", [[(0, 12)], [(0, 3), (3, 7), (7, 12)]])
def test_weights_that_stay_are_those_of_the_outputs_at_hand(ranges: list[tuple[int, int]]) -> None:
    """Of 17 x 17 positions, more than a piece, and 96 outputs: a unit's may begin amid a panel."""
    source = convolution_kernel(DTYPES["f32"], "forward", False)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 16, 35, 35)).astype(np.float32)
    w = rng.standard_normal((96, 16, 3, 3)).astype(np.float32)
    y = np.full((1, 96, 17, 17), np.nan, np.float32)
    axes = (1, 1, 1, 1, 1, 0, *(35, 3, 17, 2, 1, 0) * 2)
    run(source, x, w, y, 1, 1, 16, 96, *axes, 0, 0, ranges=ranges)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    expected = np.einsum("nchwij,ocij->nohw", windows, w)
    np.testing.assert_allclose(y, expected, atol=1e-4)
