"""Sums by taps, and of taps, over planes of all sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.devices.running_kernels import run

_SOURCE = """\
from pyrelay.devices.routines.tap_sums import {part}
from pyrelay.devices.compiler.vocabulary import *


def kernel(block, begin, end):
    {part}(
        {words})
    return 0
"""


def called(
    part: str, target: np.ndarray, source: np.ndarray, weights: np.ndarray, apart: int,
    step: tuple[int, int], before: tuple[int, int],
) -> None:  # fmt: skip
    words = ", ".join(f"param_i64(block, {k + 1})" for k in range(14))
    first = weights if apart > 0 else weights.reshape(-1)[-1:]
    run(
        _SOURCE.format(part=part, words=words), target, *target.shape, source, *source.shape, first,
        apart, *weights.shape, *step, *before, ranges=[(0, 1)],
    )  # fmt: skip


def pairs(
    target: tuple[int, ...], source: tuple[int, ...], taps: tuple[int, ...], step: tuple[int, int],
    before: tuple[int, int],
) -> list[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]:
    """What each tap sees from each place: tap, place, what it sees."""
    found = []
    for (i, j), (k, m) in itertools.product(np.ndindex(*target), np.ndindex(*taps)):
        row, column = i + k * step[0] - before[0], j + m * step[1] - before[1]
        if 0 <= row < source[0] and 0 <= column < source[1]:
            found.append(((k, m), (i, j), (row, column)))
    return found


@pytest.mark.parametrize("apart", [1, -1])
@pytest.mark.parametrize("form", ["f32x8", "f64x4", "f32x16"])
@pytest.mark.parametrize(("rows", "columns", "taps", "step", "before", "source"), [
    (7, 7, (3, 3), (1, 1), (1, 1), (7, 7)),
    (5, 19, (5, 6), (1, 2), (2, 5), (4, 18)),
    (1, 33, (1, 9), (1, 1), (0, -2), (1, 41)),
    (9, 3, (2, 1), (3, 1), (-1, 0), (9, 2)),
])
def test_taps_are_added_up_where_they_see_something(
    rows: int, columns: int, taps: tuple[int, int], step: tuple[int, int],
    before: tuple[int, int], source: tuple[int, int], form: str, apart: int,
) -> None:  # fmt: skip
    """What is not finite reaches what sees it only."""
    dtype = np.float32 if form.startswith("f32") else np.float64
    rng = np.random.default_rng(rows)
    x = rng.integers(-4, 5, source).astype(dtype)
    w = rng.integers(-4, 5, taps).astype(dtype)
    x[0, 0], w[0, 0] = np.inf, np.nan
    weights = w[::-1, ::-1] if apart < 0 else w
    wanted = np.zeros((rows, columns))
    found = pairs(wanted.shape, source, taps, step, before)
    for tap, place, seen in found:
        wanted[place] += float(weights[tap]) * float(x[seen])
    target = np.full((rows, columns), 7, dtype)
    called(f"tap_sums_{form}", target, x, w, apart, step, before)
    np.testing.assert_array_equal(target, wanted)

    g = rng.integers(-4, 5, (rows, columns)).astype(dtype)
    g[-1, -1] = np.nan
    start = rng.integers(-4, 5, taps).astype(dtype)
    totals = start.astype(float)
    of_taps = totals[::-1, ::-1] if apart < 0 else totals
    for tap, place, seen in found:
        of_taps[tap] += float(g[place]) * float(x[seen])
    called(f"tap_dots_{form}", g, x, start, apart, step, before)
    np.testing.assert_array_equal(start, totals)
