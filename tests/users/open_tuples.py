"""Tuples whose length only the running program knows."""

from __future__ import annotations

import dataclasses
import heapq
import itertools

import numpy as np

from tests.users.corpus import use


@use((3,), long=True)
def permutations_found(n):
    out, current, used = [], [], [False] * n

    def place():
        if len(current) == n:
            out.append(tuple(current))
            return
        for i in range(n):
            if not used[i]:
                used[i] = True
                current.append(i)
                place()
                current.pop()
                used[i] = False

    place()
    return out


@use((5, 2), (4, 4), (3, 5), (3, 0), (0, 0))
def combinations_of_a_computed_length(n, r):
    total, count = 0, 0
    for chosen in itertools.combinations(range(n), r):
        count += 1
        for place, v in enumerate(chosen):
            total += v * 10**place
    return total, count


@use((3, 2), (2, 3), (0, 2), (0, 0))
def repeated_combinations_of_a_computed_length(n, r):
    return list(itertools.combinations_with_replacement(range(n), r))


@use((4, 2), (3, 3), (2, 3), (0, 0))
def permutations_of_a_computed_length(n, r):
    count = sum(1 for _ in itertools.permutations(range(n)))
    return list(itertools.permutations(range(n), r)), count


@use((np.array([[0.0, 2.0, 9.0, 4.0], [2.0, 0.0, 3.0, 7.0], [9.0, 3.0, 0.0, 1.0],
                [4.0, 7.0, 1.0, 0.0]]),), long=True)
def held_and_karp(distances):
    n = len(distances)
    cost = {(1 << k, k): distances[0][k] for k in range(1, n)}
    for size in range(2, n):
        for cities in itertools.combinations(range(1, n), size):
            bits = sum(1 << c for c in cities)
            for last in cities:
                before = bits & ~(1 << last)
                cost[(bits, last)] = min(
                    cost[(before, c)] + distances[c][last] for c in cities if c != last
                )
    full = (1 << n) - 2
    return min(cost[(full, k)] + distances[k][0] for k in range(1, n))


@use(([1, 2, 1, 2, 1, 2, 3, 1, 2, 1, 2],), long=True)
def compressed(data):
    table = {}
    for i in range(4):
        table[(i,)] = i
    known, out = (), []
    for code in data:
        longer = known + (code,)
        if longer in table:
            known = longer
        else:
            out.append(table[known])
            table[longer] = len(table)
            known = (code,)
    return out, len(table)


@use((5,), (0,), long=True)
def everything_of_a_tuple(n):
    t = ()
    for i in range(n):
        t += (i, i * 2)
    return (
        t, len(t), t[1:], t[::-1], 4 in t, t.count(0), t == (0, 0, 1, 2), t < (1,), sum(t), t * 2,
        list(t), sorted(t, reverse=True), (9,) + t, isinstance(t, tuple), bool(t), str(t), tuple(t),
    )


@use((3,), (4,), (2,), long=True)
def taken_apart(n):
    t = ()
    for i in range(n):
        t += (i,)
    try:
        t[0] = 3
    except TypeError as error:
        said = str(error)
    a, b, c = t
    return a + b + c, said


@use((1.3, 5), wrt=(0,))
def weighted(x, n):
    t = (x,)
    for i in range(n):
        t = (t[0] * 0.9,) + t if i % 2 else t + (t[-1] * 1.1,)
    total = 0.0
    for k, v in enumerate(t):
        total += k * v
    return total


@use(([0, 2, 7, 0],), long=True)
def states_seen(banks):
    seen, current, steps = set(), list(banks), 0
    while tuple(current) not in seen:
        seen.add(tuple(current))
        i = current.index(max(current))
        blocks = current[i]
        current[i] = 0
        for j in range(blocks):
            current[(i + 1 + j) % len(current)] += 1
        steps += 1
    return steps


@use(([3, 2, 7, 10],), long=True)
def best_of_the_rest(values):
    memo = {}

    def best(t):
        if t in memo:
            return memo[t]
        if not t:
            return 0
        found = max(t[0] + best(t[2:]), best(t[1:]))
        memo[t] = found
        return found

    return best(tuple(values))


@use((4,), long=True)
def rows_of_tuples(n):
    out = []
    for i in range(n):
        row = ()
        for j in range(i):
            row += (i * j,)
        out.append(row)
    return out, [len(row) for row in out], sum(sum(row) for row in out)


@use((1.3, 7), wrt=(0,), slow=True, long=True)
def sums_by_tuple(x, n):
    sums = {}
    for i in range(n):
        key = tuple(range(i % 3))
        sums[key] = sums.get(key, 0.0) + x * i
    total = 0.0
    for key, value in sums.items():
        total += len(key) * value * value
    return total


@use((3, 0, 1, 2), long=True)
def moves_of_a_tower(n, a, b, c):
    if n == 0:
        return ()
    return moves_of_a_tower(n - 1, a, c, b) + ((a, c),) + moves_of_a_tower(n - 1, b, a, c)


@use((1.3, 4), wrt=(0,))
def a_tuple_as_an_array(x, n):
    powers = ()
    for k in range(n):
        powers += (x**k,)
    a = np.array(powers)
    a[: len(powers)] = powers
    return a @ np.arange(1.0, n + 1.0) + np.mean(powers) + np.max(powers)


@use((2.0, 3),)
def tuples_of_keys_made_longer(x, n):
    table = {(): x, (1, 2): x + 1.0}
    longer = [key + (n,) for key in table]
    return longer, [(n,) + key for key in table]


class Step:
    def __init__(self, cost, path, before):
        self.cost, self.path, self.before = cost, path, before


@use((np.array([3.0, 1.0, 2.0, 5.0]),), (np.array([0.5]),))
def tuples_in_objects_that_grow_step_by_step(x):
    step = Step(0.0, (), None)
    for k, v in enumerate(x):
        step = Step(step.cost + v, (*step.path, k) if v > 1 else step.path, step)
    return step.path, step.cost, len(step.before.path)


@dataclasses.dataclass(order=True)
class Partial:
    bound: float
    level: int = dataclasses.field(compare=False)
    taken: tuple[int, ...] = dataclasses.field(compare=False, default=())


@use((np.array([3.0, 1.0, 2.0, 5.0]), 5.0), (np.array([0.5]), 0.25))
def tuples_in_a_queue_of_dataclasses(x, room):
    queue = [Partial(-x.sum(), 0)]
    while queue:
        here = heapq.heappop(queue)
        if here.level == len(x):
            return here.taken
        if x[list(here.taken)].sum() + x[here.level] <= room:
            taken = here.taken + (here.level,)
            heapq.heappush(queue, Partial(here.bound, here.level + 1, taken))
        without = here.bound + x[here.level]
        heapq.heappush(queue, Partial(without, here.level + 1, here.taken))
    return ()
