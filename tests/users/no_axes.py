"""Arrays of no axes: views of one element, losses that are squeezed."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

VALUES = np.array([1.5, -2.0, 0.5])


@use((VALUES,))
def one_element_seen_by_reshape_and_squeeze(s):
    t = s[1:2].reshape(())
    u = s[2:3].squeeze()
    v = s[0, ...]
    s *= 2
    t += 7
    u[...] = 3
    return s, t, u, v, v * 2, v[()], float(t)


@use((VALUES,))
def elements_by_ellipsis(s):
    total = 0.0
    for i in range(3):
        s[i, ...] *= i
        total += s[i, ...]
    return total, s[..., 1], s[1]


@use((VALUES,), wrt=(0,))
def squeezed_loss(w):
    loss = np.zeros((1, 1))
    loss[0, 0] = np.sum(w**3)
    return loss.squeeze()


@use((VALUES,), wrt=(0,))
def loss_of_no_axes(w):
    loss = np.zeros(())
    for v in w:
        loss += v * v
    return loss


@use((VALUES, 3),)
def squeezed_along_a_named_axis(s, n):
    return [s[i : i + 1].squeeze(axis=0) for i in range(n)]


@use((np.sin(np.arange(8.0)), np.cos(np.arange(24.0)).reshape(3, 8), 2), wrt=(0, 1))
def scores_of_so_many_heads(q, keys, heads):
    size = q.shape[-1] // heads
    scores = np.einsum("hd,thd->ht", q.reshape(heads, size), keys.reshape(-1, heads, size))
    return np.exp(scores / np.sqrt(size)).sum(axis=1)


@use((np.array(2.5), np.array(3)))
def first_axis_of_what_has_none(x, i):
    spread = np.repeat(x, 2, axis=0), i.repeat(3, axis=-1), np.take(x, [0, -1], axis=0)
    kept = x.compress([True], axis=0), np.argwhere(x), np.argwhere(i - 3)
    reduced = np.subtract.reduce(x), np.bitwise_xor.reduce(i, axis=-1), np.divide.reduce(x, axis=0)
    return spread, kept, reduced, np.cov(x), np.corrcoef(x), np.asfortranarray(x)


@use((np.array(3),))
def arrays_of_no_axes_made(i):
    each = np.vectorize(lambda t: t + 1)
    parts = np.vectorize(lambda t: (t, t * 0.5))(i)
    return each(i), each(3), np.vectorize(abs, otypes=[float])(i), parts, np.pad(i, 1)


@use((VALUES, np.array(2.5)))
def one_bool_chooses(s, x):
    positive = x > 2
    s[np.array(True)] += 1
    x[np.array(False)] = 9
    y = np.tanh(x)
    return s[np.asarray(positive)], x[x > 2], x[x > 9], y[y > 0]
