"""Rows written and added at indices on a GPU: in the order of Python, whoever does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.lower.planning.instructions import Launch
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.gpu.test_graphs import Sized
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"
pytestmark = needs_compiler


def scattered(x: Any, rows: Any, i: Any, table: Any, k: Any, j: Any, flat: Any) -> Any:
    """Rows added and written, with repeated indices; elements at two indices; masks."""
    x[i] = rows
    np.add.at(table, (k, j), flat)
    counts = np.zeros(7)
    np.add.at(counts, k, flat)
    return counts, flat[flat > 0.2] * 2.0, np.nonzero(table > 0)[1]


def arguments() -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    i, k = rng.integers(-6, 6, 300), rng.integers(-7, 7, 300)
    return (
        rng.normal(size=(6, 5)), rng.normal(size=(300, 5)), i, rng.normal(size=(7, 4)), k,
        rng.integers(0, 4, 300), rng.normal(size=300),
    )  # fmt: skip


@pytest.mark.slow
def test_repeated_indices_are_done_in_the_order_of_python() -> None:
    mine, plain = arguments(), arguments()
    got, wanted = pyrelay.jit(scattered, device=ON)(*mine), scattered(*plain)
    for a, b in zip((*got, *mine), (*wanted, *plain), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_gradients_of_rows_that_were_picked() -> None:
    def loss(table: Any, i: Any) -> Any:
        return (table[i] ** 2).sum()

    table, i = np.sin(np.arange(12 * 150.0)).reshape(12, 150), np.array([3, 3, -1, 0, 11, 3])
    mine = pyrelay.grad(loss, device=ON)(table, i)
    wanted = 2 * table * np.bincount(i % 12, minlength=12)[:, None]
    np.testing.assert_allclose(mine, wanted, rtol=1e-14)


def test_an_index_outside_of_its_axis_is_pythons_error() -> None:
    def put(x: Any, v: Any, i: Any) -> None:
        x[i] = v

    with pytest.raises(IndexError) as caught:
        pyrelay.jit(put, device=ON)(np.zeros(4), np.ones(5), np.array([0, 3, -9, 1, 7]))
    assert str(caught.value) == "index -9 is out of bounds for axis 0 with size 4"
    assert caught.value.span.line == put.__code__.co_firstlineno + 1


def test_a_mask_is_a_scan_and_a_scatter_of_the_library() -> None:
    module = lowered(inferred(lambda x: x[x > 0], (np.ones(9),)).module, "fuse", on="cuda_emulator")
    names = [kernel.name for kernel in plan(module, TARGET).kernels if kernel.code is None]
    # One that goes through all indices in order, and three that share many.
    assert names == [*["cumsum"] * 3, *["scatter_update"] * 4]


def many(x: Any, k: Any, j: Any) -> Any:
    """More indices than one block goes through: rows added and written, masks, histograms."""
    table, last, small = np.zeros((13, 3)), np.zeros((13, 5)), np.zeros(13, np.uint8)
    np.add.at(table, k, x[:, None] * np.arange(3.0))
    last[k, j] = x
    np.add.at(small, k, 1)
    counts, weights = np.histogram(x, 7)[0], np.histogram(x, 7, weights=x)[0]
    return table, last, small, counts, weights, np.bincount(k), x[x > 0.3]


@pytest.mark.slow
def test_many_indices_are_shared_and_give_the_same_in_every_run(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    x, k, j = rng.normal(size=9000), rng.integers(0, 13, 9000), rng.integers(-5, 5, 9000)
    function = pyrelay.jit(many, device=ON)
    first, second = function(x, k, j), function(x, k, j)
    for a, b, wanted in zip(first, second, many(x, k, j), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, wanted, rtol=1e-12, atol=1e-12)
        assert a.dtype == wanted.dtype

    def beyond(x: Any, k: Any) -> Any:
        np.add.at(x, k, 1.0)

    with pytest.raises(IndexError, match="index 12 is out of bounds for axis 0 with size 12"):
        pyrelay.jit(beyond, device=ON)(np.zeros(12), k)


@pytest.mark.slow
def test_as_many_blocks_as_fill_a_gpu_share_a_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Sized()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)

    def added(k: Any) -> Any:
        counts = np.zeros(10, np.int64)
        np.add.at(counts, k, 1)
        return counts

    function = pyrelay.jit(added, device=ON)
    found = []
    for n in (100, 20_000):
        k = np.arange(n) % 10
        driver.items.clear()
        np.testing.assert_array_equal(function(k), np.full(10, n // 10))
        found.append([items for items in driver.items if items not in (n, 10)])
    # A block for each row; or one for every 4096 indices.
    assert found == [[], [5]]


@needs_compiler
@pytest.mark.parametrize("rows", [64, 700, 3000])
def test_integers_are_counted_in_any_order(rows: int) -> None:
    """In shared memory, a copy for each warp or one for all, and in the array itself."""
    def counted(i: Any, x: Any, start: Any) -> Any:
        y = start.copy()
        np.add.at(y, i, x)
        return y

    rng = np.random.default_rng(rows)
    for dtype in (np.int64, np.uint64, np.int32):
        for shape in ((), (3,)):
            i = rng.integers(-rows, rows, 5000)
            x = rng.integers(0, 9, (5000, *shape)).astype(dtype)
            start = rng.integers(0, 9, (rows, *shape)).astype(dtype)
            compiled = pyrelay.jit(counted, device=ON)
            np.testing.assert_array_equal(compiled(i, x, start), counted(i, x, start))
    i[1234] = rows
    with pytest.raises(IndexError, match=f"index {rows} is out of bounds for axis 0"):
        compiled(i, x, start)


def test_sums_of_large_integers_carry_to_their_upper_halves() -> None:
    """Shared memory adds 32 bits at once; sums wrap round at 64 as NumPy's do."""
    def counted(i: Any, x: Any) -> Any:
        y = np.zeros(5, x.dtype)
        np.add.at(y, i, x)
        return y

    rng = np.random.default_rng(3)
    i = rng.integers(0, 5, 6000)
    for dtype, values in (
        (np.int64, rng.integers(-(2**63), 2**63 - 1, 6000)),
        (np.int64, rng.choice([-1, 1, 2**32 - 1, 2**32, -(2**32)], 6000)),
        (np.uint64, np.full(6000, 2**32 - 1)), (np.int32, rng.integers(-(2**31), 2**31, 6000)),
    ):
        x = values.astype(dtype)
        np.testing.assert_array_equal(pyrelay.jit(counted, device=ON)(i, x), counted(i, x))


