"""Queues, heaps, and dicts and sets whose keys only the running program knows."""

from __future__ import annotations

import bisect
import copy
import heapq
from collections import Counter, OrderedDict, defaultdict, deque

import numpy as np

from tests.users.corpus import use

K = np.array([3, 1, 3, 2, 1, 3])
W = np.linspace(0.2, 1.7, 6)
EDGES = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])


@use((6,), (17,), long=True)
def steps_by_breadth_first_search(n):
    queue = deque([0])
    steps = [-1] * n
    steps[0] = 0
    while queue:
        u = queue.popleft()
        for v in (u + 1, u * 2):
            if v < n and steps[v] < 0:
                steps[v] = steps[u] + 1
                queue.append(v)
    return steps


@use((5,), (0,), long=True)
def both_ends(n):
    queue = deque(maxlen=4)
    for i in range(n):
        if i % 2:
            queue.appendleft(i)
        else:
            queue.append(i)
    return queue, len(queue), sum(queue)


@use(([5.0, 3.0, 8.0, 1.0, 9.0],), wrt=(0,), long=True)
def weighted_by_order(a):
    heap = list(a)
    heapq.heapify(heap)
    total, weight = 0.0, 1.0
    while len(heap) > 1:
        total += weight * heapq.heappop(heap)
        weight *= 0.5
    return total


@use(([4, 1, 7, 3, 8, 5],), long=True)
def medians_so_far(a):
    seen, out = [], []
    for x in a:
        bisect.insort(seen, x)
        out.append(seen[len(seen) // 2])
    return out, bisect.bisect_left(seen, 4), bisect.bisect(seen, 4)


@use((K,), (K[:1],), long=True)
def counts_of_items(keys):
    counts = {}
    for k in keys.tolist():
        counts[k] = counts.get(k, 0) + 1
    return counts


@use((K,), long=True)
def counters(keys):
    counts = Counter(keys.tolist())
    best = counts.most_common(1)[0]
    return counts, best, counts[77]


@use((K, W), wrt=(1,), long=True)
def squares_of_sums_by_key(keys, w):
    sums = defaultdict(float)
    for i in range(len(keys)):
        sums[keys[i]] += w[i] ** 2
    total = 0.0
    for k in sums:
        total += sums[k] * sums[k]
    return total


@use((4, 5), long=True)
def paths_through_a_grid(n, m):
    memo = {}

    def go(i, j):
        if i == 0 or j == 0:
            return 1
        if (i, j) in memo:
            return memo[(i, j)]
        memo[(i, j)] = go(i - 1, j) + go(i, j - 1)
        return memo[i, j]

    return go(n, m)


@use((EDGES,), long=True)
def depth_first(edges):
    around = defaultdict(list)
    for a, b in edges:
        around[int(a)].append(int(b))
        around[int(b)].append(int(a))
    seen, order, stack = set(), [], [0]
    while stack:
        u = stack.pop()
        if u in seen:
            continue
        seen.add(u)
        order.append(u)
        for v in around[u]:
            stack.append(v)
    return order, seen


@use((K,), long=True)
def deletes_keys(keys):
    d = {}
    for k in keys.tolist():
        d[k] = k * 2.0
    del d[3]
    return d, d.pop(1), 3 in d, len(d)


@use((np.array([1, 2, 3]),), long=True)
def key_that_is_missing(keys):
    d = {}
    for k in keys.tolist():
        d[k] = 1
    return d[int(keys[0]) + 7]


@use(([(1, 5), (2, 3), (4, 8), (3, 1), (2, 2)],), long=True)
def sorted_pairs(a):
    pairs = []
    for p in a:
        pairs.append(p)
    pairs.sort(key=lambda p: p[1])
    return pairs, sorted(pairs), sorted(pairs, key=lambda p: (p[0], -p[1]), reverse=True)


@use((W,), wrt=(0,), long=True)
def sorted_array(w):
    ordered = sorted(w, key=lambda v: -v)
    return ordered[0] + 2.0 * ordered[1]


@use((OrderedDict([(3, 1.0), (1, 2.0)]), [5, 1, 3]), (OrderedDict(), [2, 2]))
def ordered_dict_of_the_caller(recent, keys):
    for k in keys:
        if k in recent:
            recent.move_to_end(k)
        else:
            recent[k] = 0.5 * k
        if len(recent) > 2:
            recent.popitem(last=False)
    return recent, list(recent.items()), recent == OrderedDict([(1, 2.0), (3, 1.0)])


@use((OrderedDict(w=W, b=np.zeros(3)),), long=True)
def ordered_parameters_of_the_caller(parameters):
    for name in parameters:
        parameters[name] = parameters[name] + 1
    parameters.move_to_end("w")
    return OrderedDict((k, 2 * v) for k, v in parameters.items()), list(parameters)


@use(((1, 3, 2, 3, 4), 3), ((1, 2.5, 2), 2))
def places_in_a_part_of_a_tuple(items, wanted):
    try:
        return items.index(wanted, 1), items.index(wanted, -3, 5), items.index(wanted, 2)
    except ValueError as error:
        return str(error)


@use((4,), (0,))
def repeated_deques(n):
    window = deque([0], maxlen=3) * n
    window *= 2
    window.append(7)
    return list(window), window.maxlen, list(2 * deque([1, n]))


@use(([1, 2], "a"), ((1, 2), "a"), ("ab", None), ("ab", 1), ([[1], [2]], 0))
def asked_by_what_may_be_no_index(items, key):
    try:
        return items[key]
    except TypeError as error:
        return str(error)


@use(([1],))
def lists_behind_their_methods(items):
    add = items.append
    add(5)
    add.__self__.append(6)
    return items


@use(([1, 2, 3], 2), ([1, 2, 3], "n"), (["a"], 1), ([1], None), ([(1, 2)], 1))
def searched_for_what_may_have_no_order(items, wanted):
    try:
        for k, item in enumerate(items):
            if item == wanted or wanted < item:
                return k
    except TypeError as error:
        return str(error)
    return None


@use((4,), (1,))
def shallow_copies(n):
    counted, listed, plain, members, waiting = Counter(), defaultdict(list), {}, set(), deque()
    for k in range(n):
        counted[k % 3] += 1
        listed[k % 3].append(k)
        plain[k] = k
        members.add(k)
        waiting.append(k)
    copies = [copy.copy(each) for each in (counted, plain)]
    for each in copies:
        each[0] = 7
    others, further = copy.copy(listed), copy.copy(members)
    others[5] = [n]
    others[0].append(n)
    further.add(-1)
    queue = copy.copy(waiting)
    queue.append(9)
    return counted, plain, copies, listed, others, members, further, waiting, queue
