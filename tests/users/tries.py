"""Nodes whose children are listed by position: tries, octrees, pairs; deletion from trees."""

from __future__ import annotations

from collections import deque

import numpy as np

from tests.users.corpus import use

WORDS = np.array([[0, 1, 2], [0, 1, 3], [3, 3, 3], [0, 1, 2]])
X = np.array([1.0, 2.0, 3.0, 4.0])
KEYS = np.array([5, 2, 8, 1, 9, 3, 7])
POINTS = np.random.default_rng(0).random((6, 3))


class Trie:
    def __init__(self):
        self.children = [None] * 4
        self.end = False
        self.value = 0.0

    def put(self, word, x):
        node = self
        for c in word:
            if not node.children[c]:
                node.children[c] = Trie()
            node = node.children[c]
        node.end = True
        node.value += x

    def count(self):
        return 1 + sum(c.count() for c in self.children if c is not None)


@use((WORDS, X, np.array([0, 1, 2])), (WORDS, X, np.array([0, 2, 2])), wrt=(1,), slow=True)
def value_in_a_trie(words, x, wanted):
    root = Trie()
    for word, v in zip(words, x, strict=True):
        root.put(word, v * v)
    node = root
    for c in wanted:
        node = node.children[c]
        if node is None:
            return 0.0
    return node.value + root.count()


class Searched:
    def __init__(self, key):
        self.key = key
        self.child = [None, None]

    def add(self, key):
        side = int(key > self.key)
        if self.child[side] is None:
            self.child[side] = Searched(key)
        else:
            self.child[side].add(key)

    def walk(self, out):
        if self.child[0] is not None:
            self.child[0].walk(out)
        out.append(self.key)
        if self.child[1] is not None:
            self.child[1].walk(out)


@use((X[[2, 0, 3, 1]],), wrt=(0,), long=True)
def sorted_by_a_tree_of_pairs(x):
    root = Searched(x[0] * 2.0)
    for k in x[1:]:
        root.add(k * 2.0)
    out = []
    root.walk(out)
    return np.array(out)


class Cell:
    def __init__(self, level):
        self.level = level
        self.parts = [None] * 8
        self.n = 0


@use((POINTS,), long=True)
def leaves_of_an_octree(points):
    root = Cell(0)
    for p in points:
        node, corner, size = root, np.zeros(3), 1.0
        for level in range(3):
            node.n += 1
            size /= 2
            k = 0
            for d in range(3):
                if p[d] >= corner[d] + size:
                    k |= 1 << d
                    corner[d] += size
            if node.parts[k] is None:
                node.parts[k] = Cell(level + 1)
            node = node.parts[k]
        node.n += 1

    def leaves(node):
        found = [leaves(c) for c in node.parts if c is not None]
        return sum(found) if found else 1

    return leaves(root), root.n


class Entry:
    def __init__(self, key, value):
        self.key = key
        self.value = value
        self.left = None
        self.right = None


def inserted(node, key, value):
    if node is None:
        return Entry(key, value)
    if key < node.key:
        node.left = inserted(node.left, key, value)
    elif key > node.key:
        node.right = inserted(node.right, key, value)
    else:
        node.value = value
    return node


def deleted(node, key):
    if node is None:
        return None
    if key < node.key:
        node.left = deleted(node.left, key)
    elif key > node.key:
        node.right = deleted(node.right, key)
    else:
        if node.left is None:
            return node.right
        if node.right is None:
            return node.left
        least = node.right
        while least.left:
            least = least.left
        node.key, node.value = least.key, least.value
        node.right = deleted(node.right, least.key)
    return node


def in_order(node):
    return [] if node is None else [*in_order(node.left), node.value, *in_order(node.right)]


@use((KEYS, np.linspace(0.5, 2.0, 7), np.array([2, 8, 5])), wrt=(1,), long=True)
def entries_left_in_a_tree(keys, values, gone):
    root = None
    for k, v in zip(keys, values, strict=True):
        root = inserted(root, k, v * v)
    for k in gone:
        root = deleted(root, k)

    def weighted(node, depth):
        if node is None:
            return 0.0
        below = weighted(node.left, depth + 1) + weighted(node.right, depth + 1)
        return node.value * depth + below

    return weighted(root, 1)


def size(node):
    return 0 if node is None else 1 + size(node.left) + size(node.right)


@use((KEYS, KEYS * 0.5))
def inserted_by_recursion(keys, values):
    root = None
    for k, v in zip(keys, values, strict=True):
        root = inserted(root, k, v)
    return size(root), root.value


@use((5, KEYS % 4))
def lists_of_nothing_yet(n, places):
    table = [[None] * (k + 1) for k in range(n)]
    rows = []
    for p in places:
        rows.append([None] * (p + 1))
    for p in places:
        rows[p][p % len(rows[p])] = p * 2.0
        table[p][p] = 1.5
    return table, rows


class Point:
    def __init__(self, v):
        self.v = v


@use((5, KEYS % 4), long=True)
def objects_in_place_of_nothing(n, places):
    found = [None] * n
    for p in places:
        if found[p] is None:
            found[p] = Point(p * 2.0)
        else:
            found[p].v += 1
    return [p.v if p is not None else -1.0 for p in found]


@use((["he", "she", "his", "hers"], "ushershishe"), long=True)
def words_found_by_an_automaton(words, text):
    goto, found, fail = [{}], [[]], [0]
    for word in words:
        s = 0
        for c in word:
            if c not in goto[s]:
                goto[s][c] = len(goto)
                goto.append({})
                found.append([])
                fail.append(0)
            s = goto[s][c]
        found[s].append(word)
    waiting = deque(goto[0].values())
    while waiting:
        r = waiting.popleft()
        for c, u in goto[r].items():
            waiting.append(u)
            f = fail[r]
            while f and c not in goto[f]:
                f = fail[f]
            fail[u] = goto[f].get(c, 0) if goto[f].get(c, 0) != u else 0
            found[u] = found[u] + found[fail[u]]
    s, places = 0, []
    for i, c in enumerate(text):
        while s and c not in goto[s]:
            s = fail[s]
        s = goto[s].get(c, 0)
        places += [(i - len(word) + 1, word) for word in found[s]]
    return places
