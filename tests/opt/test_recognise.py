"""Formulas that are ops: what is recognised, what is not, and what a derivative keeps of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from passes import after, core, ops, run

import pyrelay
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.fold import fold
from pyrelay.opt.recognise import recognise
from pyrelay.opt.simplify import simplify

X = np.array([-800.0, -90.0, -3.0, -0.0, 0.0, 1.5, 40.0, 800.0, np.inf, -np.inf, np.nan])

LOGISTIC: tuple[Callable[..., Any], ...] = (
    lambda x: 1 / (1 + np.exp(-x)),
    lambda x: 1.0 / (np.exp(-x) + 1.0),
    lambda x: np.reciprocal(1 + np.exp(-x)),
    lambda x: np.divide(1, np.add(1, np.exp(-x))),
    lambda x: 2 * (1 / (1 + np.exp(-(x * 2)))) - 1,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("f", LOGISTIC, ids=range(len(LOGISTIC)))
def test_the_logistic_function_is_one_op(f: Any, dtype: Any) -> None:
    x = X.astype(dtype)
    module = after(core(f, x), fold, simplify, cse, recognise, dce)
    found = ops(module)
    assert found["sigmoid"] == 1
    assert found["exp"] == found["divide"] == 0
    with np.errstate(all="ignore"):
        wanted = f(x)
        (result,) = run(module, (x,))
    assert result.dtype == wanted.dtype
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(result, wanted, rtol=4 * np.finfo(dtype).eps, atol=tiny)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: 1 / (1 + np.exp(x)), X),
        (lambda x: 2 / (1 + np.exp(-x)), X),
        (lambda x: 1 / (2 + np.exp(-x)), X),
        (lambda x: 1 / (1 - np.exp(-x)), X),
        (lambda x: 1 / (1 + np.exp(-x)), X + 1j),
        (lambda x: np.ones(3) / (1 + np.exp(-x)), np.ones((2, 3))),
        (lambda x: 1 / (1 + math.exp(-x)), 0.5),
        (lambda x: np.exp(x) / (1 + np.exp(x)), X),
    ],
)
def test_other_formulas_stay(f: Any, x: Any) -> None:
    assert ops(after(core(f, x), fold, simplify, cse, recognise, dce))["sigmoid"] == 0


def test_an_overflow_of_pythons_floats_is_still_raised() -> None:
    @pyrelay.jit
    def logistic(x):
        return 1 / (1 + math.exp(-x))

    assert logistic(0.5) == pytest.approx(logistic.py(0.5))
    with pytest.raises(OverflowError, match="math range error"):
        logistic(-800.0)


def test_derivatives_to_the_second_order() -> None:
    def loss(x):
        return np.sum(1 / (1 + np.exp(-x)) * x)

    x = np.linspace(-4, 4, 7)
    s = 1 / (1 + np.exp(-x))
    first = pyrelay.grad(loss)
    second = pyrelay.grad(lambda x: np.sum(first(x)))
    np.testing.assert_allclose(first(x), s + x * s * (1 - s), rtol=1e-12)
    wanted = s * (1 - s) * (2 + x * (1 - 2 * s))
    np.testing.assert_allclose(second(x), wanted, rtol=1e-11, atol=1e-13)


def test_a_recurrence_keeps_one_number_for_each_gate() -> None:
    def gates(xs, h):
        for t in range(xs.shape[0]):
            h = h * (1 / (1 + np.exp(-(xs[t] * h))))
        return np.sum(h)

    kept = pyrelay.grad(gates).ir(np.ones((3, 4)), np.ones(4), stage="grad")
    assert kept.count("undef(") == 2
