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
