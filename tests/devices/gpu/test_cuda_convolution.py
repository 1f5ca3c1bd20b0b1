"""Convolutions on a GPU: three products, both layouts, strides, groups, rounding of operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config, nn
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.gpu.test_graphs import Sized
from tests.devices.running_kernels import emulate, needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"
pytestmark = needs_compiler


def loss(x: Any, w: Any, u: Any, v: Any) -> Any:
    """Channels first with gaps between taps, then channels last; the result feeds its gradient."""
    y = nn.conv2d(x, w, stride=2, padding=1, groups=2)
    z = nn.conv2d(u, v, padding=(0, 2), dilation=2, channels_last=True)
    return (y * np.sin(y)).sum() + (z * np.cos(z)).sum()


def arguments(dtype: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(2)
    shapes = (2, 4, 15, 10), (6, 2, 3, 3), (2, 9, 8, 5), (3, 2, 5, 70)
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


@pytest.mark.slow
def test_values_and_gradients_are_those_of_the_interpreter() -> None:
    args = arguments(np.float64)
    made = pyrelay.value_and_grad(loss, argnums=(0, 1, 2, 3), device=ON)(*args)
    with config.override(interpret=True):
        wanted = pyrelay.value_and_grad(loss, argnums=(0, 1, 2, 3))(*args)
    np.testing.assert_allclose(made[0], wanted[0], rtol=1e-11)
    for mine, theirs in zip(made[1], wanted[1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10)


def tf32(x: Any) -> Any:
    """Rounded to 10 bits of mantissa, ties away from zero."""
    return ((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)


def bf16(x: Any) -> Any:
    """Rounded to 7 bits of mantissa, ties to even."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def convolved(x: Any, w: Any) -> Any:
    return nn.conv2d(x, w, padding=1)


def test_operands_of_float32_are_rounded_as_the_settings_say() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 5, 7, 9)).astype(np.float32)
    w = rng.normal(size=(70, 5, 3, 3)).astype(np.float32)
    function = pyrelay.jit(convolved, device=ON)
    exact = function(x, w)
    np.testing.assert_allclose(exact, convolved(x, w), rtol=1e-4, atol=1e-5)
    for name, rounded in (("tf32", tf32), ("bf16", bf16)):
        with config.override(matmul_precision=name):
            got = function(x, w)
        np.testing.assert_allclose(got, convolved(rounded(x), rounded(w)), rtol=1e-4, atol=1e-5)
        assert np.abs(got - exact).max() > 1e-4
    np.testing.assert_array_equal(function(x, w), exact)


@pytest.mark.parametrize("step", [1, 2])
def test_tensor_cores_have_their_elements_in_their_lanes(step: int) -> None:
    """One product of 16 by 8 elements, of operands that nothing rounds."""
    depth = 8 * step
    name = {1: "tf32", 2: "bf16"}[step]
    place = f"(e / {step} / 2 * {4 * step} + lane % 4 * {step} + e % {step})"
    text = f"""
#define BLOCK_THREADS 32
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const f32> a,
    Buffer<const f32> b, Buffer<f32> c
) {{
    const int lane = threadIdx.x, group = lane / 4;
    f32 left[{4 * step}], right[{2 * step}], sums[4] = {{}};
    for (int e = 0; e < {4 * step}; e++) {{
        left[e] = a[(group + e / {step} % 2 * 8) * {depth} + {place}];
    }}
    for (int e = 0; e < {2 * step}; e++) {{
        right[e] = b[(e / {step} * {4 * step} + lane % 4 * {step} + e % {step}) * 8 + group];
    }}
    pyrelay_mma_{name}(sums, left, right);
    for (int e = 0; e < 4; e++) {{
        c[(group + e / 2 * 8) * 8 + lane % 4 * 2 + e % 2] = sums[e];
    }}
}}
"""
    rng = np.random.default_rng(step)
    a = rng.integers(-9, 9, (16, depth)).astype(np.float32)
    b = rng.integers(-9, 9, (depth, 8)).astype(np.float32)
    c = np.zeros((16, 8), np.float32)
    emulate([text], (a, b, c), items=[1])
    np.testing.assert_array_equal(c, a @ b)


