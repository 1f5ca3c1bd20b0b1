"""Starred items of run-time length; tuples of run-time length where lists are taken."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import chain, zip_longest

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


class _Polynomial:
    def __init__(self, *coefficients):
        found = list(coefficients)
        while len(found) > 1 and found[-1] == 0:
            found.pop()
        self.coefficients = found

    @classmethod
    def scaled(cls, by, *coefficients):
        return cls(*[by * c for c in coefficients])

    def __add__(self, other):
        pairs = zip_longest(self.coefficients, other.coefficients, fillvalue=0)
        return _Polynomial(*[a + b for a, b in pairs])

    def __mul__(self, other):
        found = [0] * (len(self.coefficients) + len(other.coefficients) - 1)
        for i, a in enumerate(self.coefficients):
            for j, b in enumerate(other.coefficients):
                found[i + j] += a * b
        return _Polynomial(*found)

    def moved(self, by, *rest):
        return [by + c for c in rest] + self.coefficients


@use(([1, 2, 3], [4, 0, -1]), ([0], [1, 1]), ([1, 1], [0, -1]))
def objects_made_of_as_many_items_as_there_are(a, b):
    p, q = _Polynomial(*a), _Polynomial(*[v for v in b if v < 9])
    even = _Polynomial.scaled(2, *[v for v in a if v % 2 == 0])
    product = p * q
    return (p + q).coefficients, product.coefficients, even.moved(1, *product.coefficients)


@use(([3, 1, 2, 9, 4],), ([],))
def sorted_to_and_fro(values):
    found, low, high, swapped = values[:], 0, len(values) - 1, True
    while swapped:
        swapped = False
        for i in (*range(low, high), *range(high - 1, low - 1, -1)):
            if found[i] > found[i + 1]:
                found[i], found[i + 1] = found[i + 1], found[i]
                swapped = True
        low += 1
        high -= 1
    return found


@use(([3, 0, 4, 12],), ([1, 4],))
def numbers_spread_into_functions_of_any_number(values):
    large = [v for v in values if v > 2]
    lists = [[v] * (v % 4) for v in values]
    return (
        max(*large, 1), min(0, *large, key=lambda v: -v), math.gcd(*large, 0), math.lcm(*large),
        math.hypot(*large), list(chain(*lists)), sum(chain(*lists)),
    )


@use(([3.0, 0.5],), ([0.5],), ([3.0, 4.0],))
def the_greatest_of_fewer_than_two(values):
    try:
        return max(*[v for v in values if v > 1])
    except TypeError as error:
        return str(error)


def two(a, b):
    return 10 * a + b


@use(([1, 2, 3, 4], 2), ([1, 2, 3], 1), ([1, 2, 3], 0), ([1, 2, 3, 4], 4))
def as_many_as_a_function_takes(xs, n):
    try:
        return two(*xs[:n])
    except TypeError as error:
        return str(error)


@use(([1, 2, 3, 4], 1), ([1, 2, 3], 3))
def those_behind_the_first(xs, n):
    return two(5, *xs[:n])


class Machine:
    def __init__(self):
        self.stack, self.out = [], []

    def op_push(self, x):
        self.stack.append(int(x))

    def op_mul(self):
        b = self.stack.pop()
        a = self.stack.pop()
        self.stack.append(a * b)

    def op_show(self):
        self.out.append(self.stack.pop())


@use((["push 6", "push 7", "mul", "show"] * 5,), (["push 1", "show"] * 9,))
def words_for_the_method_of_their_name(lines):
    machine = Machine()
    for line in lines:
        op, *rest = line.split()
        getattr(machine, "op_" + op)(*rest)
    return machine.out
