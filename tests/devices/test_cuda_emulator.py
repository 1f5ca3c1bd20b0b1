"""CUDA's source run by the host: programs, errors, memory checks, barriers, shuffles."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import math
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config, nn
from pyrelay.devices import cuda_emulator
from pyrelay.devices.cuda_emulator import DEVICE
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.errors import InvariantError
from pyrelay.ir.nodes import Module, OpCall
from pyrelay.ir.op import Op
from pyrelay.ir.walk import nested_lets
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import emulate, needs_compiler
from tests.end_to_end.test_corpus_compiled import (
    differentiable,
    executable,
    pulled_back,
    seeds_of,
    with_derivative,
)
from tests.infer.running import Outcome, assert_same_outcome, inferred, plainly
from tests.programs import PROGRAMS, Program

pytestmark = needs_compiler
ON = "cuda_emulator"

#: One program of each form of control flow and of each kind of op; the others run as slow tests.
SAMPLE = frozenset([
    "newton", "heat", "early_returns", "softmax_rows", "write_in_loop", "mlp", "layer_norm",
    "mutual_recursion", "write_through_view", "matrix_products", "swap_of_local_arrays",
])  # fmt: skip
CALLS = [
    pytest.param(
        p, k, id=f"{p.name}-{k}",
        marks=() if p.name in SAMPLE and k == 0 else (pytest.mark.slow,),
    )
    for p in PROGRAMS for k in range(len(p.inputs))
]  # fmt: skip


def emulated(function: Callable[..., Any], args: tuple[Any, ...]) -> Outcome:
    """The call of a function compiled for the emulator."""
    mine = copy.deepcopy(args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Outcome(pyrelay.jit(function, device=ON)(*mine), None, mine)
        except Exception as error:
            return Outcome(None, error, mine)


@pytest.mark.parametrize(("program", "number"), CALLS)
def test_programs_of_the_corpus_do_what_python_does(program: Program, number: int) -> None:
    args = program.arguments()[number]
    assert_same_outcome(emulated(program.function, args), plainly(program.function, args),
                        program.joins)  # fmt: skip


def on_the_emulator(module: Module) -> Callable[..., tuple[Any, ...]]:
    """A module compiled for the emulator; always gives a tuple."""
    run = DEVICE.load(plan(lowered(module, "fuse", on=ON), TARGET)).run

    def call(*args: Any) -> tuple[Any, ...]:
        results = run(*map(copy.copy, args))
        return results if isinstance(results, tuple) else (results,)

    return call


@pytest.mark.slow
@pytest.mark.parametrize(("program", "number"), with_derivative())
def test_derivatives_of_the_corpus_are_those_of_the_cpu(program: Program, number: int) -> None:
    module, values, wrt = differentiable(program, number)
    if not wrt:
        pytest.skip("no argument is float64 and not empty")
    derivative = pulled_back(module, wrt)
    seeds = seeds_of(executable(module), module, values)
    with np.errstate(all="ignore"):
        got = on_the_emulator(derivative)(*values, *seeds)
        wanted = executable(derivative)(*values, *seeds)
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def everything(x: Any, w: Any, i: Any, z: Any) -> Any:
    """Something of each family of ops: elements, reductions along each axis, places, products,
    scans, sorting, masks, scatters, complex numbers."""
    h = np.tanh(x @ w) + np.sqrt(np.abs(x[:, :1]))
    picked, chosen, added = h[i], h[h > 0.1], np.zeros(4)
    np.add.at(added, i, h[0, :3])
    parts = [
        h.sum(), h.mean(axis=0).max(), (h - h.max(axis=1, keepdims=True)).min(),
        np.cumsum(h, axis=1)[:, -1].sum(), np.sort(h[0])[1], picked.prod(),
        np.where(h > 0, h, 0.1 * h).sum(), np.abs(z * z + 1j / z).sum(),
        np.concatenate([h, w]).std(), float(h.argmax()), float((i // 3 % 2).sum()),
        (chosen * np.arange(chosen.size)).sum(), added[3] + float(np.nonzero(h > 0.1)[1].sum()),
    ]
    y = np.zeros(7)
    for k in range(y.size):
        y[k] = parts[k] + (y[k - 1] if k else 0.0)
    return np.stack(parts), y


ARGUMENTS = (
    np.sin(np.arange(12.0)).reshape(4, 3), np.cos(np.arange(15.0)).reshape(3, 5),
    np.array([0, -1, 2]), np.array([1 + 2j, 0.5 - 1j]),
)


def test_each_family_of_ops_gives_what_python_gives() -> None:
    got, wanted = pyrelay.jit(everything, device=ON)(*ARGUMENTS), everything(*ARGUMENTS)
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)


def test_masks_that_are_made_of_others_are_reduced() -> None:
    def reduced(a: Any, b: Any) -> Any:
        return (a & b).max(axis=1), np.where(a, b, a | b).min(axis=0), (a ^ b).any(), (a + b).max(1)

    a, b = np.arange(12).reshape(3, 4) % 3 > 0, np.arange(12).reshape(3, 4) % 2 > 0
    got = pyrelay.jit(reduced, device=ON)(a, b)
    for mine, theirs in zip(got, reduced(a, b), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def others(x: Any, w: Any, i: Any, z: Any) -> Any:
    """Of the families that `everything` has nothing of."""
    image = np.stack([x, 2.0 * x])[None]
    filtered = nn.conv2d(image, np.stack([w[:2, :2], w[1:, 1:3]])[None])
    return (
        np.maximum.accumulate(x, axis=1), filtered, np.linalg.det(x[:3] + 2.0 * np.eye(3)),
        math.lgamma(w[0, 0] + 2.0),
    )


#: Modules of `ops` of which no kernel is made: what Python computes, what only CPUs' programs are
#: made of, and names for values that are computed by others.
_WITHOUT_KERNELS = {"decompositions", "fourier", "host", "least_squares", "normalised"}


def test_there_is_a_sample_of_each_module_of_ops() -> None:
    used: set[str] = set()
    for function in (everything, others):
        module = lowered(inferred(function, ARGUMENTS).module, "optimise", on=ON)
        lets = [let for f in module.functions.values() for let in nested_lets(f.body)]
        used |= {let.rhs.op.name for let in lets if isinstance(let.rhs, OpCall)}
    without = {name for name in pyrelay.ops.__all__ if not used & _defined(name)}
    assert without == _WITHOUT_KERNELS


def _defined(name: str) -> set[str]:
    """The ops that a module of `ops` defines itself."""
    module = importlib.import_module(f"pyrelay.ops.{name}")
    found: set[str] = set()
    for node in ast.parse(inspect.getsource(module)).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            value = getattr(module, getattr(target, "id", ""), None)
            values = value.values() if isinstance(value, dict) else (value,)
            found |= {op.name for op in values if isinstance(op, Op)}
    assert found, name
    return found


def test_each_other_family_of_ops_gives_what_python_gives() -> None:
    got, wanted = pyrelay.jit(others, device=ON)(*ARGUMENTS), others(*ARGUMENTS)
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_a_gradient_runs_on_the_device_of_the_function() -> None:
    def loss(x: Any, w: Any) -> Any:
        return (np.tanh(x @ w) ** 2).sum()

    gradient = pyrelay.grad(pyrelay.jit(loss, device=ON), argnums=(0, 1))
    assert gradient.device == ON
    assert "__global__" in gradient.code(*ARGUMENTS[:2])
    x, w = ARGUMENTS[:2]
    h = np.tanh(x @ w)
    outer = 2 * h * (1 - h * h)
    for mine, theirs in zip(gradient(x, w), (outer @ w.T, x.T @ outer), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
def test_gradients_of_each_family_of_ops_are_those_of_the_cpu() -> None:
    def loss(x: Any, w: Any, i: Any, z: Any) -> Any:
        values, y = everything(x, w, i, z)
        return values.sum() + y[-1]

    mine = pyrelay.grad(loss, argnums=(0, 1), device=ON)(*ARGUMENTS)
    theirs = pyrelay.grad(loss, argnums=(0, 1))(*ARGUMENTS)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64, np.bool_])
def test_stacks_of_products_of_every_layout(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 2, shape).astype(dtype) for shape in ((3, 1, 17, 20), (2, 20, 33)))
    product = pyrelay.jit(lambda a, b: (a @ b, b.swapaxes(1, 2) @ a.swapaxes(2, 3)), device=ON)
    for mine, theirs in zip(product(a, b), product.py(a, b), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


# -- errors --------------------------------------------------------------------------------------


def test_of_several_failures_the_first_in_the_order_of_python_is_raised() -> None:
    def pick(x: Any, i: Any) -> Any:
        return x[i] * 2.0

    index = np.arange(300) % 4
    index[[250, 37, 101]] = 9, -8, 7
    with pytest.raises(IndexError) as caught:
        pyrelay.jit(pick, device=ON)(np.ones(4), index)
    assert str(caught.value) == "index -8 is out of bounds for axis 0 with size 4"
    assert caught.value.span.line == pick.__code__.co_firstlineno + 1


def test_what_a_loop_raises_carries_its_values() -> None:
    def walk(x: Any, limit: float) -> Any:
        total = 0.0
        for k in range(x.size):
            total += x[k]
            if total > limit:
                raise ValueError(f"too much at {k}: {total}")
        return total

    with pytest.raises(ValueError, match=r"^too much at 3: 4\.0\n"):
        pyrelay.jit(walk, device=ON)(np.ones(9), 3.5)
    with pytest.raises(ZeroDivisionError):
        pyrelay.jit(lambda x, y: [x / y for _ in range(2)][1], device=ON)(1.0, 0.0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_a_loop_that_does_not_end_is_stopped_by_a_signal() -> None:
    def endless(x: float) -> float:
        while x < 2.0:
            x = x * 0.5
        return x

    def stop(number: int, frame: Any) -> None:
        raise InterruptedError("enough")

    waiting = pyrelay.jit(endless, device=ON)
    assert waiting(3.0) == 3.0
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(InterruptedError, match="enough"):
            waiting(1.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_deep_recursion_goes_on_in_the_plan() -> None:
    def depth(n: int) -> int:
        return 0 if n == 0 else 1 + depth(n - 1)

    assert pyrelay.jit(depth, device=ON)(20_000) == 20_000


def test_without_a_compiler_the_error_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    monkeypatch.setattr(cuda_emulator, "compiler", lambda: None)
    with pytest.raises(pyrelay.errors.DeviceError) as caught:
        cuda_emulator.load(["// no such kernel\n"])
    golden("errors/device_emulator_without_compiler.txt", str(caught.value))


# -- devices by name -----------------------------------------------------------------------------


def test_the_device_is_part_of_what_a_program_is_found_by() -> None:
    @pyrelay.jit
    def f(x: Any) -> Any:
        return np.exp(x) - 1.5

    x = np.linspace(0, 1, 5)
    here = f(x)
    with config.override(device=ON):
        assert "__global__" in f.code(x)
        np.testing.assert_allclose(f(x), here, rtol=1e-15)
    assert f.cache_info().compilations == 2
    assert "__global__" not in f.code(x)
    assert pyrelay.jit(f) is f
    assert pyrelay.jit(f, device=ON) is not f
    assert "__global__" in pyrelay.jit(f, device=ON).lower(x).code()


def test_functions_of_numbers_alone_run_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(n: int, x: float) -> float:
        while x < n:
            x = x * 1.5 + 1
        return x

    def launched(*args: Any) -> None:
        raise AssertionError(args)

    monkeypatch.setattr(cuda_emulator.EmulatorDriver, "launch", launched)
    monkeypatch.setattr(cuda_emulator.EmulatorDriver, "allocate", launched)
    assert pyrelay.jit(f, device=ON)(100, 2.0) == f(100, 2.0)


def test_an_unknown_device_is_refused_at_once() -> None:
    with pytest.raises(pyrelay.errors.ConfigError, match="use one of cpu, cuda, cuda_emulator"):
        pyrelay.jit(lambda x: x, device="tpu")


def test_importing_pyrelay_looks_for_no_gpu_and_no_compiler() -> None:
    code = (
        "import sys, pyrelay, numpy as np; pyrelay.jit(np.tanh)(np.ones(2));"
        "print([m for m in sys.modules if 'cupy' in m or m.startswith('pyrelay.devices.cuda')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- the emulator itself -------------------------------------------------------------------------

_HEAD = (
    'extern "C" __global__ void kernel(pyrelay_record *record, i64 launch, i64 first, i64 last, '
    "Buffer<const f64> a, Buffer<f64> o) {\n"
)
BY_BLOCKS = "#define BLOCK_THREADS 64\n" + _HEAD
EACH = BY_BLOCKS + "for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {\n"


def run_text(text: str, a: np.ndarray, o: np.ndarray, items: int) -> None:
    emulate([text], (a, o), items=[items])


def test_threads_of_a_block_share_memory_and_wait_for_each_other() -> None:
    text = EACH + """
        PYRELAY_SHARED(f64, held, 64);
        held[threadIdx.x] = a[item * 64 + threadIdx.x];
        __syncthreads();
        o[item * 64 + threadIdx.x] = held[63 - threadIdx.x];
        __syncthreads();
    }}"""
    a, o = np.arange(64.0 * 9), np.zeros(64 * 9)
    run_text(text, a, o, 9)
    np.testing.assert_array_equal(o.reshape(9, 64), a.reshape(9, 64)[:, ::-1])


def test_warps_exchange_registers() -> None:
    text = EACH + """
        f64 sum = a[threadIdx.x];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
        o[threadIdx.x] = __shfl_sync(0xffffffff, sum, 0);
    }}"""
    a, o = np.arange(64.0), np.zeros(64)
    run_text(text, a, o, 1)
    assert set(o[:32]) == {a[:32].sum()}
    assert set(o[32:]) == {a[32:].sum()}


def test_shared_memory_starts_with_garbage() -> None:
    text = EACH + "PYRELAY_SHARED(f64, held, 64);\no[threadIdx.x] = held[threadIdx.x];\n}}"
    o = np.zeros(64)
    run_text(text, np.zeros(64), o, 1)
    assert np.isnan(o).all()


def test_a_barrier_that_not_all_threads_reach_is_a_fault() -> None:
    text = EACH + "if (threadIdx.x < 32) __syncthreads();\no[threadIdx.x] = a[threadIdx.x];\n}}"
    with pytest.raises(InvariantError, match="a barrier is not reached by all"):
        run_text(text, np.zeros(64), np.zeros(64), 1)


@pytest.mark.parametrize("index", [-1, 64])
def test_an_index_outside_of_a_known_buffer_is_a_fault(index: int) -> None:
    text = _HEAD + f"o[{index}] = a[0];\n}}"
    with pytest.raises(InvariantError, match="lies outside of its buffer"):
        run_text(text, np.zeros(64), np.zeros(64), 1)


def test_equal_kernels_are_compiled_once() -> None:
    text = _HEAD + "o[0] = a[0];\n}"
    assert cuda_emulator.load([text]) == cuda_emulator.load([text, text])[:1]
