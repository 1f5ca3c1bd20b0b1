"""Programs that recurse over arrays which they write: searches, sorting, sets of a forest.

In: arrays and numbers. Out: arrays and numbers. numba compiles the same functions; it looks at no
index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _filled(grid, i, j, label):
    if i < 0 or j < 0 or i >= grid.shape[0] or j >= grid.shape[1]:
        return 0
    if grid[i, j] != 0:
        return 0
    grid[i, j] = label
    size = 1 + _filled(grid, i + 1, j, label) + _filled(grid, i - 1, j, label)
    return size + _filled(grid, i, j + 1, label) + _filled(grid, i, j - 1, label)


def flood(walls):
    """How many regions of zeros there are, and how large the largest one is."""
    grid = walls.copy()
    regions, largest = 0, 0
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            if grid[i, j] == 0:
                regions += 1
                largest = max(largest, _filled(grid, i, j, regions))
    return regions, largest


def _parted(a, low, high):
    pivot = a[(low + high) // 2]
    i, j = low, high
    while i <= j:
        while a[i] < pivot:
            i += 1
        while a[j] > pivot:
            j -= 1
        if i <= j:
            kept = a[i]
            a[i] = a[j]
            a[j] = kept
            i += 1
            j -= 1
    return i, j


def _sorted(a, low, high):
    if low < high:
        i, j = _parted(a, low, high)
        _sorted(a, low, j)
        _sorted(a, i, high)


def quicksort(x):
    a = x.copy()
    _sorted(a, 0, len(a) - 1)
    return a


def _placed(columns, rising, falling, row):
    n = len(columns)
    if row == n:
        return 1
    total = 0
    for c in range(n):
        if not columns[c] and not rising[row + c] and not falling[row - c + n - 1]:
            columns[c] = True
            rising[row + c] = True
            falling[row - c + n - 1] = True
            total += _placed(columns, rising, falling, row + 1)
            columns[c] = False
            rising[row + c] = False
            falling[row - c + n - 1] = False
    return total


def queens(n):
    """In how many ways as many queens stand on a board of n x n."""
    columns = np.zeros(n, dtype=np.bool_)
    rising = np.zeros(2 * n, dtype=np.bool_)
    falling = np.zeros(2 * n, dtype=np.bool_)
    return _placed(columns, rising, falling, 0)


def _root(parent, i):
    if parent[i] != i:
        parent[i] = _root(parent, parent[i])
    return parent[i]


def forest(a, b, n):
    """How many parts a graph has, by union and find with shortened paths."""
    parent = np.arange(n)
    parts = n
    for k in range(len(a)):
        one = _root(parent, a[k])
        other = _root(parent, b[k])
        if one != other:
            parent[one] = other
            parts -= 1
    return parts


PROGRAMS: dict[str, Callable[..., Any]] = {
    "flood": flood, "quicksort": quicksort, "queens": queens, "forest": forest,
}
