"""Classes of the user's that leave most of their methods to Python: collections.abc."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

import numpy as np

from tests.users.corpus import use

X = np.linspace(-1.0, 2.0, 7)


class Names(Mapping):
    def __init__(self, content):
        self.content = content

    def __getitem__(self, name):
        return self.content[name]

    def __iter__(self):
        return iter(self.content)

    def __len__(self):
        return len(self.content)


class Defaults(MutableMapping):
    """A dict that counts what was set."""

    def __init__(self):
        self.content, self.changes = {}, 0

    def __getitem__(self, name):
        return self.content[name]

    def __setitem__(self, name, value):
        self.changes += 1
        self.content[name] = value

    def __delitem__(self, name):
        del self.content[name]

    def __iter__(self):
        return iter(self.content)

    def __len__(self):
        return len(self.content)


class Path(Sequence):
    def __init__(self, points):
        self.points = points

    def __getitem__(self, k):
        return self.points[k]

    def __len__(self):
        return len(self.points)


class Ring:
    """Gone through by index: it has no __iter__."""

    def __init__(self, x, rounds):
        self.x, self.rounds = x, rounds

    def __getitem__(self, k):
        if k >= self.rounds * len(self.x):
            raise IndexError(k)
        return self.x[k % len(self.x)]


@use((X, 2.0), wrt=(0, 1))
def mapping_asked_for_what_it_may_lack(x, c):
    names = Names({"w": x, "b": c})
    first = np.sum(names["w"]) * names.get("b", 0.0)
    return first + names.get("absent", 1.0) + ("w" in names) + len(names)


@use((X, 2.0))
def views_of_a_mapping(x, c):
    names = Names({"w": c, "b": 2 * c})
    return sum(v for _, v in names.items()), list(names), list(names.values()), list(names.keys())


@use((X, 2.0))
def mapping_that_is_written(x, c):
    d = Defaults()
    d["a"] = c
    d.setdefault("b", c * c)
    d.setdefault("a", 0.0)
    return d["a"] + d["b"], d.changes, len(d), list(d)


@use(([1.0, 2.0, 3.0], 2.0), ([1.0, 3.0], 2.0))
def sequence_with_methods_of_python(points, c):
    path = Path([*points, c])
    length = sum(abs(path[k + 1] - v) for k, v in enumerate(path[:-1]))
    return length, path.index(c), path.count(c), c in path, list(path), list(reversed(path))


@use((X, 3), (X[:0], 2), (X, 0), wrt=(0,))
def gone_through_by_index(x, rounds):
    total = 0.0
    for k, v in enumerate(Ring(x, rounds)):
        total += (k + 1) * v * v
    return total
