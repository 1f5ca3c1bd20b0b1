"""Objects as keys of dicts and items of sets, by identity: visited nodes, memos, scores."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

X = np.array([0.5, -2.0, 1.5, 3.0])


class Link:
    def __init__(self, value, after):
        self.value = value
        self.after = after


def linked(x):
    first = None
    for v in x:
        first = Link(v, first)
    return first


@use((X, 1))
def links_until_one_was_seen(x, back):
    first = last = linked(x)
    while last.after is not None:
        last = last.after
    last.after = first.after if back else None
    seen, link, count = set(), first, 0
    while link is not None and link not in seen:
        seen.add(link)
        link, count = link.after, count + 1
    return count, len(seen), first in seen


@use((X,))
def set_of_links_gone_through(x):
    links, link = set(), linked(x)
    while link is not None:
        links.add(link)
        link = link.after
    total = sum([link.value for link in links])
    while links:
        total += links.pop().value
    return total, len(links)


@use((X,), wrt=(0,), long=True)
def sums_remembered_by_link(x):
    first, memo = linked(x), {}

    def total(link):
        if link is None:
            return 0.0
        if link in memo:
            return memo[link]
        found = link.value * link.value + total(link.after)
        memo[link] = found
        return found

    return total(first) + total(first.after)


class Term:
    """A number that knows what it was computed of, for derivatives in reverse order."""

    def __init__(self, value, parts=(), op=""):
        self.value = value
        self.slope = 0.0
        self.parts = parts
        self.op = op

    def __add__(self, other):
        other = other if isinstance(other, Term) else Term(other)
        return Term(self.value + other.value, (self, other), "+")

    def __mul__(self, other):
        other = other if isinstance(other, Term) else Term(other)
        return Term(self.value * other.value, (self, other), "*")

    def step(self):
        if self.op == "+":
            a, b = self.parts
            a.slope += self.slope
            b.slope += self.slope
        elif self.op == "*":
            a, b = self.parts
            a.slope += b.value * self.slope
            b.slope += a.value * self.slope

    def backward(self):
        order, seen = [], set()

        def visit(term):
            if term not in seen:
                seen.add(term)
                for part in term.parts:
                    visit(part)
                order.append(term)

        visit(self)
        self.slope = 1.0
        for term in reversed(order):
            term.step()


@use((0.5, -1.5, 2.0), wrt=(0, 1), long=True)
def slopes_by_a_programs_own_tape(a, b, c):
    x, y, z = Term(a), Term(b), Term(c)
    out = (x * y + z * x + 1.0) * z + y
    out.backward()
    return x.slope * y.slope + z.slope + out.value


class Point:
    def __init__(self, value):
        self.value = value


@use((X, 4), long=True)
def scores_of_points(x, n):
    points = [Point(x[k]) for k in range(n) if x[k] > -1.0]
    score, high = {}, set()
    for k, p in enumerate(points):
        score[p] = p.value * k
        if p.value > 1.0:
            high.add(p)
    total = 0.0
    for p, s in score.items():
        total += p.value * s
    return total, len(score), [p in high for p in points]


class Sum:
    """A term that keeps the set of those that it was made of."""

    def __init__(self, value, parts=()):
        self.value = value
        self.parts = set(parts)

    def __add__(self, other):
        return Sum(self.value + other.value, (self, other))


@use((1.0, 2.5), long=True)
def sets_of_objects_in_objects(a, b):
    x, y = Sum(a), Sum(b)
    z = x + y
    z = z + x
    met, order = set(), []

    def visit(term):
        if term not in met:
            met.add(term)
            for part in term.parts:
                visit(part)
            order.append(term)

    visit(z)
    return len(met), order[-1].value, x in z.parts, (x + x).parts == {x}


class Factor:
    def __init__(self, value, parts=()):
        self.value = value
        self.parts = parts
        self.slope = 0.0


@use((2.0, 3.0), wrt=(0, 1), long=True)
def terms_in_order_by_their_ids(a, b):
    x, y = Factor(a), Factor(b)
    product = Factor(a * b, (x, y))
    root = Factor(product.value + a, (product, x))
    order, seen = [], set()

    def visit(term):
        if id(term) not in seen:
            seen.add(id(term))
            for part in term.parts:
                visit(part)
            order.append(term)

    visit(root)
    slopes = {id(root): 1.0}
    slopes[id(x)] = slopes.get(id(x), 0.0) + b
    return [term.value for term in order], slopes[id(x)] * a, id(x) == id(y), len(seen)
