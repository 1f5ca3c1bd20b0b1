"""What attempts ask for, and what is done where the next one cannot have it."""

from __future__ import annotations

from typing import Any

import pytest

import pyrelay
from pyrelay import config
from pyrelay.infer.attempt import Attempt
from pyrelay.infer.flow import choice


def numbers(xs: list[int]) -> int:
    squares: dict[int, int] = {}
    for k in range(6):
        squares[k] = k * k
    total = 0
    for x in xs:
        total += squares[x] + squares.get(x + 3, -1)
    return total


def words_and_numbers(xs: list[int]) -> list[str]:
    named = {0: "none", 1: 1, 2: 2.5, 3: "three", 4: 4, 5: (5, "five")}
    return [str(named[x]) for x in xs]


def words_and_lists(xs: list[int]) -> list[str]:
    named = {0: "none", 1: 1, 2: 2.5, 3: "three", 4: [4, 4], 5: (5, "five")}
    return [str(named[x]) for x in xs]


@pytest.mark.parametrize(
    ("function", "attempts"), [(numbers, 2), (words_and_numbers, 2), (words_and_lists, 3)]
)
def test_dicts_of_many_keys_become_tables_if_they_can(
    function: Any, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[frozenset[Any]] = []
    run = Attempt.run

    def noted(self: Attempt, *args: Any) -> Any:
        taken.append(self.asked.tables)
        return run(self, *args)

    monkeypatch.setattr(choice, "MOST_COMPARED", 10)
    monkeypatch.setattr(Attempt, "run", noted)
    xs = [1, 5, 0, 3] * 10  # enters as an array
    with config.override(interpret=True):
        assert pyrelay.jit(function)(xs) == function(xs)
    assert [len(tables) for tables in taken] == [0, 1, 0][:attempts]
