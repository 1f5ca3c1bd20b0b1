"""pyrelay.nn: right as plain NumPy, the same compiled, stable, with derivatives that are finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

from pyrelay import grad, nn
from pyrelay.pipeline import lowered
from tests.infer.running import assert_same, interpreted

X = np.array([[-2.0, 0.0, 1.5], [0.25, 3.0, -0.5]])
EXTREME = np.array([-1e4, -40.0, 0.0, 40.0, 1e4])
LABELS = np.array([2, 0])

WANTED = [
    (nn.relu, (X,), np.maximum(X, 0)),
    (nn.sigmoid, (X,), scipy.special.expit(X)),
    (nn.silu, (X,), X * scipy.special.expit(X)),
    (nn.softplus, (X,), np.log1p(np.exp(X))),
    (nn.softmax, (X,), scipy.special.softmax(X, axis=-1)),
    (nn.softmax, (X, 0), scipy.special.softmax(X, axis=0)),
    (nn.log_softmax, (X,), scipy.special.log_softmax(X, axis=-1)),
    (nn.logsumexp, (X,), scipy.special.logsumexp(X)),
    (nn.logsumexp, (X, 1), scipy.special.logsumexp(X, axis=1)),
    (nn.logsumexp, (X, 1, True), scipy.special.logsumexp(X, axis=1, keepdims=True)),
    (nn.one_hot, (LABELS, 3), np.eye(3, dtype=np.float32)[LABELS]),
    (nn.cross_entropy, (X, LABELS), -scipy.special.log_softmax(X, 1)[[0, 1], LABELS].mean()),
    (nn.mse, (X, X * 0.5), np.mean((X * 0.5) ** 2)),
    (nn.layer_norm, (X,), (X - X.mean(1)[:, None]) / np.sqrt(X.var(1)[:, None] + 1e-5)),
    (nn.layer_norm, (X, X[0], X[1]), nn.layer_norm(X) * X[0] + X[1]),
]


@pytest.mark.parametrize(("function", "args", "wanted"), WANTED)
def test_values_are_right_plain_and_compiled(function: Any, args: Any, wanted: Any) -> None:
    plain = function(*args)
    np.testing.assert_allclose(plain, wanted, 1e-12)
    compiled = interpreted(function, args)
    if compiled.error is not None:
        raise compiled.error
    assert_same(compiled.result, plain)


def test_gelu_is_near_the_exact_one() -> None:
    exact = 0.5 * X * (1 + scipy.special.erf(X / np.sqrt(2)))
    np.testing.assert_allclose(nn.gelu(X), exact, atol=5e-4)


@pytest.mark.parametrize("function", [nn.relu, nn.sigmoid, nn.softmax, nn.layer_norm, nn.gelu])
def test_single_precision_stays_single(function: Any) -> None:
    assert function(X.astype(np.float32)).dtype == np.float32


ELEMENTWISE = [nn.relu, nn.sigmoid, nn.silu, nn.gelu, nn.softplus, nn.softmax, nn.log_softmax]


@pytest.mark.parametrize("function", ELEMENTWISE)
def test_values_and_derivatives_of_extreme_numbers_are_finite(function: Any) -> None:
    def program(x):
        return function(x), grad(lambda y: np.sum(function(y) * np.arange(5.0)))(x)

    outcome = interpreted(program, (EXTREME,), lambda module: lowered(module, "grad"))
    if outcome.error is not None:
        raise outcome.error
    value, gradient = outcome.result
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()


def test_logsumexp_of_nothing_possible_is_minus_infinity() -> None:
    with np.errstate(divide="ignore"):
        assert nn.logsumexp(np.full(3, -np.inf)) == -np.inf


def test_the_derivative_of_cross_entropy_is_softmax_minus_one_hot() -> None:
    def program(x, labels):
        return grad(nn.cross_entropy)(x, labels)

    outcome = interpreted(program, (X, LABELS), lambda module: lowered(module, "grad"))
    wanted = (nn.softmax(X) - nn.one_hot(LABELS, 3)) / 2
    np.testing.assert_allclose(outcome.result, wanted, 1e-7)


def test_cross_entropy_of_a_label_that_is_no_class_raises() -> None:
    assert isinstance(interpreted(nn.cross_entropy, (X, LABELS + 1)).error, IndexError)


def test_stop_gradient_is_a_constant_to_derivatives() -> None:
    def program(x):
        return grad(lambda y: nn.stop_gradient(y) * y)(x)

    outcome = interpreted(program, (3.0,), lambda module: lowered(module, "grad"))
    assert outcome.result == 3.0
