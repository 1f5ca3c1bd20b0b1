"""The dict of an object's attributes: `vars(x)` and `x.__dict__`.

In and out: what the methods of `dict` take and give. It has no items of its own: what is read or
assigned by it are the attributes of the object, whose names are known while compiling.
"""

from __future__ import annotations

from typing import Any

from pyrelay.infer.in_python import refuse
from pyrelay.infer.in_python.containers import standing_for
from pyrelay.infer.in_python.entries import Entries


def names_of(of: Any) -> tuple[str, ...]:
    """The names of an object's attributes, in order; a handler says those of a program."""
    return tuple(vars(of))


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
        return len(names_of(self.of))

    def __contains__(self, key: Any) -> bool:
        return key in names_of(self.of)

    def __getitem__(self, key: Any) -> Any:
        if key not in names_of(self.of):
            raise KeyError(key)
        return getattr(self.of, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        assigned(self.of, key, value)

    def __delitem__(self, key: Any) -> None:
        if key not in names_of(self.of):
            raise KeyError(key)
        _refuse_to_lose()

    def get(self, key: Any, default: Any = None) -> Any:
        return getattr(self.of, key) if key in names_of(self.of) else default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in names_of(self.of):
            assigned(self.of, key, default)
        return getattr(self.of, key)

    def pop(self, key: Any, *default: Any) -> Any:
        if key in names_of(self.of):
            _refuse_to_lose()
        if len(default) == 1:
            return default[0]
        raise KeyError(key)

    def popitem(self) -> Any:
        _refuse_to_lose()

    def clear(self) -> None:
        _refuse_to_lose()


def _refuse_to_lose() -> None:
    refuse("an object loses an attribute by its __dict__: assign None to the attribute instead")


standing_for[AttributeDict] = (dict, dict, lambda x: ({**x},))

__all__ = ["AttributeDict", "assigned", "names_of"]
