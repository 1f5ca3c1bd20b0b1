"""Lists of run-time length that leave the program: as results, and handed to Python.

In: the content of such a list. Out: the tree of the list, with the numbers that its rows have among
what leaves the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import growing, lists
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.result_trees import (
    CaseResult,
    ConstantResult,
    GrownResult,
    KindResult,
    LeafResult,
    NodeResult,
    PoolResult,
    ResultTree,
    TreeResult,
)
from pyrelay.infer.wide import WHOLE
from pyrelay.ir import types
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType


def grown_tree(
    it: Interpreter, content: V.Growing, number: Callable[[Atom], int],
    pool: Callable[[V.Ref], PoolResult], key: int = -1,
) -> GrownResult:
    """The items of a growing list: its rows without the room to spare.

    number: enters a result. pool: enters the pool of nodes among the items.
    """
    content = growing.plain(it.builder, content)
    size = lists.count_extent(it, content)
    rows = tuple(
        number(growing.items_array(it.builder, row, size).atom) for row in content.rows
    )
    count = number(it.atom(content.count))
    tree = _item_tree(content.template, iter(range(len(rows))), pool)
    return GrownResult(rows, count, tree, key)


def _cut_out(*parts: Any) -> Any:
    """An array of extents, from the array that has room for it."""
    *extents, room = parts
    return room[tuple(map(slice, extents))].copy()


def _item_tree(
    template: L.Layout, leaves: Iterator[int], pool: Callable[[V.Ref], PoolResult]
) -> ResultTree:
    """The tree of one item of a growing list, whose leaves have these numbers."""

    def several(templates: Iterable[L.Layout]) -> tuple[ResultTree, ...]:
        return tuple(_item_tree(t, leaves, pool) for t in templates)

    match template:
        case L.LKnown(v):
            return ConstantResult(v)
        case L.LPlace(_, "list", _, L.LGrown(inner)):
            number = next(leaves)
            mine = tuple(next(leaves) for _ in L.template_types(inner))
            return GrownResult(mine, number, _item_tree(inner, iter(range(len(mine))), pool))
        case L.LPlace(content=L.LRagged(ty)):
            extents = tuple(LeafResult(next(leaves), types.PY_INT) for _ in range(ty.rank))
            return NodeResult("call", _cut_out, (), (*extents, LeafResult(next(leaves), ty)))
        case L.LScalar(ty, kinds=kinds) if kinds:
            number, kind = next(leaves), LeafResult(next(leaves), types.PY_INT)
            return KindResult(LeafResult(number, TensorType(ty.dtype, (), True)), kind, kinds)
        case L.LScalar(ty) | L.LPlace(_, _, _, ty):
            return LeafResult(next(leaves), ty)
        case L.LNode(("natural",)):
            return LeafResult(next(leaves), WHOLE)
        case L.LNode(("tuple", cls, _), children):
            return NodeResult("tuple", cls, (), several(children))
        case L.LNode(("data", *_), (L.LFixed(V.Ref() as ref), *_)):
            kind, row = (LeafResult(next(leaves), types.PY_INT) for _ in range(2))
            return TreeResult(pool(ref), kind, row)
        case L.LNode(("open tuple",), children):
            return NodeResult("call", tuple, (), several(children))
        case L.LNode(("text", function, *_), children):
            return NodeResult("call", function, (), several(children))
        case L.LUnion(cases):
            tag = next(leaves)
            return CaseResult(tag, several(cases))
    raise AssertionError(template)
