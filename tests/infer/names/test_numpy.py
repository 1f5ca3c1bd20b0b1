"""NumPy's functions by name: kinds of numbers, and powers, as NumPy has them."""

from __future__ import annotations

import math

import numpy as np

import pyrelay


def test_products_make_numpys_numbers_of_pythons():
    @pyrelay.jit
    def products(f, a, n):
        return np.dot(a, 2.5), np.inner(n, 3), np.dot(f, 2.0), np.inner(f, n)

    f = np.arange(3, dtype=np.float32)
    for got, expected in zip(products(f, 1.5, 2), products.py(f, 1.5, 2), strict=True):
        assert type(got) is type(expected)
        assert np.asarray(got).dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(got, expected)


def test_whole_powers_of_complex_numbers_are_products():
    @pyrelay.jit
    def powers(z):
        return z**3, z**4, z**13, z[0] ** 5, z**7.0, z**0.5

    z = np.array([1j, -3j, 1.0 + 2j])
    for got, expected in zip(powers(z)[:5], powers.py(z)[:5], strict=True):
        np.testing.assert_array_equal(got, expected)  # to the last bit: no power by logarithms
    np.testing.assert_allclose(powers(z)[5], np.sqrt(z), rtol=1e-15)


def test_remainders_have_the_sign_of_zero():
    @pyrelay.jit
    def remainder(x):
        return math.fmod(x, 2.0)

    assert [math.copysign(1.0, remainder(x)) for x in (0.0, -0.0, 4.0, -4.0)] == [1, -1, 1, -1]
