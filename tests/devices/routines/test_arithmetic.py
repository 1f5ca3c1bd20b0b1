"""Extremes are NumPy's at NaNs and zeros, whatever is known of their operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay

SPECIAL = (np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0, -1.0, 2.5)


def with_constants(x: Any) -> Any:
    return (
        np.maximum(x, 0.0), np.maximum(0.0, x), np.maximum(x, -0.0), np.minimum(-0.0, x),
        np.minimum(x, 0.0), np.maximum(x, np.nan), np.minimum(np.nan, x), np.clip(x, -1.0, 0.0),
    )  # fmt: skip


def with_counts(x: Any) -> Any:
    found = np.zeros((2, len(x)), x.dtype)
    for i in range(len(x)):
        found[0, i] = np.maximum(x[i], float(i))
        found[1, i] = np.minimum(float(i), x[i])
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("f", [with_constants, with_counts])
def test_extremes_beside_what_is_no_nan_are_numpys(f: Any, dtype: type) -> None:
    x = np.array(SPECIAL * 5, dtype)
    found, expected = pyrelay.jit(f)(x), f(x)
    np.testing.assert_array_equal(np.array(found), np.array(expected))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
