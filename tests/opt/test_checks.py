"""Checks of positions that hold, or that are made again, go; all others stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops, run

import pyrelay
from pyrelay.ir.nodes import Module
from pyrelay.opt.checks import checks
from pyrelay.opt.commits import commits
from pyrelay.opt.ranges import ranges

X = np.arange(1.0, 8.0)
PLACES = np.array([3, -9, 2, 90, 0])


def looked_through(function: Callable[..., Any], *args: Any) -> Module:
    before = core(function, *args)
    module = after(before, ranges, commits, checks)
    assert_same_runs(before, module, args)
    return module


INSIDE: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("a place that a sort gives", lambda x, k: x[np.argsort(x)]),
    ("places of true flags", lambda x, k: x[np.nonzero(x > 2.0)[0]]),
    ("numbers in order", lambda x, k: x[np.arange(len(x))]),
    ("numbers in order, moved", lambda x, k: x[np.arange(len(x) - 1) + 1]),
    ("numbers in order, backwards", lambda x, k: x[len(x) - 1 - np.arange(len(x))]),
    ("numbers in order by axes", lambda x, k: x[np.arange(len(x)).reshape(1, -1, 1)]),
    ("numbers of a table, clipped", lambda x, k: np.arange(10.0)[np.clip(k, 0, 9)]),
    ("numbers of a table, by bounds", lambda x, k: np.arange(9.0)[np.minimum(np.maximum(k, 2), 7)]),
    ("numbers of a table, in a ring", lambda x, k: np.arange(10.0)[k % 10]),
    ("flags", lambda x, k: np.arange(10.0)[(k > 2).astype(int)]),
    ("one of two", lambda x, k: np.arange(10.0)[np.where(k > 2, 9, 0)]),
    ("places of a search", lambda x, k: np.zeros(len(x) + 1)[np.searchsorted(x, k)]),
    ("short unsigned numbers", lambda x, k: np.zeros(256)[k.astype(np.uint8)]),
    ("several axes", lambda x, k: np.zeros((4, 10))[k % 4, np.clip(k, 0, 9)]),
)


@pytest.mark.parametrize(("name", "program"), INSIDE, ids=[name for name, _ in INSIDE])
def test_positions_that_lie_inside_are_not_checked(name: str, program: Any) -> None:
    found = ops(looked_through(program, X, PLACES))
    assert found["gather_inside"] == 1
    assert not found["gather"]


OUTSIDE: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("any numbers", lambda x, k: x[k]),
    ("one too many", lambda x, k: np.arange(10.0)[np.clip(k, 0, 10)]),
    ("one too few", lambda x, k: np.arange(10.0)[np.clip(k, -1, 9)]),
    ("a ring of another size", lambda x, k: np.arange(10.0)[k % 11]),
    ("a ring of no size, maybe", lambda x, k: x[k % len(x)]),
    ("an array that may be empty", lambda x, k: x[np.clip(k, 0, len(x) - 1)]),
    ("numbers in order, moved beyond", lambda x, k: x[np.arange(len(x)) + 1]),
    ("sums in few bits",
     lambda x, k: np.arange(10.0)[np.clip(k, 0, 9).astype(np.int8) + np.int8(0)]),
    ("one axis of two", lambda x, k: np.zeros((4, 10))[k % 4, k]),
    ("places of a search, without the end", lambda x, k: x[np.searchsorted(x, k)]),
)


@pytest.mark.parametrize(("name", "program"), OUTSIDE, ids=[name for name, _ in OUTSIDE])
def test_others_are_checked(name: str, program: Any) -> None:
    found = ops(looked_through(program, X, PLACES))
    assert found["gather"] == 1
    assert not found["gather_inside"]


def test_an_array_that_is_empty_after_all_is_an_error() -> None:
    def program(x: Any, k: Any) -> Any:
        return x[k % len(x)], x[np.clip(k, 0, len(x) - 1)]

    module = after(core(program, X, PLACES), ranges, commits, checks)
    assert isinstance(run(module, (X[:0], PLACES)), IndexError)


def test_a_scatter_is_the_check_of_its_positions() -> None:
    def counted(x: Any, k: Any) -> Any:
        counts = np.zeros(5, np.int64)
        np.add.at(counts, k, 1)
        y = np.zeros(5)
        y[k] = 2.0
        return counts, y

    module = looked_through(counted, X, np.array([1, 4, -5, 1]))
    assert not ops(module)["gather"]
    error = run(module, (X, PLACES))
    assert isinstance(error, IndexError)
    assert str(error) == "index -9 is out of bounds for axis 0 with size 5"
    with pytest.raises(IndexError) as caught:
        pyrelay.jit(counted)(X, PLACES)
    assert caught.value.span.line == counted.__code__.co_firstlineno + 2


def test_arrays_of_the_caller_are_as_python_leaves_them() -> None:
    def written(x: Any, k: Any) -> Any:
        x[k] = 0.0
        return x.sum()

    def added(x: Any, k: Any) -> None:
        np.add.at(x, k, 1.0)

    for program in (written, added):
        assert ops(looked_through(program, X.copy(), np.array([1, 2])))["gather"] == 1
        mine = X.copy()
        with pytest.raises(IndexError):
            pyrelay.jit(program)(mine, PLACES)
        assert mine.tolist() == X.tolist()


def test_what_is_read_or_comes_before_another_error_stays() -> None:
    def read(x: Any, k: Any) -> Any:
        y = np.zeros(len(x))
        y[k] += 1.0
        return y

    def between(x: Any, k: Any, d: Any) -> Any:
        x[k]
        y = np.zeros(len(x))
        z = 1 // d
        y[k] = z
        return y

    assert ops(looked_through(read, X, np.array([1, 2])))["gather"] == 1
    before = core(between, X, np.array([1, 2]), 1)
    module = after(before, ranges, commits, checks)
    for given in ((X, np.array([1, 2]), 0), (X, PLACES, 0), (X, PLACES, 1)):
        assert_same_runs(before, module, given)


def test_derivatives_go_through_what_is_not_checked() -> None:
    def program(x: Any) -> Any:
        return (x[np.argsort(x)] * np.arange(7.0)).sum()

    x = np.array([3.0, 1.0, 2.0, 9.0, 4.0, -1.0, 0.5])
    wanted = np.empty(7)
    wanted[np.argsort(x)] = np.arange(7.0)
    np.testing.assert_allclose(pyrelay.grad(program)(x), wanted)


def test_a_histogram_is_one_kernel_and_the_adding_up() -> None:
    def counted(x: Any) -> Any:
        return np.histogram(x, bins=16, range=(-2.0, 2.0))[0]

    function = pyrelay.jit(counted)
    x = np.concatenate([np.linspace(-3, 3, 97), [np.nan, np.inf, -2.0, 2.0]])
    np.testing.assert_array_equal(function(x), counted(x))
    text = str(function.ir(x, stage="fuse"))
    assert text.count(" = kernel @") == 2  # with the zeros
    assert "gather(" not in text
