"""Slices of lists assigned and deleted, lists compared, sets combined, at run time."""

from __future__ import annotations

import itertools

import numpy as np

from tests.users.corpus import use

X = np.linspace(0.1, 1.3, 7)


@use((X, 2), (X, -9), wrt=(0,), slow=True)
def middle_replaced(x, k):
    xs = [v * 2 for v in x]
    xs[k:k + 2] = [x[0], x[1], x[2]]
    return xs, len(xs)


@use((9, 2))
def deleted(n, k):
    xs = []
    for i in range(n):
        xs.append(i * i)
    del xs[k]
    del xs[-1]
    del xs[k:k + 2]
    return xs


@use((4, 7))
def deleted_outside(n, k):
    xs = [i for i in range(n)]
    del xs[k]


@use((9, 2), long=True)
def everything_replaced(n, k):
    xs = [0]
    for i in range(n):
        xs.append(i * i)
    same = xs
    xs[:] = [v + 1 for v in xs if v > k]
    return same


@use(([1, 2, 3, 4, 5, 6, 7, 8], 3), ([1, 2, 3, 4, 5, 6, 7, 8], -2), long=True)
def in_steps(xs, k):
    xs[::2] = [10, 20, 30, 40]
    del xs[1::3]
    xs[k:k] = [7, 7]
    del xs[:2]
    xs[-1:] = (1, 2, 3)
    return xs


@use(([1, 2, 3, 4, 5, 6, 7, 8],), long=True)
def wrong_number_of_steps(xs):
    xs[::2] = [10, 20]


@use((9, 4), (3, 3), long=True)
def in_order(n, m):
    a, b = list(range(n)), list(range(m))
    return a == b, a != b, a < b, a > b, a <= b, a >= b


@use(([3, 1, 3, 2, 3, 1, 7, 7], [1, 7, 9, 11, 3, 3]), long=True)
def combined(a, b):
    s, t = set(a), set(b)
    sizes = len(s | t), len(s & t), len(s - t), len(s ^ t)
    told = s <= t, s.issubset(t), s & t == {1, 3, 7}, s > {1, 2}, s.isdisjoint([5, 6])
    s |= {20}
    t -= {9, 100}
    return sizes, told, sorted(s | t), sorted(s.intersection(t)), s, t, {7, 8} - s


@use(([3, 3, 1, 9, 1, 4, 9],), long=True)
def each_once(xs):
    seen = set()
    out = []
    for x in xs:
        if x not in seen:
            seen.add(x)
            out.append(x)
    return out, sorted(seen), max(seen), min(seen), sum(seen), len(seen)


@use(([],), ([1],))
def an_item_deleted_that_may_be_none(xs):
    try:
        del xs[0]
    except IndexError as error:
        return str(error), xs
    return "deleted", xs


@use((np.array([1.0, 2.0, 0.5]), 0.6), (np.array([1.0, 2.0, 0.5]), 0.0), wrt=(0,))
def history_of_a_short_loop_that_is_left(x, least):
    """A list that a loop of few rounds makes longer is as long as the running program says."""
    history = [x.sum()]
    for _ in range(4):
        x = x * 0.5
        history.append(x.sum())
        if x[0] < least:
            break
    return x.sum() + history[-1], history


@use((np.array([0.0, 7.0, 1.0, 4.0]),))
def clusters_in_a_list(x):
    clusters = [[i] for i in range(len(x))]
    while len(clusters) > 2:
        best = (np.inf, 0, 0)
        for i in range(len(clusters)):
            for j in range(i):
                best = min(best, (abs(x[clusters[i][0]] - x[clusters[j][0]]), j, i))
        _, i, j = best
        clusters[i] = clusters[i] + clusters.pop(j)
    return clusters


@use((["this", "is", "a", "line", "of", "words", "to", "fill"], 10), (["one"], 4))
def lists_begun_anew_in_a_loop_in_a_branch(words, width):
    lines, line = [], []
    if len(words) > 1:
        for w in words:
            if sum(len(x) + 1 for x in line) + len(w) > width:
                lines.append(" ".join(line))
                line = []
            line.append(w)
    else:
        line.append("alone")
    return lines, line


@use((20, 3), (0, 2))
def chunks_of_what_never_ends(n, k):
    def numbers():
        a, b = 0, 1
        while True:
            yield a
            a, b = b, a + b

    def chunks(items):
        found = []
        for item in items:
            found.append(item)
            if len(found) == k:
                yield found
                found = []
        if found:
            yield found

    return [sum(c) for c in chunks(itertools.islice(numbers(), n))]


@use(([1, 2, 3],), ([5],), ([1, 2, 3] * 8,))
def gone_through_while_it_gets_longer(x):
    met = []
    for v in x:
        if v < 3:
            x.append(v + 2)
        met.append(v)
    return met, x
