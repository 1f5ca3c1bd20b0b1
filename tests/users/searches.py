"""Recursion over lists: sorting, searching with lists that are handed on, memo dicts."""

from __future__ import annotations

import functools

import numpy as np

from tests.users.corpus import refuse, use


def sorted_by_merging(a):
    if len(a) <= 1:
        return a
    m = len(a) // 2
    left, right = sorted_by_merging(a[:m]), sorted_by_merging(a[m:])
    out = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    out.extend(left[i:])
    out.extend(right[j:])
    return out


@use(([3.0, 1.0, 2.0, 9.0, 5.0, 4.0, 7.0],), ([2.0],), wrt=(0,), long=True)
def merge_sort(a):
    return sorted_by_merging(a)


@use(([1, 2, 3, 4, 5, 6],))
def subsets_by_adding(xs):
    found = []

    def go(k, chosen):
        if k == len(xs):
            found.append(chosen)
            return
        go(k + 1, chosen)
        go(k + 1, chosen + [xs[k]])

    go(0, [])
    return found


@use(([[1, 2], [3], [3], [4], [], []],), long=True)
def ways_to_the_last_but_one(graph):
    found = []

    def walk(u, path):
        if u == len(graph) - 2:
            found.append(path)
            return
        for v in graph[u]:
            walk(v, path + [v])

    walk(0, [0])
    return found


def sums_to(numbers, target, start, chosen, found):
    if target == 0:
        found.append(chosen)
        return
    for i in range(start, len(numbers)):
        if numbers[i] <= target:
            sums_to(numbers, target - numbers[i], i, chosen + [numbers[i]], found)


@use(([2, 3, 6, 7, 9], 7), long=True)
def sums_of_candidates(numbers, target):
    found = []
    sums_to(numbers, target, 0, [], found)
    return found


def fibonacci(n, memo=None):
    if memo is None:
        memo = {}
    if n in memo:
        return memo[n]
    if n <= 1:
        return n
    memo[n] = fibonacci(n - 1, memo) + fibonacci(n - 2, memo)
    return memo[n]


@use((30,), long=True)
def fibonacci_with_a_memo(n):
    return fibonacci(n)


@use(([[1, 3], [2, 6], [8, 10], [9, 12], [15, 18]],), long=True)
def intervals_merged(intervals):
    out = []
    for a, b in sorted((row[0], row[1]) for row in intervals):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return out


@use((9, 4), long=True)
def ranked_by_count(n, m):
    counts = {}
    for i in range(n):
        counts[i * m % 5] = counts.get(i * m % 5, 0) + i
    by_count = sorted(counts, key=counts.get, reverse=True)
    return by_count, max(counts, key=counts.get), sorted(counts.items(), key=lambda kv: kv[1])


STEPS = np.log(np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.5, 0.25]]))


@use((STEPS, 4, 2), wrt=(0,), long=True)
def best_beams(steps, length, width):
    beams = [(0.0, [0])]
    for _ in range(length):
        longer = []
        for score, path in beams:
            for k in range(steps.shape[1]):
                longer.append((score + steps[path[-1], k], path + [k]))
        longer.sort(key=lambda beam: beam[0], reverse=True)
        beams = longer[:width]
    return beams


@use((4,), long=True)
def gray_codes(n):
    codes = [[]]
    for _ in range(n):
        codes = [[0] + c for c in codes] + [[1] + c for c in reversed(codes)]
    return codes


@use((7,), long=True)
def rows_sorted_then_longer(n):
    rows = []
    for i in range(n):
        rows.append([i * 5 % n, i])
    rows.sort(key=lambda row: row[0], reverse=True)
    rows[0].append(n)
    rows.sort(key=lambda row: row[1])
    return rows


@use(([5.0, 3.0, 8.0, 1.0, 9.0], 2), ([], 2), wrt=(0,), long=True, corners=(1,))
def in_chunks(xs, size):
    out = []
    for i in range(0, len(xs), size):
        out.append(xs[i : i + size])
    return out


@use(([5, 3, 8, 1, 9, 2, 7],), ([2],), long=True)
def odd_ones_sorted_by_comparison(xs):
    out = []
    for x in xs:
        if x % 2:
            out.append(x)
    out.sort(key=functools.cmp_to_key(lambda a, b: b - a))
    return out


@use((7,), (2,), long=True)
def shared_by_a_slice(n):
    rows = []
    for i in range(n):
        rows.append([i])
    some = rows[: n - 1]
    some[0].append(1)
    return rows


@refuse((7,), "became an item of another list")
def one_list_many_times(n):
    out = []
    row = [0] * n
    for i in range(n):
        row[i] = i
        out.append(row)
    return out


@use((7,))
def changed_behind_the_call(n):
    out = []

    def go(k, row):
        if k == 0:
            out.append(row)
            return
        go(k - 1, row)
        row.append(k)

    go(n, [1] * n)
    return out


RATES = [0.5, 0.25, 0.125]
SCALES = {"a": 2.0, "b": 1.0}
TABLE = np.arange(4.0)


@use((2.0, 1), (-2.0, 1), wrt=(0,))
def read_from_outside_on_one_path(x, k):
    if x > 0:
        return x * RATES[k] + float(TABLE[k])
    return x * SCALES["a"]


@use((3, 2), (1, 4))
def table_with_numbered_borders(n, m):
    table = np.zeros((n + 1, m + 1), dtype=int)
    table[:, 0] = range(n + 1)
    table[0] = range(m + 1)
    table[1, [0, 1]] = range(5, 7)
    return table, np.array(range(n)), np.sum(range(m)), np.mean(range(1, n + 1))
