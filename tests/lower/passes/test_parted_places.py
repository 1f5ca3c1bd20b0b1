"""Loops that go around the end of an array: one loop for each piece, with the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def automaton(cells: Any, n: Any) -> Any:
    out = np.zeros((n, len(cells)), np.uint8)
    out[0] = cells
    for t in range(1, n):
        for i in range(len(cells)):
            k = 4 * out[t - 1, i - 1] + 2 * out[t - 1, i] + out[t - 1, (i + 1) % len(cells)]
            out[t, i] = (110 >> k) & 1
    return out


def moved(u: Any, n: Any) -> Any:
    m = len(u)
    for _ in range(n):
        v = np.empty(m)
        for i in range(m):
            v[i] = u[i] - 0.3 * (u[i] - u[i - 1]) + 0.1 * (u[(i + 1) % m] - u[(i - 1) % m])
        u = v
    return u


def moved_far(u: Any, n: Any) -> Any:
    m = len(u)
    for _ in range(n):
        v = np.empty(m)
        for i in range(m):
            v[i] = u[i] + 0.3 * u[i - 3] + 0.1 * u[(i + 4) % m]
        u = v
    return u


def in_two_axes(u: Any, n: Any) -> Any:
    h, w = u.shape
    v = np.empty_like(u)
    for _ in range(n):
        for i in range(h):
            for j in range(w):
                around = u[(i + 1) % h, j] + u[i - 1, j] + u[i, (j + 1) % w] + u[i, j - 1]
                v[i, j] = u[i, j] + 0.1 * (around - 4.0 * u[i, j])
        u, v = v, u
    return u


def from_the_right(u: Any, n: Any) -> Any:
    m = len(u)
    v = u.copy()
    for i in range(m - 1, -1, -1):
        v[i] = v[i - 1 if i > 0 else m - 1] + u[i + 2 if i + 2 < m else 0] + n
    return v


def stored_around(u: Any, n: Any) -> Any:
    m = len(u)
    v = np.zeros(m + n)
    for i in range(m):
        v[(i + 3) % m if i <= m - 4 else i % 2] = u[i]
    return v


_RANDOM = np.random.default_rng(0)
CELLS = [_RANDOM.integers(0, 2, n).astype(np.uint8) for n in (40, 1, 2, 3)]
ROWS = [_RANDOM.normal(size=n) for n in (40, 1, 2, 3, 17)]
PLANES = [_RANDOM.normal(size=shape) for shape in ((7, 20), (1, 1), (2, 3), (3, 1))]


@pytest.mark.parametrize(
    ("program", "arrays"),
    [(automaton, CELLS), (moved, ROWS), (moved_far, ROWS[4:]), (in_two_axes, PLANES),
     (from_the_right, ROWS), (stored_around, ROWS)],
)  # fmt: skip
def test_the_numbers_are_those_of_the_program_as_it_is(program: Any, arrays: Any) -> None:
    compiled = pyrelay.jit(program)
    for array in arrays:
        for n in (1, 4):
            got, wanted = compiled(array.copy(), n), program(array.copy(), n)
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_what_lies_in_one_piece_has_a_loop_of_its_own() -> None:
    code = str(pyrelay.jit(moved_far).code(ROWS[0], 4))
    assert "where(True," in code
    assert "where(False," in code
