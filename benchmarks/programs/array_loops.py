"""`arrays.py` where that works on whole arrays, as loops over elements: what numba is best at."""

from __future__ import annotations


def jacobi(u, steps):
    u = u.copy()
    v = u.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    return u


def wave(u, v, steps, c):
    u, v = u.copy(), v.copy()
    n = len(u)
    for _ in range(steps):
        for i in range(1, n - 1):
            v[i] += c * (u[i + 1] - 2.0 * u[i] + u[i - 1])
        for i in range(n):
            u[i] += v[i]
    return u


def life(board, steps):
    board = board.copy()
    new = board.copy()
    n, m = board.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                count = (
                    board[i - 1, j - 1] + board[i - 1, j] + board[i - 1, j + 1]
                    + board[i, j - 1] + board[i, j + 1]
                    + board[i + 1, j - 1] + board[i + 1, j] + board[i + 1, j + 1]
                )
                new[i, j] = (count == 3) | ((board[i, j] == 1) & (count == 2))
        board, new = new, board
    return board
