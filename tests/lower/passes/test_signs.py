"""Checks that signs of floats settle: which leave, which stay, and that programs fail as before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def lengths(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        y[i] = math.sqrt(x[i] * x[i] + y[i] ** 2)
    return y


def distances(x: Any, y: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        d = 0.0
        for j in range(len(y)):
            d += (x[i] - y[j]) ** 2
        out[i] = math.sqrt(0.25 * d)
    return out


def bells(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        y[i] = math.exp(-abs(x[i]) / max(y[i] * y[i], 1e-3))
    return y


def waves(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        y[i] = math.tanh(x[i]) + math.atan(y[i])
    return y


def roots(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        y[i] = math.sqrt(x[i])
    return y


def differences(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        y[i] = math.sqrt(x[i] * x[i] - y[i] * y[i])
    return y


def growths(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        y[i] = math.exp(x[i] * abs(y[i]))
    return y


def angles(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        y[i] = math.sin(x[i])
    return y


def started(x: Any, y: Any) -> Any:
    d = y[0]
    for i in range(len(x)):
        d += x[i] * x[i]
        y[i] = math.sqrt(d)
    return y


def windows(x: Any, y: Any) -> Any:
    """Of integers, whose squares fit, and of a number by itself."""
    for i in range(len(x)):
        s = y[i]
        for a in range(-2, 3):
            x[i] += math.exp(-(a * a + i * i) / max(2.0 * s * s, 1e-3))
    return x


def powers(x: Any, y: Any) -> Any:
    """Of an index, which begins at zero and goes far above it."""
    for i in range(800):
        x[0] += math.exp(i)
    return x


NUMBERS = (
    [0.0, 1.0, 2.0], [-0.0, -1.0, 2.0], [1e200, 3.0, 1.0], [1.0, np.inf, 1.0],
    [-np.inf, 0.0, 1.0], [np.nan, -3.0, 0.5], [2.0, -900.0, 1.0], [900.0, 1.0, 1.0],
)  # fmt: skip


def outcome(f: Callable[..., Any], x: Any, y: Any) -> Any:
    try:
        return f(x, y).tolist()
    except (ValueError, OverflowError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize(
    ("f", "checked"),
    [(lengths, False), (distances, False), (bells, False), (waves, False), (roots, True),
     (differences, True), (growths, True), (angles, True), (started, True),
     (windows, True), (powers, True)],
)  # fmt: skip
def test_checks_leave_where_signs_settle_them(f: Callable[..., Any], checked: bool) -> None:
    compiled = pyrelay.jit(f)
    for first in NUMBERS:
        for second in NUMBERS:
            with np.errstate(all="ignore"):
                x, y = np.array(first), np.array(second)
                wanted = outcome(f, x.copy(), y.copy())
                found = outcome(compiled, x, y)
            if isinstance(wanted, tuple) or isinstance(found, tuple):
                assert found == wanted, (first, second)
            else:
                np.testing.assert_allclose(found, wanted, rtol=1e-14, equal_nan=True)
    assert ("record" in str(compiled.code(x, y))) is checked


def test_squares_of_integers_that_fit_are_positive() -> None:
    x, y = np.ones(3), np.ones(3)
    assert "isinf" in str(pyrelay.jit(growths).code(x, y))
    assert "isinf" not in str(pyrelay.jit(windows).code(x, y))
