"""Attributes, methods, construction of objects, and Python objects that the program captures."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import operator
import types as python_types
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.annotations import signature_of
from pyrelay.infer import class_attributes, kinds, random_state, users_lines
from pyrelay.infer import values as V
from pyrelay.infer.generated_inits import bound, has_generated
from pyrelay.infer.generated_inits import made as made_by_fields
from pyrelay.infer.guards import ABSENT, NameGuard
from pyrelay.infer.in_python.attributes import AttributeDict
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.datatypes import EVERYWHERE
from pyrelay.infer.objects import is_constant_object, is_writer
from pyrelay.ir import types


class BoundSuper(tuple):  # type: ignore[type-arg]
    """Marks a Tuple value that is `super(cls, obj)`: the class and the object."""

    __slots__ = ()


def captured(it: Interpreter, value: Any, source: NameGuard | None = None) -> V.Value:
    """The abstract value of a Python object found outside the program.

    Arrays, containers and objects become hidden arguments of the program: they are never baked in.
    """
    if isinstance(value, np.ndarray) or not is_constant_object(value):
        if isinstance(value, tuple):
            if source is not None:
                it.program.guards.record(replace(source, by_value=False))
            items = tuple(captured(it, v) for v in value)
            if all(isinstance(i, V.Known) for i in items) and type(value) is tuple:
                return V.Known(value)
            return V.Tuple(items, type(value) if hasattr(value, "_fields") else None)
        make = it.program.new_leaf
        if make is None:
            raise it.failure(
                errors.UnsupportedOperationError,
                f"an object of class {type(value).__name__} cannot be used here",
            )
        return make(it, value, source)
    if source is not None:
        it.program.guards.record(source)
    return V.Known(value)


def read_name(it: Interpreter, scope: str, name: str) -> V.Value:
    """The value of a name outside the function: global, builtin, or free variable."""
    owner = it.frame.owner
    if scope in ("free", "cell"):
        cell = owner.__closure__[owner.__code__.co_freevars.index(name)]
        if scope == "cell":
            return V.Known(class_attributes.variable_in(cell, name))
        kept = class_attributes.assigned_in(it, cell, name)
        if kept is not None:
            return get_attribute(it, kept, name)
        try:
            value = cell.cell_contents
        except ValueError:
            raise it.failure(
                errors.UnboundVariableError,
                f"{name!r} is used before the enclosing function has set it",
            ) from None
        return captured(it, value, NameGuard("cell", cell, name, value, _by_value(value)))
    namespace = owner.__globals__
    module = class_attributes.variables_of(namespace)
    if scope == "module":
        return V.Known(module)
    kept = class_attributes.assigned(it, module, name)
    if kept is not None:
        return get_attribute(it, kept, name)
    if name in namespace and is_our_own(it):
        return captured(it, namespace[name])
    if name in namespace:
        value = namespace[name]
        guard = NameGuard("item", namespace, name, value, _by_value(value))
        return captured(it, value, guard)
    builtins = namespace.get("__builtins__", __builtins__)
    table = builtins if isinstance(builtins, dict) else vars(builtins)
    if name in table:
        if not is_our_own(it):
            it.program.guards.record(NameGuard("absent", namespace, name, ABSENT, False))
            it.program.guards.record(NameGuard("item", table, name, table[name], False))
        return V.Known(table[name])
    raise _undefined(it, name, [*namespace, *table])


def is_our_own(it: Interpreter) -> bool:
    """True in NumPy's functions as pyrelay spells them in Python: what they read stays."""
    return of_pyrelay(it.frame.owner)


def of_pyrelay(function: Any) -> bool:
    """True for a function of this package."""
    return str(function.__globals__.get("__name__")).startswith("pyrelay.")


#: Modules that numerical code forgets to import, by the names that it gives them.
_MODULES = {
    "np": "numpy as np", "pyrelay": "pyrelay",
    **{name: name for name in ("math", "cmath", "itertools", "functools", "operator", "random",
                               "collections", "heapq", "bisect", "time", "numpy", "copy")},
}  # fmt: skip


