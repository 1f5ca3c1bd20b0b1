"""Names that share arrays: swapped, chosen by a branch, kept by a loop, and written to."""

from __future__ import annotations

import math

import numpy as np

from tests.users.corpus import use

X = np.array([1.0, -2.0, 3.0, 0.5])
Y = np.array([0.5, 2.0, -1.0, 4.0])
A = np.sin(np.arange(12.0)).reshape(3, 4)


@use((X, Y, 0), (X, Y, 3), wrt=(0, 1))
def stencil_swapping_its_arguments(u, un, steps):
    for _ in range(steps):
        un[1:-1] = 0.5 * (u[2:] + u[:-2])
        u, un = un, u
    return u


@use((A, np.zeros((3, 4)), 5), wrt=(0,), long=True)
def stencil_swapping_until_it_is_still(u, un, steps):
    for k in range(steps):
        for i in range(1, 2):
            for j in range(1, u.shape[1] - 1):
                un[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        if k and np.abs(un - u).max() < 1e-3:
            break
        u, un = un, u
    return u, un


@use((X, Y, np.ones(4), 4), wrt=(0, 1, 2), slow=True)
def three_buffers_in_turn(a, b, c, steps):
    for _ in range(steps):
        c[:] = 2.0 * b - 0.5 * a
        a, b, c = b, c, a
    return a, b


@use((X, Y, 3), (Y, X, 3), wrt=(0, 1), long=True)
def swapped_on_a_condition(u, v, n):
    for k in range(n):
        if u[0] > v[0]:
            u, v = v, u
        u[k] = u[k] * 0.5 + v[k]
    return u, v


@use((X, Y, 1), (X, Y, 0), wrt=(0, 1))
def written_through_a_chosen_name(x, y, k):
    z = x if k else y
    z[0] = z[1] * 3.0
    return x, y, z


@use((X, Y, 0), (X, Y, 3), wrt=(0, 1))
def the_old_name_written_after_a_loop(x, y, n):
    z = x
    for _ in range(n):
        z = z + y
    x[0] = 10.0
    return z


@use((X, 1), (X, 0), wrt=(0,))
def copied_on_one_branch(x, k):
    if k:
        x = x.copy()
    x[0] = 5.0
    return x


@use((X, Y, 1), (X, Y, 4), wrt=(0, 1), long=True)
def one_of_two_bumped_by_a_helper(x, y, n):
    def bump(v, by):
        v[1] += by

    for i in range(n):
        bump(x if i % 2 else y, 0.5 * x[0])
    return x, y


@use((X, Y, 0), (X, Y, 2))
def asked_whether_it_is_the_same(x, y, n):
    z = x
    for _ in range(n):
        if z is not x:
            break
        z = z + y
    return z is x, z is y


@use((X, Y, 0), (X, Y, 1), wrt=(0, 1), slow=True)
def pairs_in_either_order(x, y, k):
    first, second = (x, y) if k else (y, x)
    first[:] = second * 2.0
    second[0] = 0.0
    return x, y


@use((X, Y, 5), wrt=(0, 1), slow=True)
def the_best_so_far_is_kept_and_marked(x, y, n):
    best, value = x, x.sum()
    for k in range(n):
        if k % 2 and y.sum() * k > value:
            best, value = y, y.sum() * k
        best[0] += 0.25
    return x, y, value


def totalled(value):
    if isinstance(value, tuple):
        return sum(totalled(v) for v in value)
    return np.sum(value)


@use((X, 0), (X, 1))
def an_array_passed_twice_once_perhaps(x, k):
    either = x if k else 2.0
    return totalled((either, x))


@use((A, 1), (A, 0), wrt=(0,))
def a_row_chosen_and_written(a, k):
    row = a[0] if k else a[1]
    row[0] = row[1] * 9.0
    return a


@use((X, Y, 1), (X, Y, 0), wrt=(0, 1), slow=True)
def halves_of_either(x, y, k):
    if k:
        half = x[:2]
    else:
        half = y[2:]
    half *= half
    return x, y


@use((A, 1), (A, 0), wrt=(0,), long=True)
def a_row_or_a_column(a, k):
    line = a[0, :3] if k else a[:, 1]
    line[0] = 9.0
    line += line
    return a.sum(), a, np.max(line)


@use((X, 3), wrt=(0,), slow=True)
def a_window_that_shrinks(x, n):
    y = x
    for _ in range(n):
        y[0] = y[0] * y[1]
        y = y[1:]
    return x, y


@use((A, 2), wrt=(0,), slow=True)
def a_row_carried_through_a_loop(a, n):
    row = a[0]
    for i in range(n):
        row[:] = row + a[i + 1] ** 2
        row = a[i + 1]
    row[1] = 100.0
    return a


@use((A, 4), wrt=(0,), slow=True)
def two_rows_in_turn(a, n):
    old, new = a[0], a[1]
    for _ in range(n):
        new[1:] = old[:-1] * 0.5 + 1.0
        old, new = new, old
    return a


@use((A, 2), wrt=(0,), long=True)
def the_largest_row_cleared(a, k):
    best = a[0]
    for row in a:
        if row.sum() > best.sum():
            best = row
    best[:k] = 0.0
    return a


@use((X, Y, 3), wrt=(0, 1), long=True)
def swapped_by_recursion(x, y, n):
    if n == 0:
        return x
    x[0] = x[0] * y[1]
    return swapped_by_recursion(y, x, n - 1)


@use((A, 1), (A, 0), wrt=(0,), long=True)
def a_row_or_a_column_given_as_out(a, k):
    line = a[0, :3] if k else a[:, 1]
    np.add(line, 1.0, out=line)
    line[:2] -= 2.0 * line[1:]
    return a


@use((X, Y, 1), (X, Y, 0), wrt=(0, 1), slow=True)
def either_added_in_place_to_another(x, y, k):
    total = np.zeros(2)
    total += x[:2] if k else y[::2]
    total *= total
    return total, x, y


@use((X, 1), (X, 0))
def an_array_or_a_number_tripled_in_place(x, k):
    either = x if k else 2.0
    either *= 3
    return either, x


def summed(value):
    if isinstance(value, tuple):
        return sum(summed(v) for v in value)
    return np.sum(value)


@use((X, 1), (X, 0), wrt=(0,))
def an_array_passed_on_and_once_more_perhaps(x, k):
    either = x if k else 2.0
    return summed((x, either))


@use(([[3, 9, 1], [4, 2, 8], [7, 5, 6]], 3), long=True)
def rows_are_drained_where_the_path_leads(rows, rounds):
    """A loop reads items of rows that it chooses, the next one writes them, and so on."""
    drained = 0
    for _ in range(rounds):
        least = math.inf
        k = 2
        while k > 0:
            least = min(least, rows[k - 1][k])
            k -= 1
        k = 2
        while k > 0:
            rows[k - 1][k] -= least
            k -= 1
        drained += least
    return drained
