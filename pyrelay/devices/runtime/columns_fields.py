"""Kinds and places that the native reading of lists and the tables made for it agree on.

In: nothing. Out: constants. Tables are rows of 64-bit words; places are byte offsets.
"""

from __future__ import annotations

MOST_COLUMNS = 32
ALONE, APART = 1, 2
"""How the lists in a list are known to be different: nothing else refers to them, or who calls has
looked."""


class Head:
    """One for a key of items."""

    SORT = 0  # address of the item's, or of that of the items of each list
    LISTS = 8  # whether the items are lists: 0, ALONE or APART
    MEASURED = 16  # whether texts have to be measured first
    COLUMN_COUNT = 24
    COLUMNS = 32  # address of the first
    NDARRAY = 40
    NEW_ARRAY = 48  # PyArray_NewFromDescr
    NONE = 56
    TRUE = 64
    LIST = 72
    WORDS = 10


class Sort:
    """What an item is; the parts of a tuple are in rows of their own, one after the other.

    By kind: numbers, texts and letters: column, class; tuples: address of the first part, class,
    count.
    """

    KIND = 0  # a number of SORTS
    A = 8
    CLASS = 16
    COUNT = 24
    WORDS = 4


SORTS = (
    "int", "float", "bool", "complex", "raw8", "raw16", "raw32", "raw64", "pair", "text", "letter",
    "tuple",
)  # fmt: skip


class Column:
    """An array to be made."""

    DESCR = 0
    WIDTH = 8  # bytes of an element
    LISTED = 16  # which of the rooms the axis of a list's items has, -1 where it has no such axis
    SPELLED = 24  # likewise of the axis of a text's characters
    WORDS = 4