def _undefined(it: Interpreter, name: str, known: Sequence[str]) -> errors.PyrelayError:
    import difflib

    own = [v.name for v in it.frame.env]
    close = difflib.get_close_matches(name, [*own, *known], n=1)
    hints = (f"did you mean {close[0]!r}?",) if close else ()
    if name in _MODULES:
        hints = (f"import {_MODULES[name]} at the top of the file",)
    return it.failure(errors.UndefinedNameError, f"name {name!r} is not defined", hints=hints)


def _by_value(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, str, bytes, np.generic, tuple, frozenset))


def _node_unless_none(it: Interpreter, value: V.Union, name: str) -> V.Data | None:
    """The node that a value is where it is not None, with an attribute that None has not: it is one
    from here on, as the program raises otherwise. None if it may be anything else."""
    from pyrelay.infer.flow.effects import raise_where
    from pyrelay.infer.flow.narrowing import keep

    alive = [(k, value.cases[k]) for k in value.alive]
    nodes = [(k, case) for k, case in alive if isinstance(case, V.Data)]
    if it.guarded or len(alive) != 2 or len(nodes) != 1 or hasattr(None, name):
        return None
    (number, node), = nodes
    (other,) = (k for k, _ in alive if k != number)
    known = name in node.schema.of(node.kind) or hasattr(node.cls, name)
    if value.cases[other] != V.NONE or not known:
        return None
    message = f"'NoneType' object has no attribute {name!r}"
    raise_where(it, it.atom(it.call("equal", value.tag, other)), AttributeError, V.Known(message))
    keep(it, ((value.tag, frozenset((number,))),))
    return node


def get_attribute(it: Interpreter, obj: V.Value, name: str) -> V.Value:
    """`obj.name`. Raises AttributeMissingError, with the nearest names, if there is none."""
    from pyrelay.infer.flow import unset

    if isinstance(obj, V.Scalar) and obj.kinds:
        obj = kinds.told_apart(it, obj)
    if name in ("__iter__", "__next__"):
        from pyrelay.infer.flow.generators import is_iterator

        if is_iterator(obj):
            return V.Partial(V.Known(_OPERATIONS[name]), (obj,), ())
    match obj:
        case V.Union():
            from pyrelay.infer.flow.unions import distribute

            node = _node_unless_none(it, obj, name)
            if node is not None:
                return get_attribute(it, node, name)
            return distribute(
                it, obj, lambda case: get_attribute(it, case, name), lambda c: getattr(c, name),
                lambda case: _absent(it, case, name),
            )
        case V.Data():
            from pyrelay.infer.nodes import trees

            return trees.attribute(it, obj, name)
        case V.Known(v) if types.of_scalar(v) is None:
            return _known_attribute(it, v, name)
        case V.Ref(_, cls) if cls in random_state.CLASSES:
            from pyrelay.infer.names.random import method_of

            return method_of(it, obj, name)
        case V.Ref(root, cls) if cls is not None:
            content = it.content(root)
            if name in content:
                value: V.Value = content[name]
                if root.kind == "object" and unset.may_be_unset(value):
                    return unset.resolved(it, obj, cls, name, value)
                return value
            if name == "__class__":
                return V.Known(cls)
            if name == "__dict__":
                return dict_of_attributes(it, obj)
            return class_attribute(it, obj, cls, name)
        case V.Tuple((V.Known(after), inner), cls) if cls is BoundSuper:
            return _super_attribute(it, after, inner, name)
        case V.Tuple(items, cls) if cls is not None and name in getattr(cls, "_fields", ()):
            return items[cls._fields.index(name)]  # type: ignore[attr-defined]
        case V.Tuple(_, cls) if (
            cls is not None and hasattr(cls, name) and name not in ("_replace", "_asdict")
        ):
            return class_attribute(it, obj, cls, name)
    from pyrelay.infer import methods
    from pyrelay.infer.names.builtins import class_of, type_

    found = methods.attribute(it, obj, name)
    if found is not None:
        return found
    if isinstance(obj, V.Items) and obj.cls is list and hasattr(list, name):
        from pyrelay.infer.containers.lists_in_nodes import let_grow

        let_grow(it, obj)
    if isinstance(obj, V.Items) and obj.cls is set and hasattr(set, name):
        from pyrelay.infer.nodes.sets_of_nodes import outgrown

        raise outgrown(it, f"asked for its method {name!r}")
    if name == "__class__":
        return type_(it, obj)
    if name == "__self__" and isinstance(obj, V.Method):
        return obj.receiver
    operation = _OPERATIONS.get(name)
    if operation is not None and hasattr(class_of(obj), name):
        return V.Partial(V.Known(operation), (obj,), ())
    raise _missing(it, obj, name, methods.names_of(obj))


