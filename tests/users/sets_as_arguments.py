"""Sets of the caller's: looked through, changed, and the same sets afterwards."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import refuse, use


@use(({3, 1, 2}, 2), ({3}, 7), (set(), 1))
def changed_sets(s, k):
    s.add(k + 10)
    s.discard(1)
    return len(s), k in s, s


@use(({5, 1, 2, 7}, 2), long=True)
def sets_in_operators(s, k):
    return sorted(s), s | {k + 1}, s & {1, 2}, s - {1}, s ^ {k}, s >= {1, 5}, s == {k}


@use((set(range(40)), 5), ({0.5, 5.0}, 5), long=True)
def large_sets(s, k):
    s.remove(k)
    return sum(1 for v in range(50) if v in s)


@use(({"a", "b"}, "hello a b"))
def words_in_a_set(s, text):
    s.add("c")
    return [w for w in text.split() if w in s], len(s)


@use(({(0, 1), (2, 3)}, [(0, 1), (5, 5)]), long=True)
def pairs_in_a_set(s, pairs):
    fresh = [p for p in pairs if p not in s]
    for p in fresh:
        s.add(p)
    return fresh


@use(({1, 2}, {2, 3}), long=True)
def two_sets(a, b):
    a |= b
    b.clear()
    return a, a <= b, len(a)


@use((set(), np.array([1.0, 5.0, 1.0])))
def a_set_that_is_filled(s, x):
    for v in x:
        s.add(int(v))


@use(({1, 2, 3}, 7), long=True)
def a_set_changed_before_an_error(s, k):
    s.add(100)
    s.remove(k)


@use(({1: {2, 3}, 4: {5}}, 2), long=True)
def sets_in_a_dict(graph, k):
    graph[4].add(k)
    return k in graph[1], sorted(graph[4])


@use((frozenset((1, 2)), 2), (frozenset((1, 2)), 3), (frozenset("ab"), "a"))
def frozen_sets(s, k):
    return k in s, len(s), s


@use(({1.5, 2.5},), ({0.1, 0.2, 0.3, 1e30},), long=True)
def a_set_that_is_changed_and_gone_through(s):
    s.add(3.5)
    return sum(s)


@use(({8, 0, 3}, 3), ({0, 8, 3}, 3), ({40, 3, 9, 16}, 9))
def a_set_in_the_order_of_the_caller(s, k):
    found = 0
    s.discard(k)
    for item in s:
        found = found * 100 + item
    return found, [x + 1 for x in s], len(s)


@refuse(({object()},), "s is a set of objects", "pass list(s)")
def a_set_of_objects(s):
    return len(s)


@use(({3, 1},), ({40, 3, 9, 16},), long=True)
def any_item_of_a_set(s):
    return s.pop()


@use((4,), (5,), long=True)
def sets_handed_on(n):
    def place(row, columns):
        if row == n:
            return 1
        return sum(place(row + 1, columns | {c}) for c in range(n) if c not in columns)

    return place(0, set())


@use(({(1, 1)}, 2), ({(1, 1), (0, 5), (2, 3)}, 0))
def set_of_the_callers_or_of_the_program(live, n):
    for _ in range(n):
        counts = {}
        for x, y in live:
            counts[x + y] = counts.get(x + y, 0) + 1
        live = {(x, k) for x, k in counts.items() if k > 0}
    return sorted(live)


SQUARES = [row + column for row in "ABCDEF" for column in "123456"]
BESIDE = {s: {t for t in SQUARES if t != s and (t[0] == s[0] or t[1] == s[1])} for s in SQUARES}


@use((["A1", "B2"], ["1", "2"]))
def sets_of_a_global_gone_through(squares, digits):
    left, count = {s: "123" for s in SQUARES}, 0
    for s, d in zip(squares, digits):
        left[s] = left[s].replace(d, "")
        for t in BESIDE[s]:
            count += len(left[t])
    return count


@use((["A1", "B2"], 2))
def sets_of_a_global_gone_through_by_recursion(squares, depth):
    def walk(s, k):
        if k == 0:
            return 1
        return sum(walk(t, k - 1) for t in BESIDE[s])

    return [walk(s, depth) for s in squares]


# -- sets of dicts ---------------------------------------------------------------------------------


FAR_APART = {16 * k + 5 * (k % 3): k for k in range(7)}


@use((FAR_APART,))
def taken_from_a_set_of_keys(graph):
    waiting, order = set(graph), []
    while waiting:
        order.append(waiting.pop())
    more = {5000, 1}
    more.update(graph)
    return order, list(more), [*{*graph}], [*{16, *graph, 7}], list(set(graph.keys()))


@use((3,))
def frozen_in_their_order(n):
    frozen = frozenset([0, 21, 42, 48, 69, 90, 96])
    return [k * n for k in frozen], list(frozenset(FAR_APART)), list(frozenset(set(FAR_APART)))
