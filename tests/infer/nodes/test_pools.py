"""Nodes back in Python: many tuples are made column by column, as they are one by one."""

from __future__ import annotations

from typing import Any

import pytest

import pyrelay
from pyrelay.infer.nodes.pools import Unpacker


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
