"""`checkpoint`: the same values and derivatives, of which fewer are kept."""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import checkpoint, grad, hvp, jacfwd, jit, jvp, value_and_grad, vjp, vmap
from pyrelay.ir import walk
from pyrelay.ir.nodes import Loop, Module
from pyrelay.ir.types import TensorType
from pyrelay.pipeline import lowered
from tests.infer.running import assert_same, inferred
from tests.infer.test_derivatives import derived

RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((5, 3))
W = RANDOM.standard_normal((4, 3, 3))
V = RANDOM.standard_normal((4, 3, 3))


def deep(h, w):
    for _ in range(3):
        h = np.tanh(h @ w) * h
    return h


kept_apart = checkpoint(deep)


def unrolled(h, w):
    h = np.tanh(h @ w) * h
    return np.tanh(h @ w) * h


def chain(layer: Any) -> Any:
    def loss(w, h):
        for k in range(len(w)):
            h = layer(h, w[k])
        return np.sum(h * h)

    return loss


def straight(layer: Any) -> Any:
    def loss(w, h):
        h = layer(layer(layer(layer(h, w[0]), w[1]), w[2]), w[3])
        return np.sum(h * h)

    return loss


def by_every_transform(loss: Any, w: Any, h: Any) -> Any:
    value, slope = value_and_grad(loss, argnums=(0, 1))(w, h)
    moved = jvp(loss, (w, h), (V, None))
    twice = grad(lambda w: np.sum(grad(loss)(w, h) * V))(w)
    mixed = grad(lambda w: jvp(loss, (w, h), (V, None))[1])(w)
    return value, slope, moved, twice, mixed, hvp(loss, w, V, h)


@pytest.mark.parametrize("around", [chain, straight])
def test_derivatives_in_both_modes_and_of_second_order_are_the_same(around):
    found, wanted = (
        derived(functools.partial(by_every_transform, around(f)), W, X)
        for f in (kept_apart, deep)
    )
    for a, b in zip(pyrelay_leaves(found), pyrelay_leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def pyrelay_leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in pyrelay_leaves(item)]
    return [value]


def test_structures_captures_and_numbers_go_in_and_out():
    scale = np.array([1.0, 2.0, 3.0])

    def program(w, k, x):
        @checkpoint
        def f(p, n, flag=True):
            out = {"a": np.sin(p["w"] * x) * scale, "n": n + 1}
            return out, (p["b"] ** n if flag else 0.0, "text", None)

        def loss(w, k):
            out, (number, text, nothing) = f({"w": w, "b": k}, 3)
            assert text == "text"
            assert nothing is None
            return np.sum(out["a"]) * out["n"] + number

        return loss(w, k), grad(loss, argnums=(0, 1))(w, k)

    def slopes(w, k, x):
        f = grad(lambda x: np.sum(checkpoint(lambda y: np.sin(w * x) * scale * y)(x)))
        return f(x)

    x, w, k = np.array([0.5, 1.5, -1.0]), np.array([2.0, -1.0, 0.3]), 1.25
    value, (of_w, of_k) = derived(program, w, k, x)
    np.testing.assert_allclose(value, 4 * np.sum(np.sin(w * x) * scale) + k**3)
    np.testing.assert_allclose(of_w, 4 * np.cos(w * x) * x * scale)
    np.testing.assert_allclose(of_k, 3 * k**2)
    wanted = np.sin(w * x) * scale + np.cos(w * x) * w * scale * x
    np.testing.assert_allclose(derived(slopes, w, k, x), wanted)


class Layer:
    def __init__(self, w):
        self.w = w

    @checkpoint
    def forward(self, x):
        return np.tanh(x @ self.w)

    def __call__(self, x):
        return self.forward(self.forward(x))


