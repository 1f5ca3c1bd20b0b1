"""Nodes of recursive data types in a program: reading fields, telling kinds apart, sequences.

In: `Data` (a kind, a row, the pool's columns on the heap) and `Items`. Out: values of their fields:
elements and rows of the columns. Reads need no check, since rows come from the pool itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace

from pyrelay import errors
from pyrelay.infer import kinds as number_kinds
from pyrelay.infer import values as V
from pyrelay.infer.containers.code_points import from_items
from pyrelay.infer.containers.open_layouts import sequences
from pyrelay.infer.flow.joining import same_reference
from pyrelay.infer.frames import Read
from pyrelay.infer.in_python.lists import equal_tuples
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.layout import LScalar
from pyrelay.infer.nodes import functions_in_nodes as functions
from pyrelay.infer.nodes.datatypes import (
    NO_NODE,
    Array,
    Callee,
    Child,
    Choice,
    Constant,
    Grows,
    Items,
    Nothing,
    Number,
    Row,
    Sort,
    Struct,
    Text,
    captures,
    is_anonymous,
    is_function,
)
from pyrelay.infer.nodes.pools import column_sorts
from pyrelay.ir import types
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType

ARGUMENT = "list "
"""What the path of the items of a list of trees that is an argument begins with."""

_AT_ROW = (("axes", (0,)),)


# -- attributes ------------------------------------------------------------------------------------


def attribute(it: Interpreter, node: V.Data, name: str) -> V.Value:
    """`node.name`. Raises AttributeMissingError if the class has no such attribute."""
    from pyrelay.infer.attributes import class_attribute, dict_of_attributes
    from pyrelay.infer.flow import unset

    own = field(it, node, name)
    if own is not None:
        return unset.resolved(it, node, node.cls, name, own)
    if name == "__dict__":
        return dict_of_attributes(it, node)
    found = inspect.getattr_static(node.cls, name, None)
    if found is None or inspect.ismemberdescriptor(found):
        if node.schema.fields[node.kind] is None:
            raise it.program.lacking.ended()  # nothing is known of its fields yet
        if it.program.lacking.found is not None:  # it may be what was assigned first
            raise it.program.lacking.found
        raise missing(it, node, name)
    value: V.Value = class_attribute(it, node, node.cls, name)
    return value


def field(it: Interpreter, node: V.Data, name: str) -> V.Value | None:
    """What a node itself has under a name, which may be UNSET; None if no node of its kind has."""
    sort = node.schema.of(node.kind).get(name)
    if isinstance(sort, Grows):
        from pyrelay.infer.containers.lists_in_nodes import list_of

        return list_of(it, node.pool, f"{node.kind}.{name}", node.row)
    if sort is None:
        return None
    return read(it, node.pool, sort, f"{node.kind}.{name}", it.atom(node.row))


def set_attribute(it: Interpreter, node: V.Data, name: str, value: V.Value) -> None:
    """`node.name = value`: what `node.name *= 2` assigns is the array that is there already."""
    from pyrelay.infer.nodes.assigning import assign

    parameters = getattr(node.cls, "__dataclass_params__", None)
    if (parameters is not None and parameters.frozen) or hasattr(node.cls, "_fields"):
        kind = "namedtuple" if parameters is None else "frozen dataclass"
        raise it.failure(
            errors.AttributeMissingError,
            f"{node.cls.__name__} is a {kind}: its fields cannot be assigned",
            hints=("make a new node with the new value",),
        )
    if isinstance(value, V.ArrayRef):
        before = field(it, node, name)
        if before is not None and same_reference(before, value):
            return
    assign(it, node, name, value)


def missing(it: Interpreter, node: V.Data, name: str) -> errors.PyrelayError:
    """The error for an attribute that the class has not."""
    import difflib

    close = difflib.get_close_matches(name, list(node.schema.of(node.kind)), n=1)
    return it.failure(
        errors.AttributeMissingError, f"{V.describe(node)} has no attribute {name!r}",
        hints=(f"did you mean {close[0]!r}?",) if close else (),
    )


def fields(it: Interpreter, node: V.Data) -> tuple[V.Value, ...]:
    """The items of a node that is a namedtuple."""
    return tuple(attribute(it, node, name) for name in node.cls._fields)


def is_namedtuple(value: V.Value) -> bool:
    """True for a node whose class is a namedtuple."""
    return isinstance(value, V.Data) and hasattr(value.cls, "_fields")


# -- columns ---------------------------------------------------------------------------------------


def read(it: Interpreter, pool: V.Ref, sort: Sort, path: str, row: Atom) -> V.Value:
    """The value of a field in a row.

    Reading it again where that can be seen gives the same value, so that a test of the one is known
    of the other.
    """
    now = [_rows(it, pool, name) for name, _ in column_sorts(sort, path)]
    key = (pool.root, path, row, *now)
    for table in reversed(it.reads):
        found: Read | None = table.get(key)
        if found is not None and found.valid and not _is_outdated(found.value):
            return found.value
    value = _read(it, pool, sort, path, row)
    lets = it.builder.lets
    it.reads[-1][key] = Read(value, lets, len(lets), lets[-1] if lets else None)
    return value


def _is_outdated(value: V.Value) -> bool:
    """Whether an array was read before another one of the pool was written in place."""
    return isinstance(value, V.ArrayRef) and bool(value.root.outdated)


def _read(it: Interpreter, pool: V.Ref, sort: Sort, path: str, row: Atom) -> V.Value:
    from pyrelay.infer.operators import of_its_own

    match sort:
        case Constant(value):
            return V.Known(value)
        case Number(ty):
            return _number(it, pool, path, row, ty)
        case Array():
            return _array(it, pool, path, row)
        case Text():
            return _text(it, pool, path, row)
        case Child(kinds):
            return _child(it, pool, kinds, path, row)
        case Items(cls, item):
            start, count = (
                _number(it, pool, f"{path}.{part}", row, types.PY_INT)
                for part in ("start", "count")
            )
            if isinstance(item, Nothing):
                count = V.Known(0)
            found = V.Items(pool, cls, item, f"{path}[]", start, count)
            if cls is not tuple or not isinstance(item, Number):
                return found
            sequences().wanted = True
            return of_its_own(it, found) if sequences().open else found
        case Struct(parts):
            return V.Tuple(tuple(
                read(it, pool, part, f"{path}[{k}]", row) for k, part in enumerate(parts)
            ))
        case Row(kind):
            return V.Data(pool, kind, _number(it, pool, f"{path}.row", row, types.PY_INT))
        case Callee(head) if is_function(sort):
            return functions.rebuilt(it, head, _captured(it, pool, (sort,), 0, path, row))
        case Callee(head, parts):
            return functions.rebuilt(it, head, [
                read(it, pool, part, f"{path}[{k}]", row) for k, part in enumerate(parts)
            ])
        case Choice(cases):
            tag = it.atom(_number(it, pool, f"{path}.case", row, types.PY_INT))
            values = tuple(
                functions.rebuilt(it, case.head, _captured(it, pool, cases, k, path, row))
                if isinstance(case, Callee) and is_function(case)
                else read(it, pool, case, f"{path}|{k}", row)
                for k, case in enumerate(cases)
            )
            return number_kinds.as_numbers(it, tag, values)
    raise it.failure(
        errors.UnsupportedOperationError, "this list is empty in all trees seen so far, so the "
        "type of its items is not known",
        hints=("annotate the field with the type of its items",),
    )


def _captured(
    it: Interpreter, pool: V.Ref, cases: tuple[Sort, ...], number: int, path: str, row: Atom
) -> list[V.Value]:
    """What the function captures that is one of these cases."""
    sorts, places = captures(cases)
    return [read(it, pool, sorts[k], f"{path}|f{k}", row) for k in places[number]]


def _rows(it: Interpreter, pool: V.Ref, column: str) -> Atom:
    """The present content of a column."""
    from pyrelay.infer.nodes.pool_tables import column_rows

    grown = column_rows(it, pool, column)
    if grown is not None:
        return grown
    atom: Atom = it.content(it.content(pool.root)[column].root)
    return atom


def _array(it: Interpreter, pool: V.Ref, path: str, row: Atom) -> V.Value:
    """A row of a column of arrays: of an argument a view, of new nodes a copy, never written."""
    column = it.content(pool.root).get(path)
    if not isinstance(column, V.ArrayRef):
        made = it.result(it.emit("index", _rows(it, pool, path), row, axes=(0,)))
        if isinstance(made, V.ArrayRef):
            made.root.stored = (it.let.span if it.let else None) or True
            made.root.item = _item(it, pool, path, row)
        return made
    ty = TensorType(column.type.dtype, column.type.shape[1:])
    step = V.ViewStep("index", (row,), _AT_ROW)
    view = V.ArrayRef(column.root, (*column.view, step), ty)
    return view if ty.shape else it.result(it.builder.handle(it.atom(view)))


def _text(it: Interpreter, pool: V.Ref, path: str, row: Atom) -> V.Value:
    """The string in a row: of a list of code points that nobody else has."""
    from pyrelay.infer.nodes.pool_tables import texts

    count, codes = (it.emit("index", part, row, axes=(0,)) for part in texts(it, pool, path))
    number = V.Scalar(types.PY_INT, it.builder.cast(count, types.i64, weak=True))
    content = V.Growing(number, (codes.atom,), LScalar(types.PY_INT), slots=object())
    return V.Text(from_items, (it.new_ref("list", content),))


def _item(it: Interpreter, pool: V.Ref, path: str, row: Atom) -> V.Item:
    """Where a row of a column of new nodes is, as it is now."""
    from pyrelay.infer.nodes.pool_tables import table_of

    table, leaf = table_of(pool.cls, path)
    owner = it.content(pool.root)[table].root
    return V.Item(owner, row, row, it.content(owner), leaf)


def _number(it: Interpreter, pool: V.Ref, path: str, row: Atom, ty: TensorType) -> V.Value:
    handle = it.emit("index", _rows(it, pool, path), row, axes=(0,))
    return V.Scalar(ty, it.builder.cast(handle.atom, ty.dtype, weak=ty.weak))


def _child(
    it: Interpreter, pool: V.Ref, kinds: tuple[int, ...], path: str, row: Atom
) -> V.Value:
    schema = pool.cls
    possible = tuple(k for k in kinds if k == NO_NODE or schema.fields[k] is not None)
    if possible == (NO_NODE,):
        return V.NONE
    kind: V.Value = V.Known(possible[0])
    if len(possible) > 1:
        kind = _number(it, pool, f"{path}.kind", row, types.PY_INT)
    return V.node(pool, possible, kind, _number(it, pool, f"{path}.row", row, types.PY_INT))


def refuse_unmatched(it: Interpreter, subject: V.Value, classes: Sequence[type]) -> None:
    """Refuse nodes that a `match` without a case for their class would let through."""
    found = V.node_of(subject)
    if found is None:
        return
    pool, kinds, _, _ = found
    named = [pool.cls.classes[k] for k in kinds if k != NO_NODE]
    left = [c.__name__ for c in named if not issubclass(c, tuple(classes))]
    if not left:
        return
    raise it.failure(
        errors.TypeMismatchError,
        f"this match has no case for {' and '.join(left)}",
        notes=(f"the value is {V.describe(subject)} here, and every other case returns",),
        hints=(f"add 'case {left[0]}(): ...', or 'case _:' for all others",),
    )


# -- kinds -----------------------------------------------------------------------------------------


def is_same(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    """`x is y` where one is a node."""
    from pyrelay.infer.operators import compare

    if not isinstance(x, V.Data) or not isinstance(y, V.Data):
        return V.Known(False)
    if x.pool.root is not y.pool.root or x.kind != y.kind:
        return V.Known(False)
    return compare(it, "==", x.row, y.row)


def equals(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    """`x == y` where one is a node, whose class compares by identity; tuples by their items."""
    if isinstance(y, V.Data) and is_anonymous(y.cls) and not isinstance(x, V.Data):
        return equals(it, y, x)
    if isinstance(x, V.Data) and is_anonymous(x.cls):
        return _equal_tuples(it, x, y)
    alike = isinstance(x, V.Data) and isinstance(y, V.Data) and x.kind == y.kind
    if isinstance(x, V.Data) and alike and x.cls.__eq__ is not object.__eq__:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"'==' would compare all fields of {V.describe(x)}, down to the leaves",
            hints=("write 'is' to ask whether it is the same object, or compare the fields that "
                   "matter in a function of your own",),
        )
    return is_same(it, x, y)


def _equal_tuples(it: Interpreter, x: V.Data, y: V.Value) -> V.Value:
    """`x == y` for a tuple that is a node: with another one by a function that calls itself."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.flow.truth import truth
    from pyrelay.infer.operators import compare

    if isinstance(y, V.Data):
        if not is_anonymous(y.cls) or len(x.cls._fields) != len(y.cls._fields):
            return V.Known(False)
        return truth(it, call(it, V.Known(equal_tuples), (x, y), {}))
    if isinstance(y, V.Known) and type(y.value) is tuple:
        y = V.Tuple(tuple(map(V.Known, y.value)))
    if not isinstance(y, V.Tuple) or len(y.items) != len(x.cls._fields):
        return V.Known(False)
    return compare(it, "==", V.Tuple(fields(it, x)), y)


