"""The derivative of attention as one group: right for every way to write it, without the scores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import pyrelay
from pyrelay import nn
from pyrelay.devices.choices import DEFAULT
from pyrelay.devices.routines import attention_gradient
from pyrelay.ir.types import f32, f64
from pyrelay.opt import attention, reordering
from pyrelay.opt import attention_gradient as gradients
from tests.devices.running_kernels import needs_vectors, run

RNG = np.random.default_rng(4)


def normal(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def softmax(s):
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def scaled(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])) @ v


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
    return softmax(np.where(seen, s, -np.inf)) @ v


def masked_by_a_sum(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) * 0.25
    return softmax(s + (1 - np.tri(q.shape[-2], k.shape[-2])) * -1e9) @ v


def biased(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) * 0.25
    distance = np.arange(q.shape[-2])[:, None] - np.arange(k.shape[-2])
    return softmax(s - np.abs(distance) * 0.1) @ v


def of_the_library(q, k, v):
    return nn.scaled_dot_product_attention(q, k, v, causal=True)


def by_einsum(q, k, v):
    s = np.einsum("...qd,...kd->...qk", q, k) / 4
    return np.einsum("...qk,...kd->...qd", softmax(s), v)


def all_turned(q, k, v):
    q, k, v = (np.ascontiguousarray(np.swapaxes(x, -1, -2)) for x in (q, k, v))
    return softmax(np.swapaxes(q, -1, -2) @ k) @ np.swapaxes(v, -1, -2)


WAYS = [
    scaled, unscaled, of_scipy, without_kept_axes, causal, masked_by_a_sum, biased, of_the_library,
    by_einsum, all_turned,
]  # fmt: skip
SIZES = [((7, 5), (9, 5), (9, 3)), ((5, 70, 8), (5, 300, 8), (5, 300, 20)),
         ((2, 1, 65, 16), (1, 3, 30, 16), (2, 3, 30, 1))]  # fmt: skip


def loss_of(f: Any) -> Any:
    def loss(q, k, v):
        y = f(q, k, v)
        return np.sum(y * np.cos(y * 3))

    return loss


def slope(loss: Any, args: list[np.ndarray], steps: list[np.ndarray]) -> float:
    """The derivative along a direction, by a difference."""
    h = 1e-6
    ahead, behind = (
        loss(*(x + sign * h * d for x, d in zip(args, steps, strict=True))) for sign in (1, -1)
    )
    return float((ahead - behind) / (2 * h))


@pytest.mark.parametrize(
    "most", [attention._MOST_KEPT, pytest.param(3000, marks=pytest.mark.slow)],
    ids=["kept", "made again"],
)  # fmt: skip
@pytest.mark.parametrize(
    "f", [pytest.param(f, marks=[pytest.mark.slow] if f is not causal else [])
          for f in WAYS], ids=lambda f: f.__name__,
)  # fmt: skip
def test_every_way_to_write_attention_has_a_derivative_of_one_launch(
    f: Any, most: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(attention, "_MOST_KEPT", most)
    loss = loss_of(f)
    fast = pyrelay.jit(pyrelay.grad(loss, argnums=(0, 1, 2)))
    for shapes in SIZES[: 2 if f is by_einsum else 3]:
        args = [normal(*shape) for shape in shapes]
        steps = [normal(*shape) for shape in shapes]
        found = fast(*args)
        along = sum(np.sum(g * d) for g, d in zip(found, steps, strict=True))
        assert along == pytest.approx(slope(loss, args, steps), rel=2e-6)
        assert fast.code(*args).count("launch attention_gradient_kernel") == 1
        assert "launch attention_kernel" in fast.code(*args)


def most_resident() -> int:
    """Bytes that were resident at most since `/proc/self/clear_refs` was written to."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) << 10


