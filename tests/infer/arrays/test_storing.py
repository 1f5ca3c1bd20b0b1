"""What stands in arrays after an assignment: NumPy's element, or NumPy's exception."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.infer.running import assert_same_outcome, interpreted, plainly


def put_item(x, v):
    x[0] = v
    return x


def put_slice(x, v):
    x[1:] = v
    return x


def put_at_places(x, v):
    x[[0, 2]] = v
    return x


def put_under_a_mask(x, v):
    x[x == 0] = v
    return x


NUMBERS = [float("nan"), float("-inf"), 300.5, -1.5, 1e300, np.float64(300.5), np.float32("inf")]


@pytest.mark.parametrize("put", [put_item, put_slice, put_at_places, put_under_a_mask])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_floats_among_ints_are_what_int_makes_of_them(put: Any, dtype: Any) -> None:
    for number in NUMBERS:
        args = (np.zeros(3, dtype), number)
        got, wanted = interpreted(put, args), plainly(put, args)
        if type(number) is float and number == 1e300:
            assert isinstance(got.error, OverflowError)  # in words of 64 bits
        elif type(number) is np.float32 and wanted.error is None:
            assert got.error is None  # which int it is C does not say
        else:
            assert_same_outcome(got, wanted)


def lists_as_arrays(xs, dtype):
    return np.array(xs, dtype)


def list_into_array(x, xs):
    x[:] = xs
    return x


def wide_into_narrow(x, y):
    for k in range(len(x)):
        x[k] = y[k]
    return x


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lists_as_arrays, ([1, 2, 300], np.dtype(np.uint8))),
        (lists_as_arrays, ([1, 2, 30], np.dtype(np.uint8))),
        (lists_as_arrays, ([1.5, float("nan")], np.dtype(int))),
        (lists_as_arrays, ([[1.5, 2.0], [3.0, 2.0**31]], np.dtype(np.int32))),
        (list_into_array, (np.zeros(3, np.int8), [1, 2, -129])),
        (list_into_array, (np.zeros(2, int), [1.0, float("inf")])),
        (wide_into_narrow, (np.zeros(2, np.int32), np.array([1, 2**31]))),
        (wide_into_narrow, (np.zeros(2, np.uint8), np.array([-1, 257]))),
    ],
)
def test_numbers_out_of_bounds_raise_in_lists_and_loops_too(function: Any, args: Any) -> None:
    got, wanted = interpreted(function, args), plainly(function, args)
    if wanted.error is None:
        assert_same_outcome(got, wanted)
    else:  # NumPy has written what came before
        assert (type(got.error), str(got.error)) == (type(wanted.error), str(wanted.error))


def total(x, start=0):
    return sum(x, start)


@pytest.mark.parametrize(
    "args",
    [
        (np.array([200, 100], np.uint8),), (np.array([[200], [100]], np.uint8),),
        (np.array([100, 100], np.int8), 5), (np.array([100, 100], np.int8), 0.5),
        (np.zeros((0, 2)),), (np.zeros((0, 2)), 1.5), (np.array([True, True]),),
    ],
)
def test_sums_of_small_ints_have_the_dtype_of_the_rows(args: Any) -> None:
    assert_same_outcome(interpreted(total, args), plainly(total, args))


def zeros_apart(x, i):
    return (
        np.maximum(x, -0.0), np.minimum(x, -0.0), np.maximum(-0.0, x), np.minimum(0.0, x),
        np.maximum(i, -0.0), np.minimum(-0.0, i), np.clip(x, 0.0, 1.0), np.clip(x, -1.0, -0.0),
    )


def test_of_two_zeros_the_extreme_is_numpys() -> None:
    x = np.array([0.0, -0.0, 1.0, np.nan])
    got, wanted = pyrelay.jit(zeros_apart)(x, np.arange(4)), zeros_apart(x, np.arange(4))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a[:3]), np.signbit(b[:3]))


def rounded(x):
    return x.round(1), np.round(x)


def test_rounded_ints_are_arrays_of_their_own() -> None:
    x = np.arange(3)
    for made in pyrelay.jit(rounded)(copy.copy(x)):
        made[0] = 7
        assert (x[0], made[0]) == (0, 7)


def test_one_number_is_stretched_where_a_call_before_had_as_many_as_are_true():
    def shifted(x, y):
        kept = x[x > 0]
        kept[:] = y
        return kept, kept - y

    compiled, x = pyrelay.jit(shifted), np.array([1.0, -1.0, 2.0])
    for y in (np.array([3.0, 4.0]), np.array([5.0])):
        for mine, plain in zip(compiled(x, y), shifted(x, y), strict=True):
            np.testing.assert_array_equal(mine, plain)
