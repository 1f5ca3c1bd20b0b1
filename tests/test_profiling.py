"""`pyrelay.profile`: which kernels the time of a call goes into."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

import pyrelay
from pyrelay.errors import DeviceError

X = np.linspace(0.0, 1.0, 64 * 48).reshape(64, 48)
W = np.ones((48, 32))


@pyrelay.jit
def layers(x, w):
    with pyrelay.scope("hidden"):
        h = np.tanh(x @ w)
    top = np.max(h)
    return np.cumsum(h / top, axis=0)


def test_each_launch_is_a_row_with_the_lines_that_it_computes() -> None:
    found = pyrelay.profile(layers, X, W, seconds=0.02)
    line = layers.py.__code__.co_firstlineno + 3
    product = next(p for p in found.parts if p.kernel == "matmul_kernel")
    assert product.times == 1
    assert f"line {line}" in product.computes
    assert {p.scopes for p in found.parts if line in p.lines} == {("hidden",)}
    assert {n for p in found.parts for n in p.lines} == {line, line + 1, line + 2}
    assert [p.seconds for p in found.parts] == sorted(p.seconds for p in found.parts)[::-1]


def test_all_times_together_are_no_longer_than_the_calls_took() -> None:
    started = time.perf_counter()
    found = pyrelay.profile(layers, X, W, seconds=0.02)
    took = time.perf_counter() - started
    whole = sum(p.seconds for p in found.parts) + found.between + found.boundary
    assert found.calls > 3
    assert 0.0 < whole * found.calls < took
    assert all(p.seconds > 0.0 for p in found.parts)


def test_the_longest_part_is_the_one_that_computes_most() -> None:
    @pyrelay.jit
    def unequal(x, w, r):
        return np.sum(x @ w), np.sum(r @ r)

    found = pyrelay.profile(unequal, X[:2], W, np.ones((256, 256)), seconds=0.05)
    assert "r @ r" in found.parts[0].computes
    assert found.parts[0].seconds > 0.5 * sum(p.seconds for p in found.parts)


def test_launches_in_loops_and_recursion_are_counted() -> None:
    @pyrelay.jit
    def powers(x, n):
        for _ in range(n):
            x = x @ x
        return x

    @pyrelay.jit
    def deep(x, n):
        return x if n == 0 else deep(x, n - 1) @ x

    few = np.eye(70)
    assert [p.times for p in pyrelay.profile(powers, few, 5, seconds=0.01).parts if
            p.kernel == "matmul_kernel"] == [5.0]  # fmt: skip
    assert [p.times for p in pyrelay.profile(deep, few, 6, seconds=0.01).parts if
            p.kernel == "matmul_kernel"] == [6.0]  # fmt: skip


def test_what_numpy_is_called_for_is_a_row() -> None:
    solve = pyrelay.jit(lambda a, b: np.linalg.solve(a, b))
    found = pyrelay.profile(solve, np.eye(60) * 2.0, np.ones((60, 3)), seconds=0.01)
    assert "numpy solve" in {p.kernel for p in found.parts}


def test_rows_that_threads_share_out_are_one() -> None:
    @pyrelay.jit
    def recurrent(x, w):
        h = np.zeros((x.shape[1], w.shape[0]))
        for t in range(x.shape[0]):
            h = np.tanh(x[t] + h @ w)
        return h

    with pyrelay.config.override(num_threads=2):
        x, w = np.ones((16, 64, 96)) * 1e-3, np.eye(96)
        found = pyrelay.profile(recurrent, x, w, seconds=0.02)
        np.testing.assert_allclose(recurrent(x, w), recurrent.py(x, w), rtol=1e-12)
    (product,) = (p for p in found.parts if "matmul_kernel" in p.kernel)
    assert product.times == 1.0  # all rounds


def test_gradients_are_measured_as_they_are_called() -> None:
    slope = pyrelay.grad(lambda w, x: np.sum(np.tanh(x @ w)))
    found = pyrelay.profile(slope, W, X, seconds=0.01)
    assert sum(p.kernel == "matmul_kernel" for p in found.parts) == 2
    np.testing.assert_allclose(slope(W, X), X.T @ (1 - np.tanh(X @ W) ** 2))


def test_arguments_that_are_written_stay_as_they_are() -> None:
    @pyrelay.jit
    def add_to(x, d):
        x += 1.0
        d["n"] = d["n"] + 1

    x, d = np.zeros(3), {"n": 0}
    pyrelay.profile(add_to, x, d, seconds=0.01)
    assert x.tolist() == [0.0] * 3
    assert d == {"n": 0}


def test_the_functions_own_programs_do_not_measure_themselves() -> None:
    double = pyrelay.jit(lambda x: 2.0 * x)
    pyrelay.profile(double, np.ones(5), seconds=0.01)
    assert "stamp" not in str(double.code(np.ones(5)))
    assert double.cache_info().compilations == 1


def test_a_profile_prints_as_a_table() -> None:
    with pyrelay.config.override(num_threads=1):
        found = pyrelay.profile(layers, X, W, seconds=0.01)
    lines = str(found).splitlines()
    assert lines[0] == "layers(x: f64[64, 48], w: f64[48, 32])"
    assert re.fullmatch(
        r"  \d+\.\d us a call on 1 thread; below, \d+ calls that measured themselves, \d+\.\d us "
        r"each", lines[1],
    )  # fmt: skip
    assert lines[2].split() == ["us", "share", "times", "kernel", "computes"]
    assert len(lines) == 3 + len(found.parts) + 2
    row = next(line for line in lines if "matmul" in line)
    line = layers.py.__code__.co_firstlineno + 3
    assert re.fullmatch(rf" +\d+\.\d +\d+\.\d%  +1  matmul_kernel +x @ w, line {line}.*", row), row
    assert lines[-2].endswith("%           between them")
    assert lines[-1].endswith("%           arguments and results")
    assert "matmul_kernel" in found._repr_html_()


def test_a_function_that_is_not_compiled_is_refused() -> None:
    with pytest.raises(TypeError, match=r"pyrelay.jit or pyrelay.grad has made, not <built-in"):
        pyrelay.profile(len, [1])


def test_programs_that_run_elsewhere_are_refused() -> None:
    with pyrelay.config.override(interpret=True), pytest.raises(
        DeviceError, match=r"on the CPU, and this one runs in the interpreter(.|\n)*unset PYRELAY_"
    ):
        pyrelay.profile(pyrelay.jit(lambda x: x + 1.0), np.ones(3))


def test_the_arguments_of_a_profile_raise_as_those_of_a_call() -> None:
    with pytest.raises(ValueError, match=r"'@' cannot combine f64\[64, 48\] and f64\[64, 48\]"):
        pyrelay.profile(layers, X, X, seconds=0.01)


class Layer:
    def __init__(self):
        self.w, self.calls = W, 0

    @pyrelay.jit
    def forward(self, x):
        self.calls += 1
        return np.tanh(x @ self.w)


def test_a_method_is_measured_on_a_copy_of_its_object() -> None:
    layer = Layer()
    found = pyrelay.profile(layer.forward, X, seconds=0.01)
    assert "matmul_kernel" in {p.kernel for p in found.parts}
    assert layer.calls == 0
    assert "matmul" in str(layer.forward.code(X))
    assert layer.forward.explain(X).startswith("forward(self: Layer")
    assert layer.forward.explain() == layer.forward.explain(X)
