"""A real GPU: programs, gradients and ops are compared with the CPU. Skipped without one."""

from __future__ import annotations

import copy
import importlib.util
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices import cuda
from pyrelay.errors import DeviceError
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.test_cuda_emulator import ARGUMENTS, everything
from tests.end_to_end.test_corpus_compiled import (
    differentiable,
    executable,
    pulled_back,
    seeds_of,
    with_derivative,
)
from tests.infer.running import Outcome, assert_same_outcome, plainly
from tests.programs import PROGRAMS, Program


def _missing() -> str:
    """Why there is no GPU; empty if there is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of CuPy, when it is imported
            cuda.driver()
    except DeviceError as error:
        return str(error.message)
    return ""


MISSING = _missing()
pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.filterwarnings("default"),  # of CuPy, PyTorch, JAX
]
CALLS = [pytest.param(p, k, id=f"{p.name}-{k}") for p in PROGRAMS for k in range(len(p.inputs))]


@pytest.mark.parametrize(("program", "number"), CALLS)
def test_programs_of_the_corpus_do_what_python_does(program: Program, number: int) -> None:
    """Each call three times: launch by launch, captured, and replayed."""
    function = pyrelay.jit(program.function, device="cuda")
    wanted = plainly(program.function, program.arguments()[number])
    for _ in range(3):
        mine = program.arguments()[number]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = Outcome(function(*mine), None, mine)
            except Exception as error:
                found = Outcome(None, error, mine)
        assert_same_outcome(found, wanted, program.joins)


@pytest.mark.parametrize(("program", "number"), with_derivative())
def test_derivatives_of_the_corpus_are_those_of_the_cpu(program: Program, number: int) -> None:
    module, values, wrt = differentiable(program, number)
    if not wrt:
        pytest.skip("no argument is float64 and not empty")
    derivative = pulled_back(module, wrt)
    seeds = seeds_of(executable(module), module, values)
    device = cuda.gpu()
    run = device.load(plan(lowered(derivative, "fuse", on="cuda"), device.target)).run
    with np.errstate(all="ignore"):
        got = run(*map(copy.copy, (*values, *seeds)))
        wanted = executable(derivative)(*values, *seeds)
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def test_each_family_of_ops_gives_what_python_gives() -> None:
    got, wanted = pyrelay.jit(everything, device="cuda")(*ARGUMENTS), everything(*ARGUMENTS)
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_large_arrays_take_many_blocks() -> None:
    def reduced(x: Any) -> Any:
        return x.sum(), x.max(axis=1), np.tanh(x).mean(axis=0), np.argmax(x, axis=1)

    x = np.random.default_rng(0).normal(size=(3000, 700)).astype(np.float32)
    got = pyrelay.jit(reduced, device="cuda")(x)
    for mine, theirs in zip(got, pyrelay.jit(reduced)(x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_arrays_of_cupy_are_worked_on_where_they_are() -> None:
    import cupy

    function = pyrelay.jit(lambda x, w: (np.tanh(x @ w), (x * x).sum()))
    x, w = cupy.ones((64, 32)), cupy.full((32, 8), 0.1)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        y, total = function(x, w)
    stream.synchronize()
    assert type(y) is type(total) is cupy.ndarray
    np.testing.assert_allclose(y.get(), np.tanh(np.full((64, 8), 3.2)), rtol=1e-12)
    assert float(total) == 2048.0


def test_arrays_of_torch_go_in_and_come_out_without_copies() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(6.0, device="cuda").reshape(2, 3)

    def double(x: Any) -> Any:
        x += 1.0
        return 2.0 * x

    y = pyrelay.jit(double)(x)
    assert isinstance(y, torch.Tensor)
    assert y.is_cuda
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert y.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]


def adapted_loss(w: Any, v: Any, xs: Any, ys: Any) -> Any:
    """What is left after two steps of descent in each task."""
    loss = 0.0
    for t in range(xs.shape[0]):
        a, b = w, v
        for _ in range(2):
            h = np.tanh(xs[t] @ a)
            d = h @ b - ys[t]
            b, a = b - 0.01 * h.T @ d, a - 0.01 * xs[t].T @ ((d @ b.T) * (1 - h * h))
        e = np.tanh(xs[t] @ a) @ b - ys[t]
        loss = loss + (e * e).sum()
    return loss


@pytest.mark.parametrize(("rows", "inputs", "units"), [(5, 7, 3), (16, 32, 8), (33, 64, 17)])
def test_loops_with_dozens_of_products_are_those_of_the_cpu(
    rows: int, inputs: int, units: int
) -> None:
    rng = np.random.default_rng(0)
    shapes = (inputs, units), (units, 2), (6, rows, inputs), (6, rows, 2)
    args = [0.4 * rng.normal(size=shape) for shape in shapes]
    found = pyrelay.grad(adapted_loss, (0, 1), device="cuda")(*args)
    for mine, theirs in zip(found, pyrelay.grad(adapted_loss, (0, 1))(*args), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def test_out_of_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="for an array of"):
        pyrelay.jit(lambda n: np.zeros(n * 10**9), device="cuda")(4000)


def test_arrays_of_jax_go_in_and_come_out_without_copies() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(6, dtype="float32").reshape(2, 3)
    y = pyrelay.jit(lambda x: 2.0 * x + x.sum())(x)
    assert isinstance(y, jax.Array)
    np.testing.assert_array_equal(np.asarray(y), 2 * np.arange(6.0).reshape(2, 3) + 15)


def test_graphs_with_products_are_replayed() -> None:
    import cupy

    def layers(x: Any, w: Any) -> Any:
        return np.tanh(np.tanh(x @ w) @ w) @ w

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(8, 16)), rng.normal(size=(16, 16))
    function, given = pyrelay.jit(layers), (cupy.asarray(x), cupy.asarray(w))
    for _ in range(4):
        np.testing.assert_allclose(function(*given).get(), layers(x, w), rtol=1e-10)


def test_numbers_below_the_normal_ones_are_kept() -> None:
    x = np.array([1e-40, 3e-45, -2e-39], np.float32)
    found = pyrelay.jit(lambda x: x * np.float32(0.5) + x, device="cuda")(x)
    np.testing.assert_array_equal(found, x * np.float32(0.5) + x)


def test_recursion_of_one_thread_is_as_deep_as_pythons() -> None:
    def depth(n: Any) -> Any:
        return 0 if n == 0 else 1 + depth(n - 1)

    found = pyrelay.jit(lambda x: depth(x[0]) + x, device="cuda")(np.array([600, 1]))
    assert found.tolist() == [1200, 601]


ENDLESS = """\
import numpy as np, pyrelay

