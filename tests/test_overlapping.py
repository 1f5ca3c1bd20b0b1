"""Arguments that share memory and are written: the result, and all arrays, are Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import overlapping


def written_by_elements(a, b):
    for i in range(a.shape[0]):
        a[i] = b[i] * 2 + 1
    b[-1] += a[0]
    return a, b.sum()


def written_whole(a, b):
    a += b
    return a * 2.0


Views = Callable[[Any], tuple[Any, Any]]
ROWS: list[Views] = [
    lambda m: (m[:-1], m[1:]),
    lambda m: (m[1:, ::-1], m[:-1]),
    lambda m: (m[:, 0], m[1]),
    lambda m: (m[::2, 1:], m[1:, :-1][::2]),
    lambda m: (m[:3, :3], m.T[:3, :3]),
]
LINES: list[Views] = [
    lambda x: (x[:-1], x[1:]), lambda x: (x, x[::-1]), lambda x: (x[1::2], x[::-2]),
]


@pytest.mark.parametrize("function", [written_by_elements, written_whole])
def test_slices_of_one_array_are_written_as_in_python(function: Any) -> None:
    compiled = pyrelay.jit(function)
    matrix = np.sin(np.arange(16.0)).reshape(4, 4)
    for start, views in [(matrix, v) for v in ROWS] + [(matrix.copy()[0], v) for v in LINES]:
        if start.ndim == 1:
            start = np.cos(np.arange(6.0))
        ours, plain = start.copy(), start.copy()
        arguments = views(ours)
        found, expected = compiled(*arguments), function(*views(plain))
        np.testing.assert_array_equal(ours, plain)
        if function is written_by_elements:
            assert found[0] is arguments[0]
            found, expected = found[1], expected[1]
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_places_of_views_are_no_part_of_the_program() -> None:
    compiled = pyrelay.jit(written_whole)
    x = np.arange(12.0)
    for k in range(1, 5):
        compiled(x[: 12 - k], x[k:])
    (inner,) = compiled._overlapping.values()
    assert inner.cache_info().compilations == 1


def test_what_is_no_slice_of_one_array_is_refused() -> None:
    def first(a, held):
        a[0] = 5.0
        return held["b"].sum()

    x = np.zeros(6)
    with pytest.raises(pyrelay.AliasError, match=r"a, which shares memory with held.*\n.*copy\(\)"):
        pyrelay.jit(first)(x[:4], {"b": x[2:]})
    with pytest.raises(pyrelay.AliasError, match=r"shares memory with b\.\n.*b\.copy\(\)"):
        pyrelay.jit(written_whole)(x[:4], x.view(np.int64)[2:])
    assert not x.any()
    assert overlapping.found((x[:2], x[2:])) is None
