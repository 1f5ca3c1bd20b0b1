"""Rows of scores: exponentials, their sums, slopes; NaN and infinities as softmax has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyrelay.devices.compiler.kernel_compiler import optimised_module
from pyrelay.devices.routines.attention import attention_kernel
from pyrelay.devices.routines.attention_gradient import attention_gradient_kernel
from pyrelay.ir.types import DTYPES
from tests.devices.running_kernels import run

LINE, LANES = 64, {"f32": 8, "f64": 4}
INF, NAN = np.inf, np.nan


def call(what: str, dtype: str, *words: Any) -> None:
    """Calls a part with these words."""
    name = f"{what}_rows_{dtype}x{LANES[dtype]}"
    text = (
        f"from pyrelay.devices.routines.attention_rows import {name}\n"
        "from pyrelay.devices.compiler.vocabulary import *\n\nBY_HAND = True\n\n\n"
        f"def kernel(block, begin, end):\n    words = local_i64({len(words)})\n"
        + "".join(
            f"    store_ordered_i64(words, {k}, param_i64(block, {k + 1}))\n"
            for k in range(len(words))
        )
        + f"    {name}(words)\n    return 0\n"
    )
    run(text, *words, ranges=[(0, 1)])


def rows(dtype: str, span: int) -> Any:
    """Scores: ordinary ones, with a NaN, with an infinity, none but -inf, far below 0."""
    made = np.random.default_rng(span).standard_normal((5, span)).astype(DTYPES[dtype].numpy)
    made[1, span // 2], made[2, span - 1], made[3], made[4] = NAN, INF, -INF, -1e4
    return made


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("span", [1, 17, 64])
def test_scores_become_exponentials_whose_sums_go_on(dtype: str, span: int) -> None:
    kind = DTYPES[dtype].numpy
    raw, width = rows(dtype, span), 11
    scores, result = np.full((5, LINE), 7, kind), np.ones((5, width), kind)
    largest, totals = np.array([-1, 0, 0, -INF, -1e4], kind), np.full(5, 2, kind)
    before = largest.copy()
    call("softened", dtype, raw, span, scores, LINE, 5, span, largest, totals, result, width, 1)
    top = np.maximum(np.where(np.isnan(raw), -INF, raw).max(1), before)
    np.testing.assert_array_equal(largest, top)
    shift = np.where(top == -INF, 0, top)
    with np.errstate(invalid="ignore"):
        powers, scale = np.exp(raw.T - shift).T, np.exp(before - shift)
    near = {"rtol": 1e-5 if dtype == "f32" else 1e-12}
    np.testing.assert_allclose(scores[:, :span], powers, **near)
    np.testing.assert_allclose(totals, powers.sum(1) + 2 * scale, **near)
    np.testing.assert_allclose(result, np.ones((5, width)) * scale[:, None], **near)


@pytest.mark.parametrize(("dtype", "below"), [("f32", -88.5), ("f64", -709.5)])
def test_weights_below_the_normal_range_are_zeros(dtype: str, below: float) -> None:
    """Such numbers take a hundred cycles each, and are nothing beside the row's greatest, 1."""
    kind = DTYPES[dtype].numpy
    raw, scores = np.array([[0.0, below, below / 2, -INF]], kind), np.zeros((1, LINE), kind)
    numbers = [np.array([-INF], kind), np.zeros(1, kind), np.ones((1, 1), kind)]
    call("softened", dtype, raw, 4, scores, LINE, 1, 4, *numbers, 1, 0)
    assert np.exp(raw[0, 1]) > 0
    np.testing.assert_allclose(scores[0, :4], [1, 0, np.exp(raw[0, 2]), 0], rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("guarded", [0, 1])
def test_slopes_are_those_of_probabilities(dtype: str, guarded: int) -> None:
    kind, span = DTYPES[dtype].numpy, 19
    raw = rows(dtype, span)
    tops, sums = np.array([2, 0, INF, -INF, -1e4], kind), np.array([3, 1, NAN, 0, span], kind)
    means = np.arange(5).astype(kind)
    scores, slopes = np.zeros((5, LINE), kind), np.zeros((5, LINE), kind)
    slopes[:, :span] = given = np.arange(span).astype(kind)
    call(
        "slopes", dtype, raw, span, scores, slopes, LINE, 5, span, tops, sums, means, guarded
    )
    with np.errstate(invalid="ignore"):
        powers = np.exp(raw.T - np.where(tops == -INF, 0, tops))
        found = (powers / np.where((sums == 0) & (guarded == 1), 1, sums)).T
    slope = given - means[:, None]
    near = {"rtol": 1e-5 if dtype == "f32" else 1e-12}
    np.testing.assert_allclose(scores[:, :span], found, **near)
    np.testing.assert_allclose(slopes[:, :span], np.where(slope == 0, 0, slope * found), **near)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_rows_are_scaled_by_a_number_each_or_by_one(dtype: str) -> None:
    kind = DTYPES[dtype].numpy
    x, numbers = np.arange(51).reshape(3, 17).astype(kind), np.array([2, -3, 5], kind)
    for apart in (0, 1):
        y = np.full((3, 20), 7, kind)
        call("scaled", dtype, x, 17, y, 20, 3, 17, numbers, apart)
        factor = numbers[:, None] if apart else numbers[0]
        np.testing.assert_array_equal(y[:, :17], x * factor)
        assert (y[:, 17:] == 7).all()


def test_kernels_of_attention_are_short_and_only_tidied() -> None:
    """What takes time in them are parts: LLVM took 0.5 s of each first call for both."""
    for made, most in ((attention_kernel, 650), (attention_gradient_kernel, 950)):
        text = made(DTYPES["f32"])
        assert "\nBY_HAND = True\n" in text
        code = str(optimised_module(text, "attention"))
        assert sum(line.startswith("  ") for line in code.splitlines()) < most
