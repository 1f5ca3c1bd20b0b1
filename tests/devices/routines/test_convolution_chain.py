"""The kernel for convolutions of single channels between such of one tap."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pyrelay import nn
from pyrelay.devices.compiler import native
from pyrelay.devices.routines.convolution_chain import chain_kernel
from pyrelay.devices.routines.convolution_first import forward_kernel
from pyrelay.ir.types import DTYPES, DType
from tests.devices.running_kernels import run

f32, f64 = DTYPES["f32"], DTYPES["f64"]

#: Adds what belongs to its row and the number of its column to each element: one that is given
#: other rows or columns than those that it is to finish leaves other sums.
_FINISHER = """\
from pyrelay.devices.compiler.vocabulary import *


def kernel(block, begin, end):
    product, line, places = param_i64(block, 1), param_i64(block, 4), param_i64(block, 5)
    for row in range(begin, end):
        for j in range(param_i64(block, 2), param_i64(block, 3)):
            value = load_ordered_{t}(product, row * line + j)
            value = value + load_ordered_{t}(places, row) + {t}(j)
            store_ordered_{t}(product, row * line + j, value)
    return 0
"""

#: Entries, channels (0 for no first layer), channels between, outputs; extents, taps, stride,
#: dilation, zeros before and after, by rows and columns; bands.
CASES = [
    (2, 5, 30, 7, (13, 11), (3, 3), (1, 1), (1, 1), (1, 1), 3),
    (1, 3, 24, 5, (20, 17), (3, 3), (2, 2), (1, 1), (1, 1), 4),
    (2, 0, 12, 5, (13, 11), (3, 3), (1, 1), (1, 1), (1, 1), 3),
    (1, 0, 9, 3, (16, 19), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    (1, 200, 50, 9, (6, 9), (5, 2), (1, 3), (2, 1), (4, 0), 2),
    (1, 7, 230, 40, (5, 6), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, 4, 6, 3, (1, 33), (1, 5), (1, 2), (1, 2), (0, 4), 1),
    (1, 2, 30, 2, (64, 40), (3, 3), (1, 1), (1, 1), (2, 2), 2),
    (1, 2, 3, 2, (4, 5), (3, 3), (1, 1), (1, 1), (1, 1), 9),
    (1, 2, 60, 2, (90, 30), (3, 3), (1, 1), (1, 1), (1, 1), 1),
]


def check(case: tuple, dtype: DType, bits: int | None) -> None:
    """Runs the kernel in three ranges, and compares it with the layers one by one."""
    entries, channels, between, outputs, extents, taps, stride, step, before, bands = case
    rng = np.random.default_rng(0)

    def made(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype.numpy)

    x = made(entries, channels or between, *extents)
    w1, w2 = made(between, channels, 1, 1), made(between, 1, *taps)
    w3 = made(outputs, between, 1, 1)
    places = [made(entries * n) for n in (between, between, outputs)]

    def finished(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        columns = np.arange(y[0, 0].size).reshape(y.shape[2:])
        return y + rows.reshape(*y.shape[:2], 1, 1) + columns

    wide = finished(nn.conv(x, w1), places[0]) if channels else x
    single = nn.conv(
        wide, w2, stride=stride, padding=before, dilation=step, groups=between
    )
    wanted = finished(nn.conv(finished(single, places[1]), w3), places[2])
    finisher = native.kernel_address(_FINISHER.format(t=dtype.name))
    axes = zip(extents, taps, single.shape[2:], stride, step, before, strict=True)
    out = np.full(wanted.size + 32, 7, dtype.numpy)
    ends = [0, 0] if not channels else [finisher, 1]
    operands = places if channels else places[1:]
    total = entries * bands
    cuts = [total * piece // 3 for piece in range(4)]
    run(
        chain_kernel(dtype, bits), x, w1 if channels else 0, w2, w3, out[16:], entries, channels,
        between, outputs, bands, *itertools.chain(*axes),
        native.kernel_address(forward_kernel(dtype, bits)), *ends, finisher, 1, finisher, 1,
        *operands, ranges=list(itertools.pairwise(cuts)),
    )
    assert (out[:16] == 7).all()
    assert (out[16 + wanted.size :] == 7).all()
    scale = float(np.abs(wanted).max())
    tolerance = 2e-5 if dtype is f32 else 1e-12
    np.testing.assert_allclose(
        out[16 : 16 + wanted.size].reshape(wanted.shape), wanted, atol=tolerance * scale,
        rtol=0, err_msg=f"{case}",
    )


@pytest.mark.parametrize(("dtype", "bits"), [
    (f32, None), pytest.param(f64, None, marks=pytest.mark.slow),
    pytest.param(f32, 128, marks=pytest.mark.slow), pytest.param(f32, 512, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_chain_is_its_layers_one_after_another(dtype: DType, bits: int | None) -> None:
    for case in CASES:
        check(case, dtype, bits)
