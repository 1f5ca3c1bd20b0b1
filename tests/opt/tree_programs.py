"""Trees, and recursive functions over them, that the tests of batched recursion share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

RNG = np.random.default_rng(8)
e, w, b = RNG.normal(size=(7, 4)), RNG.normal(size=(4, 4)) * 0.5, RNG.normal(size=4)


@dataclass
class Tree:
    """A binary tree of words."""

    word: int
    left: Tree | None = None
    right: Tree | None = None


@dataclass
class Forest:
    """Several trees; may contain another forest, so that it is a tree itself."""

    trees: list[Tree]
    rest: Forest | None = None


def tree(leaves: int) -> Tree:
    """A random tree."""
    if leaves == 1:
        return Tree(int(RNG.integers(7)))
    k = int(RNG.integers(1, leaves))
    return Tree(int(RNG.integers(7)), tree(k), tree(leaves - k))


def encoded(e: Any, w: Any, t: Any) -> Any:
    """A vector for a tree."""
    if t.left is None:
        return e[t.word]
    return np.tanh(w @ encoded(e, w, t.left) + encoded(e, w, t.right))


def one(e: Any, w: Any, t: Any) -> Any:
    """A number for a tree."""
    return np.sum(encoded(e, w, t))


def many(e: Any, w: Any, forest: Any) -> Any:
    """A number for several trees."""
    total = 0.0
    for k, t in enumerate(forest.trees):
        total += np.sum(encoded(e, w, t)) * k
    return total


TREE, FOREST = tree(9), Forest([tree(5), tree(1), tree(8)])
BAD_WORD = Tree(0, Tree(1), Tree(0, Tree(99), Tree(2)))
NO_CHILD = Tree(0, Tree(1), Tree(0, Tree(1), None))
