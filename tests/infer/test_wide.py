"""Ints that are masked to 64 bits: exact, or an OverflowError; compared with plain Python."""

from __future__ import annotations

import pytest

import pyrelay

MASK = 0xFFFFFFFFFFFFFFFF


def rotated(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK


def generators(n, seed):
    """An LCG, splitmix64, xorshift and xoshiro, in numbers, in a list and in a recursion."""
    lcg, state, shifted = seed, seed, seed
    taken, total, words = [], 0, [1, 2, 3, seed]
    for i in range(n):
        lcg = (lcg * 6364136223846793005 + 1442695040888963407) % 2**64
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        shifted ^= (shifted << 13) & MASK
        shifted ^= shifted >> 7
        words[i % 4] = (rotated((words[1] * 5) & MASK, 7) * 9) & MASK
        if i % 2:
            total ^= z ^ (z >> 31)
        taken.append(lcg)
    return taken, total, shifted, words, lcg >> 33, taken[0] / 2**64, hex(lcg)


def hashes(text, numbers):
    fnv, djb, combined, found = 0xCBF29CE484222325, 5381, 0, {}
    for c in text:
        fnv = ((fnv ^ ord(c)) * 0x100000001B3) & MASK
        djb = ((djb << 5) + djb + ord(c)) & 0xFFFFFFFFFFFFFFFF
    for k in numbers:
        combined ^= (k + 0x9E3779B97F4A7C15 + (combined << 6) + (combined >> 2)) & MASK
        found[fnv % (k + 10)] = found.get(fnv % 7, 0) + 1
    return fnv, djb % 1024, combined, found


def operators(x, y):
    a = (x * 0x9E3779B97F4A7C15) & MASK
    b = (y + 0xBF58476D1CE4E5B9) & MASK
    compared = a > b, a == b, a < 5, a >= 2**63, a != y, y < a, x <= b, a > -1
    parts = a // 7, a % 1000, a >> 1, a >> (x & 127), a // 2**32, a % 2**32, a // 1
    bits = a ^ b, a | b, a & b, ~a & MASK, -a & MASK, (a - b) & MASK, (a << (x & 127)) & MASK
    chosen = a if a else b
    return compared, parts, bits, float(a), chosen, not a, 1 if b else 2, int(a), f"{a}"


def recursive(n, h):
    return h if n == 0 else recursive(n - 1, (h * 31 + n) & MASK)


def thirty_two(k):
    k = (k * 0xCC9E2D51) & 0xFFFFFFFF
    k = ((k << 15) | (k >> 17)) & 0xFFFFFFFF
    return (k * 0x1B873593) % 2**32


@pytest.mark.parametrize(("f", "every"), [
    (generators, [(7, 12345), (1, 5), (6, 2**62)]),
    (hashes, [("hello", [1, 2, 2**40]), ("", [])]),
    (operators, [(5, 7), (1, 0), (-3, 12345678901), (0, -1), (2**62, 2**63 - 1)]),
    (recursive, [(30, 7)]),
    (thirty_two, [(0xDEADBEEF,), (3,)]),
])
def test_what_is_masked_is_exact(f, every):
    compiled = pyrelay.jit(f)
    for args in every:
        want, got = f(*args), compiled(*args)
        assert repr(got) == repr(want)  # their types, too


def test_what_is_not_masked_is_exact_or_raises():
    @pyrelay.jit
    def f(x, k):
        a = (x * 0x9E3779B97F4A7C15) & MASK
        if k == 0:
            return a + 1
        if k == 1:
            return a ^ x
        if k == 2:
            return a * x
        return [x, a]

    for x in (5, 1, 0, -5, 11, 2):
        for k in range(4):
            try:
                got = f(x, k)
            except OverflowError:
                assert x < 0 or not -(2**63) <= f.py(x, k) < 2**64 or k == 2
            else:
                assert got == f.py(x, k)


def test_a_large_number_that_no_mask_takes_is_refused():
    @pyrelay.jit
    def f(x):
        return x + 1.5 * 2**64, x * 2**70

    with pytest.raises(pyrelay.InvalidValueError, match="does not fit into 64 bits"):
        f(3.0)
