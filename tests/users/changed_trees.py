"""Nodes whose fields are assigned: the caller's objects show it, and so do later reads."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from tests.users.corpus import use


@dataclass
class Branch:
    value: float
    left: Branch | None = None
    right: Branch | None = None


BRANCHES = Branch(1.0, Branch(2.0), Branch(3.5, None, Branch(4.0)))


@use((BRANCHES,))
def numbers_assigned(t):
    t.value = 7.0
    t.left.value += 1.0


@use((BRANCHES,))
def every_number_doubled(t):
    if t is not None:
        t.value *= 2
        every_number_doubled(t.left)
        every_number_doubled(t.right)


@use((BRANCHES,), long=True)
def children_swapped(t):
    if t is None:
        return
    t.left, t.right = t.right, t.left
    children_swapped(t.left)
    children_swapped(t.right)


@use((BRANCHES, 2.75), (BRANCHES, 0.5), (Branch(1.0), 3.0), long=True)
def inserted_in_place(t, v):
    here = t
    while True:
        if v < here.value:
            if here.left is None:
                here.left = Branch(v)
                break
            here = here.left
        else:
            if here.right is None:
                here.right = Branch(v)
                break
            here = here.right
    return t


@use((BRANCHES,))
def child_removed(t):
    t.right = None
    return t.left


@use((2.0, 3.0), wrt=(0, 1), slow=True)
def made_and_changed(a, b):
    n, m = Branch(a), Branch(b)
    n.left = m
    m.value = m.value * 2
    return n.left.value * n.value


def insert(t, v):
    if t is None:
        return Branch(v)
    if v < t.value:
        t.left = insert(t.left, v)
    else:
        t.right = insert(t.right, v)
    return t


@use(([3, 1, 2],))
def search_tree_made(values):
    root = None
    for v in values:
        root = insert(root, float(v))
    return root


class Link:
    def __init__(self, value):
        self.value = value
        self.next = None


@use((5,))
def linked_behind_the_last(n):
    head = here = Link(0)
    for i in range(1, n):
        here.next = Link(i)
        here = here.next
    total = 0
    here = head
    while here is not None:
        total += here.value
        here = here.next
    return total


@use((6,))
def turned_around(n):
    head = None
    for i in range(n):
        link = Link(i)
        link.next = head
        head = link
    before = None
    while head is not None:
        after = head.next
        head.next = before
        before, head = head, after
    return before.value


class Stack:
    def __init__(self):
        self.top = None

    def push(self, value):
        link = Link(value)
        link.next = self.top
        self.top = link

    def pop(self):
        value = self.top.value
        self.top = self.top.next
        return value


@use((4,))
def stack_of_links(n):
    stack = Stack()
    for i in range(n):
        stack.push(i * 2)
    return stack.pop() + stack.pop()


@dataclass
class Layer:
    w: np.ndarray
    kids: list[Layer] = field(default_factory=list)


@use((Layer(np.ones(2), [Layer(np.full(2, 3.0))]),))
def arrays_replaced(layer):
    layer.w = layer.w - 0.5
    for k in layer.kids:
        arrays_replaced(k)


class Knot:  # nothing tells what its fields hold
    def __init__(self, key, rank):
        self.key, self.rank = key, rank
        self.left = self.right = None
        self.size = 1


def sized(knot):
    return knot.size if knot is not None else 0


def resized(knot):
    knot.size = 1 + sized(knot.left) + sized(knot.right)


def split_at(knot, key):
    if knot is None:
        return None, None
    if knot.key < key:
        a, b = split_at(knot.right, key)
        knot.right = a
        resized(knot)
        return knot, b
    a, b = split_at(knot.left, key)
    knot.left = b
    resized(knot)
    return a, knot


def put_together(a, b):
    if a is None:
        return b
    if b is None:
        return a
    if a.rank > b.rank:
        a.right = put_together(a.right, b)
        resized(a)
        return a
    b.left = put_together(a, b.left)
    resized(b)
    return b


KEYS, RANKS = np.array([5.0, 3.0, 8.0, 1.0]), np.array([0.3, 0.9, 0.1, 0.5])


@use((KEYS, RANKS), slow=True)
def treap_of_classes_without_annotations(keys, ranks):
    root = None
    for k, r in zip(keys, ranks):
        a, b = split_at(root, k)
        root = put_together(put_together(a, Knot(k, r)), b)
    return root


def inserted(knot, key):
    if knot is None:
        return Knot(key, key * 0.5)
    if key < knot.key:
        knot.left = inserted(knot.left, key)
    else:
        knot.right = inserted(knot.right, key)
    return knot


def keys_in_order(knot):
    if knot is None:
        return []
    return keys_in_order(knot.left) + [knot.key] + keys_in_order(knot.right)


@use(([5.0, 3.0, 8.0, 1.0],), long=True)
def search_tree_of_classes_without_annotations(keys):
    root = None
    for k in keys:
        root = inserted(root, k)
    found = keys_in_order(root)
    return found[0] * 2 + found[3]


def _all_reset(knot):
    if knot is None:
        return None
    knot.left = _all_reset(knot.left)
    knot.rank = knot.rank * 0.5
    return knot


@use((np.array([5.0, 3.0]),))
def node_that_may_be_none_changed_by_recursion(keys):
    top = None
    for k in keys:
        below, top = _all_reset(top), Knot(k, k)
        if below is not None:
            top.left = below
    return top


class Set:
    """A set of a union-find structure: its own parent until it is joined."""

    def __init__(self, number):
        self.number = number
        self.parent = self
        self.rank = 0

    def find(self):
        if self.parent is not self:
            self.parent = self.parent.find()
        return self.parent


@use((np.array([(0, 1), (2, 3), (1, 3), (0, 2), (4, 5)]), 7), long=True)
def sets_joined_by_edges(edges, n):
    sets = [Set(k) for k in range(n)]
    count = n
    for a, b in edges:
        x, y = sets[a].find(), sets[b].find()
        if x is y:
            continue
        if x.rank < y.rank:
            x, y = y, x
        y.parent = x
        x.rank += x.rank == y.rank
        count -= 1
    return count, [s.find().number for s in sets]


class Ring:
    """A ring: a new one goes behind another."""

    def __init__(self, value):
        self.value = value
        self.before = self.after = self

    def insert(self, value):
        new = Ring(value)
        new.before, new.after = self, self.after
        self.after.before = new
        self.after = new


@use((np.array([0.5, -2.0, 1.5]),), wrt=(0,), long=True)
def values_around_a_ring(x):
    first = Ring(0.0)
    for v in x:
        first.insert(v * v)
    total, link, k = 0.0, first.after, 1
    while link is not first:
        total += link.value * k
        link, k = link.after, k + 1
    return total


class Child:
    """A child that tells its parent."""

    def __init__(self, value, parent=None):
        self.value = value
        self.parent = parent
        self.children = []
        if parent is not None:
            parent.children.append(self)

    def depth(self):
        return 0 if self.parent is None else 1 + self.parent.depth()

    def total(self):
        return self.value + sum(c.total() for c in self.children)


@use((np.array([0.5, -2.0, 1.5]),), wrt=(0,), slow=True)
def children_that_tell_their_parents(x):
    root = here = Child(1.0)
    for v in x:
        new = Child(v, here)
        if v > 0:
            here = new
    return root.total() * here.depth()


class Registered:
    def __init__(self, value, every):
        self.value = value
        self.after = None
        every.append(self)


@use((np.array([0.5, -2.0]),))
def registered_while_being_made(x):
    every = []
    a, b = Registered(x[0], every), Registered(x[1], every)
    a.after = b
    b.value = x[0] * 5.0
    return [r.value for r in every], every[0] is a, every[0].after is every[1]


class Cross:
    """Four parts, made where there are too many points, found by a computed place."""

    def __init__(self, x, y, size):
        self.x, self.y, self.size = x, y, size
        self.parts = None
        self.count = 0
        self.held = 0.0

    def part(self, x, y):
        half = self.size / 2
        return self.parts[(1 if x >= self.x + half else 0) + (2 if y >= self.y + half else 0)]

    def insert(self, x, y, mass):
        self.count += 1
        self.held += mass
        if self.size < 0.3:
            return
        if self.parts is None:
            half = self.size / 2
            self.parts = [
                Cross(self.x, self.y, half), Cross(self.x + half, self.y, half),
                Cross(self.x, self.y + half, half), Cross(self.x + half, self.y + half, half),
            ]
        self.part(x, y).insert(x, y, mass)

    def heaviest(self):
        if self.parts is None:
            return self.held * self.held
        return max(p.heaviest() for p in self.parts)


@use((np.random.default_rng(1).random((7, 2)), np.linspace(0.5, 2.0, 7)), wrt=(1,), long=True)
def masses_in_a_tree_of_quarters(points, masses):
    root = Cross(0.0, 0.0, 1.0)
    for (x, y), m in zip(points, masses, strict=True):
        root.insert(x, y, m)
    return root.heaviest() + root.count


class Weighed:
    def __init__(self, weight, letter=None, left=None, right=None):
        self.weight, self.letter, self.left, self.right = weight, letter, left, right

    def __lt__(self, other):
        return self.weight < other.weight


@use(("this is an example of what codes make of a text",))
def the_lightest_of_a_heap(text):
    heap = [Weighed(n, c) for c, n in sorted(Counter(text).items())]
    heapq.heapify(heap)
    return heap[0].weight, heap[0].letter


@use(("this is an example of what codes make of a text",), ("ab",), long=True)
def codes_by_a_heap_of_trees(text):
    heap = [Weighed(n, c) for c, n in sorted(Counter(text).items())]
    heapq.heapify(heap)
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, Weighed(a.weight + b.weight, None, a, b))
    codes = {}

    def walk(tree, code):
        if tree.letter is not None:
            codes[tree.letter] = code
        else:
            walk(tree.left, code + "0")
            walk(tree.right, code + "1")

    walk(heap[0], "")
    return codes, "".join(codes[c] for c in text)
