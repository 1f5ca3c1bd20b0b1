"""Trees whose nodes are dicts with other keys at the leaves, and trees that are asked by name."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from tests.users.corpus import use

X = np.array([0.5, 3.0, 1.0, 2.0, 4.5])


def grown(x, depth):
    if depth == 0 or len(x) < 2:
        return {"leaf": True, "value": float(x.mean())}
    half = len(x) // 2
    return {
        "leaf": False, "at": float(x[half]),
        "low": grown(x[:half], depth - 1), "high": grown(x[half:], depth - 1),
    }


def answer(node, v):
    while not node["leaf"]:
        node = node["low"] if v < node["at"] else node["high"]
    return node["value"]


@use((X, 2), (X, 1), long=True)
def leaves_with_other_keys(x, depth):
    tree = grown(x, depth)
    return np.array([answer(tree, v) for v in x])


def grown_to_numbers(x, depth):
    if depth == 0 or len(x) < 2:
        return float(x.mean())
    half = len(x) // 2
    low, high = grown_to_numbers(x[:half], depth - 1), grown_to_numbers(x[half:], depth - 1)
    return {"at": float(x[half]), "low": low, "high": high}


def number_at_the_end(node, v):
    while isinstance(node, dict):
        node = node["low"] if v < node["at"] else node["high"]
    return node


@use((X, 2), (X, 1), long=True)
def leaves_that_are_numbers(x, depth):
    tree = grown_to_numbers(x, depth)
    return np.array([number_at_the_end(tree, v) for v in x])


class Number:
    kind = "number"

    def __init__(self, value):
        self.value = value


class Sum:
    def __init__(self, left, right):
        self.left, self.right, self.kind = left, right, "sum"


class Product:
    def __init__(self, left, right):
        self.left, self.right, self.kind = left, right, "product"


class Evaluator:
    def visit(self, node):
        return getattr(self, f"visit_{node.kind}")(node)

    def visit_number(self, node):
        return node.value

    def visit_sum(self, node):
        return self.visit(node.left) + self.visit(node.right)

    def visit_product(self, node):
        return self.visit(node.left) * self.visit(node.right)


@use((3.0,), wrt=(0,))
def visited_by_name(x):
    tree = Sum(Number(x), Product(Number(2.0), Sum(Number(1.0), Number(x))))
    return Evaluator().visit(tree)


@dataclass(order=True)
class Weighed:
    weight: int
    name: str = field(compare=False)
    left: Weighed | None = field(default=None, compare=False)
    right: Weighed | None = field(default=None, compare=False)


def depth_of(node):
    return 0 if node.left is None else 1 + max(depth_of(node.left), depth_of(node.right))


@use(([5, 2, 9, 1, 7],), ([3],))
def ordered_by_what_is_no_tree(weights):
    heap = [Weighed(w, f"n{w}") for w in weights]
    heapq.heapify(heap)
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, Weighed(a.weight + b.weight, "", a, b))
    return depth_of(heap[0]), heap[0].weight
