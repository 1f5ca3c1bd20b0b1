"""Slots: what tells whether the items of a growing list are still where they were.

In: lists whose items are put in another order, tables that lose keys, and paths that meet. Out: the
`slots` of their contents from then on. Most slots are plain objects, another one after each move.
Those of a list of lists of the caller's, where the program puts its items in another order, are
`Placed`: a list of the program's own says which of the caller's each one is.
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


@dataclass(frozen=True, slots=True, eq=False)
class Lessened:
    """Slots of the values of a table that lost a key: all are where those with the slots `places`
    are, but which of them is the one of a key has to be asked anew."""

    places: object


@dataclass(frozen=True, slots=True)
class Lessening:
    """In layouts: slots of which some paths have the places, and others `Lessened` ones of them."""

    places: object


@dataclass(frozen=True, slots=True)
class Moved:
    """In layouts: slots that differ between paths, so that they are others from then on."""

    places: Root | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """In the layout of items that are lists of lists: slots that all these lists have together.

    Layouts of two programs' lists are one whichever objects these are, as long as both are known.
    """

    slots: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inside) and self._is_known() == other._is_known()

    def __hash__(self) -> int:
        return hash(self._is_known())

    def _is_known(self) -> bool:
        return not isinstance(self.slots, Moved)


def inside(slots: Sequence[Any], *, of_one_list: bool) -> Inside:
    """The slots inside of items that have these, as far as they have any.

    of_one_list: the items come to lie in one list, and what was known of the first ones holds; else
    they are on different paths.
    """
    known = [s for s in slots if isinstance(s, Inside)]
    if not known:
        return Inside(object())
    same = of_one_list or all(s.slots is known[0].slots for s in known)
    return known[0] if same else Inside(Moved())


def places_of(slots: Any) -> Any:
    """What two slots have in common whose items are at the same places."""
    return slots.places if isinstance(slots, (Lessened, Lessening)) else slots


def lessened(slots: Any) -> Any:
    """The slots of a table's values behind the loss of a key."""
    return object() if isinstance(slots, Placed) else Lessened(places_of(slots))


def guessed(held: Any, entry: Any) -> Any:
    """The slots in the layout of a list that begins with those of `entry`, if in a layout of
    another list those of `held` turned out to be needed."""
    if isinstance(held, Lessening):
        return entry if isinstance(entry, Moved) else Lessening(places_of(entry))
    return held if isinstance(held, Moved) else entry


def joined(slots: Sequence[Any]) -> Any:
    """The slots in a layout of a list that has these on several paths."""
    if all(s is slots[0] for s in slots):
        return slots[0]
    if all(places_of(s) is places_of(slots[0]) for s in slots):
        return Lessening(places_of(slots[0]))
    places = [s.places if isinstance(s, (Placed, Moved)) else None for s in slots]
    return Moved(places[0] if all(p is places[0] for p in places) else None)


def begun_inside(slots: Inside) -> Inside:
    """The slots inside of items with such slots in their layout."""
    return Inside(object()) if isinstance(slots.slots, Moved) else slots


def begun(slots: Any) -> Any:
    """The slots of a list with such slots in its layout."""
    if isinstance(slots, Lessening):
        return Lessened(slots.places)
    if not isinstance(slots, Moved):
        return slots
    return object() if slots.places is None else Placed(slots.places)
