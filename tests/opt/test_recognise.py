"""Formulas that are ops: what is recognised, what is not, and what a derivative keeps of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops, run

import pyrelay
from pyrelay import nn
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.fold import fold
from pyrelay.opt.recognise import plain, recognise
from pyrelay.opt.simplify import simplify
from pyrelay.pipeline import lowered

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
    assert kept.count("undef(") == 3  # two rows kept, and the gradient's


# -- softmax and its logarithms --------------------------------------------------------------------


def _rows(x):
    return np.max(x, axis=-1, keepdims=True)


def _plain(x):
    e = np.exp(x - _rows(x))
    return e / np.sum(e, axis=-1, keepdims=True)


def _unshifted(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def _of_columns(x):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


def _without_kept_axes(x):
    e = np.exp(x - x.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, np.newaxis]


def _reshaped(x):
    e = np.exp(x - x.max(axis=1).reshape(-1, 1))
    return e / e.sum(axis=1).reshape((-1, 1))


def _turned(x):
    e = np.exp(x.T - np.max(x, axis=1))
    return (e / np.sum(e, axis=0)).T


def _of_all(x):
    e = np.exp(x - np.max(x))
    return e / e.sum()


def _shifted_by_the_largest_of_all(x):
    e = np.exp(x - x.max())
    return e / e.sum(axis=1, keepdims=True)


def _of_the_library(x):
    return nn.softmax(x, where=x > -1)


def _of_a_row(x):
    e = np.exp(x[0] - np.max(x[0]))
    return e / e.sum()


def _in_place(x):
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


SOFTMAX = (
    _plain, _unshifted, _of_columns, _without_kept_axes, _reshaped, _turned, _of_all,
    _shifted_by_the_largest_of_all, _of_the_library, _of_a_row, _in_place,
)  # fmt: skip


def _log_of_rows(x):
    z = x - _rows(x)
    return z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))


def _log_unshifted(x):
    return x - np.log(np.exp(x).sum(axis=1))[:, None]


LOG_SOFTMAX = (_log_of_rows, _log_unshifted)


def _sums_of_rows(x):
    top = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=1)) + top[:, 0]


def _kept_sums(x):
    top = x.max(axis=1, keepdims=True)
    return top + np.log(np.exp(x - top).sum(axis=1, keepdims=True))


def _sums_of_columns(x):
    top = x.max(0)
    return top + np.log(np.sum(np.exp(x - top), 0))


def _cross_entropy(x):
    top = x.max(1)
    return x[:, 0] - (top + np.log(np.exp(x - top[:, None]).sum(1)))


SUMS = (_sums_of_rows, _kept_sums, _sums_of_columns, _cross_entropy)
FORMULAS = [
    *((f, "softmax") for f in SOFTMAX), *((f, "log_softmax") for f in LOG_SOFTMAX),
    *((f, "logsumexp") for f in SUMS),
]  # fmt: skip
SQUARE = np.sin(np.arange(1.0, 17.0) * 2.1).reshape(4, 4) * 2


@pytest.mark.parametrize(("f", "name"), FORMULAS, ids=lambda x: getattr(x, "__name__", x))
def test_softmax_and_its_logarithms_have_a_derivative_of_their_own(f: Any, name: str) -> None:
    module = after(core(f, SQUARE), fold, simplify, cse, recognise, dce)
    assert ops(module)[name] == 1
    kept = after(module, plain, dce)
    assert ops(kept)[name] == 0
    assert ops(kept)["stop_gradient"] == ops(core(f, SQUARE))["stop_gradient"]
    assert_same_runs(core(f, SQUARE), kept, (SQUARE,))

    def loss(x):
        y = f(x)
        return np.sum(y * np.cos(np.arange(1, y.size + 1).reshape(y.shape)))

    gradient = lowered(core(_gradient_of(loss), SQUARE), "optimise")
    assert ops(gradient)["equal"] == ops(core(f, SQUARE))["equal"]
    step = 1e-6 * np.cos(SQUARE * 3)
    wanted = (loss(SQUARE + step) - loss(SQUARE - step)) / 2
    assert np.sum(pyrelay.grad(loss)(SQUARE) * step) == pytest.approx(wanted, rel=1e-7)


def _gradient_of(loss: Any) -> Any:
    gradient = pyrelay.grad(loss)
    return lambda x: gradient(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.exp(x) / np.sum(np.exp(x), axis=1),  # of a square: row by column
        lambda x: np.exp(x) / np.sum(np.exp(2 * x), axis=1, keepdims=True),
        lambda x: np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True).T,
        lambda x: np.exp(x) / np.mean(np.exp(x), axis=1, keepdims=True),
        lambda x: np.log(np.sum(np.exp(x - x.max(1)), axis=1)) + x.max(1),
        lambda x: np.log(np.sum(np.exp(x - x.max(0)), axis=1)) + x.max(0),
        lambda x: np.log(np.sum(np.exp(x - x.max()), axis=1)) + x.max(1),
        lambda x: x - np.log(np.sum(np.exp(x), axis=1)),
        lambda x: x.T - np.log(np.sum(np.exp(x), axis=1, keepdims=True)),
        lambda x: np.log(np.sum(np.exp(x - x.min(1, keepdims=True)), 1, keepdims=True)) + x.max(
            1, keepdims=True
        ),
    ],
)
def test_what_is_no_softmax_keeps_the_derivative_of_its_formula(f: Any) -> None:
    found = ops(after(core(f, SQUARE), fold, simplify, cse, recognise, dce))
    assert found["softmax"] == found["log_softmax"] == found["logsumexp"] == 0

    def loss(x):
        return np.sum(f(x) * np.cos(np.arange(1.0, 5.0)))

    step = 1e-6 * np.cos(SQUARE * 3)
    wanted = (loss(SQUARE + step) - loss(SQUARE - step)) / 2
    assert np.sum(pyrelay.grad(loss)(SQUARE) * step) == pytest.approx(wanted, rel=1e-7)


def test_a_gradient_of_attention_keeps_one_array_of_scores() -> None:
    def loss(q, k, v):
        return np.sum((_plain(q @ k.T / 2) @ v) ** 2)

    args = [SQUARE[:, :3], SQUARE[:, 1:] * 2, SQUARE]
    code = pyrelay.jit(pyrelay.grad(loss, argnums=(0, 1, 2)))
    code(*args)
    assert code.ir(*args, stage="fuse").count("\nkernel @") == 3


def test_second_derivatives_of_a_softmax() -> None:
    def loss(x):
        return np.sum(_plain(x) * np.cos(np.arange(1.0, 5.0)))

    first = pyrelay.grad(loss)
    second = pyrelay.grad(lambda x: np.sum(first(x) * np.sin(x)))
    step = 1e-6 * np.cos(SQUARE * 3)

    def slope(x):
        return np.sum(first(x) * np.sin(x))

    wanted = (slope(SQUARE + step) - slope(SQUARE - step)) / 2
    assert np.sum(second(SQUARE) * step) == pytest.approx(wanted, rel=1e-6)


def test_rows_without_a_finite_score() -> None:
    def masked(x):
        p = _plain(np.where(SQUARE > 0, x, -np.inf))
        return np.sum(p * x)

    found = pyrelay.grad(masked)(SQUARE)
    assert np.isfinite(found).all()
    assert (found[SQUARE <= 0] == 0).all()
