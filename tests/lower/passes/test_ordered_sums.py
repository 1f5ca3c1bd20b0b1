"""Loops that add up what takes long: written as sums, with the numbers of the program as it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyrelay


def added(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += np.sqrt(x[i]) / (1.0 + y[i])
    return total


def subtracted(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total -= 0.5 * (np.sqrt(x[i]) + y[i] / (1.0 + x[i]))
    return total


def where_branches_say(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if y[i] > 0.0:
            total += np.sqrt(x[i])
    return total


def either_way(x: Any, y: Any) -> Any:
    total, count, low = 0.0, 0, 0
    for i in range(len(x)):
        if y[i] > 0.3:
            total += np.sqrt(x[i])
            count += 1
        else:
            total -= y[i] / (x[i] + 1.0)
            low -= 2
    return total, count, low


def several(x: Any, y: Any) -> Any:
    first, second, last = 1.5, 0.0, -1
    for i in range(len(x)):
        root = np.sqrt(x[i])
        first -= root
        second += root * y[i]
        if y[i] > 0.0:
            first += 1.0 / (1.0 + root)
            last = 7
    return first, second, last


def from_minus_nothing(x: Any, y: Any) -> Any:
    total = -0.0
    for i in range(len(x)):
        total -= np.sqrt(x[i]) * abs(y[i])
    return total


def to_nothing(x: Any, y: Any) -> Any:
    total = 2.0
    for i in range(len(x)):
        total -= np.sqrt(x[i] * 0.0 + 4.0) if i == 0 else 0.0
    return total


PROGRAMS = (
    added, subtracted, where_branches_say, either_way, several, from_minus_nothing, to_nothing,
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_numbers_are_those_of_the_program_as_it_is(program: Any) -> None:
    random = np.random.default_rng(0)
    compiled = pyrelay.jit(program)
    for n in (1000, 0, 1, 7, 8, 9, 33):
        x, y = random.uniform(size=n), random.normal(size=n)
        for a in (x, x * 0.0):
            with np.errstate(all="ignore"):
                wanted, got = program(a, y), compiled(a, y)
            assert repr(got) == repr(wanted)  # to the last bit, and the sign of nothing


def test_what_is_no_number_and_what_has_no_bound_is_added_as_it_comes() -> None:
    x, y = np.arange(40.0), np.ones(40)
    x[11], y[13] = np.nan, -np.inf
    compiled = pyrelay.jit(where_branches_say)
    assert math.isnan(compiled(x, y))
    x[11] = np.inf
    assert compiled(x, y) == np.inf
    y[11] = 0.0
    assert compiled(x, y) == where_branches_say(x, y)


def likelihood(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total -= np.log(x[i] + 1.0) + y[i] ** 2 / (x[i] + 1.0)
    return total


def of_the_positive(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if y[i] > 0.0:
            total += np.exp(-y[i])
    return total


def rounds_side_by_side(x: Any, y: Any) -> Any:
    out = np.empty(3)
    for i in range(3):
        total = 0.0
        for k in range(len(x)):
            total += math.exp(-x[k] * i) * y[k]
        out[i] = total
    return out


@pytest.mark.parametrize("program", [likelihood, of_the_positive, rounds_side_by_side])
def test_no_function_in_such_a_sum_waits_for_the_sum(program: Any) -> None:
    random = np.random.default_rng(0)
    x, y = random.uniform(size=100), random.normal(size=100)
    compiled = pyrelay.jit(program)
    assert "lone_" not in str(compiled.code(x, y))
    np.testing.assert_allclose(compiled(x, y), program(x, y), rtol=1e-13)


def until(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += np.exp(-y[i])
        if total > 20.0:
            break
    return total


def of_the_sum_so_far(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += np.exp(-total) * x[i]
    return total


def products(x: Any, y: Any) -> Any:
    total = 1.0
    for i in range(len(x)):
        total *= 1.0 - np.exp(-x[i] - 1.0)
    return total


@pytest.mark.parametrize("program", [until, of_the_sum_so_far, products])
def test_what_is_more_than_a_sum_stays_as_it_is(program: Any) -> None:
    random = np.random.default_rng(0)
    x, y = random.uniform(size=100), random.normal(size=100)
    compiled = pyrelay.jit(program)
    assert "lone_exp" in str(compiled.code(x, y))
    np.testing.assert_allclose(compiled(x, y), program(x, y), rtol=1e-13)
