"""A sine stands beside the cosine of the same angle."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ops.python_numbers import words
from tests.devices.running_kernels import kernel_assembly


def turned(x: Any, steps: int) -> Any:
    """Steps that wait for each other, with a check of either function."""
    a, b = 1.0, 0.0
    for k in range(steps):
        angle = x * (a + b) + k
        a, b = a * math.cos(angle) + b, b * math.sin(angle) - a
    return a, b


def in_a_branch(x: Any, steps: int) -> Any:
    a = 1.0
    for k in range(steps):
        angle = x * a + k
        a = math.sin(angle)
        if a > 0.1:
            a += math.cos(angle) - math.sin(2.0 * angle)
    return a


def of_a_variable(x: Any, steps: int) -> Any:
    """Two angles, one after the other, in one variable."""
    total = 0.0
    for k in range(steps):
        c = math.cos(x)
        if c > 0.0:
            x += 0.5
        total += c * math.sin(x) + k
    return total, x


@pytest.mark.parametrize("f", [turned, in_a_branch, of_a_variable])
def test_values_and_errors_are_pythons(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    for x in (0.3, -2.0, 1e9, 0.0):
        assert compiled(x, 9) == pytest.approx(f(x, 9), rel=1e-12)
    with pytest.raises(ValueError, match=words(lambda: f(math.inf, 9))):
        compiled(math.inf, 9)
    assert np.isnan(compiled(math.nan, 9)).all() == np.isnan(f(math.nan, 9)).all()


def test_both_are_one_call_of_the_library() -> None:
    text = str(pyrelay.jit(turned).code(0.3, 9))
    head, body = text.split("\n\n\n", 1)
    kernel = re.sub(r"def \w+\(", "def kernel(", body.split("\n\n\n")[0], count=1)
    assembly = kernel_assembly(f"{head}\n\n\n{kernel}")
    assert re.search(r"\bsincos\b", assembly)
    assert not re.search(r"\b(sin|cos)\b@?", assembly)
