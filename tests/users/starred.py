"""Starred items of run-time length; tuples of run-time length where lists are taken."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.users.corpus import use

X = np.array([3.0, 1.0, 2.0, 5.0])


@use((X, 3), (X, 0), long=True)
def among_other_items(x, n):
    t = tuple(x[:n])
    return [*t], [1.0, *t, 2.0, *t], (0.0, *t)


@use((X, 3), (X, 1), wrt=(0,))
def arrays_of_a_tuple(x, n):
    rows, parts = (), ()
    for i in range(n):
        rows += (x * i,)
        parts += (x[: i + 1],)
    return np.stack(rows), np.concatenate(parts), np.vstack([*rows, x])


@use((4,), (1,), long=True)
def set_of_what_lists_hold(n):
    items = []
    for i in range(n):
        items.append(i % 3)
    return len({*items, 7}), sorted({*items})


@use(([3, 11, 19, 3], [11]), ([8, 0], []))
def starred_sets_go_in_in_turn(found, gone):
    seen = set()
    for v in found:
        seen.add(v)
    for v in gone:
        seen.remove(v)
        seen.add(v + 8)
    return list({*seen, 7, *gone}), [0, *seen]


@dataclass
class Sum:
    weights: list[float]
    parts: list[Sum] = field(default_factory=list)


def weighed(node):
    if not node.parts:
        return np.array(node.weights).sum() + np.mean(node.weights)
    left, right = (weighed(part) for part in node.parts)
    return left * 2.0 - right


@use((Sum([1.0], [Sum([2.0, 0.5]), Sum([3.0])]),), (Sum([1.0, 4.0]),), wrt=(0,))
def unpacked_while_it_recurs(node):
    return weighed(node)


def weighted(k, *rest, by=2.0):
    total = 0.0
    for i, v in enumerate(rest):
        total += k * v * (i + 1)
    return total * by


@use((np.arange(5) + 0.3,), (np.zeros(2),), wrt=(0,), corners=(1,))
def spread_into_the_rest_of_a_function(x):
    large = [v * v for v in x if v > 1]
    return weighted(x[0], *large), weighted(3.0, *large[1:], by=1.0)


@use((np.arange(5),), (np.arange(2),))
def spread_into_a_function_inside(x):
    def both(*items):
        return sum(items), len(items), max(items, default=0)

    large = [v for v in x if v > 1]
    return both(*large), both(*[1, 2]), (lambda *items: items[::-1])(*large)


@use((np.array([1.0, 2.0, 5.0, 3.0, 1.0]),), (np.array([5.0, 1.0, 2.0]),), wrt=(0,), corners=(1,))
def peak_of_a_parabola(x):
    k = np.argmax(x)
    a, b, c = x[k - 1 : k + 2]
    return k + 0.5 * (a - c) / (a - 2 * b + c)


@use((np.array([3.0, 1.0, 2.0, 1.0]), 3))
def taken_from_what_is_counted_in_the_program(x, n):
    low, *between, high = np.sort(x[x > 0.5])
    first, second = zip(x[:2], x[n - 2 :])
    counts = {}
    for v in x:
        counts[v] = counts.get(v, 0) + 1
    (a, _), *_ = counts.items()
    start, *others, end = range(n + len(between))
    return low, between, high, first, second, a, start, others, end
