"""Updates of the same part of several arrays are made by one kernel, where none reads another's."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay


def together(u, v):
    w = u[1:-1, 1:-1] * v[1:-1, 1:-1]
    u[1:-1, 1:-1] += w
    v[1:-1, 1:-1] -= w
    return u, v


def three(u, v):
    w = u.copy()
    old = u[1:-1, 1:-1] + v[1:-1, 1:-1]
    u[1:-1, 1:-1] = old * 2.0
    v[1:-1, 1:-1] = old * 3.0
    w[1:-1, 1:-1] = old * 5.0
    return u, v, w


def in_rounds(u, v):
    for _ in range(5):
        w = u[1:-1, 1:-1] * v[1:-1, 1:-1]
        lu, lv = u[:-2, 1:-1] - u[1:-1, 2:], v[2:, 1:-1] - v[1:-1, :-2]
        u[1:-1, 1:-1] += 0.1 * lu - w
        v[1:-1, 1:-1] += 0.2 * lv + w
    return u, v


ONE_KERNEL = (together, in_rounds)


def from_the_new_one(u, v):
    u[1:-1, 1:-1] += v[1:-1, 1:-1]
    v[1:-1, 1:-1] += u[:-2, 1:-1]
    return u, v


def from_neighbours_of_the_other(u, v):
    w = u[1:-1, 1:-1] + v[:-2, 1:-1]
    u[1:-1, 1:-1] = w
    v[1:-1, 1:-1] = w * 2.0
    return u, v


def other_parts(u, v):
    w = u[1:-1, 1:-1] + v[1:-1, 1:-1]
    u[1:-1, 1:-1] = w
    v[:-2, 1:-1] = w
    return u, v


def of_one_array(u, v):
    w = u[1:-1, 1:-1] + v[1:-1, 1:-1]
    a, b = u.copy(), u.copy()
    a[1:-1, 1:-1] = w
    b[1:-1, 1:-1] = w * 2.0
    return a, b, u


def read_in_between(u, v):
    w = u[1:-1, 1:-1] + v[1:-1, 1:-1]
    u[1:-1, 1:-1] = w * 0.5
    total = np.sum(u[0]) + np.sum(u[1])
    v[1:-1, 1:-1] = w * total
    return u, v


def rows_of_one_array(u, v):
    a, b = u[0], u[1]
    w = a[1:-1] + b[1:-1]
    a[1:-1] = w
    b[1:-1] = w * 2.0
    return u, v


SEVERAL = (
    three, from_the_new_one, from_neighbours_of_the_other, other_parts, of_one_array,
    read_in_between, rows_of_one_array,
)


@pytest.mark.parametrize("function", [*ONE_KERNEL, *SEVERAL])
def test_arrays_have_the_values_that_python_gives_them(function) -> None:
    rng = np.random.default_rng(0)
    u, v = rng.random((70, 71)), rng.random((70, 71))
    mine, theirs = (u.copy(), v.copy()), (u.copy(), v.copy())
    found, expected = pyrelay.jit(function)(*mine), function(*theirs)
    for a, b in zip((*found, *mine), (*expected, *theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", [together, in_rounds])
def test_one_array_may_be_given_twice(function) -> None:
    mine = np.random.default_rng(0).random((70, 71))
    theirs = mine.copy()
    pyrelay.jit(function)(mine, mine)
    function(theirs, theirs)
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", ONE_KERNEL)
def test_updates_of_one_part_are_one_kernel(function) -> None:
    u = np.ones((100, 101))
    text = str(pyrelay.jit(function).code(u, u.copy()))
    assert text.count("(block, begin, end)") == 1
    assert text.count("store_f64(") == 2


@pytest.mark.parametrize("function", [from_the_new_one, other_parts])
def test_other_updates_are_not(function) -> None:
    u = np.ones((100, 101))
    assert str(pyrelay.jit(function).code(u, u.copy())).count("(block, begin, end)") > 1


def ways(n):
    known = {}

    def go(i, j):
        if i == 0 or j == 0:
            return 1
        if (i, j) not in known:
            known[i, j] = go(i - 1, j) + go(i, j - 1)
        return known[i, j]

    return go(n, n)


def ends(x, y, k):
    x[0] = y[k]
    total = x[1] * 2.0
    y[0] = total
    return x[0] + y[0]


def test_what_is_stored_of_one_record_is_stored_by_one_kernel() -> None:
    """Where a key is found, its two ints, that it is there, and the value: an array of each."""
    text = str(pyrelay.jit(ways).lower(4).ir())
    (storing,) = [k for k in text.split("\n}\n") if k.count(" = index_update(") > 1]
    assert storing.count(" = index_update(") == 5
    assert pyrelay.jit(ways)(8) == ways(8)


def test_elements_are_stored_before_they_are_read_and_after() -> None:
    for k in (0, 3, -1):
        mine, theirs = [(np.arange(1.0, 5.0), np.arange(5.0, 9.0)) for _ in range(2)]
        assert pyrelay.jit(ends)(*mine, k) == ends(*theirs, k)
        np.testing.assert_array_equal(mine, theirs)
    x, y = np.arange(4.0), np.arange(4.0)
    with pytest.raises(IndexError):
        pyrelay.jit(ends)(x, y, 4)
    np.testing.assert_array_equal((x, y), (np.arange(4.0), np.arange(4.0)))
