"""Members of enums by values that only the running program knows."""

from __future__ import annotations

from typing import Any


def member_of(cls: Any, members: tuple[Any, ...], value: Any) -> Any:
    """`cls(value)`, of an enum with these members. Raises ValueError as Python does."""
    for member in members:
        if value == member.value:
            return member
    found = cls._missing_(value)
    if found is None:
        raise ValueError(f"{value!r} is not a valid {cls.__qualname__}")
    return found


__all__ = ["member_of"]
