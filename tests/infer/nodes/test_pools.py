"""Nodes back in Python: many of them are made or found column by column, as they are one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import pyrelay
from pyrelay.infer.nodes.pools import Packed, Unpacker


def signs_and_words(text: str) -> Any:
    found = []
    for i in range(len(text)):
        if text[i].isalpha():
            found.append(("word", text[:i], i))
        else:
            found.append(("sign", text[i], i))
    return found


def test_tuples_of_texts_are_made_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one: list[Any] = []
    make = Unpacker.__call__

    def counted(self: Unpacker, root: Any) -> Any:
        one_by_one.append(root)
        return make(self, root)

    monkeypatch.setattr(Unpacker, "__call__", counted)
    text = "ab+(c)d" * 20
    assert pyrelay.jit(signs_and_words)(text) == signs_and_words(text)
    assert one_by_one == []


def large_ones(rows: list[dict[str, Any]]) -> Any:
    return [row for row in rows if row["size"] > 2.0]


def test_the_callers_nodes_are_found_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"size": 0.5 * k, "name": "ab"[k % 2]} for k in range(40)]
    compiled = pyrelay.jit(large_ones)
    compiled(rows)
    one_by_one: list[Any] = []
    monkeypatch.setattr(Packed, "object_at", lambda self, place: one_by_one.append(place))
    found = compiled(rows)
    assert len(found) == 35
    assert all(a is b for a, b in zip(found, rows[5:], strict=True))
    assert one_by_one == []


class Plain:
    def __init__(self, x: float, n: int) -> None:
        self.x, self.n = x, n


class Counting:
    def __init__(self, x: float, n: int) -> None:
        self.__dict__.update(x=x, n=n, asked=[])

    def __setattr__(self, name: str, value: Any) -> None:
        self.asked.append(name)
        self.__dict__[name] = value


@dataclass(slots=True)
class Slotted:
    x: float
    n: int


class Doubling:
    """A field of Python's, stored under another name."""

    def __init__(self, x: float, n: int) -> None:
        self._x, self.n = x, n

    @property
    def x(self) -> float:
        return self._x

    @x.setter
    def x(self, value: float) -> None:
        self._x = 2.0 * value


def moved(points: list[Any]) -> Any:
    for p in points:
        if p.n % 3:
            p.x += 1.0
            p.n += 10
    return len(points)


@pytest.mark.parametrize("cls", [Plain, Counting, Slotted, Doubling])
def test_the_callers_nodes_have_their_new_fields(cls: Any) -> None:
    compiled = pyrelay.jit(moved)
    for count in (40, 40, 70):
        one, other = ([cls(0.5 * k, k) for k in range(count)] for _ in range(2))
        assert compiled(one) == moved(other)
        assert [(p.x, p.n) for p in one] == [(p.x, p.n) for p in other]
        assert all(type(p.x) is float and type(p.n) is int for p in one)


def test_all_nodes_have_a_new_field() -> None:
    def shifted(points: list[Any]) -> Any:
        for p in points:
            p.x = p.x * 2.0 + 1.0

    points = [Plain(0.5 * k, k) for k in range(100)]
    for _ in range(2):
        pyrelay.jit(shifted)(points)
    assert [p.x for p in points] == [4.0 * (0.5 * k) + 3.0 for k in range(100)]
