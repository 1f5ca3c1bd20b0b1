"""Winograd's products of a block of weights: their values, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.devices.running_kernels import run

_SOURCE = """\
from pyrelay.devices.routines.winograd_products import winograd_products_f32x8
from pyrelay.devices.compiler.vocabulary import *


def kernel(block, begin, end):
    winograd_products_f32x8(param_i64(block, 1))
    return 0
"""
_LANES, _WIDE = 8, 16
_POINTS = 0, 1, -1, 2, -2


@pytest.mark.parametrize("outputs", [8, 16])
@pytest.mark.parametrize("tiles", [1, 5, 6, 13])
def test_products_are_added_to_every_sum_that_counts(tiles: int, outputs: int) -> None:
    """Of any number of tiles; of up to eight outputs, the second vector is left as it is."""
    channels, plane = 3, 96
    rng = np.random.default_rng(tiles)
    panel = rng.integers(-4, 5, (channels, 3, 3, _WIDE)).astype(np.float32)
    values = rng.integers(-4, 5, (36, plane)).astype(np.float32)
    sums = rng.integers(-4, 5, (36, plane * 3)).astype(np.float32)
    room = np.zeros(6 * (channels * _WIDE + 16), np.float32)
    matrix = np.array([[1, p, p * p] for p in _POINTS] + [[0, 0, 1]], float)
    filters = np.einsum("ri,cijo,sj->rsco", matrix, panel, matrix).reshape(36, channels, _WIDE)
    lines = values[:, : channels * tiles].reshape(36, channels, tiles)
    wanted = sums.copy()
    more = np.einsum("eco,ect->eto", filters, lines)
    more[:, :, outputs:] = 0
    wanted[:, : tiles * _WIDE] += more.reshape(36, -1)
    words = np.array(
        [panel.ctypes.data, channels, room.ctypes.data, values.ctypes.data, plane,
         sums.ctypes.data, plane * 3, tiles, panel.ctypes.data, 64, 4, 64, outputs], np.int64
    )  # fmt: skip
    run(_SOURCE, words, ranges=[(0, 1)])
    np.testing.assert_array_equal(sums, wanted)
