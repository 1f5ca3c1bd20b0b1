"""Kinds and places that the native making of lists and the tables made for it agree on.

In: nothing. Out: constants. Tables are rows of 64-bit words; places are byte offsets.
"""

from __future__ import annotations

MOST_COLUMNS = 32
MOST_AXES = 4


class Head:
    """One for a tree of items."""

    SORT = 0  # address of the item's
    COLUMN_COUNT = 8
    COLUMNS = 16  # address of the first
    NDARRAY = 24
    NEW_SCALAR = 32  # PyArray_Scalar
    NONE = 40
    TRUE = 48
    FALSE = 56
    WORDS = 8


class Sort:
    """What an item is; the parts of a node are in rows of their own, one after the other.

    By kind: numbers: column, and of NumPy's descr and bytes; text: column of lengths, column of
    code points, room; constant: object; tuple, list: address of the first part, count; dict: also
    address of the keys; items: column of lengths, address of the item, room; choice: column of
    tags, address of the first case, count.
    """

    KIND = 0  # a number of SORTS
    A = 8
    B = 16
    C = 24
    WORDS = 4


SORTS = (
    "int", "float", "bool", "complex", "numpy", "text", "constant", "tuple", "list", "dict",
    "items", "choice",
)  # fmt: skip


class Column:
    """An array with a row for each item."""

    DESCR = 0
    NDIM = 8
    ROOMS = 16  # of each axis but the first: which of the rooms its extent is; -1 for none
    WORDS = 2 + MOST_AXES
