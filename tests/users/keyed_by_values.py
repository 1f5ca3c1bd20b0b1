"""Objects that are keys, equal by what is in them; objects in order."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import asdict, astuple, dataclass, field

import numpy as np

from tests.users.corpus import use

X = np.array([3.0, 1.0, 2.0, 3.0])


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)


@dataclass(frozen=True, order=True)
class Label:
    rank: int
    name: str
    times: int = field(default=0, compare=False)


class State:
    def __init__(self, cells, cost):
        self.cells, self.cost = cells, cost

    def __eq__(self, other):
        return self.cells == other.cells if isinstance(other, State) else NotImplemented

    def __hash__(self):
        return hash(self.cells)

    def __lt__(self, other):
        return self.cost < other.cost

    def moves(self):
        for k in range(len(self.cells) - 1):
            cells = list(self.cells)
            cells[k], cells[k + 1] = cells[k + 1], cells[k]
            yield State(tuple(cells), self.cost + k + 1)


@use((9,), (2,))
def points_that_were_visited(n):
    p, seen = Point(0), {Point(0)}
    for k in range(n):
        step = p + (Point(1) if k % 3 else Point(-1, k % 2))
        if step not in seen:
            seen.add(step)
            p = step
    return len(seen), p, Point(0, 0) in seen


@use((X,), (X[:0],), wrt=(0,), corners=(1,))
def sums_by_point(x):
    sums = {}
    for k, v in enumerate(x):
        p = Point(k % 2)
        sums[p] = sums.get(p, 0.0) + v * v
    total = 0.0
    for p, v in sums.items():
        total += (p.x + 1) * v * v
    return total


@use((X,), long=True)
def labels_in_order(x):
    found = defaultdict(list)
    for k, v in enumerate(x):
        found[Label(int(v), "ab"[k % 2], k)].append(v)
    pair = {(Label(1, "b"), 2): 5}[Label(1, "b"), 2]
    return sorted(found), found, Label(3, "b", 9) in found, pair


@use((X, 2), long=True)
def counted_in_pythons_order(x, n):
    count = Counter(Point(int(v)) for v in x)
    seen = {Point(7 * k % n, k) for k in range(2 * n)}
    return count, list(seen), [p.y for p in seen]


@use(((2, 0, 1),), long=True)
def cheapest_order(cells):
    waiting, best = [State(cells, 0)], {State(cells, 0): 0}
    while waiting:
        state = heapq.heappop(waiting)
        if state == State((0, 1, 2), 0):
            return state.cost, len(best)
        for move in state.moves():
            if move not in best or move.cost < best[move]:
                best[move] = move.cost
                heapq.heappush(waiting, move)
    return -1, len(best)


@use((X,), (X[:0],))
def objects_in_their_order(x):
    labels = []
    for v in x:
        if v > 1.5:
            labels.append(Label(int(v), "a", len(labels)))
    labels.sort()
    return [label.times for label in labels], [label.rank for label in sorted(labels, reverse=True)]


@use((["up", "right", "right"],))
def places_of_a_walk_as_dicts(moves):
    steps = {"up": (0, 1), "right": (1, 0)}
    place = Point(0, 0)
    seen = {place}
    for move in moves:
        dx, dy = steps[move]
        place = Point(place.x + dx, place.y + dy)
        seen.add(place)
    return len(seen), asdict(place), astuple(place)
