"""The gradients of arguments, with the arguments' structure.

In: the layouts of a function's arguments and the cotangents of their floating leaves. Out: values
built like the arguments: what cannot carry a derivative (ints, texts, None) becomes None, an object
that occurs twice has one gradient, and the gradient of a tree is a tree of the same classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.heap import Heap
from pyrelay.infer.in_python.tables import Table
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.datatypes import gradient_schema
from pyrelay.infer.nodes.pool_tables import table_of
from pyrelay.infer.nodes.pools import schema_columns
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


@dataclass(slots=True, eq=False)
class _Part:
    """A part of an argument's layout, with the number of its leaf if it has one."""

    layout: Any
    leaf: int | None = None
    children: tuple[_Part, ...] = ()


class Gradients:
    """Finds the floating leaves of chosen arguments and makes their gradients.

    heap: what the arguments contain when the function is called.
    """

    def __init__(self, it: Interpreter, heap: Heap, layouts: Sequence[L.Layout]) -> None:
        self.it, self.heap = it, heap
        self._count = 0
        self._places: dict[int, _Part] = {}
        self._parts = [self._numbered(layout) for layout in layouts]
        self._made: dict[int, V.Value] = {}
        self._cotangents: Mapping[int, Any] = {}

    def _numbered(self, layout: Any) -> _Part:
        """The parts of a layout, leaves in the order of `leaves`; a place is one part."""
        match layout:
            case L.LScalar(_, None) | TensorType():
                return _Part(layout, self._next())
            case L.LPlace(key, kind, _, content):
                if key not in self._places:
                    part = self._places[key] = _Part(layout)
                    if kind == "array":
                        part.leaf = self._next()
                    elif isinstance(content, L.LGrown):
                        part.children = tuple(map(self._numbered, content.leaves))
                    else:
                        part.children = tuple(map(self._numbered, content.children))
                return self._places[key]
            case L.LNode(_, children):
                return _Part(layout, None, tuple(map(self._numbered, children)))
            case L.LUnion(cases):
                return _Part(layout, self._next(), tuple(map(self._numbered, cases)))
        return _Part(layout)

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def leaves(self, chosen: Iterable[int]) -> list[int]:
        """The numbers of the floating leaves of these arguments, each once."""
        found: dict[int, None] = {}
        for position in chosen:
            for part in _nested(self._parts[position]):
                ty = _type_of(part.layout)
                if ty is not None and ty.dtype.is_float and part.leaf is not None:
                    found[part.leaf] = None
        return list(found)

    def of(
        self, chosen: Sequence[int], values: Sequence[V.Value], cotangents: Mapping[int, Any]
    ) -> list[V.Value]:
        """The gradients of these arguments; `cotangents` are by number of leaf."""
        self._cotangents = cotangents
        return [self._of(self._parts[p], values[p]) for p in chosen]

    def _of(self, part: _Part, value: V.Value) -> V.Value:
        match part.layout:
            case L.LScalar(ty, None) if ty.dtype.is_float:
                assert part.leaf is not None
                return V.Scalar(ty, self._cotangents[part.leaf])
            case L.LPlace():
                return self._of_place(part, value)
            case L.LNode(("tuple", *_) as head):
                return L.rebuild(tuple(head), self._of_all(part.children, L.children_of(value)))
            case L.LNode(("data", *_)):
                return self._of_node(part.children[0], value)
            case L.LNode(("items", *_)):
                raise self.it.failure(
                    errors.GradientError,
                    "grad cannot differentiate with respect to a list of so many trees",
                    hints=("keep the trees in a field of a node, or pack them: pyrelay.pack(...)",),
                )
            case L.LUnion():
                raise self.it.failure(
                    errors.GradientError,
                    "grad cannot differentiate with respect to a value that is of one type or "
                    "another",
                )
        return V.NONE

    def _of_all(self, parts: Sequence[_Part], values: Sequence[V.Value]) -> list[V.Value]:
        return [self._of(p, v) for p, v in zip(parts, values, strict=True)]

    def _of_place(self, part: _Part, value: V.Value) -> V.Value:
        layout = part.layout
        if layout.key in self._made:
            return self._made[layout.key]
        found: V.Value = V.NONE
        if layout.kind == "array":
            if layout.content.dtype.is_float:
                assert part.leaf is not None
                found = self.it.new_array(self._cotangents[part.leaf])
        elif isinstance(layout.content, L.LGrown):
            assert isinstance(value, V.Ref)
            found = self.it.new_ref("list", self._of_grown(part, self.heap.contents[value.root]))
        else:
            assert isinstance(value, V.Ref)
            inside = L.content_children(self.heap.contents[value.root])
            if layout.cls is Table:  # the same keys, and gradients for values
                names = layout.content.head[1]
                parts = [
                    self._of(p, v) if name == "held" else self._as_called(v)
                    for name, p, v in zip(names, part.children, inside, strict=True)
                ]
                content = L.rebuild_content(layout.content.head, parts)
                self._made[layout.key] = self.it.new_ref("object", content, Table)
                return self._made[layout.key]
            content = L.rebuild_content(layout.content.head, self._of_all(part.children, inside))
            found = self.it.new_ref(layout.kind, content, layout.cls)
        self._made[layout.key] = found
        return found

    def _as_called(self, value: V.Value) -> V.Value:
        """A list that contains what it did when the function was called; a number unchanged."""
        if not isinstance(value, V.Ref):
            return value
        return self.it.new_ref("list", self.heap.contents[value.root])

    def _of_grown(self, part: _Part, content: V.Growing) -> V.Growing:
        """As many gradients of items."""
        rows: list[Atom] = []
        remaining = zip(part.children[1:], content.rows, strict=True)

        def gradient(template: L.Layout) -> L.Layout:
            match template:
                case L.LScalar(ty, kinds=kinds) if kinds:
                    plain = gradient(L.LScalar(ty))
                    next(remaining)
                    return plain
                case L.LScalar(ty) | L.LPlace(_, "array", _, ty):
                    leaf, _ = next(remaining)
                    if not ty.dtype.is_float:
                        return L.LKnown(None)
                    assert leaf.leaf is not None
                    rows.append(self._cotangents[leaf.leaf])
                    return template
                case L.LPlace(_, "list", _, L.LGrown(inner) as own):
                    rows.append(next(remaining)[1])
                    return replace(template, content=replace(own, template=gradient(inner)))
                case L.LNode(("tuple", *_), children):
                    return replace(template, children=tuple(map(gradient, children)))
                case L.LKnown():
                    return L.LKnown(None)
                case L.LNode(("text", *_)):
                    for _ in L.template_types(template):
                        next(remaining)
                    return L.LKnown(None)
            raise self.it.failure(
                errors.GradientError,
                "grad cannot differentiate with respect to a list of run-time length whose items "
                "are of one type or another",
            )

        template = gradient(content.template)
        return V.Growing(content.count, tuple(rows), template, slots=object())

    def _of_node(self, pool: _Part, value: V.Value) -> V.Value:
        """A node in the same place of a pool with the gradients in place of the payload."""
        parts = V.node_of(value)
        if parts is None:
            return V.NONE
        given, kinds, kind, row = parts
        key = pool.layout.key
        schema = gradient_schema(given.cls)
        if key not in self._made:
            content = {}
            for name in schema_columns(schema):
                part, atom = self._column(pool, given, name)
                cotangent = None if part.leaf is None else self._cotangents.get(part.leaf)
                content[name] = self.it.new_array(atom if cotangent is None else cotangent)
            self._made[key] = self.it.new_ref("pool", content, schema)
        made = self._made[key]
        assert isinstance(made, V.Ref)
        return V.node(made, kinds, kind, row)


    def _column(self, pool: _Part, given: V.Ref, name: str) -> tuple[_Part, Atom]:
        """The part and the content of a column of a pool."""
        columns = self.heap.contents[given.root]
        parts = dict(zip(columns, pool.children, strict=True))
        if name in columns:
            return parts[name], self.heap.contents[columns[name].root]
        table, position = table_of(given.cls, name)
        rows = self.heap.contents[columns[table].root]
        return parts[table].children[position + 1], rows.rows[position]


def _nested(part: _Part) -> Iterator[_Part]:
    pending = [part]
    while pending:
        here = pending.pop()
        yield here
        pending.extend(reversed(here.children))


def _type_of(layout: Any) -> TensorType | None:
    match layout:
        case L.LScalar(ty, None) | L.LPlace(_, "array", _, ty):
            return ty
        case TensorType():
            return layout
    return None
