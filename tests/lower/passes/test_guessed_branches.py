"""Branches that wait for what they chose a round before are guessed; others may be choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.compiler.kernel_compiler import optimised_module


def chain(n: int, seed: int) -> tuple[float, int]:
    """Metropolis's: what is accepted decides what the next step is compared with."""
    s, x, accepted, total = seed, 0.0, 0, 0.0
    for _ in range(n):
        s = (s * 1103515245 + 12345) & 0x7FFFFFFF
        y = x + s / 2147483648.0 - 0.5
        s = (s * 1103515245 + 12345) & 0x7FFFFFFF
        if s / 2147483648.0 < math.exp(0.5 * (x * x - y * y)):
            x = y
            accepted += 1
        total += x
    return total, accepted


def reactions(n: int, seed: int) -> tuple[int, int]:
    """Which of four happens hangs on rates, which are quotients of what has happened."""
    s, a, b = seed, 5, 5
    for _ in range(n):
        first = 20.0 / (1.0 + b)
        second = first + 20.0 / (1.0 + a)
        s = (s * 1103515245 + 12345) & 0x7FFFFFFF
        v = s / 2147483648.0 * (second + 0.5 * (a + b))
        if v < first:
            a += 1
        elif v < second:
            b += 1
        elif v < second + 0.5 * a:
            a -= 1
        else:
            b -= 1
    return a, b


def greatest(x: Any) -> tuple[float, int]:
    """A comparison later the next one is asked: that is quicker than a wrong guess."""
    best, place = x[0], 0
    for i in range(len(x)):
        if x[i] > best:
            best = x[i]
            place = i
    return best, place


def apart(x: Any) -> float:
    """A long condition of which nothing is chosen that it is made of."""
    total = 0.0
    for i in range(len(x)):
        step = 1.0
        if math.exp(-x[i] * x[i]) < 0.5:
            step += x[i]
        total += step
    return total


ROW = np.random.default_rng(3).standard_normal(50)
GUESSED = {chain: 1, reactions: 3, greatest: 0, apart: 0}
ARGUMENTS: dict[Callable[..., Any], tuple[Any, ...]] = {
    chain: (200, 7), reactions: (300, 4), greatest: (ROW,), apart: (ROW,),
}  # fmt: skip


@pytest.mark.parametrize("f", GUESSED, ids=lambda f: f.__name__)
def test_branches_are_guessed_where_a_choice_waits_for_the_one_before(f: Any) -> None:
    compiled = pyrelay.jit(f)
    code = compiled.code(*ARGUMENTS[f])
    assert code.count("guessed()") == GUESSED[f]
    np.testing.assert_allclose(compiled(*ARGUMENTS[f]), f(*ARGUMENTS[f]), rtol=1e-12)


_BRANCH = """
from pyrelay.devices.compiler.vocabulary import *

def kernel(block, begin, end):
    v = 1.0
    w = 1.0
    for i in range(begin, end):
        if v * v < f64(i):
            {first}
            w = v + 1.0
        else:
            w = v * 0.5
        v = w
    store_f64(param_i64(block, 0), 0, v)
    return 0
"""


def test_nothing_is_chosen_where_a_branch_is_guessed() -> None:
    chosen = str(optimised_module(_BRANCH.format(first="w = v"), "chosen"))
    guessed = str(optimised_module(_BRANCH.format(first="guessed()"), "guessed"))
    assert " select " in chosen
    assert " select " not in guessed
