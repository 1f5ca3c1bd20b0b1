"""Loops over arrays of several parts are loops over one part each."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay


def rolled(u, r, steps):
    for _ in range(steps):
        u = u + r * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1))
    return u


def rolled_far(u, r, steps):
    return r * np.roll(u, 7) + np.roll(u, -9) * steps


def joined(u, r, steps):
    for _ in range(steps):
        u = r * np.concatenate((u[3:], np.sqrt(u[:2]), u[2:3]))
    return u


def padded(u, r, steps):
    for _ in range(steps):
        w = np.concatenate((u[-1:], u, u[:1]))
        u = u + r * (w[2:] - w[:-2])
    return u


def taken(u, r, steps):
    at = np.arange(len(u)) - steps
    return r * np.concatenate((u[at], u[::-1]))


def of_a_matrix(a, r, steps):
    for _ in range(steps):
        a = a + r * (np.roll(a, 1, axis=0) - np.roll(a, -1, axis=1))
    return a


@pytest.mark.parametrize("size", [3, 5, 6, 17, 40, 5000])
@pytest.mark.parametrize("function", [rolled, rolled_far, joined, padded, taken])
def test_vectors_have_the_values_that_python_gives_them(function, size: int) -> None:
    u = np.random.default_rng(size).random(size)
    np.testing.assert_allclose(
        pyrelay.jit(function)(u, 0.2, 3), function(u, 0.2, 3), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("size", [0, 1, 2])
def test_short_vectors_roll_over_their_ends(size: int) -> None:
    u = np.arange(1.0, size + 1.0)
    np.testing.assert_allclose(
        pyrelay.jit(padded)(u, 0.2, 3), padded(u, 0.2, 3), rtol=1e-12, atol=1e-14
    )
    if size:
        np.testing.assert_allclose(pyrelay.jit(rolled)(u, 0.2, 3), rolled(u, 0.2, 3), rtol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 20), (90, 80)])
def test_matrices(shape: tuple[int, int]) -> None:
    a = np.random.default_rng(1).random(shape)
    np.testing.assert_allclose(
        pyrelay.jit(of_a_matrix)(a, 0.2, 3), of_a_matrix(a, 0.2, 3), rtol=1e-12
    )


def test_the_first_place_that_is_none_is_told() -> None:
    def both(u, at, other):
        return np.concatenate((u[at], u[other]))

    u, at, other = np.arange(4.0), np.array([0, 7, 9]), np.array([1, 5])
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        pyrelay.jit(both)(u, at, other)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        pyrelay.jit(both)(u, at[:1], other)


@pytest.mark.parametrize("function", [rolled, joined, padded])
def test_loops_ask_for_no_part(function) -> None:
    text = str(pyrelay.jit(function).code(np.ones(100), 0.2, 3))
    asked = [line for line in text.splitlines() if line.strip().startswith("if i")]
    assert asked == []
    assert text.count("    for i") >= 3
