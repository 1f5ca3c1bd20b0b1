"""`x.tolist()` of any length, and lists of run-time length that are printed or written out."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from tests.users.corpus import use

RNG = np.random.default_rng(5)
NUMBERS = RNG.normal(size=6)
GROUPS = np.array([0, 1, 0, 2, 1, 0])
MATRIX = RNG.normal(size=(3, 2))


@use((NUMBERS, GROUPS), wrt=(0,))
def listed_as_they_are(x, g):
    return x.tolist(), g.tolist(), (x > 0).tolist(), g.reshape(2, 3).tolist(), g.max().tolist()


@use((NUMBERS[:3],), wrt=(0,))
def unpacked_numbers(x):
    a, b, c = x.tolist()
    first, *rest = x.tolist()
    return a * b - c, first, rest


@use((GROUPS,), long=True)
def questions_to_a_list(g):
    items = g.tolist()
    return (
        items[0], items[-1], len(items), 1 in items, items == [0, 1, 0, 2, 1, 0], items.index(2),
        items.count(0), tuple(items), dict(zip("abcdef", items, strict=True)), sum(items),
        sorted(items), Counter(items).most_common(1), any(k > 1 for k in items),
    )


@use((NUMBERS,), wrt=(0,), long=True)
def a_list_changed_in_many_ways(x):
    items = x.tolist()
    items.append(1.0)
    items[0] = 3.0
    items.reverse()
    items.sort()
    items.pop()
    items.insert(1, 2.5)
    return items, items[1:3], items + [1.0], items * 2


@use((MATRIX,), long=True)
def rows_listed(m):
    rows = m.tolist()
    rows[0][1] = 9.0
    rows.append([1.0, 2.0])
    return rows, [sum(r) for r in rows], [max(r) for r in m.tolist()], (m > 0).tolist()


@use((GROUPS,))
def a_queue_of_numbers(g):
    queue = deque(g.tolist())
    total = 0
    while queue:
        total = total * 3 + queue.popleft()
    return total


@use((NUMBERS,), long=True)
def lists_written_out(x):
    positive = []
    for v in x:
        if v > 0:
            positive.append(v)
    print(positive, "and", x.tolist())
    pairs = [[a] * 2 for a in positive]
    print(pairs)
    return str(positive), f"{pairs!r} {len(positive)}", ",".join(map(str, x.tolist()))


@use((NUMBERS[:3], 3), (NUMBERS[3:], 2))
def lists_beside_numbers_of_numpy(x, n):
    """NumPy makes an array of a list beside one of its numbers, except to multiply."""
    found = [x[k] + 1 for k in range(n)]
    largest = np.max(found)
    scale = largest + np.log(np.exp(found - largest).sum())
    pair = (1.0, 2.0)
    return (
        scale, found + np.float64(0.5), np.int64(2) - found, found / np.float32(3), found // x[0],
        pair - x[0], x[0] / tuple(found), found * np.int64(2), np.array(2.0) * found,
        found < largest, largest == found, pair >= x[0],
    )
