"""Nodes back in Python: many of them are made or found column by column, as they are one by one."""

from __future__ import annotations

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
