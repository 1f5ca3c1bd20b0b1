"""Dicts of dicts, and of sets, and lists of sets of the caller's, looked through and changed."""

from __future__ import annotations

import heapq
import math

from tests.users.corpus import use


def _spread(i, k, count):
    return (i * 7 + k * k * 5 + k + 1) % count


def weighted(count, key):
    return {key(i): {key(_spread(i, k, count)): (i * k) % 9 + 1 for k in range(3)}
            for i in range(count)}


def linked(count, key, many=3):
    return {key(i): {key(_spread(i, k, count)) for k in range(many)} for i in range(count)}


def name(i):
    return f"n{i}"


WITH_GAPS = linked(20, int, 5)
for _each in WITH_GAPS.values():
    _each.update(range(40, 90, 7))
    _each.difference_update((40, 54))


@use((weighted(20, name), "n0"))
def shortest_ways(graph, source):
    found, before, heap = {v: math.inf for v in graph}, {}, [(0, source)]
    found[source] = 0
    while heap:
        d, u = heapq.heappop(heap)
        if d > found[u]:
            continue
        for v, w in graph[u].items():
            if d + w < found[v]:
                found[v], before[v] = d + w, u
                heapq.heappush(heap, (d + w, v))
    return found, before


@use((linked(20, int), 0), (WITH_GAPS, 3))
def reached_in_order(graph, source):
    seen, stack, order = {source}, [source], []
    while stack:
        u = stack.pop()
        order.append(u)
        for v in graph.get(u, ()):
            if v not in seen:
                seen.add(v)
                stack.append(v)
    return order


@use((linked(20, int),))
def common_neighbours(graph):
    return [(a, b, sorted(graph[a] | graph[b]))
            for a in graph for b in graph if a < b and len(graph[a] & graph[b]) >= 2]


@use((linked(17, name),))
def taken_apart(graph):
    order = []
    while graph:
        u = min(graph, key=lambda v: (len(graph[v]), v))
        order.append(u)
        gone = graph.pop(u)
        for others in graph.values():
            others.discard(u)
        gone.clear()
    return order


@use((weighted(20, int), 1))
def changed_and_bound_anew(graph, u):
    graph[u] = dict(graph[u])
    graph[u][77] = 7
    graph[1000] = graph[5]
    graph[5][8] = 8
    made = {}
    graph[2000] = made
    made[1] = 1
    return len(graph)


@use((linked(20, int), 6))
def changed_before_an_error(graph, last):
    graph[last].add(1000)
    for u in graph:
        if u > last:
            raise ValueError(f"at {u}")
        graph[u].clear()


@use((weighted(20, int), 3))
def one_given_back(graph, u):
    graph[u][99] = 1
    return graph[u]


SETS = [{(7 * k + j * j) % 23 for j in range(5)} for k in range(12)]


@use((SETS, 20))
def greedy_cover(sets, many):
    covered, chosen = set(), []
    while len(covered) < many:
        best = max(range(len(sets)), key=lambda k: (len(sets[k] - covered), -k))
        chosen.append(best)
        covered |= sets[best]
    return chosen, sorted(covered)


@use((SETS, 3))
def sets_taken_from_a_list(sets, k):
    sets[1].add(100)
    sets[0] = sets[2]
    sets.pop(5)
    for own in sets:
        own.discard(k)
    sets.sort(key=lambda own: (len(own), min(own)))
    return [min(own) for own in sets]


@use((SETS,), (SETS[:2],))
def all_sets_together(sets):
    return sorted(set.union(*sets)), sorted(set().union(*sets)), sorted(set.intersection(*sets))


@use((SETS, {1, 50}))
def a_set_is_given_all(sets, own):
    own.update(*sets)
    return own.union(*[each for each in sets if 3 in each]) == own


@use((SETS, 3))
def sets_in_a_list_with_a_new_one(sets, k):
    sets[1].add(100)
    sets.append({1})
    sets[0] = sets[2]
    for own in sets:
        own.discard(k)
    return len(sets)


@use(([1, 2, 3, 9, 17] * 4,))
def sets_in_order_given_back(values):
    groups, order = {}, []
    for v in values:
        groups.setdefault(v % 3, set()).add(v * 8)
    for k in groups:
        order += groups[k]
    return groups, order


@use(([{1: 2, 3: 4}] * 2,), ([{k: k * j for k in (1, 2)} for j in range(20)],), long=True)
def dicts_with_ints_for_keys(rows):
    return sum(row[1] for row in rows)
