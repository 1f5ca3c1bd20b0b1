"""The indices of a row step from row to row; divided out is only where the first row stands."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay


def in_three(x):
    return x[1:, 1:, 1:] - 2.0 * x[:-1, :-1, :-1]


def in_four(x):
    return x[:, 1:, 1:, :-1] * 2.0 + x[:, :-1, :-1, 1:]


def by_plane(x):
    return np.maximum(x - x[:, :1, :1] * 0.5, 0.25)


def in_rows(x):
    return np.sum(x[1:, 1:, 1:] * x[:-1, :-1, :-1], axis=-1)


def enlarged(x):
    return np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)


def in_place(x):
    x[1:, 1:, 1:] += x[:-1, 1:, :1]
    return x


CASES = (
    (in_three, (5, 4, 7)), (in_three, (3, 1, 4)), (in_three, (64, 40, 33)), (in_four, (2, 3, 4, 5)),
    (in_four, (3, 2, 9, 2)), (in_four, (4, 17, 31, 40)), (by_plane, (3, 4, 5)),
    (by_plane, (0, 4, 5)), (by_plane, (2, 0, 3)), (in_rows, (4, 5, 6)), (in_rows, (30, 50, 40)),
    (in_place, (4, 5, 6)), (enlarged, (4, 5, 3)), (enlarged, (1, 1, 1)), (enlarged, (40, 33, 3)),
)


@pytest.mark.parametrize(("function", "shape"), CASES)
def test_rows_are_those_of_numpy(function, shape) -> None:
    x = np.random.default_rng(0).random(shape)
    np.testing.assert_allclose(pyrelay.jit(function)(x.copy()), function(x.copy()), rtol=1e-13)


def test_only_the_first_row_is_divided() -> None:
    code = str(pyrelay.jit(in_rows).code(np.ones((4, 5, 6))))
    before, _, rows = code.partition("for i0 in range(begin, end)")
    assert "= floor_divide(begin, " in before
    assert "divide" not in rows
    assert "remainder" not in rows


def test_blocks_of_rows_are_not_divided_either() -> None:
    code = str(pyrelay.jit(enlarged).code(np.ones((4, 5, 3))))
    _, _, rows = code.partition("for i0 in range(")
    assert "divide" not in rows.partition("\n")[2]
    assert "remainder" not in rows


@pytest.mark.parametrize("function", [in_three, in_four, by_plane])
def test_rows_of_planes_are_not_divided(function) -> None:
    x = np.ones((4, 5, 6, 7) if function is in_four else (4, 5, 6))
    _, _, rows = str(pyrelay.jit(function).code(x)).partition("for i1 in range(")
    assert "divide(" not in rows.partition("\n")[2]
    assert "remainder(" not in rows


def weighted(x, w):
    return np.sum(x * w, axis=1)


def test_where_a_row_begins_is_counted() -> None:
    x, w = np.ones((9, 5)), np.ones(5)
    code = str(pyrelay.jit(weighted).code(x, w))
    before, _, rows = code.partition("for i0 in range(begin, end)")
    assert "= begin * n0" in before
    assert "i0 *" not in rows
