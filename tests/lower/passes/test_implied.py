"""Checks that conditions settle: which leave, which stay, and that programs fail as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def neighbours(x: Any, k: Any) -> Any:
    total = 0.0
    for i in range(len(k)):
        j = k[i] + 1
        if 0 <= j < len(x):
            total += x[j]
    return total


def around(x: Any, k: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for d in range(-2, 3):
            j = i + d
            if j < 0 or j >= len(x):
                continue
            total += d * x[j]
    return total


def clamped(x: Any, k: Any) -> Any:
    total = 0.0
    for i in k:
        if i < 0:
            i = 0
        if i >= len(x):
            i = len(x) - 1
        if i >= 0:
            total += x[i]
    return total


def inserted(x: Any, k: Any) -> Any:
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
    return x


def by_bytes(x: Any, k: Any) -> Any:
    counts = np.zeros(256)
    for i in range(len(k)):
        counts[np.uint8(k[i])] += 1.0
        counts[k[i] & 127] += 1.0
        counts[k[i] % 200] += 1.0
    return counts


def too_far(x: Any, k: Any) -> Any:
    total = 0.0
    for i in k:
        if 0 <= i <= len(x):
            total += x[i]
    return total


def changed_after(x: Any, k: Any) -> Any:
    total = 0.0
    for i in k:
        j = i
        if 0 <= j < len(x):
            j += 2
            total += x[j]
    return total


def one_of_two(x: Any, k: Any) -> Any:
    total = 0.0
    for i in k:
        if i >= 0 or i < len(x):
            total += x[i]
    return total


def kept_condition(x: Any, k: Any) -> Any:
    total = 0.0
    j = 0
    for i in k:
        fits = j >= 0 and j < len(x)
        j = i
        if fits:
            total += x[j]
    return total


def stepping_up(x: Any, k: Any) -> Any:
    j = 0
    total = 0.0
    for i in k:
        total += x[j]
        if i > 0:
            j += 1
    return total


INDICES = (
    [0, 1, 2, 3], [-4, 3, -1, 0], [3, 0, 4, 0], [-5, 1, 1, 1], [1, 1, 7, 2], [2**62, 0, 0, 0],
    [-(2**63), 0, 0, 0], [2**63 - 2, 2, 2, 2], [1, 1, 1, 1],
)  # fmt: skip


def outcome(f: Callable[..., Any], x: Any, k: Any) -> Any:
    try:
        value = np.asarray(f(x, k)).tolist()
    except IndexError as error:
        value = str(error)
    return value, x.tolist()


@pytest.mark.parametrize(
    ("f", "checked"),
    [(neighbours, False), (around, False), (clamped, False), (by_bytes, False), (too_far, True),
     (changed_after, True), (one_of_two, True), (kept_condition, True), (stepping_up, True)],
)  # fmt: skip
def test_checks_leave_where_conditions_settle_them(f: Callable[..., Any], checked: bool) -> None:
    compiled = pyrelay.jit(f)
    for indices in INDICES:
        x, k = np.array([2.0, 0.5, 1.5, 0.25]), np.array(indices)
        with np.errstate(over="ignore"):
            wanted = outcome(f, x.copy(), k)
        assert outcome(compiled, x.copy(), k) == wanted
    assert ("store_slot_i64(record" in str(compiled.code(x, k))) is checked


def test_what_steps_down_to_a_condition_stays_in_its_array() -> None:
    compiled = pyrelay.jit(inserted)
    x, k = np.random.default_rng(0).random(30), np.zeros(1)
    assert outcome(compiled, x.copy(), k) == outcome(inserted, x.copy(), k)
    assert "store_slot_i64(record" not in str(compiled.code(x, k))


def kept_places(x: Any, k: Any) -> Any:
    """As many as rounds so far, at most: none lies outside."""
    out = np.zeros(len(x))
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            out[n] = x[i]
            n += 1
    return out


def two_at_once(x: Any, k: Any) -> Any:
    """As many as rounds, and one more: the last may lie outside."""
    out = np.zeros(len(x))
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            n += 1
            out[n] = x[i]
    return out


def turned(x: Any, k: Any) -> Any:
    """What each round at most doubles stays far from 64 bits, for 16 rounds."""
    total = 0
    for i in range(len(k)):
        a, b = 1000, 0
        for s in range(16):
            if k[i] > s:
                a, b = a - (b >> s), b + (a >> s)
            else:
                a, b = a + (b >> s), b - (a >> s)
        total ^= a ^ b
    return total


def grown(x: Any, k: Any) -> Any:
    """What each round multiplies by ten does leave 64 bits, for some."""
    n = 1
    for s in range(24):
        if s < len(k):
            n = n * 10 + 1
    return n


def halved(x: Any, k: Any) -> Any:
    places = 0
    for i in range(len(k)):
        lo, hi = 0, len(x) - 1
        while lo <= hi:
            mid = (lo + hi) // 2
            if x[mid] < k[i]:
                lo = mid + 1
            else:
                hi = mid - 1
        places = max(places, lo)
    return places


def left_in_the_middle(x: Any, k: Any) -> Any:
    """What a round has just set is not what rounds begin with."""
    n = 0
    for i in range(len(k)):
        n = i + len(x)
        if k[i] > 3:
            break
        n = 0
    return x[n]


def undone(x: Any, k: Any) -> Any:
    n, m = 0, 0
    for i in range(len(k)):
        total = x[n]
        n, m = m, k[i]
    return total + n


@pytest.mark.parametrize(
    "f", [kept_places, two_at_once, turned, grown, halved, left_in_the_middle, undone]
)
def test_what_rounds_keep_is_what_python_does(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(3)

    def outcome(g: Callable[..., Any], x: Any, k: Any) -> Any:
        try:
            return np.asarray(g(x, k)).tolist()
        except (IndexError, OverflowError) as error:
            return str(error)

    for size in range(1, 9):
        for _ in range(6):
            x, k = np.sort(rng.normal(size=size)) + 1.0, rng.integers(-1, size + 2, size)
            if outcome(f, x, k) != outcome(compiled, x, k):
                raise AssertionError((x, k, outcome(f, x, k), outcome(compiled, x, k)))


def widest(x: Any, k: Any) -> Any:
    """A stack that holds as many as an array has elements, and is looked at if not empty."""
    stack, top, most = np.empty(len(x), np.int64), 0, 0
    for i in range(len(x)):
        while top > 0 and x[stack[top - 1]] >= x[i]:
            top -= 1
            most = max(most, i - stack[top])
        stack[top] = i
        top += 1
    return most


def halves(x: Any, k: Any) -> Any:
    """A stack of known size, of which rounds take one and put back two."""
    low, high = np.zeros(64, np.int64), np.zeros(64, np.int64)
    high[0], top, leaves = len(x), 1, 0
    while top > 0:
        top -= 1
        a, b = low[top], high[top]
        if b - a <= 1:
            leaves += b - a
            continue
        middle = (a + b) // 2
        low[top], high[top] = a, middle
        low[top + 1], high[top + 1] = middle, b
        top += 2
    return leaves


def placed(x: Any, k: Any) -> Any:
    """Queens that stand in rows of their own, one row after the other and back."""
    n = len(x)
    free, row, count = np.zeros(n + 1, np.int64), 0, 0
    free[0] = (1 << n) - 1
    while row >= 0:
        if free[row] == 0:
            row -= 1
            continue
        bit = free[row] & -free[row]
        free[row] ^= bit
        if row == n - 1:
            count += 1
        else:
            row += 1
            free[row] = ((1 << n) - 1) & ~bit
    return count


def least(x: Any, k: Any) -> Any:
    """A place that is none at first, and each round's or the one before."""
    left = np.ones(len(x), np.bool_)
    total = x[0]
    for _ in range(len(x)):
        u = -1
        for i in range(len(x)):
            if left[i] and (u == -1 or x[i] < x[u]):
                u = i
        left[u] = False
        total = 0.5 * total + x[u]
    return total


