"""Rows that the threads of a block hold: which, how long they are, and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.nodes import KernelCall
from pyrelay.lower.kernels.kernel import EXTENT, Kernel, Parameter
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.passes.cooperation import cooperation
from pyrelay.lower.passes.held_rows import HeldRows, held_rows, length_of
from pyrelay.lower.text.emit_cuda import emit
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"


def normalised(x: Any) -> Any:
    z = x - x.mean(axis=1, keepdims=True)
    return z / np.sqrt((z * z).mean(axis=1, keepdims=True) + 1)


def weighted(x: Any, y: Any) -> Any:
    """Two rows, the second one of which is read in each phase too."""
    z = x * y
    return z / z.sum(axis=1, keepdims=True)


def row_sums(x: Any) -> Any:
    return x.sum(axis=1)


def scaled(x: Any, y: Any) -> Any:
    """The same elements for all rows: the cache has them."""
    z = x * y[0]
    return z / z.sum(axis=1, keepdims=True)


def kernel(function: Any, *args: Any) -> Kernel:
    module = lowered(inferred(function, args).module, "fuse", on=ON)
    (call,) = (x.rhs for x in module.main.body.lets if isinstance(x.rhs, KernelCall))
    (made,) = kernelise(call.function, splits=True).kernels
    return made


def held(made: Kernel) -> HeldRows | None:
    shared = cooperation(made)
    assert shared is not None
    return held_rows(made, shared)


X = np.ones((4, 64), np.float32)


def test_rows_that_are_read_again_are_held() -> None:
    one = held(kernel(normalised, X))
    assert one is not None
    assert (len(one.places), one.nbytes, len(one.again)) == (1, 4, 2)
    both = held(kernel(weighted, X, X.astype(np.float64)))
    assert both is not None
    assert (len(both.places), both.nbytes) == (2, 12)


def test_what_is_read_once_or_is_no_row_is_not() -> None:
    assert held(kernel(row_sums, X)) is None
    found = held(kernel(scaled, X, X))
    assert found is not None
    assert len(found.places) == 1


def test_texts_say_how_long_rows_are_and_how_much_of_them_is_held() -> None:
    made = kernel(normalised, X)
    shared = cooperation(made)
    assert shared is not None
    length = length_of(made, shared)
    assert isinstance(length, Parameter)
    assert length.role == EXTENT
    word = sum(p.words for p in made.parameters[: made.parameters.index(length)])
    lines = emit(made).splitlines()
    assert {f"#define ROW_WORD {word}", "#define HELD_BYTES 4", "#define ROW_PACK 4"} <= {*lines}
    phase = emit(made, several=False)
    assert "HELD_BYTES" not in phase
    assert "pyrelay_hold" not in phase


@needs_compiler
@pytest.mark.parametrize(
    "n", [63, 1001, *(pytest.param(n, marks=pytest.mark.slow) for n in (32, 64, 1000, 5000))]
)
def test_results_are_those_of_numpy_whatever_part_of_a_row_there_is_room_for(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = (rng.uniform(1, 2, size=(7, n)).astype(np.float32) for _ in range(2))
    for function, args in ((normalised, (x,)), (weighted, (x, y)), (scaled, (x, y))):
        for few in (slice(None), slice(1, None), slice(0, 0)):
            given = [a[few] for a in args]
            if function is scaled and not len(given[1]):
                continue
            made = pyrelay.jit(function, device=ON)(*given)
            want = function(*(a.astype(np.float64) for a in given))
            np.testing.assert_allclose(made, want, rtol=2e-5, atol=1e-6)


@needs_compiler
def test_a_row_may_be_written_where_it_was_read() -> None:
    def twice(x: Any) -> Any:
        x[:] = normalised(x)
        return x

    x = np.random.default_rng(0).normal(size=(9, 640)).astype(np.float32)
    want = normalised(x.astype(np.float64))
    np.testing.assert_allclose(pyrelay.jit(twice, device=ON)(x), want, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(x, want, rtol=2e-5, atol=1e-6)
