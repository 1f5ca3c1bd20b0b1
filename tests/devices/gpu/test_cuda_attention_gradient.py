"""The derivative of attention as one kernel of a GPU: layouts, masks, sizes, precisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.ir.show import show
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred
from tests.opt.test_attention_gradient import (
    all_turned,
    biased,
    by_einsum,
    causal,
    masked_by_a_sum,
    of_the_library,
    scaled,
    unscaled,
    without_kept_axes,
)

ON = "cuda_emulator"
SIZES = ((2, 37, 5), (2, 70, 5), (2, 70, 7)), ((1, 33, 140), (1, 20, 140), (1, 20, 150))


def loss_of(function: Any) -> Any:
    def loss(q: Any, k: Any, v: Any) -> Any:
        y = function(q, k, v)
        return (y * np.sin(y)).sum()

    return loss


def numbers(shapes: Any, dtype: Any) -> list[Any]:
    rng = np.random.default_rng(3)
    return [(rng.normal(size=shape) * 0.5).astype(dtype) for shape in shapes]


def errors(function: Any, args: list[Any], argnums: Any = (0, 1, 2)) -> list[float]:
    """How far cotangents are from those of float64, relative to the largest element."""
    gradient = pyrelay.grad(loss_of(function), argnums=argnums, device=ON)
    found = gradient(*args)
    assert "__device__ void sum_up(" in gradient.code(*args)
    with config.override(interpret=True):
        exact = pyrelay.grad(loss_of(function), argnums=argnums)(*(x.astype(float) for x in args))
    assert all(x.dtype == args[0].dtype for x in found)
    return [
        float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(found, exact, strict=True)
    ]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [
    all_turned, by_einsum, causal, of_the_library, unscaled, without_kept_axes,
])  # fmt: skip
def test_cotangents_are_those_of_the_interpreter(function: Any, dtype: Any) -> None:
    for shapes in SIZES:
        assert max(errors(function, numbers(shapes, dtype))) < (
            1e-5 if dtype == np.float32 else 1e-13
        )


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("function", [scaled, biased, masked_by_a_sum])
def test_numbers_of_float64_among_the_scores(function: Any) -> None:
    assert max(errors(function, numbers(SIZES[0], np.float64))) < 1e-13


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("argnums", [(0,), (1, 2), (0, 2)])
def test_some_cotangents_alone(argnums: tuple[int, ...]) -> None:
    assert max(errors(causal, numbers(SIZES[0], np.float64), argnums)) < 1e-13


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("precision", "bound"), [("tf32", 2e-3), ("bf16", 2e-2)])
def test_tensor_cores_multiply_float32_as_the_setting_says(precision: str, bound: float) -> None:
    with config.override(matmul_precision=precision):
        found = errors(causal, numbers(((2, 37, 40), (2, 70, 40), (2, 70, 72)), np.float32))
        narrow = errors(all_turned, numbers(((1, 130, 40), (1, 70, 40), (1, 70, 56)), np.float32))
    for each in (found, narrow):
        assert bound / 50 < max(each) < bound


@needs_compiler
@pytest.mark.slow
def test_tiles_that_are_full_and_several_of_each() -> None:
    assert max(errors(causal, numbers(((1, 64, 64), (1, 128, 64), (1, 128, 64)), np.float32))) < (
        1e-5
    )


@needs_compiler
@pytest.mark.slow
def test_shared_keys_and_sizes_of_zero() -> None:
    q, k, v = numbers(((2, 3, 9, 4), (3, 10, 4), (2, 1, 10, 6)), np.float64)
    gradient = pyrelay.grad(loss_of(unscaled), device=ON)
    with config.override(interpret=True):
        wanted = pyrelay.grad(loss_of(unscaled))(q, k, v)
    np.testing.assert_allclose(gradient(q, k, v), wanted, rtol=1e-11, atol=1e-13)
    every = pyrelay.grad(loss_of(unscaled), argnums=(0, 1, 2), device=ON)
    q, k, v = numbers(SIZES[0], np.float64)
    found = every(q[:, :0], k, v)
    assert [x.shape for x in found] == [(2, 0, 5), (2, 70, 5), (2, 70, 7)]
    assert all((x == 0).all() for x in found)


@pytest.mark.parametrize("has", [True, False])
def test_no_scores_are_kept_where_there_is_a_kernel(has: bool) -> None:
    args = tuple(numbers(SIZES[0], np.float64))
    module = inferred(pyrelay.grad(loss_of(causal), argnums=(0, 1, 2)), args).module
    target = TARGET if has else replace(TARGET, attention_gradient=None)
    made = plan_code(plan(lowered(module, "fuse", on=ON), target))
    texts = [text.source for text in (*made.texts, *(forms[0] for forms in made.with_forms()))]
    assert sum("void sum_up(" in text for text in texts) == has
    assert any("tops[entry" in text for text in texts)
    assert any(launch.product for launch in made.launches) != has


def _summed(q: Any, k: Any, v: Any) -> Any:
    return unscaled(q, k, v).sum()


def _weighted(q: Any, k: Any, v: Any) -> Any:
    y = unscaled(q, k, v)
    return (y * np.arange(y.shape[-1])).mean()


@pytest.mark.parametrize("loss", [_summed, _weighted])
def test_no_scores_are_kept_where_the_loss_is_linear(loss: Any) -> None:
    """Nobody wants the result then; it is made for the means."""
    args = numbers(SIZES[0], np.float32)
    module = inferred(pyrelay.grad(loss, argnums=(0, 1, 2)), args).module
    text = show(lowered(module, "fuse", on=ON))
    entry = text[: text.index("\n}")]
    assert "matmul(" not in entry
    assert text.count(" = matmul(") == 7  # two of the attention, five of its derivative


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("loss", [_summed, _weighted])
def test_cotangents_where_the_loss_is_linear(loss: Any) -> None:
    args = numbers(SIZES[0], np.float64)
    found = pyrelay.grad(loss, argnums=(0, 1, 2), device=ON)(*args)
    with config.override(interpret=True):
        exact = pyrelay.grad(loss, argnums=(0, 1, 2))(*args)
    for mine, theirs in zip(found, exact, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
