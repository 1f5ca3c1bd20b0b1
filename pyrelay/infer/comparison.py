"""Comparison of what is no number: tuples, lists, dicts, sets, objects, and arrays with sequences.

In: an operator and two values. Out: the truth of the comparison as Python defines it: item by item,
the first difference decides an order; methods of a class before everything else.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from pyrelay import errors
from pyrelay.infer import protocols
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.containers import sets, text
from pyrelay.infer.flow.truth import as_bool, truth
from pyrelay.infer.in_python.lists import equal_lists, precedes
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes import trees
from pyrelay.infer.nodes.datatypes import EVERYWHERE, is_anonymous
from pyrelay.infer.operators import both, compare, raised, unary

_METHODS = {
    "==": "__eq__", "!=": "__eq__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__",
}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def structures(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """`x op y` where not both are numbers or arrays."""
    if isinstance(x, V.Text) or isinstance(y, V.Text):
        return text.compare(it, op, x, y)
    fields = _fields(it, x, y, op)
    if fields is not None:
        return structures(it, op, *(V.Tuple(_values_of(it, v, fields)) for v in (x, y)))
    if op in _MIRRORED and (_holds_nodes(x) or _holds_nodes(y)):
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
    elif isinstance(x, V.ArrayRef) or isinstance(y, V.ArrayRef):
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
    if kind is other and (isinstance(left, V.Growing) or isinstance(right, V.Growing)):
        first, second = (x, y) if op in ("<", ">=") else (y, x)
        before = truth(it, call(it, V.Known(precedes), (first, second), {}))
        return before if op in ("<", ">") else unary(it, "not", before)
    if kind is None or kind is not other or kind is dict:
        raise it.failure(
            errors.TypeMismatchError, f"'{op}' cannot compare {V.describe(x)} and {V.describe(y)}"
        )
    return _ordered(it, op, left, right)


def _with_array(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """An array and a sequence are compared element by element, as in NumPy."""
    from pyrelay.infer.names.adapters import to_array

    if _items(it, y)[0] in (tuple, list) or _items(it, x)[0] in (tuple, list):
        return compare(it, op, *(
            v if isinstance(v, V.ArrayRef) else to_array(it, v) for v in (x, y)
        ))
    raise it.failure(
        errors.TypeMismatchError,
        f"'{op}' cannot compare {V.describe(x)} and {V.describe(y)} element by element",
        hints=("ask 'x is None' or 'isinstance(x, ...)' about the object",),
    )


def _unordered(op: str, value: V.Value) -> str | None:
    """The class of an object, by name, if it has no methods that could order it."""
    cls: type | None = value.cls if isinstance(value, V.Ref | V.Data) else None
    if cls is None or any(
        getattr(cls, _METHODS[o]) is not getattr(object, _METHODS[o]) for o in (op, _MIRRORED[op])
    ):
        return None
    return cls.__name__


def _fields(
    it: Interpreter, x: V.Value, y: V.Value, op: str
) -> tuple[str, ...] | None:
    """The fields that a dataclass's generated comparison looks at, None if it has none.

    None as well for a class that contains itself, whose leaves it would go down to: unless those
    fields are left out (`field(compare=False)`).
    """
    both_objects = isinstance(x, V.Ref | V.Data) and isinstance(y, V.Ref | V.Data)
    cls: Any = x.cls if both_objects else None  # type: ignore[union-attr]
    if cls is None or cls is not y.cls or not dataclasses.is_dataclass(cls):  # type: ignore[union-attr]
        return None
    method = getattr(cls, _METHODS[op], None)
    if not protocols.is_generated(method):  # inherited from object, or the user's own
        return None
    found = tuple(f.name for f in dataclasses.fields(cls) if f.compare)
    if EVERYWHERE.of(cls) is not None:  # type: ignore[arg-type]
        held = (part for value in (x, y) for part in _values_of(it, value, found))
        return None if any(map(_is_of_a_tree, held)) else found
    return found


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
        case V.Known(tuple() | list() as known):
            return type(known) if type(known) is list else tuple, tuple(map(V.Known, known))
        case V.Known(dict() as known):
            return dict, {k: V.Known(v) for k, v in known.items()}
    return None, ()


def _equal(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    (kind, left), (other, right) = _items(it, x), _items(it, y)
    if kind is other and (isinstance(left, V.Growing) or isinstance(right, V.Growing)):
        return truth(it, call(it, V.Known(equal_lists), (x, y), {}))
    if kind is None or kind is not other:
        it.program.guards.identity = True
        same = isinstance(x, V.Ref) and isinstance(y, V.Ref) and x.root is y.root
        if isinstance(x, V.Range) and isinstance(y, V.Range):
            raise it.failure(
                errors.UnsupportedOperationError,
                "ranges cannot be compared in a compiled function",
                hints=("compare their starts and lengths",),
            )
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


def _ordered(
    it: Interpreter, op: str, left: tuple[V.Value, ...], right: tuple[V.Value, ...]
) -> V.Value:
    """The order of two sequences: that of the first items that differ, else of the lengths."""
    from pyrelay.infer.flow.control import branch

    if not left or not right:
        return compare(it, op, V.Known(len(left)), V.Known(len(right)))
    if _holds_nodes(left[0]) or _holds_nodes(right[0]):
        raise raised(it, NotImplementedError(_TIE))
    same = truth(it, compare(it, "==", left[0], right[0]))

    def rest() -> V.Value:
        return _ordered(it, op, left[1:], right[1:])

    def first() -> V.Value:
        names = [_unordered(op, v) for v in (left[0], right[0])]
        if all(names):
            message = f"{op!r} not supported between instances of {names[0]!r} and {names[1]!r}"
            raise raised(it, TypeError(message))
        return truth(it, compare(it, op, left[0], right[0]))

    if isinstance(same, V.Known):
        return rest() if same.value else first()
    return branch(it, it.atom(same), lambda: [rest()], lambda: [first()])[0]
