"""Convolutions over 16-bit floats by tensor cores: both layouts, all three products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config, nn
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.ir.types import f32
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"


def strided(x: Any, w: Any) -> Any:
    return nn.conv2d(x, w, stride=2, padding=1, groups=2)


def plain(x: Any, w: Any) -> Any:
    return nn.conv2d(x, w, padding=1)


def dilated_last(x: Any, w: Any) -> Any:
    return nn.conv2d(x, w, padding=(0, 2), dilation=2, channels_last=True)


def grouped_last(x: Any, w: Any) -> Any:
    return nn.conv2d(x, w, padding=1, stride=2, groups=2, channels_last=True)


def line(x: Any, w: Any) -> Any:
    return nn.conv1d(x, w, padding=2)


#: Elements one by one; eight places at once; eight lines at once; over more than a tile.
CASES = {
    "odd": (strided, (2, 4, 15, 10), (6, 2, 3, 3)),
    "packs": (plain, (2, 8, 7, 8), (16, 8, 3, 3)),
    "odd, last": (dilated_last, (2, 9, 8, 5), (3, 2, 5, 70)),
    "packs, last": (grouped_last, (1, 19, 18, 16), (3, 3, 8, 48)),
    "several tiles": (grouped_last, (1, 25, 24, 144), (2, 2, 72, 144)),
    "one axis": (line, (3, 8, 50), (5, 8, 5)),
}


def error(found: Any, exact: Any) -> float:
    return float(np.abs(np.asarray(found, float) - exact).max() / np.abs(exact).max())


def numbers(name: str, dtype: Any) -> tuple[Any, ...]:
    _, *shapes = CASES[name]
    rng = np.random.default_rng(5)
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


@needs_compiler
def test_a_product_of_images_as_they_lie() -> None:
    x, w = numbers("one axis", np.float16)
    found = pyrelay.jit(line, device=ON)(x, w)
    assert found.dtype == np.float16
    assert error(found, line(x.astype(float), w.astype(float))) < 1.05 * 2.0**-11


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_rounded_once(name: str) -> None:
    of = (np.float16, 11), (pytest.importorskip("ml_dtypes").bfloat16, 8)
    function = CASES[name][0]

    def loss(x: Any, w: Any, c: Any) -> Any:
        y = function(x, w)
        return (y.astype(np.float32) * c).sum(), y

    for dtype, digits in of:
        x, w = numbers(name, dtype)
        with config.override(interpret=True):
            exact = pyrelay.jit(function)(x.astype(float), w.astype(float))
            c = (exact / np.abs(exact).max()).astype(dtype).astype(np.float32)
            _, wanted = pyrelay.value_and_grad(loss, argnums=(0, 1), has_aux=True)(
                x.astype(float), w.astype(float), c
            )
        compiled = pyrelay.value_and_grad(loss, argnums=(0, 1), has_aux=True, device=ON)
        (_, y), made = compiled(x, w, c)
        for mine, theirs in zip((y, *made), (exact, *wanted), strict=True):
            assert mine.dtype == dtype
            assert error(mine, theirs) < 1.05 * 2.0**-digits


def test_images_and_weights_are_read_as_they_lie() -> None:
    x, w = numbers("packs", np.float16)
    for function, made in ((plain, "f16"), (wide, "f32")):
        module = lowered(inferred(function, (x, w)).module, "fuse", on=ON)
        (launched,) = (code := plan_code(plan(module, TARGET))).launches
        text = code.texts[launched.text].source
        assert "Buffer<const u16> a" in text
        assert f"Buffer<{made}> c" in text


def wide(x: Any, w: Any) -> Any:
    return nn.conv2d(x.astype(np.float32), w.astype(np.float32), padding=1)


def test_products_of_float32_are_no_others_than_before() -> None:
    text = TARGET.convolution(f32, "forward", False).source
    assert "pyrelay_mma_tf32" in text
    assert "Buffer<const f32> a" in text
