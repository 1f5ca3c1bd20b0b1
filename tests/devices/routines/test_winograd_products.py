"""Winograd's products of a block of weights: their values, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.devices.running_kernels import run

_SOURCE = """\
from pyrelay.devices.routines.winograd_products import winograd_{what}_f32x8
from pyrelay.devices.compiler.vocabulary import *


def kernel(block, begin, end):
    winograd_{what}_f32x8(param_i64(block, 1))
    return 0
"""
_LANES, _WIDE = 8, 16
_POINTS = 0, 1, -1, 2, -2


def products(
    what: str, panel: np.ndarray, values: np.ndarray, sums: np.ndarray, tiles: int,
    outputs: int = _WIDE, keep: int = 1, phases: tuple[int, ...] = (0, 0, 0), *, back: bool = False,
) -> None:  # fmt: skip
    """Runs a part: ``sums`` are added to, or overwritten; ``back``: from the last tap on."""
    channels, plane = len(panel), values.shape[1]
    first, step = panel.ctypes.data, _WIDE
    if back:
        first, step = first + (panel[0].size - _WIDE) * 4, -_WIDE
    room = np.zeros(6 * (plane * _WIDE + 16), np.float32)
    words = np.array(
        [first, channels, room.ctypes.data, values.ctypes.data, plane,
         sums.ctypes.data, sums.shape[1], tiles, panel.ctypes.data, 64, 4, 64, outputs, keep,
         step, *phases], np.int64
    )  # fmt: skip
    run(_SOURCE.format(what=what), words, ranges=[(0, 1)])


def added(filters: np.ndarray, values: np.ndarray, tiles: int) -> np.ndarray:
    """What products of filters (channels, taps, taps, outputs) are, a line for each element."""
    channels, taps = filters.shape[:2]
    matrix = np.array([[p**k for k in range(taps)] for p in _POINTS] + [[0] * (taps - 1) + [1]])
    transformed = np.einsum("ri,cijo,sj->rsco", matrix, filters, matrix, dtype=float)
    lines = values[:, : channels * tiles].reshape(36, channels, tiles)
    return np.einsum("eco,ect->eto", transformed.reshape(36, channels, _WIDE), lines)


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("outputs", [8, 16])
@pytest.mark.parametrize("tiles", [1, 5, 6, 13])
def test_products_are_added_to_every_sum_that_counts(tiles: int, outputs: int) -> None:
    """Of any number of tiles; of up to eight outputs, the second vector is left as it is."""
    rng = np.random.default_rng(tiles)
    panel, values, sums = whole(rng, 3, 3, 3, _WIDE), whole(rng, 36, 96), whole(rng, 36, 288)
    wanted, more = sums.copy(), added(panel, values, tiles)
    more[:, :, outputs:] = 0
    wanted[:, : tiles * _WIDE] += more.reshape(36, -1)
    products("products3", panel, values, sums, tiles, outputs)
    np.testing.assert_array_equal(sums, wanted)


@pytest.mark.parametrize("taps", [4, 5])
def test_other_numbers_of_taps_overwrite_what_is_not_kept(taps: int) -> None:
    """From the first tap on, and from the last."""
    rng = np.random.default_rng(taps)
    panel, values = whole(rng, 2, taps, taps, _WIDE), whole(rng, 36, 40)
    for back in (False, True):
        sums = np.full((36, 7 * _WIDE), np.nan, np.float32)
        products(f"products{taps}", panel, values, sums, 7, keep=0, back=back)
        wanted = added(panel[:, ::-1, ::-1] if back else panel, values, 7)
        np.testing.assert_array_equal(sums, wanted.reshape(36, -1))


@pytest.mark.parametrize(("stride", "rows", "columns"), [
    (2, 3, 4), (2, 7, 7), (4, 8, 7), (3, 9, 7),
])
def test_phases_of_a_stride_are_channels(stride: int, rows: int, columns: int) -> None:
    """And a tap that a phase lacks counts as 0."""
    rng, taps, tiles = np.random.default_rng(rows), -(-rows // stride), 3
    panel = whole(rng, 2, rows, columns, _WIDE)
    filters = np.zeros((2, stride, stride, taps, taps, _WIDE), np.float32)
    for i, j in np.ndindex(rows, columns):
        filters[:, i % stride, j % stride, i // stride, j // stride] = panel[:, i, j]
    filters = filters.reshape(-1, taps, taps, _WIDE)
    values, sums = whole(rng, 36, len(filters) * tiles), whole(rng, 36, tiles * _WIDE)
    wanted = sums + added(filters, values, tiles).reshape(36, -1)
    products(f"phases{taps}", panel, values, sums, tiles, phases=(stride, rows, columns))
    np.testing.assert_array_equal(sums, wanted)
