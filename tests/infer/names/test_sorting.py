"""`sorted` and `list.sort`: known ranks, computed ones, strings beside numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pyrelay
from pyrelay import errors


def by_known_ranks(x):
    pairs = [(2, "b", x), (1, "z", x + 1), (1, "y", x + 2)]
    pairs.sort(key=lambda p: p[:2])
    return pairs, sorted(pairs, key=lambda p: p[1], reverse=True), sorted("hello")


def by_computed_ranks(x, y):
    pairs = [("b", x), ("a", y), ("c", x)]
    return (
        sorted(pairs, key=lambda p: (p[1], p[0])), sorted(pairs, key=lambda p: -p[1]),
        sorted(pairs, key=lambda p: p[1], reverse=True), sorted([x, y, x - y]),
    )


@pytest.mark.parametrize("values", [(2.0, 1.0), (1.0, 2.0), (1.0, 1.0)])
def test_items_are_sorted_as_in_python(values):
    x, y = values
    assert pyrelay.jit(by_known_ranks)(x) == by_known_ranks(x)
    assert pyrelay.jit(by_computed_ranks)(x, y) == by_computed_ranks(x, y)


def test_a_key_is_called_once_for_each_item(capsys):
    def heard(x):
        def rank(item):
            print("rank", item)
            return -item

        return sorted([1, 3, 2], key=rank), sorted([x, 3.0], key=rank)

    expected = heard(2.0), capsys.readouterr().out
    assert (pyrelay.jit(heard)(2.0), capsys.readouterr().out) == expected


def test_ranks_that_have_no_order_are_an_error():
    with pytest.raises(errors.TypeMismatchError, match="'<' not supported"):
        pyrelay.jit(lambda: sorted([1, "a"]))()


def of_a_list(x):
    return sorted([v for v in x if v != 9.0])


def by_first(x):
    pairs = [(k % 3, v) for k, v in enumerate(x)]
    pairs.sort(reverse=True)
    return [k for k, _ in pairs]


def by_place(x):
    return [v for _, v in sorted(enumerate(x), reverse=True)]


def test_what_has_no_order_is_not_sorted():
    """Python's answer depends on which items it happens to compare."""
    x = np.array([1.0, 2.0, 9.0, math.nan])
    for function in (of_a_list, by_first):
        with pytest.raises(NotImplementedError, match="NaN"):
            pyrelay.jit(function)(x)
        assert pyrelay.jit(function)(x[:3]) == function(x[:3])
    np.testing.assert_array_equal(pyrelay.jit(by_place)(x), by_place(x))


def greatest_by_a_key_that_notes(x, y):
    met = []

    def size(v):
        met.append(v)
        return v * v

    return max(x, y, key=size), min([y, x, 3.0], key=size), met


def test_keys_are_computed_once_for_each_item_in_their_order():
    expected = greatest_by_a_key_that_notes(1.0, -2.0)
    assert pyrelay.jit(greatest_by_a_key_that_notes)(1.0, -2.0) == expected


def lists_in_order(words: list[str]) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for w in words:
        found.setdefault(w[0], []).append(w)
    return sorted(sorted(own) for own in found.values())


def test_lists_of_texts_are_compared_for_any_texts() -> None:
    compiled = pyrelay.jit(lists_in_order)
    for turn in range(3):
        words = ["abcdef"[k % (3 + turn)] * (1 + k % 4) for k in range(20 + turn)]
        assert compiled(words) == lists_in_order(words)
    assert compiled.cache_info().compilations == 1
