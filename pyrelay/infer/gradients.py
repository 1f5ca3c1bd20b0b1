"""Derivatives with the structure of what they belong to.

In: the layouts of a function's arguments, or of its result, and what belongs to their floating
leaves: cotangents, tangents, blocks of Jacobians. Out: values built like the arguments: what cannot
carry a derivative (ints, texts, None) becomes None, an object that occurs twice has one gradient,
and the gradient of a tree is a tree of the same classes.
Values of that structure are taken apart, too: the directions that a user gives (`directions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.closing import NeedsApart
from pyrelay.infer.heap import Heap
from pyrelay.infer.in_python.tables import Table
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.datatypes import gradient_schema
from pyrelay.infer.nodes.pool_tables import table_of
from pyrelay.infer.nodes.pools import schema_columns
from pyrelay.infer.objects import generator_classes
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


@dataclass(slots=True, eq=False)
class _Part:
    """A part of an argument's layout, with the number of its leaf if it has one."""

    layout: Any
    leaf: int | None = None
    children: tuple[_Part, ...] = ()


#: Makes the value at a leaf: of a number (None for that of a constant), and whether of an array.
Leaf = Callable[[int | None, bool], V.Value]


class Gradients:
    """Finds the floating leaves of chosen arguments and makes their gradients.

    heap: what the arguments contain when the function is called. kind: the transform, for errors.
    """

    def __init__(
        self, it: Interpreter, heap: Heap, layouts: Sequence[L.Layout], kind: str = "grad"
    ) -> None:
        self.it, self.heap, self.kind = it, heap, kind
        self._count = 0
        self._places: dict[int, _Part] = {}
        self._parts = [self._numbered(layout) for layout in layouts]
        self._made: dict[int, V.Value] = {}
        self._cotangents: Mapping[int, Any] | None = None
        self._leaf: Leaf = self._gradient
        self._constants = self._keep = False

    def _numbered(self, layout: Any) -> _Part:
        """The parts of a layout, leaves in the order of `leaves`; a place is one part."""
        match layout:
            case L.LScalar(_, None) | TensorType():
                return _Part(layout, self._next())
            case L.LPlace(key, kind, _, content):
                if key not in self._places:
                    part = self._places[key] = _Part(layout)
                    if layout.numbered:
                        self._next()
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
        return self.placed(chosen, values, self._gradient)

    def _gradient(self, leaf: int | None, of_array: bool) -> V.Value:
        assert self._cotangents is not None
        assert leaf is not None
        atom = self._cotangents[leaf]
        return self.it.new_array(atom) if of_array else V.Scalar(atom.type, atom)

    def placed(
        self, chosen: Sequence[int], values: Sequence[V.Value], leaf: Leaf, *,
        constants: bool = False, keep: bool = False,
    ) -> list[V.Value]:
        """Values like these ones, with what `leaf` makes in place of floating leaves.

        With `constants`, floats that are known while compiling are leaves, too. What cannot carry a
        derivative becomes None; with `keep` it stays.
        """
        self._leaf, self._made, self._constants, self._keep = leaf, {}, constants, keep
        return [self._of(self._parts[p], values[p]) for p in chosen]

    def _of(self, part: _Part, value: V.Value) -> V.Value:
        match part.layout:
            case L.LScalar(ty, None) if ty.dtype.is_float:
                return self._leaf(part.leaf, False)
            case L.LKnown(float()) if self._constants:
                return self._leaf(None, False)
            case L.LPlace():
                return self._of_place(part, value)
            case L.LNode(("tuple", *_) as head):
                return L.rebuild(tuple(head), self._of_all(part.children, L.children_of(value)))
            case L.LNode(("data", *_)):
                return self._of_node(part.children[0], value)
            case L.LNode(("items", *_)):
                raise self.it.failure(
                    errors.GradientError,
                    f"{self.kind} cannot differentiate with respect to a list of so many trees",
                    hints=("keep the trees in a field of a node, or pack them: pyrelay.pack(...)",),
                )
            case L.LUnion():
                raise self.it.failure(
                    errors.GradientError,
                    f"{self.kind} cannot differentiate with respect to a value that is of one type "
                    "or another",
                )
        return value if self._keep else V.NONE

    def _of_all(self, parts: Sequence[_Part], values: Sequence[V.Value]) -> list[V.Value]:
        return [self._of(p, v) for p, v in zip(parts, values, strict=True)]

    def _of_place(self, part: _Part, value: V.Value) -> V.Value:
        layout = part.layout
        if layout.key in self._made:
            return self._made[layout.key]
        found: V.Value = value if self._keep else V.NONE
        if layout.kind == "array":
            if layout.content.dtype.is_float:
                found = self._leaf(part.leaf, True)
        elif layout.cls in generator_classes():
            pass  # its state is ints, but a generator without a state is none
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
        cotangents = self._by_leaf("a list of run-time length")
        rows: list[Atom] = []
        remaining = zip(part.children[1:], content.rows, strict=True)

        def gradient(template: L.Layout) -> L.Layout:
            match template:
                case L.LScalar(kinds=kinds) if kinds:
                    raise NeedsApart  # there are derivatives with respect to some of them only
                case L.LScalar(ty) | L.LPlace(_, "array", _, ty):
                    leaf, _ = next(remaining)
                    if not ty.dtype.is_float:
                        return L.LKnown(None)
                    assert leaf.leaf is not None
                    rows.append(cotangents[leaf.leaf])
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
        cotangents = self._by_leaf("a tree")
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
                cotangent = None if part.leaf is None else cotangents.get(part.leaf)
                content[name] = self.it.new_array(atom if cotangent is None else cotangent)
            self._made[key] = self.it.new_ref("pool", content, schema)
        made = self._made[key]
        assert isinstance(made, V.Ref)
        return V.node(made, kinds, kind, row)

    def _by_leaf(self, what: str) -> Mapping[int, Any]:
        if self._cotangents is None:
            raise self.it.failure(
                errors.GradientError, f"{self.kind} cannot differentiate with respect to {what}",
                hints=("grad can", "or pass a list of known length, a tuple or a dict"),
            )
        return self._cotangents

    def _column(self, pool: _Part, given: V.Ref, name: str) -> tuple[_Part, Atom]:
        """The part and the content of a column of a pool."""
        columns = self.heap.contents[given.root]
        parts = dict(zip(columns, pool.children, strict=True))
        if name in columns:
            return parts[name], self.heap.contents[columns[name].root]
        table, position = table_of(given.cls, name)
        rows = self.heap.contents[columns[table].root]
        return parts[table].children[position + 1], rows.rows[position]

    def directions(self, position: int, value: V.Value, name: str) -> dict[int, Direction]:
        """What a value of the structure at a position has for each floating leaf; None has none.

        name: what the value is, for errors. Raises GradientError where the structures differ.
        """
        found: dict[int, Direction] = {}
        pending: list[tuple[_Part, V.Value, str]] = [(self._parts[position], value, name)]
        while pending:
            part, given, where = pending.pop()
            if given == V.NONE or isinstance(part.layout, L.LKnown):
                continue
            ty = _type_of(part.layout)
            if ty is not None:
                if ty.dtype.is_float and part.leaf is not None:
                    found.setdefault(part.leaf, Direction(ty, [])).given.append((given, where))
                continue
            inside = self._inside(part.layout, given)
            if inside is None or len(inside) != len(part.children):
                raise self.it.failure(
                    errors.GradientError,
                    f"{where} must have the structure of what it belongs to, "
                    f"{_shown(part.layout)}, and is {self._described(given)}",
                )
            pending.extend(
                (child, inner, f"{where}{step}")
                for child, (step, inner) in zip(part.children, inside, strict=True)
            )
        return found

    def paired(
        self, position: int, others: Gradients, place: int
    ) -> list[tuple[int, int]] | str:
        """The leaves of a value that are for those of another one, of a structure alike, as pairs
        (leaf of the other one, leaf of the value); else what is wrong, for an error."""
        found: list[tuple[int, int]] = []
        pending = [(self._parts[position], others._parts[place], "it returns")]
        while pending:
            own, other, told = pending.pop()
            if isinstance(own.layout, L.LKnown) and own.layout.value in (None, 0):
                continue
            ty = _type_of(other.layout)
            if ty is not None:
                mine = _type_of(own.layout)
                if not ty.dtype.is_float or other.leaf is None:
                    continue
                if mine is None or own.leaf is None or mine.rank != ty.rank:
                    return f"{told} another type than {ty}"
                found.append((other.leaf, own.leaf))
                continue
            if isinstance(other.layout, L.LKnown):
                continue
            if _shown(own.layout) != _shown(other.layout) or (
                len(own.children) != len(other.children)
            ):
                return f"{told} {_shown(own.layout)} for {_shown(other.layout)}"
            pending += zip(
                own.children, other.children, [told] * len(own.children), strict=True
            )
        return found

    def _described(self, given: V.Value) -> str:
        if isinstance(given, V.Ref) and given.root.kind in ("dict", "list"):
            content = self.it.content(given.root)
            if isinstance(content, (dict, tuple)):
                return _structure(given.root.kind, content)
        return f"a tuple of {len(given.items)}" if isinstance(given, V.Tuple) else V.describe(given)

    def _inside(self, layout: Any, given: V.Value) -> list[tuple[str, V.Value]] | None:
        """The values in a structure and how users reach them, None for another structure."""
        if isinstance(layout, L.LNode) and layout.head[0] == "tuple":
            if isinstance(given, V.Known) and isinstance(given.value, tuple):
                return [(f"[{k}]", V.Known(v)) for k, v in enumerate(given.value)]
            if not isinstance(given, V.Tuple):
                return None
            return [(f"[{k}]", v) for k, v in enumerate(given.items)]
        if not (isinstance(layout, L.LPlace) and isinstance(given, V.Ref)):
            return None
        content = self.it.content(given.root)
        if isinstance(layout.content, L.LGrown):
            raise self.it.failure(
                errors.GradientError,
                "nothing can be passed in for a list of so many items",
                hints=("return an array, np.array(items), or a list of known length",),
            )
        if given.root.kind != layout.kind or L.content_head(content) != layout.content.head:
            return None
        if isinstance(content, dict):
            shape = "[{!r}]" if layout.kind == "dict" else ".{}"
            return [(shape.format(k), v) for k, v in content.items()]
        return [(f"[{k}]", v) for k, v in enumerate(L.content_children(content))]


@dataclass(slots=True)
class Direction:
    """The values that a user gives for a leaf of this type, each with what it is called."""

    type: TensorType
    given: list[tuple[V.Value, str]]


def _structure(kind: str, content: Iterable[Any]) -> str:
    inside = list(content)
    if kind == "list":
        return f"a list of {len(inside)}"
    return f"a dict with the keys {', '.join(map(repr, inside))}"


def _shown(layout: Any) -> str:
    match layout:
        case L.LNode(("tuple", *_), children):
            return f"a tuple of {len(children)}"
        case L.LPlace(_, "list", _, L.LNode(_, children)):
            return _structure("list", children)
        case L.LPlace(_, "dict", _, L.LNode(("pairs", keys))):
            return _structure("dict", keys)
        case L.LPlace(_, "object", cls) if cls is not None:
            return f"an object of class {cls.__name__}"
    return "a structure"


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
