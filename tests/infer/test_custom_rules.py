"""Functions with a derivative of the user's own, in both modes and any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import custom_vjp, grad, hvp, jacfwd, jit, jvp
from tests.infer.running import assert_same
from tests.infer.test_derivatives import derived

X = np.array([0.5, 3.0, -2.0])


@custom_vjp
def clipped(x):
    return np.clip(x, -1.0, 1.0)


@clipped.def_vjp
def straight_through(cotangent, value, x):
    return (cotangent,)


@custom_vjp
def scaled(p, y, n):
    return {"s": np.sin(p["w"]) * y, "n": n}, y * 2.0


def scaled_forward(p, y, n):
    return scaled.py(p, y, n), (np.cos(p["w"]), np.sin(p["w"]), y)


def scaled_backward(residuals, cotangent):
    c, s, y = residuals
    g, h = cotangent
    return {"w": 10 * g["s"] * c * y, "k": None}, np.sum(g["s"] * s) + 2 * h, None


scaled.defvjp(scaled_forward, scaled_backward)


def test_the_rule_is_the_derivative_in_both_modes_and_of_second_order():
    def f(x):
        return np.sum(clipped(x) ** 2 * x)

    def program(x, v):
        return clipped(x), grad(f)(x), jvp(f, (x,), (v,))[1], hvp(f, x, v), jit(clipped)(x)

    c, v = np.clip(X, -1, 1), np.array([1.0, 2.0, 3.0])
    slope = 2 * c * X + c * c
    curvature = 2 * X + 4 * c  # of a straight line through clipped, as the rule says
    wanted = (c, slope, np.sum(slope * v), curvature * v, c)
    assert_same(derived(program, X, v), wanted)
    assert_same(clipped(X), c)


def test_a_rule_in_two_halves_of_structures():
    def f(w, y):
        out, more = scaled({"w": w, "k": 2}, y, 3)
        return np.sum(out["s"]) * out["n"] + more

    def program(w, y):
        return f(w, y), grad(f, argnums=(0, 1))(w, y), jvp(f, (w, y), (w, 1.0))[1]

    value, (of_w, of_y), moved = derived(program, X, 1.5)
    np.testing.assert_allclose(value, 4.5 * np.sum(np.sin(X)) + 3)
    np.testing.assert_allclose(of_w, 45 * np.cos(X))
    np.testing.assert_allclose(of_y, 3 * np.sum(np.sin(X)) + 2)
    np.testing.assert_allclose(moved, of_w @ X + of_y)


@custom_vjp
def rounded(x, step):
    return np.round(x / step) * step


def rounded_forward(x, step):
    return rounded(x, step), step


rounded.defvjp(rounded_forward, lambda step, cotangent: (cotangent, None))


def test_a_forward_half_calls_the_function_that_it_stands_for():
    def program(x):
        return rounded(x, 0.4), grad(lambda v: np.sum(rounded(v, 0.4) ** 2))(x)

    nearest = np.round(X / 0.4) * 0.4
    assert_same(derived(program, X), (nearest, 2 * nearest))


def test_rules_run_in_loops_and_branches():
    def f(x):
        for i in range(5):
            x = clipped(x) + 0.1 if i % 2 else scaled({"w": x, "k": 1}, 1.5, i)[0]["s"]
        return x

    def program(x):
        return grad(lambda x: np.sum(f(x)))(x), jacfwd(f)(x)

    slope, columns = derived(program, X)
    np.testing.assert_allclose(columns.sum(0), slope)
    assert slope[0] != 0


class Cell:
    def __init__(self, w):
        self.w = w

    @custom_vjp
    def up(self, x):
        return x * self.w

    @custom_vjp
    def down(self, x):
        return x - self.w

    def __call__(self, x):
        return self.down(self.up(x)) + clipped(self.up(x))


@Cell.up.def_vjp
def up_slope(cotangent, value, cell, x):
    return None, 3.0 * cotangent


@Cell.down.def_vjp
def down_slope(cotangent, value, cell, x):
    return None, 5.0 * cotangent


def test_methods_have_rules_several_in_a_program():
    def program(w, x):
        cell = Cell(w)
        return cell(x), grad(lambda x: np.sum(cell(x)))(x), jacfwd(cell.up)(x)

    value, slope, columns = derived(program, 2.0, X)
    assert_same(value, Cell(2.0)(X))
    assert_same(slope, np.full(3, 15.0 + 3.0))
    assert_same(columns, 3.0 * np.eye(3))
    cell = Cell(2.0)
    assert_same(grad(lambda x: np.sum(cell.up(x)))(X), np.full(3, 3.0))
    assert_same(jit(cell.up)(X), 2.0 * X)


def test_a_rule_is_not_made_in_a_program():
    def program(x):
        return custom_vjp(lambda y: y * y)(x)

    with pytest.raises(pyrelay.UnsupportedOperationError, match="not made inside a compiled"):
        derived(program, X)


def _faulty(*answer: Any) -> Any:
    @custom_vjp
    def f(x, y):
        return x * y

    if answer:
        f.def_vjp(lambda g, value, x, y: answer[0](g))
    return f


@pytest.mark.parametrize(
    ("f", "told"),
    [
        (_faulty(), "'f' has no rule for its derivative yet"),
        (_faulty(lambda g: g), "must return a tuple with a cotangent for each of its 2 arguments"),
        (_faulty(lambda g: (g,)), "it returns a tuple of 1 for a tuple of 2"),
        (_faulty(lambda g: (np.sum(g), g)), r"it returns another type than f64\[3\]"),
        (_faulty(lambda g: ({"w": g}, g)), r"it returns another type than f64\[3\]"),
    ],
)
def test_rules_that_are_missing_or_do_not_fit_are_refused(f, told):
    with pytest.raises(pyrelay.GradientError, match=told):
        derived(lambda x, y: f(x, y), X, X)


def test_a_rule_is_given_once_and_is_a_function():
    with pytest.raises(pyrelay.InvalidValueError, match="has a rule already"):
        clipped.def_vjp(straight_through)
    with pytest.raises(pyrelay.TypeMismatchError, match="made of functions"):
        _faulty().def_vjp(3)
    with pytest.raises(pyrelay.TypeMismatchError, match="custom_vjp takes a function, not int"):
        custom_vjp(3)
    assert repr(clipped) == "<pyrelay.custom_vjp of clipped>"
