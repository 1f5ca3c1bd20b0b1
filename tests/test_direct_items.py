"""Lists, dicts and texts of run-time length as arguments and results: the short way knows them."""

from __future__ import annotations

import copy
import heapq
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyrelay


class Step(NamedTuple):
    name: str
    at: int


def moves(n, source="left", target="right"):
    if n == 0:
        return []
    between = moves(n - 1, target, source)
    return [*between, (source, target, n), *between]


def brackets(n):
    found = []

    def longer(text, left, closing):
        if left == closing == 0:
            found.append(text)
        if left:
            longer(text + "(", left - 1, closing + 1)
        if closing:
            longer(text + ")", left, closing - 1)

    longer("", n, 0)
    return found


def suffixes(n):
    found = []
    for k in range(n):
        found.append(list(range(k, n)))
    return found


def shortest(edges, n):
    far = [float("inf")] * n
    far[0] = 0
    before = {}
    heap = [(0, 0)]
    while heap:
        d, u = heapq.heappop(heap)
        for v, w in edges[u]:
            if d + w < far[v]:
                far[v], before[v] = d + w, u
                heapq.heappush(heap, (d + w, v))
    return far, before


def named_steps(x):
    found = []
    for k in range(len(x)):
        if x[k] > 1:
            found.append(Step("a" if k % 2 else "b", k))
    return found


def parts(x):
    found = []
    for k in range(len(x)):
        if x[k] > 1:
            found.append(x[k:] * 2)
    return found


def in_two_places(n):
    found = []
    for k in range(n):
        found.append(k)
    return found, {"same": found}, n


def sometimes(n):
    found = []
    for k in range(n):
        if k % 3 == 2:
            return None
        found.append(k)
    return found


def sorted_in_place(xs):
    xs.sort()
    if xs[0] > 100:
        raise ValueError(f"{xs[0]} is too large")
    return xs


def visited(edges, start):
    seen, order = set(), []

    def visit(u):
        seen.add(u)
        order.append(u)
        for v in edges[u]:
            if v not in seen:
                visit(v)

    visit(start)
    return order


def grouped(pairs):
    found = defaultdict(list)
    for name, value in pairs:
        found[name].append(value)
    return found


def filled(rows, k):
    rows[k][0] = 7
    rows.append([k])
    return len(rows)


CASES = [
    (moves, [(3,), (0,), (2, "from", "to")]),
    (brackets, [(3,), (1,)]),
    (suffixes, [(4,), (0,)]),
    (shortest, [([[(1, 4), (2, 1)], [], [(1, 2)], []], 4)]),
    (named_steps, [(np.array([2.0, 1.0, 3.0, 5.0]),), (np.zeros(2),)]),
    (parts, [(np.array([2.0, 1.0, 3.0]),)]),
    (in_two_places, [(3,), (0,)]),
    (sometimes, [(2,), (3,)]),
    (sorted_in_place, [([5, 3, 4, 1, 2, 9],), ([7.5, 2.5],)]),
    (visited, [({0: [2, 1], 1: [3], 2: [3], 3: []}, 0), ({k: [] for k in range(20)}, 3)]),
    (grouped, [([(k % 3, k * 0.5) for k in range(9)],)]),
    (filled, [([[k] * k for k in range(1, 8)], 3), ([[1.0, 2.0], [3.0, 4.0]] * 1, 1)]),
]


def exact(value: Any) -> Any:
    """What tells a value from others that are equal: the classes of all in it."""
    match value:
        case dict():
            return type(value), [(exact(k), exact(v)) for k, v in value.items()]
        case list() | tuple():
            return type(value), [exact(v) for v in value]
        case np.ndarray():
            return value.dtype, value.tolist()
    return type(value), value


@pytest.mark.parametrize(("function", "several"), CASES)
def test_what_has_a_run_time_length_takes_the_short_way(
    function: Any, several: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: Any) -> str:
        raise AssertionError("a result is put together by the long way")

    monkeypatch.setattr("pyrelay.direct_results._assembled", refused)
    for args in several:
        compiled = pyrelay.jit(function)
        compiled(*copy.deepcopy(args))
        compiled._dispatch = None
        ours, own = copy.deepcopy(args), copy.deepcopy(args)
        assert exact(compiled(*ours)) == exact(function(*own))
        assert exact(ours) == exact(own)


def test_one_object_in_two_places_is_one_on_the_short_way() -> None:
    compiled = pyrelay.jit(in_two_places)
    for _ in range(2):
        first, second, _ = compiled(3)
        assert first is second["same"]


def test_an_error_behind_changes_of_an_argument_is_raised_on_the_short_way() -> None:
    compiled = pyrelay.jit(sorted_in_place)
    compiled([5, 3, 4, 1, 2, 9])
    compiled._dispatch = None
    given = [105, 103, 104, 101, 102, 109]
    with pytest.raises(ValueError, match="101 is too large"):
        compiled(given)
    assert given == sorted(given)


def test_one_list_in_two_places_of_lists_of_lists_is_not_taken_for_two() -> None:
    def put(rows, others):
        rows[0][0] = 9
        return others[0][0], len(rows), len(others)

    compiled = pyrelay.jit(put)

    def apart() -> tuple[Any, Any]:
        return [[k, k] for k in range(6)], [[k, k] for k in range(7)]

    def shared() -> tuple[Any, Any]:
        rows, others = apart()
        return rows, [rows[0], *others[1:]]

    for made in (apart, apart, shared, apart):
        ours, own = made(), made()
        assert compiled(*ours) == put(*own)
        assert ours == own
