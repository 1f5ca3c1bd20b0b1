"""Kernels whose loops read neighbours in rows of matrices say so, and are vectors of loads."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.compiler.kernel_compiler import optimised_module
from tests.devices.running_kernels import needs_vectors


def slopes(a: Any, out: Any) -> Any:
    n, m = a.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            across = (a[i - 1, j + 1] + 2 * a[i, j + 1]) - (a[i - 1, j - 1] + 2 * a[i, j - 1])
            down = (a[i + 1, j - 1] + a[i + 1, j]) - (a[i - 1, j - 1] + a[i - 1, j])
            out[i, j] = np.sqrt(across * across + down * down)
    return out


def by_slices(a: Any, out: Any) -> Any:
    for _ in range(3):
        out[1:-1, 1:-1] = 0.5 * a[1:-1, 1:-1] + 0.25 * (a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = out[1:-1, 1:-1]
    return out


def until_still(a: Any, out: Any) -> Any:
    """Inside a `while`, one update after the other."""
    steps = 0
    while steps < 3:
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                out[i, j] += 0.1 * (a[i, j + 1] - a[i, j])
        steps += 1
    return out


def onto_itself(a: Any, out: Any) -> Any:
    """Rounds that wait for the one before: several rows stand side by side."""
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            a[i, j] = 0.25 * (a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j])
    return a


def patterns(a: Any, out: Any) -> Any:
    """Branches that choose between numbers only."""
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            bits = 0
            if a[i, j - 1] >= a[i, j]:
                bits |= 1
            if a[i, j + 1] >= a[i, j]:
                bits |= 2
            out[i, j] = bits
    return out


WINDOWS = (slopes, by_slices, until_still, patterns)


def of_one_row(a: Any, out: Any) -> Any:
    x, y = a[0], out[0]
    for _ in range(3):
        for j in range(1, x.shape[0] - 1):
            y[j] = x[j - 1] + x[j + 1]
    return out


def of_columns(a: Any, out: Any) -> Any:
    for j in range(a.shape[1]):
        for i in range(1, a.shape[0] - 1):
            out[i, j] = a[i - 1, j] + a[i + 1, j]
    return out


def of_other_rows(a: Any, out: Any) -> Any:
    for i in range(1, a.shape[0] - 1):
        for j in range(a.shape[1]):
            out[i, j] = a[i - 1, j] + a[i + 1, j]
    return out


def with_sums(a: Any, out: Any) -> Any:
    """A loop that adds up, beside one that reads neighbours."""
    s = 0.0
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            out[i, j] = a[i, j - 1] + a[i, j + 1]
        for j in range(1, a.shape[1] - 1):
            s += abs(out[i, j] - a[i, j])
    return out * s


OTHERS = (of_one_row, of_columns, of_other_rows, with_sums, onto_itself)


@pytest.mark.parametrize("f", [*WINDOWS, *OTHERS], ids=lambda f: f.__name__)
def test_loops_that_read_neighbours_in_rows_say_so(f: Any) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(4)
    for shape in ((7, 5), (9, 40), (3, 100), (2, 2)):
        a, out = rng.random(shape), rng.random(shape)
        wanted = f(a.copy(), out.copy())
        np.testing.assert_allclose(compiled(a, out), wanted, rtol=1e-14)
    a = rng.random((9, 40))
    assert ("ROW_WINDOWS = True" in str(compiled.code(a, a.copy()))) == (f in WINDOWS)


def test_vectors_of_neighbours_are_loaded() -> None:
    needs_vectors(256)
    a = np.ones((9, 40))
    text = re.sub(r"def \w+\(", "def kernel(", str(pyrelay.jit(slopes).code(a, a.copy())))

    def spliced(source: str) -> bool:
        module = str(optimised_module(source, "test"))
        assert " x double>" in module
        return "shufflevector" in module

    assert not spliced(text)
    assert spliced(text.replace("ROW_WINDOWS = True", ""))  # else it need not be asked


def test_rows_of_short_elements_that_are_gone_through_again_count_too() -> None:
    for dtype, counts in ((np.float32, True), (np.int16, True), (np.float64, False)):
        a, out = np.arange(40, dtype=dtype).reshape(2, 20), np.zeros((2, 20), dtype)
        compiled, wanted = pyrelay.jit(of_one_row), of_one_row(a.copy(), out.copy())
        np.testing.assert_array_equal(compiled(a.copy(), out.copy()), wanted)
        assert ("ROW_WINDOWS = True" in str(compiled.code(a, out))) is counts