def dict_of_attributes(it: Interpreter, obj: V.Value) -> V.Value:
    """`obj.__dict__`, of an object of the user's: what stands for it."""
    from pyrelay.infer.calls import call

    cls: Any = obj.cls  # type: ignore[union-attr]
    if not cls.__dictoffset__:
        raise _missing(it, obj, "__dict__", ())
    return call(it, V.Known(AttributeDict), (obj,), {})


_OPERATIONS: dict[str, Any] = {
    "__contains__": operator.contains, "__delitem__": operator.delitem,
    "__getitem__": operator.getitem, "__iter__": iter, "__len__": len, "__next__": next,
    "__reversed__": reversed, "__setitem__": operator.setitem,
}  # fmt: skip
"""What methods do that Python calls for an operator, as functions, by their names."""

_INSTEAD = {
    "strides": "only the running program knows how this array lies: x.copy().strides",
    "base": "ask 'x is y'",
    "hex": "return the number, and write it outside of the compiled function",
    "as_integer_ratio": "np.frexp(x) gives a fraction and an exponent of 2",
    "tobytes": "write tuple(x.ravel().tolist()) for a key of a dict or set; for bytes, return the "
               "array, and take them outside of the compiled function",
}
"""What to write instead of what is not compiled of the objects of Python's and NumPy's classes."""


def _missing(
    it: Interpreter, obj: V.Value, name: str, known: Sequence[str]
) -> errors.PyrelayError:
    import difflib

    from pyrelay.infer.flow.handling import catches, raise_to_handler
    from pyrelay.infer.names.builtins import class_of, is_of_builtin_class

    if catches(it, AttributeError) and not is_of_builtin_class(obj, name):
        cls = getattr(class_of(obj), "__name__", "object")
        message = f"{cls!r} object has no attribute {name!r}"
        raise_to_handler(it, AttributeError, (V.Known(message),))
    if is_of_builtin_class(obj, name):
        return it.failure(
            errors.AttributeMissingError,
            f"{name!r} of {V.describe(obj)} is not compiled",
            hints=(_INSTEAD.get(name, users_lines.ELSEWHERE),),
        )
    close = difflib.get_close_matches(name, [each for each in known if each != name], n=1)
    hints = (f"did you mean {close[0]!r}?",) if close else ()
    return it.failure(
        errors.AttributeMissingError, f"{V.describe(obj)} has no attribute {name!r}", hints=hints
    )


def _absent(it: Interpreter, obj: V.Value, name: str) -> Exception | None:
    """What Python raises where an object of the user's has no attribute of that name."""
    if not (isinstance(obj, V.Ref) and obj.root.kind == "object" and obj.cls is not None):
        return None
    if name in it.content(obj.root) or hasattr(obj.cls, name) or hasattr(obj.cls, "__getattr__"):
        return None
    return AttributeError(f"{obj.cls.__name__!r} object has no attribute {name!r}")


