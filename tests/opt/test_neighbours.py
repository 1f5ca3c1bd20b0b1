"""Parts of vectors that are computed from their own neighbours are replaced one by one."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay


def upwind(u, c, steps):
    for _ in range(steps):
        u[1:] = u[1:] - c * (u[1:] - u[:-1])
    return u


def downwind(u, c, steps):
    for _ in range(steps):
        u[:-1] += c * (u[1:] - u[:-1])
    return u


def diffused(u, c, steps):
    for _ in range(steps):
        u[1:-1] += c * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return u


def wide(u, c, steps):
    for _ in range(steps):
        u[4:-4] = c * u[:-8] + u[1:-7] - c * u[3:-5] + np.sqrt(np.abs(u[8:]))
    return u


def wider(u, c, steps):
    for _ in range(steps):
        u[5:] = c * u[:-5] + u[5:]
    return u


def steps_of_two(u, c, steps):
    for _ in range(steps):
        u[2::2] = c * (u[2::2] + u[:-2:2])
    return u


def red_and_black(u, c, steps):
    for _ in range(steps):
        u[1:-1:2] = c * (u[:-2:2] + u[2::2])
        u[2:-1:2] = c * (u[1:-2:2] + u[3::2])
    return u


def backwards(u, c, steps):
    for _ in range(steps):
        u[1:] = c * u[:0:-1] + u[:-1]
    return u


def moved(u, c, steps):
    for k in range(steps):
        u[1:] = u[:-1]
        u[0] = c + k
    return u


def moved_far(u, c, steps):
    for k in range(steps):
        u[3:] = u[:-3]
        u[0] = c + k
    return u


def by_rows(a, c, steps):
    for _ in range(steps):
        for i in range(len(a)):
            a[i, 1:] = a[i, 1:] + c * a[i, :-1]
    return a


def by_the_row_before(a, c, steps):
    for _ in range(steps):
        for i in range(len(a)):
            a[i, 1:] = a[i, 1:] + c * a[i - 1, :-1]
    return a


def whole_beside_parts(u, c, steps):
    for _ in range(steps):
        w = u * c
        w[1:] = w[1:] - w[:-1]
        u = w + np.sum(u)
    return u


def of_old_values(u, c, steps):
    total = 0.0
    for _ in range(steps):
        slope = u[1:] - u[:-1]
        u[1:] -= c * slope
        total += np.sum(slope * u[:-1])
    return u, total


VECTORS = (
    upwind, downwind, diffused, wide, wider, steps_of_two, red_and_black, backwards,
    whole_beside_parts, of_old_values, moved, moved_far,
)


def same(function, u: np.ndarray) -> None:
    mine, theirs = u.copy(), u.copy()
    found, expected = pyrelay.jit(function)(mine, 0.25, 3), function(theirs, 0.25, 3)
    for a, b in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("size", [9, 10, 20, 37])
@pytest.mark.parametrize("function", VECTORS)
def test_vectors_have_the_values_that_python_gives_them(function, size: int) -> None:
    if function is of_old_values:
        u = np.random.default_rng(size).standard_normal(size)
        (a, s), (b, t) = pyrelay.jit(function)(u.copy(), 0.25, 3), function(u.copy(), 0.25, 3)
        np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_allclose(s, t, rtol=1e-10)
        return
    same(function, np.random.default_rng(size).standard_normal(size))


def test_items_put_into_a_list_move_those_behind_them() -> None:
    def sorted_so_far(a):
        seen, middles = [], []
        for x in a:
            k = 0
            while k < len(seen) and seen[k] < x:
                k += 1
            seen.insert(k, x)
            middles.append(seen[len(seen) // 2])
        return seen, middles

    items = [4, 1, 7, 3, 8, 5]
    assert pyrelay.jit(sorted_so_far)(items) == sorted_so_far(items)


@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("function", [upwind, downwind, diffused, steps_of_two])
def test_vectors_of_which_little_or_nothing_is_replaced(function, size: int) -> None:
    same(function, np.arange(1.0, size + 1.0))


@pytest.mark.parametrize("function", [by_rows, by_the_row_before])
@pytest.mark.parametrize("shape", [(1, 5), (4, 30), (3, 1), (5, 0)])
def test_rows_of_matrices(function, shape: tuple[int, int]) -> None:
    same(function, np.random.default_rng(1).standard_normal(shape))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128])
def test_elements_of_other_types(dtype) -> None:
    def added(u, steps):
        for _ in range(steps):
            u[2:] += u[1:-1] - u[:-2]
        return u

    u = np.arange(1, 41).astype(dtype)
    np.testing.assert_array_equal(pyrelay.jit(added)(u.copy(), 3), added(u.copy(), 3))


@pytest.mark.parametrize(
    ("function", "buffers"),
    [(upwind, 0), (downwind, 0), (diffused, 0), (wide, 0), (wider, 1), (red_and_black, 0),
     (backwards, 1)],
)
def test_only_what_reads_farther_behind_is_computed_into_memory_first(
    function, buffers: int
) -> None:
    text = str(pyrelay.jit(function).code(np.ones(100), 0.25, 3))
    assert text.count("launch") == 1
    assert text.count("= allocate") == buffers
