"""What a kernel makes only for a row of an array is made there: no copy, no launch for it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay

RNG = np.random.default_rng(17)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) * 0.5


def launches(code: str) -> list[list[str]]:
    """The kernels that each loop of a plan launches, in order of the loops' ends."""
    open_loops: list[list[str]] = []
    found: list[list[str]] = []
    for line in code.splitlines():
        if re.match(r"#\s+loop\d+:", line):
            open_loops.append([])
        elif re.match(r"#\s+endloop\d+:", line):
            found.append(open_loops.pop())
        elif open_loops and (launch := re.match(r"#\s+\d+\s+launch (\w+)", line)):
            open_loops[-1].append(launch[1])
    return found


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(xs, h, c, u):
    n = h.shape[1]
    for t in range(xs.shape[0]):
        z = xs[t] + h @ u
        i, f = sigmoid(z[:, :n]), sigmoid(z[:, n : 2 * n])
        g, o = np.tanh(z[:, 2 * n : 3 * n]), sigmoid(z[:, 3 * n :])
        c = f * c + i * g
        h = o * np.tanh(c)
    return np.sum(h**2)


def test_a_forward_loop_keeps_what_its_cell_computes_without_copies() -> None:
    args = normal(4, 3, 20), normal(3, 5), normal(3, 5), normal(5, 20)
    gradient = pyrelay.grad(lstm, argnums=3)
    way, step = normal(5, 20), 1e-6
    up, down = (lstm(*args[:3], args[3] + sign * step * way) for sign in (1, -1))
    np.testing.assert_allclose(np.sum(gradient(*args) * way), (up - down) / (2 * step), rtol=1e-6)
    forward = launches(gradient.code(*args))[0]
    # Of the states, which are carried as well, there are copies.
    assert len(forward) == 3
    assert sum("index_update" in name for name in forward) == 2


def two_of_one(xs, w):
    out, more = np.zeros((2, *xs.shape[:2], w.shape[1]))
    for t in range(xs.shape[0]):
        y = xs[t] @ w
        z = np.tanh(y)
        out[t] = z
        more[t] = z + y.sum()
    return out, more


def read_again(xs, w):
    out = np.zeros((*xs.shape[:2], w.shape[1]))
    total = 0.0
    for t in range(xs.shape[0]):
        y = np.tanh(xs[t] @ w)
        z = np.cumsum(y, axis=0)
        out[t] = y
        total += z.sum() + y.max()
    return out, total


def carried_too(xs, w):
    out = np.zeros((*xs.shape[:2], w.shape[1]))
    y = np.zeros(out.shape[1:])
    for t in range(xs.shape[0]):
        y = np.tanh(xs[t] @ w + y[::-1])
        out[t] = y
    return out, y


def one_row_for_all(xs, w):
    out = np.zeros((3, xs.shape[1], w.shape[1]))
    for t in range(xs.shape[0]):
        y = np.sort(xs[t] @ w, axis=0)
        out[1] = y
        out[t % 2] = y - 1
    return out


def rows_are_read(xs, w):
    out = np.zeros((xs.shape[0] + 1, xs.shape[1], w.shape[1]))
    for t in range(xs.shape[0]):
        y = np.tanh(xs[t] @ w + out[t].mean())
        out[t + 1] = y
    return out


def overwritten(xs, w):
    out = np.ones((xs.shape[0], xs.shape[1], w.shape[1]))
    for t in range(xs.shape[0]):
        y = out[t] @ w[: w.shape[1]]
        out[t] = y + xs[t][:, : w.shape[1]]
    return out


def raises(xs, w):
    out = np.zeros((*xs.shape[:2], w.shape[1]))
    for t in range(xs.shape[0]):
        y = xs[t] @ w
        if y[0, 0] > 1e3:
            raise ValueError("too large")
        out[t] = y
    return out


def backwards(xs, w):
    out = np.zeros((*xs.shape[:2], w.shape[1]))
    for t in range(xs.shape[0]):
        out[-1 - t] = np.tanh(xs[t] @ w)
    return out


CASES = [
    two_of_one, read_again, carried_too, one_row_for_all, rows_are_read, overwritten, raises,
    backwards,
]  # fmt: skip


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_rows_hold_what_plain_python_puts_there(f: Any) -> None:
    args = normal(5, 4, 6), normal(6, 6)
    wanted, found = f(*args), pyrelay.jit(f)(*args)
    if not isinstance(wanted, tuple):
        wanted, found = (wanted,), (found,)
    for x, y in zip(wanted, found, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-13)
