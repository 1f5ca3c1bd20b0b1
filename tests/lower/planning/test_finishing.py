"""Products of matrices with what follows them: one launch, the same numbers, any layout."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import nn
from pyrelay.devices.compiler.native import kernel_address
from pyrelay.devices.routines.matmul import matmul_kernel, units
from pyrelay.ir.types import f32, f64
from tests.devices.running_kernels import needs_vectors, run

RNG = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def launches(f: Any, *args: Any) -> int:
    return len(re.findall(r"^#\s+\d+\s+launch ", f.code(*args), re.MULTILINE))


def dense(x, w, b):
    return np.tanh(x @ w + b)


def relu_of_sum(x, w, b):
    return np.maximum(x @ w + b, 0)


def gelu(x, w, b):
    y = x @ w + b
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))


def sigmoid(x, w, b):
    return 1 / (1 + np.exp(-(x @ w + b)))


def scaled(x, w, b):
    return (x @ w) * 0.125


def residual(x, w, b):
    return x[:, : w.shape[1]] + np.maximum(x @ w + b, 0)


def masked(x, w, b):
    return np.where(b > 0, x @ w, -1)


def causal(x, w, b):
    rows, columns = np.arange(x.shape[0]), np.arange(w.shape[1])
    return np.where(rows[:, None] >= columns, x @ w, -np.inf)


def both(x, w, b):
    y = x @ w
    return y, np.abs(y + b)


def three(x, w, b):
    y = np.exp(-np.square(x @ w))
    return y, y + b, y > 0.5


def wider(x, w, b):
    return (x @ w).astype(np.float64) * 2


def of_turned(x, w, b):
    return np.sqrt(np.abs(w.T @ x.T)) + 1


ONE_LAUNCH = [
    dense, relu_of_sum, gelu, sigmoid, scaled, residual, masked, causal, both, three, wider,
    of_turned,
]  # fmt: skip
SIZES = [(1, 7, 5), (3, 300, 70), (33, 40, 600), (300, 64, 16), (130, 300, 100), (2, 0, 3)]


@pytest.mark.parametrize("f", ONE_LAUNCH, ids=lambda f: f.__name__)
def test_what_follows_a_product_element_by_element_is_part_of_its_launch(f: Any) -> None:
    fast = pyrelay.jit(f)
    for m, k, n in SIZES:
        if f is residual and k < n:
            continue
        args = normal(m, k), normal(k, n), normal(n)
        expected, got = f(*args), fast(*args)
        together = zip(*(x if isinstance(x, tuple) else (x,) for x in (expected, got)), strict=True)
        for wanted, found in together:
            assert wanted.dtype == found.dtype
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)
        assert launches(fast, *args) == 1


@pytest.mark.parametrize(
    ("f", "args", "most"),
    [
        (lambda h, w, b: np.tanh(h @ w + b), (normal(9), normal(9, 40), normal(40)), 1),
        (lambda h, w, b: np.tanh(w @ h + b), (normal(9), normal(40, 9), normal(40)), 1),
        (lambda h, w, b: np.tanh(h @ w + b), (normal(3, 5, 9), normal(9, 40), normal(40)), 1),
        (lambda h, w, b: np.tanh(h @ w + b), (normal(3, 5, 9), normal(3, 9, 4), normal(5, 1)), 1),
        (lambda h, w, b: (h.reshape(-1, 9) @ w).reshape(3, 5, 4) + b,
         (normal(3, 5, 9), normal(9, 4), normal(3, 1, 4)), 1),
        (lambda x, w, u: np.tanh(x @ w + x @ u), (normal(5, 9), normal(9, 4), normal(9, 4)), 2),
        (lambda x, w, u: np.abs(x @ w) @ u - 1, (normal(5, 9), normal(9, 4), normal(4, 3)), 2),
        (lambda x, w, u: np.tanh(x @ w)[:, :2] * u, (normal(5, 9), normal(9, 4), normal(2)), 2),
        (lambda x, w, u: (x @ w) + (x @ w).T, (normal(5, 9), normal(9, 5), normal(2)), 2),
        (lambda x, w, u: (x @ w) * (x @ w).sum(), (normal(5, 9), normal(9, 5), normal(2)), 3),
        (lambda x, w, u: (x @ w) + u[0] @ u, (normal(5, 9), normal(9, 5), normal(5, 5)), 3),
    ],
)  # fmt: skip
def test_products_of_vectors_batches_and_views(f: Any, args: Any, most: int) -> None:
    fast = pyrelay.jit(f)
    np.testing.assert_allclose(fast(*args), f(*args), rtol=1e-4, atol=1e-5)
    assert launches(fast, *args) <= most


def test_an_operand_that_dies_is_not_overwritten_before_the_product_has_read_it() -> None:
    @pyrelay.jit
    def twice(x, w):
        y = np.exp(x)
        z = y + np.tanh(y @ w)
        return z - np.cos(z @ w)

    x, w = normal(70, 70) / 9, normal(70, 70) / 9
    y = np.exp(x)
    z = y + np.tanh(y @ w)
    np.testing.assert_allclose(twice(x, w), z - np.cos(z @ w), rtol=1e-3, atol=1e-3)


def test_more_operands_than_a_block_holds_are_a_kernel_of_their_own() -> None:
    def many(x, w, *terms):
        y = x @ w
        for term in terms:
            y = y * 0.5 + term
        return y

    args = normal(4, 3), normal(3, 5), *(normal(4, 5) for _ in range(60))
    fast = pyrelay.jit(many)
    np.testing.assert_allclose(fast(*args), many(*args), rtol=1e-5, atol=1e-5)
    assert launches(fast, *args) == 2


def test_layers_whose_sizes_are_divisions_of_each_other_share_what_finishes_them() -> None:
    def layer(x, w, b):
        return np.maximum(nn.conv2d(x, w, stride=2, padding=1) + b[:, None, None], 0)

    def halved(x, w, b):
        return layer(layer(layer(x, w, b), w, b), w, b)

    fast = pyrelay.jit(halved)
    for shape in [(2, 4, 33, 24), (1, 4, 9, 40)]:
        args = normal(*shape), normal(4, 4, 3, 3), normal(4)
        np.testing.assert_allclose(fast(*args), halved(*args), rtol=1e-4, atol=1e-4)
    (finishing,) = set(re.findall(r"def (finish_\w+)\(", fast.code(*args)))
    text = fast.code(*args).partition(f"def {finishing}(")[2].partition("return")[0]
    assert "//" not in text
    assert "floor_divide" not in text


@pytest.mark.parametrize("device", ["cpu", "cuda_emulator"])
def test_gradients_of_layers_with_activations(device: str) -> None:
    def loss(w, v, x):
        hidden = np.maximum(x @ w, 0)
        return np.mean(np.square(np.tanh(hidden @ v) - 0.5))

    w, v, x = (normal(*shape).astype(float) for shape in ((4, 6), (6, 3), (5, 4)))
    found = pyrelay.jit(pyrelay.grad(loss, argnums=(0, 1)), device=device)(w, v, x)
    for number, array in enumerate((w, v)):
        step = 1e-6 * np.cos(np.arange(array.size)).reshape(array.shape)
        after = [a + step if k == number else a for k, a in enumerate((w, v))]
        before = [a - step if k == number else a for k, a in enumerate((w, v))]
        wanted = (loss(*after, x) - loss(*before, x)) / 2
        np.testing.assert_allclose((found[number] * step).sum(), wanted, rtol=1e-5)


_FINISH = """\
from pyrelay.devices.compiler.vocabulary import *