# -- what is added is computed there ---------------------------------------------------------------


def launches(function: Any, *args: Any) -> int:
    """How many kernels the plan launches."""
    found: int = sum(
        isinstance(i, Launch) for f in plan(
            lowered(inferred(function, args).module, "fuse", on=ON), TARGET
        ).functions for i in f.code
    )
    return found


def binned(x: Any) -> Any:
    return np.histogram(x, bins=9, range=(-2.0, 2.0))[0]


def test_bins_of_a_histogram_are_not_in_memory() -> None:
    compiled = pyrelay.jit(binned, device=ON)
    for n in (0, 1, 100, 9000):
        x = np.random.default_rng(n).normal(size=n)
        x[::7] = np.nan
        np.testing.assert_array_equal(compiled(x), binned(x))
    assert launches(binned, x) == 2  # zeros, and all else
    text = str(compiled.code(x))
    assert "scatter_add_kernel" in text
    assert "Buffer<const i64> indices0" not in text


def weighed(k: Any, x: Any, scale: Any) -> Any:
    """Scalars, and an array that is read and added to."""
    y = np.arange(7)
    z = k * scale + x * y[2]
    np.add.at(y, np.where(z > 0, z % 7, 0), np.where(z > 0, z, 0))
    return y


def test_what_is_computed_reads_arrays_as_they_were_before() -> None:
    rng = np.random.default_rng(8)
    k, x = rng.integers(0, 90, 5000), rng.integers(-9, 9, 5000)
    np.testing.assert_array_equal(
        pyrelay.jit(weighed, device=ON)(k, x, 3), weighed(k, x, 3)
    )
    assert launches(weighed, k, x, 3) == 2


def test_what_others_read_or_what_may_raise_is_a_kernel_of_its_own() -> None:
    def also_read(x: Any) -> Any:
        counts, k = np.zeros(5, np.int64), (x * 2.0).astype(np.int64)
        np.add.at(counts, k % 5, k)
        return counts, k[-3:]

    def raising(x: Any, table: Any) -> Any:
        counts = np.zeros(5, np.int64)
        k = (x * 2.0).astype(np.int64)
        np.add.at(counts, table[k], k)
        return counts, counts

    def summed(x: Any, k: Any) -> Any:
        counts = np.zeros(5, np.int64)
        z = k + k.sum()
        np.add.at(counts, np.where(z > 2, z % 5, 0), np.where(z > 2, z, 1))
        return counts, counts

    x = np.random.default_rng(0).uniform(0, 4, 5000)
    k = np.arange(5000)
    assert launches(summed, x, k) > 2
    for function, args in (
        (also_read, (x,)), (raising, (x, np.arange(8) % 5)), (summed, (x, k)),
    ):
        found, wanted = pyrelay.jit(function, device=ON)(*args), function(*args)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_place_that_is_computed_and_lies_outside_is_pythons_error() -> None:
    def counted(k: Any) -> Any:
        counts = np.zeros(5, np.int64)
        z = k * 2
        np.add.at(counts, np.where(z > 2, z, 0), np.where(z > 2, z, 1))
        return counts

    k = np.zeros(5000, np.int64)
    assert launches(counted, k) == 2
    k[4321], k[4990] = 7, 9
    with pytest.raises(IndexError, match="index 14 is out of bounds for axis 0 with size 5") as e:
        pyrelay.jit(counted, device=ON)(k)
    assert e.value.span.line == counted.__code__.co_firstlineno + 3


def test_in_loops_and_branches_the_same_is_added() -> None:
    def rounds(x: Any, n: int) -> Any:
        counts = np.zeros(5, np.int64)
        for k in range(n):
            np.add.at(counts, (x + k).astype(np.int64) % 5, (x > k).astype(np.int64))
        if n > 2:
            np.add.at(counts, (x * 3.0).astype(np.int64) % 5, (x > 0.5).astype(np.int64))
        return counts

    x = np.random.default_rng(1).uniform(0, 4, 5000)
    compiled = pyrelay.jit(rounds, device=ON)
    for n in (0, 3):
        np.testing.assert_array_equal(compiled(x, n), rounds(x, n))
