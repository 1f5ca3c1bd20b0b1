"""Running sums, products and extremes on a GPU: chunks, lines side by side, directions, kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu import cuda_scans
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DTYPES
from pyrelay.lower.planning.plan import plan
from pyrelay.ops.running import RUNNING
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import emulate, needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"


def running(x: Any, m: Any, k: Any, z: Any, s: Any) -> Any:
    return (
        np.cumsum(x), np.cumsum(m, axis=0), np.cumsum(m, axis=1), np.cumprod(1 + m / 99, axis=0),
        np.cumsum(k), np.cumprod(k % 3 + 1, axis=0), np.cumsum(z), np.cumsum(s, axis=1),
    )


@needs_compiler
@pytest.mark.slow
def test_scans_of_several_chunks_along_every_axis() -> None:
    """2048 elements are a chunk of neighbours, 64 one of lines side by side."""
    rng = np.random.default_rng(1)
    args = (
        rng.normal(size=5000), rng.normal(size=(150, 3)), rng.integers(-9, 9, 2049),
        rng.normal(size=70) + 1j, rng.normal(size=(2, 130, 2)).astype(np.float32),
    )  # fmt: skip
    got = pyrelay.jit(running, device=ON)(*args)
    for mine, theirs in zip(got, running(*args), strict=True):
        assert mine.dtype == theirs.dtype
        tolerance = 1e-4 if theirs.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
    again = pyrelay.jit(running, device=ON)(*args)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(got, again, strict=True))


@needs_compiler
@pytest.mark.slow
def test_gradients_run_from_the_other_end() -> None:
    def loss(x: Any, m: Any) -> Any:
        return (np.cumsum(x) ** 2).sum() + (np.cumprod(m, axis=1) * np.cumsum(m, axis=0)).sum()

    x, m = np.sin(np.arange(2100.0)), 1 + np.cos(np.arange(5 * 70.0)).reshape(5, 70) / 50
    mine = pyrelay.grad(loss, argnums=(0, 1), device=ON)(x, m)
    for a, b in zip(mine, pyrelay.grad(loss, argnums=(0, 1))(x, m), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@needs_compiler
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (0, 3)])
def test_scans_of_nothing_and_of_one(shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    for axis in range(x.ndim):
        got = pyrelay.jit(lambda x, axis=axis: np.cumsum(x, axis=axis), device=ON)(x)
        np.testing.assert_array_equal(got, np.cumsum(x, axis=axis))


@needs_compiler
def test_zeros_keep_their_sign_and_nan_and_inf_spread() -> None:
    x = np.array([-0.0, -0.0, 1.0, -1.0, np.inf, 2.0, -np.inf, 3.0])
    running_sum = pyrelay.jit(np.cumsum, device=ON)
    got = running_sum(x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, np.cumsum(x))
    assert np.signbit(got[:2]).all()
    many = np.arange(5000.0)  # of three chunks, without rounding
    np.testing.assert_array_equal(running_sum(many), np.cumsum(many))


@needs_compiler
def test_products_of_floats_neither_overflow_nor_vanish_in_parts() -> None:
    """A part's product would overflow where the running one does not."""
    x = np.array([1e-200, 1e-100, *[1e200] * 2, *[1e-200] * 2] * 20)
    got = pyrelay.jit(np.cumprod, device=ON)(x)
    np.testing.assert_allclose(got, np.cumprod(x), rtol=1e-12)


@needs_compiler
def test_a_line_of_several_tiles_carries_on() -> None:
    """As where there are lines enough: a chunk longer than a tile."""
    kernels = cuda_scans.scan("cumsum", DTYPES["i64"], True)
    x = np.arange(2 * 5000).reshape(2, 5000)
    y, totals = np.zeros_like(x), np.zeros(1, np.int64)
    emulate([kernels.scan], (x, totals, y, 2, 5000, 1, 5000, 1), items=[2])
    np.testing.assert_array_equal(y, x[:, ::-1].cumsum(axis=1)[:, ::-1])