def kernel(block, begin, end):
    c, o = param_i64(block, 1), param_i64(block, 5)
    first, stop, line = param_i64(block, 2), param_i64(block, 3), param_i64(block, 4)
    width = param_i64(block, 6)
    for i in range(begin, end):
        for j in range(first, stop):
            store_{t}(o, i * width + j, load_{t}(o, i * width + j) + load_{t}(c, i * line + j))
    return 0
"""


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
@pytest.mark.parametrize("turned", list(itertools.product([0, 1], repeat=2)))
def test_every_element_is_finished_once_after_its_sum_is_complete(
    dtype: Any, bits: int, turned: tuple[int, int]
) -> None:
    needs_vectors(bits)
    finish = kernel_address(_FINISH.format(t=dtype.name))
    source, rng = matmul_kernel(dtype, bits), np.random.default_rng(0)
    for batch, m, n, k in [
        (1, 1, 40, 600), (2, 5, 1, 9), (3, 8, 8, 8), (2, 40, 100, 300), (1, 600, 65, 9),
        (1, 257, 550, 3), (1, 20, 70, 0), (1, 1, 257, 31), (2, 300, 20, 7),
    ]:  # fmt: skip
        a, b = rng.standard_normal((batch, m, k)), rng.standard_normal((batch, k, n))
        left = np.ascontiguousarray(a.swapaxes(1, 2) if turned[0] else a).astype(dtype.numpy)
        right = np.ascontiguousarray(b.swapaxes(1, 2) if turned[1] else b).astype(dtype.numpy)
        c, out = np.full((2, batch, m, n), 0.5, dtype.numpy)
        total = units(m, n, batch)
        cuts = itertools.pairwise(total * piece // 3 for piece in range(4))
        lines = left.shape[-1], right.shape[-1], n
        run(source, left, right, c, m, n, k, *turned, 0, *lines, 1, finish, 2,
            batch, m * k, k * n, out, n, ranges=list(cuts))  # fmt: skip
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(out, c + dtype.numpy.type(0.5))


def conv_bias_relu(x, w, b):
    return nn.relu(nn.conv(x, w, b, padding=1))


def conv_norm_silu(x, w, b):
    y = nn.conv(x, w, stride=2)
    return nn.silu(y * b[:, None, None] + 0.5)


def conv_residual(x, w, b):
    y = nn.conv(x, w, b, padding="same")
    return np.maximum(y + x[:, :1], 0)


def conv_clipped(x, w, b):
    return np.clip(nn.conv(x, w, b), 0, 6), b + 1


def conv_of_channels(x, w, b):
    return np.tanh(nn.conv(x, w[:, :1], b[: w.shape[0]], padding=1, groups=w.shape[0]))


CONVOLUTIONS: list[tuple[Any, list[tuple[tuple[int, ...], tuple[int, ...]]]]] = [
    (conv_bias_relu, [((2, 3, 9, 8), (5, 3, 3, 3)), ((1, 7, 1, 1), (300, 7, 3, 3)),
                      ((1, 4, 40, 50), (9, 4, 3, 3))]),
    (conv_norm_silu, [((2, 3, 9, 8), (5, 3, 2, 3)), ((3, 8, 17, 15), (70, 8, 3, 3))]),
    (conv_residual, [((2, 3, 9, 8), (5, 3, 3, 3)), ((2, 64, 11), (70, 64, 3))]),
    (conv_clipped, [((2, 3, 9, 8), (5, 3, 2, 2)), ((1, 2, 4, 5, 6), (3, 2, 2, 1, 3))]),
    (conv_of_channels, [((2, 5, 9, 8), (5, 1, 3, 3)), ((1, 3, 70, 5), (3, 1, 3, 3))]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "shapes"), CONVOLUTIONS, ids=lambda f: getattr(f, "__name__", ""))
def test_what_follows_a_convolution_element_by_element_is_part_of_its_launch(
    f: Any, shapes: Any
) -> None:
    fast = pyrelay.jit(f)
    for image, weights in shapes:
        x, w, b = normal(*image), normal(*weights), normal(weights[0])
        if f is conv_norm_silu or f is conv_residual:
            x = x.astype(float)
            w, b = w.astype(float), b.astype(float)
        expected, got = f(x, w, b), fast(x, w, b)
        together = zip(*(y if isinstance(y, tuple) else (y,) for y in (expected, got)), strict=True)
        for wanted, found in together:
            assert wanted.dtype == found.dtype
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)
        assert launches(fast, x, w, b) == (2 if f is conv_clipped else 1)


@pytest.mark.slow
def test_gradients_of_convolutions_with_activations() -> None:
    def loss(w, b, x):
        return np.mean(np.square(np.tanh(nn.conv(x, w, b, stride=2, padding=1))))

    w, b, x = (normal(*shape).astype(float) for shape in ((4, 3, 3, 3), (4,), (2, 3, 8, 7)))
    d_w, d_b, d_x = pyrelay.jit(pyrelay.grad(loss, argnums=(0, 1, 2)))(w, b, x)
    step = 1e-6 * np.cos(np.arange(w.size)).reshape(w.shape)
    wanted = (loss(w + step, b + 1e-6, x + 1e-6) - loss(w - step, b - 1e-6, x - 1e-6)) / 2
    found = (d_w * step).sum() + (d_b.sum() + d_x.sum()) * 1e-6
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
