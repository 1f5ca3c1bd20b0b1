"""Attention in one launch: the same numbers, for every way to write it, mask, size and layout."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.special

import pyrelay
from pyrelay import nn
from pyrelay.devices.choices import DEFAULT
from pyrelay.devices.routines import attention
from pyrelay.ir.types import f32, f64
from tests.devices.running_kernels import needs_vectors, run

RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def launches(f: Any, *args: Any) -> int:
    """How many kernels over arrays are launched."""
    found = re.findall(r"^#\s+\d+\s+launch (.*)", f.code(*args), re.MULTILINE)
    return sum(not launch.endswith("over 1") for launch in found)


def softmax(s):
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def scaled(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(np.float32(q.shape[-1]))) @ v


def unscaled(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2)) @ v


def of_scipy(q, k, v):
    return scipy.special.softmax(q @ np.swapaxes(k, -1, -2) * 0.3, axis=-1) @ v


def without_kept_axes(q, k, v):
    s = q @ np.swapaxes(k, -1, -2)
    e = np.exp(s - s.max(axis=-1)[..., None])
    return (e / e.sum(axis=-1)[..., None]) @ v


def causal(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) * 0.25
    seen = np.arange(k.shape[-2]) <= np.arange(q.shape[-2])[:, None]
    return softmax(np.where(seen, s, -1e9)) @ v


def biased(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) * 0.25
    distance = np.arange(q.shape[-2])[:, None] - np.arange(k.shape[-2])
    return softmax(s - np.abs(distance).astype(np.float32) * 0.1) @ v


def capped(q, k, v):
    return softmax(np.tanh(q @ np.swapaxes(k, -1, -2) / 5) * 5) @ v


def of_the_library(q, k, v):
    return nn.scaled_dot_product_attention(q, k, v, causal=True)


WAYS = [
    scaled, unscaled, of_scipy, without_kept_axes, causal, biased, capped, of_the_library,
]  # fmt: skip
SIZES = [((7, 5), (9, 5), (9, 3)), ((2, 70, 8), (2, 600, 8), (2, 600, 20)),
         ((2, 1, 65, 16), (1, 3, 30, 16), (2, 3, 30, 1)), ((1, 4), (1, 4), (1, 4))]  # fmt: skip


@pytest.mark.parametrize("f", WAYS, ids=lambda f: f.__name__)
def test_every_way_to_write_attention_is_one_launch(f: Any) -> None:
    fast = pyrelay.jit(f)
    for shapes in SIZES:
        args = [normal(*shape) for shape in shapes]
        np.testing.assert_allclose(fast(*args), f(*args), rtol=2e-4, atol=2e-5)
        assert args[0].size == 4 or launches(fast, *args) == 1


def test_layouts_of_heads() -> None:
    def heads(x, wq, wk, wv):
        split = [np.swapaxes((x @ w).reshape(x.shape[0], 2, -1), 0, 1) for w in (wq, wk, wv)]
        return np.swapaxes(scaled(*split), 0, 1).reshape(x.shape[0], -1)

    def by_einsum(q, k, v):
        s = np.einsum("bqhd,bkhd->bhqk", q, k) / 4
        return np.einsum("bhqk,bkhd->bqhd", softmax(s), v)

    def turned(q, k, v):
        return softmax(q.T @ k) @ v.T

    x = normal(12, 8)
    for f, args in (
        (heads, (x, normal(8, 8), normal(8, 8), normal(8, 8))),
        (by_einsum, (normal(2, 9, 3, 4), normal(2, 11, 3, 4), normal(2, 11, 3, 5))),
        (turned, (normal(4, 9), normal(4, 11), normal(5, 11))),
    ):
        np.testing.assert_allclose(pyrelay.jit(f)(*args), f(*args), rtol=2e-4, atol=2e-5)
    assert launches(pyrelay.jit(turned), *args) == 1


def times(q, k, v, number):
    return softmax(number * (q @ np.swapaxes(k, -1, -2))) @ v


def divided(q, k, v, number):
    return softmax(q @ np.swapaxes(k, -1, -2) / number) @ v


@pytest.mark.parametrize("f", [times, divided])
def test_scores_that_are_scaled_by_a_number(f: Any) -> None:
    """Numbers by which q is scaled, and larger and smaller ones, by which it might overflow."""
    q, k, v = normal(70, 20), normal(90, 20), normal(90, 7)
    for number in (0.25, -0.5, 1.0, 3.0, -8.0):
        fast, factor = pyrelay.jit(f), np.float32(number)
        assert launches(fast, q, k, v, factor) == 1
        np.testing.assert_allclose(
            fast(q, k, v, factor), f(q, k, v, factor), rtol=2e-4, atol=2e-5
        )
    large = np.float32(3e38)  # times which q is infinite
    np.testing.assert_allclose(
        pyrelay.jit(times)(q, k * np.float32(1e-38), v, large),
        times(q, k * np.float32(1e-38), v, large), rtol=2e-3, atol=2e-4,
    )


def test_two_of_one_kernel_are_scaled_by_numbers_of_their_own() -> None:
    def twice(q, k, v, w, one, other):
        return times(times(q, k, v, one), k @ w, v @ w, other)

    q, k, v, w = normal(9, 8), normal(9, 8), normal(9, 8), normal(8, 8)
    args = (q, k, v, w, np.float32(0.5), np.float32(0.25))
    np.testing.assert_allclose(pyrelay.jit(twice)(*args), twice(*args), rtol=1e-4)


def test_masks_of_matrices_side_by_side_of_which_the_sizes_are_sums() -> None:
    def two_heads(x):
        q = np.stack([x[:-1], x[1:]])
        seen = np.arange(q.shape[1]) <= np.arange(q.shape[1])[:, None]
        return softmax(np.where(seen, q @ q.transpose(0, 2, 1), -np.inf)) @ q

    x = normal(70, 8)
    np.testing.assert_allclose(pyrelay.jit(two_heads)(x), two_heads(x), rtol=2e-4, atol=2e-5)
    pyrelay.check_grads(two_heads, (x[:5].astype(np.float64),), order=1, modes="rev")


def test_rows_without_a_finite_score_and_nan() -> None:
    def masked(q, k, v, mask):
        return softmax(np.where(mask, q @ k.T, -np.inf)) @ v

    def guarded(q, k, v, mask):
        return nn.scaled_dot_product_attention(q, k, v, mask)

    q, k, v = normal(5, 4), normal(700, 4), normal(700, 3)
    mask = RNG.random((5, 700)) > 0.5
    mask[1], mask[2, :600], q[3, 0], mask[4, 512:] = False, False, np.nan, False
    with np.errstate(all="ignore"):
        expected = masked(q, k, v, mask)
        np.testing.assert_allclose(pyrelay.jit(masked)(q, k, v, mask), expected, 2e-4, 2e-5)
        assert np.isnan(expected[1]).all()
        kept = guarded(q, k, v, mask)
        np.testing.assert_allclose(pyrelay.jit(guarded)(q, k, v, mask), kept, 2e-4, 2e-5)
        assert (kept[1] == 0).all()


def test_scores_that_somebody_reads_exist() -> None:
    def with_weights(q, k, v):
        p = softmax(q @ k.T)
        return p @ v, p

    def mixed(q, k, v):
        s = q @ k.T
        return softmax(s) @ v + s.mean()

    args = normal(6, 4), normal(7, 4), normal(7, 3)
    for f in (with_weights, mixed):
        fast = pyrelay.jit(f)
        results = (x if isinstance(x, tuple) else (x,) for x in (fast(*args), f(*args)))
        for got, wanted in zip(*results, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5)
        assert launches(fast, *args) > 1


def test_sums_of_rows_that_are_read_are_results_too() -> None:
    def with_sums(q, k, v):
        s = q @ np.swapaxes(k, -1, -2) * np.float32(0.2)
        top = np.max(s, axis=-1, keepdims=True)
        e = np.exp(s - top)
        total = np.sum(e, axis=-1, keepdims=True)
        return (e / total) @ v, top, total

    args = normal(2, 70, 16), normal(2, 600, 16), normal(2, 600, 5)
    for device in ("cpu", "cuda_emulator"):
        fast = pyrelay.jit(with_sums, device=device)
        for got, wanted in zip(fast(*args), with_sums(*args), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5)
    assert launches(pyrelay.jit(with_sums), *args) == 1


def test_what_is_not_a_softmax_of_rows_is_left_alone() -> None:
    def columns(q, k, v):
        s = q @ k.T
        e = np.exp(s - s.max(axis=0, keepdims=True))
        return (e / e.sum(axis=0, keepdims=True)) @ v

    def of_another(q, k, v):
        s = q @ k.T
        e = np.exp(s - (2 * s).max(axis=-1, keepdims=True))
        return (e / e.sum(axis=-1, keepdims=True)) @ v

    def summed_before(q, k, v):
        s = q @ k.T
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return (e / (e + 1).sum(axis=-1, keepdims=True)) @ v

    args = normal(6, 4), normal(6, 4), normal(6, 3)
    for f in (columns, of_another, summed_before):
        np.testing.assert_allclose(pyrelay.jit(f)(*args), f(*args), rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_derivatives() -> None:
    f = of_the_library
    args = tuple(normal(*s).astype(float) for s in ((2, 5, 4), (2, 6, 4), (2, 6, 3)))
    pyrelay.check_grads(lambda q, k, v: (f(q, k, v) ** 2).sum(), args, order=1, modes="rev")


def test_a_device_without_a_kernel_for_it_computes_scores_as_a_whole() -> None:
    args = normal(6, 4), normal(7, 4), normal(7, 3)
    for f in (scaled, causal):
        fast = pyrelay.jit(f, device="cuda_emulator")
        np.testing.assert_allclose(fast(*args), f(*args), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("bits", [pytest.param(128, marks=pytest.mark.slow), 256, 512])
@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_every_vector_width(dtype: Any, bits: int) -> None:
    needs_vectors(bits)
    source = attention.attention_kernel(dtype, bits)
    for batch, targets, sources, depth, width, way, factor, turned in [
        (2, 67, 1100, 5, 9, 0, 1, 1), (1, 1, 513, 17, 40, 1, -0.25, 1),
        (2, 193, 530, 20, 8, 2, 4, 1), (1, 140, 70, 20, 50, 0, 1, 0),
    ]:  # fmt: skip
        q, k, v = (
            RNG.standard_normal((batch, *shape)).astype(dtype.numpy)
            for shape in ((targets, depth), (sources, depth), (sources, width))
        )
        given = (k, v) if turned else [np.ascontiguousarray(x.swapaxes(1, 2)) for x in (k, v)]
        lines = (depth, width) if turned else (sources, sources)
        blocks = batch * -(-targets // DEFAULT.targets)
        made = []
        for first in (min(2, blocks), blocks):
            out = np.full((batch, targets, width), 7, dtype.numpy)
            made.append(out)
            run(source, q, *given, out, 0, 0, 0, 0, targets, sources, depth, width, 0, turned,
                1 - turned, depth, *lines, 0, 0, 0, way, dtype.numpy.type(factor), 1, batch,
                targets * depth, sources * depth, sources * width,
                ranges=[(0, first), *((n, n + 1) for n in range(first, blocks))])  # fmt: skip
        scale = 1 / factor if way == 2 else factor
        wanted = softmax(q.astype(float) @ k.astype(float).swapaxes(1, 2) * scale) @ v
        np.testing.assert_allclose(made[0], wanted, rtol=2e-4, atol=2e-5)
        np.testing.assert_array_equal(*made)