def endless(x):
    k = 0
    while x[k % 2] > 0:
        k += 2
    return k

function = pyrelay.jit(endless, device="cuda")
assert function(np.array([-1.0, 1.0])) == 0
print("ready", flush=True)
try:
    function(np.array([1.0, 1.0]))
except KeyboardInterrupt:
    assert function(np.array([-1.0, 1.0])) == 0
    print("stopped", flush=True)
"""


def test_ctrl_c_ends_a_kernel_that_loops(tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    command = [sys.executable, str(script)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    with process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(2)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60)[0] == "stopped\n"
        finally:
            process.kill()


def test_two_threads_run_programs_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def layers(x: Any, w: Any) -> Any:
        return np.tanh(np.tanh(x @ w) @ w).sum(axis=1)

    function = pyrelay.jit(layers, device="cuda")
    rng = np.random.default_rng(0)
    w, xs = rng.normal(size=(16, 16)), rng.normal(size=(40, 8, 16))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: function(x, w), xs))
    for x, mine in zip(xs, found, strict=True):
        np.testing.assert_allclose(mine, layers(x, w), rtol=1e-10)


def test_arrays_without_elements_and_without_axes() -> None:
    function = pyrelay.jit(lambda x: (x * 2.0, x.sum()), device="cuda")
    for x in (np.zeros((0, 3)), np.zeros(0), np.array(1.5), np.ones((3, 1))):
        doubled, total = function(x)
        np.testing.assert_array_equal(doubled, x * 2.0)
        assert total == x.sum()
    for x, y in ((np.zeros((3, 0)), np.zeros((0, 2))), (np.zeros((0, 3)), np.zeros((3, 2)))):
        np.testing.assert_array_equal(pyrelay.jit(lambda a, b: a @ b, device="cuda")(x, y), x @ y)


def test_arrays_that_do_not_begin_at_whole_packs() -> None:
    import cupy

    flat = cupy.arange(103, dtype=cupy.float32)
    function = pyrelay.jit(lambda x, y: x * 2 + y)
    for start in range(5):
        x, y = flat[start : start + 97], flat[5 - start : 102 - start]
        np.testing.assert_array_equal(function(x, y).get(), (x * 2 + y).get())
    gaps = flat[::2]
    np.testing.assert_array_equal(function(gaps, gaps).get(), (gaps * 3).get())


def test_float16_is_stored_in_16_bits_and_rounded_after_each_op() -> None:
    import cupy

    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=1003).astype(np.float16) for _ in range(2))
    found = pyrelay.jit(lambda x, y: (x * y + x / y - x, x.sum(), x.mean(), x[::-1] * 2))(
        cupy.asarray(x), cupy.asarray(y)
    )
    assert all(each.dtype == np.float16 for each in found)
    np.testing.assert_array_equal(found[0].get(), x * y + x / y - x)
    np.testing.assert_allclose(float(found[1]), x.astype(float).sum(), rtol=2e-3)
    np.testing.assert_allclose(float(found[2]), x.astype(float).mean(), rtol=2e-3)
    np.testing.assert_array_equal(found[3].get(), x[::-1] * 2)
    matrix = x[:960].reshape(30, 32)
    product = pyrelay.jit(lambda a: a @ a.T)(cupy.asarray(matrix))
    exact = matrix.astype(float) @ matrix.T.astype(float)
    np.testing.assert_allclose(product.get(), exact, rtol=2e-3, atol=2e-2)


def test_bfloat16_of_all_libraries_is_taken_and_given() -> None:
    import cupy

    brain = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = np.random.default_rng(0).normal(size=(40, 64)).astype(brain)
    function = pyrelay.jit(lambda x: (x * x + 1, np.dot(x, x.T), x.max()))
    squares, product, most = (x * x + 1).astype(float), x.astype(float) @ x.T.astype(float), x.max()

    def check(found: Any) -> None:
        got = [np.asarray(f).astype(float) for f in found]
        np.testing.assert_array_equal(got[0], squares)
        np.testing.assert_allclose(got[1], product, rtol=8e-3, atol=0.1)
        assert got[2] == float(most)

    check(pyrelay.jit(function.py, device="cuda")(x))
    given = cupy.asarray(x.view(np.int16))
    check([cupy.asarray(f).get() for f in function(given.view(brain))])
    if importlib.util.find_spec("torch") is not None:
        import torch

        found = function(torch.from_dlpack(given).view(torch.bfloat16))
        assert {f.dtype for f in found} == {torch.bfloat16}
        check([f.float().cpu().numpy() for f in found])
    if importlib.util.find_spec("jax") is not None:
        import jax

        found = function(jax.numpy.asarray(x))
        assert {f.dtype for f in found} == {brain}
        check(found)


def test_tensor_cores_multiply_in_attention_as_the_setting_says() -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.T
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v

    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(n, 64)).astype(np.float32) / 4 for n in (100, 300, 300))
    exact = attention(*(a.astype(np.float64) for a in (q, k, v)))
    for precision, tolerance in (("highest", 1e-5), ("tf32", 2e-3), ("bf16", 2e-2)):
        with config.override(matmul_precision=precision):
            found = pyrelay.jit(attention, device="cuda")(q, k, v)
        assert abs(found - exact).max() < tolerance * abs(exact).max(), precision
