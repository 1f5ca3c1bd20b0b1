"""The dict of an object's attributes: `vars(x)` and `x.__dict__`.

In and out: what the methods of `dict` take and give. It has no items of its own: what is read or
assigned by it are the attributes of the object, whose names are known while compiling; whether it
has those that only some paths assign, the running program says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrelay.infer.in_python import refuse
from pyrelay.infer.in_python.containers import standing_for
from pyrelay.infer.in_python.entries import Entries, EntryKeys, EntryPairs, EntryValues


def names_of(of: Any) -> tuple[str, ...]:
    """The names of the attributes that an object may have, in order; a handler says those of a
    program."""
    return tuple(vars(of))


def is_assigned(of: Any, name: str) -> bool:
    """Whether an object has an attribute that it may have; a handler says so in a program."""
    return name in vars(of)


def assigned(of: Any, name: str, value: Any) -> None:
    """Give an object an attribute, whatever its class says of that; a handler does in a program."""
    vars(of)[name] = value


class AttributeDict(Entries):
    """The dict of the attributes of `of`."""

    def __init__(self, of: Any) -> None:
        self.of = of

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return names_of(self.of)

    def __len__(self) -> int:
        return sum(is_assigned(self.of, name) for name in names_of(self.of))

    def __contains__(self, key: Any) -> bool:
        return key in names_of(self.of) and is_assigned(self.of, key)

    def __iter__(self) -> Iterator[Any]:
        for name in names_of(self.of):
            if is_assigned(self.of, name):
                yield name

    def __reversed__(self) -> Iterator[Any]:
        for name in names_of(self.of)[::-1]:
            if is_assigned(self.of, name):
                yield name

    def keys(self) -> Any:
        return AttributeNames(self)

    def values(self) -> Any:
        return AttributeValues(self)

    def items(self) -> Any:
        return AttributePairs(self)

    def __getitem__(self, key: Any) -> Any:
        if key not in self:
            raise KeyError(key)
        return getattr(self.of, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        assigned(self.of, key, value)

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        _refuse_to_lose()

    def get(self, key: Any, default: Any = None) -> Any:
        return getattr(self.of, key) if key in self else default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            assigned(self.of, key, default)
        return getattr(self.of, key)

    def pop(self, key: Any, *default: Any) -> Any:
        if key in self:
            _refuse_to_lose()
        if len(default) == 1:
            return default[0]
        raise KeyError(key)

    def popitem(self) -> Any:
        _refuse_to_lose()

    def clear(self) -> None:
        _refuse_to_lose()


class AttributeNames(EntryKeys):
    """The keys of an object's `__dict__`."""

    def __iter__(self) -> Iterator[Any]:
        yield from self.of


class AttributeValues(EntryValues):
    """The values of an object's `__dict__`."""

    def __iter__(self) -> Iterator[Any]:
        for name in names_of(self.of.of):
            if is_assigned(self.of.of, name):
                yield getattr(self.of.of, name)


class AttributePairs(EntryPairs):
    """The items of an object's `__dict__`."""

    def __iter__(self) -> Iterator[Any]:
        for name in names_of(self.of.of):
            if is_assigned(self.of.of, name):
                yield name, getattr(self.of.of, name)


def _refuse_to_lose() -> None:
    refuse("an object loses an attribute by its __dict__: assign None to the attribute instead")


standing_for.update({
    AttributeDict: (dict, dict, lambda x: ({**x},)),
    AttributeNames: (type({}.keys()), dict.keys, lambda view: ({**view.of},)),
    AttributeValues: (type({}.values()), dict.values, lambda view: ({**view.of},)),
    AttributePairs: (type({}.items()), dict.items, lambda view: ({**view.of},)),
})

__all__ = ["AttributeDict", "assigned", "is_assigned", "names_of"]
