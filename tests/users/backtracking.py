"""Boards as lists of rows that recursive functions fill, try and take back."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

BOARD = [[(3 * r + c) % 5 if (r + c) % 3 else 0 for c in range(3)] for r in range(10)]


def _filled(board, left):
    if left == 0:
        return True
    for row in board:
        used = set(row)
        for c in range(3):
            if row[c] == 0:
                for v in range(1, 6):
                    if v not in used:
                        row[c] = v
                        if _filled(board, left - 1):
                            return True
                        row[c] = 0
                return False
    return False


@use((BOARD, 2), (BOARD, 3), long=True)
def cells_filled_and_taken_back(board, count):
    return _filled(board, count)


@use((BOARD,))
def seen_by_the_name_of_a_row(board):
    def counted(r):
        if r == 0:
            return 0
        used = {board[k][1] for k in range(r)}
        board[r][0] = len(used)
        return len(used) + counted(r - 1)

    row = board[3]
    total = counted(5)
    row[2] = row[0] + total
    return total


def _longer(board, count):
    if count:
        board.append([count, 0, 0])
        board[count][1] = len(board)
        _longer(board, count - 1)


@use((BOARD,))
def rows_stay_where_more_are_added(board):
    row = board[2]
    _longer(board, 3)
    row[0] = 7
    return board


def _exchanged(board, r):
    if r:
        board[r], board[r - 1] = board[r - 1], board[r]
        _exchanged(board, r - 1)


@use((12,))
def row_that_a_recursion_moves(n):
    board = [[k, 0] for k in range(n)]
    row = board[1]
    _exchanged(board, 3)
    row[0] = -1
    return board


def _turned(board, r):
    if r == 0:
        board.reverse()
    else:
        board[r][0] = r
        _turned(board, r - 1)


@use((12,), long=True)
def row_that_the_last_call_moves(n):
    board = [[k, 0] for k in range(n)]
    row = board[1]
    _turned(board, 3)
    row[0] = -1
    return board


@use((np.array([[0.0, 2.0], [1.0, 0.0]]), 3.0), (np.ones((2, 2)), 5.0))
def array_that_a_search_finds_or_none(x, least):
    """What it is called with, a copy that it changed, or what the calls of itself found."""
    def search(c, depth):
        if depth == 0:
            return c if c.sum() > least else None
        for i in range(len(c)):
            tried = c.copy()
            tried[i, 0] += i
            found = search(tried, depth - 1)
            if found is not None:
                return found
        return None

    found = search(x, 2)
    return -1.0 if found is None else found @ found


@use((np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0]]), 2), (np.zeros((3, 3), int), 1))
def path_that_a_search_finds_or_none(edges, goal):
    def search(path):
        if path[-1] == goal:
            return path
        for k in range(len(edges)):
            if edges[path[-1], k] and k not in path:
                found = search(path + [k])
                if found is not None:
                    return found
        return None

    return search([0])


@use((np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0]]), 2), (np.zeros((3, 3), int), 1), long=True)
def tuple_that_a_search_finds_or_none(edges, goal):
    def search(path):
        if path[-1] == goal:
            return path
        for k in range(len(edges)):
            if edges[path[-1], k] and k not in path:
                found = search((*path, k))
                if found is not None:
                    return found
        return None

    return search((0,))


@use(([2, 3, 6, 7], 7), ([4, 5], 3))
def ways_to_a_sum(numbers, target):
    found = []

    def search(i, way, total):
        if total == target:
            found.append(way)
            return
        if total > target or i == len(numbers):
            return
        search(i, [*way, numbers[i]], total + numbers[i])
        search(i + 1, way, total)

    search(0, [], 0)
    return found


@use((5,), (1,))
def partitions_of(n):
    found = []

    def part(left, most, way):
        if left == 0:
            found.append(way)
            return
        for k in range(min(left, most), 0, -1):
            part(left - k, k, way + [k])

    part(n, n, [])
    return len(found), found


@use((4,))
def orders_of(n):
    found = []

    def place(order, rest):
        if not rest:
            found.append(order)
            return
        for i in range(len(rest)):
            place(order + [rest[i]], rest[:i] + rest[i + 1:])

    place([], list(range(n)))
    return len(found), found[-1]


@use(([1, 2, 2, 3],))
def subsets_without_twins(numbers):
    numbers, found = sorted(numbers), []

    def choose(start, chosen):
        found.append(chosen)
        for i in range(start, len(numbers)):
            if i > start and numbers[i] == numbers[i - 1]:
                continue
            choose(i + 1, chosen + [numbers[i]])

    choose(0, [])
    return found


@use((3,))
def ways_that_change_when_found(n):
    found = []

    def go(way, k):
        if k == 0:
            found.append(way)
            way.append(100)
            return len(way)
        return go(way + [k], k - 1) + go(way + [0], k - 1)

    total = go([], n)
    found[1][0] = 5
    return found, total


@use(("aabab",), ("x",), long=True)
def parted_into_palindromes(text):
    found = []

    def part(i, way):
        if i == len(text):
            found.append(way)
            return
        for j in range(i + 1, len(text) + 1):
            if text[i:j] == text[i:j][::-1]:
                part(j, way + [text[i:j]])

    part(0, [])
    return found


def fits(board, r, c, v):
    for k in range(4):
        if board[r][k] == v or board[k][c] == v:
            return False
    top, left = r // 2 * 2, c // 2 * 2
    return all(board[top + i][left + j] != v for i in range(2) for j in range(2))


def filled_by_copies(board):
    for r in range(4):
        for c in range(4):
            if board[r][c] == 0:
                for v in range(1, 5):
                    if fits(board, r, c, v):
                        tried = [row[:] for row in board]
                        tried[r][c] = v
                        found = filled_by_copies(tried)
                        if found is not None:
                            return found
                return None
    return board


SUDOKU = [[1, 0, 0, 0], [0, 0, 3, 0], [0, 4, 0, 0], [0, 0, 0, 2]]
FULL = [[1, 3, 2, 4], [4, 2, 3, 1], [2, 4, 1, 3], [3, 1, 4, 2]]


@use((SUDOKU,), (FULL,), ([[1, 2, 3, 0], [0, 0, 0, 4], [0] * 4, [0] * 4],))
def sudoku_by_copies(board):
    return filled_by_copies(board)


def filled_line(cells):
    for i in range(16):
        if cells[i] == 0:
            for v in range(1, 5):
                row, column = cells[i // 4 * 4 : i // 4 * 4 + 4], cells[i % 4 :: 4]
                if v not in row and v not in column:
                    tried = cells[:]
                    tried[i] = v
                    found = filled_line(tried)
                    if found:
                        return found
            return []
    return cells


@use(([v for row in SUDOKU for v in row],), ([v for row in FULL for v in row],), long=True)
def latin_square_by_copies(cells):
    return filled_line(cells)


@use(([2, 3, 6, 7], 7), ([5], 3))
def kept_and_gone_on_with(coins, rest):
    """What is kept is handed on as well: the branch that keeps it falls through."""
    found = []

    def choose(first, rest, way):
        if rest == 0:
            found.append(way)
        for j in range(first, len(coins)):
            if coins[j] <= rest:
                choose(j, rest - coins[j], way + [coins[j]])

    choose(0, rest, [])
    return found
