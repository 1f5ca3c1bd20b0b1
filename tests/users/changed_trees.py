"""Nodes whose fields are assigned: the caller's objects show it, and so do later reads."""

from __future__ import annotations

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
