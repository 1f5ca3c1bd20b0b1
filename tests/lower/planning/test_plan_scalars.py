"""Single numbers in instructions of the plan: compared and computed as NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def compared(x: Any, y: Any) -> Any:
    return x == y, x != y, x < y, x <= y, x > y, x >= y


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "u8", "i1"])
@pytest.mark.parametrize(
    ("x", "y"), [(-2, 1), (-2, -1), (3, 3), (0.0, -0.0), (np.nan, np.nan), (-0.5 + 1j, 2)]
)
def test_numbers_compare_as_their_type_does(x: Any, y: Any, dtype: str) -> None:
    kind = np.dtype(dtype)
    if (isinstance(x, complex) and kind.kind != "c") or (x != x and kind.kind in "iu"):
        pytest.skip("no number of this type")
    with np.errstate(all="ignore"):
        a, b = (np.asarray(v).astype(kind)[()] for v in (x, y))
        assert pyrelay.jit(compared)(a, b) == compared(a, b)


def chosen(a: Any, b: Any) -> Any:
    low, high = (a, b) if a < b else (b, a)
    return low, high, max(a, b)


@pytest.mark.parametrize(("a", "b"), [(1, 2), (2, 1), (-1.5, 0.5), (2, 2), (float("nan"), 1.0)])
def test_numbers_are_chosen_without_a_kernel(a: Any, b: Any) -> None:
    f = pyrelay.jit(chosen)
    assert repr(f(a, b)) == repr(chosen(a, b))
    assert "launch" not in str(f.code(a, b))
