"""Functions of complex numbers at zeros, infinities and NaN give what NumPy gives there."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay

PARTS = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -2.0)
NUMBERS = np.array([complex(a, b) for a in PARTS for b in PARTS])


def images(z):
    return {
        "exp": np.exp(z), "log": np.log(z), "sqrt": np.sqrt(z), "abs": np.abs(z) + 0j,
        "tanh": np.tanh(z), "tan": np.tan(z), "sinh": np.sinh(z), "sin": np.sin(z),
        "cosh": np.cosh(z), "cos": np.cos(z), "arcsin": np.arcsin(z), "arccos": np.arccos(z),
        "arctan": np.arctan(z), "arcsinh": np.arcsinh(z), "arccosh": np.arccosh(z),
        "arctanh": np.arctanh(z), "sign": np.sign(z), "exp2": np.exp2(z),
    }


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_special_values_are_numpys(dtype: type) -> None:
    z = NUMBERS.astype(dtype)
    with np.errstate(all="ignore"):
        got, wanted = pyrelay.jit(images)(z), images(z)
    for name, image in wanted.items():
        for part in ("real", "imag"):
            mine, theirs = getattr(got[name], part), getattr(image, part)
            np.testing.assert_allclose(mine, theirs, 1e-6, err_msg=f"{name}, {part}")
            known = (theirs == 0) & ~np.isnan(z)  # C leaves the zero's sign open for NaN
            np.testing.assert_array_equal(
                np.signbit(mine)[known], np.signbit(theirs)[known], f"{name}, {part}"
            )
