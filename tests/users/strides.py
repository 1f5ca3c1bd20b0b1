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