def _known_attribute(it: Interpreter, owner: Any, name: str) -> V.Value:
    if isinstance(owner, class_attributes.Variables):  # of `count += 1`
        return read_name(it, "global", name)
    if isinstance(owner, class_attributes.Variable):
        return read_name(it, "free", name)
    owns = isinstance(owner, (type, python_types.FunctionType))
    kept = class_attributes.assigned(it, owner, name) if owns else None
    if kept is not None:
        return get_attribute(it, kept, name)
    try:
        value = getattr(owner, name)
    except AttributeError:
        known = [n for n in dir(owner) if not n.startswith("_")]
        raise _missing(it, V.Known(owner), name, known) from None
    fixed = isinstance(owner, (str, bytes, np.dtype, np.generic)) or is_writer(owner)
    if not (is_our_own(it) or fixed):
        if isinstance(value, python_types.MethodType):  # made anew by every look
            it.program.guards.record(NameGuard("function", owner, name, value.__func__, False))
            return captured(it, value)
        guard = NameGuard("attribute", owner, name, value, _by_value(value))
        return captured(it, value, guard)
    return captured(it, value)


def class_attribute(it: Interpreter, obj: V.Value, cls: type, name: str) -> V.Value:
    """A method, property or class attribute of an instance."""
    found = of_class(it, cls, name)
    if found is None or isinstance(found, python_types.MemberDescriptorType):
        fallback = of_class(it, cls, "__getattr__")
        if fallback is not None:
            from pyrelay.infer.calls import call

            return call(it, V.Known(fallback), (obj, V.Known(name)), {})
        raise _missing(it, obj, name, [n for n in dir(cls) if not n.startswith("__")])
    own = _member(it, obj, cls, found, name)
    return _known_attribute(it, cls, name) if own is None else own


def _member(
    it: Interpreter, obj: V.Value, cls: type, found: Any, name: str
) -> V.Value | None:
    """What a class's member is when it is looked up on an instance; None for plain values."""
    from pyrelay.infer.calls import call

    if isinstance(found, property):
        return call(it, V.Known(found.fget), (obj,), {})
    if isinstance(found, functools.cached_property):
        value = call(it, V.Known(found.func), (obj,), {})
        if isinstance(obj, V.Ref):
            content = {**it.content(obj.root), name: value}
            it.heap.write(obj.root, content, it.let.span if it.let else None)
        return value
    if isinstance(found, staticmethod):
        return V.Known(found.__func__)
    if isinstance(found, classmethod):
        return V.Method(V.Known(cls), name, found.__func__)
    if isinstance(found, python_types.FunctionType) or hasattr(found, "__pyrelay__"):
        return V.Method(obj, name, found)
    if hasattr(found, "cache_info") and hasattr(found, "__wrapped__"):
        return V.Method(obj, name, found.__wrapped__)
    if hasattr(type(found), "__get__") and not isinstance(found, type):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{cls.__name__}.{name} is a descriptor of class {type(found).__name__}, which is not "
            "compiled",
            hints=("use a property or a method",),
        )
    return None


def _super_attribute(it: Interpreter, after: type, obj: V.Value, name: str) -> V.Value:
    """`super(after, obj).name`: what the bases behind `after` say."""
    from pyrelay.infer.names.operator import class_behind

    own = class_behind(obj)
    assert own is not None
    order = own.__mro__
    for cls in order[order.index(after) + 1 :]:
        if name not in vars(cls):
            continue
        found = of_class(it, cls, name)
        if cls is object or isinstance(found, python_types.WrapperDescriptorType):
            return V.Method(obj, name, found)
        if isinstance(obj, V.Known):  # inside a class method
            inner = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
            bound = isinstance(found, classmethod)
            return V.Method(obj, name, inner) if bound else V.Known(inner)
        member = _member(it, obj, own, found, name)
        return captured(it, found) if member is None else member
    raise _missing(it, obj, name, dir(order[min(order.index(after) + 1, len(order) - 1)]))


def of_class(it: Interpreter, cls: type, name: str) -> Any:
    """What a class has under a name, unbound, None if nothing; that it stays so is a guard."""
    found = inspect.getattr_static(cls, name, ABSENT)
    if isinstance(found, classmethod):
        it.program.guards.record(NameGuard("function", cls, name, found.__func__, False))
    elif found is ABSENT or callable(found) or isinstance(found, (property, staticmethod)):
        now = getattr(cls, name, ABSENT)
        it.program.guards.record(NameGuard("attribute", cls, name, now, False))
    return None if found is ABSENT else found


