"""Fields of nodes that are assigned behind `__init__`, by the class's own ways to assign, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay

X = np.array([0.5, 2.0, 1.5, -1.0])


class Marked:
    def __init__(self, v: Any) -> None:
        self.v = v

    @property
    def twice(self) -> Any:
        return self.half * 4

    @twice.setter
    def twice(self, value: Any) -> None:
        self.half = value / 4


class Doubling:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value * 2)


class Slotted:
    __slots__ = ("twice", "v")

    def __init__(self, v: Any) -> None:
        self.v = v


def kept(cls: Any, x: Any) -> Any:
    found: Any = []
    for v in x:
        if v < 0:
            break
        one = cls(v)
        found.append(one)
        if v > 1:
            one.twice = v * 2
    return found


def read(cls: Any, x: Any) -> Any:
    found = kept(cls, x)
    return [one.twice if one.v > 1 else -one.v for one in found], found[0].v


@pytest.mark.parametrize("cls", [Marked, Doubling, Slotted])
def test_fields_that_some_nodes_have(cls: Any) -> None:
    assert pyrelay.jit(read)(cls, X) == read(cls, X)


def test_nodes_given_back_have_what_they_were_given() -> None:
    found = pyrelay.jit(kept)(Marked, X)
    assert [vars(one) for one in found] == [vars(one) for one in kept(Marked, X)]


def test_a_field_that_is_not_there_yet() -> None:
    def last(x: Any) -> Any:
        return kept(Slotted, x)[-1].twice

    assert pyrelay.jit(last)(X) == 3.0
    with pytest.raises(AttributeError, match="'Slotted' object has no attribute 'twice'"):
        pyrelay.jit(last)(X[:1])
