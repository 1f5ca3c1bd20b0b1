"""Numbers that may be None, where an array is made of them or holds them."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

X = np.array([0.5, 3.0, 1.0, 2.0])


class Split:
    def __init__(self, at=None, value=None, low=None, high=None):
        self.at, self.value, self.low, self.high = at, value, low, high


def grown(x, depth):
    if depth == 0 or len(x) < 2:
        return Split(value=float(x.mean()))
    half = len(x) // 2
    return Split(float(x[half]), None, grown(x[:half], depth - 1), grown(x[half:], depth - 1))


def answer(node, v):
    if node.low is None:
        return node.value
    return answer(node.low, v) if v < node.at else answer(node.high, v)


@use((X, 2), (X, 0), (X[:1], 3))
def answers_of_a_tree(x, depth):
    tree = grown(x, depth)
    return np.array([answer(tree, v) for v in x])


@use((X, 2), long=True)
def answers_stored_one_by_one(x, depth):
    tree = grown(x, depth)
    out = np.zeros(len(x))
    for i, v in enumerate(x):
        out[i] = answer(tree, v)
    return out


@use((X, 0.0), (X, 1.5), wrt=(0,), corners=(1,))
def nothing_is_nan_among_floats(x, least):
    found = [v * v if v > least else None for v in x]
    return np.array(found, dtype=float), np.asarray(found, dtype=np.float64)


@use((X, 0.0), (X, 1.5))
def nothing_is_stored_as_nan(x, least):
    out = np.zeros(len(x))
    for i, v in enumerate(x):
        out[i] = v if v > least else None
    return out


@use(([3, 1, 2], 0), ([3, 1, 2], 1))
def nothing_is_no_whole_number(items, least):
    out = np.zeros(3, dtype=int)
    for i, v in enumerate(items):
        out[i] = v if v > least else None
    return out


def row(v, least):
    if v > least:
        return np.array([v, 2 * v])


@use((X, 0.0), wrt=(0,))
def rows_that_may_be_missing(x, least):
    return np.array([row(v, least) for v in x])


class Choice:
    def __init__(self, worth, parent=None):
        self.worth, self.parent, self.children, self.seen = worth, parent, [], 0

    def score(self):
        return self.worth / (1 + self.seen)

    def best(self):
        best, most = None, -1.0
        for child in self.children:
            score = child.score()
            if best is None or score > most:
                best, most = child, score
        return best


@use((7, 2), (5, 1))
def children_are_looked_at_before_there_are_any(rounds, width):
    root = Choice(0)
    for i in range(rounds):
        node = root
        while len(node.children) >= width:
            node = node.best()
        node.children.append(Choice(i, node))
        node = node.children[-1]
        while node is not None:
            node.seen += 1
            node = node.parent
    return root.seen, [child.seen for child in root.children]


@use((7,), (5,))
def greatest_of_children_that_come_later(rounds):
    root = Choice(0)
    for i in range(rounds):
        node = root
        while len(node.children) > 1:
            node = max(node.children, key=lambda child: child.score())
        node.children.append(Choice(i, node))
    return len(root.children), [child.worth for child in root.children]
