"""Lists whose length is known only at run time: stacks, queues, filters, tables, histories."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

X = np.linspace(0.1, 1.3, 5)
W = np.array([[0.3, -0.2], [0.1, 0.4]])
H = np.array([0.5, 0.1])


@use((X,), (X[:2],), wrt=(0,), slow=True)
def squares_of_elements(x):
    out = []
    for v in x:
        out.append(v * v)
    return np.sum(np.array(out)), np.mean(out), np.max(out), len(out)


@use((3.0, 20), (2.0, 0), wrt=(0,))
def multiples_returned(a, n):
    out = []
    for i in range(n):
        out.append(a * i)
    return out


@use((X, 0.5), (X, 5.0), wrt=(0,))
def those_above(x, t):
    out = []
    for v in x:
        if v > t:
            out.append(v * v)
    return np.sum(np.array(out)) + len(out)


@use((10,), (1,), long=True)
def halves_on_a_stack(n):
    stack = [n]
    total = 0
    while stack:
        v = stack.pop()
        total += v
        if v > 1:
            stack.append(v // 2)
            stack.append(v - v // 2 - 1)
    return total


@use((X, 3), (X, -5), (X, 7), wrt=(0,), long=True)
def item_at_run_time(x, k):
    out = []
    for v in x:
        out.append(np.sin(v))
    return out[k] * out[-1]


@use((8,))
def pop_from_empty(n):
    s = [1]
    for _ in range(n):
        s.pop()
    return len(s)


@use((12, 3))
def pairs_on_a_stack(n, m):
    stack = [(n, m)]
    s = 0
    while stack:
        a, b = stack.pop()
        s += a * b
        if a > 0:
            stack.append((a - 1, b + 1))
            if a % 2 == 0:
                stack.append((a // 2 - 1, b))
    return s


@use((W, H, 5), (W, H, 40), wrt=(0, 1), long=True)
def history_of_states(w, h, n):
    states = []
    for t in range(n):
        h = np.tanh(w @ h + 0.1 * t)
        states.append(h)
    s = 0.0
    for h in states:
        s += np.sum(h * h)
    return s, np.stack(states), np.concatenate(states), states


@use((6,), (1,), long=True)
def fibonacci_list(n):
    f = [0, 1]
    for i in range(2, n):
        f.append(f[i - 1] + f[i - 2])
    return f


@use((4,))
def filled_by_index(n):
    a = [0.0] * n
    for i in range(n):
        a[i] = i * i * 0.5
    return a


@use((6,), (0,))
def comprehensions_of_run_time_length(n):
    a = list(range(n))
    a.reverse()
    return a, [i * i for i in range(n) if i % 2 == 0], [2.0 * v for v in a]


@use((30,), long=True)
def sieve_as_a_list(n):
    p = [True] * (n + 1)
    p[0] = False
    p[1] = False
    i = 2
    while i * i <= n:
        if p[i]:
            for j in range(i * i, n + 1, i):
                p[j] = False
        i += 1
    return [i for i in range(n + 1) if p[i]]


@use((X, True), (X, False), wrt=(0,))
def another_length_on_each_branch(x, c):
    a = []
    if c:
        a.append(x[0])
        a.append(x[1])
    else:
        a.append(x[2])
    s = 0.0
    for v in a:
        s += v * v
    return s + len(a)


def collect(n, out):
    if n > 0:
        collect(n - 1, out)
        out.append(n * n)
        collect(n - 2, out)


@use((5,), (0,))
def collected_by_recursion(n):
    out = []
    collect(n, out)
    return out


@use(([1.0, 2.0], 3), ([], 2))
def argument_that_grows(a, n):
    for i in range(n):
        a.append(float(i))
    return len(a)


@use((20,), long=True)
def questions_about_a_list(n):
    a = [i % 7 for i in range(n)]
    return sum(a), min(a), max(a), sorted(a), 3 in a, 9 in a, a.index(3), a.count(2), any(a)


@use((20,))
def slices_of_a_list(n):
    a = [i * 1.5 for i in range(n)]
    return a[2:5], a[::-1], a[-3:], a[n // 2 :], a[::2]


@use((7,), long=True)
def items_taken_and_put(n):
    a = list(range(n))
    b = a.pop(0)
    c = a.pop(2)
    a.insert(1, 99)
    a.insert(-1, 5)
    del a[0]
    a.remove(99)
    return a, b, c


@use((7,), long=True)
def lists_joined(n):
    a = [i for i in range(n)]
    b = [10 * i for i in range(n - 2)]
    c = a + b
    a.extend(b)
    a += [1, 2]
    return a, c, a * 2, c + [5], [7, *[8]] + c, a == c, c == a[: len(c)]


@use((6,))
def queue_gone_through_while_it_grows(n):
    q = [1]
    for v in q:
        if v < n:
            q.append(2 * v)
            q.append(2 * v + 1)
    return q


@use((5,), long=True)
def lists_side_by_side(n):
    a = [i for i in range(n)]
    b = [i * 0.5 for i in range(n + 3)]
    s = 0.0
    for i, (u, v) in enumerate(zip(a, b)):
        s += i * u * v
    for u in reversed(b):
        s = s * 0.5 + u
    return s


@use((11,), (0,))
def table_as_a_list(amount):
    dp = [0] * 12
    for a in range(1, amount + 1):
        dp[a] = dp[a - 1] + 1
    return dp[amount]


# -- lists of lists --------------------------------------------------------------------------------


@use((4, 3), (0, 2), long=True)
def paths_through_a_table(n, m):
    dp = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            dp[i][j] = dp[i - 1][j] + dp[i][j - 1] + 1
    return dp, dp[n][m]


EDGES = np.array([[0, 1], [1, 2], [0, 3], [3, 4], [2, 4]])


def visit(u, neighbours, seen, order):
    seen[u] = True
    order.append(u)
    for v in neighbours[u]:
        if not seen[v]:
            visit(v, neighbours, seen, order)


@use((EDGES, 5), long=True)
def depth_first_search(edges, n):
    neighbours = [[] for _ in range(n)]
    for k in range(len(edges)):
        u, v = int(edges[k, 0]), int(edges[k, 1])
        neighbours[u].append(v)
        neighbours[v].append(u)
    seen = [False] * n
    order = []
    visit(0, neighbours, seen, order)
    return order


@use((5,), (1,))
def rows_of_pascal(n):
    rows = [[1]]
    for i in range(1, n):
        before = rows[-1]
        row = [1]
        for j in range(1, i):
            row.append(before[j - 1] + before[j])
        row.append(1)
        rows.append(row)
    return rows


@use((X, 3), wrt=(0,), long=True)
def table_of_numbers(x, m):
    n = len(x)
    t = [[0.0] * m for _ in range(n)]
    for i in range(n):
        for j in range(m):
            t[i][j] = x[i] * (j + 1)
            if i > 0:
                t[i][j] += t[i - 1][j] * x[j]
    return t[n - 1][m - 1] + t[1][0]


@use((4,), long=True)
def rows_gone_through(n):
    rows = [[i * j for j in range(n)] for i in range(n)]
    s = 0
    for row in rows:
        for v in row:
            s += v
        row.append(100)
    taken = rows.pop()
    taken.append(7)
    rows[0] = [5] * (n + 1)
    rows[1][0] = 77
    return s, [sum(row) for row in rows], np.array(rows), len(rows[0]), taken, rows


@use((6,))
def paths_on_a_stack(n):
    stack = [(0, [0])]
    best = 0
    while stack:
        node, path = stack.pop()
        best = max(best, len(path))
        if node < n:
            stack.append((node + 1, path + [node + 1]))
            stack.append((node + 2, path + [node + 2]))
    return best


@use((X, 3), wrt=(0,), long=True)
def arrays_written_in_their_list(x, n):
    rows = [np.zeros(5) for _ in range(n)]
    for i in range(n):
        rows[i] += x * i
        rows[i][i] = x[0] * x[1]
    s = 0.0
    for r in rows:
        s += np.sum(r * r)
    return s, rows


def sorted_quickly(a):
    if len(a) <= 1:
        return a
    p = a[0]
    less = [v for v in a[1:] if v < p]
    more = [v for v in a[1:] if v >= p]
    return sorted_quickly(less) + [p] + sorted_quickly(more)


@use((6,), (0,), long=True)
def quicksort_of_lists(n):
    return sorted_quickly([(i * 7) % 11 for i in range(n)])


def remembered(n, known):
    if n < 2:
        return n
    if known[n] < 0:
        known[n] = remembered(n - 1, known) + remembered(n - 2, known)
    return known[n]


@use((6,), (1,))
def memory_of_results(n):
    known = [-1] * (n + 1)
    return remembered(n, known), known


@use((np.random.default_rng(4).normal(size=(8, 2)),), wrt=(0,), long=True)
def convex_hull(points):
    """The monotone chain (Andrew 1979): the area of the hull of points in the plane."""
    ordered = sorted((float(x), float(y)) for x, y in points)

    def turn(o, a, b):
        return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])

    lower, upper = [], []
    for p in ordered:
        while len(lower) >= 2 and turn(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    for p in reversed(ordered):
        while len(upper) >= 2 and turn(upper[-2], upper[-1], p) <= 0:
            upper.pop()
        upper.append(p)
    hull = lower[:-1] + upper[:-1]
    area = 0.0
    for k in range(len(hull)):
        area += hull[k - 1][0] * hull[k][1] - hull[k][0] * hull[k - 1][1]
    return area / 2


@use((np.ones(3), 0.5), wrt=(0,))
def states_of_a_known_width(start, until):
    t, y = 0.0, start.copy()
    times, states = [t], [y.copy()]
    while t < until:
        slope = np.array([y[1] - y[0], y[0] * y[2], y[2]])
        if np.max(np.abs(slope)) < 10:
            t += 0.1
            y = y + 0.1 * slope
            times.append(t)
            states.append(y.copy())
    return np.array(times), np.array(states)
