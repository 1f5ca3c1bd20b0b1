"""Generators that return a value, which `x = yield from g()` and StopIteration give."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import refuse, use

X = np.array([3.0, 1.0, 2.5, 7.0])


def summing(x):
    total = 0
    for v in x:
        total += v
        yield v
    return total


def sums(x):
    first = yield from summing(x)
    yield first * 10
    second = yield from summing(x)
    yield second + first


@use(([1, 2, 3],), ([],))
def sums_of_what_was_yielded(x):
    return list(sums(x))


@use(([1, 2, 3, 11, 50],), ([1],))
def left_before_it_returns(x):
    for v in sums(x):
        if v > 10:
            return v
    return -1


@use((X,), (X[1:3],), wrt=(0,))
def returned_at_several_places(x):
    def below(limit):
        for i in range(len(x)):
            if x[i] > limit:
                return x[i] * i
            yield x[i]
        return -1.0

    def both():
        a = yield from below(6.0)
        b = yield from below(2.0)
        yield a * b

    s = 0.0
    for k, v in enumerate(both()):
        s += v * (k + 1)
    return s


@use((3,), (0,))
def lists_that_are_returned(n):
    def items(k):
        out = []
        for i in range(k):
            out.append(i)
            yield i
        return out

    def all_of():
        for k in range(n):
            got = yield from items(k)
            got.append(100)
            yield sum(got)

    return list(all_of())


@use(([1, 2, 3],), ([],))
def handed_on_by_return(x):
    def again(k):
        if k == 0:
            return (yield from summing(x))
        yield -k
        return (yield from again(k - 1))

    def all_of():
        total = yield from again(2)
        yield total * 100

    return list(all_of())


@use((3,))
def nothing_of_what_is_no_generator(n):
    def both():
        a = yield from range(n)
        b = yield from [n, n + 1]
        yield a is None and b is None

    return list(both())


def walk(tree):
    if tree is None:
        return 0
    left = yield from walk(tree[0])
    yield tree[1]
    right = yield from walk(tree[2])
    return left + right + 1


@use((((None, 1, None), 2, (None, 3, (None, 4, None))),))
def nodes_counted_on_the_way(tree):
    def counted():
        yield -1
        count = yield from walk(tree)
        yield count

    return list(counted())


@use(([1, 2, 3],), ([],))
def value_of_stop_iteration(x):
    it, out = summing(x), []
    while True:
        try:
            out.append(next(it))
        except StopIteration as end:
            found = end.value
            break
    try:
        next(it)
    except StopIteration as end:
        return out, found, end.value, end.args


@use((5,), (0,))
def value_of_one_that_is_gone_on_with(n):
    def steps():
        yield 1
        if n > 2:
            return "many"
        yield 2
        return

    it = steps()
    count = 0
    try:
        while True:
            next(it)
            count += 1
    except StopIteration as end:
        return count, end.value


@use((4,))
def value_that_a_default_hides(n):
    it = summing(range(n))
    s = 0
    while (v := next(it, None)) is not None:
        s += v
    try:
        next(it)
    except StopIteration as end:
        return s, end.value, end.args


@use((0,), (2,))
def ended_before_the_first_item(n):
    def steps():
        for i in range(n):
            yield i + 1
        return 7

    try:
        return next(steps())
    except StopIteration as end:
        return end.value, "ended"


class Over(StopIteration):
    def __init__(self, x):
        super().__init__(x + 1)


@use((5,))
def stop_iteration_of_the_users(n):
    found = []
    for error in (Over(n), StopIteration(n, 2)):
        found.append((error.value, error.args))
    try:
        raise StopIteration
    except StopIteration as end:
        return found, end.value


@refuse(([1, 2, 3],), "goes through from its start", "make the generator there")
def begun_before(x):
    it = summing(x)
    first = next(it)

    def rest():
        total = yield from it
        yield total

    return first, list(rest())


@use((4,), (0,))
def totals_of_what_others_return(n):
    def counted(m):
        yield from range(m)
        return m

    def both():
        total = 1
        total += yield from counted(n)
        total *= yield from counted(n + 1)
        yield total

    def listed():
        total = before = [0]
        total += yield from numbers()
        yield total is before
        yield total

    def numbers():
        yield 0
        return [2, n]

    return list(both()), list(listed())


@use(([3, 4, 5],), ([],))
def running_total_of_what_is_sent(numbers):
    def total():
        so_far = 0
        while True:
            so_far += yield so_far

    totals = total()
    first = next(totals)
    return first, [totals.send(number) for number in numbers]
