"""Sums over windows: what they read and multiply; their values are tested by convolutions."""

from __future__ import annotations

import re

import pytest

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.routines.window_sums import WindowSums


@pytest.mark.parametrize("lanes", [4, 8])
def test_a_line_is_read_once_for_several_rows_of_windows(lanes: int) -> None:
    """Of a stride of 1, 3 vectors of each of 6 lines for 4 rows, and of 3 lines for the rows that
    are left; of a stride of 2, 4 vectors of 9 lines and of 3. Both masked and not."""
    module = ir.Module("", "")
    WindowSums(module, "window_sums", "f32", lanes)
    text = str(module)
    reads = 3 * (6 + 3) + 4 * (9 + 3)
    products = 2 * 9 * (4 + 1)
    vector = rf"<{lanes} x float>"
    assert len(re.findall(rf"= load {vector}", text)) == reads
    assert len(re.findall(rf"call {vector} .{{0,160}}@\"llvm\.masked\.load", text)) == reads
    assert len(re.findall(rf"call {vector} .{{0,160}}@\"llvm\.fmuladd", text)) == 2 * products
