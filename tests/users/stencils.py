"""Arrays updated from their own neighbourhood, and rows and columns brought to one scale."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


def wave(*shape):
    return np.sin(np.arange(1.0, np.prod(shape) + 1) * 1.7).reshape(shape) + 1.5


@use((wave(9), 3), wrt=(0,), slow=True)
def heat(u, steps):
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


@use((wave(5, 6), 2), wrt=(0,))
def laplace(u, steps):
    for _ in range(steps):
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2])
        u[0] = u[1]
    return u


@use((wave(9),), wrt=(0,))
def reversed_in_place(x):
    x[:] = x[::-1] * 2.0
    x[1:] -= x[:-1]
    return x


@use((wave(5, 6),), wrt=(0,), slow=True)
def shifted_diagonally(x):
    x[1:, 1:] = x[:-1, :-1] + x[1:, :-1] * x[0, 0]
    x[1] = x[0] * 2 + x[2]
    return x


@use((wave(4, 6),), wrt=(0,), slow=True)
def softmax_of_the_columns_before(x):
    x[:, 1:] = np.exp(x[:, :-1] - x[:, :-1].max(1, keepdims=True))
    return x


@use((wave(4, 3),), wrt=(0,), slow=True)
def doubly_centred(x):
    return x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean()


@use((wave(5, 3), wave(3), wave(3)), wrt=(0, 1, 2), long=True)
def batch_norm_with_statistics(x, scale, shift):
    mean, spread = x.mean(axis=0), x.std(axis=0)
    y = np.maximum((x - mean) / spread * scale + shift, 0.1)
    return y, mean, spread


@use((wave(2, 3, 4),), wrt=(0,), slow=True)
def entropy_per_row(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return -np.sum(p * np.log(p), axis=-1), p.max(axis=-1)
