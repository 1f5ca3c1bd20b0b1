"""Functions of Python's `dataclasses`.

In: their arguments as abstract values. Out: entries in the table of names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from pyrelay import errors
from pyrelay.infer import calls
from pyrelay.infer import values as V
from pyrelay.infer.in_python.lists import compared_fields, items_of_node
from pyrelay.infer.interpreter import Interpreter
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
        from pyrelay.infer.attributes import get_attribute

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
    def copied(value: V.Value) -> V.Value:
        match value:
            case V.ArrayRef():
                return it.new_array(it.atom(value))
            case V.Tuple(items, cls):
                return V.Tuple(tuple(map(copied, items)), cls)
            case V.Ref(root, cls) if cls is not None and dataclasses.is_dataclass(cls):
                content = it.content(root)
                return made({f.name: copied(content[f.name]) for f in dataclasses.fields(cls)})
            case V.Ref(root) if root.kind == "dict":
                return it.new_ref("dict", {k: copied(v) for k, v in it.content(root).items()})
            case V.Ref(root) if root.kind == "list" and isinstance(it.content(root), tuple):
                return it.new_ref("list", tuple(map(copied, it.content(root))))
            case V.Known() | V.Scalar():
                return value
        raise it.failure(
            errors.UnsupportedOperationError, f"{name}() cannot copy {V.describe(value)}",
            hints=("name the fields that you need: {'x': obj.x, ...}",),
        )

    if not (isinstance(obj, V.Ref) and obj.cls is not None and dataclasses.is_dataclass(obj.cls)):
        raise it.failure(
            errors.TypeMismatchError, f"{name}() needs a dataclass, not {V.describe(obj)}"
        )
    return copied(obj)