# -- lists and tuples in fields --------------------------------------------------------------------


def item(it: Interpreter, items: V.Items, index: V.Value) -> V.Value:
    """The item at an index that is in range."""
    from pyrelay.infer.operators import binary

    if isinstance(items.sort, Nothing):
        _let_grow(it, items)
    row = binary(it, "+", items.start, index)
    return read(it, items.pool, items.sort, items.path, it.atom(row))


def _let_grow(it: Interpreter, items: V.Items) -> None:
    """An item is read of lists that were all empty when their nodes were made: they are filled
    afterwards, or the read fails. Raises NeedsPool for nodes that the program makes."""
    from pyrelay.infer.containers.lists_in_nodes import wanted

    found = wanted(it, items)
    if not isinstance(found, str):
        raise found


def checked_item(it: Interpreter, items: V.Items, key: V.Value) -> V.Value:
    """`items[key]`: an int, also a negative one, or a slice without a step."""
    from pyrelay.infer.flow.effects import raise_where
    from pyrelay.infer.flow.handling import certain
    from pyrelay.infer.operators import binary

    if items.cls is set:
        said = "'set' object is not subscriptable"
        raise certain(it, it.failure(errors.TypeMismatchError, said), TypeError, said)
    if isinstance(key, V.Slice):
        return _part(it, items, key)
    if V.number_type(key) is None:
        raise it.failure(
            errors.TypeMismatchError,
            f"{V.describe(items)} cannot be indexed with {V.describe(key)}",
        )
    index = it.builder.handle(it.builder.cast(it.atom(key), types.i64, weak=True))
    count = it.builder.handle(it.atom(items.count))
    if isinstance(key, V.Known):
        at = binary(it, "+", items.count, key) if key.value < 0 else key
        outside = it.emit("less", count, -key.value if key.value < 0 else key.value + 1)
    else:
        at = it.result(it.emit("where", index < 0, index + count, index))
        outside = it.emit("logical_or", index < -count, index >= count)
    raise_where(
        it, outside.atom, IndexError, V.Known(f"{items.cls.__name__} index out of range")
    )
    return item(it, items, at)


