"""Dicts of the caller's in a dict: the very dicts afterwards, and one program for any number."""

from __future__ import annotations

from typing import Any

import pytest

import pyrelay


def graph(count: int) -> dict[int, Any]:
    return {k: {(k * 3 + j) % count: j for j in range(2)} for k in range(count)}


def members(count: int) -> dict[int, Any]:
    return {k: {(k * 3 + j) % count for j in range(2)} for k in range(count)}


def weight(of: dict[int, Any]) -> int:
    return sum(w for inner in of.values() for w in inner)


@pytest.mark.parametrize("made", [graph, members])
def test_a_new_number_of_entries_compiles_nothing(made: Any) -> None:
    compiled = pyrelay.jit(weight)
    for count in (20, 35):
        assert compiled(made(count)) == weight(made(count))
    assert compiled.cache_info().compilations == 1


def test_the_callers_dicts_come_back_changed() -> None:
    def change(of: dict[int, Any]) -> Any:
        of[3][77] = 1
        of[100] = of[4]
        of[4][78] = 2
        return of, of[3]

    given = graph(20)
    inner = dict(given)
    for _ in range(2):
        whole, one = pyrelay.jit(change)(given)
        assert whole is given
        assert one is given[3]
        assert given[100] is given[4]
        assert all(given[k] is own for k, own in inner.items())
        assert (given[3][77], given[4][78]) == (1, 2)


def test_a_dict_in_two_places_stays_one() -> None:
    def change(of: dict[int, Any]) -> None:
        of[7][77] = 1

    given = graph(20)
    given[8] = given[7]
    pyrelay.jit(change)(given)
    assert given[8] is given[7]
    assert given[8][77] == 1


def test_sets_in_a_list_stay_where_they_are() -> None:
    def change(of: list[set[int]]) -> None:
        of[3].add(77)
        of.append(of[0])
        of[1], of[2] = of[2], of[1]

    given = [{k, k + 1} for k in range(8)]
    before = list(given)
    pyrelay.jit(change)(given)
    assert [id(own) for own in given] == [id(before[k]) for k in (0, 2, 1, 3, 4, 5, 6, 7, 0)]
    assert given[3] == {3, 4, 77}
