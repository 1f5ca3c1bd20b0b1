"""Chunks of sums that a block shares: which loops have longer ones, and the same sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.nodes import KernelCall
from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import Compute, For, Kernel, Literal, Local, statements
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.passes.long_chunks import CHUNK, chunks_of, long_chunks
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"
ZERO, SIZE = Literal(0, i64), Local(i64)


def row_sums(x: Any) -> Any:
    return x.sum(axis=1)


def whole_sum(x: Any) -> Any:
    return x.sum()


def kernels(function: Any, *shape: int, splits: bool = True) -> list[Kernel]:
    module = lowered(inferred(function, (np.ones(shape, np.float32),)).module, "fuse", on=ON)
    calls = (x.rhs for x in module.main.body.lets if isinstance(x.rhs, KernelCall))
    return [k for call in calls for k in kernelise(call.function, splits=splits).kernels]


def sizes(kernel: Kernel) -> list[int]:
    found = (chunks_of(s) for s in statements(kernel.body) if isinstance(s, For))
    return [chunks.size for chunks in found if chunks is not None]


def test_rows_and_parts_of_whole_arrays_have_chunks_for_a_block() -> None:
    for function in (row_sums, whole_sum):
        made, alone = (
            [size for k in kernels(function, 64, 5000, splits=splits) for size in sizes(k)]
            for splits in (True, False)
        )
        assert made
        assert set(made) == {CHUNK}
        assert set(alone) <= {1024}


def chunked(size: int = 8, stop: Any = SIZE) -> tuple[For, For]:
    index, k, times, end, last = (Local(i64) for _ in range(5))
    inner = For(k, times, last, ())
    return inner, For(index, ZERO, Local(i64), (
        Compute(times, "multiply", (index, Literal(size, i64))),
        Compute(end, "add", (times, Literal(size, i64))),
        Compute(last, "minimum", (end, stop)), inner,
    ))  # fmt: skip


def test_chunks_say_where_they_begin_and_end() -> None:
    _, loop = chunked()
    found = chunks_of(loop)
    assert found is not None
    assert (found.size, found.last) == (8, SIZE)
    assert isinstance(found.first, Literal)
    assert found.first.value == 0


def test_loops_that_go_through_other_elements_are_no_chunks() -> None:
    inner, loop = chunked()
    times, end, last = loop.body[:3]
    assert isinstance(end, Compute)
    assert isinstance(times, Compute)
    further = Compute(end.out, "add", (times.out, Literal(9, i64)))
    other = For(Local(i64), ZERO, inner.stop, ())
    for body in ((times, further, last, inner), (*loop.body, other), (times, end, last)):
        assert chunks_of(For(loop.index, ZERO, loop.stop, body)) is None
    assert chunks_of(For(loop.index, SIZE, loop.stop, loop.body)) is None


def test_kernels_without_shared_loops_stay_as_they_are() -> None:
    for kernel in kernels(lambda x: np.tanh(x) + x, 64, 5000):
        assert long_chunks(kernel) is kernel


@needs_compiler
@pytest.mark.parametrize("n", [1, 1023, 1025, CHUNK, CHUNK + 4])
def test_sums_are_those_of_numpy(n: int) -> None:
    for dtype, tolerance in ((np.float32, 2e-6), (np.float64, 1e-14)):
        x = np.random.default_rng(n).uniform(size=(3, n)).astype(dtype)
        for function in (row_sums, whole_sum):
            made = pyrelay.jit(function, device=ON)(x)
            np.testing.assert_allclose(made, function(x.astype(np.float64)), rtol=tolerance)
