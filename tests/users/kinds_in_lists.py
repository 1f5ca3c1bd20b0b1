"""Lists of run-time length whose items are ints or floats, Python's or NumPy's, each as it is."""

from __future__ import annotations

import heapq

import numpy as np

from tests.users.corpus import use

X = np.array([0.4, -0.2, 0.9, 0.7, -0.5])


def of_two_kinds(x):
    items = [0]
    for v in x:
        if v > 0:
            items.append(v)
        elif v < -0.3:
            items.append(2)
    return items


@use((X,), (-X,), (X[:0],), wrt=(0,), long=True)
def made_and_asked(x):
    items = of_two_kinds(x)
    names = [type(v).__name__ for v in items]
    return items, names, items[0], items[-1], sum(items), max(items), min(items)


@use((X,), wrt=(0,), long=True)
def put_in_order(x):
    items = of_two_kinds(x)
    items.sort()
    items.insert(1, 5)
    last, first = items.pop(), items.pop(0)
    items[0], items[-1] = items[-1], items[0]
    return items, last, first, sorted(items, reverse=True), items[::-1], items[1:], str(items)


@use((X,), wrt=(0,), long=True)
def joined_and_compared(x):
    items = of_two_kinds(x)
    more = items.copy()
    more.extend([1.5, 3])
    more += items
    return more, items + [True], items == more, 2 in items, items.count(2), items * 2


@use((X, 8), (X, 1), wrt=(0,))
def table_of_best(x, n):
    best = [0] * n
    for i in range(1, n):
        best[i] = max(best[i - 1], best[i - 1] + x[i % 5])
    return best, best[-1]


@use((X, 6), (X, 0), wrt=(0,), long=True)
def rows_of_two_kinds(x, n):
    rows = []
    for i in range(n):
        row = []
        for j in range(3):
            row.append(x[i % 5] if x[(i + j) % 5] > 0 else j)
        rows.append(row)
    return rows, sum(sum(row) for row in rows)


@use((X, 6), (X, 0), wrt=(0,), long=True)
def cells_of_two_kinds(x, n):
    table = [[0] * 3 for _ in range(n)]
    for i in range(n):
        for j in range(3):
            if x[(i + j) % 5] > 0:
                table[i][j] = x[i % 5]
    return table


@use((X,), wrt=(0,), long=True)
def heap_of_two_kinds(x):
    heap = []
    for i, v in enumerate(x):
        heapq.heappush(heap, v if v > 0 else i)
    found = []
    while heap:
        found.append(heapq.heappop(heap))
    return found


@use(([1, 2], X, 4), ([], X, 3), wrt=(1,), long=True)
def list_of_the_caller(items, x, n):
    for i in range(n):
        items.append(x[i])
    return items


def entered(items, k, x):
    if k:
        items.append(x[k] if x[k] > 0 else k)
        entered(items, k - 1, x)


@use((X, 4), long=True)
def by_recursion_and_in_pairs(x, n):
    items = []
    entered(items, n, x)
    pairs = [(i, v if v > 0 else 0) for i, v in enumerate(x) if v > -0.4]
    pairs.sort(key=lambda pair: -pair[1])
    return items, pairs


@use((X,), long=True)
def truths_and_narrow_numbers(x):
    flags, narrow = [], []
    for i, v in enumerate(x):
        flags.append(v > 5 if v < -0.3 else True if v > 0 else 0)
        narrow.append(np.float32(v) if v > 0 else i)
    return flags, narrow


PROGRAM = [
    ("push", 9), ("store", "n"), ("push", 1), ("store", "acc"), ("label", "loop"), ("load", "n"),
    ("jz", "end"), ("load", "acc"), ("load", "n"), ("mul", None), ("store", "acc"), ("load", "n"),
    ("push", 1), ("sub", None), ("store", "n"), ("jmp", "loop"), ("label", "end"), ("load", "acc"),
]


@use((PROGRAM,))
def a_stack_of_arguments(program):
    labels = {arg: k for k, (op, arg) in enumerate(program) if op == "label"}
    stack, variables, at = [], {}, 0
    while at < len(program):
        op, arg = program[at]
        at += 1
        if op == "push":
            stack.append(arg)
        elif op == "load":
            stack.append(variables[arg])
        elif op == "store":
            variables[arg] = stack.pop()
        elif op == "mul":
            b, a = stack.pop(), stack.pop()
            stack.append(a * b)
        elif op == "sub":
            b, a = stack.pop(), stack.pop()
            stack.append(a - b)
        elif op == "jz":
            at = labels[arg] if stack.pop() == 0 else at
        elif op == "jmp":
            at = labels[arg]
    return stack, variables


@use((PROGRAM,))
def sums_of_neighbours(program):
    found, at = [], 0
    while at < len(program) - 1:
        a, b = program[at][1], program[at + 1][0]
        if isinstance(a, str):
            found.append(a + b)
        else:
            found.append(a)
        at += 1
    return found
