"""Tables of what was worked out, which do not grow without end.

In: what was worked out, by all that it hangs on. Out: the same, until the table was full.
"""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST_KEPT = 256
"""Entries of a table."""


class Bounded(dict[K, V]):
    """A dict that is emptied where it is full and something new comes, also by another thread:
    programs that are called with ever other extents work things out at each call anyway."""

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= MOST_KEPT:
            self.clear()
        super().__setitem__(key, value)
