"""Arrays that pyrelay makes of its own."""

from __future__ import annotations

import numpy as np
import pytest

from pyrelay.infer import own_arrays
from pyrelay.infer.containers.characters import PROPERTIES


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_bounds_are_where_a_property_of_characters_changes(name: str) -> None:
    bounds = own_arrays.bounds_of(name)
    near = {0, 0x10FFFF, *range(0x500), *(k + d for k in bounds.tolist() for d in (-1, 0, 1))}
    for code in near - {-1, 0x110000}:
        inside = bool(np.searchsorted(bounds, code, side="right") % 2)
        assert inside == getattr(str, name)(chr(code)), hex(code)


def test_zeros_begin_ten_digits() -> None:
    zeros = own_arrays.zeros_of_scripts().tolist()
    assert zeros[:2] == [ord("0"), 0x660]
    assert all(int(chr(zero + k)) == k for zero in zeros for k in range(10))
    ends = own_arrays.bounds_of("isdecimal")
    assert 10 * len(zeros) == (ends[1::2] - ends[::2]).sum()
