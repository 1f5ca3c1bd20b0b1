"""Partial differential equations and cellular automata on grids."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


def bump(*shape):
    """A deterministic field."""
    return np.sin(np.arange(np.prod(shape)) * 0.7).reshape(shape)


@use((bump(9), 0.2, 6), wrt=(0, 1), slow=True)
def heat_1d(u, r, steps):
    u = u.copy()
    for _ in range(steps):
        un = u.copy()
        for i in range(1, len(u) - 1):
            u[i] = un[i] + r * (un[i + 1] - 2 * un[i] + un[i - 1])
    return u


@use((bump(6, 5), 0.1, 4), wrt=(0, 1), long=True)
def heat_2d_slices(u, alpha, steps):
    for _ in range(steps):
        lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        u[1:-1, 1:-1] += alpha * lap
        u[0, :] = 0.0
        u[:, -1] = u[:, -2]
    return u


@use((bump(12), 0.5, 8), wrt=(0,), slow=True)
def wave_equation(u0, c, steps):
    prev = u0.copy()
    curr = u0.copy()
    for _ in range(steps):
        nxt = np.zeros_like(curr)
        nxt[1:-1] = 2 * curr[1:-1] - prev[1:-1] + c**2 * (
            curr[2:] - 2 * curr[1:-1] + curr[:-2]
        )
        prev, curr = curr, nxt
    return curr


@use((bump(10) + 2.0, 0.05, 0.2, 5), wrt=(0, 1), long=True)
def burgers(u, nu, dt, nt):
    nx = u.shape[0]
    dx = 2.0 / (nx - 1)
    for _n in range(nt):
        un = u.copy()
        for i in range(1, nx - 1):
            u[i] = (
                un[i] - un[i] * dt * dx * (un[i] - un[i - 1])
                + nu * dt * (un[i + 1] - 2 * un[i] + un[i - 1])
            )
        u[0] = u[-2]
        u[-1] = u[1]
    return u


@use((bump(6, 6), 1e-3), wrt=(0,), long=True)
def poisson_jacobi(b, tol):
    p = np.zeros_like(b)
    error, count = 1.0, 0
    while error > tol:
        pn = p.copy()
        p[1:-1, 1:-1] = 0.25 * (
            pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1] - b[1:-1, 1:-1]
        )
        error = np.abs(p - pn).max()
        count += 1
    return p, count


@use((bump(5, 6), 3), wrt=(0,), long=True)
def gauss_seidel(u, sweeps):
    ny, nx = u.shape
    for _ in range(sweeps):
        for j in range(1, ny - 1):
            for i in range(1, nx - 1):
                u[j, i] = 0.25 * (u[j, i + 1] + u[j, i - 1] + u[j + 1, i] + u[j - 1, i])
    return u


@use((bump(5, 5), 1.5, 1e-4), wrt=(0,), long=True)
def successive_over_relaxation(u, omega, tol):
    n, m = u.shape
    iteration = 0
    while True:
        largest = 0.0
        for j in range(1, n - 1):
            for i in range(1, m - 1):
                old = u[j, i]
                new = 0.25 * (u[j, i + 1] + u[j, i - 1] + u[j + 1, i] + u[j - 1, i])
                u[j, i] = (1 - omega) * old + omega * new
                largest = max(largest, abs(u[j, i] - old))
        iteration += 1
        if largest < tol or iteration >= 100:
            break
    return u.sum(), iteration


GLIDER = np.array([
    [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0],
    [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0],
])  # fmt: skip


@use((GLIDER, 4), long=True)
def game_of_life_by_loops(grid, generations):
    n, m = grid.shape
    for _ in range(generations):
        new = np.zeros((n, m), dtype=grid.dtype)
        for i in range(n):
            for j in range(m):
                alive = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di == 0 and dj == 0:
                            continue
                        alive += grid[(i + di) % n, (j + dj) % m]
                if grid[i, j] == 1 and alive in (2, 3):
                    new[i, j] = 1
                elif grid[i, j] == 0 and alive == 3:
                    new[i, j] = 1
        grid = new
    return grid


@use((GLIDER, 4), long=True)
def game_of_life_by_slices(Z, generations):
    for _ in range(generations):
        N = (
            Z[:-2, :-2] + Z[:-2, 1:-1] + Z[:-2, 2:] + Z[1:-1, :-2]
            + Z[1:-1, 2:] + Z[2:, :-2] + Z[2:, 1:-1] + Z[2:, 2:]
        )
        birth = (N == 3) & (Z[1:-1, 1:-1] == 0)
        survive = ((N == 2) | (N == 3)) & (Z[1:-1, 1:-1] == 1)
        Z[...] = 0
        Z[1:-1, 1:-1][birth | survive] = 1
    return Z


@use((GLIDER.astype(bool),), long=True)
def game_of_life_by_rolls(grid):
    neighbours = sum(
        np.roll(np.roll(grid.astype(int), i, 0), j, 1)
        for i in (-1, 0, 1) for j in (-1, 0, 1) if (i != 0 or j != 0)
    )
    return (neighbours == 3) | (grid & (neighbours == 2))


@use((110, 11, 5), long=True)
def rule_110(rule, width, steps):
    cells = np.zeros((steps, width), dtype=np.uint8)
    cells[0, width // 2] = 1
    for t in range(1, steps):
        for i in range(width):
            left = cells[t - 1, (i - 1) % width]
            right = cells[t - 1, (i + 1) % width]
            pattern = 4 * int(left) + 2 * int(cells[t - 1, i]) + int(right)
            cells[t, i] = (rule >> pattern) & 1
    return cells


@use((np.full((5, 5), 4) + np.eye(5, dtype=int),), long=True)
def sandpile(grid):
    n = grid.shape[0]
    topples = 0
    unstable = True
    while unstable:
        unstable = False
        for i in range(n):
            for j in range(n):
                if grid[i, j] >= 4:
                    unstable = True
                    topples += 1
                    grid[i, j] -= 4
                    if i > 0:
                        grid[i - 1, j] += 1
                    if i < n - 1:
                        grid[i + 1, j] += 1
                    if j > 0:
                        grid[i, j - 1] += 1
                    if j < n - 1:
                        grid[i, j + 1] += 1
    return topples


@use((bump(8), bump(8) + 1.5, 0.1), wrt=(0, 1), long=True)
def upwind_advection(q, speed, dt):
    flux = np.where(speed > 0, speed * q, speed * np.roll(q, -1))
    return q - dt * (flux - np.roll(flux, 1))


@use((np.ones((4, 4)), 0.16, 0.04, 0.06, 3), wrt=(0,), long=True)
def gray_scott(v, du, dv, feed, steps):
    def laplacian(z):
        return (
            np.roll(z, 1, axis=0) + np.roll(z, -1, axis=0)
            + np.roll(z, 1, axis=1) + np.roll(z, -1, axis=1) - 4 * z
        )

    u = 1.0 - v / 2
    for _ in range(steps):
        uvv = u * v * v
        u += du * laplacian(u) - uvv + feed * (1 - u)
        v += dv * laplacian(v) + uvv - (feed + 0.06) * v
    return u, v


@use((bump(4, 4) > 0, 1, 1), (np.zeros((3, 3), dtype=bool), 0, 2), long=True)
def flood_fill(walls, row, col):
    """Until nothing changes any more."""
    filled = np.zeros_like(walls)
    filled[row, col] = True
    changed = True
    while changed:
        grown = filled.copy()
        grown[1:] |= filled[:-1]
        grown[:-1] |= filled[1:]
        grown[:, 1:] |= filled[:, :-1]
        grown[:, :-1] |= filled[:, 1:]
        grown &= ~walls
        changed = bool(np.any(grown != filled))
        filled = grown
    return filled, int(filled.sum())
