"""Arrays made of parts: one kernel computes those of one shape, each where it lies."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay

RNG = np.random.default_rng(8)


def launches(f: Any, *args: Any) -> list[str]:
    return re.findall(r"^\s+\d+\s+launch (\w+)", f.ir(*args, stage="plan"), re.MULTILINE)


def columns(x, y):
    return np.concatenate([np.tanh(x), x * y, y - x], axis=1)


def rows(x, y):
    return np.concatenate([np.tanh(x), x * y], axis=0)


def in_the_middle(x, y):
    return np.concatenate([x[:, None] * 2, y[:, None] * x[:, None]], axis=1)


def stacked(x, y):
    return np.stack([x * y, x + y, np.sin(x)], axis=-1)


def beside_another(x, y):
    z = x * y
    return np.hstack([z, np.exp(z)]), z - 1


def of_arguments(x, y):
    return np.concatenate([x, y, x], axis=-1)


def of_sums(x, y):
    return np.concatenate([x - x.mean(axis=1, keepdims=True), y * y.sum(axis=0)], axis=1)


def read_at_once(x, y):
    return np.concatenate([x, y], axis=1) * 2 + np.concatenate([y * x, x], axis=1)


def of_other_extents(x, y):
    return np.concatenate([x[1:] * 2, y, x[:1]], axis=0), np.concatenate([x, y[:, :2] - 1], axis=1)


def of_nothing(x, y):
    return np.concatenate([x[:0], y, x[:, :0].T[:, :0].reshape(0, y.shape[1]), x + y])


FEW = [columns, rows, in_the_middle, stacked, beside_another]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "f", [*FEW, of_arguments, of_sums, read_at_once, of_other_extents, of_nothing],
    ids=lambda f: f.__name__,
)
def test_values(f: Any, dtype: Any) -> None:
    fast = pyrelay.jit(f)
    for shape in ((3, 5), (1, 1), (70, 33), (0, 4)):
        args = [RNG.standard_normal(shape).astype(dtype) for _ in range(2)]
        got, wanted = fast(*args), f(*args)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for mine, theirs in pairs:
            assert mine.dtype == theirs.dtype
            tolerance = 64 * np.finfo(dtype).eps
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("f", FEW, ids=lambda f: f.__name__)
def test_one_kernel(f: Any) -> None:
    assert len(launches(pyrelay.jit(f), np.ones((3, 5)), np.ones((3, 5)))) == 1


def test_parts_that_may_differ_are_a_kernel_for_each_shape() -> None:
    assert len(launches(pyrelay.jit(of_arguments), np.ones((3, 5)), np.ones((3, 5)))) == 2


def test_a_cell_with_gates_is_one_kernel_forward_and_one_backward() -> None:
    def loss(z, c):
        n = c.shape[1]
        i, f, g = z[:, :n], z[:, n : 2 * n], z[:, 2 * n :]
        return np.sum((np.tanh(f) * c + np.tanh(i) * np.tanh(g)) ** 2)

    z, c = RNG.standard_normal((4, 15)), RNG.standard_normal((4, 5))
    gradient = pyrelay.jit(pyrelay.grad(loss))
    assert len(launches(gradient, z, c)) == 1
    step = RNG.standard_normal(z.shape)
    wanted = (loss(z + 1e-6 * step, c) - loss(z - 1e-6 * step, c)) / 2e-6
    assert np.sum(gradient(z, c) * step) == pytest.approx(wanted, rel=1e-7)


def test_the_gradient_of_a_network_writes_rows_and_adds_to_none() -> None:
    def loss(xs, h, w, u):
        for t in range(xs.shape[0]):
            z = xs[t] @ w + h @ u
            n = h.shape[1]
            h = np.tanh(z[:, :n]) * h + np.tanh(z[:, n:])
        return np.sum(h * h)

    args = [RNG.standard_normal(s) * 0.4 for s in ((5, 3, 4), (3, 6), (4, 12), (6, 12))]
    gradient = pyrelay.jit(pyrelay.grad(loss, argnums=(0, 1, 2, 3)))
    steps = [RNG.standard_normal(a.shape) for a in args]
    ahead, behind = (
        loss(*(a + sign * 1e-6 * s for a, s in zip(args, steps, strict=True))) for sign in (1, -1)
    )
    found = sum(np.sum(g * s) for g, s in zip(gradient(*args), steps, strict=True))
    assert found == pytest.approx((ahead - behind) / 2e-6, rel=1e-7)
    text = gradient.ir(*args, stage="optimise")
    assert "index_add" not in text
    assert "slice_add" not in text


def test_rows_that_are_read_twice_or_not_in_order_are_added_to() -> None:
    def loss(xs, w):
        h = np.zeros(3)
        for t in range(1, len(xs)):
            h = np.tanh(xs[t] @ w + xs[t - 1] + xs[len(xs) - 1 - t] + h)
        for t in range(len(xs)):
            h = h + xs[t] * xs[t] * h
        return np.sum(h * h)

    xs, w = RNG.standard_normal((6, 3)) * 0.5, RNG.standard_normal((3, 3))
    step = RNG.standard_normal(xs.shape)
    wanted = (loss(xs + 1e-6 * step, w) - loss(xs - 1e-6 * step, w)) / 2e-6
    assert np.sum(pyrelay.grad(loss)(xs, w) * step) == pytest.approx(wanted, rel=1e-7)
