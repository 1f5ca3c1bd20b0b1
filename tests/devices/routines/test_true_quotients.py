"""Quotients of integers of 64 bits: rounded once, of one number and of vectors' lanes, as Python's
ints are divided in scalars, lists and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def of_lists(a: list, b: list) -> list:
    return [x / y for x, y in zip(a, b, strict=True)]


def of_scalars(a: list, b: list) -> list:
    """One after the other: what is summed is not lanes of vectors."""
    total, found = 0.0, []
    for x, y in zip(a, b, strict=True):
        total = total / 2 + x / y
        found.append(total)
    return found


def in_place(a: list, b: list) -> Any:
    out = np.empty(len(a))
    for i in range(len(a)):
        x = a[i]
        x /= b[i]
        out[i] = x
    return out


def pairs() -> tuple[list[int], list[int]]:
    """Numbers of all lengths; quotients beside the middle of two floats, and such middles."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(-(2**63), 2**63, (2, 4000)) >> rng.integers(0, 63, (2, 4000))
    a[:900] = (rng.integers(2**52, 2**53, 900) * 2 + 1) * 2 ** rng.integers(0, 9, 900)
    b[:300] = 2 ** rng.integers(0, 62, 300)
    a[300:600] += rng.integers(-1, 2, 300)
    b[300:600] = 1
    b[900::7], a[900::11], a[900::13] = -(2**63), -(2**63), 0
    b[b == 0] = 3
    return a.tolist(), b.tolist()


@pytest.mark.parametrize("function", [of_lists, of_scalars, in_place])
def test_quotients_of_ints_are_rounded_once(function: Callable[..., Any]) -> None:
    given = pairs()
    wanted, got = np.array(function(*given)), np.array(pyrelay.jit(function)(*given))
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_what_numpy_divides_is_what_floats_give() -> None:
    given = tuple(np.array(each) for each in pairs())
    np.testing.assert_array_equal(pyrelay.jit(lambda a, b: a / b)(*given), given[0] / given[1])
