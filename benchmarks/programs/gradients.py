"""Losses made of loops over numbers and short rows, whose gradients are timed.

In: arrays and numbers. Out: a number. Written as NumPy's users write them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def kalman(f, q, ys, h, r):
    """Log-likelihood of a series under a linear state space of 4 with 2 outputs (Kalman, 1960)."""
    x, p, total = np.zeros(4), np.eye(4), 0.0
    for t in range(ys.shape[0]):
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        e = ys[t] - h @ x
        det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = np.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
        gain = p @ h.T @ inverse
        x = x + gain @ e
        p = p - gain @ h @ p
        total = total - 0.5 * (e @ inverse @ e + np.log(det))
    return total


def soft_dtw(d):
    """Soft dynamic time warping of a matrix of distances (Cuturi and Blondel, 2017)."""
    n, m = d.shape
    r = np.full((n + 1, m + 1), 1e10)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = -r[i - 1, j - 1], -r[i - 1, j], -r[i, j - 1]
            top = max(a, b, c)
            total = math.exp(a - top) + math.exp(b - top) + math.exp(c - top)
            r[i, j] = d[i - 1, j - 1] - top - math.log(total)
    return r[n, m]


def determinant(a):
    """Logarithm of the determinant, by Cholesky's factor, row by row."""
    n = a.shape[0]
    f = np.zeros((n, n))
    total = 0.0
    for j in range(n):
        s = a[j, j]
        for k in range(j):
            s -= f[j, k] * f[j, k]
        f[j, j] = math.sqrt(s)
        total += 2.0 * math.log(f[j, j])
        for i in range(j + 1, n):
            t = a[i, j]
            for k in range(j):
                t -= f[i, k] * f[j, k]
            f[i, j] = t / f[j, j]
    return total


def fixed_points(x):
    """The sum of the y = x cos(y) / 5, each by as many iterations as it takes."""
    total = 0.0
    for i in range(len(x)):
        y = 0.0
        while abs(y - 0.2 * x[i] * math.cos(y)) > 1e-9:
            y = 0.2 * x[i] * math.cos(y)
        total += y
    return total


#: Loss and the arguments that its gradient is taken in.
GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "kalman_gradient": (kalman, (0, 1)),
    "soft_dtw_gradient": (soft_dtw, (0,)),
    "determinant_gradient": (determinant, (0,)),
    "fixed_points_gradient": (fixed_points, (0,)),
}