def most_held(run: Any) -> int:
    """How much more memory than before is resident at some time during a call."""
    Path("/proc/self/clear_refs").write_text("5")
    before = most_resident()
    run()
    return most_resident() - before


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="no peaks to read")
def test_memory_is_that_of_the_operands_and_results() -> None:
    gradient = pyrelay.jit(pyrelay.grad(loss_of(causal), argnums=(0, 1, 2)))
    x = normal(2400, 8)
    gradient(x[:40], x[:40], x[:40])
    scores = len(x) * len(x) * x.dtype.itemsize
    assert scores > 2 * attention._MOST_KEPT
    assert most_held(lambda: gradient(x, x, x)) < scores / 3


@pytest.mark.slow
def test_one_cotangent_alone() -> None:
    args = [normal(5, 6, 4), normal(5, 7, 4), normal(5, 7, 3)]
    every = pyrelay.grad(loss_of(causal), argnums=(0, 1, 2))(*args)
    for k in range(3):
        fast = pyrelay.jit(pyrelay.grad(loss_of(causal), argnums=k))
        np.testing.assert_allclose(fast(*args), every[k], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_scores_that_somebody_needs_are_kept_as_before() -> None:
    def with_weights(q, k, v):
        p = softmax(q @ k.T)
        return np.sum((p @ v) ** 2) + np.sum(p * p)

    def of_the_bias(q, k, v, b):
        return np.sum((softmax(q @ k.T + b) @ v) ** 2)

    def capped(q, k, v):
        return np.sum((softmax(np.tanh(q @ k.T / 5) * 5) @ v) ** 2)

    args, b = [normal(6, 4), normal(7, 4), normal(7, 3)], normal(6, 7)
    for f, given in ((with_weights, args), (capped, args), (of_the_bias, [*args, b])):
        fast = pyrelay.jit(pyrelay.grad(f, argnums=tuple(range(len(given)))))
        steps = [normal(*x.shape) for x in given]
        along = sum(np.sum(g * d) for g, d in zip(fast(*given), steps, strict=True))
        assert along == pytest.approx(slope(f, given, steps), rel=1e-6)
        assert "launch attention_gradient_kernel" not in fast.code(*given)


def test_rows_without_a_finite_score() -> None:
    mask = RNG.random((5, 9)) > 0.5
    mask[1] = False

    def guarded(q, k, v):
        return np.sum(nn.scaled_dot_product_attention(q, k, v, mask) ** 2)

    args = [normal(5, 4), normal(9, 4), normal(9, 3)]
    found = pyrelay.jit(pyrelay.grad(guarded, argnums=(0, 1, 2)))(*args)
    steps = [normal(*x.shape) for x in args]
    along = sum(np.sum(g * d) for g, d in zip(found, steps, strict=True))
    assert along == pytest.approx(slope(guarded, args, steps), rel=1e-6)
    assert (found[0][1] == 0).all()


def test_no_rows_or_no_columns() -> None:
    fast = pyrelay.jit(pyrelay.grad(lambda q, k, v: np.sum(unscaled(q, k, v)), argnums=(0, 1, 2)))
    args = normal(3, 5, 4), normal(3, 6, 4), normal(3, 6, 2)
    fast(*args)
    found = fast(args[0][:, :0], *args[1:])
    assert [x.shape for x in found] == [(3, 0, 4), (3, 6, 4), (3, 6, 2)]
    assert all((x == 0).all() for x in found)


def test_rows_of_the_result_that_may_raise() -> None:
    def checked(x):
        total = 0.0
        for row in softmax(x @ x.T) @ x:
            if row[0] > 1e9:
                raise ValueError(f"too large: {row[0]}")
            total += np.sum(row * row)
        return total

    pyrelay.check_grads(checked, (normal(5, 4),), order=1, modes="rev")


@pytest.mark.parametrize("shown", [False, True])
def test_derivatives_of_many_are_put_in_order_at_once(shown: bool, monkeypatch: Any) -> None:
    """But for one whose scores the program gives, which is none."""

    def loss(x):
        s = x @ x.T
        y = x + softmax(s) @ x
        z = y + causal(y, y, y)
        return np.sum(z * np.sin(z)), (s * 2 if shown else y)

    calls = []
    ordered = reordering.ordered
    monkeypatch.setattr(
        gradients, "ordered", lambda body, lets: calls.append(lets) or ordered(body, lets)
    )
    x, step = normal(6, 4), normal(6, 4)
    fast = pyrelay.jit(pyrelay.grad(loss, has_aux=True))
    found, aux = fast(x)
    assert len(calls) == (3 if shown else 1)
    np.testing.assert_allclose(aux, loss(x)[1], rtol=1e-12)
    wanted = (loss(x + 1e-6 * step)[0] - loss(x - 1e-6 * step)[0]) / 2e-6
    assert np.sum(found * step) == pytest.approx(wanted, rel=1e-6)
    assert fast.code(x).count("launch attention_gradient_kernel") == (1 if shown else 2)


@pytest.mark.slow
def test_layers_in_a_list_in_a_loop() -> None:
    def net(layers, x):
        for w in layers:
            q, k, v = (np.swapaxes((x @ m).reshape(len(x), 2, -1), 0, 1) for m in w)
            x = x + np.swapaxes(causal(q, k, v), 0, 1).reshape(x.shape)
        return np.sum(x * np.cos(x))

    layers, x = [[normal(8, 8) * 0.3 for _ in range(3)] for _ in range(2)], normal(6, 8)
    fast = pyrelay.jit(pyrelay.grad(net, argnums=(0, 1)))
    of_layers, of_x = fast(layers, x)
    step = [[normal(8, 8) for _ in range(3)] for _ in range(2)]
    moved = [
        [[m + s * 1e-6 * d for m, d in zip(a, b, strict=True)]
         for a, b in zip(layers, step, strict=True)] for s in (1, -1)
    ]  # fmt: skip
    wanted = (net(moved[0], x) - net(moved[1], x)) / 2e-6
    along = sum(
        np.sum(g * d) for a, b in zip(of_layers, step, strict=True)
        for g, d in zip(a, b, strict=True)
    )
    assert along == pytest.approx(wanted, rel=1e-6)
    assert of_x.shape == x.shape
    assert fast.code(layers, x).count("launch attention_gradient_kernel") == 2


@pytest.mark.slow
@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_every_vector_width(dtype: Any, bits: int) -> None:
    needs_vectors(bits)
    source = attention_gradient.attention_gradient_kernel(dtype, bits, DEFAULT)
    batch, targets, sources, depth, width = 2, 140, 270, 5, 9
    q, k, v, g = (
        normal(batch, *shape, dtype=dtype.numpy)
        for shape in ((targets, depth), (sources, depth), (sources, width), (targets, width))
    )
    s = (q.astype(float) @ k.swapaxes(1, 2)).astype(dtype.numpy)
    top = s.max(-1)
    total = np.exp(s - top[..., None]).sum(-1)
    p = np.exp(s - top[..., None]) / total[..., None]
    slopes = g @ v.swapaxes(1, 2)
    mean = (slopes * p).sum(-1)
    d = p * (slopes - mean[..., None])
    for whole in (0, 1):
        for kept in (np.zeros(0, dtype.numpy), s):
            outs = [np.full(x.shape, 7, dtype.numpy) for x in (q, k, v)]
            items = 1 if whole else -(-targets // 128) + -(-sources // 128)
            run(source, q, k, v, g, top, total, mean, *outs, kept, batch * targets * (kept is s),
                targets, sources, depth, width, 0, 1, 0, depth, depth, width, 0, 0, 0, 0, 0, whole,
                1, batch, targets * depth, sources * depth, sources * width,
                ranges=[(n, n + 1) for n in range(batch * items)])  # fmt: skip
            wanted = d @ k, d.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ g
            for x, y in zip(outs, wanted, strict=True):
                np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-4)