def strided(x: Any, w: Any) -> Any:
    y = nn.conv2d(x, w, stride=2, padding=1, groups=2)
    return (y * np.sin(y)).sum()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_long_sums_of_few_weights_are_cut_into_parts(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Sized()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    rng = np.random.default_rng(5)
    gradient = pyrelay.grad(strided, argnums=1, device=ON)
    tolerance = {"f8": 1e-12, "f4": 1e-5, "f2": 2e-3}[dtype]
    w = (rng.normal(size=(6, 2, 3, 3)) * 0.2).astype(dtype)
    seen = []
    for size in (7, 45):
        x = rng.normal(size=(3, 4, size, size)).astype(dtype)
        driver.items.clear()
        mine, theirs = gradient(x, w), pyrelay.grad(strided, argnums=1)(x, w)
        most = tolerance * np.abs(theirs).max()
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=most)
        np.testing.assert_array_equal(mine, gradient(x, w))
        seen.append(driver.items[: len(driver.items) // 2][-2:])
    # Two groups of a tile each; in three parts, whose 108 sums four blocks add up.
    assert seen[0][-1] == 2
    assert seen[1] == [6, 4]


def scaled_relu(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(nn.conv2d(x, w, b, padding=1), 0) * 2


def residual(x: Any, w: Any, b: Any) -> Any:
    return x[:, : w.shape[0]] + np.tanh(nn.conv2d(x, w, b, padding=1, groups=2))


def last(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(nn.conv2d(x, w, padding=1, stride=2, channels_last=True) + b, 0)


def itself(x: Any, w: Any, b: Any) -> Any:
    y = nn.conv2d(x, w)
    return y, np.abs(y + b[:, None, None])


def texts(function: Any, args: Any) -> list[str]:
    module = lowered(inferred(function, tuple(args)).module, "fuse", on=ON)
    return [text.source for text in plan_code(plan(module, TARGET)).texts]


FINISHED = {
    "channels first": (scaled_relu, (1, 3, 9, 8), (70, 3, 3, 3)),
    "groups and a residual": (residual, (2, 6, 5, 7), (4, 3, 3, 3)),
    "channels last": (last, (2, 9, 8, 6), (3, 3, 6, 10)),
    "the product is a result": (itself, (2, 3, 9, 8), (5, 3, 3, 3)),
}


def finished(name: str, dtype: str) -> tuple[Any, tuple[Any, ...]]:
    function, image, weights = FINISHED[name]
    outputs = weights[-1] if function is last else weights[0]
    rng = np.random.default_rng(6)
    return function, tuple(
        rng.normal(size=shape).astype(dtype) for shape in (image, weights, (outputs,))
    )


@pytest.mark.parametrize("name", FINISHED)
def test_what_follows_a_product_is_part_of_its_kernel(name: str) -> None:
    for dtype in ("f8", "f4", "f2"):
        function, args = finished(name, dtype)
        (text,) = texts(function, args)
        assert "finished(" in text
        # Nothing else goes to memory, nor do sums of 16-bit floats before they are rounded.
        assert ("c[offset" in text) == (function is itself and dtype != "f2")


@pytest.mark.slow
@pytest.mark.parametrize("name", FINISHED)
def test_what_is_finished_is_what_python_gives(name: str) -> None:
    for dtype, tolerance in (("f8", 1e-12), ("f4", 1e-4), ("f2", 4e-3)):
        function, args = finished(name, dtype)
        mine, theirs = pyrelay.jit(function, device=ON)(*args), pyrelay.jit(function)(*args)
        both = zip(*(y if isinstance(y, tuple) else (y,) for y in (mine, theirs)), strict=True)
        for found, wanted in both:
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=8 * tolerance)


def masked_loss(x: Any, w: Any, v: Any) -> Any:
    return (nn.conv2d(np.maximum(nn.conv2d(x, w), 0), v) ** 2).sum()


MASKED = [
    np.random.default_rng(8).normal(size=shape)
    for shape in ((2, 3, 7, 6), (4, 3, 3, 3), (2, 4, 3, 3))
]


@pytest.mark.slow
def test_derivatives_of_two_convolutions_are_those_of_the_cpu() -> None:
    gradient = pyrelay.grad(masked_loss, argnums=(0, 1, 2))
    made = pyrelay.grad(masked_loss, argnums=(0, 1, 2), device=ON)(*MASKED)
    for mine, theirs in zip(made, gradient(*MASKED), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


def test_a_cotangent_is_masked_in_the_kernel_that_makes_it() -> None:
    found = texts(pyrelay.grad(masked_loss, argnums=(0, 1, 2)), MASKED)
    assert sum("where(line" in text for text in found) == len(found)  # products of images alone


@pytest.mark.slow
def test_more_operands_than_a_kernel_takes_are_a_kernel_behind_it() -> None:
    def many(x: Any, w: Any, *terms: Any) -> Any:
        y = nn.conv2d(x, w)
        for term in terms:
            y = y * 0.5 + term
        return y

    shapes = (1, 2, 4, 4), (3, 2, 3, 3), *((1, 3, 2, 2) for _ in range(64))
    for dtype in ("f4", "f2"):
        args = [np.ones(shape, dtype) for shape in shapes]
        if dtype == "f4":  # with casts between them the ops are two groups, of fewer operands each
            assert ["finished(" in text for text in texts(many, args)] == [False] * 2
        np.testing.assert_array_equal(pyrelay.jit(many, device=ON)(*args), pyrelay.jit(many)(*args))
