"""Programs whose objects are all records: what goes through them is unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.errors import PyrelayError


class Part:
    """An array, of its own shape, and the parts that it was made of."""

    def __init__(self, data: Any, parts: Any = ()) -> None:
        self.data, self.parts = data, parts


def total(part: Any) -> Any:
    found = part.data.sum()
    for inner in part.parts:
        found = found + total(inner)
    return found


def by_recursion(x: Any) -> Any:
    leaf = Part(x)
    return total(Part(x.sum(axis=0), (leaf, Part(x @ x, (leaf,)))))


def by_keys(x: Any) -> Any:
    a, b = Part(x), Part(x[0])
    grads = {}
    for part in (a, b, a):
        grads[part] = grads[part] + part.data if part in grads else part.data
    seen = {a, b, a}
    return grads[a], grads[b], len(grads), len(seen), a in seen, [p is a for p in grads]


@pytest.mark.parametrize("function", [by_recursion, by_keys])
def test_objects_of_arrays_of_several_shapes(function: Any) -> None:
    x = np.arange(4.0).reshape(2, 2)
    found, wanted = pyrelay.jit(function)(x), function(x)
    for mine, theirs in zip(np.atleast_1d(found), np.atleast_1d(wanted), strict=True) if (
        function is by_recursion
    ) else zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_recursion_that_data_end_is_refused_with_the_first_failure() -> None:
    def deeper(part: Any, least: Any) -> Any:
        if part.data.sum() < least:
            return part.data.sum()
        return deeper(Part(part.data[None] / 2, (part,)), least)

    with pytest.raises(PyrelayError):
        pyrelay.jit(lambda x: deeper(Part(x), 1.0))(np.ones(3))


def rows_of_one(n: int) -> Any:
    rows: list[list[int]] = []
    row: list[int] = []
    for i in range(n):
        row.append(i)
        rows.append(row)
    return rows


def remembered(n: int, memo: dict[Any, int]) -> int:
    if n in memo:
        return memo[n]
    memo[n] = n if n < 2 else remembered(n - 1, memo) + remembered(n - 2, memo)
    return memo[n]


def test_a_list_may_be_in_many_places_of_another_one() -> None:
    found = pyrelay.jit(rows_of_one)(3)
    assert found == rows_of_one(3)
    assert all(row is found[0] for row in found)


def test_a_memo_of_the_caller_gets_what_the_program_found() -> None:
    mine, theirs = {"calls": 0}, {"calls": 0}
    assert pyrelay.jit(remembered)(20, mine) == remembered(20, theirs)
    assert list(mine.items()) == list(theirs.items())
