"""Which `while` loops are known to end soon: they do not look for Ctrl-C; all give Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def ones(x: Any) -> Any:
    out = np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        v = x[i]
        while v:
            v &= v - 1
            out[i] += 1
    return out


def ones_from_below(x: Any) -> Any:
    out = np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        v = x[i]
        while v != 0:
            v -= v & -v
            out[i] += 1
    return out


def digits(x: Any) -> Any:
    out = np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        n = x[i]
        while n > 0:
            out[i] += n % 10
            n //= 10
    return out


def counted_digits(x: Any) -> Any:
    total = 0
    for n in range(len(x)):
        while n:
            total += n % 3
            n //= 3
    return total


def sifted_up(x: Any) -> Any:
    heap = x.copy()
    for k in range(len(x)):
        i = k
        while i > 0:
            p = (i - 1) // 2
            if heap[p] <= heap[i]:
                break
            heap[p], heap[i] = heap[i], heap[p]
            i = p
    return heap


def divisors(x: Any) -> Any:
    out = np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        a, b = x[i], x[i - 1]
        while b:
            a, b = b, a % b
        out[i] = a
    return out


def found(x: Any) -> Any:
    edges = np.arange(len(x)) * 3
    out = np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        lo, hi = 0, len(edges)
        while lo < hi:
            mid = (lo + hi) // 2
            if edges[mid] < x[i]:
                lo = mid + 1
            else:
                hi = mid
        out[i] = lo
    return out


def bracketed(x: Any) -> Any:
    edges = np.arange(len(x)) * 3
    out = np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        lo, hi = 0, len(edges) - 1
        while hi - lo > 1:
            mid = lo + (hi - lo) // 2
            if edges[mid] > x[i]:
                hi = mid
            else:
                lo = mid
        out[i] = lo
    return out


def matched(x: Any) -> Any:
    best = 0
    for i in range(1, len(x)):
        n = 0
        while n < 5 and n + i < len(x) and x[n + i] >= x[n]:
            n += 1
        best = max(best, n)
    return best


def doubled(x: Any) -> Any:
    total = 0
    for n in range(len(x)):
        k = 1
        while k < n:
            k = 2 * k
        total += k
    return total


FEW = [
    ones, ones_from_below, digits, counted_digits, sifted_up, divisors, found, bracketed, matched,
    doubled,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("f", FEW)
def test_what_ends_soon_does_not_count_its_rounds(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 8, 40):
        for top in (9, 2**62):
            x = rng.integers(-top, top, size)
            np.testing.assert_array_equal(compiled(x), f(x))
    ends = np.array([1 - 2**63, 2**63 - 1, 0, -1, 1, 2**62])
    np.testing.assert_array_equal(compiled(ends), f(ends))
    text = str(compiled.code(x))
    inner = text[text.index("while True") :]
    assert "poll(block)" not in inner.split("store_ordered")[0]


def shifted(x: Any) -> Any:
    """Ends never for what is less than 0."""
    total = 0
    for i in range(len(x)):
        v = x[i]
        while v:
            total += v & 1
            v >>= 1
    return total


def climbed(x: Any) -> Any:
    """Ends never where a number is 0."""
    total = 0
    for i in range(len(x)):
        k = x[i]
        while k <= len(x):
            total += 1
            k += k & -k
    return total


def stays(x: Any) -> Any:
    """Ends never where `lo` is moved to the middle of neighbours."""
    total = 0
    for i in range(len(x)):
        lo, hi = 0, len(x)
        while lo < hi:
            mid = (lo + hi) // 2
            if mid < i - len(x):
                lo = mid
            else:
                hi = mid
        total += lo
    return total


def doubled_from(x: Any) -> Any:
    """Ends never where a number is 0, or NumPy's integers wrap around to it."""
    total = 0
    for i in range(len(x)):
        k = x[i]
        while k < 1000:
            k = 2 * k
            total += 1
    return total


def skips(x: Any) -> Any:
    """Ends never where a round does not step."""
    total = 0
    for i in range(len(x)):
        n = 0
        while n < 5:
            if x[i] > n:
                n += 1
            total += 1
    return total


@pytest.mark.parametrize("f", [shifted, climbed, stays, doubled_from, skips])
def test_what_may_never_end_looks_for_interrupts(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    x = np.arange(5, 12)
    assert compiled(x) == f(x)
    text = str(compiled.code(x))
    assert "poll(block)" in text[text.index("while True") :]


def test_a_while_loop_over_bits_has_no_rounds() -> None:
    """LLVM counts bits by an instruction, or on vectors, where it sees nothing else in the loop."""
    compiled = pyrelay.jit(ones)
    x = np.arange(9)
    np.testing.assert_array_equal(compiled(x), ones(x))
    body = str(compiled.code(x)).split("while True:")[1].split("store_")[0]
    assert "rounds" not in body
