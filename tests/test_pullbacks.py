"""Pullbacks of `vjp`: their own programs against those that run the function again."""

from __future__ import annotations

import copy
import functools
import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyrelay
from pyrelay import GradientError, vjp
from pyrelay.pullbacks import Pullback
from tests.infer.running import assert_same

X = np.array([0.3, -0.4, 1.2])
SCALE = np.array([2.0, 3.0, 4.0])


class Pair(NamedTuple):
    a: Any
    b: float


@dataclass
class Layer:
    w: Any
    n: int


class Model:
    def __init__(self):
        self.w, self.k = np.array([1.0, 2.0]), 3


def recurrent(x, n):
    h = np.zeros(2)
    for i in range(n):
        h = np.tanh(h + x[i] * x[0]) if x[i] > 0 else h * x[i] ** 2
    return h


def structured(p):
    return {"u": p["w"] * p["c"], "n": p["k"], "v": (np.sum(p["w"]), [1.0, p["w"]])}


def twice_the_same(x):
    y = np.exp(x)
    return [y, y]


CASES = {
    "an array": (lambda x: np.tanh(x) * x, (X,), [X, np.ones(3, int), X[::-1], X.astype("f4")]),
    "itself": (lambda x: x, (X,), [X]),
    "numbers": (lambda x, n: x**n, (2.0, 3), [1.0, 2, np.float64(3.0), True, None]),
    "short floats": (lambda x: np.exp(x), (X.astype(np.float32),), [X, X.astype(np.float32)]),
    "complex": (lambda z: z * z, (X + 1j,), [X - 2j, X]),
    "a loop": (recurrent, (X, 3), [np.ones(2)]),
    "extents that are computed": (lambda x: np.concatenate([x, np.sin(x[1:])]), (X,), [np.ones(5)]),
    "an array of outside": (lambda x: np.sin(x * SCALE), (X,), [X]),
    "a dict": (
        structured, ({"w": X, "c": 2.0, "k": 3, "name": "p"},),
        [{"u": X, "n": None, "v": (2.0, [None, X])}, {"u": None, "n": 5, "v": None}],
    ),
    "a namedtuple": (lambda q: Pair(q.a * q.b, q.b * 2), (Pair(X, 2.0),), [Pair(X, 1.0), None]),
    "a dataclass": (lambda m: Layer(m.w**3 * m.n, m.n), (Layer(X, 2),), [Layer(X, 0)]),
    "an object": (lambda m: np.sin(m.w) * m.k, (Model(),), [np.ones(2)]),
    "one array at two places": (twice_the_same, (X,), [[X, X], [None, X]]),
    "a library call": (lambda a, b: np.linalg.solve(a, b), (np.eye(3) + 0.1, X), [X]),
    "no floats": (lambda n: n * 2, (3,), [None]),
    "no arguments": (lambda: np.ones(3), (), [X]),
}


@pytest.mark.parametrize("name", CASES)
def test_pullbacks_give_what_running_the_function_again_gives(name):
    f, args, cotangents = CASES[name]
    value, pullback = vjp(f, *copy.deepcopy(args))
    assert type(pullback) is Pullback
    assert_same(value, pyrelay.jit(f)(*args))
    again = functools.partial(pullback.func, *pullback.args)
    for cotangent in cotangents:
        wanted = again(cotangent)
        for _ in range(2):
            assert_same(pullback(cotangent), wanted)


def test_a_pullback_does_not_run_the_function(capsys):
    def loud(x):
        print("forward")
        return np.sin(x) * x

    _, pullback = vjp(loud, X)
    assert capsys.readouterr().out == "forward\n"
    first, second = pullback(np.ones(3)), pullback(SCALE)
    assert capsys.readouterr().out == ""
    slope = np.cos(X) * X + np.sin(X)
    np.testing.assert_allclose(first[0], slope)
    np.testing.assert_allclose(second[0], SCALE * slope)


def test_writes_between_the_value_and_the_pullback_change_nothing():
    x, w = X.copy(), {"w": SCALE.copy()}

    def f(x, p):
        return np.exp(x) * p["w"] * x

    y, pullback = vjp(f, x, w)
    other = vjp(f, 2 * X, w)[1]
    wanted = vjp(f, X.copy(), copy.deepcopy(w))[1](X)
    x[:] = 5.0
    w["w"][:] = 0.0
    w["more"] = 1
    y[:] = 7.0
    assert_same(pullback(X), wanted)
    for gradient in pullback(X):
        (gradient["w"] if isinstance(gradient, dict) else gradient)[:] = 0.0
    assert_same(pullback(X), wanted)
    np.testing.assert_allclose(other(X)[1]["w"], np.exp(2 * X) * 2 * X * X)


