"""Lists that keep their length, of which there are as many as the running program decides.

Such a list is a node (`infer/nodes`) with a field for each item, which may differ in type: records
on a heap, `[priority, number, name]`. In and out: what the methods of `list` take and give. What
would change the length is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from pyrelay.infer.in_python.containers import standing_for


def item_name(items: Any, key: Any) -> Any:
    """The name of the field of an item; None for a position that only the running program knows, a
    handler says that of a program. Raises IndexError."""
    return items.names[key]


def lengthened(items: Any) -> Any:
    """Called where a list would get another length; a handler refuses that."""
    raise NotImplementedError


class FixedList:
    """list: its items are the fields `_0`, `_1`, ..., whose names are `names`."""

    names: tuple[str, ...] = ()
    site = 0

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [*self][key]
        name = item_name(self, key)
        if name is None:
            return [*self][key]
        return getattr(self, name)

    def __setitem__(self, key: Any, value: Any) -> None:
        name = item_name(self, key)
        if name is None:
            place = key + len(self.names) if key < 0 else key
            if place < 0 or place >= len(self.names):
                raise IndexError("list assignment index out of range")
            for k, each in enumerate(self.names):
                if k == place:
                    setattr(self, each, value)
        else:
            setattr(self, name, value)

    def __iter__(self) -> Iterator[Any]:
        for name in self.names:
            yield getattr(self, name)

    def __reversed__(self) -> Iterator[Any]:
        for name in self.names[::-1]:
            yield getattr(self, name)

    def __contains__(self, item: Any) -> bool:
        return item in [*self]

    def index(self, item: Any) -> Any:
        return [*self].index(item)

    def count(self, item: Any) -> Any:
        return [*self].count(item)

    def copy(self) -> Any:
        return [*self]

    __copy__ = copy

    def append(self, item: Any) -> None:
        lengthened(self)

    def extend(self, items: Any) -> None:
        lengthened(self)

    def insert(self, place: Any, item: Any) -> None:
        lengthened(self)

    def pop(self, place: Any = -1) -> Any:
        lengthened(self)

    def remove(self, item: Any) -> None:
        lengthened(self)

    def clear(self) -> None:
        lengthened(self)

    def __delitem__(self, key: Any) -> None:
        lengthened(self)

    def __iadd__(self, items: Any) -> Any:
        lengthened(self)

    def __add__(self, other: Any) -> Any:
        return [*self, *other]

    def __radd__(self, other: Any) -> Any:
        return [*other, *self]

    def __mul__(self, times: Any) -> Any:
        return [*self] * times

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, list) or len(self) != len(other):
            return False
        return (*self,) == (*other,)

    def __lt__(self, other: Any) -> Any:
        return (*self,) < (*other,) if isinstance(other, list) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return (*self,) <= (*other,) if isinstance(other, list) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return (*self,) > (*other,) if isinstance(other, list) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return (*self,) >= (*other,) if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


@functools.cache
def fixed_class(count: int, site: int) -> type[FixedList]:
    """The class of lists of so many items: one for ever, as it is part of what a program is for.

    site: the number of the expression that makes them, 0 for those of the caller: lists that never
    meet may have items of other types.
    """
    names = tuple(f"_{k}" for k in range(count))
    contents = {"names": names, "site": site, "of_many": True, "__module__": __name__}
    cls = type("list", (FixedList,), contents)
    standing_for[cls] = (list, list, _items)
    return cls


def _items(items: Any) -> tuple[Any, ...]:
    return ([getattr(items, name) for name in items.names],)


def is_fixed(cls: Any) -> bool:
    """True for the class of a list whose items are fields."""
    return isinstance(cls, type) and issubclass(cls, FixedList)


__all__ = ["FixedList", "fixed_class", "is_fixed"]
