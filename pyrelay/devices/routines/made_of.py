"""Which parts call others.

In: the text of a part, the line that imports it. Out: those of the parts that its object is linked
with. Programs that come from disk read this too, so that nothing that compiles is imported here.
"""

from __future__ import annotations

import re

WAYS = {
    "matmul_bands": ("near_rows", "packed_rows", "packed_columns"),
    "matmul_ways": (
        "panel_row", "vector_dots", "few_rows", "vector_lines", "column_dots", "turned_tiles",
        "swept_lines", "in_place",
    ),
}  # fmt: skip
"""What does a product, by its module: one or some of them, as its size and layouts are."""

_PRODUCT = re.compile(r"from pyrelay\.devices\.routines\.matmul_blocks import product_(\w+)\n")

_WAY = re.compile(
    "|".join(
        rf"from pyrelay\.devices\.routines\.{module} import ({'|'.join(names)})_\w+\n"
        for module, names in WAYS.items()
    )
)


def called_by(part: str) -> dict[str, str]:
    """The texts of the parts that a part calls, by their names."""
    match = _PRODUCT.fullmatch(part)
    return {} if match is None else {
        f"{name}_{match[1]}": way_text(name, match[1])
        for names in WAYS.values() for name in names
    }


def way_text(way: str, form: str) -> str:
    """The text of a part that does a product, for what its name says behind ``product_``."""
    module = next(module for module, names in WAYS.items() if way in names)
    return f"from pyrelay.devices.routines.{module} import {way}_{form}\n"


def is_often_unused(part: str) -> bool:
    """Whether most programs that are linked with a part never call it."""
    return _WAY.fullmatch(part) is not None
