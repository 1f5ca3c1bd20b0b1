"""Objects of plain classes in lists, dicts, queues and heaps of a length known at run time only.

They are nodes of a pool: changed through any name, compared, sorted, found by a computed index.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from tests.users.corpus import use

rng = np.random.default_rng(21)
FIVE = np.array([0.4, -0.2, 0.9, 0.7, -0.5])


@dataclass(frozen=True, order=True)
class Event:
    time: float
    kind: int
    who: int


@dataclass
class Box:
    x: float
    n: int = 0


class Ranked:
    def __init__(self, x, n):
        self.x, self.n = x, n

    def __lt__(self, other):
        return self.x < other.x


@use((FIVE,), wrt=(0,))
def kept_if(a):
    boxes = []
    for t in a:
        if t > 0:
            boxes.append(Box(t))
    for _ in range(3):
        for b in boxes:
            b.x = b.x * 0.5
            b.n += 1
    return sum(b.x for b in boxes), sum(b.n for b in boxes)


@use((FIVE,), wrt=(0,), long=True)
def heap_of_ordered_dataclasses(a):
    events = [Event(t, 0, i) for i, t in enumerate(a)]
    heapq.heapify(events)
    heapq.heappush(events, Event(0.1, 1, 9))
    total, k = 0.0, 1
    while events:
        event = heapq.heappop(events)
        total += k * event.time
        k += 1
    return total


@use((FIVE,), wrt=(0,), long=True)
def heap_of_tuples_whose_last_item_has_no_order(a):
    heap = []
    for i, t in enumerate(a):
        heapq.heappush(heap, (t, i, Box(t, i)))
    total, k = 0.0, 1
    while heap:
        _, i, box = heapq.heappop(heap)
        total += k * box.x + i
        k += 1
    return total


@use((np.array([0.5, 0.5]),))
def heap_that_has_to_order_boxes(a):
    heap = []
    for t in a:
        heapq.heappush(heap, (t, Box(t)))
    return heap[0][1].x


@use((FIVE,), long=True)
def heap_by_a_method(a):
    heap = [Ranked(t, i) for i, t in enumerate(a)]
    heapq.heapify(heap)
    order = []
    while heap:
        order.append(heapq.heappop(heap).n)
    return order


@use((FIVE, np.array([0, 2, 2])), wrt=(0,), long=True)
def changed_at_computed_places(a, places):
    items = [Ranked(t, i) for i, t in enumerate(a)]
    for i in places:
        items[i].x += 1.0
        items[i].n += 1
    best = max(items, key=lambda r: r.x)
    return best.x, best.n, [r.n for r in items]


@use((FIVE,), wrt=(0,), long=True)
def queue_of_objects(a):
    queue = deque()
    for i, t in enumerate(a):
        queue.append(Box(t, i))
    total = 0.0
    while queue:
        box = queue.popleft()
        if box.n > 2:
            queue.append(Box(box.x * 0.5, box.n - 2))
        total += box.x
    return total


@use((np.ones((3, 4)),), wrt=(0,), long=True)
def grid_of_objects(a):
    rows, columns = a.shape
    cells = [[Box(a[i, j]) for j in range(columns)] for i in range(rows)]
    for i in range(1, rows):
        for j in range(columns):
            cells[i][j].x += cells[i - 1][j].x
    return sum(c.x for row in cells for c in row)


@use((rng.normal(size=(4, 4)),), wrt=(0,), long=True)
def objects_by_computed_keys(grid):
    height, width = grid.shape
    cells = {}
    for i in range(height):
        for j in range(width):
            if grid[i, j] > 0:
                cells[(i, j)] = Box(grid[i, j])
    for (i, j), cell in cells.items():
        for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            if (i + di, j + dj) in cells:
                cell.n += 1
    return sum(c.x * c.n for c in cells.values())


@dataclass
class Body:
    position: np.ndarray
    velocity: np.ndarray
    mass: float


@use(
    (rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), rng.random(5), 0.1), wrt=(0, 1, 2),
    slow=True,
)  # fmt: skip
def bodies_with_arrays_written_in_place(positions, velocities, masses, dt):
    bodies = []
    for p, v, m in zip(positions, velocities, masses, strict=True):
        if m > 0.1:
            bodies.append(Body(p.copy(), v.copy(), m))
    for _ in range(3):
        for i, a in enumerate(bodies):
            pull = np.zeros(2)
            for j, b in enumerate(bodies):
                if i != j:
                    d = b.position - a.position
                    pull += b.mass * d / (np.sum(d * d) + 0.1) ** 1.5
            a.velocity += dt * pull
        for b in bodies:
            b.position += dt * b.velocity
    energy = sum(0.5 * b.mass * (b.velocity @ b.velocity) for b in bodies)
    return np.array([b.position for b in bodies]), energy


@dataclass
class Interval:
    low: float
    high: float

    def overlaps(self, other):
        return self.low <= other.high and other.low <= self.high

    def merged(self, other):
        return Interval(min(self.low, other.low), max(self.high, other.high))


@use((np.array([1.0, 0.5, 4.0]), np.array([2.0, 1.2, 5.0])), wrt=(0, 1), long=True)
def merged_intervals(low, high):
    intervals = [Interval(a, b) for a, b in zip(low, high, strict=True)]
    intervals = sorted(intervals, key=lambda i: i.low)
    out = []
    for x in intervals:
        if out and out[-1].overlaps(x):
            out[-1] = out[-1].merged(x)
        else:
            out.append(x)
    return [(o.low, o.high) for o in out]


@use((np.array([1.0, 0.5, 4.0]), np.array([2.0, 0.7, 5.0])), wrt=(0, 1), long=True)
def one_object_in_two_lists(low, high):
    intervals = [Interval(a, b) for a, b in zip(low, high, strict=True)]
    keep = [i for i in intervals if i.high - i.low > 0.3]
    for k in keep:
        k.low = k.high * 2
    return [i.low for i in intervals], len(keep)


class Vertex:
    def __init__(self, index):
        self.index, self.distance, self.previous, self.done = index, math.inf, None, False


@use((rng.random((6, 6)) * (rng.random((6, 6)) > 0.4), 0))
def shortest_paths_over_objects(weights, start):
    n = len(weights)
    vertices = [Vertex(i) for i in range(n)]
    vertices[start].distance = np.float64(0.0)
    for _ in range(n):
        here = None
        for u in vertices:
            if not u.done and (here is None or u.distance < here.distance):
                here = u
        if here is None or here.distance == math.inf:
            break
        here.done = True
        for j in range(n):
            if weights[here.index, j] > 0:
                d = here.distance + weights[here.index, j]
                if d < vertices[j].distance:
                    vertices[j].distance, vertices[j].previous = d, here.index
    return [u.distance for u in vertices], [u.previous for u in vertices]


@dataclass
class Swarmer:
    position: np.ndarray
    velocity: np.ndarray
    best: np.ndarray
    value: float = math.inf


def _swarm():
    draws = np.random.default_rng(3)
    return [Swarmer(draws.normal(size=2), draws.normal(size=2), np.zeros(2)) for _ in range(4)]


@use((_swarm(), 3), long=True)
def swarm_of_arguments(swarm, steps):
    for _ in range(steps):
        for s in swarm:
            value = float(np.sum(s.position * s.position))
            if value < s.value:
                s.value, s.best = value, s.position.copy()
        for s in swarm:
            s.velocity = 0.5 * s.velocity + (s.best - s.position)
            s.position = s.position + s.velocity
    return swarm


def _boxes(count):
    draws = np.random.default_rng(5)
    return [Box(float(draws.normal()), i) for i in range(count)]


@use((_boxes(5), 0.0), (_boxes(40), 0.5), wrt=(0,), slow=True)
def kept_arguments(boxes, threshold):
    kept = [b for b in boxes if b.x > threshold]
    for b in kept:
        b.n += 100
    return kept


@use((_boxes(5),), wrt=(0,))
def best_argument(boxes):
    best = boxes[0]
    for b in boxes:
        if b.x > best.x:
            best = b
    best.n = -1
    return best


@use((Box(1.0), Box(2.0), 1), (Box(1.0), Box(2.0), 0), wrt=(0, 1), slow=True)
def one_of_two_objects(a, b, first):
    chosen = a if first else b
    chosen.x += 1.0
    return a.x + 2 * b.x


def _sorted_by_merging(boxes):
    if len(boxes) <= 1:
        return boxes
    half = len(boxes) // 2
    left, right = _sorted_by_merging(boxes[:half]), _sorted_by_merging(boxes[half:])
    out = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i].x <= right[j].x:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


@use((_boxes(6),), wrt=(0,), long=True)
def objects_sorted_by_recursion(boxes):
    ordered = _sorted_by_merging(boxes)
    ordered[0].x = 99.0
    return [b.x for b in boxes]


def _best_load(items, i, room):
    if i == len(items):
        return 0.0
    best = _best_load(items, i + 1, room)
    if items[i].n <= room:
        best = max(best, items[i].x + _best_load(items, i + 1, room - items[i].n))
    return best


@use((FIVE, 5), wrt=(0,), long=True)
def recursion_over_a_list_of_objects(a, room):
    items = []
    for i, t in enumerate(a):
        if t > 0:
            items.append(Box(t, i + 1))
    return _best_load(items, 0, room)


class Shape:
    def wide(self, limit):
        return self.area() > limit


@dataclass
class Circle(Shape):
    radius: float

    def area(self):
        return math.pi * self.radius**2


@dataclass
class Rectangle(Shape):
    width: float
    height: float

    def area(self):
        return self.width * self.height


@use(([Circle(1.0), Rectangle(1.0, 2.0), Circle(2.0)], 2.5), wrt=(0,), slow=True)
def shapes_of_several_classes(shapes, limit):
    wide = [s for s in shapes if s.wide(limit)]
    return len(wide), sum(s.area() for s in wide)


class Mover:
    def __init__(self, x, v, m):
        self.x, self.v, self.m = x, v, m

    def drift(self, dt):
        self.x += self.v * dt


@use(([Mover(0.3 * k, 0.1 * k * k, 1.0 + k % 3) for k in range(18)], 0.1), wrt=(0, 1), long=True)
def many_bodies_of_the_caller(bodies, dt):
    for _ in range(3):
        for a in bodies:
            for b in bodies:
                if a is not b:
                    r = b.x - a.x
                    a.v += dt * b.m * r / (abs(r) ** 3 + 0.1)
        for a in bodies:
            a.drift(dt)
    return sum(0.5 * a.m * a.v * a.v for a in bodies)


class Point:
    def __init__(self, x, v):
        self.x, self.v = np.array(x), np.array(v)


@use(([Point([0.3 * k, 1.0], [0.1 * k, 2.0]) for k in range(18)], 0.1), wrt=(1,), long=True)
def many_points_of_the_caller(points, dt):
    for p in points:
        p.x += p.v * dt
        p.v[1] -= 9.81 * dt
    return np.array([p.x for p in points]).sum(), points
