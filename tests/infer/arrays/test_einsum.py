"""np.einsum without anything to add up is element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import core, ops

import pyrelay

M, V = np.arange(12).reshape(3, 4), np.arange(3)


def scaled(m, v):
    return np.einsum("ij,i->ij", m, v)


def crossed(m, v):
    return np.einsum("ij,k->ikj", m, v)


def squared(m, v):
    return np.einsum("ij,ij->ij", m, m)


def lines(m, v):
    return np.einsum("ij,ij->i", m, m)


@pytest.mark.parametrize("function", [scaled, crossed, squared, lines])
@pytest.mark.parametrize("dtype", ["i8", "u1", "f4", "c16"])
def test_no_matrices_are_multiplied(function: Any, dtype: str) -> None:
    found = ops(core(function, M.astype(dtype), V.astype(dtype)))
    assert found.get("matmul", 0) == 0
    assert found["multiply"] == 1


def weighted(m, v):
    """The extents of the operands are known at run time only, and one array has one twice."""
    some = np.flatnonzero(v > 0)
    square, kept = m[some][:, some], v[v > 0]
    return np.einsum("ab,a,b->ab", square, kept, v[v > 0]), np.einsum("a,ab,b", kept, square, kept)


def test_extents_of_letters_are_compared_axis_by_axis() -> None:
    m = np.arange(16.0).reshape(4, 4)
    for v in (np.array([1.0, -1.0, 2.0, 3.0]), np.array([-1.0, -1.0, 2.0, -3.0])):
        for found, expected in zip(pyrelay.jit(weighted)(m, v), weighted(m, v), strict=True):
            np.testing.assert_allclose(found, expected)
