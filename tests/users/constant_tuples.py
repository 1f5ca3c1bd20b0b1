"""Constant tuples, of globals and classes, indexed by what only the running program knows."""

from __future__ import annotations

import math

import numpy as np

from tests.users.corpus import use

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
#: A value, a weight and a name: more rows than a program compares one by one.
ROWS = tuple((k, 0.5 * k, ("even", "odd")[k % 2]) for k in range(12))
NODES = (((1.0, 2.0), (3.0, 4.0)), ((5.0, 6.0), (7.0, 8.0)))
SHAPES = ((1,), (2, 3))
CURVES = (math.sin, math.cos)


class Walker:
    """Walks on a grid."""

    MOVES = MOVES

    def __init__(self) -> None:
        self.at = (0, 0)

    def step(self, action):
        dy, dx = self.MOVES[action]
        y, x = self.at
        self.at = (min(max(y + dy, 0), 3), min(max(x + dx, 0), 3))
        return self.at == (3, 3)


@use((Walker(), 1, 9))
def random_walk(walker, seed, n):
    rng = np.random.default_rng(seed)
    for k in range(n):
        if walker.step(int(rng.integers(4))):
            return k
    return walker.at


@use((7.0, 2.0), (-2.0, 3.0), (12.0, 1.0), wrt=(1,), corners=(2,))
def row_of_a_table(k, x):
    value, weight, name = ROWS[int(k)]
    return value + weight * x if name == "even" else value - weight * x


@use((1.0, 0.0, 1.0, 2.5), (0.0, 1.0, 2.0, 2.5), wrt=(3,), corners=(1,))
def tuples_in_tuples(i, j, k, x):
    return NODES[int(i)][int(j)][int(k)] * x


@use((0.0, 0.3), (1.0, 0.3), wrt=(1,))
def constants_of_other_kinds(k, x):
    return CURVES[int(k)](x), len(SHAPES[int(k)])


@use(([1, 2, 3], np.array([0.5, 2.0])), ([1, 2, 3], np.ones(0)))
def place_that_may_be_none(items, values):
    best, most = None, -1e9
    for k, value in enumerate(values):
        if value > most:
            best, most = k, value
    items[best] = 7
    return items
