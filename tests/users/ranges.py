"""Ranges as sequences: their items, also from the end, and their parts."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


@use((10, 3, 3), (10, 3, 4), (10, 3, -4), (10, 3, -5), (0, 1, 0), (-5, -2, 2), (-5, -2, -1))
def item_of_a_range(n, step, k):
    r = range(0, n, step)
    return r[k], len(r)


@use((1,), (6,), (-7,))
def item_of_a_known_range(k):
    r = range(2, 20, 3)
    return r[k], r[-1], r[np.int64(1)], r[True], list(r[1:]), list(r[::-1]), r[1:3][0], len(r[k:])


@use((10, 2, 5, 2), (10, -4, None, 1), (10, None, -3, -2), (5, -100, 100, 3), (6, 1, 2, 0))
def part_of_a_range(n, a, b, c):
    r = range(n)
    part = r[a:b:c]
    return list(part), part.step, [i + j for i, j in zip(r, r[1:], strict=False)], sum(r[:3])


@use((10, 3), (10, 0), (10, -2), long=True)
def range_of_any_step(n, step):
    return list(range(n, 0, step)), len(range(0, n, step))


@use((10, np.arange(4)), (5, np.array([0, 9])))
def ranges_indexed_in_loops(n, places):
    r = range(n, 0, -1)
    total = 0
    for i in places:
        total += r[i]
    for i in range(3):
        total += r[i] * r[-1 - i]
    return total


_KNOWN = range(2, 7)


@use(
    (_KNOWN, 3), (range(10, 0, -3), 1), (range(5), 4), (range(1, 1), 0),
    (range(10**20, 10**20), 0),
)
def ranges_as_arguments(r, k):
    found = [i * j for i in r for j in r]
    return list(r), sum(r), k in r, r[:2], len(r), found, [r[k]] if k < len(r) else []


@use((range(2, 7),), (range(2, 6),), (range(3),))
def ranges_are_equal(r):
    halves = range(0, len(r), 2) == range(0, len(r) + 1, 2), range(0) == range(1, 1)
    return r == _KNOWN, r != _KNOWN, range(2, 7) == _KNOWN, r == [2], halves


def _prime_factors(n):
    d = 2
    while d * d <= n:
        while n % d == 0:
            yield d
            n //= d
        d += 1
    if n > 1:
        yield n


@use((range(2, 120),))
def factors_of_numbers_in_a_range(numbers):
    return [len(set(_prime_factors(n))) for n in numbers]
