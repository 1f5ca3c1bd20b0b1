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
        "swept_lines", "in_place", "small_stack",
    ),
}  # fmt: skip
"""What does a product, by its module: one or some of them, as its size and layouts are."""

PARTS = {
    **WAYS,
    "matmul_panels": ("pack",),
    "offset_product": (
        "offset_product", "line_sums", "copy_run", "copy_lines", "add_run", "window_sums",
    ),
    "tap_sums": ("tap_sums", "tap_dots", "tap_joins"),
    "turned_product": ("turned_product", "turned_weights", "turned_sums"),
    "winograd": (
        "winograd_lines", "winograd_image", "winograd_seen", "winograd_dot", "winograd_finite",
        "winograd_given2", "winograd_given3", "winograd_given4", "winograd_given5",
        "winograd_outputs2", "winograd_outputs3", "winograd_outputs4", "winograd_outputs5",
    ),
    "winograd_products": (
        "winograd_products3", "winograd_products4", "winograd_products5",
        "winograd_phases2", "winograd_phases3", "winograd_phases4", "winograd_phases5",
        "winograd_pairs",
    ),
}  # fmt: skip
"""The same, what lays panels, and what does a convolution: most programs that are linked with one
never call it."""

_PRODUCT = re.compile(r"from pyrelay\.devices\.routines\.matmul_blocks import product_(\w+)\n")

_PART = re.compile(
    "|".join(
        rf"from pyrelay\.devices\.routines\.{module} import ({'|'.join(names)})_[^_]\w*\n"
        for module, names in PARTS.items()
    )
)


def called_by(part: str) -> dict[str, str]:
    """The texts of the parts that a part calls, by their names."""
    match = _PRODUCT.fullmatch(part)
    return {} if match is None else {
        f"{name}_{match[1]}": part_text(name, match[1])
        for names in WAYS.values() for name in names
    }


def part_text(part: str, form: str) -> str:
    """The text of a part of `PARTS`, for what its name says behind that."""
    module = next(module for module, names in PARTS.items() if part in names)
    return f"from pyrelay.devices.routines.{module} import {part}_{form}\n"


def is_often_unused(part: str) -> bool:
    """Whether most programs that are linked with a part never call it."""
    return _PART.fullmatch(part) is not None
