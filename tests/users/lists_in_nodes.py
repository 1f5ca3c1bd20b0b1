"""Objects of which the running program decides the number, with lists that it changes."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

import numpy as np

from tests.users.corpus import use

X = np.array([0.4, -0.2, 0.9, 0.7, -0.5])
EDGES = np.array([(0, 1), (1, 2), (0, 3), (3, 4), (2, 4)])
PARENTS = np.array([-1, 0, 0, 1, 1, 3])


class Stack:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def push(self, x):
        self.items.append(x)

    def pop(self):
        return self.items.pop()


def stacks_of(x, n):
    return [Stack([]) for k in range(n) if x[k % 5] > -1.0]


@dataclass
class Account:
    total: float = 0.0
    entries: list = field(default_factory=list)

    def add(self, k, x):
        self.entries.append((k, x))
        self.total += x


@use((X, 3), wrt=(0,))
def entries_by_account(x, n):
    accounts = []
    for k in range(n):
        if x[k % 5] > -1.0:
            accounts.append(Account(x[k % 5]))
    for k in range(4 * n):
        accounts[(k * 7) % n].add(k, x[k % 5])
    return [a.total for a in accounts], [sum(y for _, y in a.entries) for a in accounts]


@use((X, 3), long=True)
def accounts_come_back(x, n):
    accounts = [Account(x[k % 5]) for k in range(n) if x[k % 5] > -1.0]
    for k in range(2 * n):
        accounts[k % len(accounts)].add(k, x[k % 5])
    return accounts


@use((X,), (X[:1],), wrt=(0,), long=True)
def accounts_by_sign(x):
    accounts = {}
    for k, v in enumerate(x):
        sign = "plus" if v > 0 else "minus"
        if sign not in accounts:
            accounts[sign] = Account(v)
        accounts[sign].add(k, v)
    return {sign: a.total for sign, a in accounts.items()}


@use((X, 4), wrt=(0,), long=True)
def every_change_of_a_list(x, n):
    stacks = stacks_of(x, n)
    for k in range(3 * n):
        s = stacks[k % len(stacks)]
        s.push(x[k % 5])
        if k % 3 == 2:
            s.items = [s.pop() * 2.0]
        if k % 5 == 4:
            s.items.sort()
        if k % 7 == 6:
            s.items += [1.0]
    first = stacks[0].items
    first.insert(0, 7.0)
    first.extend([1.0, 2.0])
    del first[1]
    first[0] = 5.0
    first.reverse()
    return [sum(s.items) for s in stacks], list(first), 5.0 in first, first[1:3], len(stacks[0])


@use((X, 3), wrt=(0,), long=True)
def lists_that_are_assigned(x, n):
    stacks = stacks_of(x, n)
    own = [1.0]
    stacks[0].items = own
    own.append(2.0)
    same = stacks[0].items
    same.append(x[0])
    alike = same is stacks[0].items, same is stacks[1].items, len(own)
    for s in stacks[1:]:
        s.items = [v for v in x if v > 0]
        s.push(1.0)
        s.items = [v * 2 for v in s.items if v > 0.5]
    return [sum(s.items) for s in stacks], alike


@use((X, 3), long=True)
def heaps_of_objects(x, n):
    queues = stacks_of(x, n)
    for k in range(4 * n):
        heapq.heappush(queues[(k * 7) % n].items, float(x[k % 5] * k))
    return [heapq.heappop(q.items) for q in queues], [len(q) for q in queues]


class Vertex:
    def __init__(self, number):
        self.number = number
        self.near = []
        self.seen = False

    def link(self, other):
        self.near.append(other)
        other.near.append(self)


@use((EDGES, 5), (EDGES[:2], 5))
def order_of_visits(edges, n):
    vertices = [Vertex(k) for k in range(n)]
    for k in range(len(edges)):
        vertices[edges[k, 0]].link(vertices[edges[k, 1]])
    order, waiting = [], [vertices[0]]
    while waiting:
        vertex = waiting.pop()
        if vertex.seen:
            continue
        vertex.seen = True
        order.append(vertex.number)
        for other in vertex.near:
            if not other.seen:
                waiting.append(other)
    return order, [len(v.near) for v in vertices]


class Person:
    def __init__(self, weight, parent=None):
        self.weight = weight
        self.parent = parent
        self.children = []


def weight_below(person):
    return person.weight + sum(weight_below(child) for child in person.children)


def height_of(person):
    return 1 + max([height_of(child) for child in person.children], default=0)


@use((PARENTS, X), wrt=(1,), long=True)
def family_tree(parents, x):
    people = []
    for k in range(len(parents)):
        if parents[k] < 0:
            people.append(Person(x[k % 5]))
        else:
            child = Person(x[k % 5], people[parents[k]])
            people[parents[k]].children.append(child)
            people.append(child)
    return weight_below(people[0]), height_of(people[0]), math.fsum(p.weight for p in people)


@dataclass(eq=False)
class Station:
    place: int
    lines: list = field(default_factory=list)
    stops: int = -1


@use((np.array([[0, 1], [2, 3], [1, 3], [0, 2], [4, 5]]), 6), (np.array([[0, 1], [0, 2]]), 3))
def stops_from_the_first(lines, n):
    """Breadth-first search: what is waited for is appended in a loop over a list of a node."""
    stations = [Station(i) for i in range(n)]
    for a, b in lines:
        stations[a].lines.append(stations[b])
        stations[b].lines.append(stations[a])
    waiting, stations[0].stops = [stations[0]], 0
    while waiting:
        here = waiting.pop(0)
        for there in here.lines:
            if there.stops < 0:
                there.stops = here.stops + 1
                waiting.append(there)
    return [station.stops for station in stations]


@use((X, 3))
def list_that_grows_while_it_is_gone_through(x, n):
    stacks = stacks_of(x, n)
    stacks[0].push(1.0)
    for v in stacks[0].items:
        if len(stacks[0]) < 4:
            stacks[0].push(v + x[0])
    return stacks[0].items


@use((X, 3))
def list_of_two_objects(x, n):
    stacks = stacks_of(x, n)
    stacks[1].items = stacks[0].items
    stacks[0].push(x[0])
    return stacks[1].items


class Gene(NamedTuple):
    source: int
    weight: float
    enabled: bool


class Genome:
    def __init__(self, genes):
        self.genes, self.fitness = genes, 0.0


@use((4,))
def named_tuples_in_lists_of_objects(n):
    found = [Genome([Gene(i, i * 0.5 + k, i > 0) for i in range(3)]) for k in range(n)]
    return [g.weight for genome in found for g in genome.genes if g.enabled]


@use((np.array([1.0, -2.0, 0.5]), 5, 3), long=True)
def genes_that_change(x, size, rounds):
    """Replaced ones stand beside those as they were."""
    found = [Genome([Gene(i, i * 0.5 + k, True) for i in range(3)]) for k in range(size)]
    for r in range(rounds):
        for genome in found:
            used = [g for g in genome.genes if g.enabled]
            genome.fitness = sum(g.weight * x[g.source] for g in used)
        found.sort(key=lambda genome: -genome.fitness)
        children = []
        for genome in found[: size // 2]:
            genes = [g._replace(weight=g.weight - 1.0) if g.weight > 1 else g for g in genome.genes]
            genes[r % 3] = genes[r % 3]._replace(enabled=False)
            genes.append(Gene(r % 3, 2.0, True))
            children.append(Genome(genes))
        found = found[: size - size // 2] + children
    return [genome.fitness for genome in found], [g.weight for g in found[-1].genes]


class Link(NamedTuple):
    number: float
    after: Optional[Link] = None  # noqa: UP045 -- read by the function


class Links:
    def __init__(self, links):
        self.links = links


@use((6,), (2,))
def replaced_nodes_beside_others(n):
    """They were tuples, and all numbers 0."""
    made = [Links([Link(float(i + k)) for i in range(3)]) for k in range(n)]
    changed = []
    for one in made:
        changed.append(Links([
            link._replace(number=link.number + 10.0) if link.number > 1 else link
            for link in one.links
        ]))
    return [link.number for one in changed for link in one.links]


class Page:
    """Keys in order, and the pages between them."""

    def __init__(self, leaf):
        self.leaf = leaf
        self.keys = []
        self.pages = []

    def split(self, i, t):
        """Part a page that is full, between two of this one."""
        old = self.pages[i]
        new = Page(old.leaf)
        new.keys, middle, old.keys = old.keys[t:], old.keys[t - 1], old.keys[: t - 1]
        if not old.leaf:
            new.pages, old.pages = old.pages[t:], old.pages[:t]
        self.keys.insert(i, middle)
        self.pages.insert(i + 1, new)

    def add(self, key, t):
        """Put a key into the page that it belongs to."""
        i = sum(k < key for k in self.keys)
        if self.leaf:
            self.keys.insert(i, key)
            return
        if len(self.pages[i].keys) == 2 * t - 1:
            self.split(i, t)
            i += key > self.keys[i]
        self.pages[i].add(key, t)


class Index:
    """A B-tree."""

    def __init__(self, t):
        self.t = t
        self.root = Page(True)

    def insert(self, key):
        """Put a key into it; a root that is full is parted first."""
        root = self.root
        if len(root.keys) == 2 * self.t - 1:
            above = Page(False)
            above.pages.append(root)
            self.root = above
            above.split(0, self.t)
            root = above
        root.add(key, self.t)


@use(([37 * k % 101 for k in range(40)], 2), ([], 2))
def pages_of_a_b_tree(keys, t):
    index, depth = Index(t), 0
    for key in keys:
        index.insert(key)
    page = index.root
    while not page.leaf:
        page = page.pages[0]
        depth += 1
    return depth, page.keys
