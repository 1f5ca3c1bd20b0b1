"""Texts of kernels: parts stand where their names stood."""

from __future__ import annotations

import pytest

from pyrelay.devices.routines.kernel_text import counted_on, filled


def test_a_name_alone_on_its_line_is_a_part_as_deep_as_it_stands() -> None:
    text = "if x:\n    {part}\n    y = {n}\n{nothing}\nend\n"
    names = {"part": "for k in range({n}):\n    {last}", "last": "z = {n}", "n": 3, "nothing": ""}
    assert filled(text, names) == (
        "if x:\n    for k in range(3):\n        z = 3\n    y = 3\nend\n"
    )


def test_a_name_without_a_meaning_is_an_error() -> None:
    with pytest.raises(KeyError):
        filled("    {missing}\n", {})


def test_nested_counters_count_as_an_odometer_does() -> None:
    text = counted_on([("a", "2"), ("b", "3")], "c += 1")
    state = {"a": 0, "b": 0, "c": 0}
    seen = []
    for _ in range(13):
        seen.append((state["c"], state["b"], state["a"]))
        exec(text, {}, state)
    assert seen == sorted(seen)
    assert seen[6] == (1, 0, 0)
    assert seen[12] == (2, 0, 0)
