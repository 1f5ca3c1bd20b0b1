"""The `operator` module, `functools.wraps` and `super` as handlers.

In: objects of these modules, and instances of `operator.itemgetter` and its kin. Out: entries in
the table of names, and what a call of such an instance calls.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.attributes import BoundSuper, put_attribute
from pyrelay.infer.calls import call
from pyrelay.infer.flow.truth import truth
from pyrelay.infer.in_place import inplace
from pyrelay.infer.in_python import getters, lists
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.builtins import int_, len_
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.operators import binary, compare, unary

_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    "concat": "+", "pow": "**",
}
_COMPARISONS = {
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "is_": "is",
    "is_not": "is not",
}

for _name, _symbol in _SYMBOLS.items():
    handles(getattr(operator, _name))(lambda it, a, b, s=_symbol: binary(it, s, a, b))
    _inplace = getattr(operator, "i" + _name.rstrip("_"))
    handles(_inplace)(lambda it, a, b, s=_symbol: inplace(it, s, a, b))
for _name, _symbol in _COMPARISONS.items():
    handles(getattr(operator, _name))(lambda it, a, b, s=_symbol: compare(it, s, a, b))
for _name, _symbol in {"neg": "-", "pos": "+", "inv": "~", "not_": "not"}.items():
    handles(getattr(operator, _name))(lambda it, a, s=_symbol: unary(it, s, a))
handles(operator.invert)(lambda it, a: unary(it, "~", a))
handles(operator.truth)(lambda it, a: truth(it, a))
for _name, _symbol in {"is_none": "is", "is_not_none": "is not"}.items():
    if hasattr(operator, _name):  # since 3.14
        handles(getattr(operator, _name))(lambda it, a, s=_symbol: compare(it, s, a, V.NONE))
handles(operator.contains)(lambda it, a, b: compare(it, "in", b, a))


@handles(operator.getitem)
def getitem(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """a[b]."""
    from pyrelay.infer.arrays.subscripts import get_item

    return get_item(it, a, b)


@handles(operator.setitem)
def setitem(it: Interpreter, a: V.Value, b: V.Value, c: V.Value) -> V.Value:
    """a[b] = c."""
    from pyrelay.infer.arrays.subscripts import set_item

    set_item(it, a, b, c)
    return V.NONE


@handles(operator.delitem)
def delitem(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """del a[b]."""
    call(it, V.Known(getters.delete), (a, b), {})
    return V.NONE


@handles(operator.index)
def index(it: Interpreter, a: V.Value) -> V.Value:
    """operator.index: an int as it is, that of an array without axes too."""
    ty = V.tensor_type(a)
    whole = ty is not None and (ty.dtype.kind in "iu" or (ty.dtype.kind == "b" and ty.weak))
    if ty is None or ty.shape or not whole:
        raise it.failure(
            errors.TypeMismatchError, f"{V.describe(a)} cannot be interpreted as an integer"
        )
    return int_(it, a)


handles(operator.countOf)(lambda it, a, b: call(it, V.Known(lists.count_of), (a, b), {}))
handles(operator.indexOf)(lambda it, a, b: call(it, V.Known(getters.place), (a, b), {}))
handles(operator.length_hint)(lambda it, obj, default=V.Known(0): len_(it, obj))
if hasattr(operator, "call"):  # Python 3.11
    handles(operator.call)(
        lambda it, obj, *args, **keywords: call(it, obj, args, keywords)
    )


# -- getters ---------------------------------------------------------------------------------------

_GETTERS: dict[Any, Callable[..., Any]] = {
    operator.itemgetter: getters.items, operator.attrgetter: getters.attributes,
    operator.methodcaller: getters.method,
}


def getter(fn: Any) -> V.Value | None:
    """What an instance of `operator.itemgetter` and its kin does; None for anything else."""
    if type(fn) not in _GETTERS:
        return None
    if isinstance(fn, operator.methodcaller):
        reduced: Any = fn.__reduce__()
        made, args = reduced[:2]
        keywords = dict(getattr(made, "keywords", {}))
        given = tuple(map(V.Known, (*getattr(made, "args", ()), *args)))
        return _made(operator.methodcaller, given, {k: V.Known(v) for k, v in keywords.items()})
    return _made(type(fn), tuple(map(V.Known, fn.__reduce__()[1])), {})


def _made(cls: Any, args: tuple[V.Value, ...], keywords: dict[str, V.Value]) -> V.Value:
    if cls is operator.methodcaller:
        name, *others = args
        return V.Partial(
            V.Known(getters.method), (name, V.Tuple(tuple(others))), tuple(keywords.items())
        )
    return V.Partial(V.Known(_GETTERS[cls]), (V.Tuple(args),), ())


for _cls in _GETTERS:
    handles(_cls)(lambda it, *args, _cls=_cls, **keywords: _made(_cls, args, keywords))


# -- functions and classes -------------------------------------------------------------------------


@handles(functools.update_wrapper)
def update_wrapper(
    it: Interpreter, wrapper: V.Value, wrapped: V.Value, *_: V.Value, **__: V.Value
) -> V.Value:
    """functools.update_wrapper, and so functools.wraps: names and documentation do not matter."""
    return wrapper


@handles(super)
def super_(it: Interpreter, cls: V.Value, obj: V.Value) -> V.Value:
    """super(cls, obj)."""
    owner = it.static(cls, "the class of super()")
    own = class_behind(obj)
    if own is None or not issubclass(own, owner):
        raise it.failure(
            errors.TypeMismatchError, "super(type, obj): obj must be an instance or subtype of type"
        )
    return V.Tuple((V.Known(owner), obj), BoundSuper)


@handles(object.__init__)
def object_init(it: Interpreter, obj: V.Value) -> V.Value:
    """object.__init__(obj): nothing."""
    return V.NONE


@handles(object.__setattr__)
def object_setattr(it: Interpreter, obj: V.Value, name: V.Value, value: V.Value) -> V.Value:
    """object.__setattr__(obj, name, value), past what the class says about it."""
    if not (isinstance(obj, (V.Ref, V.Data)) and obj.cls is not None):
        raise it.failure(
            errors.TypeMismatchError, f"attributes of {V.describe(obj)} cannot be assigned"
        )
    put_attribute(it, obj, it.static(name, "the name of an attribute"), value)
    return V.NONE


@handles(setattr)
def setattr_(it: Interpreter, obj: V.Value, name: V.Value, value: V.Value) -> V.Value:
    """setattr(obj, name, value)."""
    from pyrelay.infer.attributes import set_attribute

    set_attribute(it, obj, it.static(name, "the name of an attribute"), value)
    return V.NONE


def class_behind(obj: V.Value) -> type | None:
    """The class whose order of bases `super` goes along: of an object, or a class itself."""
    match obj:
        case V.Known(cls) if isinstance(cls, type):
            return cls
        case V.Ref(_, cls) | V.Tuple(_, cls):
            return cls
    return None
