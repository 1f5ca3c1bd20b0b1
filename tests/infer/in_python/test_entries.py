"""Dicts with a field for each key, in plain Python and as nodes of one program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer.in_python.entries import entries_class


def entries(given: dict[Any, Any]) -> Any:
    made = entries_class(*given)()
    for k, value in enumerate(given.values()):
        setattr(made, f"_{k}", value)
    return made


def test_they_are_read_and_written_as_dicts_are() -> None:
    made = entries({"a": 1, (1, 2): [2.0]})
    made["a"] += 1
    made.update({(1, 2): 3})
    assert (made["a"], made[1, 2], made.get("z", 5), "z" in made) == (2, 3, 5, False)
    assert list(made) == ["a", (1, 2)]
    assert list(made.values()) == [2, 3]
    assert list(made.items()) == [("a", 2), ((1, 2), 3)]
    assert ("a", 2) in made.items()
    with pytest.raises(KeyError, match="z"):
        made["z"]


def test_a_class_is_one_for_equal_keys_of_equal_types() -> None:
    assert entries_class("a", 1) is entries_class("a", 1)
    assert entries_class(1) is not entries_class(True)


def rows(x: Any) -> Any:
    found = []
    for i in range(len(x)):
        found.append({"i": i, "w": x[i]})
    return found


def test_rows_are_compiled_once_for_all_lengths() -> None:
    compiled = pyrelay.jit(rows)
    for count in (3, 30, 7):
        assert compiled(np.arange(count) * 0.5) == rows(np.arange(count) * 0.5)
    assert compiled.cache_info().compilations == 1
