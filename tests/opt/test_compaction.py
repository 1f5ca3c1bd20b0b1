"""Where flags are true: by running counts for GPUs, by a kernel of its own on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

import pyrelay
from pyrelay.opt.compaction import compaction
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler

X = np.sin(np.arange(1.0, 300.0) * 1.7)


def places(x: Any) -> Any:
    return np.flatnonzero(x > 0.0)


def places_of_rows(a: Any) -> Any:
    rows, columns = np.nonzero(a > 0.5)
    return rows, columns, a[a > 0.5]


def places_in_rounds(x: Any) -> Any:
    total = 0
    for k in range(4):
        found = np.flatnonzero(x > k * 0.25)
        for place in found:
            total = total * 3 % 1000003 + place
    return total


CASES = [X, X[:1], X[:0], -np.abs(X), np.abs(X) + 1.0, np.array([-1.0, -1.0, 1.0])]


@pytest.mark.parametrize("x", CASES, ids=range(len(CASES)))
def test_running_counts_find_the_places_of_the_op(x: Any) -> None:
    before = core(places, x)
    assert ops(before)["true_places"] == 1
    module = after(before, compaction)
    assert ops(module)["true_places"] == 0
    assert ops(module)["cumsum"] == ops(module)["scatter_update"] == 1
    assert_same_runs(before, module, (x,))


def test_devices_with_scans_count_and_others_do_not() -> None:
    program = core(places, X)
    assert not ops(lowered(program, "optimise", on="cuda_emulator"))["true_places"]
    assert ops(lowered(program, "optimise", on="cpu"))["true_places"] == 1


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda_emulator", marks=needs_compiler)])
@pytest.mark.parametrize("x", CASES, ids=range(len(CASES)))
def test_compiled_places_are_numpys(x: Any, device: str) -> None:
    found = pyrelay.jit(places, device=device)(x)
    np.testing.assert_array_equal(found, places(x))
    assert found.dtype == np.int64


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda_emulator", marks=needs_compiler)])
def test_places_of_rows_and_what_is_there(device: str) -> None:
    a = X[:298].reshape(2, 149)
    for found, wanted in zip(
        pyrelay.jit(places_of_rows, device=device)(a), places_of_rows(a), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_places_in_the_rounds_of_a_loop() -> None:
    assert pyrelay.jit(places_in_rounds)(X) == places_in_rounds(X)


def test_a_processor_takes_four_kernels() -> None:
    """The mask, how many are true in each part and altogether, and that for where they are."""
    compiled = pyrelay.jit(places, device="cpu")
    compiled(X)
    text = compiled.code(X)
    assert text.count("_kernel(block") + text.count("_kernel_2(block") == 4
    assert "launch true_places_kernel" in text
