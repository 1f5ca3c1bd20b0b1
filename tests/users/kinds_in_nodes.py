"""Fields of nodes, and results of recursion, that are ints in one place and floats in another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.users.corpus import use

X = np.array([1.0, 3.0, 2.0])


class Link:
    def __init__(self, value, after=None):
        self.value = value
        self.after = after

    def __eq__(self, other):
        return type(self.value) is type(other.value) and vars(self) == vars(other)


def chain(*values):
    head = None
    for value in reversed(values):
        head = Link(value, head)
    return head


MIXED = chain(1, 2.5, True, 4)


@use((MIXED,), (chain(1, 2),), (chain(1.5, np.float64(2.0)),), (chain(None, 3, 0.5),))
def values_of_a_chain(head):
    found, text = [], ""
    while head is not None:
        found.append(head.value)
        text += f"{head.value} "
        head = head.after
    return found, text


@use((3,), (0,))
def chain_of_what_is_met(n):
    head = None
    for k in range(n):
        head = Link(k * 0.5, Link(k, head))
    return head


@use((chain(1, 2, 3), 1), (chain(1, 2, 3), 0))
def halves_in_place_of_ints(head, odd):
    here = head
    while here is not None:
        if here.value % 2 == odd:
            here.value = here.value / 2
        here = here.after
    head.after.value, head.value = head.value, head.after.value
    return head.value


@use((chain(1.5, 2, 0.5),), (chain(1.5, 2.0),), wrt=(0,))
def squares_of_a_chain(head):
    total = 0
    while head is not None:
        total += head.value * head.value
        head = head.after
    return total


@use((chain(1, 2),), (MIXED,))
def among_the_callers_nodes(head):
    def insert(node, value):
        if node is None or value <= node.value:
            return Link(value, node)
        node.after = insert(node.after, value)
        return node

    return insert(insert(head, 1.5), 7)


@use((X, 2.5), (X, 9.0), wrt=(0,), long=True)
def objects_that_count_or_measure(x, limit):
    found = []
    for v in x:
        if v < limit:
            found.append(Link(float(v)))
        else:
            found.append(Link(1))
    return [link.value for link in found], sum(link.value * link.value for link in found)


@dataclass
class Term:
    op: str
    value: Any = 0
    parts: list[Term] = field(default_factory=list)


def quotient(a, b):
    return Term("/", 0, [Term("n", a), Term("+", 0, [Term("n", b), Term("n", 1)])])


def evaluated(term):
    if term.op == "n":
        return term.value
    left, right = evaluated(term.parts[0]), evaluated(term.parts[1])
    return left + right if term.op == "+" else left / right


@use((quotient(4, 1),), (quotient(4, 1).parts[1],), (quotient(4, 0.5).parts[1],), long=True)
def value_of_a_term(term):
    return evaluated(term), str(evaluated(term))


def power(x, n):
    if n == 0:
        return 1
    if n < 0:
        return 1 / power(x, -n)
    half = power(x, n // 2)
    return half * half * (x if n % 2 else 1)


@use((2, 5), (2, -2), (2.5, 0), (2.5, 3), long=True)
def power_of_any_kind(x, n):
    return power(x, n)


@use((X, 2.0), (X, 0.0))
def sum_until_a_limit(x, limit):
    def go(i, total):
        if i == len(x) or total >= limit:
            return total
        return go(i + 1, total + x[i])

    return go(0, 0)