def set_attribute(it: Interpreter, obj: V.Value, name: str, value: V.Value) -> None:
    """`obj.name = value` of an object."""
    from pyrelay.infer.nodes.building import is_inside
    from pyrelay.infer.nodes.plans import NeedsPool

    if obj == V.NONE:
        raise _missing(it, obj, name, ())
    if name == "__dict__":
        raise it.failure(
            errors.UnsupportedOperationError,
            "an object gets another __dict__ here, which is not compiled",
            hints=("self.__dict__.update(...) gives it these attributes",),
        )
    own = isinstance(obj, (V.Ref, V.Data)) and obj.cls is not None
    if own and _sets_itself(it, obj, name, value):  # type: ignore[arg-type]
        return
    if isinstance(obj, V.Ref) and obj.cls is not None:
        parameters = getattr(obj.cls, "__dataclass_params__", None)
        if parameters is not None and parameters.frozen:
            from pyrelay.infer.flow import handling

            error = it.failure(
                errors.AttributeMissingError,
                f"{obj.cls.__name__} is a frozen dataclass: its fields cannot be assigned",
                hints=("use dataclasses.replace(...)",),
            )
            said = f"cannot assign to field {name!r}"
            raise handling.certain(it, error, dataclasses.FrozenInstanceError, said)
        if not it.program.unfolds and is_inside(it, value, obj.cls) and (
            it.program.families.of(obj.cls) is None
        ):
            raise NeedsPool(EVERYWHERE.declare([obj.cls]))
        put_attribute(it, obj, name, value)  # of a node: it is being made
        return
    if isinstance(obj, V.Data):
        put_attribute(it, obj, name, value)
        return
    if isinstance(obj, V.ArrayRef):
        from pyrelay.infer import methods
        from pyrelay.infer.arrays import assigned_shapes

        if name == "shape":
            assigned_shapes.assign(it, obj, value)
            return
        if methods.set_attribute(it, obj, name, value):
            return
    if isinstance(obj, V.Known) and isinstance(obj.value, class_attributes.Owner):
        class_attributes.assign(it, obj.value, name, value)
        return
    raise it.failure(
        errors.UnsupportedOperationError,
        f"attributes of {V.describe(obj)} cannot be assigned in a compiled function",
    )


def put_attribute(it: Interpreter, obj: V.Ref | V.Data, name: str, value: V.Value) -> None:
    """`object.__setattr__(obj, name, value)`."""
    if isinstance(obj, V.Data):
        from pyrelay.infer.nodes import trees

        trees.set_attribute(it, obj, name, value)
        return
    if obj.cls is not None and issubclass(obj.cls, BaseException):
        from pyrelay.infer.flow.effects import is_complete

        if is_complete(it, obj):
            raise it.failure(
                errors.UnsupportedOperationError,
                f"attributes of a {obj.cls.__name__} are assigned by its __init__ only",
                hints=("give what it should hold as an argument of the exception",),
            )
    content = {**it.content(obj.root), name: value}
    it.heap.write(obj.root, content, it.let.span if it.let else None)


def _sets_itself(it: Interpreter, obj: V.Ref | V.Data, name: str, value: V.Value) -> bool:
    """Assign by a property's setter or the class's `__setattr__`, if it has one."""
    from pyrelay.infer.calls import call

    assert obj.cls is not None
    own = of_class(it, obj.cls, "__setattr__")
    generated = getattr(obj.cls, "__dataclass_params__", None) is not None
    if isinstance(own, python_types.FunctionType) and not generated:
        call(it, V.Known(own), (obj, V.Known(name), value), {})
        return True
    found = inspect.getattr_static(obj.cls, name, None)
    if isinstance(found, property):
        if found.fset is None:
            raise it.failure(
                errors.AttributeMissingError,
                f"property {name!r} of {obj.cls.__name__!r} object has no setter",
            )
        call(it, V.Known(found.fset), (obj, value), {})
        return True
    slot = isinstance(found, python_types.MemberDescriptorType)
    if not slot and hasattr(type(found), "__set__"):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{obj.cls.__name__}.{name} is a descriptor of class {type(found).__name__}, which is "
            "not compiled",
            hints=("use a property or a method",),
        )
    return False


