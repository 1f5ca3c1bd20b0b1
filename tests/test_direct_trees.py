"""Trees, objects and dicts in lists as arguments: the short way packs them by native code."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest

import pyrelay


@dataclass
class Point:
    x: float
    y: float


@dataclass
class Node:
    value: int
    left: Node | None = None
    right: Node | None = None


def tree(low: int, high: int) -> Node | None:
    if low >= high:
        return None
    middle = (low + high) // 2
    return Node(middle, tree(low, middle), tree(middle + 1, high))


def centre(points):
    x = 0.0
    for p in points:
        x += p.x * p.y
    return x / len(points)


def moved(points, step):
    for p in points:
        p.x += step
    return points[0]


def total(rows):
    cost = 0.0
    for row in rows:
        cost += row["price"] * row["count"]
    return cost


def dearest(rows):
    return sorted(rows, key=lambda row: row["price"])[-1]


def summed(node):
    if node is None:
        return 0
    return node.value + summed(node.left) + summed(node.right)


def both(node, rows, scale):
    return summed(node) * scale + rows[0]["price"]


def named(people, orders):
    names = {person["id"]: person["name"] for person in people}
    found = []
    for order in orders:
        if order["of"] in names and order["price"] > 2.0:
            found.append((names[order["of"]], order["price"]))
    return found


def merged(rows):
    rows = sorted(rows, key=lambda row: row[0])
    out = [rows[0]]
    for row in rows[1:]:
        if row[0] <= out[-1][2]:
            out[-1][2] = max(out[-1][2], row[2])
        else:
            out.append(row)
    return out


def entered(people, orders):
    names = {person["id"]: person for person in people}
    out = []
    for order in orders:
        if order["of"] in names:
            person = names[order["of"]]
            out.append({"name": person["name"], "price": order["price"]})
    return out


def renamed(rows):
    for row in rows:
        row["name"] = "!" * (row["id"] % 30)
    return rows[1]["name"]


PEOPLE = [{"id": k, "name": f"name {'é' * k}"} for k in range(20)]
ORDERS = [{"of": 3 * k, "price": 0.5 * k} for k in range(20)]
POINTS = [Point(0.5 * k, 1.0) for k in range(20)]
ROWS = [{"price": 1.5 * k, "count": k} for k in range(20)]
SPANS = [[7 * k % 20, 0.5 * k, 7 * k % 20 + k % 4] for k in range(20)]


@pytest.mark.parametrize(("function", "first", "then"), [
    (centre, (POINTS,), (POINTS[1:],)),
    (moved, (POINTS, 1.0), (POINTS[3:], 2.0)),
    (total, (ROWS,), (ROWS[2:],)),
    (dearest, (ROWS,), (ROWS[:-1],)),
    (summed, (tree(0, 9),), (tree(2, 30),)),
    (both, (tree(0, 5), ROWS, 2), (tree(1, 5), ROWS[1:], 3)),
    (named, (PEOPLE, ORDERS), (PEOPLE[1:], ORDERS[2:])),
    (entered, (PEOPLE, ORDERS), (PEOPLE[1:], ORDERS[2:])),
    (merged, (SPANS,), (SPANS[3:],)),
    (renamed, (PEOPLE,), ([*PEOPLE[1:], {"id": 59, "name": ""}],)),
])  # fmt: skip
def test_objects_and_rows_take_the_short_way(function: Any, first: Any, then: Any) -> None:
    compiled = pyrelay.jit(function)
    compiled(*copy.deepcopy(first))
    assert compiled._short is not None
    compiled._dispatch = None
    ours, plain = copy.deepcopy(then), copy.deepcopy(then)
    got, wanted = compiled(*ours), function(*plain)
    assert (got, ours) == (wanted, plain)
    if function in (moved, dearest, merged):  # the caller's own
        first = got[0] if function is merged else got
        assert any(first is item for item in ours[0])


def test_objects_and_rows_that_do_not_fit_take_the_long_way() -> None:
    compiled = pyrelay.jit(total)
    compiled(ROWS)
    others = [
        [{"price": 1, "count": 2}] * 20, [*ROWS[:19], {"price": 1.0, "count": 2.0}],
        [{"count": 1, "price": 2.0} for _ in range(20)], ROWS[:2],
    ]  # fmt: skip
    for rows in others:
        assert compiled(rows) == total(rows)
    compiled = pyrelay.jit(centre)
    assert compiled(POINTS) == centre(POINTS)
    assert compiled([Point(1, 2)] * 20) == 2.0
    with pytest.raises(pyrelay.PyrelayError):
        compiled([*POINTS, None])


def test_a_row_that_is_found_elsewhere_takes_the_long_way() -> None:
    def costs(rows, other):
        return total(rows) + other["price"]

    compiled = pyrelay.jit(costs)
    for other in ({"price": 1.0, "count": 2}, {"price": 3.0, "count": 2}, ROWS[1]):
        assert compiled(ROWS, other) == costs(ROWS, other)
    assert compiled.cache_info()[1:3] == (2, 1)


def test_rows_of_another_kind_take_the_long_way() -> None:
    compiled = pyrelay.jit(named)
    assert compiled(PEOPLE, ORDERS) == named(PEOPLE, ORDERS)
    turned = [{"name": row["name"], "id": row["id"]} for row in PEOPLE]
    longer = [{**row, "more": 1} for row in PEOPLE]
    numbered = [{"id": row["id"], "name": 5} for row in PEOPLE]
    for people in (turned, longer, numbered, PEOPLE):
        assert compiled(people, ORDERS) == named(people, ORDERS)


def test_short_lists_of_other_lengths_take_the_long_way() -> None:
    def first(rows):
        low = rows[0]
        for row in rows:
            if row[0] < low[0]:
                low = row
        low[1] += 1.0
        return low

    compiled = pyrelay.jit(first)
    pairs, shared = [row[:2] for row in SPANS], SPANS[3:]
    for rows in (SPANS, pairs, SPANS[1:], [*shared, *shared], SPANS[:2]):
        ours, plain = copy.deepcopy((rows, rows))
        assert compiled(ours) == first(plain)
        assert ours == plain


def test_one_tree_given_twice_is_one_tree() -> None:
    def swapped(a, b):
        a.value += 1
        return b.value

    compiled = pyrelay.jit(swapped)
    one, other = tree(0, 3), tree(5, 9)
    for a, b in ((one, other), (one, one), (other, one)):
        plain = copy.deepcopy((a, b))
        assert compiled(a, b) == swapped(*plain)
        assert (a, b) == plain