def _part(it: Interpreter, items: V.Items, key: V.Slice) -> V.Value:
    from pyrelay.infer.operators import binary

    if key.step not in (V.NONE, V.Known(1)):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{V.describe(items)} of a node can only be sliced without a step",
        )

    def bound(value: V.Value, otherwise: V.Value) -> V.Value:
        if value == V.NONE:
            return otherwise
        at = value
        if isinstance(value, V.Known):
            at = binary(it, "+", items.count, value) if value.value < 0 else value
        else:
            index = it.builder.handle(it.atom(value))
            count = it.builder.handle(it.atom(items.count))
            at = it.result(it.emit("where", index < 0, index + count, index))
        return it.call("minimum", it.call("maximum", at, V.Known(0)), items.count)

    start, stop = bound(key.start, V.Known(0)), bound(key.stop, items.count)
    count = it.call("maximum", binary(it, "-", stop, start), V.Known(0))
    return replace(items, start=binary(it, "+", items.start, start), count=count)


def unpacked(it: Interpreter, items: V.Items, count: int) -> tuple[V.Value, ...]:
    """The items, checked by the running program to be this many."""
    from pyrelay.infer.containers.lists import wrong_number
    from pyrelay.infer.containers.text import text
    from pyrelay.infer.flow.effects import raise_where

    given = V.Known(count), V.Known(False), items.count, V.Known(True)
    said = text(it, wrong_number, *given)
    raise_where(it, it.emit("not_equal", it.atom(items.count), count).atom, ValueError, said)
    return tuple(item(it, items, V.Known(k)) for k in range(count))
