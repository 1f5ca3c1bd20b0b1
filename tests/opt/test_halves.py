"""float16: the bits that NumPy gives, through kernels that read and write 16 bits an element."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.ir.nodes import OpCall
from pyrelay.ir.types import TensorType, f16
from pyrelay.lower.planning.plan import plan
from pyrelay.opt.halves import halves
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

rng = np.random.default_rng(0)
X, Y = (rng.normal(size=50).astype(np.float16) for _ in range(2))
A, B = rng.normal(size=(6, 7)).astype(np.float16), rng.normal(size=(7, 5)).astype(np.float16)
K = rng.integers(-9, 9, 20).astype(np.int8)
# Halfway between two numbers of 16 bits, and a little beside: rounded twice they come out wrong.
TIES = np.concatenate([
    1 + 2.0**-11 + rng.normal(size=40) * 1e-9,
    rng.normal(size=60) * np.exp(rng.normal(size=60) * 9),
    [65519.9, 65520.0, 1e300, -1e-300, 3e-8, 2.0**-25, np.inf, np.nan, -0.0],
])  # fmt: skip


def softmax(a: Any) -> Any:
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def arithmetic(x: Any, y: Any, a: Any, b: Any, s: Any) -> Any:
    filled = np.zeros(4, np.float16)
    filled[1] = x[0]
    filled[2] = 1 / 3
    filled[1] += s
    return (
        x * y + x, x * 0.1 + 1, np.exp(x) * np.tanh(y) + x / y - x**2, x.sum(), x.mean(), x.var(),
        a.sum(axis=1), a @ b, a.max(axis=1), a.argmax(axis=0), x[x > 0], np.where(x > 0, x, -x),
        np.concatenate([x, x * 2]), a.T.reshape(-1), softmax(a), s * 2, s + 1.1, filled, -x,
        float(x[3]), int(x[3] * 10), s * s * s * s * s, np.sort(x), x // s, x % s,
        x.clip(-0.5, 0.5),
    )  # fmt: skip


def casts(x: Any, k: Any, ties: Any) -> Any:
    return (
        ties.astype(np.float16), ties.astype(np.float32).astype(np.float16), k.astype("f2") / 3,
        np.sqrt(abs(k)), np.exp(k > 0), np.round(k > 0), x.astype(np.int32),
        x.astype(np.float32) * 3, x.astype(bool), x + np.float32(1), x + k, x + np.arange(len(x)),
        x * 1j, x * np.float64(0.1),
        np.float16(0.1) * len(k), np.float16(x.sum() * 2), x.dtype == np.float16,
    )  # fmt: skip


def carried(x: Any) -> Any:
    """Scalars and elements that go around loops."""
    total = np.float16(0)
    while total < 10:
        total = total + abs(x[1]) + np.float16(0.25)
    for n in range(1, len(x)):
        x[n] = x[n - 1] * np.float16(0.5) + x[n]
    x[2:5] = x[0:3] * 2
    x[::2] *= 2
    x[7:] = x[3]
    return total, x[7:].sum()


CASES: list[tuple[Any, tuple[Any, ...]]] = [
    (arithmetic, (X, Y, A, B, np.float16(1.75))), (casts, (X, np.resize(K, 50), TIES)),
    (carried, (X,)),
]  # fmt: skip


def assert_same_bits(function: Any, args: tuple[Any, ...], device: str) -> None:
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    found = pyrelay.jit(function, device=device)(*mine)
    with np.errstate(all="ignore"):
        wanted = function(*theirs)
    for place, (got, expected) in enumerate(zip(found, wanted, strict=True)):
        assert type(got) is type(expected), place
        assert np.asarray(got).dtype == np.asarray(expected).dtype, place
        np.testing.assert_array_equal(got, expected, err_msg=str(place))
    for got, expected in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("function", "args"), CASES)
def test_results_have_the_bits_that_numpy_gives(function: Any, args: tuple[Any, ...]) -> None:
    assert_same_bits(function, args, "cpu")


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("function", "args"), CASES)
def test_gpus_give_the_same_bits(function: Any, args: tuple[Any, ...]) -> None:
    assert_same_bits(function, args, "cuda_emulator")


def test_the_next_float_of_16_bits_is_that_of_16_bits() -> None:
    for function in (lambda x: np.nextafter(x, np.float16(1)), lambda x: np.spacing(x)):
        found, wanted = pyrelay.jit(function)(X), function(X)
        assert found.dtype == wanted.dtype == np.float16
        np.testing.assert_array_equal(found, wanted)


def test_interpolation_is_computed_in_float64() -> None:
    def between(x: Any, y: Any) -> Any:
        return np.interp(x[:3], np.sort(x), y)

    found, wanted = pyrelay.jit(between)(X, Y), between(X, Y)
    assert found.dtype == wanted.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_means_of_large_numbers_do_not_overflow() -> None:
    x = np.full(100, 60000.0, np.float16)
    assert pyrelay.jit(lambda x: x.mean())(x) == np.float16(60000)
    assert pyrelay.jit(lambda x: x.sum())(x) == np.inf


def test_sums_along_leading_axes_are_rounded_once() -> None:
    ones = np.ones((5000, 2), np.float16)
    assert pyrelay.jit(lambda a: a.sum(axis=0))(ones).tolist() == [5000.0, 5000.0]


def loss(x: Any, w: Any) -> Any:
    h = np.tanh(x @ w)
    h[1:] *= h[0]
    total = (softmax(h) ** 2).sum()
    for row in h:
        total = total + row[0] * row[1] * np.float16(0.25)
    return total


def test_gradients_have_the_type_of_the_argument_and_are_close() -> None:
    x, w = A, B
    mine = pyrelay.grad(loss, argnums=(0, 1))(x, w)
    wanted = pyrelay.grad(loss, argnums=(0, 1))(x.astype(np.float64), w.astype(np.float64))
    for got, exact in zip(mine, wanted, strict=True):
        assert got.dtype == np.float16
        np.testing.assert_allclose(got, exact, rtol=0.02, atol=0.01)


def test_a_gradient_through_a_cast_comes_back_in_16_bits() -> None:
    found = pyrelay.grad(lambda x: (x.astype(np.float32) ** 3).sum())(X)
    assert found.dtype == np.float16
    exact = 3 * X.astype(np.float64) ** 2
    np.testing.assert_allclose(found, exact, rtol=2e-3, atol=1e-6)
    assert repr(pyrelay.grad(lambda s: s * s * s)(np.float16(2))) == "np.float16(12.0)"


def test_what_is_left_in_16_bits_is_moved_and_cast() -> None:
    module = halves(lowered(inferred(carried, (X,)).module, "grad"))
    names = {
        let.rhs.op.name
        for function in module.functions.values() for block in _blocks(function.body)
        for let in block.lets if isinstance(let.rhs, OpCall)
        if any(isinstance(a.type, TensorType) and a.type.dtype is f16 for a in let.rhs.args)
    }  # fmt: skip
    assert names <= {"cast", "index", "index_update", "slice", "slice_update", "broadcast_to"}
    assert halves(module) is module


def _blocks(block: Any) -> Any:
    yield block
    for let in block.lets:
        for name in ("body", "test", "then", "orelse"):
            inner = getattr(let.rhs, name, None)
            if inner is not None and hasattr(inner, "lets"):
                yield from _blocks(inner)


def test_a_thread_of_a_gpu_takes_eight_elements_at_once() -> None:
    module = lowered(inferred(lambda x, y: x * y + x, (X, Y)).module, "fuse")
    (text,) = plan_code(plan(module, TARGET)).texts
    assert "#define PACK 8" in text.source
    assert "Buffer<const f16>" in text.source
    assert "f64" not in text.source
