"""Second derivatives inside programs that are differentiated again."""

from __future__ import annotations

import numpy as np

import pyrelay
from tests.users.corpus import use


def rand(*shape):
    """Deterministic numbers."""
    return np.sin(np.arange(1, np.prod(shape) + 1) * 2.1).reshape(shape) * 0.7


@use((rand(3), rand(5, 3), np.sign(rand(5)), 2), wrt=(0, 1), long=True)
def newton_steps_by_conjugate_gradients(w, points, labels, steps):
    def loss(w):
        return np.mean(np.logaddexp(0, -labels * (points @ w))) + 0.05 * w @ w

    gradient = pyrelay.grad(loss)
    for _ in range(steps):
        r = -gradient(w)
        found, p, size = np.zeros_like(w), r.copy(), r @ r
        for _ in range(len(w)):
            curved = pyrelay.grad(lambda u: gradient(u) @ p)(w)
            step = size / (p @ curved)
            found = found + step * p
            r = r - step * curved
            if r @ r < 1e-12:
                break
            p, size = r + r @ r / size * p, r @ r
        w = w + found
    return w, loss(w)


@use((rand(3), rand(5, 3), 3), wrt=(0, 1), slow=True)
def curvature_until_it_is_small(w, points, steps):
    gradient = pyrelay.grad(lambda w: np.sum(np.logaddexp(0, points @ w)))
    for _ in range(steps):
        p = gradient(w)
        for _ in range(len(w)):
            p = 0.1 * pyrelay.grad(lambda u: gradient(u) @ p)(w)
            if p @ p < 1e-12:
                break
        w = w + p
    return w
