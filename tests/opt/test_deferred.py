"""Gathers are computed where they are summed, and their places are looked at in time."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay


def by_dot(starts, places, values, x):
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        a, b = starts[i], starts[i + 1]
        y[i] = np.dot(values[a:b], x[places[a:b]])
    return y


def by_sum(starts, places, values, x):
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        a, b = starts[i], starts[i + 1]
        y[i] = np.sum(values[a:b] * x[places[a:b]])
    return y


def with_other_ends(starts, places, values, x):
    """Where `values` is shorter than `places`, extents differ."""
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        y[i] = np.sum(values[starts[i]:] * x[places[starts[i]:starts[i + 1]]])
    return y


def of_two(starts, places, values, x):
    total = 0.0
    for i in range(len(starts) - 1):
        a, b = starts[i], starts[i + 1]
        total += np.sum(values[places[a:b]] * x[places[a:b]])
    return total


def stored_between(starts, places, values, x):
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        taken = x[places[starts[i]:starts[i + 1]]]
        x[0] += 1.0
        y[i] = np.sum(taken) + np.max(taken, initial=0.0)
    return y + x[0]


def noticed_between(starts, places, values, x):
    for i in range(len(starts) - 1):
        taken = x[places[starts[i]:starts[i + 1]]]
        values[i] = 7.0
        values[i] += np.sum(taken)
    return values


def unused(starts, places, values, x):
    count = 0
    for i in range(len(starts) - 1):
        x[places[starts[i]:starts[i + 1]]]
        count += 1
    return count


FUNCTIONS = (
    by_dot, by_sum, with_other_ends, of_two, stored_between, noticed_between, unused,
)
STARTS = np.array([0, 3, 3, 4, 9, 12])


def arguments(change=None):
    rng = np.random.default_rng(4)
    places, values, x = rng.integers(-6, 6, 12), rng.random(12), rng.random(6)
    if change is not None:
        places, values = change(places, values)
    return STARTS, places, values, x


def outcome(function, args):
    """What a function gives or raises, and its arguments afterwards."""
    args = [a.copy() for a in args]
    try:
        return function(*args), None, args
    except (IndexError, ValueError) as error:
        return None, error, args


def bad_place(places, values):
    places[7] = 6
    return places, values


def fewer_values(places, values):
    return places, values[:8]


def both(places, values):
    return bad_place(places, values[:8])


@pytest.mark.parametrize("change", [None, bad_place, fewer_values, both])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_programs_give_and_raise_what_python_does(function, change) -> None:
    args = arguments(change)
    got, error, mine = outcome(pyrelay.jit(function), args)
    expected, wanted, theirs = outcome(function, args)
    assert type(error) is type(wanted)
    if isinstance(wanted, IndexError):
        assert str(error).splitlines()[0] == str(wanted)
    if wanted is None:
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize(("function", "buffers"), [(by_dot, 1), (by_sum, 1), (noticed_between, 1)])
def test_what_is_summed_at_once_has_no_memory(function, buffers: int) -> None:
    """Only the result, or what is gathered before something is stored, is allocated."""
    text = str(pyrelay.jit(function).code(*arguments()))
    assert text.count("= allocate") == buffers
