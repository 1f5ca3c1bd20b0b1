"""Recursion over trees as plain Python and NumPy: a network per node, and numbers only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Tree:
    """A binary tree: words at the leaves, operators (`op`) at the nodes."""

    word: int
    left: Tree | None = None
    right: Tree | None = None


def random_tree(rng: np.random.Generator, leaves: int, words: int) -> Tree:
    """A tree whose every split is equally likely."""
    if leaves == 1:
        return Tree(int(rng.integers(words)))
    first = int(rng.integers(1, leaves))
    parts = random_tree(rng, first, words), random_tree(rng, leaves - first, words)
    return Tree(int(rng.integers(words)), *parts)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def cell(tree, words, U, V, b):  # noqa: N803
    """The memory and the output of a binary Tree-LSTM (Tai, Socher and Manning, 2015)."""
    if tree.left is None:
        h = words[tree.word]
        return np.zeros_like(h), h
    c1, h1 = cell(tree.left, words, U, V, b)
    c2, h2 = cell(tree.right, words, U, V, b)
    n = h1.shape[0]
    z = h1 @ U + h2 @ V + b
    c = (
        sigmoid(z[:n]) * np.tanh(z[4 * n :])
        + sigmoid(z[n : 2 * n]) * c1 + sigmoid(z[2 * n : 3 * n]) * c2
    )  # fmt: skip
    return c, sigmoid(z[3 * n : 4 * n]) * np.tanh(c)


def tree_lstm(words, U, V, b, trees):  # noqa: N803
    total = np.float32(0.0)
    for tree in trees:
        _, h = cell(tree, words, U, V, b)
        total += np.sum(h * h)
    return total


def tree_sum(tree):
    if tree.left is None:
        return tree.word
    return tree_sum(tree.left) + tree_sum(tree.right)


def evaluate(tree, x):
    """An expression whose nodes multiply or add, by the parity of their word."""
    if tree.left is None:
        return x + tree.word / 1000.0
    a, b = evaluate(tree.left, x), evaluate(tree.right, x)
    return a * b * 0.5 if tree.word % 2 else a + b


def evaluated(tree, x, times):
    total = 0.0
    for k in range(times):
        total += evaluate(tree, x + k / times)
    return total


PROGRAMS: dict[str, Callable[..., Any]] = {
    "tree_lstm": tree_lstm, "tree_sum": tree_sum, "expression": evaluated,
}
