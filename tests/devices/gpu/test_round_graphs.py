"""Rounds of a loop are launched many at a time, and give what they give one by one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import programs, round_graphs
from pyrelay.devices.gpu.round_graphs import RoundGraphs
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler

pytestmark = needs_compiler
ON = "cuda_emulator"
RNG = np.random.default_rng(0)
X = RNG.random(23)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    made = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", made)
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 0)  # no loops as one kernel
    yield made
    assert made.recorded is None


def flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in flat(each)]
    return [value]


def work_of(driver: Counted, function: Callable[..., Any], *args: Any, calls: int = 3) -> int:
    """Launches by the host, graphs included, in the last of some calls, all of them as in plain
    Python: results, their types, what becomes of the arguments."""
    compiled, before = pyrelay.jit(function, device=ON), 0
    for _ in range(calls):
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        before = driver.launched + driver.replayed
        found, wanted = compiled(*mine), function(*theirs)
        for one, other in zip(flat((found, mine)), flat((wanted, theirs)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
            assert type(one) is type(other)
    return driver.launched + driver.replayed - before


# -- counted loops ---------------------------------------------------------------------------------


def adam(w: Any, g: Any, n: int) -> Any:
    m, v, b = np.zeros_like(w), np.zeros_like(w), 1.0
    for t in range(n):
        b = b * 0.9
        m = 0.9 * m + 0.1 * (g * w)
        v = 0.99 * v + 0.01 * (g * w) ** 2
        w = w - 0.01 * m / (1 - b) / (np.sqrt(v) + 1e-8) + t
    return w


def test_a_hundred_rounds_are_four_graphs(driver: Counted) -> None:
    # 32, 32, 32 and 4; zeros before them. The powers and `t` are computed ahead.
    assert work_of(driver, adam, X, X, 100) <= 4 + 3


def rooms(x: Any, n: int) -> Any:
    out = np.zeros(n)
    for i in range(n):
        x = x * 0.9 + x[i % x.shape[0]]
        out[i] = x.sum()
    return out, x


def diffusion(u: Any, n: int, dt: float) -> float:
    t = 0.0
    for _ in range(n):
        u[1:-1] = u[1:-1] + dt * (u[2:] - 2 * u[1:-1] + u[:-2]) + t
        t += dt
    return t


def swapped(u: Any, v: Any, n: int) -> Any:
    for k in range(n):
        u, v = v, u * 0.5 + v.max() * k
    return u - v


def downwards(x: Any, n: int) -> Any:
    rate = 1.0
    for k in range(n, 0, -1):
        x = x - rate * np.cos(x) / k
        rate *= 0.95
    return x, rate


def spiral(x: Any, n: int) -> Any:
    z = 1 + 0j
    for i in range(n):
        z = z * (0.9 + 0.1j)
        x = x * z + i
        x = x / (1 + np.abs(x).max())
    return x, z


def every_third(x: Any, m: Any) -> Any:
    for i in range(0, x.shape[0], 3):
        m = m @ m * 0.5 + x[i]
        m = m / (1 + np.abs(m).max())
    return m


def history(x: Any, n: int) -> Any:
    hist = np.zeros((n, x.shape[0]), np.float32)
    for i in range(n):
        x = np.float32(0.5) * x + np.float32(i)
        hist[i] = x
        hist[i, 0] = i
    return hist


def congruences(x: Any, n: int) -> Any:
    k = 3
    for _ in range(n):
        k = (k * 5 + 1) % 17
        x = np.maximum(x + k * 0.01, k / 17)
    return x, k


def lows(x: Any, n: int) -> Any:
    best = np.inf
    for _ in range(n):
        x = x * 0.9
        best = min(best, x.sum())
    return best, x


# -- loops that end, and branches ------------------------------------------------------------------


def cooled(x: Any, n: int) -> Any:
    i = 0
    while i < n and (x * x).sum() > 1e-3:
        x = x * 0.7
        i += 1
    return x, i


def roots(x: Any, tol: float) -> Any:
    k = 0
    for k in range(90):  # noqa: B007 -- the last one is a result
        y = 0.5 * (x + 2.0 / x)
        if np.abs(y - x).max() < tol:
            break
        x = y
    return x, k


def fixed_point(x: Any, tol: float) -> Any:
    error = 1.0
    while error > tol:
        y = np.cos(x)
        error = np.abs(y - x).max()
        x = y
    return x, error


def counted_out(x: Any, n: int) -> Any:
    i = 0
    while True:
        x = np.cos(x) * i
        i += 2
        if i >= n:
            break
    return x, i


def odd_one(x: Any, n: int) -> Any:
    for i in range(n):
        x = np.sqrt(np.abs(x)) + 1.0 / (i - 20) if i != 20 else x * 2
    return x


def in_place_until(x: Any, n: int) -> Any:
    seen, total = np.zeros(n), 0.0
    for i in range(n):
        x *= 0.9
        seen[i] = x[0]
        total += seen[i]
        if x.max() < 0.05:
            break
    return seen, total


def else_branch(x: Any, n: int) -> Any:
    count = 0
    for _ in range(n):
        x = x * 0.9 + 0.01
        if x.sum() < 1.0:
            break
        count += 1
    else:
        count = -1
    return x, count


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...], int]] = [
    (rooms, (X, 41), 7), (diffusion, (RNG.random(50), 50, 0.1), 4), (swapped, (X, X * 2, 29), 7),
    (downwards, (X, 37), 5), (spiral, (X * (1 + 1j), 40), 3), (lows, (X, 45), 10),
    (every_third, (RNG.random((100, 5)), RNG.random((5, 5))), 5),
    (history, (X.astype(np.float32), 35), 6), (congruences, (X, 64), 3),
    (cooled, (X * 9, 100), 9), (cooled, (X * 9, 11), 8), (roots, (X + 1, 1e-10), 18),
    (roots, (X + 1, -1.0), 22), (fixed_point, (X, 1e-9), 12), (counted_out, (X, 50), 4),
    (odd_one, (X, 33), 6), (in_place_until, (X, 60), 18), (else_branch, (X, 100), 20),
    (else_branch, (X, 5), 10),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("function", "args", "most"), PROGRAMS)
def test_rounds_at_once(
    driver: Counted, function: Callable[..., Any], args: tuple[Any, ...], most: int
) -> None:
    assert work_of(driver, function, *args) <= most


@pytest.mark.slow
def test_failures_inside_are_those_of_python(driver: Counted) -> None:
    def walk(x: Any, steps: Any, n: int) -> Any:
        for i in range(n):
            x = x[steps] * 0.5 + i
            steps = steps + (x[0] > 30.0)
        return x

    compiled = pyrelay.jit(walk, device=ON)
    steps = np.array([0, 1, 2, 3])
    for _ in range(3):
        np.testing.assert_allclose(compiled(np.ones(4), steps, 14), walk(np.ones(4), steps, 14))
        with pytest.raises(IndexError, match=r"^index 4 is out of bounds for axis 0 with size"):
            compiled(np.ones(4), steps, 60)

    def indexed(x: Any, n: int) -> Any:
        for i in range(n):
            x = x + x[i]
        return x

    compiled = pyrelay.jit(indexed, device=ON)
    for _ in range(3):
        np.testing.assert_allclose(compiled(X, 20), indexed(X, 20))
        with pytest.raises(IndexError, match="index 23 is out of bounds for axis 0 with size 23"):
            compiled(X, 30)


@pytest.mark.slow
def test_large_states_go_round_by_round(
    driver: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_graphs, "MOST_CARRIED", 2 * X.nbytes - 1)
    found: list[Any] = []
    run = RoundGraphs.run

    def noted(*args: Any) -> Any:
        found.append(run(*args))
        return found[-1]

    monkeypatch.setattr(RoundGraphs, "run", noted)
    work_of(driver, adam, X, X, 20, calls=1)
    assert found == [None] * 20


@pytest.mark.slow
def test_a_graph_that_cannot_be_made_is_not_asked_for_again(
    driver: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def refused(*_: Any) -> None:
        asked.append(1)
        raise round_graphs.CannotCaptureError

    monkeypatch.setattr(round_graphs, "captured", refused)
    assert work_of(driver, adam, X, X, 20) >= 20
    assert len(asked) == 1


def test_rounds_copy_the_callers_array_where_something_may_fail(driver: Counted) -> None:
    def relaxed(u: Any, most: int) -> Any:
        steps, change = 0, 1.0
        while change > 1e-4 and steps < most:
            before = u.copy()
            u[1:-1] = 0.5 * (before[:-2] + before[2:])
            change = np.abs(u - before).sum() / u.sum()
            steps += 1
        return steps, u

    assert work_of(driver, relaxed, X, 20) < 20
