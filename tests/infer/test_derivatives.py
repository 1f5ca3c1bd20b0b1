"""Derivatives requested inside a program: of anything callable, of derivatives, of writers."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import grad, jit, value_and_grad
from pyrelay.pipeline import lowered
from tests.infer.running import assert_same, interpreted

X = np.array([1.0, 2.0])


def derived(function: Any, *args: Any) -> Any:
    """The result through `infer` and `grad`, interpreted."""
    outcome = interpreted(function, args, lambda module: lowered(module, "grad"))
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


def cube(x):
    return x**3


slope = grad(cube)
curvature = grad(slope)
third = grad(curvature)
compiled_cube = jit(cube)


def test_derivatives_of_derivatives_inside_a_program() -> None:
    def program(x):
        return slope(x), curvature(x), third(x)

    assert_same(derived(program, 1.5), (6.75, 9.0, 6.0))


def test_the_derivative_of_a_closure_reads_what_it_captured() -> None:
    def program(x):
        return grad(lambda y: y * y * x)(x)

    assert_same(derived(program, 1.5), 4.5)


@dataclass
class Weighted:
    """Something to differentiate through its methods."""

    w: Any

    def loss(self, x):
        return np.sum(self.w * x)

    def __call__(self, x):
        return np.sum(self.w * x * x)


def scaled(a, x, b=1.0):
    return a * x * x * b


def test_methods_partials_and_callable_objects_have_derivatives() -> None:
    def program(x):
        model = Weighted(x * 2.0)
        fixed = functools.partial(scaled, 3.0, b=2.0)
        return grad(model.loss)(x), grad(model)(x), grad(fixed)(2.0)

    assert_same(derived(program, X), (np.array([2.0, 4.0]), np.array([4.0, 16.0]), 24.0))


def test_jitted_functions_are_called_and_differentiated_inside() -> None:
    def program(x):
        return compiled_cube(x), grad(compiled_cube)(x), jit(slope)(x)

    assert_same(derived(program, 1.5), (3.375, 6.75, 6.75))


def test_gradients_have_the_structure_of_the_arguments() -> None:
    def program(p, x):
        both = value_and_grad(
            lambda q, y: (np.sum(q["w"] * y), y * 2.0), argnums=(0, 1), has_aux=True
        )
        return both(p, x)

    result = derived(program, {"w": X, "name": "w"}, X + 2.0)
    wanted = ((np.float64(11.0), X * 2 + 4), ({"w": X + 2.0, "name": None}, X))
    assert_same(result, wanted)


def test_arguments_are_chosen_by_name() -> None:
    def program(x):
        first = grad(lambda y, *more, **named: y * more[0] * named["s"])(x, 2.0, s=3.0)
        return first, grad(scaled, argnames=("x", "b"))(2.0, x, 1.5)

    assert_same(derived(program, 0.5), (6.0, (3.0, 0.5)))


def powered(x, n):
    if n == 0:
        return x
    return powered(x, n - 1) * x


def test_recursion_has_a_second_derivative() -> None:
    def program(x):
        return grad(powered)(x, 3), grad(grad(powered))(x, 3)

    assert_same(derived(program, 1.5), (13.5, 27.0))


def square_root(x):
    y = 1.0
    while abs(y * y - x) > 1e-13:
        y = 0.5 * (y + x / y)
    return y


def test_a_loop_on_values_has_a_second_derivative() -> None:
    def program(x):
        return grad(square_root)(x), grad(grad(square_root))(x)

    first, second = derived(program, 2.0)
    assert first == pytest.approx(0.5 / math.sqrt(2), rel=1e-9)
    assert second == pytest.approx(-0.25 / 2**1.5, rel=1e-6)


def test_gradient_descent_runs_in_a_loop() -> None:
    def program(x):
        for _ in range(3):
            v, g = value_and_grad(lambda y: np.sum(y * y))(x)
            x = x - 0.1 * g
        return x, v

    assert_same(derived(program, X), (X * 0.512, np.float64(5 * 0.64**2)))


def test_a_function_chosen_at_run_time_is_differentiated() -> None:
    def program(x, n):
        f = np.sin if n > 0 else np.cos
        return grad(f)(x)

    assert derived(program, 0.5, 1) == pytest.approx(math.cos(0.5))
    assert derived(program, 0.5, -1) == pytest.approx(-math.sin(0.5))


def test_grad_writes_what_the_function_writes() -> None:
    def program(x):
        def f(y):
            y[0] = y[0] * 2.0
            return np.sum(y * y)

        z = x * 1.0
        return grad(f)(z), z

    assert_same(derived(program, X), (np.array([8.0, 4.0]), np.array([2.0, 2.0])))


def test_an_integer_argument_has_no_derivative() -> None:
    with pytest.raises(pyrelay.GradientError, match="pass a float"):
        derived(lambda n: grad(cube)(n), 3)


class Noisy:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)
        self.weights = {"w": np.ones((2, 2))}

    def loss(self, x: Any) -> Any:
        return np.sum((x @ self.weights["w"]) ** 2) + self.rng.standard_normal()


def test_an_object_with_a_generator_has_a_gradient_without_one() -> None:
    ours, plain, x = Noisy(), Noisy(), np.arange(6.0).reshape(3, 2)
    value, gradient = pyrelay.value_and_grad(lambda m, x: m.loss(x))(ours, x)
    assert value == pytest.approx(plain.loss(x))
    assert gradient.rng is None
    np.testing.assert_allclose(gradient.weights["w"], 2 * x.T @ (x @ plain.weights["w"]))
    assert ours.rng.random() == plain.rng.random()


SCALED = np.array([3.0, 4.0])


def test_an_array_that_is_two_arguments_has_a_derivative_by_each() -> None:
    def f(a: Any, b: Any) -> Any:
        return np.sum(a * b**2)

    x = np.array([1.0, 2.0])
    for by, wanted in ((0, x**2), (1, 2 * x * x)):
        assert_same(grad(f, by)(x, x), wanted)
        assert_same(pyrelay.jit(lambda a, b, by=by: grad(f, by)(a, b))(x, x), wanted)
        assert_same(pyrelay.jit(lambda a, by=by: grad(f, by)(a, a))(x), wanted)
    assert_same(pyrelay.jit(lambda x: grad(lambda a: np.sum(a * x))(x))(x), x)
    assert_same(grad(lambda a: np.sum(a * SCALED))(SCALED), SCALED)
    rows = np.arange(4.0).reshape(2, 2)
    assert_same(pyrelay.jit(lambda a: grad(f)(a[0], a))(rows), (rows**2).sum(0))


def test_a_function_that_writes_to_an_array_that_is_two_arguments_has_no_derivative() -> None:
    def f(a: Any, b: Any) -> Any:
        a[0] = 5.0
        return np.sum(a * b)

    x = np.array([1.0, 2.0])
    with pytest.raises(pyrelay.GradientError, match="reaches in two ways"):
        grad(f)(x, x)
    assert_same(grad(f)(x, x.copy()), np.array([0.0, 2.0]))
