"""Slots: what tells whether the items of a growing list are still where they were.

In: lists whose items are put in another order, and paths that meet. Out: the `slots` of their
contents from then on. Most slots are plain objects, another one after each move. Those of a list of
lists of the caller's, where the program puts its items in another order, are `Placed`: a list of
the program's own says which of the caller's each one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyrelay.infer.values import Root


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Slots of a list in which the list `places` has for each item its position at the start."""

    places: Root


@dataclass(frozen=True, slots=True)
class Moved:
    """In layouts: slots that differ between paths, so that they are others from then on."""

    places: Root | None = None


def joined(slots: Sequence[Any]) -> Any:
    """The slots in a layout of a list that has these on several paths."""
    if all(s is slots[0] for s in slots):
        return slots[0]
    places = [s.places if isinstance(s, (Placed, Moved)) else None for s in slots]
    return Moved(places[0] if all(p is places[0] for p in places) else None)


def begun(slots: Any) -> Any:
    """The slots of a list with such slots in its layout."""
    if not isinstance(slots, Moved):
        return slots
    return object() if slots.places is None else Placed(slots.places)
