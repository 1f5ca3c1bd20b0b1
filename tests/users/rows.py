"""Rows and columns of arrays inside loops: sums, differences, updates of parts, small vectors."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.rows import durbin
from tests.users.corpus import use


def wave(*shape):
    return np.sin(np.arange(1.0, np.prod(shape) + 1) * 1.7).reshape(shape) + 1.5


def dominant(n):
    return wave(n, n) + 4.0 * n * np.eye(n)


@use((dominant(6),), wrt=(0,), long=True)
def lu_by_dot_products(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


@use((wave(5, 5) + 3.0 * np.eye(5)[::-1], wave(5)), wrt=(0, 1), long=True)
def elimination_with_pivots(a, b):
    a, b = a.copy(), b.copy()
    n = len(b)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
            b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1:] @ x[i + 1:]) / a[i, i]
    return x


@use((wave(4, 3) * 0.5, wave(4, 3), wave(4) * 0.1, 3), wrt=(0, 1, 2), long=True)
def bodies_as_vectors(x, v, m, steps):
    n = x.shape[0]
    for _ in range(steps):
        for i in range(n):
            a = np.zeros(3)
            for j in range(n):
                if i != j:
                    r = x[j] - x[i]
                    d = np.dot(r, r) + 0.1
                    a += m[j] * r / (d * np.sqrt(d))
            v[i] += 0.1 * a
        x += 0.1 * v
    return x


@use((wave(5, 3),), wrt=(0,), long=True)
def distances_of_rows(x):
    n = len(x)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = np.linalg.norm(x[i] - x[j])
            d[j, i] = np.sqrt(((x[i, :] + x[j, :]) ** 2).sum())
    return d


@use((wave(4, 4), wave(4, 3), 1.5, 0.5), wrt=(0, 1, 2, 3), long=True)
def rank_one_updates_of_a_triangle(c, a, alpha, beta):
    for i in range(a.shape[0]):
        c[i, :i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, :i + 1] += alpha * a[i, k] * a[:i + 1, k]
    return c


use((wave(6) * 0.1,), wrt=(0,))(durbin)


@use((wave(5, 6), 2), wrt=(0,), long=True)
def gauss_seidel_by_rows(a, steps):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i, 2:] + a[i + 1, 1:-1]
            for j in range(1, n):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0
    return a


@use((wave(6, 2), wave(3, 2), 2), wrt=(0, 1), long=True)
def nearest_of_each(x, c, steps):
    c = c.copy()
    for _ in range(steps):
        sums, count = np.zeros_like(c), np.zeros(len(c))
        for i in range(len(x)):
            at, best = 0, np.inf
            for j in range(len(c)):
                d = np.sum((x[i] - c[j]) ** 2)
                if d < best:
                    at, best = j, d
            sums[at] += x[i]
            count[at] += 1
        for j in range(len(c)):
            if count[j] > 0:
                c[j] = sums[j] / count[j]
    return c


@use((wave(4, 5), 2), wrt=(0,), long=True)
def rows_that_change_places(a, steps):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(n - 1):
            row = a[i].copy()
            a[i] = a[i + 1]
            a[i + 1] = row
            row[0] = 5.0  # a copy: nobody sees it
            seen = a[i]
            seen[1] += 0.5  # a view: everybody does
    return a


@use((wave(4, 4), wave(4)), wrt=(0, 1), long=True)
def vectors_of_one_branch_or_another(a, x):
    total = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(len(x)):
            row = a[i] * 2.0 if a[i, j] > 1.5 else x
            if i < j:
                x = x + 0.1 * row
            else:
                x[1:] += 0.1 * row[:-1]
            total += row * x[j]
    return total, x


@use((wave(5), wave(5), 3), wrt=(0, 1), long=True)
def shifted_within_themselves(x, y, steps):
    for i in range(len(x)):
        for _ in range(steps):
            x[1:] = 0.5 * x[:-1]
            y[:-1] += 0.25 * y[1:] * x[i]
            x[:] = x[::-1] + y
    return x, y


@use((wave(4, 5), wave(5, 3)), wrt=(0, 1), long=True)
def products_element_by_element(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = np.dot(a[i], b[:, j])
    return c


@use((np.array([0, 2, 5, 6]), np.array([0, 1, 1, 2, 3, 0]), wave(6), wave(4)), wrt=(2, 3),
    long=True)
def sparse_rows(start, column, value, x):
    y = np.zeros(len(start) - 1)
    for i in range(len(y)):
        part = slice(start[i], start[i + 1])
        y[i] = value[part] @ x[column[part]]
    return y


@use((wave(3), 0.1, 5), wrt=(0,), slow=True)
def runge_kutta_of_three(y, h, steps):
    def slope(s):
        return np.array([s[1] - s[0], s[0] * (2.0 - s[2]) - s[1], s[0] * s[1] - s[2]])

    path = np.zeros((steps, 3))
    for i in range(steps):
        k = slope(y)
        y = y + 0.5 * h * (k + slope(y + h * k))
        path[i] = y
    return path


@use((wave(6, 5), wave(3, 2)), wrt=(0, 1), long=True)
def windows(image, k):
    n, m = image.shape[0] - k.shape[0] + 1, image.shape[1] - k.shape[1] + 1
    out = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            out[i, j] = np.sum(image[i:i + k.shape[0], j:j + k.shape[1]] * k)
    return out


@use((wave(4, 5),), wrt=(0,), long=True)
def softmax_row_by_row(x):
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        e = np.exp(x[i] - x[i].max())
        out[i] = e / e.sum()
    return out


@use((np.array([3, 1, 4]), wave(3, 5)), wrt=(), long=True)
def an_index_out_of_bounds_leaves_what_was_written(at, a):
    for i in range(len(at)):
        for j in range(2):
            a[i, 1:] = a[at[i], :-1]
    return a


@use((wave(5) - 1.5, wave(5, 5)), wrt=(0, 1), slow=True)
def a_copy_in_each_round(x, a):
    total = 0.0
    for i in range(len(x)):
        y = x.copy()
        for j in range(len(x)):
            y[j] = y[j] * a[i, j] + y[i]
        total += np.sum(y * y)
    return total


@use((wave(4, 4) - 1.5,), wrt=(0,), long=True)
def vectors_by_branches(x):
    s = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(len(x)):
            if x[i, j] > 0.0:
                v = x[i] * x[j]
            elif x[i, j] > -0.4:
                v = x[j] * 2.0
            else:
                continue
            s += v * x[i, j]
    return s


@use((wave(7) - 1.5,), wrt=(0,), long=True)
def parts_of_growing_length_in_while_loops(x):
    n, total = 0, 0.0
    while n < len(x):
        y = x[:n + 1].copy()
        k = 0
        while k < n and total < 1e3:
            y[k] = y[k] * x[n] + 0.5
            total = total + y[k] * y[k]
            k += 1
        n += 1
    return total


@use((dominant(4),), wrt=(0,), long=True)
def inverse_by_rows(a):
    n = a.shape[0]
    m = np.zeros((n, 2 * n))
    m[:, :n] = a
    for i in range(n):
        m[i, n + i] = 1.0
    for k in range(n):
        m[k] = m[k] / m[k, k]
        for i in range(n):
            if i != k:
                m[i] = m[i] - m[i, k] * m[k]
    return m[:, n:]


@use((wave(4, 7),), wrt=(0,), long=True)
def falls_from_the_highest_so_far(x):
    falls = np.zeros(len(x))
    for i in range(len(x)):
        highest = np.maximum.accumulate(x[i])
        falls[i] = (highest - x[i]).sum() + np.cumprod(x[i] * 0.5).max()
    return falls


@use((wave(4, 7), np.arange(12).reshape(4, 3) * 5 % 7 - 3, wave(4, 3)), wrt=(0, 2), long=True)
def added_and_stored_at_places(x, places, v):
    out = x.copy()
    for i in range(len(places)):
        np.add.at(out[i], places[i], v[i])
        out[i, places[i]] *= 0.5
        out[i] = np.cumsum(out[i])
    return out
