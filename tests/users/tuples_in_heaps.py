"""Heaps of tuples whose later items are of several kinds, and of tuples with lists in them."""

from __future__ import annotations

import heapq
import itertools

from tests.users.corpus import use


@use(("abracadabra",), long=True)
def huffman_codes_of_tuples(text):
    counts = {}
    for c in text:
        counts[c] = counts.get(c, 0) + 1
    heap = [(f, i, c, None, None) for i, (c, f) in enumerate(sorted(counts.items()))]
    heapq.heapify(heap)
    n = len(heap)
    while len(heap) > 1:
        a = heapq.heappop(heap)
        b = heapq.heappop(heap)
        heapq.heappush(heap, (a[0] + b[0], n, "", a, b))
        n += 1
    codes = {}

    def walk(node, code):
        if node[3] is None:
            codes[node[2]] = code or "0"
        else:
            walk(node[3], code + "0")
            walk(node[4], code + "1")

    walk(heap[0], "")
    return codes


@use(([3, 1, 4, 1],), ([7],))
def merged_weights(weights):
    heap = [(w, k, None) for k, w in enumerate(weights)]
    heapq.heapify(heap)
    total = 0
    while len(heap) > 1:
        a = heapq.heappop(heap)
        b = heapq.heappop(heap)
        total += a[0] + b[0]
        heapq.heappush(heap, (a[0] + b[0], len(weights) + total, (a, b)))
    return total


@use((4,), (0,))
def kinds_that_are_not_compared(n):
    heap = [(9, -1, None, 2.5)]
    for i in range(n):
        heapq.heappush(heap, (i % 2, i, "even" if i % 2 else None, i))
        heapq.heappush(heap, (i % 3, i + n, (i, i), "text"))
    return [heapq.heappop(heap)[:2] for _ in range(len(heap))]


@use((3, 1), (3, 0))
def kinds_that_are_compared_at_a_tie(n, step):
    heap = [(0, "text")]
    for i in range(n):
        heapq.heappush(heap, (i * step - 1, None))
    return [heapq.heappop(heap)[0] for _ in range(len(heap))]


@use((3, 1, 2, 2), (2, 1, 1, 0), (2, 2, 2, 0), (2, 2, 2, 2))
def order_of_tuples_of_cases(a, b, c, d):
    x = (a, "x") if d else (a, 1.5)
    y = (b, "y") if c > 1 else (b, 2)
    return x < y, y <= x, x > y, x >= y


GRAPH = {0: [(1, 1), (2, 4)], 1: [(2, 2), (3, 5)], 2: [(3, 1)], 3: []}
NAMED = {"A": {"B": 1, "C": 4}, "B": {"C": 2, "D": 5}, "C": {"D": 1}, "D": {}}


@use((GRAPH, 0, 3), (GRAPH, 3, 0))
def shortest_path_with_its_nodes(graph, start, target):
    queue, seen = [(0, start, [])], set()
    while queue:
        cost, node, path = heapq.heappop(queue)
        if node in seen:
            continue
        seen.add(node)
        if node == target:
            return cost, path + [node]
        for other, length in graph[node]:
            if other not in seen:
                heapq.heappush(queue, (cost + length, other, path + [node]))
    return -1, []


@use((NAMED, "A", "D"), (NAMED, "D", "A"), long=True)
def paths_that_share_a_list(graph, start, target):
    queue, seen = [(0, start, [])], set()
    while queue:
        cost, node, path = heapq.heappop(queue)
        if node in seen:
            continue
        seen.add(node)
        path = path + [node]
        if node == target:
            return cost, path
        for other, length in graph[node].items():
            if other not in seen:
                heapq.heappush(queue, (cost + length, other, path))
    return -1, []


@use((4,), (1,))
def one_list_in_two_items_of_a_heap(n):
    heap = [(0, [0])]
    for k in range(n):
        cost, path = heapq.heappop(heap)
        path = path + [k]
        for j in range(2):
            heapq.heappush(heap, (cost + j, path))
    return heap, heapq.heappushpop(heap, (1, [5])), heapq.heapreplace(heap, (0, [6, 7]))


@use(([3, 1, 2],), ([1],))
def rows_in_a_heap(values):
    heap = [[v, k] for k, v in enumerate(values)]
    heapq.heapify(heap)
    order = []
    while heap:
        row = heapq.heappop(heap)
        order.append(row)
        if row[0] < 2:
            heapq.heappush(heap, [row[0] + 2, -row[1]])
    return order


class Tasks:
    """A queue whose entries are marked where they are removed, as heapq's documentation has it."""

    def __init__(self):
        self.heap, self.entries, self.counter = [], {}, itertools.count()

    def add(self, task, priority=0):
        if task in self.entries:
            self.remove(task)
        entry = [priority, next(self.counter), task]
        self.entries[task] = entry
        heapq.heappush(self.heap, entry)

    def remove(self, task):
        self.entries.pop(task)[-1] = "<removed>"

    def pop(self):
        while self.heap:
            priority, _, task = heapq.heappop(self.heap)
            if task != "<removed>":
                del self.entries[task]
                return task, priority
        raise KeyError("pop from an empty priority queue")


@use((["a", "b", "c"],), (["a"],), long=True)
def entries_marked_in_a_heap(tasks):
    queue = Tasks()
    for k, task in enumerate(tasks):
        queue.add(task, 10 - k)
    queue.add("a", 1)
    return queue.pop(), queue.pop(), len(queue.entries)
