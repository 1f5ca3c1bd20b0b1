"""The plan goes on with native calls that nest too deeply for the native stack."""

from __future__ import annotations

import math
import signal
import threading
from typing import Any

import numpy as np
import pytest

import pyrelay


def numbered(a: Any, k: int) -> int:
    if k == len(a):
        return 0
    a[k] += a[k - 1] + 1
    rest = numbered(a, k + 1)
    a[k] += rest
    return rest + 1


def past_the_end(a: Any, k: int) -> None:
    if k >= -1:
        a[k] = k
        past_the_end(a, k + 1)


def endless(a: Any, k: int) -> None:
    if a[0] >= 0:
        a[0] += 1
        endless(a, k)


def halved(a: Any, x: float, n: int) -> float:
    """Two recursions, one of which enters the other one at every step."""
    if n == 0:
        return x
    a[n % 3] += 1.0
    return halved(a, summed(a, 0, n) / 2, n - 1)


def summed(a: Any, k: int, n: int) -> float:
    if k >= n:
        return 1.0
    a[k % 3] *= 0.5
    return a[k % 3] + summed(a, k + n // 4 + 1, n)


DEEP = 50_000
RISEN = np.arange(1, DEEP + 1) + np.arange(DEEP - 1, -1, -1)


def risen(fast: Any) -> bool:
    a = np.zeros(DEEP, np.int64)
    return fast(a, 0) == DEEP and bool((a == RISEN).all())


def test_what_was_stored_before_the_stack_ended_is_not_stored_again() -> None:
    assert risen(pyrelay.jit(numbered))


@pytest.mark.parametrize("size", [5, DEEP])
def test_an_error_in_the_plan_is_the_user_s_line(size: int) -> None:
    a = np.full(size, -1)
    with pytest.raises(IndexError, match=f"index {size} is out of bounds") as caught:
        pyrelay.jit(past_the_end)(a, 0)
    assert "a[k] = k" in str(caught.value.__notes__)
    np.testing.assert_array_equal(a, np.arange(size))


def test_a_recursion_without_an_end_is_python_s_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrelay.devices.runtime.entry.STACK_LIMIT", 1 << 22)
    a = np.zeros(2, np.int64)
    fast = pyrelay.jit(endless)
    for _ in range(2):  # the state of the first call serves the second one
        with pytest.raises(RecursionError):
            fast(a, 0)
    assert a[0] > 20_000


def test_kernels_that_the_plan_launches_stop_where_the_first_one_does() -> None:
    a, b = np.ones(3), np.ones(3)
    got = pyrelay.jit(halved)(a, 1.0, 9000)
    assert math.isfinite(got)
    with_python = python_result(b)
    assert got == pytest.approx(with_python, rel=1e-12)
    np.testing.assert_allclose(a, b)


def python_result(b: Any) -> float:
    """The same by loops: Python's own stack is too short."""
    x = 1.0
    for n in range(9000, 0, -1):
        b[n % 3] += 1.0
        places = []
        k = 0
        while k < n:
            b[k % 3] *= 0.5
            places.append(b[k % 3])
            k += n // 4 + 1
        total = 1.0
        for each in reversed(places):
            total = each + total
        x = total / 2
    return x


def test_threads_have_stacks_of_their_own() -> None:
    fast = pyrelay.jit(numbered)
    fine: list[bool] = []
    before = threading.stack_size(1 << 19)
    try:
        threads = [threading.Thread(target=lambda: fine.append(risen(fast))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.stack_size(before)
    assert fine == [True] * 3


def long_run(a: Any, n: int, k: int) -> int:
    if n == 0:
        a[0] += 1
        return 1
    total = 0
    for _ in range(k):
        total = (total + long_run(a, n - 1, k)) % 1000003
    return total


def test_a_recursion_looks_for_ctrl_c() -> None:
    def interrupted(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    a = np.zeros(1, np.int64)
    fast = pyrelay.jit(long_run)
    fast(a, 1, 2)
    before = signal.signal(signal.SIGALRM, interrupted)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            fast(a, 40, 9)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert a[0] > 2
