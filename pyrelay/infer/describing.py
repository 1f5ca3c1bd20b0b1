"""Describing: the layout of a value, as its heap has it.

In: values, and which objects are known outside. Out: their layouts (layout.py); objects of the path
alone are places of their own, extents that only it knows become symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.arrays.identity import CONTAINERS, numbered
from pyrelay.infer.arrays.windows import window_of
from pyrelay.infer.containers.open_layouts import holds_objects
from pyrelay.infer.heap import Heap
from pyrelay.infer.kinds import holders
from pyrelay.infer.layout import (
    Layout,
    LFixed,
    LGrown,
    LKnown,
    LNode,
    LPlace,
    LScalar,
    LUnion,
    LView,
    children_of,
    content_children,
    content_head,
    head_of,
    inside_slots,
    pools_of,
    retyped,
    template_types,
    with_pools,
)
from pyrelay.infer.slots import Inside, Moved
from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Extent, Origin
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


@dataclass
class Describer:
    """Describes values of one heap. `outer` says which roots exist on all paths that meet.

    Extents with symbols at least as new as `mark` are not visible outside: they become symbols of
    the layout. `loosen` makes numbers typed (for values that a loop carries).
    """

    heap: Heap
    outer: Callable[[V.Root], bool]
    mark: int
    loosen: bool = False
    place_roots: frozenset[V.Root] = frozenset()  # outer roots that get a place all the same
    keys: dict[Any, int] = field(default_factory=dict)
    rivals: dict[int, frozenset[int]] = field(default_factory=dict)
    lists: dict[int, Any] = field(default_factory=dict)  # contents: each mention tells the items
    exact: int = 0  # from 1: arrays get numbers (identity.py), from 2: views stay views
    local: frozenset[Atom] = frozenset()  # variables of the path, which nobody sees behind it
    renamed: dict[Extent, Extent] = field(default_factory=dict)
    whole_numbers: bool = False  # ints and bools stay known
    placeless: bool = False  # in which rows nodes are is not known, nor which slots lists have
    behind_call: bool = False  # whether lists in lists of lists have moved is not known
    alone: bool = False  # for one call alone: ints and bools stay known, numbers say their origin
    kinds: bool = False  # numbers of several kinds say which one they are
    counts: bool = False  # lists that grow somewhere say how many items they have
    flags: bool = False  # bools in fields of objects stay known
    slight: bool = False  # numbers say which types hold the constants that they come of
    places: dict[V.Root, list[int]] = field(default_factory=dict)  # the keys of each root
    unclear: dict[V.Root, list[int]] = field(default_factory=dict)  # of those that joins made

    def __call__(self, value: V.Value) -> Layout:
        match value:
            case V.Known(v):
                ty = types.of_scalar(v)
                if ty is not None and self.loosen and not (
                    (self.alone or self.whole_numbers) and isinstance(v, int)
                ):
                    return LScalar(ty, holders=holders(v) if self.slight else frozenset())
                return LKnown(v)
            case V.Scalar(ty, _, extent, origin):
                keep = extent is not None and not self.loosen and self._visible(extent)
                return LScalar(
                    ty, extent if keep else None, origin if self.alone or not self.loosen else None,
                    value.kinds if self.kinds else (),
                    value.holders if self.slight else frozenset(),
                )
            case V.ArrayRef(root, view, ty):
                window = self._view(value) if view and self.exact > 1 else None
                if window is not None:
                    return window
                seen = all(map(self._is_seen, view))
                if self.outer(root) and root not in self.place_roots and seen:
                    return LFixed(value)
                key = self._key(root, view)
                exact = self.exact > 0 and not view and numbered(root)
                return LPlace(
                    key, "array", None, self._type(ty), self._may_be(root), self.rivals[key], exact,
                    root.stored,
                )
            case V.Ref(root, cls):
                if self.outer(root) and root not in self.place_roots:
                    return LFixed(value)
                known = (root, ()) in self.keys
                key = self._key(root, ())
                content = self.lists.get(key) if known else self.content(root)
                if root.kind == "list":
                    self.lists[key] = content
                exact = self.exact > 0 and root.kind in CONTAINERS and numbered(root)
                return LPlace(
                    key, root.kind, cls, content, self._may_be(root), self.rivals[key], exact,
                    root.stored, root.made,
                )
            case V.Data() | V.Union() if (node := V.node_of(value)) is not None:
                pool, kinds, _, row = node
                place = LScalar(types.PY_INT) if self.placeless else self(row)
                parts = (self(pool), LScalar(types.PY_INT), place)
                return LNode(("data", pool.cls, kinds), parts)
            case V.Union():
                return LUnion(tuple(self(c) for c in value.possible))
        head = head_of(value)
        assert head is not None
        made = value.made if isinstance(value, V.Tuple) else frozenset()
        return LNode(head, tuple(self(c) for c in children_of(value)), made)

    def _key(self, root: V.Root, view: tuple[V.ViewStep, ...]) -> int:
        """The number of a place; on first sight, notes which earlier ones it may overlap."""
        number = self.keys.get((root, view))
        if number is not None:
            return number
        # A root that no join made may be the same as those alone that a join made.
        key, unclear = len(self.keys), bool(root.may_be) or root.join is not None
        others = self.places if unclear else self.unclear
        self.rivals[key] = frozenset((
            *self.places.get(root, ()),
            *(k for other, keys in others.items() if root.may_alias(other) for k in keys),
        ))
        self.keys[root, view] = key
        for known in (self.places, self.unclear) if unclear else (self.places,):
            known.setdefault(root, []).append(key)
        return key

    def _view(self, value: V.ArrayRef) -> LView | None:
        ty = self.heap.contents[value.root].type
        window = window_of(ty.shape, value.view)
        if window is None:
            return None
        base = self(V.ArrayRef(value.root, (), ty))
        starts, sizes = (tuple(map(self._hidden, e)) for e in (window.starts, window.sizes))
        return LView(base, window.form, starts, sizes, self._type(value.type))

    def _is_seen(self, step: V.ViewStep) -> bool:
        """Whether what says which part a view is of is known outside as well."""
        return not any(a in self.local for a in step.atoms) and all(
            s.serial < self.mark for _, value in step.attrs for s in walk.attr_symbols(value)
        )

    def holds(self, root: V.Root) -> bool:
        """True if the object itself, not a view of it, is in one of the places described."""
        return (root, ()) in self.keys

    def _may_be(self, root: V.Root) -> frozenset[Any]:
        """The roots known outside that a root may be the same object as."""
        return frozenset(r for r in (root, *root.may_be) if self.outer(r))

    def content(self, root: V.Root) -> Any:
        """Layout of the content of a root: a type for an array, an LNode for a container."""
        content = self.heap.contents[root]
        if root.kind == "array":
            return self._type(content.type)
        if isinstance(content, V.Growing):
            leaves = map(self._type, template_types(content.template))
            if content.prefix:
                raise AssertionError("an inner list is described where its owner is")
            template = retyped(content.template, leaves)
            if self.placeless or self.behind_call:
                template = inside_slots(template, lambda _: Inside(Moved()))
            described = {ref.root: self(ref) for ref in pools_of(template)}
            order = [r for r, pool in described.items() if not isinstance(pool, LFixed)]
            if order:
                template = with_pools(
                    template, lambda ref: order.index(ref.root) if ref.root in order else ref
                )
            return LGrown(
                template, self._extent(content.capacity), content.loops,
                self._slots(content) if holds_objects(template) else None,
                tuple(described[r] for r in order),
                content.count.value if self.counts and isinstance(content.count, V.Known) else None,
            )
        if isinstance(content, V.Part):
            return self._part(content)
        children = content_children(content)
        if self.flags and root.kind == "object":
            return LNode(content_head(content), tuple(map(self._of_field, children)))
        return LNode(content_head(content), tuple(map(self, children)))

    def _of_field(self, value: V.Value) -> Layout:
        if isinstance(value, V.Known) and type(value.value) is bool:
            return LKnown(value.value)
        return self(value)

    def _slots(self, content: V.Growing) -> Any:
        return Moved() if self.placeless else content.slots

    def _part(self, content: V.Part) -> LNode:
        """A list that is an item of another one: known if that is the same on all paths."""
        lies = self.outer(content.owner) and content.owner not in self.place_roots
        if not lies or content.gone is not None:
            return LNode(("lost",), ())
        position = content.position
        known = LKnown(position.value) if isinstance(position, V.Known) else LScalar(types.PY_INT)
        return LNode(content_head(content), (known,))

    def _visible(self, extent: Extent) -> bool:
        return all(s.serial < self.mark for s in dims.symbols(extent))

    def _type(self, ty: TensorType) -> TensorType:
        if all(self._visible(d) for d in ty.shape):
            return ty
        return TensorType(ty.dtype, tuple(map(self._extent, ty.shape)), ty.weak)

    def _hidden(self, extent: Extent) -> Extent:
        return extent if self._visible(extent) else self._extent(extent)

    def _extent(self, extent: Extent) -> Extent:
        """The extent if visible outside, else a symbol: the same one for the same extent."""
        if self._visible(extent):
            return extent
        if extent not in self.renamed:
            self.renamed[extent] = dims.fresh("d", Origin.RUNTIME)
        return self.renamed[extent]
