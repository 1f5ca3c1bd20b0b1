"""Lists of run-time length that leave the program: returned, printed, written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pyrelay


def test_a_list_of_an_array_of_another_length_compiles_nothing() -> None:
    @pyrelay.jit
    def weighted(x, groups):
        return sum(v * k for v, k in zip(x, groups.tolist(), strict=True)), groups.tolist()

    for n in (6, 7, 90):
        x, groups = np.arange(float(n)), np.arange(n) % 3
        assert weighted(x, groups) == weighted.py(x, groups)
    assert weighted.cache_info().compilations == 1


def test_lists_of_any_length_are_printed_as_they_are_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(x):
        kept = []
        for v in x.tolist():
            kept.append([v, -v])
            print(kept, len(kept))
        return kept

    for n in (0, 1, 3):
        x = np.arange(n) * 0.5
        expected, text = shown(x), capsys.readouterr().out
        assert (pyrelay.jit(shown)(x), capsys.readouterr().out) == (expected, text)


@dataclass
class Holder:
    array: np.ndarray[Any, Any]
    after: Holder | None = None


def held_in_a_list(x: Any, n: int) -> Any:
    found = []
    for k in range(n):
        if x[k] > 0:
            found.append(Part(x[: k + 1] * 2.0))
    return sum(part.array.sum() for part in found)


@dataclass
class Part:
    array: np.ndarray[Any, Any]


def held_in_a_chain(x: Any, n: int) -> Any:
    holder = None
    for k in range(n):
        holder = Holder(x[: k + 1].copy(), holder)
    return holder


@pytest.mark.parametrize("program", [held_in_a_list, held_in_a_chain])
def test_arrays_of_nodes_that_differ_in_shape_are_refused(program: Any) -> None:
    with pytest.raises(ValueError, match="must have one shape"):
        pyrelay.jit(program)(np.arange(1.0, 6.0), 3)


def pairs_of_arrays(x: Any, limit: float) -> Any:
    pairs = (x,)
    while pairs[0].sum() < limit:
        pairs = (pairs[0] + 1.0, pairs)
    return pairs


def test_arrays_in_nested_tuples_stay_arrays() -> None:
    first, rest = pyrelay.jit(pairs_of_arrays)(np.array([1.0, 2.0]), 5.0)
    np.testing.assert_array_equal(first, [2.0, 3.0])
    np.testing.assert_array_equal(rest[0], [1.0, 2.0])


def test_methods_that_stand_for_operators_are_functions():
    def chosen(values, names):
        table = {name: len(name) for name in names}
        place = max(range(values.__len__()), key=values.__getitem__)
        return place, sorted(names, key=table.__getitem__), list(filter(table.__contains__, "ab"))

    compiled = pyrelay.jit(chosen)
    for values, names in (([3, 1, 7, 2, 5, 4], ["bbb", "a", "cc"]), ([1.5], ["a"])):
        assert compiled(values, names) == chosen(values, names)
