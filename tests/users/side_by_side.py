"""`zip` and `map` of several that are asked for one item after the other."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import refuse, use

X = np.array([3.0, 1.0, 2.5])


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n + 1


class Halves:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        return self

    def __next__(self):
        if self.x.max() < 0.1:
            raise StopIteration
        self.x = self.x / 2
        return self.x


@use((4,), (0,))
def the_first_is_asked_first(n):
    x, y = Countdown(n), Countdown(n - 2)
    pairs = list(zip(x, y, strict=False))
    u, v = Countdown(n - 2), Countdown(n)
    others = list(zip(u, v, strict=False))
    return pairs, x.n, y.n, others, u.n, v.n


@use((4,), (0,))
def three_and_a_function_of_two(n):
    three = list(zip(Countdown(n), range(10), Countdown(n + 1), strict=False))
    return three, list(map(lambda a, b: a - b, Countdown(n), Countdown(n)))


@use((4,))
def left_early(n):
    s = 0
    for i, (a, b) in enumerate(zip(Countdown(n), Countdown(n + 1), strict=False)):
        if a * b < 3:
            break
        s += a * b * i
    return s


@use((X,), wrt=(0,))
def arrays_of_two(x):
    s = 0.0
    for a, b in zip(Halves(x), Halves(x * 2), strict=False):
        s += (a * b).sum()
    return s


def doubling(x, limit):
    while True:
        if x > limit:
            return
        yield x
        x *= 2


@use((X,))
def generators_whose_end_is_not_known(x):
    s = 0.0
    for a, b in zip(doubling(1, 50), doubling(2, 40), strict=False):
        s += a * b
    return s * x


@use((3,))
def one_that_goes_on_behind(n):
    def squares():
        k = 0
        while True:
            yield k * k
            k += 1

    s, one = 0, squares()
    for a, b in zip(one, doubling(n, 20), strict=False):
        s += a * b
    return s, next(one)


def scaled(x):
    while True:
        yield (lambda v: v * x)(2)
        x += 1


@refuse((X,), "zip of several generators without an end", "write one loop")
def of_a_form_that_is_not_taken_apart(x):
    s = 0.0
    for a, b in zip(scaled(1), scaled(2), strict=False):
        if a > 10:
            break
        s += a * b
    return s * x