@pytest.mark.parametrize(
    ("f", "checks"), [(widest, 5), (halves, 2), (placed, 4), (least, 0)]
)
def test_tops_of_stacks_stay_inside_them(f: Callable[..., Any], checks: int) -> None:
    compiled = pyrelay.jit(f)
    for size in (1, 2, 3, 6):  # of `placed` 9 took 50 seconds
        x = np.random.default_rng(size).normal(size=size)
        assert compiled(x, x) == f(x, x)
    text = str(compiled.code(x, x))
    assert text.count("return 1") == checks


def test_numbers_that_leave_64_bits_after_many_rounds_are_noticed() -> None:
    compiled = pyrelay.jit(grown)
    assert compiled(np.ones(1), np.ones(18)) == grown(np.ones(1), np.ones(18))
    with pytest.raises(OverflowError):
        compiled(np.ones(1), np.ones(19))


@pytest.mark.parametrize("f", [kept_places, halved])
def test_places_that_rounds_keep_inside_are_not_checked(f: Callable[..., Any]) -> None:
    text = str(pyrelay.jit(f).code(np.ones(4), np.arange(4)))
    assert "outside(" not in text
    assert "return 1" not in text


def test_few_rounds_are_gone_through() -> None:
    assert "_overflows" not in str(pyrelay.jit(turned).code(np.ones(4), np.arange(4)))


