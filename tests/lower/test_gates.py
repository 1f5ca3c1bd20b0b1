"""Recurrent cells: a step is one launch, in which a product hands the gates to what reads them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.devices.running_kernels import needs_compiler

RNG = np.random.default_rng(11)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.4).astype(dtype)


def launches_inside(code: str) -> int:
    """How many launches the loops of a plan have."""
    inside = found = 0
    for line in code.splitlines():
        if re.match(r"#\s+loop\d+:", line):
            inside += 1
        elif re.match(r"#\s+endloop\d+:", line):
            inside -= 1
        found += bool(inside and re.match(r"#\s+\d+\s+launch ", line))
    return found


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(xs, h, c, w, u, b):
    n = h.shape[1]
    for t in range(xs.shape[0]):
        z = xs[t] @ w + h @ u + b
        i, f = sigmoid(z[:, :n]), sigmoid(z[:, n : 2 * n])
        g, o = np.tanh(z[:, 2 * n : 3 * n]), sigmoid(z[:, 3 * n :])
        c = f * c + i * g
        h = o * np.tanh(c)
    return h, c


def split_lstm(xs, h, c, w, u, b):
    for t in range(xs.shape[0]):
        i, f, g, o = np.split(xs[t] @ w + h @ u + b, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h, c


def gru(xs, h, c, w, u, b):
    n = h.shape[1]
    for t in range(xs.shape[0]):
        x, z = (xs[t] @ w)[:, : 3 * n], h @ u[:, : 3 * n] + b[: 3 * n]
        r, s = sigmoid(x[:, :n] + z[:, :n]), sigmoid(x[:, n : 2 * n] + z[:, n : 2 * n])
        h = (1 - s) * np.tanh(x[:, 2 * n :] + r * z[:, 2 * n :]) + s * h
    return h


def highway(xs, h, c, w, u, b):
    n = h.shape[1]
    for t in range(xs.shape[0]):
        z = h @ u[:, : 2 * n]
        gate = sigmoid(z[:, n:])
        h = gate * np.tanh(z[:, :n] + xs[t][:, :1]) + (1 - gate) * h
    return h


def kept_in_full(xs, h, c, w, u, b):
    n = h.shape[1]
    z = np.zeros((h.shape[0], 4 * n), h.dtype)
    for _ in range(xs.shape[0]):
        z = h @ u
        h = np.tanh(z[:, :n] + z[:, 3 * n :])
    return h, z


def of_the_transpose(xs, h, c, w, u, b):
    n = h.shape[1]
    v = np.copy(u.T)
    for _ in range(xs.shape[0]):
        z = h @ v.T
        h = np.tanh(z[:, :n] * z[:, 3 * n :])
    return h


ONE_LAUNCH = [lstm, split_lstm, gru, highway, kept_in_full, of_the_transpose]


def uneven(xs, h, c, w, u, b):
    n = h.shape[1]
    for _ in range(xs.shape[0]):
        z = h @ u
        h = np.tanh(z[:, 1 : n + 1] + z[:, :n])
    return h


def turned(xs, h, c, w, u, b):
    for _ in range(xs.shape[0]):
        z = h @ u
        n = h.shape[1]
        h = np.tanh(z[:, :n][::-1] + z[:, n : 2 * n])
    return h


def over_rows(xs, h, c, w, u, b):
    n = h.shape[1]
    for _ in range(xs.shape[0]):
        z = h @ u
        h = np.tanh(z[:, :n] - z[:, n : 2 * n].mean(axis=0))
    return h


def changing(xs, h, c, w, u, b):
    n = h.shape[1]
    for _ in range(xs.shape[0]):
        z = h @ u
        h = np.tanh(z[:, :n] + z[:, n : 2 * n])
        u = u * np.float32(0.9)
    return h


def no_loop(xs, h, c, w, u, b):
    n = h.shape[1]
    z = h @ u
    return np.tanh(z[:, :n] + z[:, n : 2 * n])


def sizes(rows: int, inputs: int, size: int, dtype: Any = np.float32) -> tuple[np.ndarray, ...]:
    return tuple(
        normal(*shape, dtype=dtype)
        for shape in (
            (3, rows, inputs), (rows, size), (rows, size), (inputs, 4 * size), (size, 4 * size),
            (4 * size,),
        )
    )  # fmt: skip


def agree(f: Any, fast: Any, args: tuple[np.ndarray, ...]) -> None:
    wanted, found = f(*args), fast(*args)
    if not isinstance(wanted, tuple):
        wanted, found = (wanted,), (found,)
    for x, y in zip(wanted, found, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(y, x, rtol=3e-4, atol=3e-5)


@pytest.mark.parametrize("f", ONE_LAUNCH, ids=lambda f: f.__name__)
def test_a_step_is_one_launch(f: Any) -> None:
    fast = pyrelay.jit(f)
    for args in (sizes(16, 20, 64), sizes(2, 5, 19), sizes(35, 3, 33)):
        agree(f, fast, args)
        assert launches_inside(fast.code(*args)) == 1


@pytest.mark.parametrize(
    "f", [uneven, turned, over_rows, changing, no_loop], ids=lambda f: f.__name__
)
def test_what_is_no_gate_is_computed_after_the_product(f: Any) -> None:
    fast = pyrelay.jit(f)
    for args in (sizes(16, 20, 64), sizes(4, 5, 3)):
        agree(f, fast, args)
    assert launches_inside(fast.code(*args)) != 1


@needs_compiler
def test_a_gpu_computes_the_product_first() -> None:
    agree(lstm, pyrelay.jit(lstm, device="cuda_emulator"), sizes(4, 5, 6))


def test_a_step_of_double_precision() -> None:
    agree(highway, pyrelay.jit(highway), sizes(3, 4, 40, np.float64))


def test_the_states_of_the_caller_stay_as_they_are() -> None:
    args = sizes(5, 6, 7)
    copies = [a.copy() for a in args]
    pyrelay.jit(lstm)(*args)
    for before, after in zip(copies, args, strict=True):
        np.testing.assert_array_equal(before, after)
