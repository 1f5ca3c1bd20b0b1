"""How the items of a set of the caller's lie in its table, which says in what order it is gone
through, and after which changes of it, too.

In: a set. Out: an array, of each slot the place of its item among the items as Python goes through
them, -1 where it is free, places behind all items where an item was taken out; and last, the slot
where `pop` looks first.

Source: CPython 3.11 to 3.14, Include/cpython/setobject.h, Objects/setobject.c.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_FIELDS = ctypes.c_ssize_t * 6
"""fill, used, mask, table, hash, finger: behind what all objects have."""


def layout_of_set(items: set[Any]) -> np.ndarray[Any, Any]:
    """The slots of a set, as the module says, int64."""
    where = id(items) + object.__basicsize__
    fill, used, mask, table, _, finger = _FIELDS.from_address(where)
    words: Any = (ctypes.c_ssize_t * (2 * (mask + 1))).from_address(table)
    keys, hashes = np.frombuffer(words, np.int64).reshape(-1, 2).T
    taken, gone = keys != 0, hashes == -1
    found = np.full(mask + 2, -1)
    found[-1] = finger
    slots = found[:-1]
    slots[taken & ~gone] = np.arange(used)
    slots[taken & gone] = np.arange(used, fill)
    return found


def was_emptied(items: set[Any]) -> bool:
    """Whether a set has no items, but slots where there were some."""
    return not items and bool((layout_of_set(items)[:-1] >= 0).any())


__all__ = ["layout_of_set", "was_emptied"]
