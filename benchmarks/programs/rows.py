"""Array programs that compute with rows and columns inside loops, as NumPy's users write them.

In: arrays and numbers. Out: arrays. What numba runs is in `loops.py`: loops over elements.
"""

from __future__ import annotations

import numpy as np


def distances(x):
    """Euclidean distances of all pairs of rows."""
    n = len(x)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = np.linalg.norm(x[i] - x[j])
            d[j, i] = d[i, j]
    return d


def body_vectors(x, v, m, steps, dt):
    """Bodies under gravity, softened, with vectors of three."""
    x, v = x.copy(), v.copy()
    n = x.shape[0]
    for _ in range(steps):
        for i in range(n):
            a = np.zeros(3)
            for j in range(n):
                if i != j:
                    r = x[j] - x[i]
                    d = np.dot(r, r) + 1e-3
                    a += m[j] * r / (d * np.sqrt(d))
            v[i] += dt * a
        x += dt * v
    return x


def lu_dots(a):
    """LU without pivots, by dot products of rows and columns."""
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def elimination(a):
    """LU with row pivots, by updates of rows; and the order of the rows."""
    a = a.copy()
    n = a.shape[0]
    order = np.arange(n)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
            order[k], order[p] = order[p], order[k]
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1:] -= a[i, k] * a[k, k + 1:]
    return a, order


def rank_k(c, a, alpha, beta):
    """The lower triangle of beta c + alpha a a', by rows (BLAS's syrk)."""
    c = c.copy()
    for i in range(a.shape[0]):
        c[i, :i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, :i + 1] += alpha * a[i, k] * a[:i + 1, k]
    return c


def durbin(r):
    """Yule and Walker's equations of an autocorrelation (Durbin, 1960)."""
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def viterbi(step, emit, start, seen):
    """The likeliest path of a hidden Markov model, from logarithms of probabilities."""
    steps, n = len(seen), len(start)
    best = np.zeros((steps, n))
    back = np.zeros((steps, n), dtype=np.int64)
    best[0] = start + emit[:, seen[0]]
    for t in range(1, steps):
        for j in range(n):
            scores = best[t - 1] + step[:, j]
            back[t, j] = np.argmax(scores)
            best[t, j] = scores[back[t, j]] + emit[j, seen[t]]
    path = np.zeros(steps, dtype=np.int64)
    path[-1] = np.argmax(best[-1])
    for t in range(steps - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path


def seidel_rows(a, steps):
    """A stencil of nine in place: what is known of a row at once, the rest one by one."""
    a = a.copy()
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            a[i, 1:-1] += (
                a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:]
                + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            )
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0
    return a


PROGRAMS = {
    function.__name__: function
    for function in (
        distances, body_vectors, lu_dots, elimination, rank_k, durbin, viterbi, seidel_rows,
    )
}