def by_digits(counts: Any, x: Any) -> Any:
    """Places are bits of unsigned numbers, and one more."""
    for i in range(len(x)):
        counts[((x[i] >> np.uint32(4)) & np.uint32(15)) + 1] += 1
        counts[np.uint64(x[i]) >> np.uint64(28)] += 1
        counts[x[i] % np.uint32(17)] += 1
    return counts


def of_wrapping(counts: Any, x: Any) -> Any:
    """Places beyond what an int64 holds, and below 0 in 8 bits, are noticed."""
    last = np.uint64(0)
    for i in range(len(x)):
        if x[i] > 3:
            last = ~np.uint64(x[i])
        counts[last] += 1
        counts[np.uint8(x[i] & np.uint32(7)) - np.uint8(4)] += 1
    return counts


@pytest.mark.filterwarnings("ignore:overflow")
def test_ends_of_unsigned_numbers_are_known() -> None:
    compiled, other = pyrelay.jit(by_digits), pyrelay.jit(of_wrapping)
    x = np.random.default_rng(5).integers(0, 2**32, 50).astype(np.uint32)
    zeros = np.zeros(17, dtype=np.int64)
    np.testing.assert_array_equal(compiled(zeros.copy(), x), by_digits(zeros.copy(), x))
    known = pyrelay.jit(lambda x: by_digits(np.zeros(17, dtype=np.int64), x))
    np.testing.assert_array_equal(known(x), by_digits(zeros.copy(), x))
    assert "return 1" not in str(known.code(x))
    many = np.zeros(300, dtype=np.int64)
    for k in (0, 2, 3, 4, 9):
        given = np.array([k], dtype=np.uint32)
        ways = []
        for f in (of_wrapping, other):
            try:
                ways.append(f(many.copy(), given).tolist())
            except (IndexError, OverflowError):
                ways.append("outside")
        assert ways[0] == ways[1], k


def feedback(s: Any, bits: Any) -> Any:
    ones = wide = 0
    for _ in range(20):
        bit = (s ^ (s >> 2) ^ (s >> 3) ^ (s >> 5)) & 1
        s = (s >> 1) | (bit << 15)
        ones += s & 1
        wide = ((s & 0xFF) | (ones & 0x0F)) << bits
    return s, ones, wide


def to_the_left_by_few(s: Any) -> Any:
    return feedback(s, 54)[2]


def test_short_numbers_shifted_by_few_bits_are_not_checked() -> None:
    f = pyrelay.jit(to_the_left_by_few)
    for s in (0xACE1, -5, 2**40 + 1):
        assert f(s) == to_the_left_by_few(s)
    assert "return 1" not in str(f.code(0xACE1))


def test_a_shift_that_leaves_64_bits_raises() -> None:
    with pytest.raises(OverflowError):
        pyrelay.jit(lambda s: feedback(s, 56))(0xACE1)