def test_arguments_that_the_function_writes_are_written_once():
    def f(x):
        x *= 2
        return np.sum(x**3)

    x = X.copy()
    value, pullback = vjp(f, x)
    assert_same(x, 2 * X)
    assert value == pytest.approx(np.sum(8 * X**3))
    np.testing.assert_allclose(pullback(1.0)[0], 24 * X**2)
    assert_same(x, 2 * X)


def test_sizes_may_differ_from_call_to_call():
    def f(x, w):
        return np.tanh(w @ x)

    for n in (2, 5, 3):
        x, w = np.linspace(0, 1, n), np.ones((4, n)) / n
        y, pullback = vjp(f, x, w)
        np.testing.assert_allclose(pullback(np.ones(4))[0], w.T @ (1 - y * y))


def test_loops_and_recursions_that_keep_a_tape_run_again():
    def newton(x):
        y = x
        while np.max(np.abs(y * y - x)) > 1e-12:
            y = (y + x / y) / 2
        return y

    def powers(n, x):
        return x if n == 0 else np.sin(powers(n - 1, x)) * powers(n - 2 if n > 1 else 0, x)

    _, pullback = vjp(newton, X + 1)
    np.testing.assert_allclose(pullback(np.ones(3))[0], 0.5 / np.sqrt(X + 1))
    _, pullback = vjp(lambda x: powers(3, x), X)
    step = 1e-6
    slope = (powers(3, X + step) - powers(3, X - step)) / (2 * step)
    np.testing.assert_allclose(pullback(np.ones(3))[0], slope, rtol=1e-8)


@pytest.mark.parametrize(("cotangent", "message"), [
    (np.ones(4), "the cotangent must be of type f64[3], as what it belongs to, and is f64[4]"),
    (np.ones((3, 1)), "the cotangent must be of type f64[3], as what it belongs to, and is f64[3"),
    (1j * X, "the cotangent must be of type f64[3], as what it belongs to, and is c128[3]"),
    ([1.0, 2.0, 3.0], "the cotangent must be of type f64[3], and is a list"),
    ("x", "the cotangent must be of type f64[3], and is a string"),
])  # fmt: skip
def test_cotangents_that_do_not_fit_are_refused(cotangent, message):
    _, pullback = vjp(lambda x: x * x, X)
    with pytest.raises(GradientError) as caught:
        pullback(cotangent)
    assert str(caught.value).startswith(message)


def test_cotangents_of_another_structure_are_refused():
    _, pullback = vjp(lambda x: {"a": x, "b": (x, 1.0)}, X)
    with pytest.raises(GradientError, match="and is a dict with the keys 'a'"):
        pullback({"a": X})
    with pytest.raises(GradientError, match="a tuple of 2, and is a tuple of 3"):
        pullback({"a": X, "b": (X, 1.0, 2.0)})
    with pytest.raises(pyrelay.PyrelayError, match="takes one cotangent"):
        pullback(X, X)
    _, pullback = vjp(lambda items: [2 * item for item in items], [1.0] * 100)
    with pytest.raises(GradientError, match="a list of so many items"):
        pullback([1.0] * 100)


def test_pullbacks_are_functions_in_programs_and_can_be_pickled():
    _, pullback = vjp(np.exp, X)
    wanted = np.exp(X)
    np.testing.assert_allclose(pyrelay.vmap(pullback)(np.eye(3))[0], np.diag(wanted))
    np.testing.assert_allclose(pyrelay.jit(lambda c: pullback(c)[0])(X), wanted * X)
    assert copy.deepcopy(pullback) is pullback
    _, pullback = vjp(structured, {"w": X, "c": 2.0, "k": 3})
    found = pickle.loads(pickle.dumps(pullback))
    value = structured({"w": X, "c": 2.0, "k": 3})
    assert_same(found(value), pullback(value))


def test_pullbacks_are_of_the_device():
    def f(x, w):
        for _ in range(3):
            x = np.tanh(x @ w)
        return x.sum(0)

    x, w = np.linspace(0, 1, 6).reshape(2, 3), np.eye(3) - 0.1
    near, far = (vjp(f, x, w, device=device)[1] for device in ("cpu", "cuda_emulator"))
    assert type(far) is Pullback
    for cotangent in (X, SCALE):
        for a, b in zip(near(cotangent), far(cotangent), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_what_cannot_be_differentiated_raises_as_before():
    def f(x):
        return np.where(x > 0, 1, 0)

    value, pullback = vjp(f, X)
    assert_same(value, f(X))
    assert_same(pullback(None), (np.zeros(3),))
    with pytest.raises(TypeError):
        vjp(lambda x: x + "a", X)
