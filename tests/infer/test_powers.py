"""Powers of known exponents are NumPy's and Python's at zeros and infinities, too."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay

SPECIAL = (-0.0, 0.0, np.inf, -np.inf, 4.0)


def root(x):
    return x**0.5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_to_the_power_of_a_half_are_those_of_pow_and_arrays_roots(dtype: type) -> None:
    compiled = pyrelay.jit(root)
    with np.errstate(all="ignore"):
        for x in map(dtype, SPECIAL):
            got, wanted = compiled(x), root(x)
            assert (type(got), got, np.signbit(got)) == (type(wanted), wanted, np.signbit(wanted))
        x = np.array(SPECIAL, dtype)
        np.testing.assert_array_equal(compiled(x), root(x))
        np.testing.assert_array_equal(np.signbit(compiled(x)[:3]), np.signbit(root(x)[:3]))
