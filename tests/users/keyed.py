"""Dicts and sets by what their keys are, what they hold, and where they come from."""

from __future__ import annotations

import enum
import heapq
import math
from collections import Counter, defaultdict, deque

import numpy as np

from tests.users.corpus import use

RANDOM = np.random.default_rng(0)
K = RANDOM.integers(0, 9, 40)
W = np.linspace(0.1, 2.0, 40)
POINTS = RANDOM.random((30, 2)) * 3


class Side(enum.Enum):
    LEFT = "left"
    RIGHT = "right"
    NONE = "none"


# -- keys ------------------------------------------------------------------------------------------


@use((K, W), wrt=(1,), slow=True)
def sums_by_word(k, w):
    words = ("a", "of", "the", "of", "to")
    sums = {}
    for i in range(len(k)):
        word = words[k[i] % 5]
        if word in sums:
            sums[word] += w[i] ** 2
        else:
            sums[word] = w[i] ** 2
    return sums


@use((K,), long=True)
def words_that_are_met(k):
    words = ["red", "green", "blue", "x", "black", "white", "grey", "pink", "cyan", "y"]
    found = []
    for v in k:
        if words[v] not in found and words[v] != words[k[0]]:
            found.append(words[v])
    return found, words[k[1]] in {"x", "cyan"}, len(words[k[2]])


@use((K,), long=True)
def sides_counted(k):
    sides = list(Side)
    counts = Counter()
    for v in k:
        counts[sides[v % 3]] += 1
    best = max(counts, key=counts.get)
    return counts, best, counts[Side.LEFT]


@use((np.round(POINTS),), long=True)
def places_met(p):
    counts = {}
    for x, y in p:
        counts[x, y] = counts.get((x, y), 0) + 1
    return counts, (0.0, 99.5) in counts, (1, 1) in counts


@use((K,), long=True)
def states_of_several_kinds(k):
    names = ("up", "down")
    seen = set()
    again = 0
    for i in range(len(k) - 1):
        state = ((int(k[i]), names[k[i + 1] % 2]), k[i] > 4, None)
        again += state in seen
        seen.add(state)
    return again, len(seen), ((3, "up"), False, None) in seen


# -- values ----------------------------------------------------------------------------------------


@use((np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]]),), long=True)
def path_through_a_grid(grid):
    rows, columns = grid.shape
    goal = (rows - 1, columns - 1)
    came = {(0, 0): None}
    queue = deque([(0, 0)])
    while queue:
        current = queue.popleft()
        if current == goal:
            break
        r, c = current
        for dr, dc in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            a, b = r + dr, c + dc
            if 0 <= a < rows and 0 <= b < columns and grid[a, b] == 0 and (a, b) not in came:
                came[a, b] = current
                queue.append((a, b))
    path = []
    node = goal
    while node is not None:
        path.append(node)
        node = came[node]
    return path[::-1]


@use((K, W), wrt=(1,), long=True)
def best_with_place(k, w):
    best = {}
    for i in range(len(k)):
        key = int(k[i])
        if key not in best or w[i] * math.sin(i) > best[key][0]:
            best[key] = (w[i] * math.sin(i), i)
    return best


@use((K, W), wrt=(1,), long=True)
def means_of_groups(k, w):
    groups = {}
    for key, value in zip(k.tolist(), w.tolist()):
        if key not in groups:
            groups[key] = []
        groups[key].append(value)
    return {key: sum(values) / len(values) for key, values in groups.items()}


@use((POINTS,), wrt=(0,), long=True)
def neighbours_in_cells(p):
    cells = {}
    for i in range(len(p)):
        key = (int(p[i, 0]), int(p[i, 1]))
        if key not in cells:
            cells[key] = []
        cells[key].append(i)
    total = 0.0
    for i in range(len(p)):
        cx, cy = int(p[i, 0]), int(p[i, 1])
        for dx in (-1, 0, 1):
            for j in cells.get((cx + dx, cy), []):
                distance = ((p[i] - p[j]) ** 2).sum()
                if i != j and distance < 0.5:
                    total += 0.5 - distance
    return total


# -- what is done with them ------------------------------------------------------------------------


@use((K,), long=True)
def views_and_unions(k):
    d = {int(v): 1 for v in k[:20]}
    e = dict(zip((k[20:] * 2).tolist(), range(20)))
    merged = {**d, **e}
    both = d | e
    d |= e
    zeros = dict.fromkeys(k.tolist(), 0)
    first, last = next(iter(e)), e.popitem()
    return (
        merged, both == d, zeros, first, last, e.pop(1000, None), d.keys() & e.keys(),
        d.keys() - {1, 2}, d.keys() == both.keys(), list(reversed(e)), (8, 1) in d.items(),
    )


