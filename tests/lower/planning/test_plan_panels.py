"""Loops that multiply by one matrix: it is laid in panels once, before the loop."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay

RNG = np.random.default_rng(3)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.3).astype(dtype)


def laid(code: str) -> tuple[int, int]:
    """How many launches lay panels in all, and inside loops."""
    inside, total, within = 0, 0, 0
    for line in code.splitlines():
        if re.match(r"#\s+loop\d+:", line):
            inside += 1
        elif re.match(r"#\s+endloop\d+:", line):
            inside -= 1
        elif "launch panels_kernel" in line:
            total += 1
            within += inside > 0
    return total, within


def rnn(xs, h, w, u):
    for t in range(xs.shape[0]):
        h = np.tanh(xs[t] @ w + h @ u)
    return h


def gru(xs, h, w, u):
    n = h.shape[1]
    for t in range(xs.shape[0]):
        x, z = xs[t] @ w[:, :n], h @ u
        r = 1 / (1 + np.exp(-(x + z)))
        h = (1 - r) * h + r * np.tanh(x - h @ u.T)
    return h


def until_small(xs, h, w, u):
    while np.abs(h).sum() > 1.0:
        h = 0.5 * (h @ u) / (1 + np.abs(h @ u).max())
    return h


def in_the_test(xs, h, w, u):
    count = 0
    while np.sum(h @ u) < 1e9 and count < 3:
        h = h + 1
        count += 1
    return h


def nested(xs, h, w, u):
    for t in range(xs.shape[0]):
        for _ in range(3):
            h = np.tanh(h @ u)
        h = h + xs[t] @ u
    return h


def in_a_branch(xs, h, w, u):
    for t in range(xs.shape[0]):
        if xs[t, 0, 0] > 0:
            h = h @ u
    return h


def powers(xs, h, w, u):
    p = np.copy(u)
    for _ in range(3):
        p = p @ u
    return h @ p


def changed(xs, h, w, u):
    u = np.copy(u)
    for _ in range(3):
        h = np.tanh(h @ u)
        u -= 0.1 * (h.T @ h)
    return h, u


def of_this_round(xs, h, w, u):
    for t in range(xs.shape[0]):
        m = u * np.float32(t)
        for _ in range(2):
            h = np.tanh(h @ m)
    return h


def vectors(xs, h, w, u):
    v = h[0]
    for _ in range(4):
        v = v @ u
    return v


def vectors_of_many_rounds(xs, h, w, u):
    v = h[0]
    for _ in range(9):
        v = v @ u
    return v


def vectors_of_rounds_not_known(xs, h, w, u):
    v, rounds = h[0], 0
    while rounds < xs.shape[0]:
        v = np.tanh(v @ u) + v @ w.T
        rounds += 1
    return v


def reshaped(xs, h, w, u):
    for _ in range(2):
        h = np.tanh(h @ u.reshape(-1, u.shape[1]) + h @ u.T)
    return h


def no_rounds(xs, h, w, u):
    for _ in range(xs.shape[0] - xs.shape[0]):
        h = h @ u
    return h


CASES = [
    (rnn, (1, 0)), (gru, (2, 0)), (until_small, (1, 0)), (in_the_test, (1, 0)), (nested, (1, 0)),
    (in_a_branch, (1, 0)), (powers, (1, 0)), (changed, (0, 0)), (of_this_round, (1, 1)),
    (vectors, (0, 0)), (vectors_of_many_rounds, (1, 0)), (vectors_of_rounds_not_known, (2, 0)),
    (reshaped, (2, 0)), (no_rounds, None),
]  # fmt: skip


@pytest.mark.parametrize(("f", "expected"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_what_a_loop_multiplies_by_is_laid_once_before_it(f: Any, expected: Any) -> None:
    fast = pyrelay.jit(f)
    for rows, size in ((16, 24), (3, 40)):
        args = normal(5, rows, size), normal(rows, size), normal(size, size), normal(size, size)
        for wanted, found in zip(results(f, args), results(fast, args), strict=True):
            assert wanted.dtype == found.dtype
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)
    if expected is not None:
        assert laid(fast.code(*args)) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rounds", [3, 12])
def test_a_large_matrix_is_laid_for_vectors_if_the_loop_runs_often(
    rounds: int, dtype: Any
) -> None:
    def multiplied(v, u, rounds):
        for _ in range(rounds):
            v = np.tanh(v @ u)
        return v

    fast = pyrelay.jit(multiplied)
    for size in (100, 300, 403):
        v, u = normal(size, dtype=dtype), normal(size, size, dtype=dtype)
        u *= dtype(3 / np.sqrt(size))
        tolerance = 2e-3 if dtype is np.float32 else 1e-10
        np.testing.assert_allclose(
            fast(v, u, rounds), multiplied(v, u, rounds), rtol=tolerance, atol=tolerance
        )


def results(f: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    found = f(*args)
    return found if isinstance(found, tuple) else (found,)


def test_double_precision_is_laid_too_and_integers_are_not() -> None:
    def product(h, u):
        for _ in range(3):
            h = h @ u
        return h

    fast = pyrelay.jit(product)
    for dtype, expected in ((np.float64, (1, 0)), (np.int64, (0, 0))):
        args = (normal(5, 40) * 10).astype(dtype), (normal(40, 40) * 10).astype(dtype)
        np.testing.assert_allclose(fast(*args), product(*args), rtol=1e-10)
        assert laid(fast.code(*args)) == expected


def test_the_backward_loop_of_a_recurrence_lays_the_transpose() -> None:
    def loss(xs, h, w, u):
        return np.sum(rnn(xs, h, w, u) ** 2)

    shapes = (4, 3, 20), (3, 20), (20, 20), (20, 20)
    args = tuple(normal(*shape, dtype=np.float64) for shape in shapes)
    gradient = pyrelay.grad(loss, argnums=3)
    way, step = normal(20, 20, dtype=np.float64), 1e-5
    up, down = (loss(*args[:3], args[3] + sign * step * way) for sign in (1, -1))
    np.testing.assert_allclose(np.sum(gradient(*args) * way), (up - down) / (2 * step), rtol=1e-6)
    assert laid(gradient.code(*args)) == (2, 0)
