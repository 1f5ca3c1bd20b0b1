"""Programs that write to what the caller gave them, and then raise: what is written stays."""

from __future__ import annotations

import cmath
import math

import numpy as np

from tests.users.corpus import use

X = np.array([1.0, 2.0, -3.0, 4.0])
POSITIVE = abs(X)


class Unstable(Exception):
    """A user's own exception."""


@use((X,))
def marked_and_raised(x):
    x[0] = 1.5
    raise ValueError


@use((X,))
def raised_with_what_was_written(x):
    x[0] = 1.5
    raise ValueError(f"bad {x[0]} {x[1]:.2f}", 3)


@use((X, 1), (X, 0), wrt=(0,))
def raised_in_a_branch(x, k):
    if k:
        x[0] = 10.0
        raise KeyError(k)
    x[1] = 3.0
    return x.sum()


@use((X,), (POSITIVE,))
def raised_in_the_middle_of_a_loop(x):
    total = 0.0
    for i in range(len(x)):
        x[i] = x[i] * 2
        if x[i] < 0:
            raise ValueError("negative", i)
        total += x[i]
    return total


@use((X,), (POSITIVE,))
def raised_in_a_loop_before_the_write(x):
    for i in range(len(x)):
        if x[i] < 0:
            raise ValueError(i)
        x[i] = x[i] * 2
    return x


@use((X,), (POSITIVE,))
def raised_after_all_is_written(x):
    x[:] = x * 2
    assert x[2] > 0, "positive, please"
    return x


@use((X,))
def raised_to_leave_an_endless_loop(x):
    i = 0
    while True:
        x[i] += 1
        if i == 3:
            raise Unstable("at", i)
        i += 1


def tripled(v, i):
    v[i] *= 3
    if v[i] < 0:
        raise RuntimeError("negative at " + str(i))
    return v[i]


@use((X,), (POSITIVE,))
def raised_by_a_helper(x):
    total = 0.0
    for i in range(4):
        total += tripled(x, i)
    return total


@use((X,), (POSITIVE,))
def raised_among_views(x):
    v = x[1:]
    v += 1
    if v[1] < 0:
        raise ValueError("view")
    v[:] = 0.0
    return v


@use((np.ones((3, 4)), 7.0), (np.ones((3, 4)), 9.0), long=True)
def raised_among_rows(a, most):
    for row in a:
        row[:] = row * 2
        if row.sum() > most:
            raise ValueError("row")
    return a


@use((X, np.arange(4.0)))
def raised_after_names_were_swapped(x, y):
    x, y = y, x
    x[0] = 5.0
    y[1] = 6.0
    if x[3] > 0:
        raise ValueError
    return x


@use((X, np.arange(4.0), 3), (X, np.arange(4.0), 9))
def raised_by_a_loop_that_swaps(x, y, n):
    for k in range(n):
        y[1:] = x[:-1] * 0.5
        x, y = y, x
        if k > 4:
            raise Unstable(k)
    return x


@use(([1, 2, 3],))
def raised_after_an_item_was_added(items):
    items.append(4)
    raise ValueError("full")


@use((X, []), (POSITIVE, []))
def raised_while_a_list_grows(x, log):
    for i in range(len(x)):
        log.append(x[i])
        if x[i] < 0:
            raise ValueError("negative")
    return len(log)


@use(({"a": 1.0}, X), ({"a": 1.0}, POSITIVE))
def raised_after_a_key_was_added(d, x):
    d["a"] += x[0]
    d["b"] = 2.0
    if x[2] < 0:
        raise KeyError("b")
    return d


@use(({"xs": X.copy()},))
def raised_after_an_array_inside_was_written(d):
    d["xs"][1] = 5.0
    raise ValueError("z")


class Meter:
    """An object that counts what it is given."""

    def __init__(self):
        self.count, self.last = 0, 0.0

    def __eq__(self, other):
        return (self.count, self.last) == (other.count, other.last)

    __hash__ = None

    def take(self, value):
        self.count += 1
        self.last = value
        if value > 2:
            raise ValueError(f"too big: {value}")


@use((Meter(), 3.0), (Meter(), 1.0), (Meter(), -5.0))
def raised_by_a_method(meter, value):
    for _ in range(3):
        meter.take(value)
        value += 1
    return meter.count


