"""Slices that hold one element, `x[i : i + 1]`, beside arrays of more; views of one path only."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

RNG = np.random.default_rng(11)
MATRIX = RNG.normal(size=(5, 5))


@use((RNG.normal(size=(9, 2)), RNG.random((9, 3)), 3), wrt=(0, 1), long=True)
def means_of_clusters(points, shares, k):
    means = points[:k].copy()
    for j in range(k):
        means[j] = (shares[:, j : j + 1] * points).sum(axis=0)
        shares[:, j] = (points - means[j])[:, 0]
    return means, shares


@use((MATRIX,), wrt=(0,), slow=True)
def elimination_by_slices(a):
    a = a.copy()
    for i in range(len(a)):
        a[i + 1 :] = a[i + 1 :] - a[i + 1 :, i : i + 1] / 7.0 * a[i : i + 1]
    return a


@use((MATRIX, 2), wrt=(0,), long=True)
def a_row_from_a_column(a, k):
    a = a.copy()
    a[:, k : k + 1] = a[k : k + 1].T * 2
    a[k : k + 1, :] -= (a[:, k : k + 1] * a[k : k + 1])[0:1]
    return a


@use((RNG.normal(size=6), np.array([3, 1, 2])), wrt=(0,), long=True)
def neighbours_where_told(x, where):
    out = np.zeros((3, 6))
    total = 0.0
    for i in range(len(where)):
        k = int(where[i])
        out[i] = x[k - 1 : k] + x[k : k + 1] * x[k + 1 : k + 2]
        total += (x[k : k + 1] + out * x[k - 1 : k]).sum()
    return out, total


@use((RNG.normal(size=5),), wrt=(0,), long=True)
def the_one_before_or_one(x):
    out = np.zeros((3, 5))
    k = 0
    while k < 5 and x[k] < 3:
        out[:, k : k + 1] += x[k - 1 : k] if k > 0 else 1.0
        k += 1
    return out


@use((RNG.normal(size=5),), wrt=(0,))
def a_view_of_one_path(x):
    total = 0.0
    k = 0
    while k < 3:
        rest = x[k:] if k > 0 else 1.0
        total += np.sum(rest * k)
        k += 1
    return total


@use((np.arange(15.0).reshape(5, 3), 4), (np.arange(15.0).reshape(5, 3), 2))
def a_slice_stored_in_more_rows(x, k):
    x[1:] = x[k : k + 1]
    return x, np.where(x > 3, x[k : k + 1], -x)
