"""What will be compiled for a program is told before it is planned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import nn, pipeline
from pyrelay.devices import cpu
from pyrelay.ir.types import f32
from pyrelay.lower.planning.target import FORWARD, ConvolutionSizes

TARGET = cpu.target()
PRODUCT = TARGET.matmul(f32, 0)
assert PRODUCT.ways is not None
IMAGES = TARGET.convolution(f32, FORWARD, False)
assert IMAGES.calls is not None
LINES = IMAGES.calls(
    ConvolutionSizes(1, 1, 3, 4, ((1, 1, 1, 1, 1, 0), (9, 3, 7, 1, 1, 0), (9, 3, 7, 1, 1, 0)))
)
WAYS = PRODUCT.ways((40, 64, 64), False, False)


def matrices(x: Any, w: Any) -> Any:
    return np.maximum(x @ w, 0.0) @ w


def images(x: Any, w: Any) -> Any:
    return nn.conv2d(x, w).sum()


def small(x: Any) -> Any:
    r = np.ones((3, 3), np.float32)
    return r @ np.full((3, 3), x[0])


@pytest.mark.parametrize(
    ("function", "shapes", "kernels"),
    [
        (matrices, [(40, 64), (64, 64)], [PRODUCT.source, *WAYS]),
        (images, [(1, 3, 9, 9), (4, 3, 3, 3)], [IMAGES.source, *LINES]),
        (small, [(5,)], []),
    ],
)  # fmt: skip
def test_kernels_of_the_library_are_begun_first(
    monkeypatch: pytest.MonkeyPatch, function: Any, shapes: list[tuple[int, ...]],
    kernels: list[str],
) -> None:  # fmt: skip
    begun: list[str] = []
    first: list[str] = []
    monkeypatch.setattr(pipeline.native, "begin", begun.append)
    real = pipeline.lowered

    def lowered(*args: Any, **options: Any) -> Any:
        first.extend(begun)
        return real(*args, **options)

    monkeypatch.setattr(pipeline, "lowered", lowered)
    args = [np.ones(shape, np.float32) for shape in shapes]
    np.testing.assert_allclose(pyrelay.jit(function)(*args), function(*args), rtol=1e-5)
    assert first == kernels
    assert set(first) <= set(begun[len(first) :])  # which the plan has, too
