"""Running sums and products on a GPU: chunks, lines side by side, directions, kinds of number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_scans
from pyrelay.devices.cuda_library import TARGET
from pyrelay.ir.types import DTYPES
from pyrelay.lower.plan import plan
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
def test_products_of_floats_take_no_factors_together() -> None:
    """A chunk's product would overflow where the running one does not."""
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


def test_a_scan_is_two_launches_and_nothing_waits_for_the_host() -> None:
    module = lowered(inferred(lambda x: np.cumsum(x), (np.ones(9),)).module, "fuse")
    made = plan(module, TARGET)
    assert [kernel.name for kernel in made.kernels] == ["cumsum", "cumsum"]
    module = lowered(inferred(lambda x: np.cumprod(x), (np.ones(9),)).module, "fuse")
    assert len(plan(module, TARGET).kernels) == 1
