"""Generators that call themselves, as deep as the program says, and counters in recursion."""

from __future__ import annotations

import itertools

from tests.users.corpus import refuse, use


class Node:
    def __init__(self, key):
        self.key = key
        self.left = None
        self.right = None


class SearchTree:
    def __init__(self, keys):
        self.root = None
        self.size = 0
        for key in keys:
            self.insert(key)

    def insert(self, key):
        def inserted(node):
            if node is None:
                self.size += 1
                return Node(key)
            if key < node.key:
                node.left = inserted(node.left)
            elif key > node.key:
                node.right = inserted(node.right)
            return node

        self.root = inserted(self.root)

    def __iter__(self):
        def walk(node):
            if node:
                yield from walk(node.left)
                yield node.key
                yield from walk(node.right)

        yield from walk(self.root)


@use(([3, 1, 2],), ([],))
def keys_of_a_search_tree_in_order(keys):
    tree = SearchTree(keys)
    above = 0
    for key in tree:
        if key > 2:
            break
        above = key
    return list(tree), tree.size, above, next(iter(tree), None)


@use(([3, 1, 2, 5, 4, 6],), long=True)
def many_insertions_by_a_closure_over_the_tree(keys):
    tree = SearchTree(keys)
    return tree.size, tree.root.key


def chosen(items):
    if not items:
        yield []
        return
    for rest in chosen(items[1:]):
        yield rest
        yield [items[0], *rest]


@use((3,), (0,))
def all_subsets(n):
    return list(chosen(list(range(n)))), sum(1 for _ in chosen(list(range(n))))


def down(n):
    if n > 0:
        yield n
        yield from down(n - 1)


@use((4,), (0,))
def counts_down(n):
    return list(down(n)), [k for k in down(n) if k % 2]


def noted(n, log):
    if n > 0:
        log.append(n)
        yield n
        yield from noted(n - 1, log)


@refuse((3,), "this generator calls itself and changes objects", "in a recursive function")
def notes_what_it_yields(n):
    log = []
    for k in noted(n, log):
        if k == 2:
            break
    return log


def endless(n):
    while True:
        yield n
        for k in endless(n + 1):
            yield k
            break


@refuse((3,), "a generator that calls itself and never ends", "what is left to do")
def goes_on_for_ever(n):
    for k in endless(n):
        if k > 5:
            return k
    return 0


@refuse((3,), "changed before its end, and it calls itself", "list(...)")
def changes_what_is_gone_through(n):
    left = [n, n, n]

    def taken(k):
        if k > 0:
            yield left[k - 1]
            yield from taken(k - 1)

    total = 0
    for k in taken(n):
        total += k
        left[0] = total
    return total


@use(([(0, 1), (1, 2), (2, 0), (3, 4)], 5))
def order_of_visits(edges, n):
    around = [[] for _ in range(n)]
    for a, b in edges:
        around[a].append(b)
    index = [None] * n
    counter = itertools.count()

    def visit(v):
        index[v] = next(counter)
        for w in around[v]:
            if index[w] is None:
                visit(w)

    for v in range(n):
        if index[v] is None:
            visit(v)
    return index


def queens(n, row=0, cols=frozenset(), sums=frozenset(), differences=frozenset()):
    if row == n:
        yield []
        return
    for c in range(n):
        if c not in cols and row + c not in sums and row - c not in differences:
            for rest in queens(
                n, row + 1, cols | {c}, sums | {row + c}, differences | {row - c}
            ):
                yield [c] + rest


@use((5,), long=True)
def queens_by_sets(n):
    return list(queens(n))


def placed(n, k=0, taken=frozenset()):
    if k == n:
        yield 0
        return
    for c in range(n):
        if c not in taken:
            for rest in placed(n, k + 1, taken | {c}):
                yield 10 * rest + c


@use((3,), long=True)
def permutations_by_sets(n):
    return sum(placed(n))


def words(n, chosen=()):
    if len(chosen) == n:
        yield list(chosen)
        return
    for c in range(2):
        yield from words(n, chosen + (c,))


@use((3,), (0,))
def tuples_that_get_longer(n):
    return list(words(n))


def halves(depth, a, b):
    if depth == 0:
        yield 0.5 * (a + b)
        return
    middle = 0.5 * (a + b)
    yield from halves(depth - 1, a, middle)
    yield from halves(depth - 1, middle, b)


@use((1.0, 3.0), wrt=(0, 1))
def known_depth_beside_numbers(a, b):
    total = 0.0
    for k, x in enumerate(halves(6, a, b)):
        total += k * x * x
    return total


@use((4,), long=True)
def queens_in_tuples(n):
    def placed(row, columns):
        if row == n:
            yield columns
            return
        for c in range(n):
            if all(c != k and abs(c - k) != row - r for r, k in enumerate(columns)):
                yield from placed(row + 1, (*columns, c))

    return list(placed(0, ()))


@use((4,), (1,), (6,))
def queens_placed_by_a_generator(n):
    def placed(row, columns):
        if row == n:
            yield columns
            return
        for c in range(n):
            if all(c != k and abs(c - k) != row - r for r, k in enumerate(columns)):
                yield from placed(row + 1, columns + [c])

    return list(placed(0, []))


@use((3,), (0,))
def parts_with_and_without_each(n):
    def parts(i, own):
        if i == n:
            yield own[:]
            return
        yield from parts(i + 1, own)
        yield from parts(i + 1, own + [i])

    def sums(i, own):
        if i == n:
            yield sum(own)
            return
        yield from sums(i + 1, own)
        yield from sums(i + 1, own + [i])

    return list(parts(0, [])), sum(sums(0, []))


@use((3,), (0,))
def parts_of_a_list_that_is_changed_and_changed_back(n):
    def parts(i, own):
        if i == n:
            yield own[:]
            return
        own.append(i)
        yield from parts(i + 1, own)
        own.pop()
        yield from parts(i + 1, own)

    def orders(k, items):
        if k == len(items):
            yield tuple(items)
        for i in range(k, len(items)):
            items[k], items[i] = items[i], items[k]
            yield from orders(k + 1, items)
            items[k], items[i] = items[i], items[k]

    return list(parts(0, [])), list(orders(0, [2 * v for v in range(n)]))
