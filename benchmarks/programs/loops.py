"""Programs of `arrays.py` and `rows.py` as loops over elements, in the order that suits memory:
what numba is best at.

In: their arguments. Out: their results. What is written in loops there is not here again.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.programs import arrays


def jacobi(u, steps):
    u = u.copy()
    v = u.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    return u


def wave(u, v, steps, c):
    u, v = u.copy(), v.copy()
    n = len(u)
    for _ in range(steps):
        for i in range(1, n - 1):
            v[i] += c * (u[i + 1] - 2.0 * u[i] + u[i - 1])
        for i in range(n):
            u[i] += v[i]
    return u


def life(board, steps):
    board = board.copy()
    new = board.copy()
    n, m = board.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                count = (
                    board[i - 1, j - 1] + board[i - 1, j] + board[i - 1, j + 1]
                    + board[i, j - 1] + board[i, j + 1]
                    + board[i + 1, j - 1] + board[i + 1, j] + board[i + 1, j + 1]
                )
                new[i, j] = (count == 3) | ((board[i, j] == 1) & (count == 2))
        board, new = new, board
    return board


def distances(x):
    n, m = x.shape
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            s = 0.0
            for k in range(m):
                s += (x[i, k] - x[j, k]) ** 2
            d[i, j] = d[j, i] = math.sqrt(s)
    return d


def elimination(a):
    a = a.copy()
    n = a.shape[0]
    order = np.arange(n)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            for j in range(n):
                a[k, j], a[p, j] = a[p, j], a[k, j]
            order[k], order[p] = order[p], order[k]
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            f = a[i, k]
            for j in range(k + 1, n):
                a[i, j] -= f * a[k, j]
    return a, order


def rank_k(c, a, alpha, beta):
    c = c.copy()
    for i in range(a.shape[0]):
        for j in range(i + 1):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * a[j, k]
            c[i, j] = beta * c[i, j] + alpha * s
    return c


def durbin(r):
    n = len(r)
    y, z = np.empty_like(r), np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        s = r[k]
        for i in range(k):
            s += r[k - i - 1] * y[i]
        alpha = -s / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y


def viterbi(step, emit, start, seen):
    steps, n = len(seen), len(start)
    best = np.zeros((steps, n))
    back = np.zeros((steps, n), dtype=np.int64)
    for j in range(n):
        best[0, j] = start[j] + emit[j, seen[0]]
    for t in range(1, steps):
        for j in range(n):
            most, at = -np.inf, 0
            for i in range(n):
                score = best[t - 1, i] + step[i, j]
                if score > most:
                    most, at = score, i
            back[t, j] = at
            best[t, j] = most + emit[j, seen[t]]
    path = np.zeros(steps, dtype=np.int64)
    at = 0
    for j in range(n):
        if best[steps - 1, j] > best[steps - 1, at]:
            at = j
    path[steps - 1] = at
    for t in range(steps - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path


def seidel_rows(a, steps):
    a = a.copy()
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (
                    a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                    + a[i, j - 1] + a[i, j] + a[i, j + 1]
                    + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                ) / 9.0
    return a


def body_vectors(x, v, m, steps, dt):
    """With as many divisions as there are in the program with vectors."""
    x, v = x.copy(), v.copy()
    n = x.shape[0]
    for _ in range(steps):
        for i in range(n):
            ax = ay = az = 0.0
            for j in range(n):
                if i != j:
                    dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                    d = dx * dx + dy * dy + dz * dz + 1e-3
                    d *= math.sqrt(d)
                    ax += m[j] * dx / d
                    ay += m[j] * dy / d
                    az += m[j] * dz / d
            v[i, 0] += dt * ax
            v[i, 1] += dt * ay
            v[i, 2] += dt * az
        for i in range(n):
            for k in range(3):
                x[i, k] += dt * v[i, k]
    return x


PROGRAMS = {
    **arrays.PROGRAMS,
    "jacobi": jacobi, "wave": wave, "life": life,
    **{
        function.__name__: function
        for function in (
            distances, body_vectors, elimination, rank_k, durbin, viterbi, seidel_rows,
        )
    },
    "lu_dots": arrays.lu,
}
