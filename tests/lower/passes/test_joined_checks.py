"""One place in several arrays is checked once, and fails as it would one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def distances(x: Any, y: Any, z: Any, places: Any) -> Any:
    total = 0.0
    for k in range(len(places)):
        j = places[k]
        total += x[j] * x[j] + y[j] * y[j] + z[j] * z[j]
    return total


def chained(x: Any, y: Any, following: Any) -> Any:
    total, j = 0.0, 0
    while j >= 0:
        total += x[j] * y[j]
        j = following[j]
    return total


def written_between(x: Any, y: Any, places: Any) -> Any:
    for k in range(len(places)):
        j = places[k]
        x[j] = 1.0
        y[j] = 2.0
    return x, y


def test_places_in_several_arrays_are_compared_with_the_least_extent() -> None:
    x = np.arange(5.0)
    text = pyrelay.jit(distances).code(x, x[:4], x[:3], np.array([0, 1]))
    assert "minimum(minimum(n" in text
    assert "minimum(" in pyrelay.jit(chained).code(x, x[:4], np.array([1, -1, 3, -1]))


@pytest.mark.parametrize("size", [(5, 5, 5), (5, 4, 3), (3, 4, 5), (4, 3, 5)])
def test_each_array_counts_from_its_own_end_and_fails_by_itself(size: tuple[int, ...]) -> None:
    arrays = [np.arange(1.0, n + 1) for n in size]
    compiled = pyrelay.jit(distances)
    for first in range(-min(size), min(size)):
        places = np.array([0, first, 1])
        assert compiled(*arrays, places) == distances(*arrays, places)
    for first in (min(size), 4, 5, 6, -min(size) - 1, -6):
        places = np.array([0, first, 1])
        if -min(size) <= first < min(size):
            continue
        with pytest.raises(IndexError) as wanted:
            distances(*arrays, places)
        with pytest.raises(IndexError) as raised:
            compiled(*arrays, places)
        assert str(raised.value).splitlines()[0] == str(wanted.value)


def test_what_follows_a_list_is_checked_in_all_arrays_too() -> None:
    compiled = pyrelay.jit(chained)
    following = np.array([2, -1, 4, 1, 3])
    x = np.arange(1.0, 6.0)
    assert compiled(x, x, following) == chained(x, x, following)
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        compiled(x, x[:4], following)
    with pytest.raises(IndexError, match="index 2 is out of bounds for axis 0 with size 2"):
        compiled(x[:2], x[:1], following)


def test_a_store_between_two_checks_is_seen_when_the_second_fails() -> None:
    for function in (written_between, pyrelay.jit(written_between)):
        x, y = np.zeros(4), np.zeros(3)
        with pytest.raises(IndexError):
            function(x, y, np.array([0, 3, 1]))
        np.testing.assert_array_equal(x, [1.0, 0.0, 0.0, 1.0])
        np.testing.assert_array_equal(y, [2.0, 0.0, 0.0])
