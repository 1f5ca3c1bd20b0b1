"""Small products of matrices inside loops are sums of products of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

from pyrelay.opt.dots import dots

A, B = np.arange(12.0).reshape(3, 4) - 5.0, np.arange(8.0).reshape(4, 2) * 0.5
V, W = np.arange(4.0) - 1.0, np.arange(3.0) + 2.0


def _products(function: Any, *args: Any) -> int:
    before = core(function, *args)
    module = after(before, dots)
    assert_same_runs(before, module, args)
    return ops(module)["matmul"]


def known(a, b, rounds):
    assert a.shape == (3, 4)
    assert b.shape == (4, 2)
    total = np.zeros((3, 2))
    for k in range(rounds):
        total = total + (a * k) @ b
    return total


def turned(a, b, rounds):
    assert a.shape == (3, 4)
    assert b.shape == (4, 2)
    total = np.zeros((2, 3))
    for k in range(rounds):
        total = total + b.T @ (a * k).T
    return total


def of_a_vector(a, v, rounds):
    assert a.shape == (3, 4)
    total = np.zeros(3)
    for k in range(rounds):
        total = total + a @ (v * k) + (v * k) @ a.T
    return total


@pytest.mark.parametrize(
    ("function", "args"), [(known, (A, B, 3)), (turned, (A, B, 3)), (of_a_vector, (A, V, 3))]
)
def test_products_of_small_matrices_of_known_size_become_sums(function: Any, args: Any) -> None:
    assert _products(function, *args) == 0


def outer(v, w, rounds):
    total = np.zeros((v.shape[0], w.shape[0]))
    for k in range(rounds):
        total = total + (v * k).reshape(-1, 1) @ w.reshape(1, -1)
    return total


def test_a_column_times_a_row_of_any_size_becomes_a_product_of_elements() -> None:
    assert _products(outer, V, W, 3) == 0


def of_any_size(a, b, rounds):
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in range(rounds):
        total = total + (a * k) @ b
    return total


def outside(a, b):
    assert a.shape == (3, 4)
    assert b.shape == (4, 2)
    return a @ b


def of_vectors(v, w):
    return v @ w


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i1", "u2", "c16", "c8"])
def test_a_product_of_vectors_becomes_a_sum_that_wraps_as_the_product_does(dtype: str) -> None:
    v = (np.arange(300) * 7 % 40 - (0 if dtype[0] == "u" else 20)).astype(dtype)
    assert _products(of_vectors, v, v[::-1].copy()) == 0


@pytest.mark.parametrize("dtype", ["?", "f2"])
def test_a_product_of_vectors_of_truth_values_or_16_bit_floats_stays(dtype: str) -> None:
    assert _products(of_vectors, np.ones(4, dtype), np.ones(4, dtype)) == 1


def test_a_product_of_a_turned_row_and_a_column_becomes_a_sum() -> None:
    def of_columns(v, w):
        return v.T @ w + w.T @ v

    v = np.arange(5.0).reshape(5, 1)
    assert _products(of_columns, v, v + 1) == 0


def test_products_of_unknown_size_and_outside_loops_stay() -> None:
    assert _products(of_any_size, np.ones((17, 3)), A, 3) == 1
    assert _products(outside, A, B) == 1


def test_products_of_short_matrices_become_sums() -> None:
    assert _products(of_any_size, np.ones((16, 3)), np.ones((3, 5)), 3) == 0


def test_a_vector_times_rows_that_are_computed_is_a_sum_anywhere() -> None:
    def windows(x, w):
        assert w.shape == (3,)
        return np.lib.stride_tricks.sliding_window_view(x, 3) @ w, x.reshape(-1, 3) @ w

    assert _products(windows, np.arange(12.0) ** 2, np.arange(3.0)) == 1