def test_a_scan_is_two_launches_or_one_and_nothing_waits_for_the_host() -> None:
    module = lowered(inferred(lambda x: np.cumsum(x), (np.ones(9),)).module, "fuse")
    made = plan(module, TARGET)
    assert [kernel.name for kernel in made.kernels] == ["cumsum"] * 3
    for dtype, kernels in ((np.float64, 2), (np.float32, 2), (complex, 1)):
        module = lowered(inferred(lambda x: np.cumprod(x), (np.ones(9, dtype),)).module, "fuse")
        assert len(plan(module, TARGET).kernels) == kernels


def extremes(x: Any, m: Any, k: Any, b: Any) -> Any:
    return (
        np.maximum.accumulate(x), np.minimum.accumulate(m, axis=0), np.fmax.accumulate(m, axis=1),
        np.minimum.accumulate(k), np.bitwise_or.accumulate(k), np.bitwise_xor.accumulate(k),
        np.logical_and.accumulate(b), np.logical_or.accumulate(m > 2, axis=1),
        np.logaddexp.accumulate(m, axis=0), np.multiply.accumulate(k % 5 - 2),
    )  # fmt: skip


@needs_compiler
@pytest.mark.slow
def test_extremes_so_far_are_taken_in_groups() -> None:
    """Of several chunks, with a NaN in the second one, and with lines that lie side by side."""
    rng = np.random.default_rng(2)
    x, m = rng.normal(size=4500), rng.normal(size=(130, 3)).astype(np.float32)
    x[2100] = np.nan
    k, b = rng.integers(0, 1 << 40, 2050), np.arange(2060) < 2055
    for mine, theirs in zip(
        pyrelay.jit(extremes, device=ON)(x, m, k, b), extremes(x, m, k, b), strict=True
    ):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@needs_compiler
@pytest.mark.slow
def test_gradients_of_extremes_so_far_are_taken_in_groups_too() -> None:
    def loss(x: Any, m: Any, w: Any) -> Any:
        return (np.maximum.accumulate(x) * w).sum() + (np.minimum.accumulate(m) ** 2).sum()

    rng = np.random.default_rng(3)
    args = np.round(rng.normal(size=4500), 2), rng.normal(size=(130, 3)), rng.normal(size=4500)
    mine = pyrelay.grad(loss, argnums=(0, 1), device=ON)(*args)
    for a, b in zip(mine, pyrelay.grad(loss, argnums=(0, 1))(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@needs_compiler
def test_steps_of_recurrences_keep_their_order_over_chunks_and_tiles() -> None:
    kernels = cuda_scans.scan("steady_scan", DTYPES["f64"], True)
    rng = np.random.default_rng(4)
    a, b = rng.uniform(-1, 1, (2, 2, 5000))
    y, totals = np.zeros_like(a), np.zeros((2 * 3, 2))
    for reverse in (0, 1):
        for chunk, chunks in ((1300, 4), (5000, 1)):
            call = (a, b, totals, y, 2, 5000, 1, chunk, reverse)
            emulate(
                [kernels.totals, kernels.scan], call, call, items=[2 * (chunks - 1), 2 * chunks]
            )
            order = slice(None, None, -1 if reverse else 1)
            expected = OPS["linear_scan"].numpy(a[:, order], b[:, order], axis=1, reverse=False)
            np.testing.assert_allclose(y, expected[:, order], rtol=1e-9)


def test_every_scan_that_may_be_grouped_is() -> None:
    names = "steady_scan", "linear_scan", "cumprod", "cumsum"
    for name in (*names, *(op.name for op in RUNNING.values())):
        dtype = DTYPES["i64" if "bitwise" in name else "f64"]
        assert cuda_scans.scan(name, dtype, True).most > 1
        assert cuda_scans.scan(name, dtype, False).most > 1
    assert not cuda_scans.scan("linear_scan", DTYPES["c64"], True).totals
