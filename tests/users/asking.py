"""Programs that find out what they have: by trying it, or by a None that stands for nothing yet."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

M = np.sin(np.arange(1.0, 13.0)).reshape(4, 3)


@use((np.arange(3.0),), (M,), wrt=(0,))
def total_of_rows_or_of_numbers(c):
    try:
        c[0][0]
        has_rows = True
    except Exception:
        has_rows = False
    return c.sum(axis=1) if has_rows else c.sum()


@use((2.5,), ([1.0, 2.0],), ((1, 2),))
def items_or_the_one_number(x):
    try:
        return [2 * v for v in iter(x)]
    except TypeError as error:
        return [2 * x], str(error)


@use((np.arange(3.0),), (M,))
def first_column(a):
    try:
        return a[:, 0], ""
    except IndexError as error:
        return a, str(error)


@use((M, np.arange(3.0)), (M, np.arange(4.0)), wrt=(0, 1))
def applied_to_what_fits(m, v):
    try:
        return m @ v
    except ValueError:
        return v @ m


@use(("end",), (1,), ([0, "begin"],))
def when_it_is_paid(when):
    numbers = {"end": 0, "begin": 1, 0: 0, 1: 1}
    try:
        return numbers[when]
    except (KeyError, TypeError):
        return [numbers[w] for w in when]


@use(([1],))
def a_list_as_a_key(key):
    table = {1: 2.0}
    try:
        table[key] = 3.0
    except TypeError as error:
        return str(error)
    return table


@use((np.arange(3.0),), (np.arange(4.0),))
def stored_if_it_fits(x):
    y = np.zeros(4)
    try:
        y[:] = x
    except ValueError:
        return y - 1, np.reshape(y, (2, -1))
    return y


@use((M,), wrt=(0,))
def split_by_the_best_column(x):
    best, most = None, 0.0
    for j in range(x.shape[1]):
        spread = np.var(x[:, j])
        if spread > most:
            best, most = j, spread
    above = x[:, best] > x[:, best].mean()
    return x[above], x[~above].sum(), x[1, best], x[best]


@use((M, 0.5), (M, 9.0))
def the_row_that_was_found_if_any(x, limit):
    found = None
    for i in range(len(x)):
        if x[i, 0] > limit:
            found = i
    if x[:, 1][found] > 0:
        return 1
    x[found, 2] = limit
    return x[found, 1]


@use((M,), wrt=(0,))
def between_what_was_found(x):
    start, stop = None, None
    for i, row in enumerate(x):
        if row[0] > 0 and start is None:
            start = i
        if row[1] > 0:
            stop = i
    x[start:stop, 0] = 0.0
    return x[start:stop], x[start:, 1]


def value_for_the_mover(stones):
    if stones == 0:
        return -1
    values = []
    for taken in (1, 2, 3):
        if taken <= stones:
            values.append(-value_for_the_mover(stones - taken))
    return max(values)


@use((6,), (8,))
def the_move_that_wins(stones):
    """Where no move is possible, max() of none raises, and the program does not get there."""
    best, value = None, -2
    for taken in (1, 2, 3):
        found = -value_for_the_mover(stones - taken)
        if found > value:
            best, value = taken, found
    return best, value
