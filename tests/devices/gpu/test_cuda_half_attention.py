"""Attention over 16-bit floats by tensor cores: odd sizes, layouts, masks, and how exact it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred
from tests.opt.test_half_attention import (
    all_turned,
    causal,
    heads,
    in_a_loop,
    rounded,
    rounded_once,
    softmax,
    wide,
)

ON = "cuda_emulator"
DIGITS = {"float16": 11, "bfloat16": 8}
SHAPES = (
    (2, 5, 4), (2, 7, 4), (2, 7, 6)), ((1, 70, 72), (1, 150, 72), (1, 150, 40)), (
    (1, 65, 8), (1, 130, 8), (1, 130, 136)), ((1, 5, 200), (1, 70, 200), (1, 70, 15)
)  # fmt: skip


def numbers(dtype: Any, shapes: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    return tuple((rng.normal(size=shape) * 0.7).astype(dtype) for shape in shapes)


def half(name: str) -> Any:
    if name == "bfloat16":
        return pytest.importorskip("ml_dtypes").bfloat16
    return np.float16


def error(found: Any, exact: Any) -> float:
    return float(np.abs(np.asarray(found, float) - exact).max() / np.abs(exact).max())


def of_doubles(function: Any, args: Any) -> Any:
    """What float64 gives for operands of 16 bits, without any rounding to those."""
    q, k, v = (np.asarray(a, float) for a in args)
    if function is causal:
        mask = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
        return softmax(np.where(mask, q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)) @ v
    return function(q, k, v) if function is not wide else (
        softmax(q @ k.swapaxes(-1, -2) * 0.5) @ v
    )


def bounded(function: Any, name: str, shapes: Any) -> None:
    """Not further from the exact result than one rounding of the scores that the program rounds,
    one of the powers and one of the result; float32 where it rounds nothing."""
    args = numbers(half(name), shapes)
    found, plain = pyrelay.jit(function, device=ON)(*args), function(*args)
    assert (found.dtype, found.shape) == (plain.dtype, plain.shape)
    exact = of_doubles(function, args)
    if found.dtype == np.float32 and function is not rounded_once:
        assert error(found, exact) < 4e-6
    else:
        assert error(found, exact) < max(2.0 ** (1 - DIGITS[name]), 1.5 * error(plain, exact))


@needs_compiler
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_results_are_as_exact_as_numpys_or_more(name: str) -> None:
    bounded(rounded if name == "float16" else wide, name, SHAPES[1])


@needs_compiler
@pytest.mark.parametrize(("dtype", "width"), [
    (np.float16, 70), (np.float32, 70), pytest.param(np.float16, 5, marks=pytest.mark.slow)
])
def test_heads_without_a_depth_give_the_mean_of_values(dtype: Any, width: int) -> None:
    q, k, v = numbers(dtype, ((2, 3, 0), (2, 70, 0), (2, 70, width)))
    found = pyrelay.jit(wide, device=ON)(q, k, v)
    mean = v.mean(axis=1, dtype=float, keepdims=True)
    assert error(found, np.broadcast_to(mean, (2, 3, width))) < 1e-6


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("function", [rounded, wide, rounded_once, causal, all_turned])
def test_every_way_to_write_it_over_odd_sizes(function: Any, name: str) -> None:
    for shapes in SHAPES:
        if function is all_turned:
            q, k, v = ((*lead, m, n) for *lead, n, m in shapes)
            args = numbers(half(name), (q, k, v))
            found = pyrelay.jit(function, device=ON)(*args)
            assert error(found, of_doubles(function, args)) < 2.0 ** (2 - DIGITS[name])
        else:
            bounded(function, name, shapes)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_settings_allow_powers_of_fewer_digits(name: str) -> None:
    args = numbers(half(name), SHAPES[1])
    exact = of_doubles(wide, args)
    compiled = pyrelay.jit(wide, device=ON)
    errors = []
    for precision in ("highest", "tf32", "bf16"):
        with config.override(matmul_precision=precision):
            errors.append(error(compiled(*args), exact))
    assert errors[0] < 2e-6 < errors[2] < 4e-3
    assert errors[1] < 4e-4


@needs_compiler
@pytest.mark.slow
def test_loops_shared_heads_and_large_scores() -> None:
    q, k, v = numbers(np.float16, ((2, 3, 33, 16), (3, 33, 16), (2, 1, 33, 16)))
    compiled = pyrelay.jit(in_a_loop, device=ON)
    assert error(compiled(q, k[0], v[0, 0]), in_a_loop(*(
        x.astype(float) for x in (q, k[0], v[0, 0])))) < 4e-3
    beside = numbers(np.float16, ((2, 33, 32), (2, 70, 32), (2, 70, 48)))
    found = pyrelay.jit(heads, device=ON)(*beside)
    assert error(found, heads(*(x.astype(float) for x in beside))) < 4e-3
    one = pyrelay.jit(rounded, device=ON)
    assert error(one(q * 30, k, v), of_doubles(rounded, (q * 30, k, v))) < 0.02


@needs_compiler
@pytest.mark.slow
def test_rows_without_a_score() -> None:
    def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
        s = np.where(mask, q @ k.swapaxes(-1, -2), np.float16(-np.inf))
        top = s.max(axis=-1, keepdims=True)
        e = np.exp(s - np.where(np.isfinite(top), top, np.float16(0)))
        total = e.sum(axis=-1, keepdims=True)
        return (e / np.where(total == 0, np.float16(1), total)) @ v

    q, k, v = numbers(np.float16, SHAPES[0])
    mask = np.random.default_rng(0).random((5, 7)) < 0.5
    mask[2] = False
    found = pyrelay.jit(masked, device=ON)(q, k, v, mask)
    np.testing.assert_allclose(found, masked(q, k, v, mask), rtol=4e-3, atol=2e-3)
    assert (found[:, 2] == 0).all()


def test_nothing_of_float32_is_made_of_the_operands() -> None:
    args = numbers(np.float16, SHAPES[0])
    made = plan_code(plan(lowered(inferred(rounded, args).module, "fuse", on=ON), TARGET))
    assert not made.texts
    (text,) = (forms[0].source for forms in made.with_forms())
    assert "pyrelay_mma" in text
    assert "Buffer<f16> y" in text
    assert text.count("Buffer<const u16>") > 2
