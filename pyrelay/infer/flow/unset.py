"""Attributes that only some paths assign: `if found: self.last = x`.

In: the attributes that objects have on two paths, which are not the same ones. Out: the same names
on both, UNSET where a path has not assigned one; where such an attribute is read, what its class
says, or Python's AttributeError at run time. What leaves the program does not have it then.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.flow import narrowing
from pyrelay.infer.guards import ABSENT
from pyrelay.infer.heap import Heap
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir.nodes import UNSET

_NOT_SET = V.Known(UNSET)


def with_names(heaps: Sequence[Heap], roots: Iterable[V.Root]) -> bool:
    """Give objects the same attributes in all of these heaps; whether some were missing."""
    found = False
    for root in roots:
        contents: list[Any] = [heap.contents.get(root) for heap in heaps]
        if root.kind != "object" or not all(isinstance(c, dict) for c in contents):
            continue
        names = tuple(dict.fromkeys(name for content in contents for name in content))
        for heap, content in zip(heaps, contents, strict=True):
            if tuple(content) != names:
                heap.contents[root] = {name: content.get(name, _NOT_SET) for name in names}
                found = True
    return found


def gained(before: Heap, after: Heap) -> list[str]:
    """The attributes that objects from before a round of a loop have after it in any case."""
    return [
        name for root in after.changed_since(before)
        if root.kind == "object" and root in before.contents
        for name, value in after.contents[root].items()
        if name not in before.contents[root] and not may_be_unset(value)
    ]


def may_be_unset(value: V.Value) -> bool:
    """Whether some path has not assigned the attribute that this is."""
    if isinstance(value, V.Union):
        return any(isinstance(c, V.Known) and c.value is UNSET for c in value.possible)
    return isinstance(value, V.Known) and value.value is UNSET


def resolved(it: Interpreter, obj: V.Value, cls: type, name: str, value: V.Value) -> V.Value:
    """The attribute, where it may be unset; raises what `class_attribute` raises if it is."""
    from pyrelay.infer.attributes import class_attribute
    from pyrelay.infer.flow.effects import raise_where
    from pyrelay.infer.flow.unions import distribute

    value = narrowing.narrowed(it, value)
    if not may_be_unset(value):
        return value
    if not isinstance(value, V.Union):
        return class_attribute(it, obj, cls, name)
    of_class = inspect.getattr_static(cls, name, ABSENT)
    described = inspect.ismemberdescriptor(of_class)
    if (of_class is not ABSENT and not described) or hasattr(cls, "__getattr__"):
        return distribute(
            it, value,
            lambda case: class_attribute(it, obj, cls, name) if may_be_unset(case) else case,
        )
    absent = _absent(value)
    test = it.emit("equal", value.tag, absent)
    said = f"{cls.__name__!r} object has no attribute {name!r}"
    raise_where(it, test.atom, AttributeError, V.Known(said))
    narrowing.keep(it, ((value.tag, frozenset(value.alive) - {absent}),))
    return narrowing.narrowed(it, value)


def is_set(it: Interpreter, value: V.Value) -> V.Value:
    """Whether an attribute that may be unset is there."""
    value = narrowing.narrowed(it, value)
    if not may_be_unset(value):
        return V.Known(True)
    if not isinstance(value, V.Union):
        return V.Known(False)
    return narrowing.settled(it, value, frozenset(value.alive) - {_absent(value)})


def attribute_of(it: Interpreter, obj: V.Value, name: str) -> V.Value | None:
    """What an object has under a name, if some path has not assigned it; else None."""
    if isinstance(obj, V.Data):
        from pyrelay.infer.nodes import trees

        found = trees.field(it, obj, name)
        return found if found is not None and may_be_unset(found) else None
    if not isinstance(obj, V.Ref) or obj.root.kind != "object":
        return None
    content: Mapping[str, V.Value] = it.content(obj.root)
    value = content.get(name)
    return value if value is not None and may_be_unset(value) else None


def _absent(value: V.Union) -> int:
    """The case in which an attribute is not set."""
    return next(i for i in value.alive if value.cases[i] == _NOT_SET)


__all__ = ["attribute_of", "gained", "is_set", "may_be_unset", "resolved", "with_names"]
