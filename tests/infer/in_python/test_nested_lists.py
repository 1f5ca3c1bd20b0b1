"""Lists that are nodes with a list in each do what lists do."""

from __future__ import annotations

import operator
import random
from typing import Any

import pytest

import pyrelay
from pyrelay.infer.in_python.nested_lists import NestedList


def changed(items: Any, rng: random.Random) -> list[Any]:
    """What a list gives while it is changed."""
    found: list[Any] = []
    for _ in range(60):
        value = rng.randrange(5)
        match rng.randrange(9):
            case 0:
                items.append(value)
            case 1:
                items.extend([value, value + 1])
            case 2:
                items.insert(value, value)
            case 3 if len(items) > 0:
                found.append(items.pop())
            case 4 if value in items:
                items.remove(value)
                found.append(items.count(value))
            case 5 if value in items:
                found.append(items.index(value))
            case 6 if len(items) > 1:
                items[1] = value
                del items[0]
            case 7:
                items.reverse()
                items += [7]
            case 8:
                found.append((list(items), items[1:], len(items), list(reversed(items))))
    found += [operator.add(items, [1]), operator.add([1], items), items * 2, items.copy()]
    found.append(items == [*items])
    for other in ([1, 2], [7], [*items], [*items, 0]):
        found.append((items < other, items <= other, items > other, items >= other))
    items.sort(reverse=True)
    found.append([*items])
    items.clear()
    return [*found, len(items)]


@pytest.mark.parametrize("seed", range(4))
def test_methods(seed: int) -> None:
    assert changed(NestedList([1, 2]), random.Random(seed)) == (
        changed([1, 2], random.Random(seed))
    )


def depth(text: str) -> int:
    def read(i: int) -> Any:
        out = []
        while text[i] == "(":
            inner, i = read(i + 1)
            out.append(inner)
        return out, i + 1

    def deepest(v: Any) -> int:
        found = 0
        for x in v:
            found = max(found, deepest(x))
        return found + 1

    return deepest(read(0)[0])


def test_lists_are_nodes_where_they_nest_without_end() -> None:
    text = "(()(()))."
    assert pyrelay.jit(depth)(text) == depth(text) == 4


def test_lists_of_words_are_one_program_for_any_words() -> None:
    def by_length(text: str) -> dict[int, list[str]]:
        groups: dict[int, list[str]] = {}
        for word in text.split():
            groups.setdefault(len(word), []).append(word)
        return dict(sorted(groups.items()))

    compiled = pyrelay.jit(by_length)
    for text in ("the cat sat on it", "a dog", "all is well that ends well"):
        assert list(compiled(text).items()) == list(by_length(text).items())
    assert compiled.cache_info().compilations == 1
