"""Filled arrays that loops write: which are filled at all, and for whom."""

from __future__ import annotations

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

import pyrelay
from pyrelay.lower.kernels import program_arrays
from pyrelay.opt.dce import dce
from pyrelay.opt.fills import LARGEST_IN_FRAMES, fills
from pyrelay.pipeline import lowered


def elements(x, n):
    found = np.empty(n)
    for i in range(n):
        if x[i % 3] > 0.5:
            found[i] = x[i % 3]
        else:
            found[i] = 2.0 * i
    return found


def grid(x, n):
    found = np.zeros((n, len(x)))
    for i in range(n):
        for j in range(len(x)):
            found[i, j] = x[j] * i
            found[i, j] += found[i, j] * 0.5
    return found


def colours(x, n):
    found = np.empty((n, len(x), 3))
    for i in range(n):
        for j in range(len(x)):
            found[i, j, 0] = x[j]
            found[i, j, 2] = i
            found[i, j, 1] = 7.0
    return found


@pytest.mark.parametrize("program", [elements, grid, colours])
def test_what_a_loop_writes_is_not_filled_before(program) -> None:
    arguments = np.array([0.2, 0.9, 0.6]), 5
    before = lowered(core(program, *arguments), "optimise")
    module = after(before, fills, dce)
    assert ops(module)["undef"] == 1
    assert not ops(module)["broadcast_to"]
    assert_same_runs(before, module, arguments)
    for n in (0, 1, 40):
        want = program(arguments[0], n)
        np.testing.assert_array_equal(pyrelay.jit(program)(arguments[0], n), want)


def some(x, n):
    found = np.zeros(n)
    for i in range(n):
        if x[i % 3] > 0.5:
            found[i] = 1.0
    return found


def all_but_one(x, n):
    found = np.zeros(n)
    for i in range(1, n):
        found[i] = x[0]
    return found


def before(x, n):
    found = np.zeros(n)
    for i in range(n):
        found[i] = found[i - 1] + x[0]
    return found


def until(x, n):
    found = np.zeros(n)
    for i in range(n):
        found[i] = x[i % 3]
        if x[i % 3] > 0.5:
            break
    return found


def two_of_three(x, n):
    found = np.zeros((n, 3))
    for i in range(n):
        found[i, 0] = x[0]
        found[i, 2] = x[1]
    return found


def ahead(x, n):
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            found[i, j] = x[1] + found[j, i]
    return found


def in_one_arm(x, n):
    found = np.zeros(n)
    for i in range(n):
        if x[i % 3] > 0.5:
            found[i] = x[0]
        else:
            found[n - 1 - i] = x[1]
    return found


@pytest.mark.parametrize(
    "program", [some, all_but_one, before, until, two_of_three, ahead, in_one_arm]
)
def test_what_a_loop_may_read_or_leave_is_filled(program) -> None:
    arguments = np.array([0.2, 0.9, 0.6]), 5
    module = after(lowered(core(program, *arguments), "optimise"), fills, dce)
    assert ops(module)["broadcast_to"] == 1
    assert not ops(module)["undef"]


def three(n):
    a, b, c = np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(1, n):
        a[i] = b[n - i] + 1.0
        b[i] = c[n - i] + a[i - 1]
        c[i] = a[n - i] * 2.0
    return a, b, c


def test_arrays_filled_alike_are_no_copies_of_each_other() -> None:
    compiled = pyrelay.jit(three)
    for got, want in zip(compiled(9), three(9), strict=True):
        np.testing.assert_array_equal(got, want)
    assert "copy" not in str(compiled.code(9))


def pushed(x, n):
    stack = np.empty(n * 3)
    top = 0
    for i in range(n):
        if x[i % 3] > 0.5:
            stack[top] = x[i % 3]
            top += 1
    total = 0.0
    while top > 0:
        top -= 1
        total += stack[top]
    return total


def pushed_into_zeros(x, n):
    stack = np.zeros(n * 3)
    top = 0
    for i in range(n):
        if x[i % 3] > 0.5:
            stack[top] = x[i % 3]
            top += 1
    return stack


def pushed_onto_few(x, n):
    stack = np.empty(9)
    top = 0
    for i in range(n):
        if x[i % 3] > 0.5:
            stack[top] = x[i % 3]
            top += 1
    return stack[:top].sum()


def pushed_truths(x, n):
    stack = np.empty(n, bool)
    for i in range(n):
        if x[i % 3] > 0.5:
            stack[i] = True
    return stack[1]


def test_what_np_empty_makes_is_not_filled_for_a_loop_that_writes_some_of_it() -> None:
    arguments = np.array([0.2, 0.9, 0.6]), 5
    module = after(lowered(core(pushed, *arguments), "optimise"), fills, dce)
    assert ops(module)["undef"] == 1
    assert not ops(module)["broadcast_to"]
    for n in (1, 40):
        assert pyrelay.jit(pushed)(arguments[0], n) == pushed(arguments[0], n)


@pytest.mark.parametrize("program", [pushed_into_zeros, pushed_onto_few, pushed_truths])
def test_zeros_truth_values_and_what_may_lie_in_a_frame_are_filled(program) -> None:
    arguments = np.array([0.2, 0.9, 0.6]), 5
    module = after(lowered(core(program, *arguments), "optimise"), fills, dce)
    assert ops(module)["broadcast_to"] == 1
    assert not ops(module)["undef"]


def test_arrays_of_frames_are_small_enough_to_be_filled() -> None:
    assert program_arrays.LARGEST_LOCAL <= LARGEST_IN_FRAMES


def weighed(w, x, k):
    rows = np.empty((len(x), 300))
    for i in range(k):
        rows[i] = x[i]
    return np.sum((rows @ w)[:k])


def test_where_derivatives_are_taken_np_empty_is_zeros() -> None:
    w, x = np.ones((300, 2)), np.ones((3, 300))
    marked = lowered(core(weighed, w, x, 2), "infer")
    assert "arbitrary" in str(marked)
    asked = lowered(core(pyrelay.grad(weighed), w, x, 2), "grad")
    assert "arbitrary" not in str(asked)
    np.testing.assert_array_equal(pyrelay.grad(weighed)(w, x, 2), np.full((300, 2), 2.0))
