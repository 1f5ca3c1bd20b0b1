"""The attributes of many objects of one class, read without giving each object a dict.

In: instances of user classes. Out: their attributes as columns. CPython keeps the attributes of an
instance as an array of values until somebody asks for its `__dict__`; from then on every read of
one, by this program and by the user's own, takes up to twice as long. What an object refers to is
told without a dict by `gc.get_referents`: its values, in the order of its class's names for them.

Where these names are is no part of CPython's interface: the places are those of 3.11, compared with
the interpreter before first use. Elsewhere, objects are asked for their dicts.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import operator
import sys
from collections.abc import Sequence
from typing import Any

_CLASS: Any = type
CLASS_KEYS = _CLASS.__basicsize__ - 32
"""In a class: the address of the names of its instances' values."""

_COUNT, _INDICES, _INDEX_BYTES = 24, 32, 9  # in these, before pairs of words
_WORD = 8

MANAGED_DICT = 1 << 4
"""The flag of a class whose instances keep attributes among values, then in a dict."""


def columns_of(cls: Any, objects: Sequence[Any]) -> dict[str, list[Any]] | None:
    """The attributes of objects of a class with dicts; None if they differ in their names."""
    found = _without_dicts(cls, objects) if _is_layout_known() else None
    return _from_dicts(cls, objects) if found is None else found


def _without_dicts(cls: Any, objects: Sequence[Any]) -> dict[str, list[Any]] | None:
    """The columns, where every object has all its attributes among its values."""
    if not cls.__flags__ & MANAGED_DICT or not _refers_to_attributes_only(cls):
        return None
    names = class_keys(cls)
    referents = gc.get_referents(*objects)
    each, rest = divmod(len(referents), len(objects))
    if rest or each < 2 or set(map(id, referents[each - 1 :: each])) != {id(cls)}:
        return None
    if each == 2 and dict in map(type, referents[::2]):
        return None  # the dict of an object, or a dict as the only attribute
    if each <= len(names):  # none of these objects has some of the attributes that others have
        names = _had_by_all(cls, names, objects)
    if each != len(names) + 1:
        return None
    return {name: referents[k::each] for k, name in enumerate(names)}


def _refers_to_attributes_only(cls: Any) -> bool:
    """Whether there is nothing else in an instance: no slots, nothing of a class written in C."""
    own = cls.__basicsize__ - (_WORD if cls.__weakrefoffset__ else 0)
    return bool(own == object.__basicsize__)


def _had_by_all(cls: Any, names: list[str], objects: Sequence[Any]) -> list[str]:
    """The names without those that no object has; empty if the class makes that hard to tell."""
    if cls.__getattribute__ is not object.__getattribute__ or hasattr(cls, "__getattr__"):
        return []
    missing = [name for name in names if not hasattr(objects[0], name)]
    if any(hasattr(each, name) for name in missing for each in objects):
        return []
    return [name for name in names if name not in missing]


def _from_dicts(cls: Any, objects: Sequence[Any]) -> dict[str, list[Any]] | None:
    """The columns from the objects' dicts, in the order in which the class has the names."""
    rows = list(map(vars, objects))
    names = list(rows[0])
    if _is_layout_known() and cls.__flags__ & MANAGED_DICT:
        order = {name: k for k, name in enumerate(class_keys(cls))}
        names.sort(key=lambda name: order.get(name, len(order)))
    if set(map(len, rows)) != {len(names)}:
        return None
    try:
        return {name: list(map(operator.itemgetter(name), rows)) for name in names}
    except KeyError:
        return None


def class_keys(cls: type) -> list[str]:
    """The names of the values of the instances of a class, in order; for 3.11 only."""
    keys = word_at(id(cls) + CLASS_KEYS)
    if not keys:
        return []
    indices = 1 << ctypes.c_uint8.from_address(keys + _INDEX_BYTES).value
    first = keys + _INDICES + indices
    names = [word_at(first + 2 * _WORD * k) for k in range(word_at(keys + _COUNT))]
    return [ctypes.cast(name, ctypes.py_object).value for name in names]


def slots_of(cls: Any) -> list[str]:
    """The names of the slots of a class and its bases; a single one may be a text alone."""
    found: list[str] = []
    for each in cls.__mro__:
        names = vars(each).get("__slots__", ())
        found += (names,) if isinstance(names, str) else names
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def word_at(address: int) -> int:
    """The 64 bits at an address, with a sign."""
    return int(ctypes.c_int64.from_address(address).value)


@functools.cache
def _is_layout_known() -> bool:
    """Whether this interpreter has the names of values where they are looked for."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] != (3, 11):
        return False

    class Pair:
        pass

    one, other = Pair(), Pair()
    one.first, one.second = 1.5, [2.5]  # type: ignore[attr-defined]
    other.second, other.first = one.first, one.second  # type: ignore[attr-defined]
    if class_keys(Pair) != ["first", "second"] or not Pair.__flags__ & MANAGED_DICT:
        return False
    found = gc.get_referents(one, other)
    values = one.first, one.second  # type: ignore[attr-defined]
    expected = (*values, Pair, *reversed(values), Pair)
    same = len(found) == len(expected) and all(map(operator.is_, found, expected))
    vars(one)
    return same and list(map(type, gc.get_referents(one))) == [dict, type]
