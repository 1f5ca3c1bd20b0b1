"""Array programs with loops and writes in place, as people write them: plain Python over NumPy.

In: arrays and numbers. Out: arrays or numbers. Loops where the algorithm is a loop, slices where it
is whole arrays. What numba runs is in `loops.py` where these are slices, else the same.
"""

from __future__ import annotations

import numpy as np


def jacobi(u, steps):
    """Laplace's equation on a square, Jacobi's iteration."""
    u = u.copy()
    v = u.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u


def gauss_seidel(u, steps):
    """The same, each value replaced as soon as it is known."""
    u = u.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def wave(u, v, steps, c):
    """The wave equation on a line with fixed ends: positions and velocities, leapfrog."""
    u, v = u.copy(), v.copy()
    for _ in range(steps):
        v[1:-1] += c * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u += v
    return u


def floyd_warshall(d):
    """All shortest paths of a graph."""
    d = d.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def nbody(x, v, m, steps, dt):
    """Bodies under gravity, softened, all pairs."""
    x, v = x.copy(), v.copy()
    n = x.shape[0]
    for _ in range(steps):
        for i in range(n):
            ax = ay = az = 0.0
            for j in range(n):
                dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + 1e-3
                w = m[j] / (r2 * np.sqrt(r2))
                ax += w * dx
                ay += w * dy
                az += w * dz
            v[i, 0] += dt * ax
            v[i, 1] += dt * ay
            v[i, 2] += dt * az
        for i in range(n):
            for k in range(3):
                x[i, k] += dt * v[i, k]
    return x


def edit_distance(a, b):
    """Levenshtein's distance of two sequences of integers (Wagner and Fischer, 1974)."""
    n, m = len(a), len(b)
    row = np.arange(m + 1)
    for i in range(n):
        left_above = row[0]
        row[0] = i + 1
        for j in range(m):
            above = row[j + 1]
            best = left_above if a[i] == b[j] else left_above + 1
            best = min(best, above + 1, row[j] + 1)
            left_above = above
            row[j + 1] = best
    return row[m]


def knapsack(weights, values, capacity):
    """The greatest value of items that fit."""
    best = np.zeros(capacity + 1)
    for k in range(len(weights)):
        w = weights[k]
        for c in range(capacity, w - 1, -1):
            best[c] = max(best[c], best[c - w] + values[k])
    return best[capacity]


def sieve(n):
    """How many primes there are below n."""
    prime = np.ones(n, dtype=np.bool_)
    prime[:2] = False
    i = 2
    while i * i < n:
        if prime[i]:
            for j in range(i * i, n, i):
                prime[j] = False
        i += 1
    return prime.sum()


def histogram(x, bins):
    """How many numbers of [0, 1) fall into each of the bins."""
    counts = np.zeros(bins, dtype=np.int64)
    for i in range(len(x)):
        counts[int(x[i] * bins)] += 1
    return counts


def crc32(data, table):
    """The checksum of bytes, by a table of 256 entries."""
    crc = np.uint32(0xFFFFFFFF)
    for i in range(len(data)):
        crc = table[(crc ^ data[i]) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


def life(board, steps):
    """Conway's game of life inside a dead border."""
    board = board.copy()
    for _ in range(steps):
        n = (
            board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2]
            + board[1:-1, 2:] + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
        )
        inner = board[1:-1, 1:-1]
        board[1:-1, 1:-1] = ((n == 3) | ((inner == 1) & (n == 2))).astype(np.uint8)
    return board


