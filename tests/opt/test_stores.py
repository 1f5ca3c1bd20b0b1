"""What a program has stored in its caller's arrays when it raises is what Python has stored."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def a_product_before_a_quotient(xs: Any, w: Any, out: Any, ks: Any) -> Any:
    for t in range(len(xs)):
        y = np.tanh(xs[t] @ w)
        z = 10 // int(ks[t])
        out[t] = y
        out[t, 0, 0] = z


def a_row_before_a_quotient(xs: Any, w: Any, out: Any, ks: Any) -> Any:
    for t in range(len(xs)):
        out[t] = np.tanh(xs[t])
        out[t, 0] = 10 // int(ks[t])


def rows_of_a_selection(xs: Any, w: Any, out: Any, ks: Any) -> Any:
    for t in range(len(xs)):
        out[t] += xs[t] * 2
        out[t] += w[ks[t] + np.arange(3)]


def a_root_after_a_store(xs: Any, w: Any, out: Any, ks: Any) -> Any:
    for t in range(len(xs)):
        out[t] = xs[t] * 2
        out[t, 0] += math.sqrt(ks[t] - 0.5)


XS, W = np.random.default_rng(0).normal(size=(2, 4, 3, 3))
PROGRAMS = (
    a_product_before_a_quotient, a_row_before_a_quotient, rows_of_a_selection, a_root_after_a_store,
)


def ended(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What a function does: what it gives or raises."""
    try:
        return "given", function(*args)
    except (ValueError, ArithmeticError, IndexError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_arrays_hold_what_was_stored_before_the_program_raised(program: Any) -> None:
    plain = (XS, W[0], np.zeros((4, 3, 3)), np.array([1, 2, 0, 4]))
    given = copy.deepcopy(plain)
    assert ended(pyrelay.jit(program), given) == (end := ended(program, plain))
    assert end[0] != "given" or program is rows_of_a_selection
    for mine, theirs in zip(given, plain, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
