"""Tuples that nest in each other as deep as the data says: trees without a class."""

from __future__ import annotations

import heapq
from collections import Counter

import numpy as np

from tests.users.corpus import use

POINTS = np.random.default_rng(0).normal(size=(11, 2))


def _kd_tree(points, depth):
    if len(points) == 0:
        return None
    points = points[np.argsort(points[:, depth % 2])]
    middle = len(points) // 2
    return (
        points[middle],
        _kd_tree(points[:middle], depth + 1),
        _kd_tree(points[middle + 1 :], depth + 1),
    )


def _nearest(node, q, depth, best):
    if node is None:
        return best
    p, left, right = node
    d = np.sum((p - q) ** 2)
    if d < best:
        best = d
    gap = q[depth % 2] - p[depth % 2]
    near, far = (left, right) if gap < 0 else (right, left)
    best = _nearest(near, q, depth + 1, best)
    if gap * gap < best:
        best = _nearest(far, q, depth + 1, best)
    return best


@use((POINTS, np.array([0.1, 0.2])), long=True)
def nearest_in_a_kd_tree(points, q):
    return _nearest(_kd_tree(points, 0), q, 0, np.inf)


@use((POINTS,), long=True)
def kd_tree_returned(points):
    return _kd_tree(points, 0)


@use((5,), (0,))
def linked_pairs_made_in_a_loop(n):
    head = None
    for i in range(n):
        head = (float(i), head)
    total = 0.0
    rest = head
    while rest is not None:
        first, rest = rest
        total = total * 2 + first
    return total, head


@use((np.arange(5.0),), long=True)
def linked_pairs_handed_down(xs):
    def pushed(i, rest):
        return rest if i == len(xs) else pushed(i + 1, (xs[i], rest))

    total = 0.0
    rest = pushed(0, None)
    while rest:
        total = total * 0.5 + rest[0]
        rest = rest[1]
    return total


@use((5,), long=True)
def stack_that_ends_with_the_empty_tuple(n):
    stack = ()
    for i in range(n):
        stack = (i, stack)
    found = []
    while stack:
        top, stack = stack
        found.append(top)
    return found


def _inserted(tree, x):
    if tree is None:
        return (x, None, None)
    v, left, right = tree
    if x < v:
        return (v, _inserted(left, x), right)
    return (v, left, _inserted(right, x))


def _in_order(tree, out):
    if tree is not None:
        _in_order(tree[1], out)
        out.append(tree[0])
        _in_order(tree[2], out)


@use((np.array([3.0, 1.0, 4.0, 1.5, 9.0]),), long=True)
def search_tree_of_tuples(xs):
    tree = None
    for x in xs:
        tree = _inserted(tree, x)
    out = []
    _in_order(tree, out)
    return out


@use((np.array([3.0, 1.0, 2.0]),), long=True)
def search_tree_by_match(xs):
    def put(tree, x):
        match tree:
            case None:
                return (None, x, None)
            case (left, v, right) if x < v:
                return (put(left, x), v, right)
            case (left, v, right):
                return (left, v, put(right, x))

    def weighed(tree):
        match tree:
            case None:
                return 0.0
            case (left, v, right):
                return v * v + 2 * weighed(left) + 3 * weighed(right)

    tree = None
    for x in xs:
        tree = put(tree, x)
    return weighed(tree)


def _cost(tree, depth):
    if tree[2] is None:
        return tree[0] * depth
    return _cost(tree[2], depth + 1) + _cost(tree[3], depth + 1)


@use(([5.0, 9.0, 12.0, 13.0, 16.0, 45.0],))
def huffman_cost(freqs):
    heap = [(f, i, None, None) for i, f in enumerate(freqs)]
    heapq.heapify(heap)
    number = len(freqs)
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (a[0] + b[0], number, a, b))
        number += 1
    return _cost(heap[0], 0)


@use(([5, 9, 12, 13, 16, 45],), long=True)
def huffman_lengths(freqs):
    heap = [(f, i, i) for i, f in enumerate(freqs)]
    heapq.heapify(heap)
    number = len(freqs)
    while len(heap) > 1:
        f, _, a = heapq.heappop(heap)
        g, _, b = heapq.heappop(heap)
        heapq.heappush(heap, (f + g, number, (a, b)))
        number += 1
    lengths = [0] * len(freqs)

    def walk(tree, depth):
        if isinstance(tree, tuple):
            walk(tree[0], depth + 1)
            walk(tree[1], depth + 1)
        else:
            lengths[tree] = depth

    walk(heap[0][2], 0)
    return lengths


