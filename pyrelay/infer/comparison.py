"""Comparison of what is no number: tuples, lists, dicts, sets, objects, and arrays with sequences.

In: an operator and two values. Out: the truth of the comparison as Python defines it: item by item,
the first difference decides an order; methods of a class before everything else.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from pyrelay import errors
from pyrelay.infer import protocols
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.containers import sets, text
from pyrelay.infer.flow import constants
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.flow.narrowing import narrowed
from pyrelay.infer.flow.truth import as_bool, truth
from pyrelay.infer.in_python import ranges
from pyrelay.infer.in_python.lists import (
    equal_lists,
    equal_nodes,
    is_not_behind_node,
    precedes,
    precedes_node,
)
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes import trees
from pyrelay.infer.nodes.datatypes import EVERYWHERE, is_anonymous
from pyrelay.infer.operators import both, compare, raised, unary
from pyrelay.infer.spellings import MIRRORED
from pyrelay.ir import types

_METHODS = {
    "==": "__eq__", "!=": "__eq__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__",
}


def structures(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """`x op y` where not both are numbers or arrays."""
    if isinstance(x, V.Text) or isinstance(y, V.Text):
        return text.compare(it, op, x, y)
    fields = _fields(x, y, op)
    if fields is not None:
        if isinstance(x, V.Data) and isinstance(y, V.Data) and _contain_nodes(it, fields, x, y):
            return _as_nodes(it, op, x, y)
        return structures(it, op, *(V.Tuple(_values_of(it, v, fields)) for v in (x, y)))
    if op in MIRRORED and (_holds_nodes(x) or _holds_nodes(y)):
        return structures(it, op, *(
            V.Tuple(trees.fields(it, v)) if isinstance(v, V.Data) else v for v in (x, y)
        ))
    if isinstance(x, V.Data) or isinstance(y, V.Data):
        decided = protocols.compare(it, op, x, y)
        if decided is not None:
            return decided
        if op in ("==", "!="):
            same = trees.equals(it, x, y)
            return same if op == "==" else unary(it, "not", same)
    elif _is_for_numpy(it, x, y) or _is_for_numpy(it, y, x):
        return _with_array(it, op, x, y)
    sets_compared = sets.binary(it, op, x, y)
    if sets_compared is not None:
        return sets_compared
    own = protocols.compare(it, op, x, y)
    if own is not None:
        return own
    if op in ("==", "!="):
        same = _equal(it, x, y)
        return same if op == "==" else unary(it, "not", same)
    (kind, left), (other, right) = _items(it, x), _items(it, y)
    if kind is other and (_of_run_time_length(left) or _of_run_time_length(right)):
        first, second = (x, y) if op in ("<", ">=") else (y, x)
        before = truth(it, call(it, V.Known(precedes), (first, second), {}))
        return before if op in ("<", ">") else unary(it, "not", before)
    if kind is None or kind is not other or kind is dict:
        raise not_ordered(it, op, x, y)
    lefts, rights = ([functools.partial(narrowed, it, v) for v in vs] for vs in (left, right))
    return _ordered(it, op, lefts, rights)


def not_ordered(it: Interpreter, op: str, x: V.Value, y: V.Value) -> errors.PyrelayError:
    """The error of values of which none is before the other: TypeError in plain Python."""
    from pyrelay.infer.names.builtins import class_of

    classes = class_of(x), class_of(y)
    same = classes[0] is classes[1] and _orders(classes[0])
    if None in classes or same:  # Python may well know an order of these
        return it.failure(
            errors.TypeMismatchError, f"'{op}' cannot compare {V.describe(x)} and {V.describe(y)}"
        )
    first, second = (cls.__name__ for cls in classes if cls is not None)
    text = f"'{op}' not supported between instances of '{first}' and '{second}'"
    return certain(it, it.failure(errors.TypeMismatchError, text), TypeError, text)


def _orders(cls: type | None) -> bool:
    """Whether a class has a method of its own for `<`."""
    return getattr(cls, _METHODS["<"], None) is not getattr(object, _METHODS["<"])


def _is_for_numpy(it: Interpreter, x: V.Value, y: V.Value) -> bool:
    """Whether x is an array, or a number of NumPy's where y is a sequence."""
    ty = V.number_type(x)
    of_numpy = ty is not None and not ty.weak
    return isinstance(x, V.ArrayRef) or (of_numpy and _items(it, y)[0] in (tuple, list))


