"""What the items of lists may be: arrays of different shapes, lists of lists.

In: what an attempt may do. Out: the same wherever items are joined, and what they would need.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyrelay.records import dataclass


@dataclass
class Shapes:
    """Whether arrays in one list may differ in shape (`LRagged`); `wanted`: whether some may;
    `checked`: whether the program checks that some do not; `deep`: whether lists in lists may hold
    lists; `deeper`: whether some would."""

    ragged: bool = False
    wanted: bool = False
    checked: bool = False
    deep: bool = False
    deeper: bool = False


_shapes: ContextVar[Shapes] = ContextVar("shapes", default=Shapes())  # noqa: B039


@contextmanager
def shapes_of_items(ragged: bool, deep: bool) -> Iterator[Shapes]:
    """Join the items of lists so inside a `with` block."""
    made = Shapes(ragged, deep=deep)
    token = _shapes.set(made)
    try:
        yield made
    finally:
        _shapes.reset(token)


def shapes_now() -> Shapes:
    """What is so in the `with` block around."""
    return _shapes.get()


def may_be_deep() -> bool:
    """Whether lists in lists may hold lists, which some would."""
    shapes = _shapes.get()
    shapes.deeper = True
    return shapes.deep


def note_check_of_shapes() -> None:
    """Say that the program checks whether arrays of a list have one shape."""
    _shapes.get().checked = True
