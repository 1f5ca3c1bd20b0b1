"""Functions of their own: which extents they know, and how many of them there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config


def powers(x: Any, w: Any, n: int) -> Any:
    if n == 0:
        return x
    return np.tanh(w @ powers(x, w, n - 1)[: x.shape[0]])


def halves(x: Any) -> Any:
    if len(x) <= 1:
        return x * 2.0
    m = len(x) // 2
    return np.concatenate([halves(x[:m]) + 1.0, halves(x[m:])])


def several(a: Any, b: Any, c: Any, w: Any) -> Any:
    def scaled(x: Any, n: int) -> Any:
        return x if n == 0 else scaled(x * 0.5, n - 1)

    return scaled(a, 2).sum() + scaled(b, 3).sum() + scaled(c, 4).sum() + scaled(w, 5).sum()


def sunk(rows: list[str]) -> list[list[str]]:
    grid = [list(row) for row in rows]

    def sink(i: int, j: int) -> None:
        if i < 0 or i >= len(grid) or grid[i][j] != "1":
            return
        grid[i][j] = "0"
        sink(i + 1, j)
        sink(i - 1, j)

    sink(0, 0)
    sink(2, 0)
    return grid


def vector(n: int) -> Any:
    return np.linspace(-1.0, 1.0, n)


def test_what_a_recursion_passes_on_as_it_is_keeps_its_size() -> None:
    f = pyrelay.jit(powers)
    w = np.outer(vector(3), vector(3))
    np.testing.assert_allclose(f(vector(3), w, 4), powers(vector(3), w, 4))
    text = f.ir(vector(3), w, 4)
    assert not any(word in text for word in ("check_equal", "refine", "min("))


def test_its_size_is_a_symbol_still() -> None:
    f = pyrelay.jit(powers)
    for n in (3, 5, 8):
        w = np.outer(vector(n), vector(n))
        np.testing.assert_allclose(f(vector(n), w, 4), powers(vector(n), w, 4))
    assert f.cache_info().compilations == 1


def test_a_recursion_on_parts_is_compiled_once_for_all_sizes() -> None:
    f = pyrelay.jit(halves)
    for n in (8, 5, 1, 2, 13):
        np.testing.assert_array_equal(f(vector(n)), halves(vector(n)))
    assert f.cache_info().compilations == 1


def test_calls_with_several_sizes_share_a_function_for_all_sizes() -> None:
    f = pyrelay.jit(several)
    args = [vector(n) for n in (3, 4, 5)]
    w = np.outer(vector(3), vector(3))
    np.testing.assert_allclose(f(*args, w), several(*args, w), atol=1e-15)
    assert f.ir(*args, w).count("def @") == 1 + 2 + 1  # entry; vectors of 3 and of n; a matrix


def test_functions_that_rest_on_one_that_was_given_up_are_made_anew() -> None:
    """The function of the second call had what the last row's left of a row in between."""
    rows = ["10000", "00000", "10000"]
    with config.override(interpret=True):
        assert pyrelay.jit(sunk)(rows) == sunk(rows)


def towers(n):
    pegs = [list(range(n, 0, -1)), [], []]

    def move(k, source, spare, target):
        if k > 0:
            move(k - 1, source, target, spare)
            pegs[target].append(pegs[source].pop())
            move(k - 1, spare, source, target)

    move(n, 0, 1, 2)
    return pegs


def alternating(n):
    rows = [[1], [], []]

    def put(k, here, there):
        if k > 0:
            rows[here].append(k)
            put(k - 1, there, here)

    put(n, 0, 2)
    return rows


@pytest.mark.parametrize("function", [towers, alternating])
def test_parameters_that_a_recursion_computes_choose_among_lists(function):
    assert pyrelay.jit(function)(4) == function(4)


def test_one_program_is_for_all_ranges_of_a_step() -> None:
    squares = pyrelay.jit(lambda numbers: [k * k for k in numbers])
    for numbers in (range(5), range(0), range(100)):
        assert squares(numbers) == [k * k for k in numbers]
    assert squares.cache_info().compilations == 1
    assert squares(range(3, 9)) == [9, 16, 25, 36, 49, 64]
    assert squares(range(-3, 3)) == [9, 4, 1, 0, 1, 4]
    assert squares.cache_info().compilations == 2
