"""What products of patches fetch; their values are tested by convolutions."""

from __future__ import annotations

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.routines import offset_product


def test_tiles_fetch_what_they_write_one_the_rows_of_the_next_and_all_the_next_lines() -> None:
    """Other tiles find their rows in a cache. Lines are fetched before tiles, those that copy a
    panel and others. Tiles of whole vectors, three of six rows and one of four, fetch a line of
    each row that they write."""
    module = ir.Module("", "")
    offset_product.offset_product_f32x8.write(module, "product")
    calls = [
        line.rsplit(", i32 1)", 1)[0].split(", ", 1)[1]
        for line in str(module).splitlines()
        if 'call void @"llvm.prefetch' in line
    ]
    rows, lines, written = "i32 0, i32 3", "i32 0, i32 2", "i32 1, i32 3"
    assert sorted(calls) == [lines] * 2 + [rows] * 6 + [written] * 22
