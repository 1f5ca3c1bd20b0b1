"""Which functions of floats are the C library's: those that wait for each other."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import pyrelay


def alone(code: Any) -> set[str]:
    return set(re.findall(r"\b(lone_\w+)\(", str(code)))


def repeated(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = math.exp(-x)
    return x


def through_a_branch(x: Any, n: Any) -> Any:
    for k in range(n):
        if x > 0.5:
            x = 0.4 + x**0.3 / (k + 1)
        x += 0.3
    return x


def until_near(x: Any, n: Any) -> Any:
    k = 0
    while math.log(k + x + 1.5) < n:
        k += 1
    return k


def steps(x: Any, n: Any) -> Any:
    t, h = 0.0, 0.1
    while t < n:
        error = abs(math.sin(t) * h) + 1e-3
        t += h
        h = min(0.5, h * (0.01 / error) ** 0.25)
    return t, h, x


def in_single(x: Any, n: Any) -> Any:
    y = np.float32(x)
    for _ in range(n):
        y = np.sin(y) + np.float32(0.4)
    return y


@pytest.mark.parametrize(
    ("program", "name", "n"),
    [(repeated, "exp", 9), (through_a_branch, "power", 9), (until_near, "log", 3),
     (steps, "power", 4), (in_single, "sin", 9)],
)  # fmt: skip
def test_what_a_round_makes_of_the_round_before_is_computed_alone(
    program: Any, name: str, n: int
) -> None:
    compiled = pyrelay.jit(program)
    assert alone(compiled.code(0.3, n)) == {f"lone_{name}"}
    tolerance = 1e-5 if program is in_single else 1e-13
    np.testing.assert_allclose(compiled(0.3, n), program(0.3, n), rtol=tolerance)


def added(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        total += math.exp(x[i])
    return total


def each(x: Any, n: Any) -> Any:
    out = np.empty(n)
    for i in range(n):
        out[i] = math.log(x[i] + 2.0) ** 0.3
    return out


def in_place(x: Any, n: Any) -> Any:
    y = x.copy()
    for i in range(n):
        y[i] = math.exp(y[i])
    return y


def rows_of_chains(x: Any) -> Any:
    out = np.empty(len(x))
    for i in range(len(x)):
        value = x[i]
        for _ in range(20):
            value = math.exp(-value)
        out[i] = value
    return out


def chosen(x: Any, at: Any) -> Any:
    total = 0.0
    for k in at:
        if 0 <= k < len(x):
            total += math.exp(-x[k])
    return total


def test_what_is_added_where_a_branch_says_so_is_computed_alone() -> None:
    x, at = np.linspace(0.0, 3.0, 20), np.arange(-7, 25, 3)
    compiled = pyrelay.jit(chosen)
    assert alone(compiled.code(x, at)) == {"lone_exp"}
    np.testing.assert_allclose(compiled(x, at), chosen(x, at), rtol=1e-13)


def learned(x: Any, y: Any) -> Any:
    w = np.zeros(x.shape[1])
    for i in range(len(x)):
        z = 0.0
        for k in range(len(w)):
            z += w[k] * x[i, k]
        error = 1.0 / (1.0 + math.exp(-z)) - y[i]
        for k in range(len(w)):
            w[k] -= 0.1 * error * x[i, k]
    return w


def test_what_waits_for_an_array_that_inner_loops_go_through_is_computed_alone() -> None:
    x = np.random.default_rng(0).standard_normal((20, 5))
    y = (x[:, 0] > 0.0).astype(float)
    compiled = pyrelay.jit(learned)
    assert alone(compiled.code(x, y)) == {"lone_exp"}
    np.testing.assert_allclose(compiled(x, y), learned(x, y), rtol=1e-12)


def of_angles(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = math.tanh(x) + 0.4
    return x


@pytest.mark.parametrize("program", [added, each, in_place])
def test_what_may_be_vectors_stays_ours(program: Any) -> None:
    x = np.linspace(0.0, 1.0, 40)
    compiled = pyrelay.jit(program)
    assert not alone(compiled.code(x, 40))
    np.testing.assert_allclose(compiled(x, 40), program(x, 40), rtol=1e-13)


def test_what_ours_are_quick_at_stays_ours() -> None:
    assert not alone(pyrelay.jit(of_angles).code(0.3, 9))


def test_chains_side_by_side_are_vectors_still() -> None:
    x = np.linspace(0.0, 1.0, 40)
    compiled = pyrelay.jit(rows_of_chains)
    text = str(compiled.code(x))
    assert " exp(" in text
    assert " lone_exp(" in text  # if there are few rows
    np.testing.assert_allclose(compiled(x), rows_of_chains(x), rtol=1e-13)
