"""Threads, rows and shared memory of blocks that do rows."""

from __future__ import annotations

import pytest

from pyrelay.devices.gpu.row_geometry import Rows, RowShape, rows_of, shape_of

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
    assert shape_of(ROW, elements, 200_000, 1024) == shape


def test_no_more_threads_than_there_are_registers_for() -> None:
    assert shape_of(ROW, 1 << 20, 0, 900) == RowShape(512, 1, 0)
