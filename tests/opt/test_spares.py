"""Arrays that rounds compute anew from their neighbours change places with a spare one."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pyrelay


def rolled(u, v, steps):
    for _ in range(steps):
        u = u + 0.1 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1))
    return u, v


def both(u, v, steps):
    for _ in range(steps):
        u, v = u + 0.1 * np.roll(v, 1), v - 0.1 * np.roll(u, -1)
    return u, v


def one_beside(u, v, steps):
    for _ in range(steps):
        v = v + u
        u = 0.5 * (u + u[::-1]) + v
    return u, v


def until(u, v, steps):
    rounds = 0
    while np.max(u) > 0.55 and rounds < steps:
        u = 0.5 * u + 0.25 * (np.roll(u, 1) + np.roll(u, -1))
        rounds += 1
    return u, v * rounds


def left_early(u, v, steps):
    for k in range(steps):
        u = 0.5 * (np.roll(u, 1) + u)
        if u[0] < v[k]:
            break
    return u, v


def read_again(u, v, steps):
    change = 0.0
    for _ in range(steps):
        new = 0.5 * (np.roll(u, 1) + u)
        change += np.max(np.abs(new - u))
        u = new
    return u, v + change


def in_place(u, v, steps):
    for _ in range(steps):
        u[:] = 0.5 * (np.roll(u, 1) + u)
    return u, v


def of_the_start(u, v, steps):
    w = u
    for _ in range(steps):
        w = 0.5 * (np.roll(w, 1) + u)
    return w, u


def twice(u, v, steps):
    for _ in range(2):
        for _ in range(steps):
            u = 0.5 * (np.roll(u, 1) + u)
        v = v + u
    return u, v


def from_a_copy(u, v, steps):
    u, v = u.copy(), v.copy()
    for k in range(steps):
        old = u.copy()
        for i in range(1, len(u) - 1):
            u[i] = old[i] + 0.1 * (old[i + 1] - 2.0 * old[i] + old[i - 1])
            v[i] += old[i] * k
    return u, v


def from_a_copy_of_the_argument(u, v, steps):
    for _ in range(steps):
        old = u.copy()
        for i in range(1, len(u)):
            u[i] = 0.5 * (old[i] + old[i - 1])
            v[i] = 0.5 * (u[i] + v[i - 1])
    return u, v


def two_from_copies(u, v, steps):
    u = u.copy()
    for _ in range(steps):
        old, older = u.copy(), v.copy()
        for i in range(len(u) - 1):
            u[i] = old[i + 1] * 0.5 + older[i]
            v[i] = older[i + 1] * 0.5 + old[0]
    return u, v


FUNCTIONS = (
    rolled, both, one_beside, until, left_early, read_again, in_place, of_the_start, twice,
    from_a_copy, from_a_copy_of_the_argument, two_from_copies,
)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("size", [6, 30, 300])
def test_arrays_have_the_values_that_python_gives_them(function, size: int, steps: int) -> None:
    rng = np.random.default_rng(size)
    u, v = rng.random(size), rng.random(size)
    mine, theirs = (u.copy(), v.copy()), (u.copy(), v.copy())
    found, expected = pyrelay.jit(function)(*mine, steps), function(*theirs, steps)
    for a, b in zip((*found, *mine), (*expected, *theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_grids_change_places_as_well() -> None:
    def smoothed(a, steps):
        for _ in range(steps):
            a = 0.25 * (
                np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1)
            )
        return a

    for shape in ((3, 3), (20, 30), (64, 64)):
        a = np.random.default_rng(0).random(shape)
        for steps in (1, 4):
            np.testing.assert_allclose(
                pyrelay.jit(smoothed)(a, steps), smoothed(a, steps), rtol=1e-12
            )


@pytest.mark.parametrize("function", [rolled, both])
def test_rounds_copy_nothing(function) -> None:
    text = str(pyrelay.jit(function).code(np.ones(300), np.ones(300), 3))
    assert re.search(r"\n        v\d+ = v\d+\n", text)  # addresses change places
    assert "t0 = " not in text  # there is no memory beside
    copies = re.findall(r"store_ordered_f64\((\w+), (i\d+), load_ordered_f64\(\w+, \2\)\)", text)
    assert all(array.startswith("a") for array, _ in copies)  # into arguments, at the end


def test_a_loop_over_old_elements_begins_with_one_copy() -> None:
    def smoothed(u, steps):
        u = u.copy()
        for _ in range(steps):
            old = u.copy()
            for i in range(1, len(u) - 1):
                u[i] = 0.5 * old[i] + 0.25 * (old[i - 1] + old[i + 1])
        return u

    text = str(pyrelay.jit(smoothed).code(np.ones(300), 3))
    assert "t0 = " not in text  # there is no memory beside
    assert re.search(r"\n        v\d+ = v\d+\n", text)  # addresses change places
    copy = r"store_ordered_f64\((v\d+), (i\d+), load_ordered_f64\((v\d+), \2\)\)"
    assert len(re.findall(copy, text.split("logical_or")[-2])) == 1


def diffused(u, v, steps):
    for _ in range(steps):
        new = np.zeros_like(u)
        new[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[:-2, 1:-1] - u[1:-1, 2:])
        u = new
    return u, v


def waves(u, v, steps):
    old, now = u.copy(), v.copy()
    for _ in range(steps):
        new = np.ones_like(now)
        new[1:-1, 1:] = now[1:-1, 1:] - old[1:-1, 1:] + 0.1 * (now[:-2, 1:] + now[2:, :-1])
        old, now = now, new
    return old, now


def older_ones(u, v, steps):
    w = u
    for _ in range(steps):
        new = np.zeros_like(u)
        new[:-1] = u[1:] + 0.5 * v[:-1]
        u, v, w = new, u, new
    return u, v, w


def framed(u, v, steps):
    for _ in range(steps):
        new = np.full(u.shape, 0.5)
        new[2:-3, :-1] = u[1:-4, 1:] - 0.25 * v[:-5, :-1]
        u, v = v, new
    return u, v


def lined(u, v, steps):
    row = u[0].copy()
    for _ in range(steps):
        new = np.broadcast_to(row, u.shape).copy()
        new[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[:-2, 1:-1] - u[1:-1, 2:])
        u = new
    return u, v


@pytest.mark.parametrize("function", [diffused, waves, older_ones, framed, lined])
def test_filled_arrays_change_places_as_well(function) -> None:
    rng = np.random.default_rng(0)
    for size in (5, 30):
        u, v = rng.random((size, size + 1)), rng.random((size, size + 1))
        for steps in (0, 1, 2, 3, 7):
            found, expected = pyrelay.jit(function)(u, v, steps), function(u, v, steps)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", [diffused, waves])
def test_filled_arrays_have_no_memory_beside(function) -> None:
    u = np.ones((30, 31))
    code = str(pyrelay.jit(function).code(u, u, 3))
    assert "t0 = " not in code
    filled = re.findall(r"\n( +)store_ordered_f64\(v\d+, .*, [01]\.0\)", code)
    assert len(filled) == (4 if function is diffused else 3)  # the edges alone
    assert len(set(filled)) == 1  # line by line