@use((K,), long=True)
def operators_of_counters(k):
    a, b = Counter(k[:20].tolist()), Counter(k[20:].tolist())
    difference = a - b
    a.subtract(b)
    return a, difference, b + difference, b & difference, b | difference


@use(("ab", 2), long=True)
def signs_of_counts(text, n):
    counts = Counter(text)
    counts["a"] -= 3 * n
    return +counts, -counts, counts


@use((K, 3), (K, 99), long=True)
def changes_while_it_goes_through(k, wanted):
    d = {int(v): 1 for v in k}
    for v in d:
        if v == wanted:
            d[100] = 1
    return d


@use((K, 3), (K, 99), long=True)
def deletes_while_it_goes_through(k, wanted):
    d = {int(v): 1 for v in k}
    for v, n in d.items():
        if v == wanted:
            del d[v]
    return d


# -- dicts of the caller ---------------------------------------------------------------------------


@use((50, {}), (50, {1: 1, 2: 1}), long=True)
def memo_of_the_caller(n, memo):
    if n in memo:
        return memo[n]
    memo[n] = n if n < 2 else (memo_of_the_caller(n - 1, memo)
                               + memo_of_the_caller(n - 2, memo)) % 1000007
    return memo[n]


@use((60,), long=True)
def memo_by_default(n, memo={}):  # noqa: B006
    if n not in memo:
        memo[n] = n if n < 2 else (memo_by_default(n - 1) + memo_by_default(n - 2)) % 1000007
    return memo[n]


@use((K, {i: i * 0.5 for i in range(20)}), wrt=(1,), long=True)
def entries_changed(k, d):
    for v in k:
        d[int(v)] *= 1.1
        d[int(v) + 100] = d[int(v)] * 2
    del d[15]
    return d


GRAPH = {i: [((i + 1) % 20, 1.0 + i * 0.01), ((i * 7) % 20, 2.5 + i * 0.03)] for i in range(20)}


@use((GRAPH, 0), wrt=(0,), long=True)
def distances_in_a_graph(graph, start):
    distances = {start: 0.0}
    heap = [(0.0, start)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > distances[u]:
            continue
        for v, w in graph[u]:
            if d + w < distances.get(v, math.inf):
                distances[v] = d + w
                heapq.heappush(heap, (d + w, v))
    return distances


@use(({i: float(i) for i in range(20)}, 3), long=True)
def raises_behind_a_write(d, n):
    for i in range(n):
        d[i] = -1.0
    return d[n + 1000]


@use((Counter([1, 1, 2]), K), long=True)
def counter_of_the_caller(counts, k):
    for v in k:
        counts[int(v)] += 1
    return counts[99], counts, counts.total()


@use((defaultdict(float, {1: 2.0}), K), long=True)
def defaultdict_of_the_caller(sums, k):
    for v in k:
        sums[int(v)] += 0.5
    return sums, sums[77]


@use((1.0,), (-1.0,), long=True)
def known_keys_changed_on_a_path(x):
    d = {"a": 1.0, "b": 2.0}
    for key in d:
        if x > 0 and key == "a":
            d["z"] = x
    return len(d)


@use((2.0,), long=True)
def set_changed_while_it_goes_through(x):
    names = {"a", "b"}
    for name in names:
        names.discard("a")
        names.discard("b")
        x += len(name)
    return x


@use((2.0,), wrt=(0,), long=True)
def values_changed_while_it_goes_through(x):
    d = {"a": x, "b": x * x}
    for key in d:
        d[key] *= 2.0
        if key == "b":
            d["c"] = x
            break
    return d


@use(("kitten", "sitting"), long=True)
def distances_in_a_joined_dict(a, b):
    d = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (x != y))
    return d[len(a), len(b)]


@use((30,))
def a_joined_dict_that_is_filled(n):
    d = {i: i * i for i in range(20)} | {-1: 5}
    for k in range(n):
        d[k] = d.get(k - 1, 0) + d.get(k % 7, 0)
    return d


@use(([1, 2], {(1, 2): 3}))
def what_no_set_or_dict_can_have(items, table):
    said = []
    try:
        said.append(str(items in {1, 2}))
    except TypeError as error:
        said.append(str(error))
    try:
        said.append(str((1, items) in table))
    except TypeError as error:
        said.append(str(error))
    return said


@use(({"x": 1, "y": 2}, {"y": 3, "z": 4}), long=True)
def all_that_dicts_do_to_each_other(a, b):
    both = a | b
    a |= {"q": 0}
    return (
        {**b, **a}, dict(zip(a, b, strict=False)), list(reversed(both)), a.keys() & b.keys(),
        a.keys() - b.keys(), a.items() >= {("x", 1)}, "x" in a.keys(),
        max(both, key=both.get),
    )