def test_methods_recursion_and_functions_in_functions():
    @checkpoint
    def power(x, n):
        return x if n == 0 else np.sin(power(x, n - 1)) * x

    outer = checkpoint(lambda x: kept_apart(kept_apart(x, W[0]), W[1]))

    def program(w, x):
        layer = Layer(w)
        return (
            grad(lambda w: np.sum(Layer(w)(x)))(w), grad(lambda x: np.sum(layer(x)))(x),
            grad(lambda x: np.sum(power(x, 3)))(x), grad(lambda x: np.sum(outer(x)))(x),
        )

    def plain(w, x):
        def f(x, n):
            return x if n == 0 else np.sin(f(x, n - 1)) * x

        return (
            grad(lambda w: np.sum(np.tanh(np.tanh(x @ w) @ w)))(w),
            grad(lambda x: np.sum(np.tanh(np.tanh(x @ w) @ w)))(x),
            grad(lambda x: np.sum(f(x, 3)))(x),
            grad(lambda x: np.sum(deep(deep(x, W[0]), W[1])))(x),
        )

    for a, b in zip(derived(program, W[0], X), derived(plain, W[0], X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    layer = Layer(W[0])
    assert_same(layer.forward(X), np.tanh(X @ W[0]))
    np.testing.assert_allclose(
        jit(layer.forward)(X), np.tanh(X @ W[0]), rtol=1e-14
    )


def test_what_the_function_writes_and_returns_again_is_the_callers():
    @checkpoint
    def fill(out, x):
        for k in range(len(x)):
            out[k] = x[k] * x[k]
        return out, x * 2.0

    def f(x):
        out = np.zeros(len(x))
        same, doubled = fill(out, x)
        out[0] += 1.0
        return np.sum(same * doubled)

    def program(x):
        return f(x), grad(f)(x)

    x = np.array([1.0, 2.0, 3.0])
    value, slope = derived(program, x)
    assert value == f(x) == 74.0
    np.testing.assert_allclose(slope, 6 * x**2 + np.array([2.0, 0, 0]))


def test_transforms_of_the_function_itself_and_examples():
    def program(w, h):
        y, pullback = vjp(kept_apart, h, w)
        rows = vmap(kept_apart, in_axes=(0, None))(h, w)
        slopes = vmap(grad(lambda r, w: np.sum(kept_apart(r, w))), in_axes=(0, None))(h, w)
        return y, pullback(y), rows, slopes, jacfwd(kept_apart)(h[0], w)

    y, (of_h, of_w), rows, slopes, jacobian = derived(program, W[0], X)
    np.testing.assert_allclose(y, deep(X, W[0]), rtol=1e-12)
    np.testing.assert_allclose(rows, y, rtol=1e-12)
    wanted = derived(lambda w, h: grad(lambda h: np.sum(deep(h, w)))(h), W[0], X)
    np.testing.assert_allclose(slopes, wanted, rtol=1e-10)
    np.testing.assert_allclose(jacobian.sum(0), wanted[0], rtol=1e-10)
    both = derived(
        lambda w, h: grad(lambda h, w: np.sum(deep(h, w) ** 2) / 2, argnums=(0, 1))(h, w), W[0], X
    )
    assert_close = np.testing.assert_allclose
    assert_close(of_h, both[0], rtol=1e-10)
    assert_close(of_w, both[1], rtol=1e-10)


def test_results_of_sizes_that_the_function_finds_have_their_derivative():
    @checkpoint
    def positive(x):
        return x[x > 0] ** 2

    def program(x):
        return grad(lambda x: np.sum(positive(x)))(x)

    assert_same(derived(program, np.array([1.0, -2.0, 3.0])), np.array([2.0, 0.0, 6.0]))


def test_called_from_python_it_is_the_function():
    assert_same(kept_apart(X, W[0]), deep(X, W[0]))
    assert kept_apart.__name__ == "deep"
    assert repr(kept_apart) == "<pyrelay.checkpoint of deep>"
    with pytest.raises(pyrelay.TypeMismatchError, match="checkpoint takes a function, not int"):
        checkpoint(3)
    assert pickle.loads(pickle.dumps(Layer(W[0]))).forward(X).shape == (5, 3)


# -- what is kept ---------------------------------------------------------------------------------


def differentiated(loss: Any, stage: str = "optimise") -> Module:
    return lowered(inferred(grad(loss), (W, X)).module, stage)


def test_a_loop_keeps_the_inputs_of_its_layers_only():
    def kept(loss: Any) -> int:
        """How many arrays with a row per round the forward loop fills."""
        functions = differentiated(loss, "grad").functions
        (name,) = [n for n in functions if n.endswith(".vjp") and "loss" in n]
        lets = functions[name].body.lets
        forward = next(let.rhs for let in lets if isinstance(let.rhs, Loop))
        types = [v.type for v in forward.carried if isinstance(v.type, TensorType)]
        return sum(ty.rank == 3 for ty in types)

    assert kept(chain(unrolled)) == 3
    assert kept(chain(checkpoint(unrolled))) == 1


def test_straight_code_computes_again_what_it_would_keep():
    def four(layer: Any) -> Any:
        def loss(w, h):
            h = layer(layer(layer(layer(h, w[0]), w[0]), w[0]), w[0])
            return np.sum(h)

        return loss

    plain, less = (differentiated(four(f)) for f in (unrolled, checkpoint(unrolled)))
    assert str_count(plain, "tanh") == 8
    assert str_count(less, "tanh") == 8 + 6  # nothing reads the value of the last layer


PROGRAM = """
import re, sys
import numpy as np, pyrelay

def most():  # of this process: what getrusage says counts the one that started it, too
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

def layer(h, w):
    for _ in range(6):
        h = np.tanh(h @ w)
    return h

if sys.argv[1] == "checkpoint":
    layer = pyrelay.checkpoint(layer)

def loss(w, h):
    h = layer(layer(layer(h, w), w), w)
    return np.sum(layer(layer(layer(h, w), w), w) ** 2)

slope = pyrelay.grad(loss)
w, h = np.eye(128), np.ones((8192, 128))
slope(w, h[:64])
before = most()
slope(w, h)
print(most() - before)
"""


@pytest.mark.slow
def test_the_memory_of_a_gradient_is_that_of_a_layer_and_the_inputs_of_all(tmp_path):
    script = tmp_path / "layers.py"
    script.write_text(PROGRAM)
    plain, less = (
        int(subprocess.run(
            [sys.executable, str(script), how], check=True, capture_output=True, text=True,
            timeout=120,
        ).stdout)
        for how in ("plain", "checkpoint")
    )  # fmt: skip
    assert less < 0.5 * plain


def str_count(module: Module, op: str) -> int:
    found = 0
    for function in module.functions.values():
        for let in walk.nested_lets(function.body):
            inner = getattr(let.rhs, "function", None)
            lets = inner.body.lets if hasattr(inner, "body") else (let,)
            found += sum(walk.is_call(each, op) for each in lets)
    return found


def test_a_program_without_derivatives_has_none_of_it():
    module = lowered(inferred(lambda w, h: chain(kept_apart)(w, h), (W, X)).module, "grad")
    assert list(module.functions) == [module.entry]
    lets = list(walk.nested_lets(module.functions[module.entry].body))
    assert not any(walk.is_call(let, name) for let in lets for name in ("ruled", "barrier"))


def limited(x):
    y = np.exp(x)
    if y[0] > 1.3:
        raise ValueError("too large")
    return y * y


def refusing(x):
    raise ValueError(x.shape)


def in_each_round(f: Any) -> Any:
    def loss(x):
        total = 0.0
        for k in range(3):
            try:
                total += np.sum(f(x * k))
            except ValueError:
                total += np.sum(x * x)
        return total

    return loss


def with_a_last_word(f: Any) -> Any:
    def loss(x):
        total = np.sum(x)
        try:
            total = total + np.sum(f(-np.abs(x)))
        finally:
            total = total * 2
        return total

    return loss


@pytest.mark.parametrize("around", [in_each_round, with_a_last_word])
@pytest.mark.parametrize("f", [limited, refusing])
def test_what_a_checkpointed_function_raises_can_be_caught(around, f):
    if around is with_a_last_word and f is refusing:
        with pytest.raises(ValueError, match="3"):
            jit(around(checkpoint(f)))(X[0])
        return
    x = np.array([0.3, -0.4, 1.2])
    wanted, slope = value_and_grad(around(f))(x)
    found, same = value_and_grad(around(checkpoint(f)))(x)
    assert found == wanted == pytest.approx(around(f)(x))
    np.testing.assert_allclose(same, slope)


def test_rules_of_functions_and_checkpoints_hold_inside_of_each_other():
    @pyrelay.custom_vjp
    def steep(x):
        return np.sin(x) * x

    @steep.def_vjp
    def _(cotangent, value, x):
        return (5 * cotangent,)

    @pyrelay.custom_vjp
    def replaced(x):
        return 2 * squared(x)

    @replaced.def_vjp
    def _(cotangent, value, x):
        return (cotangent * squared(x),)

    @checkpoint
    def squared(x):
        return np.tanh(x) ** 2

    x = np.array([0.3, -0.4, 1.2])
    inside = grad(lambda x: np.sum(checkpoint(lambda x: steep(x) ** 2)(x)))
    np.testing.assert_allclose(inside(x), 10 * np.sin(x) * x)
    np.testing.assert_allclose(grad(lambda x: np.sum(checkpoint(steep)(x)))(x), [5.0, 5.0, 5.0])
    np.testing.assert_allclose(jacfwd(inside)(x), np.diag(np.full(3, 50.0)))
    outside = grad(lambda x: np.sum(replaced(x)))
    np.testing.assert_allclose(outside(x), np.tanh(x) ** 2)
    slope = 2 * np.tanh(x) * (1 - np.tanh(x) ** 2)
    np.testing.assert_allclose(jacfwd(outside)(x), np.diag(slope))
