"""Functions under functools.cache that are recursive: each state is computed once.

Computed anew, these programs would run for longer than anyone waits.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
import pytest

import pyrelay
from tests.infer.running import assert_same


@lru_cache(None)
def partitions(n, largest):
    if n == 0:
        return 1
    if n < 0 or largest == 0:
        return 0
    return partitions(n - largest, largest) + partitions(n, largest - 1)


def partition_counts(n):
    return [partitions(k, k) for k in range(n)]


@pytest.mark.slow
def test_a_recursion_costs_what_it_has_states():
    f = pyrelay.jit(partition_counts)
    assert f(95) == partition_counts(95)
    assert f(5) == partition_counts(5)
    assert f._compilations == 1


@cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def test_the_cached_function_itself():
    assert pyrelay.jit(fibonacci)(90) == fibonacci(90)


@lru_cache(maxsize=1000)
def _even(n, kind):
    return kind == "even" if n == 0 else _odd(n - 1, kind) == _odd(n - 1, kind)


@cache
def _odd(n, kind):
    return kind == "odd" if n == 0 else _even(n - 1, kind=kind) == _even(n - 1, kind)


def both(n):
    return _even(n, "even"), _even(n, "odd")


@pytest.mark.slow
def test_functions_that_call_each_other_with_names_and_with_texts():
    assert_same(pyrelay.jit(both)(60), both(60))


@cache
def chosen(n, k):
    if k == 0 or k == n:
        return 1
    return chosen(n - 1, k - 1) + chosen(n - 1, k)


def bernstein(t, n):
    total = 0.0
    for k in range(n + 1):
        total += chosen(n, k) * t**k * (1 - t) ** (n - k) * k
    return total


@pytest.mark.slow
def test_derivatives_go_past_the_table():
    assert pyrelay.grad(bernstein)(0.3, 40) == pytest.approx(40.0)


@cache
def chebyshev(n, x):
    if n == 0:
        return 1.0
    if n == 1:
        return x
    return 2 * x * chebyshev(n - 1, x) - chebyshev(n - 2, x)


def summed(x, y):
    return chebyshev(5, x) + 2.0 * chebyshev(5, y)


@pytest.mark.slow
def test_equal_floats_are_not_one_argument():
    got = pyrelay.grad(summed, argnums=(0, 1))(0.5, 0.5)
    assert got == pytest.approx((-5.0, -10.0))  # the derivative of T5 is 5 U4


@cache
def split(n):
    return None if n == 0 else n + (split(n - 1) or 0)


@pytest.mark.slow
def test_values_that_no_table_holds_are_computed_anew():
    assert pyrelay.jit(split)(6) == 21


@cache
def rows(n):
    return np.ones(3) if n == 0 else rows(n - 1) + rows(n - 1)


@pytest.mark.slow
def test_arrays_are_kept():
    np.testing.assert_array_equal(pyrelay.jit(rows)(50), rows(50))


def fewest_coins(coins, amount):
    memo = {}

    def best(left):
        if left == 0:
            return 0
        if left in memo:
            return memo[left]
        result = 10**9
        for coin in coins:
            if coin <= left:
                result = min(result, best(left - coin) + 1)
        memo[left] = result
        return result

    return best(amount)


def test_a_dict_keyed_by_an_argument_of_a_recursion_is_a_table():
    f = pyrelay.jit(fewest_coins)
    for amount in (60, 61):
        assert f([1, 3, 4], amount) == fewest_coins([1, 3, 4], amount)
    assert f._compilations == 1


def longest_collatz(n):
    memo = {1: 1}

    def length(k):
        if k not in memo:
            memo[k] = 1 + (length(k // 2) if k % 2 == 0 else length(3 * k + 1))
        return memo[k]

    best = 0
    for i in range(1, n):
        best = max(best, length(i))
    return best


@pytest.mark.slow
def test_a_table_grows_in_either_arm_of_a_branch():
    assert pyrelay.jit(longest_collatz)(97) == longest_collatz(97)


def splits(text, words):
    @cache
    def ways(rest):
        if not rest:
            return 1
        return sum(ways(rest[len(word) :]) for word in words if rest.startswith(word))

    return ways(text)


def test_texts_are_keys():
    f = pyrelay.jit(splits)
    for text in ("a" * 60, "a" * 61 + "b"):
        assert f(text, ["a", "aa", "aaa"]) == splits(text, ["a", "aa", "aaa"])


@lru_cache(None)
def _longest(s, t):
    if not s or not t:
        return ""
    if s[0] == t[0]:
        return s[0] + _longest(s[1:], t[1:])
    a, b = _longest(s[1:], t), _longest(s, t[1:])
    return a if len(a) > len(b) else b


def longest_common(s, t):
    return _longest(s, t)


@pytest.mark.slow
def test_texts_are_keys_of_functions_outside():
    f = pyrelay.jit(longest_common)
    for s, t in (("abcdefgh" * 3, "hgfedcba" * 3), ("ab", "b")):
        assert f(s, t) == longest_common(s, t)


@cache
def wins(n, p):
    return p if n < 2 else p * wins(n - 1, p) + (1 - p) * wins(n - 2, p)


def test_floats_are_keys_where_there_are_no_derivatives():
    assert pyrelay.jit(wins)(80, 0.3) == pytest.approx(wins(80, 0.3))


def wins_and_slope(n, p):
    return wins(n, p), pyrelay.grad(lambda q: wins(n, q) + wins(n, p))(p)


@pytest.mark.slow
def test_floats_are_no_keys_where_there_is_one():
    value, slope = pyrelay.jit(wins_and_slope)(5, 0.3)
    step = 1e-6
    between = (wins(5, 0.3 + step) - wins(5, 0.3 - step)) / (2 * step)
    assert value == pytest.approx(wins(5, 0.3))
    assert slope == pytest.approx(between, rel=1e-6)
