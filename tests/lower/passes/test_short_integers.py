"""Integers of few bits that are made of short elements are computed in 32 bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyrelay


def edges(g: Any) -> Any:
    """Products and roots of differences."""
    out = np.zeros(g.shape)
    for y in range(1, g.shape[0] - 1):
        for x in range(1, g.shape[1] - 1):
            a = int(g[y, x + 1]) - int(g[y, x - 1])
            b = int(g[y + 1, x]) - int(g[y - 1, x])
            out[y, x] = math.sqrt(a * a + b * b)
    return out


def life(g: Any) -> Any:
    """Comparisons of a sum."""
    out = np.zeros_like(g)
    for y in range(1, g.shape[0] - 1):
        for x in range(1, g.shape[1] - 1):
            n = int(g[y - 1, x]) + int(g[y + 1, x]) + int(g[y, x - 1]) + int(g[y, x + 1])
            out[y, x] = 1 if n == 3 or (n != 2 and g[y, x]) else 0
    return out


def means(g: Any) -> Any:
    """A quotient of a sum that loops make."""
    out = np.zeros(g.shape, np.int64)
    for y in range(1, g.shape[0] - 1):
        for x in range(1, g.shape[1] - 1):
            s = 0
            for i in range(-1, 2):
                for j in range(-1, 2):
                    s += int(g[y + i, x + j]) ** 2
            out[y, x] = s // 9 + s % 7
    return out


DTYPES = [np.uint8, np.int8, np.uint16, np.int16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [edges, life, means])
def test_they_are_what_python_makes(function: Any, dtype: Any) -> None:
    rng, ends = np.random.default_rng(0), np.iinfo(dtype)
    compiled = pyrelay.jit(function)
    for g in (
        rng.integers(ends.min, ends.max, (7, 40), dtype, endpoint=True),
        rng.integers(0, 4, (9, 23)).astype(dtype),
        np.where(rng.random((6, 70)) < 0.5, ends.min, ends.max).astype(dtype),
    ):
        got, expected = compiled(g), function(g)
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype


def test_only_what_fits_is_computed_so() -> None:
    bytes_, words = np.zeros((5, 9), np.uint8), np.zeros((5, 9), np.uint16)
    compiled = pyrelay.jit(edges)
    compiled(bytes_), compiled(words)
    assert "i32(" in str(compiled.code(bytes_))
    assert "i32(" not in str(compiled.code(words))  # 2 * 65535**2


def looked_up(g: Any, table: Any) -> Any:
    """Products that say where an element lies."""
    out = np.zeros(len(g))
    for i in range(len(g)):
        out[i] = table[int(g[i]) * 3 + 1]
    return out


def test_what_places_are_made_of_stays_as_it_is() -> None:
    g, table = np.arange(50, dtype=np.uint8), np.arange(800.0)
    compiled = pyrelay.jit(looked_up)
    np.testing.assert_array_equal(compiled(g, table), looked_up(g, table))
    assert "i32(" not in str(compiled.code(g, table))


def test_quotients_by_known_numbers_have_as_few_bits_as_what_is_divided() -> None:
    def ninths(g: Any) -> Any:
        out = np.zeros(len(g), np.int64)
        for i in range(len(g)):
            out[i] = int(g[i]) // 9
        return out

    for dtype, name in ((np.uint8, "u16"), (np.uint16, "u16"), (np.uint32, "u32")):
        g = np.array([0, 8, 9, 10, np.iinfo(dtype).max, np.iinfo(dtype).max - 1], dtype)
        compiled = pyrelay.jit(ninths)
        assert compiled(g).tolist() == ninths(g).tolist()
        assert f"floor_divide({name}(" in str(compiled.code(g))
