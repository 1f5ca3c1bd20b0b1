"""Threads, rows and shared memory of blocks that do rows."""

from __future__ import annotations

import pytest

from pyrelay.devices.gpu.row_geometry import Limits, Rows, RowShape, pair_of, rows_of, shape_of

ROW = Rows(4, 4, 1, 0)


def test_a_text_says_what_its_items_are() -> None:
    text = "#define BLOCK_THREADS 128\n#define ROW_PACK 4\n#define ROW_WORD 1\n"
    assert rows_of(text) == Rows(4, 0, 1, 0)
    assert rows_of(text + "#define HELD_BYTES 12\n") == Rows(4, 12, 1, 0)
    known = "#define ROW_PACK 2\n#define ROW_ELEMENTS 512\n"
    assert rows_of(known) == Rows(2, 0, None, 512)
    assert rows_of("#define BLOCK_THREADS 128\n") is None


@pytest.mark.parametrize(("elements", "shape"), [
    (1, RowShape(32, 4, 4 * 4 * 64)), (1024, RowShape(32, 4, 4 * 4096)),
    (1025, RowShape(128, 1, 4 * 1088)), (4096, RowShape(128, 1, 4 * 4096)),
    (8192, RowShape(256, 1, 4 * 8192)), (32768, RowShape(1024, 1, 4 * 32768)),
    (1 << 20, RowShape(1024, 1, 200_000)),
])  # fmt: skip
def test_threads_grow_with_rows(elements: int, shape: RowShape) -> None:
    assert shape_of(ROW, elements, Limits(200_000, 1024)) == shape


def test_no_more_threads_than_there_are_registers_for() -> None:
    assert shape_of(ROW, 1 << 20, Limits(0, 900)) == RowShape(512, 1, 0)


H200 = Limits(232_064, 1024, 115_328, 512)
"""Of a softmax: 53 registers of a thread and 384 bytes of a block."""


@pytest.mark.parametrize(("elements", "shape"), [
    (16_448, RowShape(512, 1, 4 * 16_448)), (28_800, RowShape(512, 1, 4 * 28_800)),
    (28_833, RowShape(512, 1, 115_328)), (32_768, RowShape(512, 1, 115_328)),
    (32_896, RowShape(512, 1, 115_328)),
    (32_960, RowShape(1024, 1, 4 * 32_960)), (1 << 17, RowShape(1024, 1, 232_064)),
])  # fmt: skip
def test_rows_that_leave_out_little_have_half_of_a_multiprocessor(
    elements: int, shape: RowShape
) -> None:
    assert shape_of(ROW, elements, H200) == shape


def test_two_blocks_have_as_many_threads_as_the_driver_says() -> None:
    assert pair_of(lambda threads: 2 * threads * 56 <= 65536, 1024) == 512
    assert pair_of(lambda threads: 2 * threads * 72 <= 65536, 900) == 256
    assert pair_of(lambda threads: False, 1024) == 0
    alone = Limits(232_064, 1024, 115_328, 0)
    assert shape_of(ROW, 32_768, alone) == RowShape(1024, 1, 4 * 32_768)
