"""The derivative of attention over 16-bit floats by tensor cores: layouts, sizes, precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config, nn
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.driver import shared_bytes
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.ir.types import bf16, f16
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred
from tests.opt.test_half_attention import softmax

ON = "cuda_emulator"
f32 = np.float32
SIZES = ((2, 37, 40), (2, 70, 40), (2, 70, 24)), ((1, 70, 5), (1, 33, 5), (1, 33, 7)), (
    (1, 33, 140), (1, 20, 140), (1, 20, 150)
)  # fmt: skip


def causal(q: Any, k: Any, v: Any) -> Any:
    return nn.scaled_dot_product_attention(q, k, v, causal=True).astype(q.dtype)


def plain(q: Any, k: Any, v: Any) -> Any:
    return (softmax(q @ k.swapaxes(-1, -2) * f32(0.2)) @ v).astype(q.dtype)


def all_turned(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.astype(f32) for x in (q, k, v))
    s = q.swapaxes(-1, -2) @ k * f32(0.2)
    return (softmax(s) @ v.swapaxes(-1, -2)).astype(np.dtype("bfloat16"))


def wide(q: Any, k: Any, v: Any) -> Any:
    x, y, z = (x.astype(f32) for x in (q, k, v))
    s = np.where(np.arange(k.shape[-2]) % 7 > 0, x @ y.swapaxes(-1, -2), f32(-9))
    return (softmax(s) @ z).astype(q.dtype)


def loss_of(function: Any) -> Any:
    def loss(q: Any, k: Any, v: Any) -> Any:
        y = function(q, k, v).astype(f32)
        return (y * y).sum()

    return loss


def numbers(shapes: Any, dtype: Any = None) -> list[Any]:
    if dtype is None:
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    rng = np.random.default_rng(3)
    return [(rng.normal(size=shape) * 0.5).astype(dtype) for shape in shapes]


def errors(function: Any, args: list[Any]) -> list[float]:
    """How far cotangents are from those of float64 where only results are rounded to bfloat16,
    relative to the largest element."""
    loss = loss_of(function)
    gradient = pyrelay.grad(loss, argnums=(0, 1, 2), device=ON)
    found = gradient(*args)
    assert "Buffer<const u16> v, Buffer<const u16> y" in gradient.code(*args)
    with config.override(interpret=True):
        exact = pyrelay.grad(loss, argnums=(0, 1, 2))(*args)
    assert all(x.dtype == y.dtype for x, y in zip(found, args, strict=True))
    mine, theirs = ([np.asarray(x, float) for x in each] for each in (found, exact))
    return [
        float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(mine, theirs, strict=True)
    ]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("function", [causal, plain])
@pytest.mark.parametrize("precision", ["highest", "tf32", "bf16"])
def test_cotangents_differ_by_roundings_of_the_results(function: Any, precision: str) -> None:
    with config.override(matmul_precision=precision):
        for shapes in SIZES if precision == "highest" else SIZES[:1]:
            assert max(errors(function, numbers(shapes))) < (
                2.0**-8 if precision == "highest" else 2.0**-6
            )


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("precision", ["highest", "bf16"])
def test_cotangents_of_float16_have_its_digits(precision: str) -> None:
    with config.override(matmul_precision=precision):
        for shapes in SIZES if precision == "highest" else SIZES[:1]:
            assert max(errors(wide, numbers(shapes, np.float16))) < 2.0**-10


@needs_compiler
def test_cotangents_of_float16_may_be_smaller_than_its_exponents() -> None:
    """Weights below 3e-8, which would be 0, times keys near 60."""
    q, k, v = numbers(SIZES[0], np.float16)
    q, k = q * np.float16(2e-4), k * np.float16(120)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return (wide(q, k, v).astype(f32) * f32(1.2e-7)).sum()

    (found,) = pyrelay.grad(loss, argnums=(0,), device=ON)(q, k, v)
    with config.override(interpret=True):
        (exact,) = pyrelay.grad(loss, argnums=(0,))(q, k, v)
    largest = float(np.abs(exact).max())
    assert largest > 1e-6
    assert np.abs(found.astype(float) - exact.astype(float)).max() < largest * 0.05


@needs_compiler
@pytest.mark.slow
def test_heads_without_a_depth_leave_cotangents_of_values_alone() -> None:
    q, k, v = numbers(((1, 65, 0), (1, 70, 0), (1, 70, 72)))
    found = pyrelay.grad(loss_of(plain), argnums=(0, 1, 2), device=ON)(q, k, v)
    assert [g.shape for g in found] == [q.shape, k.shape, v.shape]
    y = v.astype(float).mean(axis=1, keepdims=True).astype(v.dtype).astype(float)
    np.testing.assert_allclose(found[2].astype(float), np.repeat(y * 130 / 70, 70, 1), rtol=0.01)


@needs_compiler
@pytest.mark.slow
def test_transposed_operands_have_transposed_cotangents() -> None:
    shapes = [(*lead, m, n) for *lead, n, m in SIZES[0]]
    assert max(errors(all_turned, numbers(shapes))) < 2.0**-8


def texts(function: Any, dtype: Any) -> list[str]:
    args = tuple(np.ones((2, 5, 8), dtype) for _ in range(3))
    module = inferred(pyrelay.grad(loss_of(function), argnums=(0, 1, 2)), args).module
    made = plan_code(plan(lowered(module, "fuse", on=ON), TARGET))
    return [text.source for text in (*made.texts, *(forms[0] for forms in made.with_forms()))]


def test_operands_are_read_as_they_lie_forward_and_backward() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    found = texts(causal, bfloat16)
    assert sum("two_products<bf16>" in text for text in found) == 2
    assert not any("Buffer<const f32> q" in text for text in found)


def test_tiles_of_all_sums_fit_where_a_block_may_have_99_kib() -> None:
    assert sum("sum_up<f16, 128, 2>" in text for text in texts(wide, np.float16)) == 1
    for of in (bf16, f16):
        kernel = TARGET.half_attention_gradient(of)
        assert kernel is not None
        assert 48 << 10 < shared_bytes(kernel.source) <= 99 << 10
