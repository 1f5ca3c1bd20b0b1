"""Encoding: values as the typed variables that their layouts say.

In: values and layouts. Out: an `Encoder`'s atoms, in the order of the layouts' leaves, and extents
for their symbols.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from pyrelay.errors import UnsupportedOperationError
from pyrelay.infer import values as V
from pyrelay.infer.arrays.windows import window_of
from pyrelay.infer.containers.open_layouts import OPEN_TEXT, is_open
from pyrelay.infer.flow.joining import same_reference, same_value
from pyrelay.infer.heap import Heap
from pyrelay.infer.kinds import exact, kind_of
from pyrelay.infer.layout import (
    Layout,
    LFixed,
    LGrown,
    LKnown,
    LNode,
    LParam,
    LPlace,
    LRagged,
    LScalar,
    LUnion,
    LView,
    NoCase,
    children_of,
    content_children,
    content_head,
    fitted_to,
    head_of,
    leaf_type,
    pools_of,
    with_pools,
)
from pyrelay.infer.leaves import parts_of
from pyrelay.infer.nodes.datatypes import NO_NODE
from pyrelay.infer.wide import encoded
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import TEMPORARY, UNREAD, Atom, If, Let, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

Part = Atom | int
"""An atom, or the key of a place, for the atoms of that place where it is met first."""
Case = tuple[Atom, int]
"""The case with this number of a value with this tag."""


@dataclass
class Encoder:
    """Writes values of one path as atoms of a layout. Collects extents for the layout's symbols.

    A place is written where its object is at hand, which may be behind its first mention, in a case
    of a value that is another one: `finish` puts it there, or placeholders if it never is.

    bound: the symbols that the node binds for which this is written. settle: makes sure that the
    heap says what an object contains.
    """

    builder: Builder
    heap: Heap
    read: Callable[[V.Value], Atom]  # the atom of a number or an array
    atoms: list[Part] = field(default_factory=list)
    extents: dict[Symbol, Extent] = field(default_factory=dict)
    places: dict[int, LPlace] = field(default_factory=dict)  # as they are met first
    contents: dict[int, list[Part]] = field(default_factory=dict)  # of the places written
    certain: set[int] = field(default_factory=set)  # places written whichever case is at hand
    told: dict[int, set[Case]] = field(default_factory=dict)  # in which cases others are written
    idle: set[Symbol] = field(default_factory=set)  # of views in cases that are not at hand
    #: the items of lists that were written as growing ones, for layouts that have these one by one
    listed: dict[V.Root, tuple[V.Value, ...]] = field(default_factory=dict)
    number: Callable[[int, V.Root], Atom] | None = None  # of the object in a place
    bound: Collection[Symbol] = ()
    same: Callable[[Extent, Extent], bool] = operator.eq  # whether two extents are equal
    settle: Callable[[V.Root], None] | None = None
    roomy: bool = False  # lists of one of several cases may have other rooms than the layout's

    def __call__(self, value: V.Value, layout: Layout) -> None:
        if isinstance(layout, LNode) and layout.head[0] == "data":
            self._node(value, layout)
            return
        if isinstance(value, V.Union) and not isinstance(layout, LUnion):
            self._from_union(value, layout)
            return
        if isinstance(value, V.Known) and value.value is UNREAD:
            self.absent(layout)
            return
        if is_open(layout):
            from pyrelay.infer.containers.open_sequences import in_list

            value = in_list(self.builder, self.heap, self.read, value)
        if isinstance(value, V.Known) and isinstance(layout, LNode) and (
            layout.head[:2] == ("text", chr)
        ):
            value = V.Text(chr, (V.Known(ord(value.value)),))
        match layout:
            case LScalar(ty, extent, _, kinds):
                if extent is None:
                    self._scalar(value, ty, exactly=bool(kinds))
                if kinds:
                    self.atoms.append(kind_of(value))
            case LPlace(key):
                self.atoms.append(key)
                first = self.places.setdefault(key, layout)
                if key not in self.certain:
                    self.certain.add(key)
                    outer, self.atoms = self.atoms, []
                    self._place(value, first)
                    self.contents[key], self.atoms = self.atoms, outer
            case LNode(head, children):
                if head == ("natural",):
                    value = encoded(self.builder, self.read, value)
                for child, inner in zip(children_of(value), children, strict=True):
                    self(child, inner)
            case LView():
                self._view(value, layout)
            case LUnion():
                self._union(value, layout)

    def _place(self, value: V.Value, layout: LPlace) -> None:
        content: Any = layout.content
        if layout.numbered:
            assert self.number is not None
            assert isinstance(value, (V.ArrayRef, V.Ref))
            self.atoms.append(self.number(layout.key, value.root))
        if layout.kind == "array":
            atom = self.read(value)
            if isinstance(content, LRagged):
                for extent in atom.type.shape:  # type: ignore[union-attr]
                    number = self.builder.extent(extent)
                    self.atoms.append(self.builder.cast(number, types.i64, weak=True))
                content = content.type
            self._tensor(atom, content)
        else:
            assert isinstance(value, V.Ref)
            if self.settle is not None:
                self.settle(value.root)
            self.content(value.root, content)

    def _view(self, value: V.Value, layout: LView) -> None:
        assert isinstance(value, V.ArrayRef)
        ty = self.heap.contents[value.root].type
        window = window_of(ty.shape, value.view)
        assert window is not None
        self(V.ArrayRef(value.root, (), ty), layout.base)
        mine = (*window.starts, *window.sizes, *value.type.shape)
        theirs = (*layout.starts, *layout.sizes, *layout.type.shape)
        for own, other in zip(mine, theirs, strict=True):
            symbol = None if own == other else dims.plain_symbol(other)
            if symbol is not None:
                self.extents[symbol] = own
        for atom in window.atoms:
            self.atoms.append(self.builder.cast(atom, types.i64, weak=True))

    def content(self, root: V.Root, layout: Any) -> None:
        """Write the content of a root. Raises NoCase if it is not of this layout, as where one of
        two objects of a class was taken for the other."""
        content = self.heap.contents[root]
        if root.kind == "array":
            self._tensor(content, layout)
            return
        if isinstance(layout, LNode) and layout.head[0] in ("part", "lost"):
            # Its owner was made a growing list, before or by its own encoding.
            if layout.children:
                position = layout.children[0]
                known = V.Known(position.value) if isinstance(position, LKnown) else None
                self(known or content.position, position)
            return
        if isinstance(layout, LGrown):
            self._grown(root, layout)
            return
        content = fitted_to(self.listed.get(root, content), layout)
        children = content_children(content)
        if len(children) != len(layout.children):
            raise NoCase(f"a {root.kind} of {len(children)} is not one of {layout}")
        for child, inner in zip(children, layout.children, strict=True):
            self(child, inner)

    def _grown(self, root: V.Root, layout: LGrown) -> None:
        """Write the content of a list, which becomes a growing one of this layout if it is not."""
        from pyrelay.infer.containers import growing, widening

        content = self.heap.contents[root]
        if isinstance(content, V.Part):
            owner = self.heap.contents[content.owner]
            position = self.read(content.position)
            inner = growing.inner_content(self.builder, owner, content.path, position)
            content = growing.plain(self.builder, inner)
            layout = self._with_pools(content, layout)
            content = widening.cast_rows(self.builder, content, layout.template, self.bound)
        else:
            layout = self._with_pools(content, layout)
            if isinstance(content, tuple):
                self.listed[root] = content
            with dims.decided_by(self.same):
                content = growing.fitted(
                    self.builder, self.heap, self.read, root, layout.template, self.bound
                )
        self.atoms.append(self.builder.cast(self.read(content.count), types.i64, weak=True))
        for row, ty in zip(content.rows, layout.leaves[1:], strict=True):
            self._tensor(row, ty)
        capacity = None if content.rows else dims.plain_symbol(layout.capacity)
        if capacity is not None:
            self.extents[capacity] = 0

    def _with_pools(self, content: Any, layout: LGrown) -> LGrown:
        """The layout with the pools of this list, which are written."""
        if not layout.pools:
            return layout
        own = pools_of(content.template)
        for pool, place in zip(own, layout.pools, strict=True):
            self(pool, place)
        return replace(layout, template=with_pools(layout.template, own.__getitem__))

    def _node(self, value: V.Value, layout: LNode) -> None:
        """A node of a data type: its pool, kind and row."""
        if V.node_of(value) is not None:
            for child, inner in zip(children_of(value), layout.children, strict=True):
                self(child, inner)
        elif isinstance(value, V.Union):
            self._from_union(value, layout)
        elif value == V.NONE:
            self.absent(layout.children[0])
            self.atoms += [constant(NO_NODE), constant(0)]
        else:
            self.absent(layout)

    def _scalar(self, value: V.Value, ty: TensorType, exactly: bool = False) -> None:
        atom = self.read(value)
        if exactly:
            atom = exact(self.builder, atom, ty.dtype)
        self.atoms.append(self.builder.cast(atom, ty.dtype, weak=ty.weak))

    def _tensor(self, atom: Atom, ty: TensorType) -> None:
        assert isinstance(atom.type, TensorType)
        for mine, theirs in zip(atom.type.shape, ty.shape, strict=True):
            symbol = None if mine == theirs else dims.plain_symbol(theirs)
            if symbol is not None:
                self.extents[symbol] = mine
        self.atoms.append(atom)

    def _union(self, value: V.Value, layout: LUnion) -> None:
        if isinstance(value, V.Union):
            self._from_union(value, layout)
            return
        chosen = case_index(value, layout, self.heap, self.bound)
        self.atoms.append(constant(chosen))
        for i, case in enumerate(layout.cases):
            if i == chosen:
                self(value, case)
            else:
                self.absent(case)

    def absent(self, layout: Layout) -> None:
        """Placeholders for the leaves of a layout that has no value on this path."""
        self.atoms += self._placeholders(layout)

    def _placeholders(self, layout: Any) -> list[Part]:
        found: list[Part] = []
        pending: list[Any] = [layout]
        while pending:
            here = pending.pop()
            if isinstance(here, TensorType):
                empty = {
                    s: self.extents.setdefault(s, 0)
                    for s in types.type_symbols(here) if self._binds(s)
                }
                found.append(self.builder.undef(types.substitute(here, empty)).atom)
            elif isinstance(here, LPlace):
                found.append(here.key)
                self._meet(here)
            else:
                pending.extend(reversed(parts_of(here)))
                if isinstance(here, LView):
                    extents = (*here.starts, *here.sizes, *here.type.shape)
                    self.idle.update(
                        s for e in extents for s in dims.symbols(e) if self._binds(s)
                    )
        return found

    def _binds(self, symbol: Symbol) -> bool:
        return symbol.name == "d" and symbol.origin is Origin.RUNTIME and symbol in self.bound

    def _meet(self, layout: LPlace) -> None:
        """Note where a place, and those in it, are mentioned."""
        pending: list[Any] = [layout]
        while pending:
            here = pending.pop()
            if not isinstance(here, LPlace):
                pending.extend(reversed(parts_of(here)))
            elif here.key not in self.places:
                self.places[here.key] = here
                pending.append(here.content)

    def finish(self) -> list[Atom]:
        """The atoms, those of each place at its first mention. No value is written afterwards."""
        found: list[Atom] = []
        met: set[int] = set()
        pending = list(reversed(self.atoms))
        while pending:
            part = pending.pop()
            if not isinstance(part, int):
                found.append(part)
            elif part not in met:
                met.add(part)
                content = self.contents.get(part)
                if content is None:
                    place = self.places[part]
                    content = self._placeholders(place.content)
                    if place.numbered:
                        content = [*self._placeholders(types.PY_INT), *content]
                pending.extend(reversed(content))
        for symbol in self.idle:
            self.extents.setdefault(symbol, 0)
        return found

    def _from_union(self, value: V.Union, layout: Layout) -> None:
        """A value that is already one of several cases: select by its tag, case by case."""
        if self._constants(value, layout):
            return
        parts: list[Encoder] = []
        for number, case in zip(value.alive, value.possible, strict=True):
            known = {key for key, cases in self.told.items() if (value.tag, number) in cases}
            part = replace(
                self, atoms=[], extents=dict(self.extents), places=dict(self.places),
                contents=dict(self.contents), certain=self.certain | known, told=dict(self.told),
            )
            part(case, layout)
            parts.append(part)
        chosen = parts[-1]
        for number, part in reversed(list(zip(value.alive[:-1], parts[:-1], strict=True))):
            test = self.builder.call(OPS["equal"], value.tag, number)
            chosen = _either(self.builder, test.atom, part, chosen)
        self.atoms += chosen.atoms
        self.extents.update(chosen.extents)
        self.contents = chosen.contents
        for number, part in zip(value.alive, parts, strict=True):
            self.places.update(part.places)
            for key in part.certain - self.certain:
                self.told[key] = self.told.get(key, set()) | {(value.tag, number)}
        self.certain |= set.intersection(*(part.certain for part in parts))

    def _constants(self, value: V.Union, layout: Layout) -> bool:
        """Write one of several constants: a tag alone. False for other values or layouts."""
        if not isinstance(layout, LUnion) or any(True for _ in _keys(layout)):
            return False
        numbers: dict[int, int] = {}
        for k in value.alive:
            case = value.cases[k]
            if not isinstance(case, V.Known) or case.value is UNREAD:
                return False
            numbers[k] = case_index(case, layout, self.heap, self.bound)
            if not isinstance(layout.cases[numbers[k]], LKnown):
                return False
        (_, first), *others = numbers.items()
        tag: Atom = value.tag
        if any(k != n for k, n in numbers.items()):
            tag = constant(first)
            for k, number in others:
                test = self.builder.call(OPS["equal"], value.tag, k)
                tag = self.builder.call(OPS["where"], test, number, tag).atom
        self.atoms.append(self.builder.cast(tag, types.i64, weak=True))
        for case_layout in layout.cases:
            self.absent(case_layout)
        return True


def _either(builder: Builder, test: Atom, yes: Encoder, no: Encoder) -> Encoder:
    """What one of two encoders wrote; extents that differ are bound by an If.

    What only one of them wrote of a place is there whichever case is at hand.
    """
    own: dict[tuple[Extent, Extent], Symbol] = {}

    def common(a: Extent, b: Extent) -> Extent:
        if yes.same(a, b):
            return a
        return dims.of(own.setdefault((a, b), Symbol("d", Origin.RUNTIME)))

    def joined(a: Any, b: Any) -> Any:
        if a == b:
            return a
        pairs = zip(a.shape, b.shape, strict=True)
        if not yes.roomy and any(not yes.same(x, y) and (x, y) not in own for x, y in pairs):
            raise UnsupportedOperationError(
                "a value that is one of several arrays of different lengths meets others here.",
                span=builder.span, hints=("copy the array where it is chosen: x.copy()",),
            )
        return TensorType(a.dtype, tuple(map(common, a.shape, b.shape)), a.weak)

    extents = {**yes.extents, **no.extents}
    for s in yes.extents.keys() & no.extents.keys() & set(yes.bound):
        extents[s] = common(yes.extents[s], no.extents[s])
    both = [
        (k, a, no.contents[k]) for k, a in yes.contents.items()
        if k in no.contents and no.contents[k] is not a
    ]
    chosen: dict[tuple[int, int], tuple[Atom, Atom, Var]] = {}
    for a, b in zip(
        (*yes.atoms, *(p for _, ps, _ in both for p in ps)),
        (*no.atoms, *(p for _, _, ps in both for p in ps)), strict=True,
    ):
        if not isinstance(a, int) and not isinstance(b, int) and a is not b:
            out = Var(TEMPORARY, joined(a.type, b.type), span=builder.span)
            chosen.setdefault((id(a), id(b)), (a, b, out))
    if chosen:
        then = builder.nested().block([a for a, _, _ in chosen.values()], [a for a, _ in own])
        orelse = builder.nested().block([b for _, b, _ in chosen.values()], [b for _, b in own])
        outs = tuple(out for _, _, out in chosen.values())
        node = If(test, then, orelse)
        builder.lets.append(Let(outs, node, tuple(own.values()), span=builder.span))

    def merged(mine: Sequence[Part], theirs: Sequence[Part]) -> list[Part]:
        return [
            a if a is b or isinstance(a, int) else chosen[id(a), id(b)][2]
            for a, b in zip(mine, theirs, strict=True)
        ]

    contents = {**yes.contents, **no.contents, **{k: merged(a, b) for k, a, b in both}}
    return replace(no, atoms=merged(yes.atoms, no.atoms), extents=extents, contents=contents)


def _keys(layout: Layout) -> Iterator[int]:
    pending: list[Any] = [layout]
    while pending:
        here = pending.pop()
        match here:
            case LPlace(key, kind, _, content):
                yield key
                if kind != "array" and content is not None:
                    pending.append(content)
            case LNode(_, children) | LUnion(children) | LGrown(pools=children):
                pending.extend(children)
            case LView(base):
                pending.append(base)


def case_index(
    value: V.Value, layout: LUnion, heap: Heap, bound: Collection[Symbol] = ()
) -> int:
    """Which case of a union layout a value is, whose extents are written with the symbols `bound`.
    Raises NoCase if it is none."""
    fitting = [i for i, case in enumerate(layout.cases) if fits(value, case, heap)]
    if len(fitting) > 1 and isinstance(value, V.ArrayRef):
        return max(fitting, key=lambda i: _is_made_for(value, layout.cases[i], heap, bound))
    if len(fitting) > 1:  # the very object, or a list that grows, beside those of other words
        taking = [i for i in fitting if _takes_items(value, layout.cases[i], heap)] or fitting
        fixed = next((i for i in taking if isinstance(layout.cases[i], LFixed)), None)
        return fixed if fixed is not None else max(
            taking, key=lambda i: _has_room(value, layout.cases[i], heap, bound)
        )
    if fitting:
        return fitting[0]
    for i, case in enumerate(layout.cases):
        if is_open(case) and _becomes_open(value, case):
            return i
    raise NoCase(f"{value} is no case of {layout}")


def _is_made_for(
    array: V.ArrayRef, case: Layout, heap: Heap, bound: Collection[Symbol]
) -> tuple[bool, bool, bool]:
    """Whether a case that an array fits has views, if it is one, of the very part, and may be of
    this very array: as a whole array a view would be a copy, and said to be all of what it shows.
    """
    if not isinstance(case, LView):
        own = isinstance(case, LPlace) and array.root in case.may_be
        return not array.view, True, own
    window = window_of(heap.contents[array.root].type.shape, array.view)
    assert window is not None
    same = all(
        mine == theirs or dims.plain_symbol(theirs) in bound
        for mine, theirs in zip(
            (*window.starts, *window.sizes), (*case.starts, *case.sizes), strict=True
        )
    )
    own = isinstance(case.base, LPlace) and array.root in case.base.may_be
    return bool(array.view), same, own


def _takes_items(value: V.Value, layout: Layout, heap: Heap) -> bool:
    """Whether the items of a list are such as a list that grows has by a layout that fits."""
    if not (isinstance(layout, LPlace) and isinstance(layout.content, LGrown)):
        return True
    assert isinstance(value, V.Ref)
    content, template = heap.contents[value.root], layout.content.template
    if isinstance(content, V.Growing):
        return bool(content.template == template)
    return all(fits(item, template, heap) for item in content)


def _becomes_open(value: V.Value, layout: Layout) -> bool:
    """Whether a value is a tuple or a string that can be one of run-time length like this one."""
    if isinstance(layout, LNode) and layout.head == OPEN_TEXT:
        return isinstance(value, V.Text) or (
            isinstance(value, V.Known) and isinstance(value.value, str)
        )
    return (isinstance(value, V.Tuple) and value.cls is None) or (
        isinstance(value, V.Known) and type(value.value) is tuple
    )


def _has_room(
    value: V.Value, layout: Layout, heap: Heap, bound: Collection[Symbol]
) -> tuple[bool, bool]:
    """Whether a case has the room that a list has or any, and whether the very same."""
    content = heap.contents[value.root] if isinstance(value, V.Ref) else None
    if not isinstance(content, V.Growing) or not (
        isinstance(layout, LPlace) and isinstance(layout.content, LGrown)
    ):
        return True, False
    same = content.capacity == layout.content.capacity
    return same or dims.plain_symbol(layout.content.capacity) in bound, same


def fits(value: V.Value, layout: Layout, heap: Heap) -> bool:
    """True if the value's structure is that of the layout (types of leaves may be promoted)."""
    match layout:
        case LKnown(v):
            return isinstance(value, V.Known) and (
                v is value.value or (type(v) is type(value.value) and same_value(v, value.value))
            )
        case LScalar():
            return V.number_type(value) is not None
        case LFixed(reference):
            return same_reference(reference, value)
        case LParam(_, root):
            return isinstance(value, (V.ArrayRef, V.Ref)) and value.root is root
        case LPlace(_, "array", _, ty):
            ty = leaf_type(ty)
            return (
                isinstance(value, V.ArrayRef)
                and value.type.dtype == ty.dtype
                and len(value.type.shape) == len(ty.shape)
            )
        case LPlace(_, kind, cls, content):
            if not (isinstance(value, V.Ref) and value.root.kind == kind and value.cls is cls):
                return False
            if isinstance(content, LGrown):
                return not isinstance(heap.contents[value.root], (V.Part, V.Lost))
            if isinstance(content, LNode) and content.head == ("lost",):
                return True  # whatever it has
            own = fitted_to(heap.contents[value.root], content)
            return content is None or (content_head(own) == content.head and all(
                fits(v, c, heap)
                for v, c in zip(content_children(own), content.children, strict=True)
            ))
        case LNode(("natural",)):
            return V.number_type(value) == types.PY_INT
        case LNode(("data", schema, kinds), _):
            parts = V.node_of(value)
            if parts is None:
                return value == V.NONE and NO_NODE in kinds
            return parts[0].cls is schema and set(parts[1]) <= set(kinds)
        case LView(base, form):
            if not isinstance(value, V.ArrayRef):
                return False
            ty = heap.contents[value.root].type
            window = window_of(ty.shape, value.view)
            if window is None or window.form != form:
                return False
            return fits(V.ArrayRef(value.root, (), ty), base, heap)
        case LNode(("text", function, *_)) if isinstance(value, V.Known) and function is chr:
            return isinstance(value.value, str) and len(value.value) == 1
        case LNode(head, children):
            return head_of(value) == head and all(
                fits(v, c, heap) for v, c in zip(children_of(value), children, strict=True)
            )
        case LUnion(cases):
            possible = value.possible if isinstance(value, V.Union) else (value,)
            return all(
                any(fits(v, c, heap) or (is_open(c) and _becomes_open(v, c)) for c in cases)
                for v in possible
            )
    raise AssertionError(layout)
