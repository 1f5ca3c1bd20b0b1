"""Arrays that change places in loops and branches: one kernel, which finds them by addresses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.nodes import Var
from pyrelay.opt.exchanges import Groups
from tests.devices.running_kernels import needs_compiler


def stencil(u: Any, steps: int) -> Any:
    u, v = u.copy(), u.copy()
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u, v = v, u
    return u


def wave(u: Any, steps: int) -> Any:
    old, now, new = u.copy(), u.copy(), np.zeros(len(u))
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            new[i] = 2.0 * now[i] - old[i] + 0.2 * (now[i + 1] - 2.0 * now[i] + now[i - 1])
        old, now, new = now, new, old
    return old, now, new


def on_a_condition(u: Any, steps: int) -> Any:
    n = len(u)
    u, v = u.copy(), np.ones(n)
    for k in range(steps):
        for i in range(n):
            if u[i] > v[n - 1 - i]:
                u, v = v, u
            u[i] = 0.5 * (u[i] + v[k % n])
    return u, v


def by_inner_loops(u: Any, steps: int) -> Any:
    n = len(u)
    u, v = u.copy(), np.ones(n)
    for k in range(steps):
        for i in range(k):
            u, v = v, u
            u[i % n] -= 0.25 * v[(i + 1) % n]
        if k % 3 == 1:
            u, v = v, u
    return u, v


def distances(u: Any, steps: int) -> Any:
    before = 1.0 * np.arange(len(u) + 1)
    for value in u:
        row = np.full(len(u) + 1, 1.0 * steps)
        for i in range(len(u)):
            row[i + 1] = min(before[i] + abs(u[i] - value), row[i] + 1.0, before[i + 1] + 1.0)
        before = row
    return before


def copied_beside(u: Any, steps: int) -> Any:
    n = len(u)
    u, v, w = u.copy(), np.ones(n), np.zeros(n)
    k = 0
    while k < steps:
        k += 1
        if k % 3 == 2:
            u, w = w, u
        else:
            w[0] -= u[k % n]
        for i in range(n):
            v[i] = w[i]
    return v, u


def left_early(u: Any, steps: int) -> Any:
    u, v = u.copy(), np.ones(len(u))
    k = 0
    while True:
        u, v = v, u
        u[k % len(u)] += 0.5 * v[0]
        k += 1
        if k > steps:
            break
    return u, v


PROGRAMS = [
    stencil, wave, on_a_condition, by_inner_loops, distances, copied_beside, left_early,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_arrays_change_places_inside_of_one_kernel(f: Any) -> None:
    fast = pyrelay.jit(f)
    u = np.linspace(-1.0, 2.0, 20)
    for steps in (0, 1, 2, 3, 10):
        for got, expected in zip(np.atleast_2d(fast(u, steps)), np.atleast_2d(f(u, steps)),
                                 strict=True):
            np.testing.assert_array_equal(got, expected)
    plan = fast.code(u, 3)
    assert not re.search(r"^#\s+\d+\s+if .* go to|^#\s+loop\d", plan, re.MULTILINE)


@needs_compiler
@pytest.mark.parametrize("f", [wave, on_a_condition], ids=lambda f: f.__name__)
def test_the_emulator_finds_them_too(f: Any) -> None:
    u = np.linspace(-1.0, 2.0, 20)
    result = pyrelay.jit(f, device="cuda_emulator")(u, 5)
    for got, expected in zip(np.atleast_2d(result), np.atleast_2d(f(u, 5)), strict=True):
        np.testing.assert_array_equal(got, expected)


A, B, C, P, Q, R, S = (Var(name) for name in "abcpqrs")


def test_places_that_were_exchanged_with_others_are_one_group() -> None:
    groups = Groups()
    groups.exchange([A, B], [P, Q])
    assert groups.together([P, A]) is None
    assert groups.together([Q, P]) == {A: None, B: None}
    groups.exchange([Q, C], [R, S])
    assert groups.buffers(R) == {A, B, C}
    assert groups.together([P, R]) is None
    assert set(groups.together([P, R, S]) or ()) == {A, B, C}
    assert groups.all_of({A, B, C}) == [R, S, P]
    assert groups.all_of({A, B}) is None


def test_what_ends_in_a_group_is_brought_home_with_all_of_it() -> None:
    groups = Groups()
    groups.exchange([A, B], [P, Q])
    assert dict(groups.settled([P], {P: B, Q: A})) == {P: B, Q: A}
    assert dict(groups.settled([Q], {P: A, Q: A})) == {P: A, Q: B}
    assert dict(groups.settled([C], {})) == {}
