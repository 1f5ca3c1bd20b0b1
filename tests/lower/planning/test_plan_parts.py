"""Loops whose rows are independent: threads share the rows once, and each does all rounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices.choices import ALONE, DEFAULT, EVENLY
from pyrelay.devices.chosen import choosing
from tests.devices.running_kernels import needs_compiler

RNG = np.random.default_rng(29)
STEPS, BATCH, UNITS = 12, 17, 48


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.2).astype(dtype)


def section(code: str) -> list[str]:
    """The instructions between the start of the first part and its end; empty without parts."""
    lines = code.splitlines()
    starts = [k for k, line in enumerate(lines) if re.search(r"\bin parts s\d+ to s\d+ of", line)]
    if not starts:
        return []
    end = next(k for k, line in enumerate(lines) if "end of the part" in line)
    return lines[starts[0] : end]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(xs, h, c, w, u):
    n = h.shape[1]
    for t in range(xs.shape[0]):
        z = xs[t] @ w + h @ u
        i, f = sigmoid(z[:, :n]), sigmoid(z[:, n : 2 * n])
        g, o = np.tanh(z[:, 2 * n : 3 * n]), sigmoid(z[:, 3 * n :])
        c = f * c + i * g
        h = o * np.tanh(c)
    return h, c


def two_layers(xs, h, g, u, v):
    for x in xs:
        h = np.tanh(x + h @ u)
        g = np.tanh(h @ v + g @ u)
    return h, g


def all_states(xs, h, g, u, v):
    out = np.zeros_like(xs)
    for t in range(len(xs)):
        h = np.maximum(xs[t] + h @ u, 0.1 * g)
        out[t] = h
    return out


def normalised(xs, h, g, u, v):
    for t in range(len(xs)):
        s = np.exp(h @ u + xs[t])
        h = s / np.sum(s, axis=1, keepdims=True)
    return h


def backwards(xs, h, g, u, v):
    for t in range(len(xs) - 1, -1, -1):
        h, g = np.tanh(g @ u + xs[t]), h
    return h - g


def moving(h, m, dt):
    t = 0.0
    for _ in range(20):
        m = m + dt * np.cos(h + t)
        h = h + dt * m - h[:, ::-1] * 0.01
        t += dt
    return h, m, t


def best(xs, h, g, u, v):
    letters = np.zeros(xs.shape[:2], np.int64)
    for t in range(len(xs)):
        h = np.tanh(xs[t] + h @ u)
        letters[t] = np.argmax(h @ v, axis=1)
    return letters


CELL = normal(STEPS, BATCH, UNITS), *(normal(BATCH, UNITS) for _ in range(2)), *(
    normal(UNITS, UNITS) for _ in range(2)
)  # fmt: skip
GATES = normal(STEPS, BATCH, 9), *CELL[1:3], normal(9, 4 * UNITS), normal(UNITS, 4 * UNITS)
MOVED = normal(300, 40, dtype=np.float64), normal(300, 40, dtype=np.float64), 0.01
APART: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (lstm, GATES), (two_layers, CELL), (all_states, CELL), (normalised, CELL), (backwards, CELL),
    (moving, MOVED), (best, CELL),
]  # fmt: skip


def by_threads(count: int, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    """The results with so many threads, compiled anew."""
    with config.override(num_threads=count):
        results = function.again()(*args)  # type: ignore[attr-defined]
    return list(results) if isinstance(results, tuple) else [results]


@needs_compiler
@pytest.mark.parametrize(("function", "args"), APART, ids=lambda v: getattr(v, "__name__", ""))
def test_parts_allocate_nothing_and_give_what_one_thread_gives(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    compiled = pyrelay.jit(function)
    inside = section(compiled.code(*args))
    assert any("launch" in line for line in inside)
    assert not any(word in line for word in ("allocate", "free", "copy") for line in inside)
    expected = function(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    alone = by_threads(1, compiled, args)
    for value, wanted in zip(alone, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=2e-4, atol=1e-5)
    for count in (2, 3):
        for value, wanted in zip(by_threads(count, compiled, args), alone, strict=True):
            np.testing.assert_array_equal(value, wanted)


def loss(xs, h, w, u, b):
    for t in range(len(xs)):
        h = np.tanh(xs[t] @ w + h @ u + b)
    return np.sum(h**2)


@needs_compiler
@pytest.mark.parametrize("bias", [(UNITS,), (1, UNITS)], ids=str)
def test_both_loops_of_a_gradient_go_in_parts(bias: tuple[int, ...]) -> None:
    gradient = pyrelay.grad(loss, argnums=(2, 3, 4))
    args = GATES[0], GATES[1], normal(9, UNITS), CELL[3], normal(*bias)
    assert gradient.code(*args).count("end of the part") == 2
    alone, shared = (by_threads(count, gradient, args) for count in (1, 2))
    for value, wanted in zip(shared, alone, strict=True):
        np.testing.assert_array_equal(value, wanted)
    exact = [x.astype(np.float64) for x in args]
    way, step = np.ones(bias), 1e-6
    up, down = (loss(*exact[:4], exact[4] + sign * step * way) for sign in (1, -1))
    slope = np.sum(gradient(*exact)[2] * way)
    np.testing.assert_allclose(slope, (up - down) / (2 * step), rtol=1e-5, atol=1e-7)


def test_the_program_decides_by_the_matrices_and_by_the_work_of_a_round() -> None:
    code = pyrelay.jit(two_layers).code(*CELL)
    before = code[: code.index("in parts")].splitlines()[-6:]
    assert sum("<= 2097152" in line for line in before) == 1
    assert sum("<= 1000000000" in line for line in before) == 1


@needs_compiler
@pytest.mark.parametrize("launches", [ALONE, EVENLY])
def test_what_is_chosen_for_launches_holds_for_parts(launches: str) -> None:
    compiled = pyrelay.jit(moving)
    expected = by_threads(1, compiled, MOVED)
    with choosing(replace(DEFAULT, launches=launches)) as trial:
        found = by_threads(2, compiled, MOVED)
    assert trial.plan.count("Parts(") == 1
    assert ("work=Immediate(word=0)" in trial.plan) == (launches == ALONE)
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


def shifted(h, u):
    for _ in range(5):
        h = np.tanh(h @ u)
        h = np.concatenate((h[1:], h[:1]))
    return h


def centred(h, u):
    for _ in range(5):
        h = np.tanh(h @ u)
        h = h - np.mean(h, axis=0)
    return h


def turned(h, u):
    for _ in range(5):
        h = np.tanh(h @ u) + h.T
    return h


def multiplied_by_itself(h, u):
    for _ in range(5):
        h = np.tanh(h @ h) + u
    return h


def rows_of_the_first(h, u):
    for _ in range(5):
        h = np.tanh(h @ u) + h[0]
    return h


def gathered(h, u):
    for _ in range(5):
        h = np.tanh(h @ u)[::-1]
    return h


def read_again(h, u):
    states = np.zeros((6, *h.shape), h.dtype)
    for t in range(5):
        h = np.tanh(h @ u) + states[t]
        states[t + 1] = h
    return states


def changing_weights(h, u):
    for _ in range(5):
        h = np.tanh(h @ u)
        u = u * 0.9
    return h


@needs_compiler
@pytest.mark.parametrize(
    "function",
    [shifted, centred, turned, multiplied_by_itself, rows_of_the_first, gathered, read_again,
     changing_weights],
)  # fmt: skip
def test_rows_that_hang_on_each_other_stay_together(function: Callable[..., Any]) -> None:
    # Halved: a matrix times itself, again and again, may make much of how NumPy rounds.
    args = normal(UNITS, UNITS) / 2, normal(UNITS, UNITS) / 2
    compiled = pyrelay.jit(function)
    assert not section(compiled.code(*args))
    (value,) = by_threads(2, compiled, args)
    np.testing.assert_allclose(value, function(*args), rtol=2e-4, atol=1e-5)


def in_place(h, u):
    for _ in range(5):
        h[:] = np.tanh(h @ u)
    return np.sum(h)


def test_an_array_of_the_callers_takes_no_turns() -> None:
    args = normal(UNITS, UNITS), normal(UNITS, UNITS)
    again = args[0].copy(), args[1]
    compiled = pyrelay.jit(in_place)
    assert not section(compiled.code(*again))
    np.testing.assert_allclose(compiled(*again), in_place(*args), rtol=1e-4)
    np.testing.assert_allclose(again[0], args[0], rtol=1e-4, atol=1e-5)


def ahead(xs, h, u, k):
    for t in range(len(xs)):
        h = np.tanh(xs[t + k] + h @ u)
    return h


@needs_compiler
def test_what_every_part_raises_is_raised_once() -> None:
    args = normal(40, BATCH, UNITS), normal(BATCH, UNITS), normal(UNITS, UNITS)
    with config.override(num_threads=2):
        compiled = pyrelay.jit(ahead)
        np.testing.assert_allclose(compiled(*args, 0), ahead(*args, 0), rtol=2e-4, atol=1e-5)
        assert section(compiled.code(*args, 0))
        with pytest.raises(IndexError, match="index 40 is out of bounds for axis 0 with size 40"):
            compiled(*args, 3)
        np.testing.assert_allclose(compiled(*args, 0), ahead(*args, 0), rtol=2e-4, atol=1e-5)
