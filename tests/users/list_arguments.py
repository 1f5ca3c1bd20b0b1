"""Lists of numbers, of pairs and of rows as arguments, of any length, read and changed."""

from __future__ import annotations

from collections import deque

import numpy as np

from tests.users.corpus import use

FLOATS = [0.3, 1.2, -0.7, 2.0, 0.9, 1.1]
INTS = [3, 1, 4, 1, 5, 9, 2, 6]
EDGES = [(0, 1, 2.0), (1, 2, 0.5), (2, 3, 1.5), (0, 3, 5.0), (3, 4, 1.0)]
GRID = [[1, 3, 1, 4], [1, 5, 1, 2], [4, 2, 1, 9], [0, 1, 2, 1], [7, 1, 1, 1]]


@use((FLOATS,), wrt=(0,))
def sum_of_squares(xs):
    s = 0.0
    for v in xs:
        s += v * v
    return s


@use((INTS,), long=True)
def what_a_list_tells(xs):
    best = xs[0]
    for i in range(1, len(xs)):
        if xs[i] > best:
            best = xs[i]
    return best, len(xs), sum(xs), max(xs), xs[-1], xs


@use((FLOATS,), wrt=(0,), slow=True)
def doubled_and_longer(xs):
    for i in range(len(xs)):
        xs[i] = xs[i] * 2 + i
    xs.append(1.5)
    return xs


@use((INTS,), long=True)
def bubble_sorted(a):
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


@use(([True, False, True, True, False, False],))
def flags_changed(xs):
    xs[1] = True
    return [not b for b in xs], sum(1 for b in xs if b)


@use((EDGES, 5), wrt=(0,), slow=True)
def shortest_ways(edges, n):
    d = [1e9] * n
    d[0] = 0.0
    for _ in range(n - 1):
        for u, v, w in edges:
            if d[u] + w < d[v]:
                d[v] = d[u] + w
    return d


@use(([[float(v) for v in row] for row in GRID],), (GRID,), wrt=(0,), long=True,
     corners=(1,))
def cheapest_way_in_place(g):
    n, m = len(g), len(g[0])
    for i in range(n):
        for j in range(m):
            if i == 0 and j == 0:
                continue
            up = g[i - 1][j] if i > 0 else 10**9
            left = g[i][j - 1] if j > 0 else 10**9
            g[i][j] = g[i][j] + min(up, left)
    return g[n - 1][m - 1]


@use(([[1, 2], [2], [3], [], [5], [4]],))
def rows_of_many_lengths(g):
    return [len(r) for r in g], sum(sum(r) for r in g), g[0]


@use((GRID,), long=True)
def rows_get_longer(g):
    g[1].append(7)
    g.append([1, 2])
    return g[2], g


@use((GRID,))
def rows_exchanged(g):
    g[1] = [0, 0]
    g[2], g[3] = g[3], g[2]
    return g


@use(([4, 8, 8, 2, 3],))
def sizes_of_layers(sizes):
    ws = []
    for n, m in zip(sizes[:-1], sizes[1:], strict=True):
        ws.append(np.ones((n, m)))
    x = np.ones(4)
    for w in ws:
        x = x @ w
    return x


@use((FLOATS, [2 * v for v in FLOATS]), (FLOATS, FLOATS[:5]), wrt=(0, 1), slow=True)
def products_of_two(a, b):
    return sum(x * y for x, y in zip(a, b, strict=False)), np.dot(np.array(a[:5]), np.array(b[:5]))


@use((FLOATS, INTS), wrt=(0,))
def floats_chosen_by_ints(xs, ks):
    return sum(xs[k % len(xs)] * k for k in ks)


@use(([1, 2.5, 3, 4.5, 1],))
def ints_among_floats(xs):
    return xs[0] + xs[1], xs[4]


MATRIX = [[float((i * 3 + j * 2) % 5) for j in range(6)] for i in range(5)]
OTHER = [[float((i + j * 2) % 4) for j in range(5)] for i in range(6)]


@use((MATRIX, OTHER), wrt=(0, 1), long=True)
def product_of_tables(a, b):
    n, m, p = len(a), len(b), len(b[0])
    c = [[0.0] * p for _ in range(n)]
    for i in range(n):
        for j in range(p):
            for k in range(m):
                c[i][j] += a[i][k] * b[k][j]
    return c


@use(([1, 3, -1, -3, 5, 3, 6, 7], 3), long=True)
def largest_in_a_window(xs, k):
    waiting, out = deque(), []
    for i, x in enumerate(xs):
        while waiting and xs[waiting[-1]] <= x:
            waiting.pop()
        waiting.append(i)
        if waiting[0] <= i - k:
            waiting.popleft()
        if i >= k - 1:
            out.append(xs[waiting[0]])
    return out


@use(([[1, 2, 3, 4, 5], [6, 7], [8], [9, 10, 11], [12, 13]],), long=True)
def rows_doubled_by_recursion(rows):
    def double(row, k):
        if k == len(row):
            return
        row[k] *= 2
        double(row, k + 1)
        if k == 0:
            row.append(k)

    for row in rows:
        double(row, 0)
    return rows


@use(([[1, 2, 3], [4], [5], [6], [7]], 1))
def a_row_and_the_table(rows, i):
    def total(row, k):
        if k == len(row):
            return 0
        rows[i][k] = 100
        return row[k] + total(row, k + 1)

    return total(rows[i], 0)
