"""Decoding: the values that typed variables hold, as their layouts say.

In: variables in the order of the layouts' leaves. Out: values, with fresh objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from pyrelay.errors import Span
from pyrelay.infer import values as V
from pyrelay.infer.arrays.identity import Numbers
from pyrelay.infer.arrays.windows import Window, steps_of
from pyrelay.infer.heap import Heap
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
    inside_slots,
    rebuild,
    rebuild_content,
    with_pools,
)
from pyrelay.infer.leaves import typed_by_rows
from pyrelay.infer.slots import begun, begun_inside
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


@dataclass
class Decoder:
    """Reads values of a layout from variables, making fresh roots for its places."""

    outs: Iterator[Atom]
    heap: Heap
    renamed: Mapping[Symbol, Extent] = field(default_factory=dict)
    roots: dict[int, V.Root] = field(default_factory=dict)
    name: str = ""
    span: Span | None = None  # of the branch or loop
    numbers: Numbers | None = None  # of the objects in its places
    origins: dict[Any, Any] = field(default_factory=dict)  # of numbers: `Program.origins`

    def __call__(self, layout: Layout) -> V.Value:
        match layout:
            case LKnown(v):
                return V.Known(v)
            case LScalar(ty, extent, origin, kinds, held_by):
                if extent is not None:
                    return V.Scalar(ty, None, extent, origin)
                atom = next(self.outs)
                kind = next(self.outs) if kinds else None
                if origin is not None:
                    self.origins[atom] = origin
                return V.Scalar(
                    ty, atom, None, origin, kinds=kinds, kind=kind, holders=held_by
                )
            case LFixed(value):
                return value  # type: ignore[no-any-return]
            case LPlace(key, kind, cls, content, may_be, rivals, numbered, stored, made):
                root = self.roots.get(key)
                if root is None:
                    root = self.roots[key] = self._root(kind, may_be, rivals)
                    root.stored, root.made = stored, made
                    if kind == "object" and may_be:
                        self.heap.items.classes.add(cls)
                    if numbered:
                        self._identify(root, key, next(self.outs), may_be)
                    self.heap.contents[root] = self.content(kind, content)
                if kind == "array":
                    return V.ArrayRef(root, (), self.heap.contents[root].type)
                return V.Ref(root, cls)
            case LView(base, form, starts, sizes, ty):
                array = self(base)
                assert isinstance(array, V.ArrayRef)
                atoms = tuple(next(self.outs) for _ in form.axes)
                starts, sizes, shape = (
                    tuple(dims.substitute(d, self.renamed) for d in extents)
                    for extents in (starts, sizes, ty.shape)
                )
                steps = steps_of(Window(form, starts, sizes, atoms), array.type.shape)
                return V.ArrayRef(array.root, steps, TensorType(ty.dtype, shape))
            case LNode(head, children, made):
                return rebuild(head, [self(c) for c in children], made)
            case LUnion(cases):
                tag = next(self.outs)
                return V.Union(tag, tuple(self(c) for c in cases))
        raise AssertionError(layout)

    def _root(self, kind: str, may_be: frozenset[Any], rivals: frozenset[int]) -> V.Root:
        root = V.Root(kind, self.span, name=self.name, may_be=may_be, join=self)
        root.rivals.update(self.roots[k] for k in rivals if k in self.roots)
        for other in root.rivals:
            other.rivals.add(root)
        return root

    def _identify(self, root: V.Root, key: int, number: Atom, may_be: frozenset[Any]) -> None:
        assert self.numbers is not None
        root.number, root.serial = number, self.numbers.of(key)

    def content(self, kind: str, layout: Any) -> Any:
        """The content of a root of this kind."""
        if kind == "array":
            return next(self.outs)
        if isinstance(layout, LGrown):
            pools = [self(pool) for pool in layout.pools]
            items = inside_slots(layout.template, begun_inside)
            template = with_pools(
                items, lambda pool: pools[pool] if isinstance(pool, int) else pool
            )
            atom, *rows = (next(self.outs) for _ in layout.leaves)
            known = layout.known
            count = V.Scalar(types.PY_INT, atom) if known is None else V.Known(known)
            return V.Growing(
                count, tuple(rows), typed_by_rows(template, rows),
                layout.loops, (), begun(layout.slots),
            )
        return rebuild_content(layout.head, [self(c) for c in layout.children])
