"""What the caller gets shares memory with what the caller has exactly where it does in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer import values
from tests.infer.running import inferred, run


def called(function: Any, *args: Any) -> Any:
    """The result of the inferred program, interpreted, on these very arguments."""
    specialised = inferred(function, args)
    return run(specialised, specialised.module, args, {})


def test_a_returned_argument_is_the_same_object() -> None:
    x = np.arange(4.0)
    assert called(lambda a: a, x) is x


def test_a_returned_slice_is_a_view_of_the_argument() -> None:
    x = np.arange(12.0).reshape(3, 4)

    def parts(a, k):
        return a[1:], a[::-2, k:], a.T[1], a[k], a[None, :, 0], a.reshape(2, 6)

    for got, wanted in zip(called(parts, x, 1), parts(x, 1), strict=True):
        assert np.shares_memory(got, x)
        np.testing.assert_array_equal(got, wanted)


def test_a_write_to_a_returned_view_reaches_the_argument() -> None:
    x = np.arange(4.0)
    view = called(lambda a: a[1:3], x)
    view[0] = 9.0
    assert x[1] == 9.0


def test_a_copy_shares_nothing() -> None:
    x = np.arange(4.0)
    for copy in called(lambda a: (a.copy(), a[1:].copy(), a + 0.0, a[[0, 1]]), x):
        assert not np.shares_memory(copy, x)


def test_one_new_array_returned_twice_is_one_object() -> None:
    def twice(a):
        y = a * 2.0
        return y, {"again": y}

    first, second = called(twice, np.arange(3.0))
    assert first is second["again"]


def test_a_view_returned_beside_its_array_is_a_view_of_it() -> None:
    def both(a):
        y = a * 2.0
        return y[1:], y

    part, whole = called(both, np.arange(3.0))
    assert np.shares_memory(part, whole)


def test_a_new_array_put_into_the_callers_dict_is_the_one_returned() -> None:
    def store(d, a):
        d["y"] = a + 1.0
        return d["y"]

    table: dict[str, Any] = {}
    assert called(store, table, np.arange(3.0)) is table["y"]


class Holder:
    def __init__(self, held: Any) -> None:
        self.held = held


def test_an_argument_that_was_stored_before_what_may_raise_is_the_one_returned() -> None:
    def store(x, y, holder, k):
        seen = y[k:].sum()
        y[0] = 5.0
        holder.held = y
        x[[0, 2]] = x[[1, 0]]
        return y, seen

    x, y, holder = np.arange(4.0), np.arange(4.0), Holder(np.ones(4))
    found, seen = called(store, x, y, holder, 1)
    assert found is y
    assert holder.held is y
    assert seen == 6.0
    with pytest.raises(IndexError):
        called(store, x[:1], y, holder, 1)
    assert holder.held is y


def test_loops_in_loops_write_an_argument_that_lost_its_name():
    def swapped(x, y, n):
        x = x.copy()
        for _ in range(n):
            for k in range(len(x)):
                x, y = y, x
                y = x * 2.0
                x[:] = y + k
        return x, y

    ours, plain = np.arange(4.0), np.arange(4.0)
    for found, expected in zip(
        pyrelay.jit(swapped)(np.ones(4), ours, 2), swapped(np.ones(4), plain, 2), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(ours, plain)


def test_no_object_has_the_number_of_what_is_not_read() -> None:
    with values.own_serials():
        assert values.next_serial() == 1  # 0 is what a number holds on a path that does not read it
