"""Small linear systems in loops: filters, fits by windows, Newton's method in a few unknowns."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


def wave(*shape):
    return np.sin(np.arange(1.0, np.prod(shape) + 1) * 1.7).reshape(shape)


@use((wave(6, 2), 0.1, 0.3), wrt=(0, 1, 2), long=True)
def kalman(z, q, r):
    f = np.array([[1.0, 0.1], [0.0, 1.0]])
    x, p = np.zeros(2), np.eye(2)
    out, likelihood = [], 0.0
    for t in range(len(z)):
        x = f @ x
        p = f @ p @ f.T + q * np.eye(2)
        s = p + r * np.eye(2)
        y = z[t] - x
        likelihood += y @ np.linalg.solve(s, y) + np.log(np.linalg.det(s))
        k = p @ np.linalg.inv(s)
        x = x + k @ y
        p = (np.eye(2) - k) @ p
        out.append(x.copy())
    return np.array(out), likelihood


@use((wave(9), 5), wrt=(0,), long=True)
def parabolas_by_windows(y, width):
    out = np.zeros(len(y) - width + 1)
    for i in range(len(out)):
        t = np.arange(width) - width // 2
        a = np.stack([np.ones(width), t, t * t], axis=1)
        out[i] = np.linalg.solve(a.T @ a, a.T @ y[i:i + width])[0]
    return out


@use((np.array([1.0, 0.5]),), (np.array([0.0, 0.0]),), wrt=(0,), corners=(1,))
def newton_in_two_unknowns(x):
    for _ in range(5):
        f = np.array([x[0] ** 2 + x[1] ** 2 - 2.0, x[0] - x[1]])
        j = np.array([[2.0 * x[0], 2.0 * x[1]], [1.0, -1.0]])
        x = x - np.linalg.solve(j, f)
    return x


@use((wave(4, 3, 3) + 3.0 * np.eye(3), wave(4, 3)), wrt=(0, 1), long=True)
def energies(a, x):
    total = 0.0
    for m, v in zip(a, x):
        s = m @ m.T
        low = np.linalg.cholesky(s)
        total += v @ np.linalg.inv(s) @ v + 2.0 * np.log(np.diag(low)).sum()
        sign, size = np.linalg.slogdet(m)
        total += sign * size
    return total


@use((np.array([[[2.0, 1.0], [1.0, 3.0]], [[1.0, 1.0], [1.0, 1.0]]]),), joins=True, long=True)
def regular_ones_only(ms):
    out = np.zeros(len(ms))
    for i in range(len(ms)):
        try:
            out[i] = np.linalg.inv(ms[i])[0, 0]
        except np.linalg.LinAlgError:
            out[i] = -1.0
    return out
