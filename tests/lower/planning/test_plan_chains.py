"""Convolutions that one launch computes, and when it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config, nn, pipeline
from pyrelay.lower.planning.instructions import Launch


def chains(f: Any, *args: Any) -> int:
    """How many chains the plan of a program has."""
    spec = pyrelay.jit(f)._specialised(args, {})
    plan = pipeline.planned(spec, pipeline.lowered(spec.module, "fuse"))
    names = [
        plan.kernels[i.kernel].name
        for each in plan.functions for i in each.code if isinstance(i, Launch)
    ]  # fmt: skip
    return names.count("convolve_chain")


def arrays(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def bottleneck(x, w1, b1, w2, b2, w3, b3):
    y = np.clip(nn.conv(x, w1, b1), 0, 6)
    y = np.clip(nn.conv(y, w2, b2, padding=1, groups=y.shape[1]), 0, 6)
    return x + nn.conv(y, w3, b3)


def halved(x, w1, b1, w2, b2, w3, b3):
    y = nn.relu(nn.conv(x, w1, b1))
    return nn.conv(nn.conv(y, w2, b2, stride=2, padding=1, groups=w2.shape[0]), w3) * b3[0]


def separable(x, w1, b1, w2, b2, w3, b3):
    return nn.relu(nn.conv(nn.conv(x, w2, padding=1, groups=x.shape[1]), w3, b3))


def between_twice(x, w1, b1, w2, b2, w3, b3):
    y = nn.conv(x, w1, b1)
    z = nn.conv(y, w2, b2, padding=1, groups=y.shape[1])
    return nn.conv(z, w3, b3), y.sum()


def between_given_back(x, w1, b1, w2, b2, w3, b3):
    z = nn.conv(nn.conv(x, w1, b1), w2, b2, padding=1, groups=w2.shape[0])
    return nn.conv(z, w3, b3), z


def in_place(x, w1, b1, w2, b2, w3, b3):
    for _ in range(2):
        x[:] = bottleneck(x, w1, b1, w2, b2, w3, b3)
    return x


def into_rows(x, w1, b1, w2, b2, w3, b3):
    out = np.zeros((2, *x.shape), x.dtype)
    for k in range(2):
        out[k] = bottleneck(x * (k + 1), w1, b1, w2, b2, w3, b3)
    return out


def updated_between(x, w1, b1, w2, b2, w3, b3):
    y = nn.relu(nn.conv(x, w1, b1))
    x[0, 0] += 1.0
    y = nn.conv(y, w2, b2, padding=1, groups=y.shape[1])
    x *= 2.0
    return nn.conv(y, w3, b3) + x


def operands(entries, channels, between, extent, dtype=np.float32):
    return arrays(
        (entries, channels, *extent), (between, channels, 1, 1), (between,), (between, 1, 3, 3),
        (between,), (channels, between, 1, 1), (channels,), dtype=dtype,
    )  # fmt: skip


LARGE = operands(4, 6, 40, (41, 44))
SMALL = operands(1, 6, 40, (6, 7))


def same(f: Any, args: list[np.ndarray]) -> None:
    """What the compiled function gives, and leaves in its arguments, is what Python's does."""
    given, taken = [a.copy() for a in args], [a.copy() for a in args]
    wanted, found = f(*given), pyrelay.jit(f)(*taken)
    if not isinstance(wanted, tuple):
        wanted, found = (wanted,), (found,)
    for w, g in zip((*wanted, *given), (*found, *taken), strict=True):
        scale = max(1.0, float(np.abs(w).max()))
        np.testing.assert_allclose(g, w, atol=1e-4 * scale, rtol=0)


@pytest.mark.parametrize("f", [bottleneck, halved, separable])
def test_layers_are_a_chain_where_only_the_next_reads_them(f: Any) -> None:
    args = LARGE
    if f is separable:
        args = [*operands(4, 40, 40, (41, 44))[:5], *arrays((6, 40, 1, 1), (6,))]
    assert chains(f, *args) == 1
    same(f, args)


def test_one_program_serves_sizes_that_do_not_pay() -> None:
    """The launches of the layers are in the plan as well; one function, two calls."""
    for f in (bottleneck, halved):
        compiled = pyrelay.jit(f)
        for args in (LARGE, SMALL):
            np.testing.assert_allclose(compiled(*args), f(*args), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("f", "count"), [(between_twice, 1), (between_given_back, 0)])
def test_what_others_read_is_in_memory(f: Any, count: int) -> None:
    """The first result is read twice: the other two layers are a chain."""
    assert chains(f, *LARGE) == count
    same(f, SMALL)


@pytest.mark.parametrize("f", [in_place, into_rows, updated_between])
def test_the_image_is_read_before_it_is_overwritten(f: Any) -> None:
    """The result lies in the image's memory, or in that of another array; or the image changes."""
    same(f, LARGE)


def test_results_do_not_depend_on_how_many_threads_there_are() -> None:
    compiled = pyrelay.jit(bottleneck)
    with config.override(num_threads=3):
        several = compiled(*LARGE)
    with config.override(num_threads=1):
        alone = compiled(*LARGE)
    np.testing.assert_array_equal(several, alone)


@pytest.mark.slow
def test_gradients_have_what_lies_between() -> None:
    def loss(*args):
        return bottleneck(*args).sum()

    gradient = pyrelay.grad(loss, argnums=(0, 1, 3, 5))
    args = operands(1, 2, 4, (5, 6), np.float64)
    found = gradient(*args)
    for k, g in zip((0, 1, 3, 5), found, strict=True):
        place = tuple(n // 2 for n in g.shape)
        step = np.zeros_like(args[k])
        step[place] = 1e-6
        above, below = (
            loss(*(a + sign * step if i == k else a for i, a in enumerate(args)))
            for sign in (1, -1)
        )
        np.testing.assert_allclose(g[place], (above - below) / 2e-6, rtol=1e-4, atol=1e-6)
