"""Rows added into columns by the threads of a block: which kernels, and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.lower.kernels.kernel import LocalArray, Store, statements
from pyrelay.lower.passes.column_blocks import column_blocks
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"
RNG = np.random.default_rng(6)


def kernels(function: Any, *args: Any) -> list[Any]:
    """The kernels of a program that keep small arrays."""
    made = plan(lowered(inferred(function, args).module, "fuse"), TARGET).kernels
    return [
        k.code for k in made if k.code is not None and any(
            isinstance(s, Store) and isinstance(s.array, LocalArray)
            for s in statements(k.code.body)
        )
    ]


def standardised(x: Any) -> Any:
    """Each column to mean 0 and deviation 1."""
    middle = x.mean(axis=0)
    return (x - middle) / np.sqrt(((x - middle) ** 2).mean(axis=0) + 1e-5)


def columns(x: Any, k: Any) -> Any:
    e = np.exp(x - x.max(axis=0))
    return (
        x.sum(axis=0), e / e.sum(axis=0), standardised(x), k.sum(axis=0), k.min(axis=0),
        (k > 0).any(axis=0), (k > -3).all(axis=0), x.prod(axis=0),
    )


def test_kernels_over_columns_are_shared() -> None:
    x, k = RNG.normal(size=(700, 5)), RNG.integers(-4, 4, (700, 5))
    found = [column_blocks(kernel) for kernel in kernels(columns, x, k)]
    assert len(found) >= 4
    assert all(found)
    # Chunks of rows, then their sums.
    assert [len(f.rows) for f in map(column_blocks, kernels(lambda x: x.sum(0), x)) if f] == [1, 1]


def test_what_a_row_tells_the_next_one_is_not_dealt_out() -> None:
    def running(x: Any) -> Any:
        return np.cumsum(x, axis=0), x.sum(axis=0)

    for kernel in kernels(running, np.ones((700, 5))):
        found = column_blocks(kernel)
        assert found is None or found.rows


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("shape", [
    (600, 5), (1, 1), (3, 1), (1300, 1), (40, 33), (530, 130), (9, 300), (0, 4), (4, 0),
    (20, 3, 7),
])  # fmt: skip
def test_reductions_of_columns(shape: tuple[int, ...]) -> None:
    x = RNG.normal(size=shape)
    k = RNG.integers(-4, 4, shape)
    if not shape[0]:
        mine, theirs = pyrelay.jit(lambda x: x.sum(axis=0), device=ON)(x), x.sum(axis=0)
        np.testing.assert_array_equal(mine, theirs)
        return
    for mine, theirs in zip(pyrelay.jit(columns, device=ON)(x, k), columns(x, k), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
        assert mine.dtype == theirs.dtype


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "c16", "c8", "f2", "i4"])
def test_columns_of_every_type(dtype: str) -> None:
    x = np.abs(RNG.normal(size=(530, 6)) * 4).astype(dtype)

    def sums(x: Any) -> Any:
        return x.sum(axis=0), (x * x).mean(axis=0)

    tolerance = 5e-2 if dtype == "f2" else 2e-5
    for mine, theirs in zip(pyrelay.jit(sums, device=ON)(x), sums(x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
        assert mine.dtype == theirs.dtype


@needs_compiler
@pytest.mark.slow
def test_gradients_of_columns_and_nans() -> None:
    def loss(x: Any, w: Any) -> Any:
        return (standardised(np.tanh(x * w)) ** 3).sum(axis=0).max()

    x, w = RNG.normal(size=(600, 5)), RNG.normal(size=5)
    mine, theirs = (pyrelay.grad(loss, (0, 1), **on)(x, w) for on in ({"device": ON}, {}))
    for each, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-9, atol=1e-12)
    x[77, 2], x[5, 3] = np.nan, -np.inf
    extremes = pyrelay.jit(lambda x: (x.max(axis=0), x.min(axis=0), x.sum(axis=0)), device=ON)
    for each, other in zip(extremes(x), (x.max(0), x.min(0), x.sum(0)), strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-12)