@use((X,))
def raised_again_by_a_handler(x):
    try:
        x[0] = 7.0
        if x[2] < 0:
            raise ValueError("a")
    except ValueError:
        x[1] = 9.0
        raise
    finally:
        x[3] = 8.0
    return x


@use((X, 5), (X, 1))
def an_index_out_of_range_after_a_write(x, k):
    x[0] = 7.0
    return x[k] * 2


@use((X, 0), (X, 2))
def a_division_by_zero_after_a_write(x, k):
    x[0] = 7.0
    return 5 // k


@use((X,))
def raised_by_a_generator(x):
    def values():
        for i in range(4):
            if x[i] < 0:
                raise ValueError("generated")
            yield x[i]

    for i, value in enumerate(values()):
        x[i] = value * 2
    return x


# -- errors of operations behind writes to containers ----------------------------------------------


@use(([1, 2, 3], 5), ([1, 2, 3], 1))
def idx_after_list(items, k):
    items[0] = 10
    items.append(4)
    return items[k]


@use(({"a": 1.0, "b": 2.0}, 0.0), ({"a": 1.0, "b": 2.0}, 2.0))
def div_after_dict(d, y):
    d["a"] = 5.0
    return d["b"] / y


class Position:
    def __init__(self):
        self.x = 1.0
        self.n = 0

    def __eq__(s, o):
        return (s.x, s.n) == (o.x, o.n)

    __hash__ = None


@use((Position(), -1.0), (Position(), 4.0))
def domain_after_obj(p, v):
    p.n += 1
    p.x = math.sqrt(v)
    p.n += 1
    return p.x


@use(({1: 2.0}, 3), ({1: 2.0}, 1))
def keyerror_after(d, k):
    d[5] = 1.0
    return d[k]


@use(([1.0], X), ([1.0], abs(X)))
def loop_err(items, x):
    for v in x:
        items.append(math.sqrt(v))
    return len(items)


@use(
    ([1.0, 2.0], 3),
)
def pop_err(items, n):
    for i in range(n):
        items.pop()
    return 0


@use(
    ({"n": 0}, X, 7),
    long=True,
)
def idx_arr_after_dict(d, x, k):
    for i in range(k):
        d["n"] += 1
        x[i] = 0.0
    return 1


@use(
    ([1, 2, 3],),
)
def index_missing(items):
    items.append(3)
    return items.index(99)


@use(
    ([3.0, 4.0], 2.0),
    long=True,
)
def remove_missing(items, v):
    items.append(5.0)
    items.remove(v)
    return items


@use((1.5,), (float("inf"),), (float("nan"),))
def angles_of_infinities(t):
    said = []
    for k in range(5):
        try:
            if k == 0:
                said.append(cmath.exp(complex(0.0, t)).real)
            elif k == 1:
                said.append(cmath.sin(complex(t, 1.0)).imag)
            elif k == 2:
                said.append(cmath.cosh(complex(1.0, t)).real)
            elif k == 3:
                said.append(cmath.tanh(complex(0.5, t)).real)
            else:
                said.append(cmath.log10(complex(0.0, t)).imag)
        except ValueError as error:
            print(k, error)
    return said


@use(([7], 0.5))
def texts_that_are_no_numbers(items, t):
    items.append(items[0])
    total = t
    for item in items:
        total += float(f"{item}-")
    return total


@use((None,), (3,), ([1, 2],), ("ab",), ((1, "a"),))
def what_operators_do_not_take(x):
    said = []
    try:
        x = x + "c"
    except TypeError as error:
        said.append(str(error))
    try:
        said.append(str(-x))
    except TypeError as error:
        said.append(str(error))
    try:
        said.append(str(2.5 * x))
    except TypeError as error:
        said.append(str(error))
    try:
        x()
    except TypeError as error:
        said.append(str(error))
    try:
        said.append(str({x: 1}))
    except TypeError as error:
        said.append(str(error))
    try:
        said.append(str("a" in x))
    except TypeError as error:
        said.append(str(error))
    try:
        iter(x)
    except TypeError as error:
        said.append(str(error))
    return said
