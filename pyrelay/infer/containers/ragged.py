"""Arrays of several shapes in one list of run-time length.

In: items of growing lists (growing.py) whose template has arrays with extents of their own
(`layout.LRagged`). Out: an array cut out of the room of its row, rows filled up to that room, and
what concatenating and stacking make of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType


def cut(
    builder: Builder, template: L.Layout, leaves: Sequence[Atom]
) -> tuple[L.Layout, list[Atom]]:
    """An item with arrays as large as they are, and its template; `leaves` fill their room."""
    if not L.is_ragged(template):
        return template, list(leaves)
    own: Iterator[Atom] = iter(leaves)
    found: list[Atom] = []

    def visit(here: L.Layout) -> L.Layout:
        match here:
            case L.LPlace(content=L.LRagged(ty)):
                numbers = [next(own) for _ in range(ty.rank)]
                array = first_part(builder, next(own), [_extent(builder, n) for n in numbers])
                found.append(array)
                return replace(here, content=array.type)
            case L.LNode(_, children):
                return replace(here, children=tuple(map(visit, children)))
            case L.LUnion(cases):
                found.append(next(own))
                return L.LUnion(tuple(map(visit, cases)))
        found.extend(next(own) for _ in L.template_types(here))
        return here

    return visit(template), found


def _extent(builder: Builder, number: Atom) -> Extent:
    _, (extent,) = builder.call(OPS["as_extent"], number, name="k")
    return extent  # type: ignore[no-any-return]


def first_part(builder: Builder, array: Atom, sizes: Sequence[Extent]) -> Atom:
    """So many elements from the start along each axis."""
    part: Any = builder.call(
        OPS["slice"], array, starts=(0,) * len(sizes), sizes=tuple(sizes), steps=(1,) * len(sizes)
    )
    return part.atom  # type: ignore[no-any-return]


def write_array(builder: Builder, content: V.Growing, item: V.Item, array: Atom) -> V.Growing:
    """The content of a list with another array of the same shape where it has this one."""
    from pyrelay.infer.containers.growing import write_leaf

    leaf = item.leaf
    match content.template:
        case L.LPlace(content=L.LRagged(ty)):
            leaf += ty.rank
            array = filled_up(builder, array, content.rows[leaf].type.shape[-ty.rank :])  # type: ignore[union-attr]
        case _:
            shape = content.rows[leaf].type.shape[len(content.prefix) + 1 :]  # type: ignore[union-attr]
            array = _as_item(builder, array, shape)
    return write_leaf(builder, content, item.position, leaf, array)


def _as_item(builder: Builder, array: Atom, shape: Sequence[Extent]) -> Atom:
    """The array, which was read from these rows, with the extents that they have by now."""
    if array.type.shape == tuple(shape):  # type: ignore[union-attr]
        return array
    typed: Any = builder.call(OPS["refine"], array, shape=tuple(shape))
    return typed.atom  # type: ignore[no-any-return]


def filled_up(builder: Builder, array: Atom, shape: Sequence[Extent]) -> Atom:
    """The array as the first part of one of zeros of this shape, which it fits into."""
    assert isinstance(array.type, TensorType)
    blank = builder.full(0, tuple(shape), array.type.dtype)
    rank = array.type.rank
    filled: Any = builder.call(
        OPS["slice_update"], blank, array, starts=(0,) * rank, sizes=array.type.shape,
        steps=(1,) * rank,
    )
    return filled.atom  # type: ignore[no-any-return]
