"""`arrays.py` in JAX: whole arrays where they can be, `fori_loop` and `scan` where they cannot."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def jacobi(u, steps):
    def step(_, u):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return u.at[1:-1, 1:-1].set(inner)

    return jax.lax.fori_loop(0, steps, step, u)


def gauss_seidel(u, steps):
    n, m = u.shape

    def element(k, u):
        i, j = k // (m - 2) + 1, k % (m - 2) + 1
        return u.at[i, j].set(0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]))

    def step(_, u):
        return jax.lax.fori_loop(0, (n - 2) * (m - 2), element, u)

    return jax.lax.fori_loop(0, steps, step, u)


def wave(u, v, steps, c):
    def step(_, state):
        u, v = state
        v = v.at[1:-1].add(c * (u[2:] - 2.0 * u[1:-1] + u[:-2]))
        return u + v, v

    return jax.lax.fori_loop(0, steps, step, (u, v))[0]


def floyd_warshall(d):
    def step(k, d):
        return jnp.minimum(d, d[:, k, None] + d[None, k, :])

    return jax.lax.fori_loop(0, d.shape[0], step, d)


def nbody(x, v, m, steps, dt):
    def step(_, state):
        x, v = state
        apart = x[None] - x[:, None]
        squares = jnp.sum(apart * apart, axis=2) + 1e-3
        pull = m[None] / (squares * jnp.sqrt(squares))
        v = v + dt * jnp.sum(pull[:, :, None] * apart, axis=1)
        return x + dt * v, v

    return jax.lax.fori_loop(0, steps, step, (x, v))[0]


def edit_distance(a, b):
    def line(row, letter):
        def place(state, pair):
            left, left_above = state
            above, other = pair
            best = jnp.minimum(left_above + (letter != other), jnp.minimum(above, left) + 1)
            return (best, above), best

        first = row[0] + 1
        _, rest = jax.lax.scan(place, (first, row[0]), (row[1:], b))
        return jnp.concatenate([first[None], rest]), None

    return jax.lax.scan(line, jnp.arange(b.shape[0] + 1), a)[0][-1]


def knapsack(weights, values, capacity):
    places = jnp.arange(capacity + 1)

    def item(best, pair):
        weight, value = pair
        taken = best[jnp.maximum(places - weight, 0)] + value
        return jnp.where(places >= weight, jnp.maximum(best, taken), best), None

    return jax.lax.scan(item, jnp.zeros(capacity + 1), (weights, values))[0][-1]


def histogram(x, bins):
    return jnp.bincount((x * bins).astype(int), length=bins)


def crc32(data, table):
    def step(crc, byte):
        return table[(crc ^ byte) & 0xFF] ^ (crc >> 8), None

    start = jnp.uint32(0xFFFFFFFF)
    return jax.lax.scan(step, start, data)[0] ^ jnp.uint32(0xFFFFFFFF)


def life(board, steps):
    def step(_, board):
        n = (
            board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2]
            + board[1:-1, 2:] + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
        )
        alive = (n == 3) | ((board[1:-1, 1:-1] == 1) & (n == 2))
        return board.at[1:-1, 1:-1].set(alive.astype(board.dtype))

    return jax.lax.fori_loop(0, steps, step, board)


def lu(a):
    below = jnp.arange(a.shape[0])

    def step(k, a):
        factors = jnp.where(below > k, a[:, k] / a[k, k], 0.0)
        row = jnp.where(below > k, a[k], 0.0)
        column = jnp.where(below > k, factors, a[:, k])
        return (a - factors[:, None] * row[None]).at[:, k].set(column)

    return jax.lax.fori_loop(0, a.shape[0], step, a)


def tridiagonal(lower, diagonal, upper, right):
    def down(state, line):
        c, d = state
        low, mid, up, value = line
        w = mid - low * c
        state = up / w, (value - low * d) / w
        return state, state

    _, (c, d) = jax.lax.scan(down, (0.0, 0.0), (lower, diagonal, upper, right))

    def back(x, line):
        x = line[1] - line[0] * x
        return x, x

    return jax.lax.scan(back, 0.0, (c, d), reverse=True)[1]


def fft(re, im):
    y = jnp.fft.fft(re + 1j * im)
    return y.real, y.imag


def conjugate_gradient(a, b, steps):
    def step(_, state):
        x, r, p, rr = state
        ap = a @ p
        alpha = rr / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        return x, r, r + (new / rr) * p, new

    return jax.lax.fori_loop(0, steps, step, (jnp.zeros_like(b), b, b, b @ b))[0]


def lorenz(state, steps, dt):
    def slope(s):
        x, y, z = s
        return jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    def step(_, s):
        a = slope(s)
        b = slope(s + 0.5 * dt * a)
        c = slope(s + 0.5 * dt * b)
        d = slope(s + dt * c)
        return s + dt / 6.0 * (a + 2.0 * b + 2.0 * c + d)

    return jax.lax.fori_loop(0, steps, step, state)


def blur(image, kernel):
    return jax.scipy.signal.correlate2d(image, kernel, mode="valid")


def kmeans(points, centres, steps):
    def step(_, centres):
        distances = jnp.sum((points[:, None] - centres[None]) ** 2, axis=2)
        member = jax.nn.one_hot(jnp.argmin(distances, axis=1), centres.shape[0], dtype=points.dtype)
        return member.T @ points / jnp.maximum(member.sum(axis=0), 1.0)[:, None]

    return jax.lax.fori_loop(0, steps, step, centres)


def monte_carlo(n, seed):
    def number(state):
        return (1103515245 * state + 12345) % 2147483648

    def step(_, pair):
        state, inside = pair
        first = number(state)
        second = number(first)
        x, y = first / 2147483648, second / 2147483648
        return second, inside + (x * x + y * y < 1.0)

    return 4.0 * jax.lax.fori_loop(0, n, step, (seed, 0))[1] / n
