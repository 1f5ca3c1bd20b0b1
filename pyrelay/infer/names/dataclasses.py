"""Functions of Python's `dataclasses`.

In: their arguments as abstract values. Out: entries in the table of names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from pyrelay import errors
from pyrelay.infer import calls
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.attributes import get_attribute
from pyrelay.infer.containers import lists
from pyrelay.infer.in_python.lists import compared_fields, items_of_node
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import copying
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.nodes import trees


@handles(dataclasses.fields)
def fields(it: Interpreter, class_or_instance: V.Value) -> V.Value:
    """dataclasses.fields of a dataclass or of an object of one."""
    match class_or_instance:
        case V.Known(cls) | V.Ref(_, cls) | V.Data(cls=cls) if dataclasses.is_dataclass(cls):
            return V.Tuple(tuple(map(V.Known, dataclasses.fields(cls))))
    raise it.failure(
        errors.TypeMismatchError,
        f"fields() needs a dataclass, not {V.describe(class_or_instance)}",
    )


@handles(compared_fields)
def compared_fields_(it: Interpreter, node: V.Value) -> V.Value:
    """What a dataclass compares of a node."""
    assert isinstance(node, V.Data)
    names = [f.name for f in dataclasses.fields(node.cls) if f.compare]
    return V.Tuple(tuple(trees.attribute(it, node, name) for name in names))


@handles(items_of_node)
def items_of_node_(it: Interpreter, node: V.Value) -> V.Value:
    """The items of a tuple that is a node."""
    assert isinstance(node, V.Data)
    return V.Tuple(trees.fields(it, node))


@handles(dataclasses.replace)
def replace(it: Interpreter, obj: V.Value, **changes: V.Value) -> V.Value:
    """dataclasses.replace: another object of the class, some fields changed."""
    if isinstance(obj, V.Data) and dataclasses.is_dataclass(obj.cls):
        names = [f.name for f in dataclasses.fields(obj.cls) if f.init and f.name not in changes]
        kept = {name: get_attribute(it, obj, name) for name in names}
        return calls.call(it, V.Known(obj.cls), (), {**kept, **changes})
    if not (isinstance(obj, V.Ref) and obj.cls is not None and dataclasses.is_dataclass(obj.cls)):
        raise it.failure(
            errors.TypeMismatchError, f"replace() needs a dataclass, not {V.describe(obj)}"
        )
    content = it.content(obj.root)
    given = {f.name: content[f.name] for f in dataclasses.fields(obj.cls) if f.init}
    return calls.call(it, V.Known(obj.cls), (), {**given, **changes})


@handles(dataclasses.asdict)
def asdict(it: Interpreter, obj: V.Value) -> V.Value:
    """dataclasses.asdict: a dict of copies of the fields, dataclasses in them as dicts too."""
    return _as_fields(it, obj, "asdict", lambda fields: it.new_ref("dict", fields))


@handles(dataclasses.astuple)
def astuple(it: Interpreter, obj: V.Value) -> V.Value:
    """dataclasses.astuple: a tuple of copies of the fields, dataclasses in them as tuples too."""
    return _as_fields(it, obj, "astuple", lambda fields: V.Tuple(tuple(fields.values())))


def _as_fields(
    it: Interpreter, obj: V.Value, name: str, made: Callable[[dict[str, V.Value]], V.Value]
) -> V.Value:
    def copied(value: V.Value, around: tuple[type, ...]) -> V.Value:
        value = lists.of_field(it, value)
        cls = _dataclass_of(value)
        if cls is not None and cls not in around:  # a node in one of its class may have no end
            names = [f.name for f in dataclasses.fields(cls)]
            inside = (*around, cls) if isinstance(value, V.Data) else around
            return made({n: copied(get_attribute(it, value, n), inside) for n in names})
        match value:
            case V.Tuple(items, kind):
                return V.Tuple(tuple(copied(i, around) for i in items), kind)
            case V.Ref(root) if root.kind == "dict":
                content = it.content(root)
                return it.new_ref("dict", {k: copied(v, around) for k, v in content.items()})
            case V.Ref(root) if root.kind == "list":
                content = it.content(root)
                if isinstance(content, tuple):
                    return it.new_ref("list", tuple(copied(v, around) for v in content))
                if not L.pools_of(content.template):
                    return copying.deepcopy(it, value)
            case V.ArrayRef() | V.Known() | V.Scalar() | V.Text():
                return copying.deepcopy(it, value)
        raise it.failure(
            errors.UnsupportedOperationError, f"{name}() cannot copy {V.describe(value)}",
            hints=("name the fields that you need: {'x': obj.x, ...}",),
        )

    if _dataclass_of(obj) is None:
        raise it.failure(
            errors.TypeMismatchError, f"{name}() needs a dataclass, not {V.describe(obj)}"
        )
    return copied(obj, ())


def _dataclass_of(value: V.Value) -> Any:
    """The class of an object of a dataclass; None for other values."""
    cls = value.cls if isinstance(value, (V.Ref, V.Data)) else None
    return cls if cls is not None and dataclasses.is_dataclass(cls) else None