def call_method(
    it: Interpreter, method: V.Method, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    """Call a looked-up method."""
    from pyrelay.infer import methods
    from pyrelay.infer.calls import call

    if method.function is not None:
        return call(it, V.Known(method.function), (method.receiver, *args), keywords)
    return methods.call(it, method.receiver, method.name, args, keywords)


def construct(
    it: Interpreter, cls: type, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    """An instance of a dataclass, a namedtuple, or a plain Python class."""
    from pyrelay.infer.nodes.building import build, contents, is_inside
    from pyrelay.infer.nodes.plans import NeedsPool

    made = _constructed(it, cls, args, keywords)
    if it.program.families.of(cls) is None:
        parts = () if it.program.unfolds else contents(it, made)
        if any(is_inside(it, part, cls) for part in parts):
            raise NeedsPool(EVERYWHERE.declare([cls]))
        if isinstance(made, V.Ref):
            it.constructing.pop(made.root, None)
        return made
    if isinstance(made, V.Tuple):
        return build(it, cls, dict(zip(cls._fields, made.items, strict=True)))  # type: ignore[attr-defined]
    assert isinstance(made, V.Ref)
    begun = it.constructing.pop(made.root, None)
    return begun if isinstance(begun, V.Data) else build(
        it, cls, it.content(made.root), made.root
    )


def _constructed(
    it: Interpreter, cls: type, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    from pyrelay.infer.calls import call

    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _namedtuple(it, cls, args, keywords)
    if issubclass(cls, BaseException):
        from pyrelay.infer.flow.effects import exception_value

        return exception_value(it, cls, args, keywords)
    if has_generated(cls):
        of_class(it, cls, "__init__")
        return made_by_fields(it, cls, args, keywords)
    if cls.__module__ in ("builtins", "numpy"):
        from pyrelay.infer.calls import unsupported

        raise unsupported(it, cls)
    if issubclass(cls, enum.Enum):
        return _enum_member(it, cls, args)
    if cls.__new__ is not object.__new__:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{cls.__name__} has a __new__, and objects of it cannot be made in a compiled "
            "function",
            hints=("make the object outside and pass it", "or do what it does in __init__"),
        )
    made = it.new_ref("object", {}, cls)
    init = of_class(it, cls, "__init__")
    it.constructing[made.root] = it.builder
    if isinstance(init, python_types.FunctionType):
        call(it, V.Known(init), (made, *args), keywords)
    elif args or keywords:
        from pyrelay.infer.flow import handling

        said = f"{cls.__name__}() takes no arguments"
        raise handling.certain(it, it.failure(errors.SignatureError, said), TypeError, said)
    return made


def _enum_member(it: Interpreter, cls: Any, args: Sequence[V.Value]) -> V.Value:
    """`Enum(value)`: the member of this value."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.flow.unions import distribute
    from pyrelay.infer.in_python.enums import member_of
    from pyrelay.infer.operators import raised

    if len(args) == 1 and isinstance(args[0], V.Union):
        return distribute(it, args[0], lambda case: _enum_member(it, cls, (case,)))
    if len(args) == 1 and not isinstance(args[0], V.Known) and not issubclass(cls, enum.Flag):
        members = V.Known(tuple(cls))
        return call(it, V.Known(member_of), (V.Known(cls), members, *args), {})
    values = [it.static(a, "the value of an enum's member") for a in args]
    try:
        return V.Known(cls(*values))
    except ValueError as error:
        raise raised(it, error) from None
    except TypeError as error:
        raise it.failure(errors.SignatureError, str(error)) from None


def _namedtuple(
    it: Interpreter, cls: Any, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    given = bound(it, cls.__name__, signature_of(cls), args, keywords)
    defaults = cls._field_defaults
    items = tuple(
        given[f] if f in given else captured(it, defaults[f]) for f in cls._fields
    )
    return V.Tuple(items, cls)
