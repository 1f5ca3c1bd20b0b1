"""Which parts call others.

In: the text of a part, the line that imports it. Out: those of the parts that its object is linked
with. Programs that come from disk read this too, so that nothing that compiles is imported here.
"""

from __future__ import annotations

import re

_PRODUCT = re.compile(r"from pyrelay\.devices\.routines\.matmul_blocks import product_(\w+)\n")


def called_by(part: str) -> dict[str, str]:
    """The texts of the parts that a part calls, by their names."""
    match = _PRODUCT.fullmatch(part)
    bands = ("near_rows", "packed_rows", "packed_columns")
    names = [f"{name}_{match[1]}" for name in bands] if match else []
    return {
        name: f"from pyrelay.devices.routines.matmul_bands import {name}\n" for name in names
    }
