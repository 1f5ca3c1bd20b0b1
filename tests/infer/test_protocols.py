"""Objects that are gone through: what `__iter__` does is done once, whoever goes through them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.infer.running import assert_same, interpreted


class Upto:
    """Its generator changes the object."""

    def __init__(self, n: int) -> None:
        self.i = 0
        self.n = n

    def __iter__(self) -> Iterator[int]:
        while self.i < self.n:
            yield self.i
            self.i += 1


class Down:
    """An iterator of its own."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Down:
        return self

    def __next__(self) -> int:
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Bag:
    """One that counts how often it is asked."""

    def __init__(self, items: list[int]) -> None:
        self.items = items
        self.asked = 0

    def __iter__(self) -> Iterator[int]:
        self.asked += 1
        return iter(self.items)


def listed(n: int) -> Any:
    gone = Upto(n)
    return list(gone), list(gone), gone.i, list(Down(n))


def displayed(n: int) -> Any:
    return [*Upto(n)], [7, *Down(n)]


def folded(n: int) -> Any:
    return sum(Upto(n)), max(Upto(n)), min(Down(n)), any(Upto(n)), all(Down(n)), 2 in Upto(n)


def reduced(n: int) -> Any:
    return functools.reduce(lambda a, b: 10 * a + b, Upto(n)), sorted(Down(n))


def zipped(n: int) -> Any:
    return list(zip(Down(n), (5, 6), strict=False)), list(enumerate(Upto(n)))


def mapped(n: int) -> Any:
    return list(map(float, Upto(n))), list(itertools.accumulate(Down(n)))


def arranged(n: int) -> Any:
    return list(itertools.combinations(Upto(n), 2)), list(itertools.product(Upto(n), Down(n)))


def joined(n: int) -> Any:
    return ",".join(map(str, Upto(n))), "-".join(str(i) for i in Down(n))


def extended(n: int) -> Any:
    found = [7]
    found.extend(Upto(n))
    found += Down(n)
    return found


def in_an_array(n: int) -> Any:
    return np.array(list(Upto(n))), np.array(tuple(Down(n)))


def asked(n: int) -> Any:
    bag = Bag([n, 2, 9])
    a, *rest = bag
    return max(bag), list(bag), tuple(zip(bag, bag, strict=False)), 9 in bag, a, rest, bag.asked


@pytest.mark.parametrize(
    "function",
    [listed, displayed, folded, reduced, zipped, mapped, arranged, joined, extended, in_an_array,
     asked],
    ids=lambda f: f.__name__,
)
def test_what_goes_through_an_object_asks_it_once(function: Callable[[int], Any]) -> None:
    found = interpreted(function, (3,))
    assert found.error is None, found.error
    assert_same(found.result, function(3))
