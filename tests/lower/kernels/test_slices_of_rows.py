"""Slices and parts of arrays along their first axis are read and written by one index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def neighbours(x: Any, y: Any) -> Any:
    return x[1:] - x[:-1], x[2:-1] * 2 + x[1:-2]


def joined(x: Any, y: Any) -> Any:
    return np.concatenate((x, y)), np.vstack((y[1:], x, y[:1])), np.concatenate((x, y))[2:-2] + 1


def moved(x: Any, y: Any) -> Any:
    padded = np.pad(x, ((2, 1), *((0, 0),) * (x.ndim - 1)))
    return np.roll(x, 2, axis=0), np.insert(x, 1, 0.0, axis=0), padded


def twice_moved(x: Any, y: Any) -> Any:
    return (np.concatenate((x[:1] * 2, x[1:3], x[2:]))[1:] + x,)


@pytest.mark.parametrize("function", [neighbours, joined, moved, twice_moved])
@pytest.mark.parametrize("shape", [(3,), (1, 2)])
def test_rows_are_those_that_numpy_chooses(function: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    compiled = pyrelay.jit(function)
    for rows, others in ((4, 2), (9, 5)):
        x, y = rng.random((rows, *shape)), rng.random((others, *shape))
        for found, wanted in zip(compiled(x, y), function(x, y), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_no_loop_goes_over_the_elements_of_a_row() -> None:
    x, y = np.ones((7, 3)), np.ones((4, 3))
    for function in (neighbours, joined, moved):
        text = str(pyrelay.jit(function).code(x, y)).split("# plan")[0]
        loops = [line for line in text.splitlines() if line.strip().startswith("for ")]
        assert loops
        assert not any(line.startswith(" " * 8) for line in loops)


def columns(x: Any) -> Any:
    return x[1:, 1:] + x[:-1, 1:], x[:, :-1] * 2, np.concatenate((x, x), axis=1), x[::2], x[::-1]


def broadcast(x: Any) -> Any:
    return x[1:] * x[0] + x[:1] - x[1:, :1], x[1:] + x[:-1].sum(axis=0)


def test_slices_of_columns_steps_and_repeated_rows_are_still_right() -> None:
    x = np.random.default_rng(0).random((5, 4))
    for function in (columns, broadcast):
        for found, wanted in zip(pyrelay.jit(function)(x), function(x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-15)
