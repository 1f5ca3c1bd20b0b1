"""What a call leaves shared: one object in two places stays one object, a view stays a view.

Each program is run by Python and compiled, with arguments of its own. Among the arrays, lists,
dicts and objects that arguments and result then hold, the same pairs have to be one, or share
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


class Box:
    def __init__(self, a: Any = None) -> None:
        self.a = a
        self.b: Any = None


def held(value: Any, path: str, found: dict[str, Any], inside: tuple[int, ...] = ()) -> None:
    """The mutable objects in a value, by where they are."""
    if isinstance(value, (np.ndarray, list, dict, Box, Linked)):
        if id(value) in inside:
            return
        found[path] = value
        inside = (*inside, id(value))
    if isinstance(value, (Box, Linked)):
        value = vars(value)
    if isinstance(value, dict):
        for key, item in value.items():
            held(item, f"{path}.{key}", found, inside)
    elif isinstance(value, (list, tuple)):
        for k, item in enumerate(value):
            held(item, f"{path}[{k}]", found, inside)


def shared(args: Any, result: Any) -> set[tuple[str, str]]:
    """The pairs of places that hold one object, or arrays that share memory."""
    found: dict[str, Any] = {}
    held(args, "args", found)
    held(result, "result", found)
    pairs = set()
    for one, x in found.items():
        for other, y in found.items():
            arrays = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
            if one < other and (x is y or (arrays and np.shares_memory(x, y))):
                pairs.add((one, other))
    return pairs


def same(got: Any, wanted: Any) -> None:
    """Equal content, of the same classes."""
    assert type(got) is type(wanted)
    if isinstance(wanted, np.ndarray):
        np.testing.assert_array_equal(got, wanted)
    elif isinstance(wanted, (Box, Linked)):
        same(vars(got), vars(wanted))
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for key, item in wanted.items():
            same(got[key], item)
    elif isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            same(one, other)
    else:
        assert got == wanted


def list_stored_and_returned(o):
    items = [1.0, 2.0]
    o.a = items
    items.append(3.0)
    return items


def list_that_grows_stored_twice(o, n):
    items = []
    for i in range(n):
        items.append(i * 2.0)
    o.a, o.b = items, (items, n)
    return items


def dict_stored_and_returned(o, n):
    table = {}
    for i in range(n):
        table[i] = i * 2.0
    o.a = table
    table[7] = 3.0
    return table


def list_in_a_dict_of_the_callers(d, n):
    items = [n]
    d["a"], d["b"] = items, (items, items)
    return items, d


def parts_of_what_is_stored(o, n):
    d = {"x": [1.0, 2.0], "y": (n, [n])}
    o.a, o.b = d, d["x"]
    d["x"].append(3.0)
    return d, o.b


def list_stored_before_a_raise(o, n):
    items = []
    o.a = items
    for k in range(n):
        items.append(k * 1.0)
        if k > 5:
            raise ValueError(k)
    return items


def chosen_attribute(o, n):
    items = [1.0 * n]
    if n > 2:
        o.a = items
    else:
        o.b = items
    items.append(2.0)
    return items


def view_behind_an_index(o, n):
    v = np.zeros(n)
    o.a, o.b = v, v[1:]
    v[2] = 3
    return v


def view_stored_in_a_loop(o, n):
    for i in range(n):
        o.b = o.a[i:]
        o.b[0] += 10
    return o.b


def list_of_an_object_stored_in_another(o, n):
    p = Box(n)
    o.a = p
    p.b = [n]
    o.b = p.b
    return p


def list_chosen_by_a_branch(x, n):
    items = [x]
    chosen = items if n > 0 else [x, x]
    return chosen, items, chosen


def list_chosen_inside_of_a_list(x, n):
    items = [x]
    chosen = items if n > 0 else [x, x]
    outer = [chosen]
    return outer, items


def dict_chosen_by_a_branch(x, n):
    table = {1: x}
    chosen = table if n > 0 else {2: x}
    return chosen, table


def object_chosen_by_a_branch(x, n):
    box = Box([x])
    chosen = box
    if n <= 0:
        chosen = Box([x + 1])
    return chosen, box, chosen.a


def best_of_objects(x, n):
    boxes = [Box(x + k) for k in range(3)]
    best = boxes[0]
    for box in boxes:
        if box.a > best.a and n > 0:
            best = box
    return boxes, best


def list_kept_by_a_loop(x, n):
    items = [x]
    kept = items
    for k in range(n):
        kept = [x, k + 0.0]
    return kept, items


def arguments_list_chosen_by_a_branch(given, n):
    return given if n > 0 else [1.0]


def one_of_two_arguments(one, other, n):
    return {"chosen": one if n > 0 else other, "one": one}


def list_sorted_on_a_branch(given, n):
    if n > 0:
        given = sorted(given)
    given.append(n)
    return given


def longest_of_lists(n):
    rows = []
    for k in range(n):
        row = [k] * (k % 3)
        rows.append(row)
    best = rows[0]
    for each in rows:
        if len(each) > len(best):
            best = each
    return row, rows, best


def list_put_into_a_tuple_of_a_list(n):
    rows, last = [], [0]
    for k in range(n):
        rows.append((k, [k]))
    rows.append((n, last))
    return last, rows


class Linked:
    def __init__(self, a: Any, following: Any = None) -> None:
        self.a = a
        self.items: list[Any] = []
        self.following = following


def list_of_a_node(n):
    node = Linked(1, Linked(2))
    mine = node.following.items
    for k in range(n):
        mine.append(k)
    return Box([mine, node, mine, node.items])


def arguments_list_in_a_node(given, n):
    node = Linked(1, Linked(2))
    node.following.items = given
    for k in range(n):
        given.append(k)
    return Box(node)


PROGRAMS: list[tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = [
    (list_stored_and_returned, lambda: (Box(),)),
    (list_that_grows_stored_twice, lambda: (Box(), 3)),
    (dict_stored_and_returned, lambda: (Box(), 3)),
    (list_in_a_dict_of_the_callers, lambda: ({}, 3)),
    (parts_of_what_is_stored, lambda: (Box(), 3)),
    (list_stored_before_a_raise, lambda: (Box(), 3)),
    (list_stored_before_a_raise, lambda: (Box(), 9)),
    (chosen_attribute, lambda: (Box(), 3)),
    (view_behind_an_index, lambda: (Box(), 5)),
    (view_stored_in_a_loop, lambda: (Box(np.arange(4.0)), 3)),
    (list_chosen_by_a_branch, lambda: (2.5, 1)),
    (list_chosen_by_a_branch, lambda: (2.5, 0)),
    (list_chosen_inside_of_a_list, lambda: (2.5, 1)),
    (dict_chosen_by_a_branch, lambda: (2.5, 1)),
    (object_chosen_by_a_branch, lambda: (2.5, 1)),
    (object_chosen_by_a_branch, lambda: (2.5, 0)),
    (best_of_objects, lambda: (2.5, 1)),
    (best_of_objects, lambda: (2.5, 0)),
    (list_kept_by_a_loop, lambda: (2.5, 0)),
    (list_kept_by_a_loop, lambda: (2.5, 2)),
    (arguments_list_chosen_by_a_branch, lambda: ([2.0, 3.0], 1)),
    (arguments_list_chosen_by_a_branch, lambda: ([2.0, 3.0], 0)),
    (list_sorted_on_a_branch, lambda: ([3, 2], 1)),
    (list_sorted_on_a_branch, lambda: ([3, 2], 0)),
    (longest_of_lists, lambda: (5,)),
    (list_put_into_a_tuple_of_a_list, lambda: (5,)),
    (list_of_a_node, lambda: (3,)),
    (arguments_list_in_a_node, lambda: ([1, 2], 3)),
    (one_of_two_arguments, lambda: ([2.0], [3.0, 4.0], 1)),
    (one_of_two_arguments, lambda: (Box(2.0), Box(3.0), 0)),
]  # fmt: skip


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return function(*args)
    except ValueError as error:
        return error.args


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_what_is_shared_stays_shared(
    function: Callable[..., Any], args: Callable[[], tuple[Any, ...]]
) -> None:
    mine, theirs = args(), args()
    got, wanted = outcome(pyrelay.jit(function), mine), outcome(function, theirs)
    same((mine, got), (theirs, wanted))
    assert shared(mine, got) == shared(theirs, wanted)


def test_a_list_of_an_object_is_stored_in_another_one() -> None:
    """Once objects of a class hold each other, they are nodes: their lists are tables."""
    box = Box()
    made = pyrelay.jit(list_of_an_object_stored_in_another)(box, 3)
    assert (box.a is made, made.a, made.b, box.b) == (True, 3, [3], [3])
