"""What products of patches fetch, and the panels that columns are cut into; other values are tested
by convolutions."""

from __future__ import annotations

import numpy as np
import pytest

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.routines import offset_product
from tests.devices.running_kernels import run

_SOURCE = """\
from pyrelay.devices.routines.offset_product import offset_product_f32x16
from pyrelay.devices.compiler.vocabulary import *


def kernel(block, begin, end):
    offset_product_f32x16(param_i64(block, 1))
    return 0
"""


@pytest.mark.parametrize(("lanes", "whole", "copying"), [(8, [6, 6, 4], [6]), (16, [8, 8, 6], [8])])
def test_tiles_fetch_what_they_write_one_the_rows_of_the_next_and_all_the_next_lines(
    lanes: int, whole: list[int], copying: list[int]
) -> None:
    """Other tiles find their rows in a cache. Lines are fetched before tiles, those that copy a
    panel, of two vectors or of three where there are 32 registers, and others. Tiles of whole
    vectors fetch all that they write."""
    module = ir.Module("", "")
    getattr(offset_product, f"offset_product_f32x{lanes}").write(module, "product")
    calls = [
        line.rsplit(", i32 1)", 1)[0].split(", ", 1)[1]
        for line in str(module).splitlines()
        if 'call void @"llvm.prefetch' in line
    ]
    rows, lines, written = "i32 0, i32 3", "i32 0, i32 2", "i32 1, i32 3"
    across = range(2, 3 if lanes == 8 else 4)
    stored = sum(copying) * sum(across) + sum(whole) * across[-1]
    fetched = len(across) + 1
    assert sorted(calls) == [lines] * fetched + [rows] * whole[0] + [written] * stored


@pytest.mark.parametrize("columns", [1, 20, 35, 49, 52, 64, 112])
def test_columns_are_cut_into_panels_of_three_vectors_two_or_one_and_dot_products(
    columns: int,
) -> None:
    """Read where they lie, or copied by the first tile of a panel."""
    rows, terms, line = 17, 5, 150
    rng = np.random.default_rng(columns)
    a = rng.integers(-4, 5, (rows, terms)).astype(np.float32)
    b = rng.integers(-4, 5, (terms, line)).astype(np.float32)
    wanted = a @ b[:, :columns]
    room = np.zeros(terms * 48, np.float32)
    offsets, places = np.arange(terms) * line, np.arange(terms) * 48
    for copied in (0, room.ctypes.data):
        c = np.full((rows, columns), 7, np.float32)
        words = np.array(
            [a.ctypes.data, terms, b.ctypes.data, c.ctypes.data, columns, offsets.ctypes.data, rows,
             columns, terms, 0, 1, copied, places.ctypes.data, 0, 0], np.int64
        )  # fmt: skip
        run(_SOURCE, words, ranges=[(0, 1)])
        np.testing.assert_array_equal(c, wanted)
