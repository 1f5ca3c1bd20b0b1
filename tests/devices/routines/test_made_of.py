"""What the texts of parts say they call is what their code calls."""

import importlib
import re

import pytest

from pyrelay.devices.compiler.kernel_compiler import optimised_module
from pyrelay.devices.routines.made_of import called_by

_WRITTEN = [
    ("matmul_blocks", "product_f32x8"),
    ("matmul_blocks", "product_f64x4_64_4096_96"),
    ("matmul_bands", "near_rows_f32x8"),
    ("matmul_bands", "packed_rows_f64x4"),
    ("matmul_bands", "packed_columns_f64x4"),
    ("matmul_panels", "panels_f32x8"),
    ("offset_product", "offset_product_f32x8"),
]


@pytest.mark.parametrize(("module", "name"), _WRITTEN)
def test_what_a_part_calls_is_what_it_is_linked_with(module: str, name: str) -> None:
    text = f"from pyrelay.devices.routines.{module} import {name}\n"
    made = str(optimised_module(text, "part"))
    declared = set(re.findall(r"^declare i64 @(\w+_f\d+x\w+)\(", made, re.MULTILINE))
    assert declared == set(called_by(text))


def test_what_a_part_is_linked_with_can_be_imported() -> None:
    for name, text in called_by(
        "from pyrelay.devices.routines.matmul_blocks import product_f64x8\n"
    ).items():
        module = re.fullmatch(rf"from (\S+) import {name}\n", text)
        assert module is not None
        assert getattr(importlib.import_module(module[1]), name).spelling == name
