"""Where arrays of loops that are kernels live: how much memory they take, and what they hold."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pyrelay


def leapfrog(x, v, h, steps):
    for _ in range(steps):
        v = v - h * np.sin(x)
        x = x + h * v
    return x, v


def at_once(x, v, h, steps):
    for _ in range(steps):
        x, v = x + h * v, v - h * x
    return x, v


def runge_kutta(x, v, h, steps):
    def slope(x):
        return v * x * (1.0 - x)

    for _ in range(steps):
        a = slope(x)
        b = slope(x + 0.5 * h * a)
        c = slope(x + 0.5 * h * b)
        x = x + h / 6.0 * (a + 2.0 * b + 2.0 * c + slope(x + h * c))
    return x, v


def exchanged(x, v, h, steps):
    for _ in range(steps):
        x, v = v + h, x * h
    return x, v


def shifted(x, v, h, steps):
    for _ in range(steps):
        x, v = x + h * v[::-1], v - h * x
    return x, v


def of_two_sizes(x, v, h, steps):
    y, w = x[:7], v[:7]
    for _ in range(steps):
        x, v = x + h * v, v - h * x
        y, w = y - h * w, w + h * y
    return x + np.sum(y), v * np.sum(w)


def one_of_them_whole(x, v, h, steps):
    for _ in range(steps):
        total = np.sum(x * v)
        x, v = x + h * v / total, v - h * x
    return x, v


def one_stays_as_the_other_was(x, v, h, steps):
    for _ in range(steps):
        x, v = x * h + v, x
    return x, v


PROGRAMS = (
    leapfrog, at_once, runge_kutta, exchanged, shifted, of_two_sizes, one_of_them_whole,
    one_stays_as_the_other_was,
)


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_carried_arrays_have_the_values_that_python_gives_them(function, steps: int) -> None:
    rng = np.random.default_rng(2)
    x, v = rng.random(40), rng.random(40)
    for found, expected in zip(
        pyrelay.jit(function)(x, v, 0.1, steps), function(x, v, 0.1, steps), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "buffers"),
    [(leapfrog, 2), (at_once, 2), (runge_kutta, 1), (exchanged, 2), (shifted, 3)],
)
def test_results_of_a_round_are_stored_together(function, buffers: int) -> None:
    """Besides the copies of the arguments that the loop starts from nothing is allocated."""
    text = str(pyrelay.jit(function).code(np.ones(100), np.ones(100), 0.1, 3))
    assert text.count("launch") == 1
    assert text.count("= allocate") == buffers


def test_functions_of_what_a_product_reads_are_computed_once() -> None:
    def recurrence(x, w):
        state = np.zeros(5)
        for i in range(len(x)):
            state = np.tanh(state) @ w + x[i]
        return state

    text = str(pyrelay.jit(recurrence).code(np.ones((9, 5)), np.ones((5, 5))))
    assert text.count("tanh(load") == 1
    assert not re.search(r"add_reassociated\(.*tanh", text)
