"""`pyrelay.vmap` against the loop over examples that it stands for, and what it refuses."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyrelay
from pyrelay import vmap
from pyrelay.errors import InvalidValueError, PyrelayError, ShapeError, TypeMismatchError
from pyrelay.pipeline import derivatives
from tests.infer.running import interpreted

_RANDOM = np.random.RandomState(0)
X, Y, W = _RANDOM.randn(5, 3), _RANDOM.randn(5, 3), _RANDOM.randn(3, 2)


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Layer:
    w: Any
    scale: float

    def scaled(self, x):
        return (x @ self.w) * self.scale


def assert_same(found, wanted):
    """The same structure, and arrays of the same shapes, dtypes and, up to rounding, elements."""
    if dataclasses.is_dataclass(wanted):
        assert type(found) is type(wanted)
        found, wanted = vars(found), vars(wanted)
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        found, wanted = [found[k] for k in wanted], list(wanted.values())
    if isinstance(wanted, (tuple, list)):
        assert type(found) is type(wanted)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_same(a, b)
        return
    if wanted is None:
        assert found is None
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


def run(program, *args):
    """The program's result by the reference interpreter, and its arguments afterwards."""
    outcome = interpreted(program, args, derivatives)
    if outcome.error is not None:
        raise outcome.error
    return outcome.result, outcome.arguments


def test_each_example_takes_its_own_branch_and_rounds():
    def steps(n):
        count, largest = 0, n
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
                largest = max(largest, n)
            count += 1
        return count, largest * 0.5

    numbers = np.arange(1, 40)
    counts, halves = vmap(steps)(numbers)
    wanted = [steps(int(n)) for n in numbers]
    assert_same(counts, np.array([c for c, _ in wanted]))
    assert_same(halves, np.array([h for _, h in wanted]))
    assert [len(part) for part in vmap(steps)(numbers[:0])] == [0, 0]


def test_structures_and_axes():
    def program(x, y, w):
        def structured(tree, layer, k):
            p, (u, v) = tree["p"], tree["q"]
            return {"s": p.a * k, "t": [u, None, (v, 2)]}, Layer(layer.w * p.b, layer.scale)

        tree = {"p": Pair(x, y), "q": (x.T, w)}
        axes = ({"p": 0, "q": (-1, None)}, {"w": None, "scale": None}, None)
        outs = ({"s": 1, "t": [0, None, (None, None)]}, 0)
        return (
            vmap(structured, axes, outs)(tree, Layer(1.5, 2.0), 3.0),
            vmap(lambda a, b: a - b, in_axes=(0, None))(x, b=y[0]),
            vmap(lambda a: np.outer(a, a), out_axes=-1)(x),
            vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))(x[:, 0], y[0]),
            vmap(lambda w: (np.tanh(w), w.sum()), -1, (1, 0))(w),
        )

    ones = np.ones(5)
    tree, rest = ({"s": 3.0 * X.T, "t": [X, None, (W, 2)]}, Layer(1.5 * Y, 2.0 * ones)), (
        X - Y[0], np.stack([np.outer(a, a) for a in X], axis=-1), np.outer(X[:, 0], Y[0]),
        (np.tanh(W), W.sum(axis=0)),
    )
    assert_same(run(program, X, Y, W)[0], (tree, *rest))


def test_writes_and_what_a_function_keeps():
    def program(x, y):
        def moved(a, b):
            b[0] = a.sum()
            a += 1.0
            path = np.zeros(4)
            for k in range(3):
                path[k + 1] = path[k] + a[k]
            return path, len([v for v in a if v > 1.0]), a if a[0] > 1 else 2 * a

        return vmap(moved)(x, y)

    result, (x, y) = run(program, X, Y)
    paths = np.concatenate([np.zeros((5, 1)), np.cumsum(X + 1, axis=1)], axis=1)
    chosen = np.where((x > 1)[:, :1], x, 2 * x)
    assert_same(result, (paths, (X > 0).sum(axis=1), chosen))
    assert_same(x, X + 1)
    assert_same(y[:, 0], X.sum(axis=1))


def test_derivatives():
    def loss(w, x):
        return np.sum(np.tanh(x @ w) ** 2)

    def program(w, x):
        return (
            pyrelay.grad(lambda v: vmap(loss, (None, 0))(v, x).sum())(w),
            vmap(Layer(w, 2.0).scaled)(x),
            vmap(lambda a: a[a > -100.0])(x),
        )

    w, x = _RANDOM.randn(20, 30) / 9, _RANDOM.randn(9, 20)  # `opt/batch_rounds` takes these
    per_example = vmap(pyrelay.grad(loss), (None, 0))(w, x)
    assert_same(per_example, np.stack([pyrelay.grad(loss)(w, row) for row in x]))
    assert_same(run(program, w, x)[0], (per_example.sum(axis=0), 2.0 * x @ w, x))


def test_what_an_example_raises():
    def checked(x):
        if x[0] > 100:
            raise ValueError("too large")
        return x.sum()

    def program(x):
        try:
            return vmap(checked)(x)
        except ValueError:
            return x[0]

    assert_same(run(program, X)[0], X.sum(axis=1))
    assert_same(run(program, 1e4 * np.abs(X))[0], 1e4 * np.abs(X[0]))
    with pytest.raises(ValueError, match="operands could not be broadcast together"):
        vmap(lambda x: x + np.zeros(7))(X)
    with pytest.raises(ValueError, match="same shape"):
        run(lambda x: vmap(lambda a: a[a > 0])(x), X)


@pytest.mark.parametrize(
    ("call", "cls", "message"),
    [
        (lambda: vmap(lambda x, y: x @ y)(X, Y[:4]), ShapeError,
         r"there are 5 of x \(axis 0\) and 4 of y \(axis 0\)"),
        (lambda: vmap(lambda x: x, None)(X), InvalidValueError, "nothing to map over"),
        (lambda: vmap(lambda x, y: x @ y, (0, 1, 2))(X, Y), InvalidValueError,
         "in_axes has 3 entries, and the function is called with 2 arguments"),
        (lambda: vmap(lambda x: x["a"], ({"b": 0},))({"a": X}), InvalidValueError,
         r"in_axes says \{'b': 0\} for x, which has the parts a"),
        (lambda: vmap(lambda x: x, 2)(X), InvalidValueError,
         "in_axes says axis 2 for x, an array of 2 axes"),
        (lambda: vmap(lambda x, y: x * y)(X, 2.0), InvalidValueError,
         "cannot map over 'y': it is float, which has no axis of examples"),
        (lambda: vmap(lambda x: x, 0, None)(X), InvalidValueError,
         "out_axes is None for the result, and that differs from example to example"),
        (lambda: vmap(lambda x: (x, "a"))(X), TypeMismatchError,
         r"cannot stack the result\[1\] of the examples: it is a string"),
        (lambda: vmap(lambda x: (x, x), 0, (0,))(X), InvalidValueError,
         r"out_axes says \(0,\) for the result, which has 2 items"),
    ],
)
def test_what_is_refused(call, cls, message):
    with pytest.raises(cls, match=message) as caught:
        call()
    assert isinstance(caught.value, PyrelayError)
    assert caught.value.calls[0][0].source.filename == __file__
