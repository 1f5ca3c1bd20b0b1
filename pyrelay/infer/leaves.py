"""Leaves of layouts: which variables hold what a layout leaves open.

In: layouts. Out: the types of their variables, in order, and the symbols that these are written in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def leaf_types(layouts: Sequence[Any]) -> list[Any]:
    """Types of the variables that an `Encoder` gives and a `Decoder` takes, in order.

    Places that layouts share count once.
    """
    found: list[Any] = []
    seen: set[int] = set()
    pending: list[Any] = list(reversed(layouts))
    while pending:
        here = pending.pop()
        if isinstance(here, TensorType):
            found.append(here)
        elif not isinstance(here, LPlace):
            pending.extend(reversed(parts_of(here)))
        elif here.key not in seen:
            seen.add(here.key)
            pending.append(here.content)
            if here.numbered:
                found.append(types.PY_INT)
    return found


def parts_of(layout: Any) -> tuple[Any, ...]:
    """The types of a layout's leaves, in order, and the layouts that it is made of; of a place what
    it contains."""
    match layout:
        case LScalar(ty, extent, _, kinds):
            return (*([ty] if extent is None else ()), *([types.PY_INT] if kinds else ()))
        case LView(base, form):
            return (base, *[types.PY_INT] * len(form.axes))
        case LPlace(content=content):
            return (content,)
        case LNode(_, children):
            return children
        case LUnion(cases):
            return (types.PY_INT, *cases)
        case LGrown():
            return (*layout.pools, *layout.leaves)
        case LRagged():
            return layout.leaves
    return ()


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
