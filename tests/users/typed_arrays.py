"""array.array: made, filled, grown, handed in and given back."""

from __future__ import annotations

import copy
from array import array

from tests.users.corpus import refuse, use


@use((5,), (0,))
def filled(n):
    x = array("d", [0]) * n
    for i in range(n):
        x[i] = i * 0.5
    return x, sum(x), x[1:-1], x.typecode


@use((array("i", [1, 2]),), (array("d", [1, 2]),), (array("B", range(30)),))
def changed(x):
    x.append(3)
    x[0] = 7
    x.extend([1, 2])
    x.insert(0, 9)
    del x[1]
    x *= 2
    return len(x), max(x), sorted(x), [v + 1 for v in x], 3 in x, x.count(1), x.index(2, 1)


@use((array("B", [1]), 300), (array("B", [1]), -3), (array("b", [1]), 3), (array("d", [1]), "a"),
     (array("i", [1]), 1.5), (array("f"), 0.1), long=True)
def what_fits(x, v):
    try:
        x.append(v)
    except (OverflowError, TypeError) as error:
        return str(error)
    return x


@use((array("i", [1]), array("i", [1, 3])), (array("d", [2]), array("d", [1])))
def two_arrays(x, y):
    z = copy.copy(x)
    z[0] = 5
    try:
        x += [1]
    except TypeError as error:
        said = str(error)
    return x == y, x < y, x + y, x, z, x is y, said, isinstance(x, array), x.itemsize


@use((array("d", [1.0]),), (array("d"),))
def places_outside(x):
    try:
        x.pop()
        x.pop()
    except IndexError as error:
        return str(error), repr(x)
    x[3] = 1
    return None


@use((60,))
def sieve(n):
    prime = array("B", [1]) * (n + 1)
    for p in range(2, n + 1):
        if prime[p]:
            for k in range(p * p, n + 1, p):
                prime[k] = 0
    return [p for p in range(2, n + 1) if prime[p]]


class Grid:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.data = array("d", [0]) * (width * height)

    def __getitem__(self, place):
        x, y = place
        return self.data[y * self.width + x]

    def __setitem__(self, place, value):
        x, y = place
        self.data[y * self.width + x] = value


@use((5, 3))
def relaxed(n, rounds):
    grid = Grid(n, n)
    for k in range(n):
        grid[k, 0] = 1.0
    for _ in range(rounds):
        for y in range(1, n - 1):
            for x in range(1, n - 1):
                grid[x, y] = 0.25 * (
                    grid[x, y - 1] + grid[x, y + 1] + grid[x - 1, y] + grid[x + 1, y]
                )
    return grid.data


@use((4,), long=True)
def rows_in_a_list(n):
    rows = [array("d", [0]) * n for _ in range(n)]
    for r in range(n):
        for c in range(n):
            rows[r][c] = r * n + c
    rows[0], rows[1] = rows[1], rows[0]
    return [sum(row) for row in rows], rows[0][1]


@refuse((3,), "an array of characters: use a string, or a list of characters")
def array_of_characters(n):
    return array("u", "a" * n)
