"""Lists in fields of nodes that the program changes: `node.items.append(x)`.

In: nodes that the program makes, whose schema says which of their lists grow (`Grows`). Out: these
lists, which are lists in the list of all nodes of a kind (growing.py), with room for as many items
as the longest one has; and the columns that they are in a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import growing, lists
from pyrelay.infer.containers.open_layouts import is_open, is_string
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.kinds import code
from pyrelay.infer.nodes import pool_tables
from pyrelay.infer.nodes.datatypes import (
    Array,
    Callee,
    Child,
    Choice,
    Constant,
    Grows,
    Items,
    Nothing,
    Number,
    Schema,
    Sort,
    Struct,
    Text,
    ones_of,
)
from pyrelay.infer.nodes.plans import NeedsPool
from pyrelay.infer.nodes.trees import ARGUMENT
from pyrelay.infer.slots import places_of
from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.nodes import UNREAD, Atom
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType


def list_of(it: Interpreter, pool: V.Ref, path: str, row: V.Value) -> V.Ref:
    """The list in a field of a node; it stays in the table of the nodes."""
    table, position = pool_tables.table_of(pool.cls, path)
    owner = it.content(pool.root)[table]
    assert isinstance(owner, V.Ref)
    content = it.content(owner.root)
    found = it.new_ref("list", ())
    it.heap.contents[found.root] = V.Part(
        owner.root, row, (position,), places_of(content.slots)
    )
    return found


def field_of(it: Interpreter, part: V.Part) -> tuple[V.Ref, int, str] | None:
    """The pool, the kind of node and the field that a list lives in; None if it is in no node."""
    for pool in it.pools.values():
        schema, content = pool.cls, it.heap.contents[pool.root]
        for kind in schema.known():
            for name, sort in schema.of(kind).items():
                if not isinstance(sort, Grows):
                    continue
                table, position = pool_tables.table_of(schema, f"{kind}.{name}")
                owner = content.get(table)
                if isinstance(owner, V.Ref) and owner.root is part.owner and (
                    part.path == (position,)
                ):
                    return pool, kind, name
    return None


def let_grow(it: Interpreter, items: V.Items) -> None:
    """A list in a field of a node is going to be changed: raises NeedsPool, or says why not.

    A list of trees that is an argument becomes a list of their places, in a pool that grows; where
    that is not possible, nothing happens, and it can be taken apart.
    """
    if items.path.startswith(ARGUMENT):
        family = it.program.families.of(items.pool.cls.classes[-1])
        if family is not None and not (
            family in it.pools and it.program.plans[family].unified
        ):
            raise NeedsPool(family, unified=True)
        return
    found = wanted(it, items)
    if not isinstance(found, str):
        raise found
    raise it.failure(
        errors.UnsupportedOperationError,
        "a list in a field of one of many objects, or of a node of a tree, is changed here",
        notes=(f"that is compiled where the program makes the objects; {found}",),
        hints=("make a new list and a new object with it, or keep the items in a list or array "
               "beside the objects",),
    )


def wanted(it: Interpreter, items: V.Items) -> NeedsPool | str:
    """What a list in a field of a node needs to grow, or why it cannot."""
    kind, _, name = items.path.removesuffix("[]").partition(".")
    schema = items.pool.cls
    known = schema.of(int(kind))
    family = it.program.families.of(schema.classes[int(kind)])
    if name not in known:
        return "it is inside of another list or a tuple, or there are other nodes without a list"
    if family is None or family not in it.pools or it.program.plans[family].unified or (
        it.pools[family].root is not items.pool.root
    ):
        return "the objects are the caller's, or are made beside objects of the caller"
    return NeedsPool(
        family, int(kind), tuple((n, Grows() if n == name else s) for n, s in known.items())
    )


def replace_list(it: Interpreter, node: V.Data, name: str, value: V.Value) -> None:
    """`node.name = value`, where the field holds lists that grow: the new list lives there."""
    target = list_of(it, node.pool, f"{node.kind}.{name}", node.row)
    own = it.heap.contents[target.root]
    assert isinstance(own, V.Part)
    held = it.heap.contents[value.root] if isinstance(value, V.Ref) else None
    same_row = isinstance(held, V.Part) and it.atom(held.position) is it.atom(own.position)
    if isinstance(held, V.Part) and held.is_beside(own) and same_row:
        return  # node.items += more
    before = it.before.contents if it.before is not None else {}
    if not isinstance(value, V.Ref) or not isinstance(held, (tuple, V.Growing)) or (
        value.root in before or value.root.stored
    ):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"the field {name!r} of {node.cls.__name__} holds a list that grows, and it cannot "
            f"become {V.describe(value)} that was made elsewhere",
            hints=(f"copy it: node.{name} = list(items)",),
        )
    lists.clear(it, target)
    if isinstance(held, V.Growing):
        lists.extend(it, target, held)
    else:
        for item in held:
            lists.append(it, target, item)
    lists.write_content(it, own.owner, it.content(own.owner), moves=True)
    slots = places_of(it.content(own.owner).slots)
    it.heap.contents[value.root] = replace(own, slots=slots)


# -- leaving the program ---------------------------------------------------------------------------


def closed(it: Interpreter, pool: V.Ref) -> tuple[Schema, dict[str, V.ArrayRef]]:
    """The schema and columns of a pool as of nodes that nobody changes any more.

    A list is the part of its node's room that it fills.
    """
    schema: Schema = pool.cls
    grown = [
        (kind, name) for kind in schema.known() for name, sort in schema.of(kind).items()
        if isinstance(sort, Grows)
    ]
    columns = pool_tables.columns(it, pool)
    fields = [list(own) if own is not None else None for own in schema.fields]
    for kind, name in grown:
        path = f"{kind}.{name}"
        sort, own = _Rows(it, pool, path).columns()
        columns.update(own)
        known = fields[kind]
        assert known is not None
        known[[n for n, _ in known].index(name)] = (name, Items(list, sort))
    if not grown:
        return schema, columns
    made = Schema(schema.classes, tuple(None if f is None else tuple(f) for f in fields))
    return made, columns


class _Rows:
    """The room for the lists in a field of all nodes of a kind, as columns of their items."""

    def __init__(self, it: Interpreter, pool: V.Ref, path: str) -> None:
        table, position = pool_tables.table_of(pool.cls, path)
        content = it.content(it.content(pool.root)[table].root)
        self.it, self.path = it, path
        first, self.inner = growing.inner_lists(content.template)[(position,)]
        self.counts = content.rows[first]
        self.rows: Iterator[Atom] = iter(content.rows[first + 1 : first + len(self.inner.leaves)])
        self.found: dict[str, V.ArrayRef] = {}

    def columns(self) -> tuple[Sort, dict[str, V.ArrayRef]]:
        """What the items are, and the columns."""
        it, b = self.it, self.it.builder
        assert isinstance(self.counts.type, TensorType)
        (count,) = self.counts.type.shape
        numbers = b.call(OPS["iota"], size=count, dtype=types.i64)
        starts = b.call(OPS["multiply"], numbers, b.extent(self.inner.capacity))
        self.found[f"{self.path}.start"] = it.new_array(b.cast(starts, types.i64))
        self.found[f"{self.path}.count"] = it.new_array(self.counts)
        return self._sort(self.inner.template, f"{self.path}[]"), self.found

    def _sort(self, template: L.Layout, path: str) -> Sort:
        match template:
            case L.LKnown(v):
                return Nothing() if v is UNREAD else Constant(v, type(v))
            case L.LScalar(kinds=kinds) if kinds:
                return self._of_kinds(kinds, path)
            case L.LScalar(ty):
                self.found[path] = self.it.new_array(self._flat())
                return Number(ty)
            case L.LPlace(_, "array", _, TensorType() as ty):
                self.found[path] = self.it.new_array(self._flat())
                return Array(ty.dtype.name, ones_of(ty.shape))
            case L.LNode(("data", _, kinds)):
                self.found[f"{path}.kind"] = self.it.new_array(self._flat())
                self.found[f"{path}.row"] = self.it.new_array(self._flat())
                return Child(kinds)
            case L.LNode(("tuple", None, _), parts):
                return Struct(tuple(self._sort(p, f"{path}[{k}]") for k, p in enumerate(parts)))
            case L.LNode() if is_open(template) and is_string(template):
                self.found[path] = self.it.new_array(
                    pool_tables.text_column(self.it, self._flat(), self._flat())
                )
                return Text()
            case L.LNode(("text", *_) as head, parts):
                found = tuple(self._sort(p, f"{path}[{k}]") for k, p in enumerate(parts))
                return Callee(head, found)
            case L.LUnion(cases):
                self.found[f"{path}.case"] = self.it.new_array(self._flat())
                return Choice(tuple(self._sort(c, f"{path}|{k}") for k, c in enumerate(cases)))
        raise self.it.failure(
            errors.UnsupportedOperationError,
            "a list of such items, in a field of an object that the compiled function makes, "
            "cannot leave it",
            hints=("give back what is computed from it",),
        )

    def _flat(self) -> Atom:
        """The next rows, one after the other."""
        row, b = next(self.rows), self.it.builder
        assert isinstance(row.type, TensorType)
        count, room, *rest = row.type.shape
        made: Handle = b.call(OPS["reshape"], row, shape=(dims.multiply(count, room), *rest))
        return made.atom

    def _of_kinds(self, kinds: Sequence[TensorType], path: str) -> Sort:
        """Numbers that say of which kind they are, as a case for each kind."""
        b = self.it.builder
        numbers, codes = self._flat(), self._flat()
        assert isinstance(codes.type, TensorType)
        case: Handle = b.full(0, codes.type.shape, types.i64)
        for k, kind in enumerate(kinds):
            case = b.call(OPS["where"], b.call(OPS["equal"], codes, code(kind)), k, case)
            self.found[f"{path}|{k}"] = self.it.new_array(b.cast(numbers, kind.dtype))
        self.found[f"{path}.case"] = self.it.new_array(b.cast(case, types.i64))
        return Choice(tuple(map(Number, kinds)))
