"""Long rows in parts: a kernel per phase, and as many blocks as fill a GPU."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from lowered import function_of, reference, run

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.ir import dims, interp
from pyrelay.ir.nodes import Function
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DType, TensorType, f32, f64
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.passes.cooperation import cooperation
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler

M, N, K = (dims.Symbol(name) for name in "mnk")
m, n, k = (dims.of(s) for s in (M, N, K))
random = np.random.default_rng(2)


def reduced(x: Any, *axes: int, name: str = "sum", keepdims: bool = True) -> Any:
    return OPS[name](x, axes=axes, keepdims=keepdims)


def softmax(b: Any, x: Any) -> Any:
    e = OPS["exp"](x - reduced(x, 1, name="max"))
    return e / reduced(e, 1)


def deviation(b: Any, x: Any) -> Any:
    d = x - reduced(x, 1) * 0.001
    return OPS["sqrt"](reduced(d * d, 1, keepdims=False)), reduced(x, 1, name="any", keepdims=False)


def places(b: Any, x: Any) -> Any:
    return tuple(reduced(x, 1, name=name, keepdims=False) for name in ("argmax", "argmin"))


def place_of_all(b: Any, x: Any) -> Any:
    return reduced(OPS["exp"](x), 0, 1, name="argmax", keepdims=False)


def sums_of_planes(b: Any, x: Any, w: Any) -> Any:
    return reduced(OPS["exp"](x * w), 1, 2, keepdims=False)


def group(body: Any, *shapes: Any, dtype: DType = f32) -> Function:
    symbols = [s for s in (M, N, K) if any(s in dims.symbols(d) for e in shapes for d in e)]
    return function_of([TensorType(dtype, s) for s in shapes], body, symbols)


BODIES = {
    "softmax": (softmax, [(m, n)], [(1, 30_000), (3, 9000), (5, 7), (0, 4)]),
    "deviation": (deviation, [(m, n)], [(2, 20_000), (3, 1)]),
    "places": (places, [(m, n)], [(2, 20_000), (4, 5)]),
    "place of all": (place_of_all, [(m, n)], [(20, 2000), (1, 1)]),
    "planes": (sums_of_planes, [(m, n, k), (1, n, 1)], [(2, 300, 70), (2, 3, 9000), (1, 2, 3)]),
}


@pytest.mark.parametrize("name", [
    "place of all",
    *(pytest.param(name, marks=pytest.mark.slow) for name in BODIES if name != "place of all"),
])  # fmt: skip
def test_parts_of_rows_compute_what_the_interpreter_computes(name: str) -> None:
    body, shapes, sizes = BODIES[name]
    function = group(body, *shapes)
    for extents in sizes:
        known = dict(zip((M, N, K), extents, strict=False))
        args = [
            random.standard_normal([dims.evaluate(d, known) for d in s]).astype(np.float32)
            for s in shapes
        ]
        found = run(function, args, long=True), run(function, args, chunks=3, long=True)
        for a, b, c in zip(*found, reference(function, args), strict=True):
            np.testing.assert_array_equal(a, b)  # the result depends on no thread count
            np.testing.assert_allclose(a, c, rtol=2e-5, atol=1e-5)


@pytest.mark.slow
def test_the_first_extreme_counts_and_before_it_the_first_nan() -> None:
    x = np.zeros((3, 20_000))
    x[0, [5, 19_000]] = 1.0
    x[1, [9000, 15_000]], x[1, 3] = np.nan, 7.0
    x[2] = -np.inf
    most, least = run(group(places, (m, n), dtype=f64), [x], long=True)
    np.testing.assert_array_equal(most, [5, 9000, 0])
    np.testing.assert_array_equal(least, [0, 9000, 0])


def blocks(function: Function, *extents: int) -> list[int]:
    """Over how many blocks a GPU shares each kernel of rows as long as this."""
    known = dict(zip(function.dims, extents, strict=True))
    lowering = kernelise(function, splits=True)
    kernels = lowering.kernels
    if lowering.long is not None and dims.evaluate(lowering.long.when, known):
        kernels = lowering.long.kernels
    assert all(cooperation(each) for each in kernels if dims.evaluate(each.extent, known) > 600)
    return [dims.evaluate(each.extent, known) for each in kernels]


def test_as_many_blocks_as_fill_a_gpu() -> None:
    rows = group(lambda b, x: reduced(x, 1, keepdims=False), (m, n))
    assert blocks(rows, 8, 1_000_000) == [1952, 8]
    assert blocks(rows, 512, 16_384) == [2048, 512]
    assert blocks(rows, 513, 1_000_000) == [513]
    assert blocks(rows, 8, 16_383) == [8]
    assert blocks(group(softmax, (m, n)), 8, 131_072) == [256, 256, 256]
    assert blocks(group(places, (m, n)), 1, 10_000_000) == [1024, 1024, 1]
    assert blocks(group(place_of_all, (m, n)), 1, 10_000_000) == [611, 611, 1]
    assert blocks(group(places, (1, n)), 10_000_000) == [611, 611, 1]


def test_columns_of_few_columns_are_cut_into_chunks_of_rows() -> None:
    columns = group(lambda b, x: reduced(x, 0, keepdims=False), (m, n))
    lowering = kernelise(columns, splits=True)
    assert lowering.long is None
    known = {M: 1_000_000, N: 8}
    assert [dims.evaluate(each.extent, known) for each in lowering.kernels] == [2045, 1]


def test_whole_arrays_have_as_many_chunks_as_fill_a_device() -> None:
    function = group(lambda b, x: reduced(x, 0, 1, keepdims=False), (m, n))
    for size, chunks in ((2**13, 8), (2**15, 32), (2**20, 1024), (2**24, 1024), (2**28, 2**14)):
        known = interp.bind_extents(function, [np.broadcast_to(np.float32(0), (1, size))], {})
        first, *_ = kernelise(function, splits=True).kernels
        assert dims.evaluate(first.extent, known) == chunks


def test_few_elements_of_several_arrays_are_the_last_kernels() -> None:
    function = group(
        lambda b, x, y: reduced(x * x, 0, 1, keepdims=False) + reduced(y * y, 0, 1, keepdims=False),
        (m, n), (k, m),
    )
    for shape, chunks in (((3, 4, 5), 0), ((60, 70, 50), 5), ((600, 700, 5), 600)):
        known = dict(zip((M, N, K), shape, strict=True))
        kernels = kernelise(function, splits=True).kernels
        assert dims.evaluate(kernels[0].extent, known) == chunks
        assert all(dims.evaluate(kernel.extent, known) >= 0 for kernel in kernels)


def test_shares_of_a_whole_array_are_bounded() -> None:
    function = group(lambda b, x: OPS["exp"](x) / reduced(OPS["exp"](x), 0, 1), (m, n))
    for size in (2**20, 2**34):
        known = interp.bind_extents(function, [np.broadcast_to(np.float32(0), (1, size))], {})
        first, *_ = kernelise(function).kernels
        assert dims.evaluate(first.extent, known) == min(math.ceil(size / 16_384), 4096)


def test_whole_arrays_that_are_read_again_have_chunks_for_all_multiprocessors() -> None:
    function = group(lambda b, x: x / reduced(OPS["exp"](x), 0, 1), (m, n))
    for size, chunks in ((1000, 1), (10_000, 10), (2**20, 256), (2**24, 1024), (2**34, 4096)):
        known = interp.bind_extents(function, [np.broadcast_to(np.float32(0), (1, size))], {})
        first, second = kernelise(function, splits=True).kernels
        assert dims.evaluate(first.extent, known) == chunks
        assert dims.evaluate(second.extent, known) == chunks


@needs_compiler
@pytest.mark.slow
def test_the_extents_of_a_call_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    function = pyrelay.jit(lambda x: x.argmax(axis=1), device="cuda_emulator")
    of_all = pyrelay.jit(lambda x: (x.argmin(), x.sum()), device="cuda_emulator")
    counts = []
    for shape in ((4, 50), (2, 20_000), (600, 50)):
        x, before = random.standard_normal(shape).astype(np.float32), driver.launched
        np.testing.assert_array_equal(function(x), x.argmax(axis=1))
        counts.append(driver.launched - before)
        np.testing.assert_allclose(of_all(x), (x.argmin(), x.sum()), rtol=1e-5)
    assert counts == [1, 3, 1]


class Overwriting(Counted):
    """Has the first elements of a vector become what the extreme is, behind the first launch."""

    def launch(self, function: Any, items: int, words: Any, stream: int) -> None:
        super().launch(function, items, words, stream)
        if self.launched == 1:
            made = np.full(16_384, 5, self.dtype)
            ctypes.memmove(words[4], made.ctypes.data, made.nbytes)

    dtype = "f4"


@needs_compiler
@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_chunks_without_the_extreme_are_not_read_again(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = pyrelay.jit(lambda x: x.argmax(), device="cuda_emulator")
    x = np.zeros(40_000, dtype)
    x[[20_000, 30_000]] = 5
    assert function(x) == 20_000
    driver = Overwriting()
    driver.dtype = dtype
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    fresh = pyrelay.jit(lambda x: x.argmax(), device="cuda_emulator")
    assert fresh(x) == 20_000
    assert driver.launched == 3


@needs_compiler
@pytest.mark.parametrize(
    "dtype", ["f4", *(pytest.param(each, marks=pytest.mark.slow) for each in ("f8", "i4"))]
)
def test_extremes_are_found_wherever_they_are(dtype: str) -> None:
    function = pyrelay.jit(lambda x: (x.argmax(), x.argmin()), device="cuda_emulator")
    x = random.integers(-50, 50, 70_000).astype(dtype)
    cases = [x, np.zeros_like(x), np.where(np.arange(x.size) == x.size - 1, 99, x).astype(dtype)]
    if dtype != "i4":
        signs = np.where(np.arange(x.size) % 2, -0.0, 0.0).astype(dtype)
        with_nans = x.copy()
        with_nans[[40_000, 65_000]] = np.nan
        cases += [signs, with_nans, np.full_like(x, np.nan), np.full_like(x, -np.inf)]
    for each in cases:
        assert function(each) == (each.argmax(), each.argmin())
