"""Users' dataclasses that contain themselves: compared by ==, put in order, kept in a heap."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from tests.users.corpus import use


@dataclass(order=True)
class Ranked:
    rank: int
    left: Ranked | None = None
    right: Ranked | None = None


def heap_shaped(depth, rank):
    if depth == 0:
        return None
    return Ranked(rank, heap_shaped(depth - 1, 2 * rank), heap_shaped(depth - 1, 2 * rank + 1))


@use((3, 1, 1), (3, 1, 2), (0, 1, 1))
def trees_are_equal(depth, a, b):
    x, y = heap_shaped(depth, a), heap_shaped(depth, b)
    return x == y, x != y, x is y, x == x


@use((3, 1, 1), (3, 2, 1))
def trees_in_order(depth, a, b):
    x, y = heap_shaped(depth, a), heap_shaped(depth, b)
    return x < y, x <= y, x > y, x >= y


_ONE, _OTHER = (
    Ranked(1, Ranked(2), Ranked(3, Ranked(last))) for last in (4, 5)
)


@use((_ONE, _OTHER), (_ONE, Ranked(1)))
def trees_of_the_caller(x, y):
    return x == y, x < y


@use(([3, 1, 2, 1],),)
def merged_in_a_heap(weights):
    heap = [Ranked(w) for w in weights]
    heapq.heapify(heap)
    while len(heap) > 1:
        a = heapq.heappop(heap)
        b = heapq.heappop(heap)
        heapq.heappush(heap, Ranked(a.rank + b.rank + len(heap), a, b))
    node, path = heap[0], []
    while node is not None:
        path.append(node.rank)
        node = node.left
    return path


@dataclass
class Listing:
    value: float
    children: list[Listing] = field(default_factory=list)


def listing(*last):
    return Listing(1.0, [Listing(2.0), *map(Listing, last)])


@use(
    (listing(3.0), listing(3.0)), (listing(3.0), listing(4.0)), (listing(), listing(3.0)),
    (Listing(1.0), listing()),
)
def lists_of_nodes_are_equal(a, b):
    return a == b, a.children == b.children, a.children != b.children[:1], a.children == []


@dataclass
class Letter:
    text: str | None = None
    left: Letter | None = None
    right: Letter | None = None


_CODE = Letter(None, Letter("a"), Letter(None, Letter("b"), Letter("cd")))


@use((_CODE, "01011"), (_CODE, ""), (_CODE, "111011"))
def decoded_along_a_tree(tree, bits):
    out = []
    node = tree
    for b in bits:
        node = node.left if b == "0" else node.right
        if node.text is not None:  # and so is what is read of it here
            out.append(node.text)
            node = tree
    return "".join(out)


@use((_CODE, 1), (_CODE, 3))
def attribute_of_a_node_or_none(tree, steps):
    node = tree
    for _ in range(steps):
        node = node.left
    return 0 if node.text is None else len(node.text)


def paired(depth, first):
    return first if depth == 0 else (paired(depth - 1, first + 1), paired(depth - 1, first))


def listed(depth, first):
    return (first, [listed(depth - 1, first + k) for k in range(depth)])


@use((3, 1, 1), (2, 1, 2))
def trees_of_tuples_are_equal(depth, a, b):
    x, y = paired(depth, a), paired(depth, b)
    return x == y, x != y, [x] == [y], x in [y, x], [y, x].index(x)


@use((3, 1, 1), (3, 1, 2))
def lists_in_tuples_are_equal(depth, a, b):
    x, y = listed(depth, a), listed(depth, b)
    return x == y, x[1] == y[1], x[1] != y[1], x[1] == []
