"""What keys(), values() and items() give: they show what their dict has now, and are sets."""

from __future__ import annotations

import pytest

import pyrelay


def shows_what_is_there_now(x):
    d = {"a": x, "b": 2}
    keys, values, items = d.keys(), d.values(), d.items()
    d["c"] = x + 1
    total = 0
    for _ in range(2):
        d["b"] += 1
        total += sum(values)
    return list(keys), len(values), list(items), total, "c" in keys, ("b", 4) in items


def are_compared_as_sets(x):
    d, e = {"a": x, "b": 2}, {"b": 2, "a": x}
    keys = d.keys()
    same = keys == e.keys(), keys == {"b", "a"}, {"a"} == keys, keys != {"a"}, keys == ["a", "b"]
    orders = keys <= {"a", "b", "c"}, {"a"} < keys, keys >= e.keys(), keys.isdisjoint(["c"])
    pairs = d.items() == e.items(), d.items() == {"a": x}.items(), d.values() == d.values()
    return same, orders, pairs, isinstance(keys, tuple)


def are_combined_as_sets(x):
    d, e = {"a": x, "b": 2}, {"b": x, "c": 1}
    both = {k: d[k] + e[k] for k in d.keys() & e.keys()}
    return both, d.keys() | {"z"}, {"a", "q"} & d.keys(), d.keys() - ["a"], d.keys() ^ e.keys()


@pytest.mark.parametrize(
    "function", [shows_what_is_there_now, are_compared_as_sets, are_combined_as_sets]
)
def test_views_are_those_of_python(function):
    assert pyrelay.jit(function)(3) == function(3)


def test_what_is_no_set_is_not_combined_with_views():
    with pytest.raises(pyrelay.TypeMismatchError, match="'int' object is not iterable"):
        pyrelay.jit(lambda x: {"a": x}.keys() & 3)(1)
