"""Gradients of random Python programs against central differences of plain Python.

Programs branch on the numbers they compute, so a point may lie at a jump or a kink: where two step
sizes disagree, the point says nothing and is dropped.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import pyrelay
from pyrelay import config
from tests.property.prelude import function_of
from tests.property.writing import Drawn, Writer

LOSS = '''
def loss(x, y, n, a, b):
    value, count, array = program(x, y, n, a, b)
    return tame(value * 0.2) + 0.1 * np.sum(array * array)
'''

ARGUMENTS = (
    0.7137, -1.3219, 3, np.array([0.9043, -0.4171, 0.3289]), np.array([-0.8117, 0.6233, 1.1019])
)
DIRECTIONS = (0.6, -0.9, 0, np.array([0.3, 0.8, -0.5]), np.array([-0.7, 0.2, 0.4]))
EVERY_CHECK = list(HealthCheck)


@st.composite
def programs(draw: Callable[[Any], Any]) -> str:
    return Writer(Drawn(lambda a, b: draw(st.integers(a, b))), 8).program()


def moved(step: float) -> tuple[Any, ...]:
    """The arguments, a step along the direction."""
    return tuple(
        a + step * d if isinstance(d, (float, np.ndarray)) else a
        for a, d in zip(copy.deepcopy(ARGUMENTS), DIRECTIONS, strict=True)
    )


def difference(function: Callable[..., Any], step: float) -> float:
    """The central difference along the direction; NaN at a kink, where the sides differ."""
    ahead, here, behind = (float(function(*moved(s))) for s in (step, 0.0, -step))
    if abs(ahead - 2 * here + behind) > 1e-3 * step * (1 + abs(ahead - behind) / step):
        return float("nan")
    return (ahead - behind) / (2 * step)


def check(text: str, interpret: bool) -> bool:
    """Compare a program's gradient with differences; false if the program says nothing."""
    function = function_of(text + LOSS, "loss", smooth=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            fine, coarse = difference(function, 1e-6), difference(function, 4e-6)
        except (ValueError, AssertionError):
            return False
    if not abs(fine - coarse) < 1e-6 * (1 + abs(fine)):
        return False
    slope = pyrelay.grad(function, argnums=(0, 1, 3, 4))
    with config.override(interpret=interpret):
        try:
            found = slope(*copy.deepcopy(ARGUMENTS))
        except pyrelay.AliasError:
            return False
    directions = [d for d in DIRECTIONS if not isinstance(d, int)]
    along = sum(float(np.sum(g * d)) for g, d in zip(found, directions, strict=True))
    assert along == pytest.approx(fine, rel=2e-4, abs=2e-4)
    return True


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=EVERY_CHECK)
@given(programs())
def test_gradients_of_random_programs_are_what_differences_say(text: str) -> None:
    assume(check(text, interpret=True))


@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=EVERY_CHECK)
@given(programs())
def test_compiled_gradients_of_random_programs_are_what_differences_say(text: str) -> None:
    assume(check(text, interpret=False))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(5))
def test_gradients_of_many_random_programs_are_what_differences_say(batch: int) -> None:
    for seed in range(batch * 60, batch * 60 + 60):
        text = Writer(random.Random(seed), 14).program()
        try:
            check(text, interpret=seed % 10 > 0)
        except Exception as error:
            error.add_note(f"seed {seed}:\n{text}")
            raise