def lu(a):
    """Doolittle's factors of a matrix, in one, without pivots."""
    a = a.copy()
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def tridiagonal(lower, diagonal, upper, right):
    """Thomas's solution of a tridiagonal system."""
    n = len(diagonal)
    c, d = np.empty(n), np.empty(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        w = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / w
        d[i] = (right[i] - lower[i] * d[i - 1]) / w
    x = np.empty(n)
    x[n - 1] = d[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def fft(re, im):
    """Cooley and Tukey's transform of 2**k points, in place in two arrays."""
    re, im = re.copy(), im.copy()
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    size = 2
    while size <= n:
        half = size // 2
        angle = -2.0 * np.pi / size
        for start in range(0, n, size):
            for k in range(half):
                wr, wi = np.cos(angle * k), np.sin(angle * k)
                a, b = start + k, start + k + half
                tr, ti = wr * re[b] - wi * im[b], wr * im[b] + wi * re[b]
                re[b], im[b] = re[a] - tr, im[a] - ti
                re[a], im[a] = re[a] + tr, im[a] + ti
        size *= 2
    return re, im


def conjugate_gradient(a, b, steps):
    """The solution of a x = b for a symmetric positive matrix."""
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rr = r @ r
    for _ in range(steps):
        ap = a @ p
        alpha = rr / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + (new / rr) * p
        rr = new
    return x


def lorenz(state, steps, dt):
    """Lorenz's system by the classical Runge-Kutta method."""
    x, y, z = state[0], state[1], state[2]
    for _ in range(steps):
        k1x, k1y, k1z = 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z
        x2, y2, z2 = x + 0.5 * dt * k1x, y + 0.5 * dt * k1y, z + 0.5 * dt * k1z
        k2x, k2y, k2z = 10.0 * (y2 - x2), x2 * (28.0 - z2) - y2, x2 * y2 - 8.0 / 3.0 * z2
        x3, y3, z3 = x + 0.5 * dt * k2x, y + 0.5 * dt * k2y, z + 0.5 * dt * k2z
        k3x, k3y, k3z = 10.0 * (y3 - x3), x3 * (28.0 - z3) - y3, x3 * y3 - 8.0 / 3.0 * z3
        x4, y4, z4 = x + dt * k3x, y + dt * k3y, z + dt * k3z
        k4x, k4y, k4z = 10.0 * (y4 - x4), x4 * (28.0 - z4) - y4, x4 * y4 - 8.0 / 3.0 * z4
        x += dt / 6.0 * (k1x + 2.0 * k2x + 2.0 * k3x + k4x)
        y += dt / 6.0 * (k1y + 2.0 * k2y + 2.0 * k3y + k4y)
        z += dt / 6.0 * (k1z + 2.0 * k2z + 2.0 * k3z + k4z)
    return np.array([x, y, z])


def blur(image, kernel):
    """A filter of k x k weights over an image, where it fits."""
    k = kernel.shape[0]
    n, m = image.shape[0] - k + 1, image.shape[1] - k + 1
    out = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            total = 0.0
            for a in range(k):
                for b in range(k):
                    total += image[i + a, j + b] * kernel[a, b]
            out[i, j] = total
    return out


def kmeans(points, centres, steps):
    """Lloyd's iteration."""
    n, d = points.shape
    k = centres.shape[0]
    centres = centres.copy()
    for _ in range(steps):
        sums = np.zeros((k, d))
        counts = np.zeros(k)
        for i in range(n):
            best, nearest = np.inf, 0
            for c in range(k):
                distance = 0.0
                for a in range(d):
                    distance += (points[i, a] - centres[c, a]) ** 2
                if distance < best:
                    best, nearest = distance, c
            counts[nearest] += 1
            for a in range(d):
                sums[nearest, a] += points[i, a]
        for c in range(k):
            for a in range(d):
                centres[c, a] = sums[c, a] / max(counts[c], 1.0)
    return centres


def monte_carlo(n, seed):
    """An estimate of pi from a linear congruential generator."""
    state = seed
    inside = 0
    for _ in range(n):
        state = (1103515245 * state + 12345) % 2147483648
        x = state / 2147483648
        state = (1103515245 * state + 12345) % 2147483648
        y = state / 2147483648
        if x * x + y * y < 1.0:
            inside += 1
    return 4.0 * inside / n


PROGRAMS = {
    function.__name__: function
    for function in (
        jacobi, gauss_seidel, wave, floyd_warshall, nbody, edit_distance, knapsack, sieve,
        histogram, crc32, life, lu, tridiagonal, fft, conjugate_gradient, lorenz, blur, kmeans,
        monte_carlo,
    )
}
