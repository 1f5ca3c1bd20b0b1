"""Trees of parameters: dicts, lists and tuples in each other, gone through by recursion."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


def mapped(f, tree, *others):
    if isinstance(tree, dict):
        return {k: mapped(f, v, *(o[k] for o in others)) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(f, *parts) for parts in zip(tree, *others, strict=True))
    return f(tree, *others)


def leaves(tree):
    if isinstance(tree, dict):
        return [leaf for k in sorted(tree) for leaf in leaves(tree[k])]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def parameters():
    return {
        "layers": [{"w": np.array([[0.5, -1.0]]), "b": np.array([2.0])}, {"w": np.ones((2, 1))}],
        "scale": (np.array(3.0), np.array([0.25, 4.0])),
    }


@use((parameters(),), wrt=(0,))
def tree_made_of_one_made_here(tree):
    return mapped(lambda a, b: a * b, tree, mapped(lambda a: a + 1, tree))


@use((parameters(),), wrt=(0,))
def tree_handed_through_unchanged(tree):
    return mapped(lambda a: a, mapped(lambda a: 2 * a, tree))


@use((parameters(), 3), long=True, wrt=(0,))
def momentum(tree, steps):
    moved = mapped(np.zeros_like, tree)
    for _ in range(steps):
        slopes = mapped(lambda a: np.sin(a) + 0.1 * a, tree)
        norm = np.sqrt(sum(np.sum(leaf**2) for leaf in leaves(slopes)))
        slopes = mapped(lambda a: a * min(1.0, 1.0 / norm), slopes)
        moved = mapped(lambda m, g: 0.9 * m + g, moved, slopes)
        tree = mapped(lambda a, m: a - 0.1 * m, tree, moved)
    return tree


@use((parameters(), 3), wrt=(0,))
def tree_of_the_caller_made_anew_in_a_loop(tree, steps):
    for _ in range(steps):
        tree = mapped(lambda a, g: a - 0.1 * g, tree, mapped(np.sin, tree))
    return tree


@use(((2.0, (np.array([0.5, -1.0]), (np.ones(1), 3.0))), 2), wrt=(0,))
def tuples_of_the_caller_made_anew_in_a_loop(tree, steps):
    for _ in range(steps):
        tree = mapped(lambda a: a * 0.9, tree)
    return tree
