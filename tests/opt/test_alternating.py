"""Arrays of which rounds update a part from their own neighbours alternate between two buffers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pyrelay


def smoothed(u, v, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, 2:] - 3 * u[1:-1, :-2])
    return u


def both(u, v, steps):
    for _ in range(steps):
        w = u[1:-1, 1:-1] * v[1:-1, 1:-1]
        lu, lv = u[:-2, 1:-1] - u[1:-1, 2:], v[2:, 1:-1] - v[1:-1, :-2]
        u[1:-1, 1:-1] += 0.1 * lu - w
        v[1:-1, 1:-1] += 0.2 * lv + w
    return u, v


def with_edges(u, v, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] = 0.5 * (u[:-2, 1:-1] + u[2:, 1:-1])
        u[0, :] = 0.0
        u[:, -1] = v[:, 0]
    return u


def until_small(u, v, steps):
    rounds = 0
    change = 1.0
    while change > 0.01 and rounds < steps:
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        change = np.max(np.abs(new - u))
        u = new
        rounds += 1
    return u, rounds


def again_and_again(u, v, steps):
    for _ in range(3):
        for _ in range(steps):
            u[1:, 1:] = 0.5 * (u[:-1, 1:] + u[1:, :-1])
        v[:, 0] += u[:, 1]
    return u, v


ALTERNATING = (smoothed, both, with_edges, until_small, again_and_again)


def edges_of_the_round(u, v, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] = 0.5 * (u[:-2, 1:-1] + u[2:, 1:-1])
        u[0, :] = u[1, :]  # an element of it, in a corner, is of the round before
        u[:, 0] = u[:, 1]
    return u


def other_parts(u, v, steps):
    for k in range(steps):
        u[k, 1:] = 0.5 * (u[k, :-1] + u[k, 1:])
    return u


def old_and_new(u, v, steps):
    old = u
    for _ in range(steps):
        new = u.copy()
        new[1:-1, 1:-1] = u[2:, 1:-1] + 0.5 * old[1:-1, 1:-1]
        old, u = u, new
    return u


def sometimes(u, v, steps):
    for k in range(steps):
        if k % 2:
            u[1:-1, 1:-1] = 0.5 * (u[:-2, 1:-1] + u[2:, 1:-1])
        u[0, 1:-1] = 0.5 * (u[0, :-2] + u[0, 2:])
    return u


def own_elements(u, v, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] = 0.5 * (u[1:-1, 1:-1] + v[:-2, 1:-1])
    return u


COPIED = (edges_of_the_round, other_parts, old_and_new, sometimes, own_elements)


@pytest.mark.parametrize("function", [*ALTERNATING, *COPIED])
def test_arrays_have_the_values_that_python_gives_them(function) -> None:
    rng = np.random.default_rng(0)
    for shape in ((9, 9), (70, 71))[function not in (smoothed, both) :]:
        u, v = rng.random(shape), rng.random(shape)
        for steps in (0, 1, 4, 5):
            mine, theirs = (u.copy(), v.copy()), (u.copy(), v.copy())
            found, expected = pyrelay.jit(function)(*mine, steps), function(*theirs, steps)
            for a, b in zip((found, *mine), (expected, *theirs), strict=True):
                for x, y in zip(np.atleast_1d(*a), np.atleast_1d(*b), strict=True):
                    np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


def _carried(function) -> int:
    """The arrays that the loops of a function carry, over large arrays."""
    u = np.ones((100, 100))
    text = str(pyrelay.jit(function).ir(u, u.copy(), 3, stage="fuse"))
    carried = re.findall(r"loop \((.*?)\) (?:index|while|exits)", text)
    return sum(len(re.findall(r"f64\[\w+, \w+\] =", each)) for each in carried)


@pytest.mark.parametrize("function", ALTERNATING)
def test_updates_from_neighbours_alternate(function) -> None:
    assert _carried(function) == {both: 4, again_and_again: 4}.get(function, 2)


@pytest.mark.parametrize("function", COPIED)
def test_other_updates_do_not(function) -> None:
    assert _carried(function) == (2 if function is old_and_new else 1)


def test_rounds_copy_nothing_and_one_copy_stands_in_front() -> None:
    u = np.ones((200, 200))
    text = str(pyrelay.jit(smoothed).code(u, u, 3))
    before, _, rounds = text.partition("plan main")[2].partition("loop0:")
    assert before.count(" copy ") == 1
    assert " copy " not in rounds
