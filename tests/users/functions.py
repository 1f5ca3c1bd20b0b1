"""Functions as values: bound, chosen at run time, decorated, closed over, recursive."""

from __future__ import annotations

import functools
import math
from functools import cache, partial, wraps

import numpy as np

from tests.users.corpus import use

X = np.array([3.0, 1.0, 2.0])


def mixed(a, b=2.0, *args, c=3.0, **kw):
    return a * b + sum(args) + c + kw.get("d", 0.0)


def positional(a, b, /, c, *, d=1.0):
    return a + 2 * b + 3 * c + 4 * d


@use((2.0,), wrt=(0,))
def kinds_of_arguments(x):
    t = (x, 2.0, 3.0)
    d = {"c": x, "d": 1.0}
    f = partial(mixed, x, c=1.0)
    g = partial(f, 5.0, d=x)
    return (
        mixed(x), mixed(x, 3.0, 4.0, 5.0), mixed(*t, **d), positional(x, 1, c=x, d=2),
        positional(*t), mixed(*[x, x], *(1.0,), **{"d": x}), f(), g(), g(7.0), g(c=2.0),
        partial(np.power, x)(2),
    )  # fmt: skip


@cache
def squared(x):
    return x * x


@cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def scaled(k):
    def decorate(f):
        @wraps(f)
        def inner(*args, **kw):
            return k * f(*args, **kw)

        return inner

    return decorate


@scaled(3.0)
def decorated(x, y=1.0):
    return x + y


@use((2.0, 9), wrt=(0,), long=True)
def decorators(x, n):
    @scaled(2.0)
    def local(v):
        return v * v

    return decorated(x), decorated(x, y=2.0), local(x), squared(x), fibonacci(n)


@use((2.0,), wrt=(0,))
def closures(x):
    late = []
    for i in range(3):
        late.append(lambda v: v * i)
    early = [lambda v, i=i: v * i for i in range(3)]

    def counter():
        total = 0.0

        def add(v):
            nonlocal total
            total += v
            return total

        return add, lambda: total

    add, total = counter()
    for k in range(4):
        add(x * k)
    return [f(x) for f in late], [f(x) for f in early], total()


@use((2.0, 0), (2.0, 1), (2.0, 2), (2.0, -3), (2.0, 7), wrt=(0,), joins=True, long=True)
def table_of_functions(x, k):
    fs = [np.sin, math.cos, lambda v: v * x]
    return fs[k](x), (abs, math.sqrt)[k % 2](x)


@use((2.0, 6), wrt=(0,), long=True)
def function_by_turns(x, n):
    fs = (math.sin, math.cos, lambda v: v * 0.5)
    weights = (0.5, 0.25, 0.125, 1.0, 2.0)
    for i in range(n):
        x = fs[i % 3](x) + weights[i % 5]
    return x


@use((2.0, 0), (2.0, 3), wrt=(0,))
def tables_by_number(x, k):
    names = ["a", "b", "c", "d", "e"]
    numbers = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    known = {0: "zero", 3: "three"}
    pairs = [(x, 1), (x * 2, 2), (x * 3, 3), (x * 4, 4)]
    return (
        names[k], numbers[k] * x, numbers[k - 1], known.get(k + 1), pairs[k][0] * pairs[k][1],
        k in known, known[k],
    )  # fmt: skip


@use((2.0, 1), (2.0, 7), (2.0, 4))
def key_that_may_be_missing(x, k):
    table = {1: x, 7: x * 2}
    return table[k]


@use((2.0, 1.0), (2.0, -1.0), wrt=(0,), long=True)
def defined_on_branches(x, c):
    f = math.sin if c > 0 else math.cos
    if c > 0:
        def g(v):
            return v * 2
    else:
        def g(v):
            return v * 3 + x
    return f(x) + f(x * 2), g(x), functools.reduce(lambda a, h: h(a), [f, g, f], x)


@use(((1.0, (2.0, [3.0, 4.0])),), wrt=(0,))
def mapped_over_structure(tree):
    def over(f, s):
        if isinstance(s, (tuple, list)):
            return type(s)(over(f, v) for v in s)
        return f(s)

    return over(lambda v: v * v, tree)


@use((2.0, 5), wrt=(0,))
def local_recursion(x, n):
    def even(k):
        return x if k == 0 else odd(k - 1) * 2

    def odd(k):
        return x if k == 0 else even(k - 1) + 1

    def power(k):
        return 1.0 if k == 0 else x * power(k - 1)

    return even(n), power(n)


@use(([1.0, 2.0, 3.0],), wrt=(0,))
def recursion_over_slices(items):
    if len(items) == 0:
        return 0.0
    return items[0] * 2 + recursion_over_slices(items[1:])


@use((2.0,))
def docstrings(x):
    def twice(v):
        """Twice the value."""
        return 2 * v

    def plain(v):
        return v

    shown = [f.__doc__ for f in (twice, plain, lambda v: v)]
    return twice(x), shown, hasattr(plain, "__doc__"), getattr(twice, "__doc__", "none")


@use((353, 3), (37, 5))
def keys_by_powers(prime, base):
    def order(number):
        for k in range(1, prime):
            if pow(number, k) % prime == 1:
                return k
        return -1

    secret = base**200 % prime
    return order(base), order(2), secret**300 % prime
