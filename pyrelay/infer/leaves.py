"""Leaves of layouts: which variables hold what a layout leaves open.

In: layouts. Out: the types of their variables, in order, and the symbols that these are written in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from pyrelay.infer.layout import (
    Layout,
    LGrown,
    LNode,
    LPlace,
    LRagged,
    LScalar,
    LUnion,
    LView,
    retyped,
)
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType


def leaf_types(layouts: Sequence[Any], before: Collection[int] = ()) -> list[Any]:
    """Types of the variables that an `Encoder` gives and a `Decoder` takes, in order.

    Places that layouts share count once, and those `before` not at all.
    """
    found: list[Any] = []
    seen = set(before)
    pending: list[Any] = list(reversed(layouts))
    while pending:
        here = pending.pop()
        match here:
            case LScalar(ty, extent, _, kinds):
                if extent is None:
                    found.append(ty)
                if kinds:
                    found.append(types.PY_INT)
            case LView(base, form):
                pending.extend([types.PY_INT] * len(form.axes))
                pending.append(base)
            case LPlace(key, _, _, content, numbered=numbered):
                if key not in seen:
                    seen.add(key)
                    pending.append(content)
                    if numbered:
                        found.append(types.PY_INT)
            case LNode(_, children):
                pending.extend(reversed(children))
            case LUnion(cases):
                found.append(types.PY_INT)
                pending.extend(reversed(cases))
            case LGrown():
                pending.extend(reversed((*here.pools, *here.leaves)))
            case LRagged():
                found.extend(here.leaves)
            case TensorType():
                found.append(here)
    return found


def typed_by_rows(template: Layout, rows: Sequence[Atom], lead: int = 1) -> Layout:
    """The template with the shapes of the items that these rows hold, behind `lead` extents."""
    def leaf(row: Atom) -> TensorType:
        assert isinstance(row.type, TensorType)
        return TensorType(row.type.dtype, row.type.shape[lead:])

    return retyped(template, map(leaf, rows))


def layout_symbols(layouts: Iterable[Any], mark: int) -> list[Symbol]:
    """Symbols of leaf types at least as new as `mark`: those the joining node must bind."""
    found: dict[Symbol, None] = {}
    for layout in layouts:
        for symbol in symbols_of(layout):
            if symbol.serial >= mark:
                found[symbol] = None
    return list(found)


def symbols_of(layout: Any) -> Iterator[Symbol]:
    """The symbols that the types of a layout's leaves and its views are written in."""
    for ty in leaf_types([layout]):
        yield from types.type_symbols(ty)
    for view in _views(layout):
        for extent in (*view.starts, *view.sizes, *view.type.shape):
            yield from dims.symbols(extent)


def _views(layout: Any) -> Iterator[LView]:
    pending: list[Any] = [layout]
    while pending:
        match pending.pop():
            case LView(base) as view:
                yield view
                pending.append(base)
            case LNode(_, children) | LUnion(children):
                pending.extend(children)
            case LPlace(content=LNode() as content):
                pending.append(content)
