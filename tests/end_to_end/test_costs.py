"""What running and differentiating programs costs as they grow: counts, and times far apart.

The times of one store of arrays of two sizes are compared: work or memory that grew with the array
for each store would show as a ratio of the sizes, a hundred.
"""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from benchmarks.programs import plain
from pyrelay.devices.compiler import native

SMALL, LARGE = 2_000, 200_000
# How much dearer a store may be in the large array: recursion as deep as it is leaves the native
# stack, which makes its calls 10 times as dear; caches, page faults and other work do the rest.
MOST = 40


def one_by_one(x, v):
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[i] = v * y[i - 1] + y[i]
    return np.sum(y)


def put(y, i, v):
    y[i] = v * y[i] + 1.0


def by_a_helper(x, v):
    y = x.copy()
    for i in range(x.shape[0]):
        put(y, i, v)
    return np.sum(y)


def in_nested_loops(x, v):
    y = x.copy()
    for i in range(x.shape[0] // 100):
        for j in range(100):
            y[i * 100 + j] = v * y[i * 100 + j] + j
    return np.sum(y)


def by_appending(x, v):
    y = []
    for i in range(x.shape[0]):
        y.append(v * x[i])
        if y[-1] > 2.0:
            y.pop()
    total = 0.0
    for e in y:
        total += e * e
    return total


def on_branches(x, v):
    y = x.copy()
    for i in range(1, x.shape[0]):
        if y[i - 1] > 0.5:
            y[i] = v * y[i - 1] * y[i]
        else:
            y[i] += v
    return np.sum(y)


def through_rows(x, v):
    y = x.copy().reshape(-1, 100)
    for i in range(y.shape[0]):
        row = y[i]
        for j in range(100):
            row[j] = v * row[j] + i
    return np.sum(y)


def whole_rows(x, v):
    y = x.copy().reshape(-1, 100)
    for i in range(1, y.shape[0]):
        y[i] = np.sin(v * y[i - 1]) + y[i]
    return np.sum(y)


def until_the_end(x, v):
    y, i = x.copy(), 1
    while i < x.shape[0]:
        y[i] = v * y[i - 1] + y[i]
        i += 1
    return np.sum(y)


def down(y, i, v):
    if i == 0:
        return 0.0
    y[i] = v * y[i - 1] + y[i]
    return down(y, i - 1, v)


def by_recursion(x, v):
    y = x.copy()
    down(y, x.shape[0] - 1, v)
    return np.sum(y)


STORES = (
    one_by_one, by_a_helper, in_nested_loops, on_branches, through_rows, whole_rows,
    until_the_end, by_recursion, by_appending,
)  # fmt: skip


def per_store(run: Callable[..., Any], size: int) -> float:
    """Seconds per element of the best of some calls."""
    x = np.linspace(0.1, 0.9, size)
    run(x, 0.5)
    times = []
    for _ in range(7):
        started = time.perf_counter()
        run(x, 0.5)
        times.append(time.perf_counter() - started)
    return min(times) / size


@pytest.mark.parametrize("function", STORES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("differentiated", [False, True], ids=["value", "gradient"])
def test_a_store_costs_the_same_in_a_large_array(
    function: Callable[..., Any], differentiated: bool
) -> None:
    run = pyrelay.grad(function, argnums=(0, 1)) if differentiated else pyrelay.jit(function)
    assert per_store(run, LARGE) < MOST * per_store(run, SMALL)


def test_a_written_argument_is_written_in_place() -> None:
    @pyrelay.jit
    def fill(x, v):
        for i in range(x.shape[0]):
            x[i] = v * i
        return x[0]

    x = np.zeros(LARGE)
    fill(x, 2.0)
    np.testing.assert_array_equal(x, np.arange(LARGE) * 2.0)
    assert per_store(fill, LARGE) < MOST * per_store(fill, SMALL)


def test_recursion_a_hundred_thousand_calls_deep_runs_and_has_a_gradient() -> None:
    n, a = 100_000, 0.9999
    assert pyrelay.jit(plain.depth)(n, a) == pytest.approx(plain.depth_by_loop(n, a), rel=1e-12)
    step = 1e-7
    ahead, behind = (plain.depth_by_loop(n, a + d) for d in (step, -step))
    got = pyrelay.grad(plain.depth, argnums=1)(n, a)
    assert got == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)


def straight_line(count: int, name: str) -> Callable[..., Any]:
    """A function of `count` statements that do not fuse."""
    source = plain.straight_line(count).replace("chain", name)
    filename = f"<{name} of {count} statements>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def test_a_long_straight_program_has_few_kernels_and_shares_them_with_others() -> None:
    x = np.linspace(0.1, 0.2, 16)
    first, second = straight_line(400, "first"), straight_line(300, "second")
    before = native.counts.compiled
    np.testing.assert_allclose(pyrelay.jit(first)(x), first(x), rtol=1e-12)
    # The first statement and the sum of the second in two passes each, then three for every two
    # statements: one text each, whichever tests ran in this process before.
    assert native.counts.compiled - before <= 7
    before = native.counts.compiled
    np.testing.assert_allclose(pyrelay.jit(second)(x), second(x), rtol=1e-12)
    assert native.counts.compiled == before
