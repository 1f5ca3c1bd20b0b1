"""A maximum and sums of exponentials relative to it in one pass: where, and the same results."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.ir import dims, interp
from pyrelay.ir.nodes import KernelCall
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.kernels.traffic import moved
from pyrelay.lower.passes.held_rows import ROOM
from pyrelay.lower.planning.normalise import kernels_only
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def log_softmax(x: Any) -> Any:
    z = x - x.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def logsumexp(x: Any) -> Any:
    m = x.max(axis=1)
    return m + np.log(np.exp(x - m[:, None]).mean(axis=1))


def cross_entropy(x: Any) -> Any:
    z = x - x.max(axis=1, keepdims=True)
    return np.log(np.exp(z).sum(axis=1)) - z[np.arange(x.shape[0]), np.zeros(x.shape[0], int)]


def masked(x: Any) -> Any:
    return softmax(np.where(x > 0, x * 0.25, -np.inf))


def weighted(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return (e * np.cos(x)).sum(axis=1) / e.sum(axis=1)


def of_others(x: Any) -> Any:
    """Other elements than those the maximum is of."""
    return np.exp(x[:, :-1] - x.max(axis=1, keepdims=True)).sum(axis=1)


def guarded(x: Any) -> Any:
    m = x.max(axis=1, keepdims=True)
    return np.exp(x - np.where(np.isfinite(m), m, 0)).sum(axis=1)


def entropy(x: Any) -> Any:
    z = x - x.max(axis=1, keepdims=True)
    e = np.exp(z)
    return (e * z).sum(axis=1) / e.sum(axis=1)


IN_ONE_PASS = [softmax, log_softmax, logsumexp, cross_entropy, masked, weighted]
IN_TWO = [of_others, guarded, entropy]


def text_of(function: Any) -> str:
    args = (np.ones((4, 64), np.float32),)
    module = lowered(inferred(function, args).module, "fuse", on=ON)
    return "".join(text.source for text in plan_code(plan(module, TARGET)).texts)


def is_in_one_pass(text: str) -> bool:
    return "own0" in text


@pytest.mark.parametrize("function", [*IN_ONE_PASS, *IN_TWO], ids=lambda f: f.__name__)
def test_sums_in_proportion_to_exponentials_are_made_with_the_maximum(function: Any) -> None:
    assert is_in_one_pass(text_of(function)) == (function in IN_ONE_PASS)


def test_sums_of_16_bits_are_rounded_as_python_rounds_them() -> None:
    module = lowered(inferred(softmax, (np.ones((4, 64), np.float16),)).module, "fuse", on=ON)
    assert not is_in_one_pass(plan_code(plan(module, TARGET)).texts[0].source)


def rows(kind: str, n: int, dtype: Any) -> np.ndarray[Any, Any]:
    x = np.random.default_rng(n).normal(size=(3, n)) * 5
    match kind:
        case "nothing":
            x[0] = -np.inf
        case "nothing at first":
            x[:, : n // 2] = -np.inf
        case "infinite":
            x[0, -1], x[-1, 0] = np.inf, np.nan
        case "large":
            x *= 1e30
    return x.astype(dtype)


@needs_compiler
@pytest.mark.parametrize("function", [
    softmax, *(pytest.param(f, marks=pytest.mark.slow) for f in [*IN_ONE_PASS[1:], *IN_TWO])
], ids=lambda f: f.__name__)  # fmt: skip
def test_rows_give_what_numpy_gives(function: Any) -> None:
    compiled = pyrelay.jit(function, device=ON)
    for dtype, tolerance in ((np.float32, 4e-5), (np.float64, 1e-12)):
        for n in (64, 63, 2500, 2):
            for kind in ("plain", "nothing", "nothing at first", "infinite", "large"):
                x = rows(kind, n, dtype)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = function(x)
                found = compiled(x)
                assert found.dtype == wanted.dtype
                np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance / 40)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("function", [*IN_ONE_PASS, *IN_TWO], ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_cpu(function: Any) -> None:
    """With equal maxima, too, which share what comes back."""

    def loss(x: Any) -> Any:
        y = function(x)
        return (y * np.cos(np.arange(y.size).reshape(y.shape))).sum()

    compiled, cpu = pyrelay.grad(loss, device=ON), pyrelay.grad(loss)
    for n in (64, 63, 2500):
        for x in (rows("plain", n, np.float64), np.round(rows("plain", n, np.float64))):
            np.testing.assert_allclose(compiled(x), cpu(x), rtol=1e-9, atol=1e-12)


def test_a_gradient_counts_equal_maxima_in_the_same_pass() -> None:
    def loss(x: Any) -> Any:
        return cross_entropy(x).sum()

    text = text_of(pyrelay.grad(loss))
    assert is_in_one_pass(text)
    assert text.count("const auto round") == 4  # the maximum, sums, results of a row; gradients


def gradient(function: Any) -> Any:
    def loss(x: Any) -> Any:
        return function(x).sum()

    return pyrelay.grad(loss)


@pytest.mark.parametrize("n", [1024, 32768, 131072])
def test_a_row_that_a_block_holds_is_read_once_and_others_chunk_by_chunk(n: int) -> None:
    """How often an item asks for the bytes of its row: a result takes it once, and a chunk of a
    long one is looked through for the greatest element and added up."""
    small = (np.ones((4, 64), np.float32),)
    for function, held, longer in (
        (softmax, 2, 4), (log_softmax, 2, 4), (cross_entropy, 1, 2), (logsumexp, 1, 2),
        (weighted, 1, 2), (gradient(cross_entropy), 2, 5),
    ):
        module = kernels_only(lowered(inferred(function, small).module, "fuse", on=ON), TARGET)
        (call,) = (x.rhs for x in module.main.body.lets if isinstance(x.rhs, KernelCall))
        (made,) = kernelise(call.function, splits=True).kernels
        extents = interp.bind_extents(module.main, small, {})
        values = [n if dims.evaluate(d, extents) == 64 else 4 for d in call.dims]
        most = held if n * 4 <= ROOM else longer
        assert 0 <= moved(made, values, 1) - 4 * n * most < 64, function
