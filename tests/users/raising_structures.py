"""Programs that give a dict, an object or a list of the caller another structure before they raise.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from tests.users.corpus import use

X = np.array([1.0, 0.0, 2.0])


@dataclass
class Account:
    """What is kept of a customer."""

    balance: float = 0.0
    log: list = field(default_factory=list)
    stats: dict = field(default_factory=dict)

    def add(self, amount):
        """Add to the balance, which is changed before the amount is looked at."""
        self.balance += amount
        if amount < 0:
            raise ValueError(f"negative amount {amount}")
        self.log.append(amount)


@use((Account(), 1.0), (Account(), -1.0))
def keys_and_attributes_behind_a_raise(account, amount):
    account.stats["first"] = amount
    account.add(amount)
    account.stats["second"] = 2
    account.note = "fine"
    return account.balance


@use((Account(), 1.0), (Account(), -1.0), (Account(), -5.0))
def keys_set_only_to_raise(account, amount):
    account.stats["n"] = 1
    if amount < 0:
        account.stats["why"] = amount
        if amount < -2:
            account.stats["deep"] = True
            raise ValueError(f"{amount}")
        account.last = 2
        raise KeyError("k")
    account.stats["m"] = account.stats["n"] + 1
    account.count = len(account.stats)
    return account.stats


@use(({"a": 1.0}, 1.0), ({"a": 1.0}, -1.0))
def key_deleted_before_a_raise(d, v):
    del d["a"]
    if v < 0:
        raise ValueError("x")
    d["b"] = v
    return "a" in d, len(d), list(d), d.get("a", 7)


@use(([1.0], 1.0), ([1.0], -1.0), long=True)
def items_of_other_kinds_behind_a_raise(items, v):
    items.append("text")
    if v < 0:
        raise ValueError("x")
    items.append((1, 2.0))
    return items


@use(([1.0], {"k": 1}, 1.0), ([1.0], {"k": 1}, -1.0))
def new_dict_in_a_dict_of_the_caller(items, d, v):
    inner = {"p": v}
    d["inner"] = inner
    items.append(inner["p"])
    inner["q"] = 2
    if v < 0:
        raise ValueError("x")
    inner["r"] = 3
    d["again"] = inner
    return d


@use((Account(), X, 2), (Account(), X, 7))
def index_error_between_attributes(account, x, i):
    account.first = x[0]
    account.stats["x"] = x[i]
    account.second = 1
    account.log.append(account.first)
    return account.stats["x"] + account.second


@use(({"n": 0}, X, 5.0), ({"n": 0}, X, 1.5), long=True)
def key_set_to_raise_in_a_while(d, x, top):
    k = 0
    while True:
        if k == len(x):
            break
        d["n"] += 1
        if x[k] > top:
            d["at"] = k
            raise OverflowError(k)
        k += 1
    d["fine"] = True
    return k


@use((Account(), 3, 5), (Account(), 3, 1), (Account(), 0, 1), long=True)
def attribute_set_to_raise_in_nested_loops(account, n, stop):
    for i in range(n):
        for j in range(i + 1):
            account.balance += 1.0
            if i + j > stop:
                account.failed = (i, j)
                raise IndexError(f"{i} {j}")
    account.okay = True
    return account.balance


@use(([1.0, 2.0, 3.0],), ([4.0],))
def raised_in_the_first_round(b):
    for k in range(3):
        b[-1] = 5.0
        c = b[1:]
        raise ValueError(k)
    return c


@use(([1.0, 2.0, 3.0],))
def raised_in_the_first_round_of_what_is_caught(b):
    def changed():
        for k in range(3):
            b[-1] = 5.0
            c = b[1:]
            raise ValueError(k)
        return c

    try:
        return changed()
    except ValueError:
        return b[1:]


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return vars(self) == vars(other)


POINTS = [Point(1, 2), Point(3, 4), Point(5, 1)]


@use((POINTS, 1), (POINTS, 9))
def chosen_objects_changed_before_a_raise(points, least):
    kept = [p for p in points if p.x > least]
    for p in kept:
        p.y = 100
    raise ValueError(len(kept))


@use((POINTS,), ([Point(1, 2), Point(3, 0)],))
def object_changed_before_an_error(points):
    best = max(points, key=lambda p: p.y)
    best.y = points[-1].x - 3
    return [1 // p.y for p in points]


@use((POINTS,), long=True)
def attribute_set_before_another_lacks_it(points):
    for p in [p for p in points if p.x > 1]:
        p.z = 100
    return points[0].z


def chained(n):
    head = None
    for k in range(n):
        made = Point(k, head)
        head = made
    return head


@use((chained(4),))
def nodes_changed_before_an_error(node):
    while True:
        node.x = 6 // node.x
        node = node.y


@use((Counter("abca"),))
def counted_before_a_raise(counts):
    counts["b"] += 1
    raise ValueError(len(counts))


@use((defaultdict(int, a=1),), long=True)
def default_made_before_a_key_is_missing(d):
    d["b"] += 1
    del d["c"]
