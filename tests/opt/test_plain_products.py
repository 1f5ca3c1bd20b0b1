"""Products of integers and complex numbers, without tiles of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

import pyrelay
from pyrelay.opt.plain_products import plain_products

RNG = np.random.default_rng(0)
J, K = (RNG.integers(-9, 9, shape) for shape in ((5, 7), (7, 6)))
C, D = (RNG.normal(size=s) + 1j * RNG.normal(size=s) for s in ((5, 7), (7, 6)))
E = RNG.normal(size=(6, 5)) * (2 + 1j)


def _written(function: Any, *args: Any) -> dict[str, int]:
    before = core(function, *args)
    module = after(before, plain_products)
    assert_same_runs(before, module, args)
    return ops(module)


def product(a, b):
    return a @ b


def turned(a, b):
    return a.T @ b.T


def of_columns(a, b):
    return a @ b[:, 0], a[0] @ b, b.T @ a[0], b[:, 0] @ a.T


def of_stacks(a, b):
    return np.stack([a, a * 2]) @ b, np.stack([a, a * 2])[:, :, :6] @ np.ones((2, 6, 1), a.dtype)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8", "c16"])
def test_matrices_by_lines_are_sums(dtype: str) -> None:
    a, b = (x.astype(dtype) for x in ((C, D) if dtype[0] == "c" else (J, K)))
    found = _written(of_columns, a, b)
    assert found.get("matmul", 0) == 0
    assert found["sum"] == 4


@pytest.mark.parametrize(("function", "a", "b"), [
    (product, C, D), (turned, C, E), (product, np.stack([C, C]), D),
])  # fmt: skip
def test_complex_matrices_are_multiplied_by_their_parts(function: Any, a: Any, b: Any) -> None:
    found = _written(function, a, b)
    assert found["matmul"] == 1
    assert found["make_complex"] == 1
    assert found["concatenate"] == 2


def test_matrices_that_were_real_have_one_part() -> None:
    assert _written(product, C.real.copy(), D)["concatenate"] == 1
    assert _written(product, C, D.real.copy())["concatenate"] == 1
    assert _written(product, C.real.copy(), D)["real"] == 1  # of the one that has two


def test_stacks_are_multiplied_so_too() -> None:
    found = _written(of_stacks, C, D)
    assert (found["matmul"], found["sum"]) == (1, 1)


def small(a, b):
    assert a.shape == (2, 2)
    assert b.shape == (2, 2)
    return a @ b


def test_few_elements_and_other_types_stay() -> None:
    assert _written(small, C[:2, :2].copy(), D[:2, :2].copy())["matmul"] == 1
    assert _written(product, J, K)["matmul"] == 1
    assert _written(product, C.real.copy(), D.real.copy())["matmul"] == 1
    assert _written(product, J > 0, K[:, :1] > 0)["matmul"] == 1


def size_of(a, b):
    return np.abs(a @ (b + 1j * b[::-1])).sum()


def test_gradients_go_through_parts() -> None:
    a, b = C, D.real.copy()
    gradient = pyrelay.grad(size_of, 1)(a, b)
    step = np.zeros_like(b)
    step[2, 3] = 1e-6
    slope = (size_of(a, b + step) - size_of(a, b - step)) / 2e-6
    np.testing.assert_allclose(gradient[2, 3], slope, rtol=1e-6)
