"""Directions, pullbacks and Jacobians: against closed forms and finite differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyrelay
from pyrelay import grad, hessian, hvp, jacfwd, jacobian, jacrev, jvp, vjp
from tests.infer.running import assert_same
from tests.infer.test_derivatives import derived

X = np.array([0.7, -0.4, 1.3])
V = np.array([0.5, 2.0, -1.0])


def newton(x):
    y = np.ones_like(x)
    steps = 0
    while np.max(np.abs(y * y * y - x * x - 2)) > 1e-13 and steps < 50:
        y = y - (y * y * y - x * x - 2) / (3 * y * y)
        steps += 1
    return y


def recurrent(x):
    h = np.zeros(2)
    out = np.zeros((len(x), 2))
    for i in range(len(x)):
        if x[i] > 0:
            h = np.tanh(h + x[i] * x[0])
        else:
            h[i % 2] = h[i % 2] * 0.5 + x[i] ** 2
        out[i] = h
    return out


def fibonacci(n, x):
    if n < 2:
        return x * (n + 1.0)
    return np.sin(fibonacci(n - 1, x)) + fibonacci(n - 2, x) * x


def everything(x):
    return np.sum(recurrent(x) ** 2) + np.sum(newton(x)) + np.sum(fibonacci(4, x))


def slopes(f: Any, x: Any, step: float = 1e-6) -> Any:
    """Central differences; the last axis is that of x."""
    columns = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    return np.stack(columns, -1)


@pytest.mark.parametrize("f", [newton, recurrent, lambda x: fibonacci(4, x)])
def test_loops_branches_and_recursion_have_jacobians_by_columns_and_by_rows(f):
    def program(x, v, u):
        y, dy = jvp(f, (x,), (v,))
        z, pullback = vjp(f, x)
        return jacfwd(f)(x), jacrev(f)(x), jacobian(f)(x), y, z, dy, pullback(u)[0], pullback(y)[0]

    y = f(X)
    u = np.cos(np.arange(y.size)).reshape(y.shape)
    columns, rows, chosen, value, same, dy, owed, again = derived(program, X, V, u)
    wanted = slopes(f, X)
    np.testing.assert_allclose(columns, wanted, rtol=1e-7, atol=1e-8)
    for other in (rows, chosen):
        np.testing.assert_allclose(other, columns, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(value, y)
    np.testing.assert_allclose(same, y)
    np.testing.assert_allclose(dy, columns @ V)
    np.testing.assert_allclose(owed, np.tensordot(u, columns, u.ndim))
    np.testing.assert_allclose(again, np.tensordot(y, columns, u.ndim))


def test_second_derivatives_are_the_same_in_every_order_of_modes():
    def program(x, v, step):
        slope = grad(everything)
        return (
            hessian(everything)(x), jacfwd(jacfwd(everything))(x), jacrev(jacfwd(everything))(x),
            hvp(everything, x, v), jvp(everything, (x,), (v,))[1],
            (slope(x + step * v) - slope(x - step * v)) / (2 * step),
        )

    found, *others, product, moved, wanted = derived(program, X, V, 1e-6)
    for other in others:
        np.testing.assert_allclose(other, found, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found @ V, wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(product, wanted, rtol=1e-6, atol=1e-7)
    step = 1e-6 * V
    difference = (everything(X + step) - everything(X - step)) / 2e-6
    assert moved == pytest.approx(difference, rel=1e-7)


class Scales(NamedTuple):
    a: Any
    b: float


@dataclass
class Layer:
    w: Any
    n: int


def test_results_and_directions_have_the_structure_of_what_they_belong_to():
    def f(p, q):
        return {"u": p["w"] * p["c"], "v": (np.sum(q.a) * q.b, [q.a * p["c"], 3.0]), "n": p["k"]}

    def program(w, a):
        p, q = {"w": w, "c": 2.0, "name": "p", "k": 3}, Scales(a, 4.0)
        dy = jvp(f, (p, q), ({"w": w, "c": 1.0, "name": None, "k": 5}, None))[1]
        _, pullback = vjp(f, p, q)
        of_u = {"u": np.ones(2), "v": None, "n": None}
        return dy, pullback(dy), pullback(of_u), jacobian(f, argnames="q")(p, q=q)["v"]

    w, a = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    tangent, owed, of_u, rows = derived(program, w, a)
    assert_same(tangent, {"u": 3 * w, "v": (np.float64(0.0), [a, 0.0]), "n": None})
    c = float(3 * w @ w + a @ a)
    assert_same(owed, (
        {"w": 6 * w, "c": c, "name": None, "k": None}, Scales(2 * a, 0.0),
    ))
    assert_same(of_u[0], {"w": np.array([2.0, 2.0]), "c": 3.0, "name": None, "k": None})
    total, (scaled, constant) = rows
    assert_same(total.a, np.array([4.0, 4.0]))
    assert total.b == 8.0
    assert_same(scaled, Scales(2 * np.eye(2), np.zeros(2)))
    assert_same(constant.a, np.zeros(2))


def test_options_are_those_of_grad():
    def program(x, y):
        blocks = hessian(lambda p, q: np.sum(p * q**2), argnums=(0, 1))(x, y)
        layered = hessian(lambda m: np.sum(m.w**3) * m.n)(Layer(x, 2))
        value, aux = jacobian(lambda p: (p * 2, np.sum(p)), has_aux=True)(x)
        more = hessian(lambda p: (np.sum(p**2), p), has_aux=True)(x)
        moved = jvp(lambda p: (np.sum(p**2), p), (x,), (y,), has_aux=True)
        first, pullback, rest = vjp(lambda p: (np.sum(p**2), p), x, has_aux=True)
        return blocks, layered, value, aux, more, moved, (first, pullback(2.0), rest)

    x, y = X[:2], V[:2]
    blocks, layered, value, aux, more, moved, pulled = derived(program, x, y)
    (pp, pq), (qp, qq) = blocks
    assert_same((pp, pq, qp, qq), (np.zeros((2, 2)), *[np.diag(2 * y)] * 2, np.diag(2 * x)))
    np.testing.assert_allclose(layered.w.w, np.diag(12 * x))
    assert (layered.n, layered.w.n) == (None, None)
    assert_same((value, aux), (2 * np.eye(2), np.sum(x)))
    assert_same(more, (2 * np.eye(2), x))
    np.testing.assert_allclose(moved[:2], (x @ x, 2 * x @ y))
    assert_same((moved[2], pulled[2]), (x, x))
    np.testing.assert_allclose(pulled[1][0], 4 * x)


def test_a_pullback_is_of_the_arguments_as_they_were():
    def scaled(y, k):
        y[0] = y[1] * k
        return y * y

    def program(x):
        z = x * 1.0
        value, pullback = vjp(scaled, z, 3.0)
        z[1] = 100.0
        first = pullback(np.ones(2))
        return value, z, first, pullback(np.array([1.0, 0.0]))

    x = np.array([5.0, 2.0])
    wanted = (
        np.array([36.0, 4.0]), np.array([6.0, 100.0]), (np.array([0.0, 40.0]), 24.0),
        (np.array([0.0, 36.0]), 24.0),
    )
    assert_same(derived(program, x), wanted)


def test_results_that_are_arguments_views_constants_or_of_a_size_that_is_found():
    def program(x):
        same, constant, turned = jacobian(lambda y: (y, 3.0, y[::-1]))(x)
        return (
            same, constant, turned, jacobian(lambda y: y[y > 0])(x), jacfwd(lambda y: y * 1j)(x),
            jvp(lambda y: 2.0, (x,), (x,)), jvp(lambda y: y, (x,), (None,)),
        )

    eye = np.eye(3)
    wanted = (eye, np.zeros(3), eye[::-1], eye[[0, 2]], 1j * eye, (2.0, 0.0), (X, np.zeros(3)))
    assert_same(derived(program, X), wanted)


def test_a_newton_step_inside_a_loop():
    def loss(x):
        return np.sum((x - 1.0) ** 4) + x[0] * x[1]

    def program(x):
        for _ in range(12):
            x = x - np.linalg.solve(hessian(loss)(x), grad(loss)(x))
        return x, grad(loss)(x)

    assert np.max(np.abs(derived(program, np.array([0.0, 3.0]))[1])) < 1e-9


def test_nothing_moves_what_is_stopped():
    def f(x):
        return np.sum(x * pyrelay.stop_gradient(x * x))

    def program(x, v):
        return grad(f)(x), jvp(f, (x,), (v,))[1]

    assert_same(derived(program, X, V), (X * X, np.sum(V * (X * X))))


def test_python_calls_them_too():
    """With keywords, lists of arguments and functions that are jitted already."""
    def f(x, k=1.0):
        return np.sum(x**3) * k

    assert jvp(pyrelay.jit(f), [X, 2.0], [V, 0.0])[1] == pytest.approx(6 * X**2 @ V)
    np.testing.assert_allclose(hvp(f, X, V, k=2.0), 12 * X * V)
    given = X.copy()
    _, pullback = vjp(f, given)
    given[:] = 0.0
    np.testing.assert_allclose(pullback(2.0)[0], 6 * X**2)
    assert repr(jacobian(f)) == f"<pyrelay.jacobian of {f.__qualname__}>"
    with pytest.raises(pyrelay.TypeMismatchError, match="jvp takes a function, not int"):
        jvp(3, (X,), (V,))  # type: ignore[arg-type]
    with pytest.raises(pyrelay.GradientError, match="primals as a tuple"):
        jvp(f, X, V)  # type: ignore[arg-type]


def test_an_array_that_is_two_arguments_moves_in_each_by_itself():
    def f(a, b):
        return a * b**2

    nothing = np.zeros(3)
    assert_same(jvp(f, (X, X), (V, nothing))[1], X**2 * V)
    assert_same(jvp(f, (X, X), (nothing, V))[1], 2 * X * X * V)
    assert_same(pyrelay.jit(lambda x: jvp(f, (x, x), (V, None))[1])(X), X**2 * V)
    (aa, ab), (ba, bb) = hessian(lambda a, b: np.sum(f(a, b)), argnums=(0, 1))(X, X)
    assert_same((aa, ab, ba, bb), (np.zeros((3, 3)), *[np.diag(2 * X)] * 3))


def test_an_array_that_stands_twice_in_an_argument_moves_as_one():
    def f(pair):
        return pair[0] * pair[1] ** 2

    assert_same(jvp(f, ([X, X],), ([V, V],))[1], 3 * X**2 * V)
    with pytest.raises(pyrelay.GradientError, match="are tangents of one array"):
        jvp(f, ([X, X],), ([V, 2 * V],))


def test_cotangents_of_results_whose_size_only_the_program_knows():
    def kept(p):
        above = p["x"] > 0
        return {"kept": p["x"][above] ** 2 * p["by"], "rest": (p["n"], [np.sum(p["x"])])}

    def program(p, c):
        return vjp(kept, p)[1]({"kept": c, "rest": (None, [2.0])})[0]

    p, c = {"x": X, "by": 3.0, "n": 4}, np.array([5.0, 7.0])
    x = np.array([30.0 * X[0] + 2.0, 2.0, 42.0 * X[2] + 2.0])
    found = pyrelay.jit(program)(p, c)
    by = float(np.sum(X[X > 0] ** 2 * c))
    assert_same(found, {"x": x, "by": by, "n": None})
    with pytest.raises(ValueError, match="has 3 elements along axis 0, and what it belongs to 2"):
        pyrelay.jit(program)(p, np.ones(3))
    with pytest.raises(pyrelay.GradientError, match="must be of type"):
        pyrelay.jit(program)(p, np.ones((2, 1)))
    pyrelay.check_grads(lambda x, n: np.diff(x, n=n) ** 2, (X, 1))
    pyrelay.check_grads(lambda x: np.fft.fftshift(x.reshape(1, 3) * x), (X,), modes="rev")
