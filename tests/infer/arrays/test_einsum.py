"""np.einsum without anything to add up is element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import core, ops

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
