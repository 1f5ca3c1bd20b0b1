"""Lists that are items of lists, as deep as the running program decides.

Such a list is a node (`infer/nodes`) with a list in it, whose items are numbers, texts and other
such nodes: what a parser of nested brackets gives back. In and out: what the methods of `list` take
and give; slices and sums are lists that are no nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrelay.infer.in_python.containers import standing_for


class NestedList:
    """list."""

    of_many = True

    def __init__(self, items: Any) -> None:
        self.held = items

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, key: Any) -> Any:
        return self.held[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.held[key] = value

    def __delitem__(self, key: Any) -> None:
        del self.held[key]

    def __iter__(self) -> Iterator[Any]:
        yield from self.held

    def __reversed__(self) -> Iterator[Any]:
        yield from reversed(self.held)

    def __contains__(self, item: Any) -> bool:
        return item in self.held

    def append(self, item: Any) -> None:
        self.held.append(item)

    def extend(self, items: Any) -> None:
        for item in items:
            self.held.append(item)

    def insert(self, place: Any, item: Any) -> None:
        self.held.insert(place, item)

    def pop(self, place: Any = -1) -> Any:
        return self.held.pop(place)

    def remove(self, item: Any) -> None:
        self.held.remove(item)

    def clear(self) -> None:
        self.held.clear()

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        self.held.sort(key=key, reverse=reverse)

    def reverse(self) -> None:
        self.held.reverse()

    def index(self, item: Any) -> Any:
        return self.held.index(item)

    def count(self, item: Any) -> Any:
        return self.held.count(item)

    def copy(self) -> Any:
        return [*self.held]

    __copy__ = copy

    def __iadd__(self, items: Any) -> Any:
        self.extend(items)
        return self

    def __add__(self, other: Any) -> Any:
        return [*self.held, *other]

    def __radd__(self, other: Any) -> Any:
        return [*other, *self.held]

    def __mul__(self, times: Any) -> Any:
        return [*self.held] * times

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, list) or len(self) != len(other):
            return False
        for mine, theirs in zip(self.held, other, strict=True):  # noqa: SIM110
            if mine != theirs:
                return False
        return True

    def __lt__(self, other: Any) -> Any:
        return precedes(self.held, other) if isinstance(other, list) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return not precedes(other, self.held) if isinstance(other, list) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return precedes(other, self.held) if isinstance(other, list) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return not precedes(self.held, other) if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def precedes(items: Any, others: Any) -> Any:
    """items < others, by the first items that differ."""
    for mine, theirs in zip(items, others, strict=False):
        if mine != theirs:
            return mine < theirs
    return len(items) < len(others)


standing_for[NestedList] = (list, list, lambda x: (x.held,))

__all__ = ["NestedList"]
