"""Ints beside floats keep their digits, or the running program raises OverflowError."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer import kinds
from tests.infer.running import assert_same, interpreted, plainly

MANY = 2**53 + 1


def either(a, b):
    return a if a > b else float(b)


def listed(a, b):
    xs = []
    for _ in range(b):
        xs.append(a)
        xs.append(0.5)
    return xs


def computed(a, b):
    x = a if a > b else float(b)
    return x * x


def among_singles(a, xs):
    kept = [a]
    for k in range(len(xs)):
        kept.append(xs[k])
    return kept


@pytest.mark.parametrize(
    ("function", "args", "raises"),
    [
        (either, (MANY, 1), True), (either, (2**53 - 1, 1), False), (either, (1, MANY), False),
        (either, (2**63 - 1, 1), True), (listed, (-MANY, 2), True), (listed, (7, 2), False),
        (computed, (2**30 + 1, 2), True), (computed, (2**26 + 1, 2), False),
        (among_singles, (2**53 + 1, np.ones(2, np.float32)), True),
        (among_singles, (2**24 + 1, np.ones(2, np.float32)), False),
    ],
)
def test_ints_beside_floats_are_exact(function: Any, args: Any, raises: bool) -> None:
    got, wanted = interpreted(function, args), plainly(function, args)
    if raises:
        assert isinstance(got.error, OverflowError)
    else:
        assert got.error is None
        assert_same(got.result, wanted.result)


def ordered(n, x):
    return n < x, n <= x, n > x, n >= x, n == x, n != x, x < n, x == n, n < 2.0**53, n > 1e19


@pytest.mark.parametrize("n", [5, MANY, -MANY, 2**63 - 1, -(2**63)])
def test_ints_and_floats_are_compared_to_the_last_digit(n: int) -> None:
    for x in (5.0, 2.0**53, -(2.0**53), 2.0**63, -(2.0**63), np.inf, np.nan):
        args = (n, float(x))
        assert interpreted(ordered, args).result == ordered(*args)


def test_which_types_hold_a_constant() -> None:
    assert {d.name for d in kinds.holders(-1)} == {
        "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64",
    }  # fmt: skip
    assert {d.name for d in kinds.holders(999999)} == {"i32", "u32", "i64", "u64", "f32", "f64"}
    assert {d.name for d in kinds.holders(1e9)} == {"f32", "f64"}
    assert {d.name for d in kinds.holders(0.1)} == {"f64"}
    assert {d.name for d in kinds.holders(1e308)} == {"f64"}  # without a warning
    assert {d.name for d in kinds.holders(1.0)} == {"f16", "bf16", "f32", "f64"}
    assert {d.name for d in kinds.holders(-math.inf)} == kinds_of_floats()
    assert {d.name for d in kinds.holders(math.nan)} == kinds_of_floats()
    assert kinds.holders(1j) == kinds.holders("1") == kinds.holders(2**64) == frozenset()


def kinds_of_floats() -> set[str]:
    return {"f16", "bf16", "f32", "f64"}


def least_and_greatest(rows: Any, low: Any, high: Any) -> Any:
    found = []
    for k in range(len(rows)):
        least, greatest, many = low, high, high
        for x in rows[k]:
            least = min(least, x)
            greatest = max(greatest, x)
            many = max(x, many, 3)
        found.append((least, greatest, many))
    return found


@pytest.mark.parametrize(("dtype", "low", "high"), [
    (np.uint8, 255, 0), (np.uint8, 300, -1), (np.int8, 20, 7), (np.float32, 1e9, -1e9),
    (np.float32, 16777217.0, 16777217), (np.float64, 5, 2), (np.float32, np.inf, np.nan),
])  # fmt: skip
def test_least_and_greatest_numbers_of_several_kinds(dtype: Any, low: Any, high: Any) -> None:
    rows = np.array([[3, 9, 1], [16777216 if dtype is np.float32 else 120, 2, 7]]).astype(dtype)
    wanted = least_and_greatest(rows, low, high)
    got = pyrelay.jit(least_and_greatest)(rows, low, high)
    assert repr(got) == repr(wanted)


def eroded(image: Any, r: Any) -> Any:
    out = np.empty_like(image)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            least = 255
            for k in range(max(0, y - r), min(image.shape[0], y + r + 1)):
                least = min(least, image[k, x])
            out[y, x] = least
    return out


def test_a_least_number_is_compared_once_whatever_kind_it_is_of() -> None:
    image = np.random.default_rng(0).integers(0, 256, (9, 8)).astype(np.uint8)
    compiled = pyrelay.jit(eroded)
    np.testing.assert_array_equal(compiled(image, 2), eroded(image, 2))
    assert "if where(" not in str(compiled.code(image, 2))  # nothing asks of which kind
