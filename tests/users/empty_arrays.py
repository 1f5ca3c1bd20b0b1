"""Arrays and iterables with nothing in them: what NumPy and Python raise, and what they give."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

X = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
NONE = np.zeros(0)


@use((NONE,), (X,), wrt=(0,))
def greatest_of_all(x):
    return x.max(), np.argmin(x)


@use((NONE,), (X,))
def place_of_the_greatest(x):
    return np.argmax(x)


@use((np.zeros((0, 3)),), (np.ones((2, 3)),), (np.zeros((2, 0)),), (np.zeros((0, 0)),))
def greatest_along_an_axis(m):
    return m.max(axis=1)


@use((np.zeros((0, 3)),), (np.zeros((2, 0)),))
def place_of_the_least_along_an_axis(m):
    return m.argmin(axis=0)


@use((X, 2.0), (X, 9.0), wrt=(0,), slow=True)
def greatest_of_a_mask(x, limit):
    return x[x > limit].max()


@use((X, 2.0), (X, 9.0), wrt=(0,), joins=True, long=True)
def greatest_of_a_mask_or_none(x, limit):
    try:
        return x[x > limit].max()
    except ValueError as error:
        return len(str(error)) * 1.0


@use((X, 2), (X, 0), wrt=(0,), slow=True)
def greatest_in_a_window(x, width):
    out = np.zeros(len(x) - width + 1)
    for i in range(len(out)):
        out[i] = x[i : i + width].max()
    return out


@use((X, 1, 3), (X, 3, 3), wrt=(0,), long=True)
def extremes_of_a_part(x, a, b):
    return x[a:b].sum(), x[a:b].min(), np.ptp(x[a:b])


@use((0,), (3,))
def greatest_with_a_first(n):
    return np.linalg.norm(np.ones(n), np.inf), np.max(np.ones(n), initial=0)


@use((NONE,), (X[:1],), wrt=(0,))
def chained_from_the_second_on(x):
    total, p = 0.0, 1.0
    for i in range(1, len(x)):
        p = np.tanh(p * x[i - 1]) + x[i]
        total += p * p
    return total


@use((X, 3), (X, 9), (X, 1))
def spread_of_too_few(x, lost):
    return np.var(x, ddof=lost), x.std(ddof=lost), np.cov(np.stack([x, -x]), ddof=lost)


@use((NONE, NONE), (X, np.zeros(len(X))), (X, X**2), wrt=(0, 1), corners=(0, 1))
def weighted_or_not(x, w):
    try:
        return np.average(x, weights=w)
    except ZeroDivisionError as error:
        return str(error)


@use((X, 0), (X, 2), wrt=(0,), corners=(0,))
def middle_of_a_part(x, n):
    return np.median(x[:n])


@use((X, 9.0), (X, 2.0))
def arrays_of_lists_that_may_be_empty(x, limit):
    places, pairs = [], []
    for i, v in enumerate(x):
        if v > limit:
            places.append(i)
            pairs.append((i, float(v)))
    whole = np.array(places)
    return whole, np.array(pairs), np.array(places, dtype=int), [whole]


@use((np.zeros((3, 0)), 4), (np.ones((3, 2)), 4))
def transforms_of_nothing(m, n):
    return np.fft.fft(m, n=n), np.fft.irfft(m, n=n), np.argpartition(m.ravel()[:0], 0)


@use((np.zeros((3, 0)),), (np.eye(3)[:, :2],))
def matrices_of_nothing(m):
    return np.linalg.matrix_rank(m), np.linalg.pinv(m)
