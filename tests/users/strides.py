"""Slices whose step the program computes: sieves, strides that double, steps from data."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

X = np.linspace(0.5, 2.0, 16)
M = np.linspace(-1.0, 1.0, 20).reshape(4, 5)


@use((50,))
def primes_by_slices(n):
    flags = np.ones(n, dtype=bool)
    flags[:2] = False
    i = 2
    while i * i < n:
        if flags[i]:
            flags[i * i::i] = False
        i += 1
    return np.nonzero(flags)[0]


@use((X, np.array([1, 3, -2, 40])), wrt=(0,))
def steps_from_data(x, steps):
    total = 0.0
    for s in steps:
        total += x[::s].sum() * x[9:2:-abs(s)][-1]
    return total


@use((X,), (X[:9],), wrt=(0,), long=True)
def averages_and_differences(x):
    x, step = x.copy(), 1
    while 2 * step <= len(x):
        left, right = x[0 : len(x) - step : 2 * step], x[step :: 2 * step]
        mean, difference = (left + right) * 0.5, (left - right) * 0.5
        x[0 : len(x) - step : 2 * step] = mean
        x[step :: 2 * step] = difference
        step *= 2
    return x


@use((M, 3), (M, 1), (M, -2), wrt=(0,), long=True)
def blocks_of_a_matrix(m, k):
    m, by = m.copy(), k + 0
    part = m[::by, 1::-by]
    part *= 2.0
    m[1::by, ::by] += np.ones(5)[::by]
    return m, m.T[by::by].sum(axis=0), len(part)


@use((X, 0), (X, 2), long=True)
def refused_by_numpy(x, k):
    y, by = x.copy(), k + 0
    try:
        y[3::by] = 0.0
    except ValueError as error:
        return y, str(error)
    y[::by] = [1.0] * 8
    return y, "done"


@use((2,), (50,))
def primes_by_slices_of_a_list(n):
    flags = [True] * (n + 1)
    flags[:2] = [False, False]
    for i in range(2, int(n**0.5) + 1):
        if flags[i]:
            flags[i * i :: i] = [False] * len(flags[i * i :: i])
    return [i for i, flag in enumerate(flags) if flag]


@use((X, np.array([1, 2])), wrt=(0,), slow=True)
def step_through_a_list_from_data(x, steps):
    total = 0.0
    items = [v * 2 for v in x]
    for s in steps:
        items[1::s] = [v * 0.5 for v in items[1::s]]
        total += sum(items[::s]) * items[::-s][0]
    return total


@use(([1, 2, 3, 4, 5, 6], 5, 1, -2), ([1, 2, 3, 4, 5, 6], 1, 4, 1), ([], 0, 3, 2), long=True)
def parts_of_a_list(xs, a, b, k):
    left = xs[:]
    del left[a:b:k]
    try:
        left[a:b:k] = [9] * 4
    except ValueError as error:
        return xs[a:b:k], left, str(error)
    return xs[a:b:k], left
