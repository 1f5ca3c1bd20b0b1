"""Objects that are linked both ways: previous and next, children and parents, neighbours."""

from __future__ import annotations

from collections import deque
from typing import Any

from tests.users.corpus import use


class Item:
    def __init__(self, key: Any, value: Any) -> None:
        self.key, self.value = key, value
        self.prev: Any = None
        self.next: Any = None


class Linked:
    def __init__(self, values: Any = ()) -> None:
        self.head: Any = None
        self.tail: Any = None
        self.size = 0
        for value in values:
            self.append(value)

    def append(self, value: Any) -> None:
        item = Item(self.size, value)
        if self.head is None:
            self.head = self.tail = item
        else:
            self.tail.next = item
            item.prev = self.tail
            self.tail = item
        self.size += 1

    def remove(self, value: Any) -> bool:
        item = self.head
        while item is not None:
            if item.value == value:
                if item.prev is not None:
                    item.prev.next = item.next
                else:
                    self.head = item.next
                if item.next is not None:
                    item.next.prev = item.prev
                else:
                    self.tail = item.prev
                self.size -= 1
                return True
            item = item.next
        return False

    def backward(self) -> Any:
        found, item = [], self.tail
        while item is not None:
            found.append(item.value)
            item = item.prev
        return found


@use((Linked([3.0, 1.0, 4.0, 1.0]), 4.0), (Linked([3.0, 1.0, 4.0, 1.0]), 1.0))
def changed_list(linked: Any, value: Any) -> Any:
    found = linked.remove(value)
    linked.append(7.0)
    return found, linked.backward(), linked.size


def ring(n: int) -> Item:
    head = here = Item(0, 0)
    for k in range(1, n):
        following = Item(k, k)
        here.next, following.prev = following, here
        here = following
    here.next, head.prev = head, here
    return head


@use((ring(7), 3), (ring(5), 2))
def josephus(here: Any, k: Any) -> Any:
    out = []
    while here.next is not here:
        for _ in range(k - 1):
            here = here.next
        out.append(here.key)
        here.prev.next, here.next.prev = here.next, here.prev
        here = here.next
    return out, here


@use((4,))
def made_ring(n: Any) -> Any:
    head = here = Item(0, 0)
    for k in range(1, n):
        following = Item(k, k * k)
        here.next = following
        following.prev = here
        here = following
    here.next = head
    head.prev = here
    return head


class Branch:
    def __init__(self, key: Any, parent: Any = None) -> None:
        self.key, self.parent = key, parent
        self.left: Any = None
        self.right: Any = None


class SearchTree:
    def __init__(self) -> None:
        self.root: Any = None

    def insert(self, key: Any) -> None:
        parent, here = None, self.root
        while here is not None:
            parent = here
            here = here.left if key < here.key else here.right
        branch = Branch(key, parent)
        if parent is None:
            self.root = branch
        elif key < parent.key:
            parent.left = branch
        else:
            parent.right = branch

    def least(self, here: Any) -> Any:
        while here.left is not None:
            here = here.left
        return here

    def following(self, here: Any) -> Any:
        if here.right is not None:
            return self.least(here.right)
        parent = here.parent
        while parent is not None and here is parent.right:
            here, parent = parent, parent.parent
        return parent


def search_tree(keys: Any) -> SearchTree:
    tree = SearchTree()
    for key in keys:
        tree.insert(key)
    return tree


@use((search_tree([5, 2, 8, 1]), 6))
def keys_in_order(tree: Any, key: Any) -> Any:
    tree.insert(key)
    here, found = tree.least(tree.root), []
    while here is not None:
        found.append(here.key)
        here = tree.following(here)
    return found


class Place:
    def __init__(self, name: Any) -> None:
        self.name, self.neighbours, self.seen = name, [], False  # type: ignore[var-annotated]


def places(n: int, edges: Any) -> Any:
    found = [Place(k) for k in range(n)]
    for a, b in edges:
        found[a].neighbours.append(found[b])
        found[b].neighbours.append(found[a])
    return found


@use((places(5, [(0, 1), (1, 2), (2, 0), (3, 4)]), 0))
def reached(every: Any, start: Any) -> Any:
    waiting, order = deque([every[start]]), []
    every[start].seen = True
    while waiting:
        here = waiting.popleft()
        order.append(here.name)
        for other in here.neighbours:
            if not other.seen:
                other.seen = True
                waiting.append(other)
    return order, [place.seen for place in every]


class Chained:
    """A list of nodes that may be empty."""

    def __init__(self, values):
        self.head = None
        for v in values:
            self.head = Link(v, self.head)

    def __iter__(self):
        node = self.head
        while node:
            yield node.value
            node = node.next


class Link:
    """A value and what follows."""

    def __init__(self, value, following):
        self.value = value
        self.next = following


@use(([1, 2, 3],), ([],))
def chain_that_may_be_empty(xs):
    chain = Chained(xs)
    return list(chain), sum(chain), max(chain, default=-1)


@use(([5, 3, 8, 1, 4, 7, 9, 2, 6],), ([2],), long=True)
def tree_of_lists(values):
    root = None
    for value in values:
        if root is None:
            root = [value, None, None]
            continue
        node = root
        while True:
            side = 1 if value < node[0] else 2
            if side == 1:
                if node[1] is None:
                    node[1] = [value, None, None]
                    break
                node = node[1]
            else:
                if node[2] is None:
                    node[2] = [value, None, None]
                    break
                node = node[2]
    found = []

    def walk(node):
        if node is not None:
            walk(node[1])
            found.append(node[0])
            walk(node[2])

    walk(root)
    return found


class Cell:
    def __init__(self, value, rest=None):
        self.value, self.rest = value, rest


def values_of(cell):
    while cell:
        yield cell.value
        cell = cell.rest


@use(([1, 2],), ([],))
def words_of_a_linked_list(values):
    head = None
    for v in values:
        head = Cell(v, head)
    return "->".join(map(str, values_of(Cell(9, head))))
