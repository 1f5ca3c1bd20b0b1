"""Tiles that a causal mask leaves out: which kernels mask so, and what results are then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import nn
from pyrelay.devices.gpu import cuda_attention, cuda_causal
from pyrelay.lower.kernels.kernel import Kernel
from tests.devices.gpu.test_cuda_half_attention_gradient import loss_of
from tests.devices.running_kernels import needs_compiler
from tests.opt.test_half_attention import softmax

ON = "cuda_emulator"
f32 = np.float32
LOW = f32(-np.inf)


def causal(q: Any, k: Any, v: Any) -> Any:
    return nn.scaled_dot_product_attention(q, k, v, causal=True)


def products(q: Any, k: Any) -> Any:
    return q.astype(f32) @ k.astype(f32).swapaxes(-1, -2) * f32(0.2)


def dropped(q: Any, k: Any, v: Any) -> Any:
    s = products(q, k)
    row, column = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    return softmax(np.where(column > row, LOW, s)) @ v.astype(f32)


def triangle(q: Any, k: Any, v: Any) -> Any:
    s = products(q, k)
    return softmax(np.where(np.tril(np.ones(s.shape[-2:], bool)), s, LOW)) @ v.astype(f32)


def behind_others(q: Any, k: Any, v: Any) -> Any:
    """Rows that stand behind keys of an earlier call."""
    row, column = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    more = k.shape[-2] - q.shape[-2]
    return softmax(np.where(row + more >= column, products(q, k), LOW)) @ v.astype(f32)


def near(q: Any, k: Any, v: Any) -> Any:
    row, column = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    kept = np.abs(row - column) < 20
    return softmax(np.where(kept, products(q, k), LOW)) @ v.astype(f32)


def lowered_only(q: Any, k: Any, v: Any) -> Any:
    row, column = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    return softmax(np.where(column <= row, products(q, k), f32(-3))) @ v.astype(f32)


def later(q: Any, k: Any, v: Any) -> Any:
    row, column = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    return softmax(np.where(column >= row, products(q, k), LOW)) @ v.astype(f32)


def shifted(q: Any, k: Any, v: Any) -> Any:
    row, column = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    s = np.where(column <= row, products(q, k) + LOW * (column > 9), LOW)
    return softmax(s) @ v.astype(f32)


def numbers(shapes: Any, dtype: Any = f32) -> list[Any]:
    rng = np.random.default_rng(2)
    return [(rng.normal(size=shape) * 0.5).astype(dtype) for shape in shapes]


@pytest.mark.parametrize(("function", "masks"), [
    (causal, True), (dropped, True), (triangle, True), (behind_others, True),
    (near, False), (lowered_only, False), (later, False), (shifted, False),
])  # fmt: skip
def test_masks_are_known_by_what_they_compare(
    function: Any, masks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def asked(kernel: Kernel | None) -> Any:
        found = known(kernel)
        if kernel is not None:
            seen.append(found is not None)
        return found

    known = cuda_causal.causal
    monkeypatch.setattr(cuda_attention.cuda_causal, "causal", asked)
    for dtype in (f32, np.float16) if function is causal else (f32,):
        pyrelay.jit(function, device=ON).code(*numbers([(2, 5, 8)] * 3, dtype))
    assert set(seen) == {masks}


@needs_compiler
@pytest.mark.parametrize(("function", "dtype"), [
    (causal, "float32"), (behind_others, "float16"),
    pytest.param(causal, "float16", marks=pytest.mark.slow),
    pytest.param(behind_others, "float32", marks=pytest.mark.slow),
])  # fmt: skip
def test_results_and_cotangents_are_the_cpus(function: Any, dtype: str) -> None:
    def wide(q: Any, k: Any, v: Any) -> Any:
        return function(q.astype(f32), k.astype(f32), v.astype(f32)).astype(q.dtype)

    on_device, on_cpu = (
        pyrelay.value_and_grad(loss_of(wide), argnums=(0, 1, 2), device=on) for on in (ON, "cpu")
    )
    bound = 2e-5 if dtype == "float32" else 4e-3
    for targets in (70, 150):
        args = numbers([(2, targets, 8), (2, 200, 8), (2, 200, 8)], dtype)
        found, wanted = on_device(*args), on_cpu(*args)
        assert float(found[0]) == pytest.approx(float(wanted[0]), rel=bound)
        for x, y in zip(found[1], wanted[1], strict=True):
            assert np.abs(x.astype(float) - y).max() <= bound * np.abs(y).max()


@needs_compiler
def test_what_is_left_out_is_not_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    """If nobody looked for values that are not finite, those left out would not be seen."""
    def wide(q: Any, k: Any, v: Any) -> Any:
        return dropped(q, k, v).astype(q.dtype)

    blind = cuda_causal._REACH.replace("return any;", "return false;")
    assert blind != cuda_causal._REACH
    monkeypatch.setattr(cuda_causal, "_REACH", blind)
    q, k, v = numbers([(1, 200, 8)] * 3, np.float16)
    v[0, 199] = np.nan
    found = pyrelay.jit(wide, device=ON)(q, k, v)
    assert np.isfinite(found[0, :128]).all()
    assert np.isnan(found[0, 192:]).all()
    k[0, 199] = np.nan  # beside weights of 0 of the rows before it
    (found,) = pyrelay.grad(loss_of(wide), argnums=(0,), device=ON)(q, k, np.ones_like(v))
    assert np.isfinite(found[0, :128]).all()


@needs_compiler
@pytest.mark.parametrize("value", [np.inf, pytest.param(np.nan, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "float16"])
def test_zero_times_what_is_not_finite_is_nan_as_in_python(value: float, dtype: str) -> None:
    """The last value is beside powers of 0 in the rows before it."""
    def wide(q: Any, k: Any, v: Any) -> Any:
        return dropped(q, k, v).astype(q.dtype)

    q, k, v = numbers([(1, 150, 8)] * 3, dtype)
    v[0, 140, 3] = value
    found = np.asarray(pyrelay.jit(wide, device=ON)(q, k, v), float)
    with np.errstate(all="ignore"):
        wanted = np.asarray(wide(q, k, v), float)
    assert np.isnan(wanted[0, 0, 3])
    # Powers of float16 are sums of two numbers, of which one may be 0 beside an infinity.
    assert (np.isfinite(found) == np.isfinite(wanted)).all()
    kept = np.isfinite(wanted)
    np.testing.assert_allclose(found[kept], wanted[kept], rtol=2e-3, atol=2e-3)
    q, k, v = numbers([(1, 150, 8)] * 3, dtype)
    k[0, 140, 3] = value
    with np.errstate(all="ignore"):
        found, wanted = (
            pyrelay.grad(loss_of(wide), argnums=(0,), device=on)(q, k, v)[0] for on in (ON, "cpu")
        )
    assert (np.isnan(found) == np.isnan(wanted)).all()
