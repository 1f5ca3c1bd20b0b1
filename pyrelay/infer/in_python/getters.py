"""What the `operator` module does with containers, in plain Python.

In and out: what instances of its `itemgetter`, `attrgetter` and `methodcaller`, and functions of
other names here, take and give.
"""

from __future__ import annotations

from typing import Any


def items(keys: tuple[Any, ...], obj: Any) -> Any:
    """operator.itemgetter(*keys)(obj)."""
    if len(keys) == 1:
        return obj[keys[0]]
    return tuple([obj[key] for key in keys])


def attributes(names: tuple[str, ...], obj: Any) -> Any:
    """operator.attrgetter(*names)(obj)."""
    if len(names) == 1:
        return attribute(names[0], obj)
    return tuple([attribute(name, obj) for name in names])


def attribute(name: str, obj: Any) -> Any:
    """The attribute at the end of a chain of names with dots between them."""
    for part in name.split("."):
        obj = getattr(obj, part)
    return obj


def method(name: str, args: tuple[Any, ...], obj: Any, **keywords: Any) -> Any:
    """operator.methodcaller(name, *args, **keywords)(obj)."""
    return getattr(obj, name)(*args, **keywords)


def attribute_or(obj: Any, name: str, default: Any) -> Any:
    """getattr(obj, name, default) of an object whose class has a `__getattr__` or a property."""
    try:
        return getattr(obj, name)
    except AttributeError:
        return default


def has_attribute(obj: Any, name: str) -> Any:
    """hasattr(obj, name) of an object whose class has a `__getattr__` or a property."""
    try:
        getattr(obj, name)
    except AttributeError:
        return False
    return True


def delete(a: Any, b: Any) -> None:
    """operator.delitem(a, b)."""
    del a[b]


def place(a: Any, b: Any) -> int:
    """operator.indexOf(a, b)."""
    for k, item in enumerate(a):
        if item == b:
            return k
    raise ValueError("sequence.index(x): x not in sequence")