def _with_array(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """An array, or a number of NumPy's, and a sequence are compared element by element, as in
    NumPy."""
    from pyrelay.infer.names.adapters import to_array

    if any(isinstance(v, V.Range) or _items(it, v)[0] in (tuple, list) for v in (x, y)):
        return compare(it, op, *(
            v if V.tensor_type(v) is not None else to_array(it, v) for v in (x, y)
        ))
    ty = V.tensor_type(y if x == V.NONE else x)
    if V.NONE in (x, y) and op in ("==", "!=") and ty is not None:  # no number is None
        return it.result(it.builder.full(op == "!=", ty.shape, types.bool_))
    raise it.failure(
        errors.TypeMismatchError,
        f"'{op}' cannot compare {V.describe(x)} and {V.describe(y)} element by element",
        hints=("ask 'x is None' or 'isinstance(x, ...)' about the object",),
    )


def _unordered(op: str, value: V.Value) -> str | None:
    """The class of an object, by name, if it has no methods that could order it."""
    cls: type | None = value.cls if isinstance(value, V.Ref | V.Data) else None
    if cls is None or any(
        getattr(cls, _METHODS[o]) is not getattr(object, _METHODS[o]) for o in (op, MIRRORED[op])
    ):
        return None
    return cls.__name__


def _fields(x: V.Value, y: V.Value, op: str) -> tuple[str, ...] | None:
    """The fields that a dataclass's generated comparison looks at, None if it has none."""
    both_objects = isinstance(x, V.Ref | V.Data) and isinstance(y, V.Ref | V.Data)
    cls: Any = x.cls if both_objects else None  # type: ignore[union-attr]
    if cls is None or cls is not y.cls or not dataclasses.is_dataclass(cls):  # type: ignore[union-attr]
        return None
    method = getattr(cls, _METHODS[op], None)
    if not protocols.is_generated(method):  # inherited from object, or the user's own
        return None
    return tuple(f.name for f in dataclasses.fields(cls) if f.compare)


def _contain_nodes(it: Interpreter, fields: tuple[str, ...], *values: V.Value) -> bool:
    """Whether what is compared of objects goes down a tree."""
    return any(_is_of_a_tree(part) for value in values for part in _values_of(it, value, fields))


_ORDERS: dict[str, Callable[..., Any]] = {
    "==": equal_nodes, "<": precedes_node, "<=": is_not_behind_node,
}


def _as_nodes(it: Interpreter, op: str, x: V.Data, y: V.Data) -> V.Value:
    """`x op y` of two nodes of a dataclass, by a function that calls itself for those in them."""
    if op == "!=":
        return unary(it, "not", _as_nodes(it, "==", x, y))
    if op in (">", ">="):
        return _as_nodes(it, MIRRORED[op], y, x)
    return truth(it, call(it, V.Known(_ORDERS[op]), (x, y), {}))


def _is_of_a_tree(value: V.Value) -> bool:
    """Whether a value is a node, several of them, or an object that may contain itself."""
    if isinstance(value, V.Ref):
        return value.cls is not None and EVERYWHERE.of(value.cls) is not None
    return isinstance(value, V.Items) or V.node_of(value) is not None


def _values_of(
    it: Interpreter, value: V.Value, names: tuple[str, ...]
) -> tuple[V.Value, ...]:
    """The values of these fields of an object."""
    if isinstance(value, V.Data):
        return tuple(trees.attribute(it, value, name) for name in names)
    assert isinstance(value, V.Ref)
    content = it.content(value.root)
    return tuple(content[name] for name in names)


def _items(it: Interpreter, value: V.Value) -> tuple[type | None, Any]:
    """The builtin class of a container and its items; None for anything else."""
    match value:
        case V.Tuple(items):
            return tuple, items
        case V.OpenTuple(own):
            return tuple, it.content(own.root)
        case V.Ref(root) if root.kind == "list":
            return list, it.content(root)
        case V.Ref(root) if root.kind == "dict":
            return dict, it.content(root)
        case V.Items(cls=cls):
            return cls, value
        case V.Known(tuple() | list() as known):
            return type(known) if type(known) is list else tuple, tuple(map(V.Known, known))
        case V.Known(dict() as known):
            return dict, {k: V.Known(v) for k, v in known.items()}
    return None, ()


def _of_run_time_length(items: Any) -> bool:
    """Whether only the running program knows how many items a list has, or one of a node."""
    return isinstance(items, V.Growing | V.Items)


def _equal(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    (kind, left), (other, right) = _items(it, x), _items(it, y)
    if kind is other and (_of_run_time_length(left) or _of_run_time_length(right)):
        return truth(it, call(it, V.Known(equal_lists), (x, y), {}))
    if kind is None or kind is not other:
        same = False
        if isinstance(x, V.Ref) and isinstance(y, V.Ref):
            it.program.guards.identity = True
            same = x.root is y.root
        if isinstance(x, V.Range) or isinstance(y, V.Range):
            first, second = V.range_of(x), V.range_of(y)
            if first is not None and second is not None:
                return truth(it, call(it, V.Known(ranges.equal), (first, second), {}))
        return V.Known(same or x is y)
    if len(left) != len(right):
        return V.Known(False)
    if kind is dict:
        if left.keys() != right.keys():
            return V.Known(False)
        left, right = left.values(), [right[k] for k in left]
    result: V.Value = V.Known(True)
    for a, b in zip(left, right, strict=True):
        result = both(it, result, truth(it, compare(it, "==", a, b)))
    return as_bool(it, result)


_TIE = (
    "pyrelay: two tuples are equal up to the trees in them, and a compiled function does not order "
    "trees: put a number of its own into each tuple, before its tree"
)


def _holds_nodes(value: V.Value) -> bool:
    """True for a tuple that is a node, and for a value that may be one."""
    if isinstance(value, V.Union):
        return any(map(_holds_nodes, value.possible))
    return isinstance(value, V.Data) and is_anonymous(value.cls)


def _may_hold_more(value: V.Value) -> TypeGuard[V.Union]:
    """True for a value that may be a node, or something else, which has an order."""
    return isinstance(value, V.Union) and _holds_nodes(value) and not all(
        map(_holds_nodes, value.possible)
    )


def of_cases(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """A comparison of two values, of which one at least is one of several cases, where that need
    not be made case by case; else None."""
    equal = constants.same(it, x, y) if op in ("==", "!=") else None
    if equal is None:
        return _tuples_of_cases(it, op, x, y)
    return equal if op == "==" else unary(it, "not", equal)


def _tuples_of_cases(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """The order of two tuples, of which one at least is one of several cases: item by item.

    An item of several cases is read in each of them, so what is compiled grows with the number of
    cases, where comparing each case of one with each of the other would grow with its square. None
    for an operator that is no order, and for what are not all tuples of one length.
    """
    lengths = {_length(case) for v in (x, y) for case in _cases(v)}
    if op not in MIRRORED or len(lengths) > 1 or None in lengths or lengths == {0}:
        return None
    (count,) = lengths
    assert count is not None
    left, right = (
        [functools.partial(_item_of, it, v, k) for k in range(count)] for v in (x, y)
    )
    return _ordered(it, op, left, right)


def _cases(value: V.Value) -> tuple[V.Value, ...]:
    return value.possible if isinstance(value, V.Union) else (value,)


def _length(value: V.Value) -> int | None:
    """How many items a tuple has that may be a node; None for anything else."""
    if isinstance(value, V.Data):
        return len(value.cls._fields) if is_anonymous(value.cls) else None
    if isinstance(value, V.Tuple):
        return len(value.items) if value.cls is None else None
    known = isinstance(value, V.Known) and type(value.value) is tuple
    return len(value.value) if known else None  # type: ignore[union-attr]


def _item_of(it: Interpreter, value: V.Value, k: int) -> V.Value:
    """An item of a tuple, which may be one of several cases."""
    from pyrelay.infer.flow.unions import distribute

    value = narrowed(it, value)
    if isinstance(value, V.Union):
        return distribute(it, value, lambda case: _item_of(it, case, k))
    if isinstance(value, V.Data):
        return trees.attribute(it, value, value.cls._fields[k])
    item: V.Value = _items(it, value)[1][k]
    return item


def _ordered(
    it: Interpreter, op: str, left: Sequence[Callable[[], V.Value]],
    right: Sequence[Callable[[], V.Value]], tied: bool = False,
) -> V.Value:
    """The order of two sequences: that of the first items that differ, else of the lengths.

    Items are looked at where those before them are equal, and not before: whether they are, if only
    the running program knows (`tied`), decides whether items that have no order raise.
    """
    from pyrelay.infer.flow.control import branch
    from pyrelay.infer.flow.unions import distribute

    if not left or not right:
        return compare(it, op, V.Known(len(left)), V.Known(len(right)))
    a, b = left[0](), right[0]()

    def of_case(x: V.Value, y: V.Value) -> V.Value:
        return _ordered(it, op, [lambda: x, *left[1:]], [lambda: y, *right[1:]], True)

    if _may_hold_more(a):
        return distribute(it, a, lambda case: of_case(case, b))
    if _may_hold_more(b):
        return distribute(it, b, lambda case: of_case(a, case))
    if _holds_nodes(a) or _holds_nodes(b):
        raise raised(it, NotImplementedError(_TIE))
    same = truth(it, compare(it, "==", a, b))

    def rest() -> V.Value:
        return _ordered(it, op, left[1:], right[1:], tied or not isinstance(same, V.Known))

    def first() -> V.Value:
        names = [_unordered(op, v) for v in (a, b)]
        if all(names):
            message = f"{op!r} not supported between instances of {names[0]!r} and {names[1]!r}"
            raise raised(it, TypeError(message))
        return truth(it, _at_a_tie(it, op, a, b) if tied else compare(it, op, a, b))

    if isinstance(same, V.Known):
        return rest() if same.value else first()
    return branch(it, it.atom(same), lambda: [rest()], lambda: [first()])[0]


def _at_a_tie(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """`x op y`, which raises in the running program where values have no order in Python."""
    from pyrelay.infer.flow.unions import distribute

    x, y = narrowed(it, x), narrowed(it, y)
    if isinstance(x, V.Union):
        return distribute(it, x, lambda case: _at_a_tie(it, op, case, y))
    if isinstance(y, V.Union):
        return distribute(it, y, lambda case: _at_a_tie(it, op, x, case))
    try:
        return compare(it, op, x, y)
    except errors.TypeMismatchError:
        first, second = _class_of(it, x), _class_of(it, y)
        if first is second and (isinstance(x, V.Items) or isinstance(y, V.Items)):
            raise raised(it, NotImplementedError(_TIE)) from None
        if None in (first, second) or (first is second and first is not type(None)):
            raise
        raise raised(it, TypeError(
            f"{op!r} not supported between instances of {first.__name__!r} and {second.__name__!r}"
        )) from None


def _class_of(it: Interpreter, value: V.Value) -> Any:
    """Python's class of a value that is no union, None if it is not at hand."""
    from pyrelay.infer.flow.unions import sample

    if _length(value) is not None or isinstance(value, V.OpenTuple):
        return tuple
    if isinstance(value, V.Items):
        return value.cls
    like = sample(it, value)
    return None if like is NotImplemented else type(like)
