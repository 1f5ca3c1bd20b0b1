"""`gradients.py` in JAX: `scan` for the loops; it has no gradient of a `while_loop`."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def kalman(f, q, ys, h, r):
    def step(state, y):
        x, p = state
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        e = y - h @ x
        det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = jnp.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
        gain = p @ h.T @ inverse
        share = -0.5 * (e @ inverse @ e + jnp.log(det))
        return (x + gain @ e, p - gain @ h @ p), share

    return jnp.sum(jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)[1])


def soft_dtw(d):
    def line(above, row):
        def place(left, here):
            distance, corner, over = here
            value = distance - jax.nn.logsumexp(-jnp.stack([corner, over, left]))
            return value, value

        rest = jax.lax.scan(place, 1e10, (row, above[:-1], above[1:]))[1]
        return jnp.concatenate([jnp.array([1e10]), rest]), None

    first = jnp.full(d.shape[1] + 1, 1e10).at[0].set(0.0)
    return jax.lax.scan(line, first, d)[0][-1]


def determinant(a):
    # Loops read the lower triangle only, so that is where the gradient lies.
    lower = jnp.tril(a)
    factor = jnp.linalg.cholesky(lower + jnp.tril(a, -1).T, symmetrize_input=False)
    return 2.0 * jnp.sum(jnp.log(jnp.diag(factor)))
