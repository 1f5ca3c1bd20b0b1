"""`x.view(dtype)`: the same bits as numbers of another dtype, written through to the array."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.devices.running_kernels import needs_compiler

X = np.array([1.0, 2.0, -3.5, 0.0, np.inf, 1e-310])
DEVICES = ["cpu", pytest.param("cuda_emulator", marks=needs_compiler)]


def exponents(x):
    return (x.view(np.int64) >> 52) & 0x7FF, x.view("u8")[::2]


def fast_reciprocal_root(x):
    """The one of a well-known game: a line through the bits, and a step of Newton's method."""
    bits = np.int32(0x5F3759DF) - (x.view(np.int32) >> 1)
    y = bits.view(np.float32)
    return y * (np.float32(1.5) - np.float32(0.5) * x * y * y)


def with_signs_set(x):
    bits = x.view(np.uint64)
    bits[1:] |= np.uint64(1) << np.uint64(63)
    x[0] = 5.0
    return bits[0], bits


def counted(x):
    return (x > 0).view(np.uint8).sum(), (x > 0).view(np.int8) * np.int8(2)


def rows(x):
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    a[1].view(np.uint32)[::2] += np.uint32(1)
    return a, a.T.view(np.int32)


def uniform_numbers(x):
    """Marsaglia, Xorshift RNGs, 2003: 52 bits of each state as a number below 1."""
    state, total = np.uint64(88172645463325252), 0.0
    for _ in range(50):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        bits = (state >> np.uint64(12)) | np.uint64(0x3FF0000000000000)
        total += bits.view(np.float64) - 1.0
    return total


PROGRAMS = [
    (exponents, X), (fast_reciprocal_root, np.abs(X[:3]).astype("f4")), (with_signs_set, X),
    (counted, X), (rows, X), (uniform_numbers, X),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("function", "x"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_bits_are_numpys(function: Any, x: Any, device: str) -> None:
    given, wanted_of = copy.deepcopy(x), copy.deepcopy(x)
    wanted, found = function(wanted_of), pyrelay.jit(function, device=device)(given)
    np.testing.assert_array_equal(given, wanted_of)
    pairs = [(found, wanted)] if not isinstance(wanted, tuple) else zip(found, wanted, strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def test_the_result_is_a_view_of_the_argument() -> None:
    def bits(x: Any) -> Any:
        return x[1:].view(np.int64)

    x = X.copy()
    for _ in range(2):
        found = pyrelay.jit(bits)(x)
        assert np.shares_memory(found, x)
        found[0] = 0
        assert x[1] == 0.0
        x[1] = 2.0


def test_no_derivative_flows_through_bits() -> None:
    def loss(x: Any) -> Any:
        scale = (x.view(np.int64) & np.int64(~0xFFFFFFFF)).view(np.float64)
        return (x * scale).sum()

    x = np.array([1.5, -3.0])
    np.testing.assert_allclose(pyrelay.grad(loss)(x), x)


def test_numbers_of_other_sizes_are_refused() -> None:
    def halves(x: Any) -> Any:
        return x.view(np.int32)

    with pytest.raises(pyrelay.UnsupportedOperationError, match=r"x\.view\(int32\) would take"):
        pyrelay.jit(halves)(X)


@pytest.mark.filterwarnings("ignore:overflow")
def test_constants_beyond_an_int64_are_uint64_where_that_is_said() -> None:
    def hashed(x: Any) -> Any:
        h = np.uint64(14695981039346656037)
        for k in range(len(x)):
            h = (h ^ np.uint64(x[k])) * np.uint64(0xFF51AFD7ED558CCD)
        return h

    x = np.arange(6)
    assert pyrelay.jit(hashed)(x) == hashed(x)

    def too_large(x: Any) -> Any:
        return x[0] + np.uint64(2**64)

    with pytest.raises(pyrelay.InvalidValueError, match="does not fit into 64 bits"):
        pyrelay.jit(too_large)(x)