def by_halves(x: Any, m: Any) -> Any:
    """Loops that end within an array, by steps that double."""
    width = 1
    while width < len(x):
        for low in range(0, len(x), 2 * width):
            for k in range(low, min(low + width, len(x))):
                x[k] = x[k] * 0.5 + width
        for k in range(width // 2):
            x[k] += 1.0
        width *= 2
    return x


def as_often_as_asked(x: Any, m: Any) -> Any:
    for k in range(m):
        x[0] = x[0] * 0.5 + k
    return x


@pytest.mark.parametrize(("f", "parted"), [(by_halves, False), (as_often_as_asked, True)])
def test_loops_that_end_within_an_array_are_not_parted(f: Callable[..., Any], parted: bool) -> None:
    x, compiled = np.random.default_rng(5).random(37), pyrelay.jit(f)
    np.testing.assert_array_equal(compiled(x.copy(), 7), f(x.copy(), 7))
    assert ("in range(start" in str(compiled.code(x, 7))) == parted


def test_loops_over_windows_end_in_seconds() -> None:
    def windows(x, w):
        total = 0.0
        for k in range(len(x)):
            for j in range(max(0, k - w), min(k + w + 1, len(x))):
                total += x[j] * x[k]
        return total

    x = np.linspace(0.0, 1.0, 30)
    function = pyrelay.jit(windows)
    for w in (0, 3, 40, -2, 2**62):
        assert function(x, w) == pytest.approx(windows(x, w))
    assert "range(0, " not in str(function.code(x, 3))  # no pieces, to look for Ctrl-C between


def distances(x: Any, y: Any) -> Any:
    most = 0
    for a, b in zip(x, y, strict=True):
        most = max(most, abs(int(a) - int(b)) + abs(int(b) - 100))
    return most


def test_sizes_of_short_numbers_are_added_without_a_check() -> None:
    x, y = np.array([3, 255, 0], np.uint8), np.array([255, 0, 100], np.uint8)
    compiled = pyrelay.jit(distances)
    assert compiled(x, y) == distances(x, y) == 407
    assert "_overflows" not in str(compiled.code(x, y))


def interleaved(x: Any, y: Any, bits: Any) -> Any:
    out = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        a, b, code = int(x[i]), int(y[i]), 0
        for k in range(bits):
            code |= ((a >> k) & 1) << (2 * k)
            code |= ((b >> k) & 1) << (2 * k + 1)
        out[i] = code
    return out


def raised(f: Callable[..., Any], *args: Any) -> str:
    try:
        f(*args)
    except Exception as error:
        return type(error).__name__
    return ""


@pytest.mark.parametrize(("first", "bits", "fails"), [
    (5, 16, False), (5, 40, False), (2**30 - 1, 31, False), (2**31, 32, True), (-1, 31, False),
    (-1, 32, True), (5, 0, False), (5, -3, False),
])  # fmt: skip
def test_loops_ask_in_front_by_how_many_places_bits_are_shifted(
    first: int, bits: int, fails: bool
) -> None:
    x, y = np.array([first, 3]), np.array([first, 9])
    compiled = pyrelay.jit(interleaved)
    assert (raised(compiled, x, y, bits) == raised(interleaved, x, y, bits) == "") is not fails
    if not fails:
        np.testing.assert_array_equal(compiled(x, y, bits), interleaved(x, y, bits))
    fast = str(compiled.code(x, y, bits)).rpartition("for ")[2]
    assert "<<" in fast
    assert "unlikely" not in fast


def powers(x: Any, n: Any) -> Any:
    for k in range(n):
        x[k % len(x)] += 1 << k
    return x


@pytest.mark.parametrize("n", [0, 5, 62, 63, 64, 65, 70])
def test_ones_are_shifted_as_far_as_python_stores_them(n: int) -> None:
    compiled, (found, expected) = pyrelay.jit(powers), np.zeros((2, 200), np.int64)
    assert raised(compiled, found, n) == raised(powers, expected, n)
    np.testing.assert_array_equal(found, expected)


def twice_as_large(g: Any) -> Any:
    out = np.zeros((2 * g.shape[0], 2 * g.shape[1]))
    for r in range(2 * g.shape[0]):
        for c in range(2 * g.shape[1]):
            out[r, c] = g[r // 2, c >> 1]
    return out


def stretched(g: Any) -> Any:
    out = np.zeros((g.shape[0], g.shape[1] * 3))
    for r in range(g.shape[0]):
        for c in range(g.shape[1] * 3):
            out[r, c] = g[r, c // 3]
    return out


def too_wide(g: Any) -> Any:
    out = np.zeros((g.shape[0], 2 * g.shape[1] + 1))
    for r in range(g.shape[0]):
        for c in range(2 * g.shape[1] + 1):
            out[r, c] = g[r, c // 2]
    return out


@pytest.mark.parametrize(("f", "looks"), [
    (twice_as_large, False), (stretched, False), (too_wide, True),
])  # fmt: skip
def test_quotients_lie_below_what_the_product_lies_below(
    f: Callable[..., Any], looks: bool
) -> None:
    compiled, g = pyrelay.jit(f), np.arange(12.0).reshape(3, 4)
    assert raised(compiled, g) == raised(f, g)
    if not looks:
        np.testing.assert_array_equal(compiled(g), f(g))
    assert ("return 1" in str(compiled.code(g))) is looks
