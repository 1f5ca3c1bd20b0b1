"""`check_grads`: right derivatives pass, wrong ones are named by argument and element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import pyrelay
from pyrelay import check_grads

X = np.array([0.3, 0.7, -0.4])


@dataclass
class Line:
    slope: np.ndarray
    name: str = "line"


def test_right_derivatives_of_any_structure_pass():
    def loss(p, x, n):
        for _ in range(n):
            x = np.tanh(x @ p["w"] + p["b"])
        return np.sum(x * x) * p["scale"][0]

    rng = np.random.default_rng(0)
    p = {"w": rng.standard_normal((3, 3)), "b": rng.standard_normal(3), "scale": [1.5], "n": 2}
    check_grads(loss, (p, rng.standard_normal((2, 3)), 2), order=1)
    check_grads(lambda x: np.sum(np.sin(x)), (np.ones(3, np.float32),), order=2, modes="fwd")


def test_an_array_that_is_two_arguments_varies_in_each_by_itself():
    check_grads(lambda x, y: x * y**2, (X, X))
    check_grads(lambda pair: pair[0] - np.sin(pair[1]), ([X, X],), order=1)  # and in one as one


def test_results_may_be_structures():
    def f(line, y):
        return {"a": line.slope * y, "b": (y, 3, "text")}, np.sum(line.slope)

    check_grads(f, (Line(X), 2.0))


@pyrelay.custom_vjp
def doubled(p, x):
    return p["w"] * x


@doubled.def_vjp
def wrong_at_one_element(cotangent, value, p, x):
    off = np.zeros(3)
    off[2] = 1.0
    return {"w": cotangent * x + off * cotangent}, cotangent * p["w"]


@pytest.mark.parametrize(
    ("modes", "told"),
    [
        (
            "fwd",
            r"derivative 1 of doubled, forward mode: with element \[2\] of p\['w'\], element \[2\] "
            r"of the result moves by 2, and central differences say 1 \(to about .*\)",
        ),
        (
            "rev",
            r"derivative 1 of doubled, reverse mode: with element \[2\] of p\['w'\], the product "
            r"of the result and a random cotangent moves by .*, and central differences say .* \(",
        ),
    ],
)
def test_the_element_of_a_wrong_derivative_is_named(modes, told):
    with pytest.raises(AssertionError, match=told):
        check_grads(doubled, ({"w": X}, np.ones(3)), modes=modes)
    check_grads(doubled, ({"w": X}, np.ones(3)), order=1, modes=modes, argnums=1)


def test_a_wrong_second_derivative_is_told_from_a_right_first_one():
    @pyrelay.custom_vjp
    def f(x):
        return np.sum(x**3)

    @f.def_vjp
    def slope(cotangent, value, x):
        return (3 * x * pyrelay.stop_gradient(x) * cotangent,)

    check_grads(f, (X,), order=1)
    with pytest.raises(AssertionError, match=r"derivative 2 of .*f, reverse and reverse mode"):
        check_grads(f, (X,), order=2, modes=("rev", "fwd"), rtol=1e-3, atol=1e-3)


def test_what_differences_do_not_settle_is_not_held_against_a_derivative():
    check_grads(lambda x: np.sum(np.abs(x)), (np.array([0.0, 1.0]),), order=1)
    with pytest.raises(AssertionError, match="central differences say"):
        check_grads(lambda x: np.sum(np.floor(x * 1e9) * 1e-9), (X,), order=1)


def test_tolerances_are_taken():
    def f(x):
        return x + 1e-3 * pyrelay.stop_gradient(x)

    with pytest.raises(AssertionError, match="derivative 1"):
        check_grads(f, (X,), order=1)
    check_grads(f, (X,), order=1, rtol=0.01, atol=0.0)


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(pyrelay.GradientError, match="no floating-point argument to vary"):
        check_grads(lambda n: n * 1.0, (3,))
    with pytest.raises(pyrelay.InvalidValueError, match="modes of check_grads are 'fwd', 'rev'"):
        check_grads(lambda x: x, (X,), modes="reverse")


COTANGENT = (2.0, 3.0)


def test_cotangents_may_be_constants_of_the_program():
    def pulled(x):
        return pyrelay.vjp(lambda x: (x * x, x), x)[1](COTANGENT)

    assert pyrelay.jit(pulled)(1.5) == (9.0,)
