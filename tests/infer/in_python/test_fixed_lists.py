"""Lists of a few items that are items of others: nodes with a field for each item."""

from __future__ import annotations

import copy
import heapq
import math
from typing import Any

import pytest

import pyrelay
from pyrelay import config
from pyrelay.infer.in_python.fixed_lists import fixed_class, is_fixed


def made(*items: Any) -> Any:
    record = fixed_class(len(items), 0)()
    for k, item in enumerate(items):
        setattr(record, f"_{k}", item)
    return record


def test_they_are_as_lists_are() -> None:
    record, plain = made(3, "b", 2.5), [3, "b", 2.5]
    assert is_fixed(type(record))
    assert [*record] == plain
    assert [*reversed(record)] == plain[::-1]
    assert (len(record), record[-1], record[1:], "b" in record) == (3, 2.5, ["b", 2.5], True)
    assert (record.index("b"), record.count(3), record.copy()) == (1, 1, plain)
    assert ([*record, 1], [1, *record], record * 2) == ([*plain, 1], [1, *plain], plain * 2)
    assert record < [3, "c"] <= [3, "c"]
    assert record >= [3]
    assert record > [2, "z"]
    record[0] = 7
    assert record[0] == 7
    with pytest.raises(IndexError):
        record[3]


def tasks(pairs: list[tuple[str, int]]) -> list[str]:
    heap: list[list[Any]] = []
    entries: dict[str, list[Any]] = {}
    for name, priority in pairs:
        if name in entries:
            entries[name][-1] = "<removed>"
        entry = [priority, len(heap), name]
        entries[name] = entry
        heapq.heappush(heap, entry)
    found = []
    while heap:
        _, _, name = heapq.heappop(heap)
        if name != "<removed>":
            found.append(name)
    return found


@pytest.mark.slow
def test_records_on_a_heap_are_found_by_name_too() -> None:
    pairs = [("a", 3), ("b", 1), ("c", 2), ("a", 0)]
    assert pyrelay.jit(tasks)(pairs) == tasks(pairs)


def merged(spans: list[list[int]]) -> list[list[int]]:
    spans.sort(key=lambda span: span[0])
    found = [spans[0]]
    for span in spans[1:]:
        if span[0] <= found[-1][1]:
            found[-1][1] = max(found[-1][1], span[1])
        else:
            found.append(span)
    return found


@pytest.mark.parametrize("count", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_lists_in_an_argument_are_the_callers(count: int) -> None:
    """They would be in two lists at once, and a change of one has to show in the other."""
    ours: list[list[int]] = [[k * 7 % 31, k * 7 % 31 + 1 + k % 4] for k in range(count)]
    theirs = copy.deepcopy(ours)
    first = min(ours)
    with config.override(interpret=True):
        found = pyrelay.jit(merged)(ours)
    assert found == merged(theirs)
    assert ours == theirs
    assert found[0] is first


def rows(n: int) -> Any:
    found = []
    for i in range(n):
        found.append([i, 0.5 * i, "odd" if i % 2 else "even"])
    best = max(found, key=lambda row: row[1])
    best[0] = -1
    for row in found:
        for k in range(2):
            row[k] += 1
    return found, best, [row[2] for row in found], found[0] < found[1]


def test_numbers_and_texts_may_stand_in_one_list() -> None:
    with config.override(interpret=True):
        assert pyrelay.jit(rows)(4) == rows(4)


def distances(edges: list[tuple[int, int, int]], count: int) -> list[Any]:
    around: list[list[list[int]]] = [[] for _ in range(count)]
    for u, v, w in edges:
        around[u].append([v, w])
    found = [math.inf] * count
    found[0] = 0
    heap: list[list[Any]] = [[0, 0]]
    while heap:
        so_far, u = heapq.heappop(heap)
        for v, w in around[u]:
            if so_far + w < found[v]:
                found[v] = so_far + w
                heapq.heappush(heap, [found[v], v])
    return found


def test_lists_that_never_meet_have_items_of_their_own_types() -> None:
    edges = [(0, 1, 4), (0, 2, 1), (2, 1, 2), (1, 3, 1)]
    with config.override(interpret=True):
        assert pyrelay.jit(distances)(edges, 5) == distances(edges, 5)


def leftmost(values: list[int]) -> tuple[int, list[int]]:
    root: list[Any] = [values[0], None, None]
    for value in values:
        node = root
        while node[1] is not None and value < node[0]:
            node = node[1]
        node[1] = [value, None, None]
    depth, found = 0, []
    while root is not None:
        found.append(root[0])
        root, depth = root[1], depth + 1
    return depth, found


@pytest.mark.parametrize("count", [9, 80])
def test_lists_that_are_put_into_each_other_are_nodes_of_a_tree(count: int) -> None:
    values = [(37 * k + 90) % 101 for k in range(count)]
    with config.override(interpret=True):
        assert pyrelay.jit(leftmost)(values) == leftmost(values)


def lengthened(spans: list[list[int]]) -> list[list[int]]:
    found = sorted(spans)
    found[0].append(1)
    return spans


def test_lists_of_other_lengths_are_the_same_in_another_order() -> None:
    given, own = ([[2, 3, 1], [1, 2], [5, 6], [9, 9], [8, 8]] for _ in range(2))
    with config.override(interpret=True):
        assert pyrelay.jit(lengthened)(given) == lengthened(own)
    assert given == own


def least_is_marked(spans: list[list[int]]) -> list[int]:
    found = sorted(spans, key=lambda span: span[0])
    found[0][0] = 99
    return [span[0] for span in spans]


def test_items_of_many_lists_in_another_order_are_no_copies() -> None:
    """What was written to one of more than 16 lists was lost."""
    given, own = ([[(7 * k) % 19, k] for k in range(17)] for _ in range(2))
    with config.override(interpret=True):
        assert pyrelay.jit(least_is_marked)(given) == least_is_marked(own)
    assert given == own


def inserted(values: list[int]) -> int:
    def insert(node: Any, value: int) -> Any:
        if node is None:
            return [value, None]
        node[1] = insert(node[1], value)
        return node

    root = None
    for value in values:
        root = insert(root, value)
    assert root is not None
    return root[1][1][0] - root[0]


def test_lists_that_a_function_returns_in_each_other() -> None:
    values = [5, 3, 8, 1, 4, 7, 9, 2]
    assert pyrelay.jit(inserted)(values) == inserted(values)
