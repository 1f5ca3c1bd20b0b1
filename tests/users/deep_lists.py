"""Lists in lists in lists whose lengths only the program knows, and lists that memos give."""

from __future__ import annotations

import functools

import numpy as np

from tests.users.corpus import use


@use((4,), (0,))
def all_ways_down(n):
    memo = {}

    def ways(k):
        if k == 0:
            return [[]]
        if k in memo:
            return memo[k]
        found = []
        for first in range(1, k + 1):
            for rest in ways(k - first):
                found.append([first, *rest])
        memo[k] = found
        return found

    return ways(n)


@use((4,), long=True)
def lists_of_lists_remembered_by_a_recursion(n):
    memo = {}

    def ways(k):
        if k == 0:
            return [[1]]
        if k in memo:
            return memo[k]
        found = [way + [0] for way in ways(k - 1)]
        memo[k] = found
        return found

    return ways(n)


@use((5,))
def lists_of_a_memo(n):
    memo = {}

    def sums(k):
        if k == 0:
            return [1]
        if k in memo:
            return memo[k]
        found = []
        for i in range(k):
            for s in sums(i):
                found.append(s + k)
        memo[k] = found
        return found

    return sums(n)


@use((4,), long=True)
def lists_of_a_cache(n):
    @functools.cache
    def chains(k):
        if k == 0:
            return [[]]
        return [[*chain, k] for i in range(k) for chain in chains(i)]

    return chains(n)


@use((4,))
def boards_of_queens(n):
    boards = []

    def place(row, columns):
        if row == n:
            boards.append(["".join("Q" if c == k else "." for k in range(n)) for c in columns])
            return
        for c in range(n):
            if all(c != d and abs(c - d) != row - k for k, d in enumerate(columns)):
                place(row + 1, [*columns, c])

    place(0, [])
    return boards


@use((np.arange(6), 3))
def triangles_of_rows(x, n):
    made = [[[b for b in range(a)] for a in range(i)] for i in x]
    row = made[4][1]
    for k in range(n):
        row.append(k)
        made[5][k].append(50)
        made[5].append([k])
    made[3].append([5, 6])
    made[2], made[3] = made[3], made[2]
    flat = [v for rows in made for each in rows for v in each]
    return made, sum(flat), made[3] == [[], [0]], sorted(made[4]), len(made[4][1])


@use((np.array([0.5, -1.0, 2.0]), np.arange(4)), wrt=(0,))
def weights_in_layers(x, sizes):
    layers = []
    for i in sizes:
        layers.append([[v * v * i for v in x if v > j - 1.75] for j in range(i)])
    layers[2][1][0] *= 3.0
    return sum([w for rows in layers for row in rows for w in row])


@use((np.arange(6),), (np.array([2, 3, 1, 0, 4]),), long=True)
def a_row_behind_a_move(x):
    made = [[[b for b in range(a)] for a in range(i)] for i in x]
    row = made[4][1]
    made[4].reverse()
    row.append(99)
    return made


@use((4,), long=True)
def boards_of_queens_by_sets(n):
    boards = []

    def place(row, columns, sums, differences, board):
        if row == n:
            boards.append(["".join("Q" if c == b else "." for c in range(n)) for b in board])
            return
        for c in range(n):
            if c in columns or row + c in sums or row - c in differences:
                continue
            place(
                row + 1, columns | {c}, sums | {row + c}, differences | {row - c}, [*board, c]
            )

    place(0, set(), set(), set(), [])
    return len(boards), boards[0]


BOARDS = [[[(7 * i + 5 * r + 3 * c * r + c) % 20 for c in range(3)] for r in range(3)]
          for i in range(6)]  # fmt: skip
RAGGED = [[[1, 2], [3]], [[4]], [[5, 6, 7], [8], [9]], [[10]], [[11], [12, 13]]]


@use((list(range(20)), BOARDS))
def first_and_last_board(draws, boards):
    marked = [[[False] * 3 for _ in range(3)] for _ in boards]
    done = [False] * len(boards)
    first = last = None
    for drawn in draws:
        for b, board in enumerate(boards):
            if done[b]:
                continue
            for r in range(3):
                for c in range(3):
                    if board[r][c] == drawn:
                        marked[b][r][c] = True
            if any(all(row) for row in marked[b]) or any(
                all(marked[b][r][c] for r in range(3)) for c in range(3)
            ):
                done[b] = True
                score = drawn * sum(
                    board[r][c] for r in range(3) for c in range(3) if not marked[b][r][c]
                )
                if first is None:
                    first = score
                last = score
    return first, last


@use((RAGGED, 2))
def rows_of_layers_changed(layers, k):
    for layer in layers:
        layer[-1].append(len(layer))
        layer[0][0] = -1
    layers[k].append([0])
    layers.append([[1]])
    return layers[k], layers[k][1], len(layers)


@use((RAGGED,))
def rows_of_layers_swapped(layers):
    layers[2][0], layers[2][1] = layers[2][1], layers[2][0]
    layers[0][1].append(5)


@use(({k: [[k, 2 * k], [k]] for k in range(20)}, 3))
def layers_by_key(layers, k):
    layers[k][0][1] = 100
    layers[k].append([7])
    return {name: sum(map(sum, rows)) for name, rows in layers.items()}


@use(([[[0.5 * k, 1.0], [2.0]] for k in range(6)],), wrt=(0,))
def squares_in_layers(layers):
    return sum(v * v for layer in layers for row in layer for v in row)
