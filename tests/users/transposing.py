"""`zip(*rows)` of as many rows as the program makes, and what is done with the columns."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from tests.users.corpus import use

X = np.array([1.0, -2.0, 3.0, 4.0])
NONE = np.array([-1.0, -2.0])

Batch = namedtuple("Batch", "state action")


def kept(x):
    return [(v * 2, i) for i, v in enumerate(x) if v > 0]


@use((X,), (NONE,), wrt=(0,))
def columns_unpacked(x):
    values, places = zip(*kept(x))
    return np.array(values), places


@use((X,), (NONE,), wrt=(0,))
def columns_mapped(x):
    values, places = map(np.array, zip(*sorted(kept(x))))
    return values, places


@use((X,), (NONE,))
def columns_listed_once(x):
    columns = zip(*kept(x))
    return list(columns), list(columns)


@use((X,), (NONE,))
def columns_gone_through(x):
    total = 0
    for column in zip(*kept(x)):
        total += len(column)
    return total


@use((X,))
def columns_as_arguments(x):
    rows = [Batch(np.full(2, v), i) for i, v in enumerate(x) if v > 0]
    batch = Batch(*zip(*rows))
    return batch, Batch(*map(np.stack, zip(*[(s, s + a) for s, a in rows])))


@use((X,), (NONE,))
def no_columns_for_the_fields(x):
    try:
        return Batch(*zip(*kept(x))).action
    except TypeError:
        return None


@use((X,))
def columns_of_lists(x):
    rows = [[v, v * v] for v in x if v > 0]
    return [sum(c) for c in zip(*rows)], [list(c) for c in zip(*rows)]


@use((5, [2, 0, 1]), (2, [0]), (2, [2]))
def replayed(n, chosen):
    buffer = [None] * 3
    for i in range(n):
        buffer[i % 3] = (float(i), i)
    values, places = zip(*[buffer[k] for k in chosen])
    return np.array(values), places


@use((X,), (NONE,))
def stacked_columns(x):
    return np.vstack([*zip(*[(v, v + 1) for v in x if v > 0])])


@use(([],), ([np.ones(2)],))
def stacked_as_given(items):
    try:
        return np.vstack(items), np.hstack(items), np.stack(items)
    except ValueError as error:
        return str(error)