@use((4, 1.5), slow=True)
def leaves_are_numbers(depth, v):
    def made(d, v):
        return v if d == 0 else (made(d - 1, v * 2), made(d - 1, v * 2 + 1))

    def weighed(tree):
        if isinstance(tree, tuple):
            return weighed(tree[0]) * 0.5 + weighed(tree[1])
        return tree

    return weighed(made(depth, v))


def _value(e, x):
    if e[0] == "x":
        return x
    if e[0] == "c":
        return e[1]
    if e[0] == "+":
        return _value(e[1], x) + _value(e[2], x)
    return _value(e[1], x) * _value(e[2], x)


def _derivative(e):
    if e[0] == "x":
        return ("c", 1.0)
    if e[0] == "c":
        return ("c", 0.0)
    if e[0] == "+":
        return ("+", _derivative(e[1]), _derivative(e[2]))
    return ("+", ("*", _derivative(e[1]), e[2]), ("*", e[1], _derivative(e[2])))


@use((3, 1.5), long=True)
def expressions_differentiated_by_rules(n, x):
    e = ("x",)
    for _ in range(n):
        e = ("*", e, ("+", ("x",), ("c", 1.0)))
    return _value(_derivative(e), x) + _value(e, x)


def _melded(a, b):
    if a is None:
        return b
    if b is None:
        return a
    if b[0] < a[0]:
        a, b = b, a
    return (a[0], _melded(b, a[2]), a[1])


@use((np.array([3.0, 1.0, 2.0, 5.0]),), long=True)
def skew_heap_of_tuples(xs):
    heap = None
    for x in xs:
        heap = _melded(heap, (x, None, None))
    total, weight = 0.0, 1.0
    while heap is not None:
        total += heap[0] * weight
        weight *= 2.0
        heap = _melded(heap[1], heap[2])
    return total


@use(((3.0, (1.0, None)), 2.0), long=True)
def pairs_in_front_of_an_argument(pairs, x):
    for i in range(3):
        pairs = (x * i, pairs)
    total = 0.0
    while pairs is not None:
        total = total * 0.5 + pairs[0]
        pairs = pairs[1]
    return total


@use((np.arange(4.0),), long=True)
def pairs_of_pairs_that_end(xs):
    out = []
    for x in xs:
        out.append((x, (x * 2, x * 3)))
    return out


@use((np.arange(4.0),), long=True)
def end_found_by_comparison(xs):
    items = ()
    for x in xs:
        if x > 1:
            items = (x, items)
    n = 0
    while items != ():
        n += 1
        items = items[1]
    return n


@use((4,))
def list_of_nodes_returned(n):
    out, last = [], None
    for i in range(n):
        last = (i, last)
        out.append((i, last))
    return out, last


@use((4,), long=True)
def trees_taken_from_a_list_and_put_back(n):
    forest = []
    for i in range(n):
        forest.append((i, None, None))
    while len(forest) > 1:
        a = forest.pop()
        b = forest.pop()
        forest.append((a[0] + b[0], a, b))
    return forest[0]


@use((3, 2.0), long=True)
def cases_told_by_length_and_text(n, x):
    def made(d):
        return ("num", x) if d == 0 else ("sin", ("add", made(d - 1), made(d - 1)))

    def value(e):
        match e:
            case ("num", v):
                return v
            case ("sin", a):
                return np.sin(value(a))
            case ("add", a, b):
                return value(a) + value(b)

    return value(made(n))


@use((np.array([1.0, 2.0]), 9.0), long=True)
def history_of_a_loop(x, limit):
    history = (x,)
    while history[0].sum() < limit:
        history = (history[0] + 1.0, history)
    return history


@use(("abracadabra",), long=True)
def codes_of_letters(text):
    weights = Counter(text)
    heap = [(w, i, s) for i, (s, w) in enumerate(sorted(weights.items()))]
    heapq.heapify(heap)
    n = len(heap)
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (a[0] + b[0], n, (a, b)))
        n += 1
    codes = {}

    def walk(node, code):
        if isinstance(node[2], tuple):
            walk(node[2][0], code + "0")
            walk(node[2][1], code + "1")
        else:
            codes[node[2]] = code

    walk(heap[0], "")
    return codes
