"""How the short way into a program packs trees, as Python text (`direct`).

In: the names of the trees and lists of trees among the arguments, and the schemas of their pools.
Out: lines that give the places of the roots and the columns of the pools as the program's leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pyrelay.devices.runtime.packing import tables_of
from pyrelay.direct_text import NeedsMore, Text
from pyrelay.infer.in_python.entries import is_entries
from pyrelay.infer.in_python.fixed_lists import is_fixed
from pyrelay.infer.nodes.datatypes import MOST_ITEMS, NO_NODE, Schema, alternatives
from pyrelay.infer.nodes.pools import Packed
from pyrelay.infer.structure import Key

PLACE: Key = ("place",)
"""The key of a kind or a row of a tree, or of those of a list of trees."""
FIELD: Key = ("field",)
"""The key of a column of a pool."""


def pack_trees(text: Text, pools: Key) -> None:
    """Lines that pack the roots of `text`, whose leaves have their names already.

    pools: what `structure.flatten` says of them. Raises NeedsMore where native code cannot pack
    them, or where they hold arrays.
    """
    schemas, described = pools
    kinds_of = [own for _, own in described]
    members: list[list[int]] = [[] for _ in schemas]
    for root, (pool, _) in enumerate(described):
        members[pool].append(root)
    lists = [text.containers.count(name) > 0 for name in text.roots]
    packers = [
        _Packer(schema, [kinds_of[k] for k in own], [lists[k] for k in own])
        for schema, own in zip(schemas, members, strict=True)
    ]
    places = [k for k, key in enumerate(text.keys) if key == PLACE]
    for packer, own in zip(packers, members, strict=True):
        columns = text.fresh(len(packer.names))
        (pool,) = text.fresh(1)
        leaves = [text.leaves[places[2 * k + at]] for k in own for at in range(2)]
        given = "".join(f"{text.roots[k]}, " for k in own)
        text.line(f"{', '.join([*leaves, *columns, pool])}, = {text.name(packer)}(({given}))")
        text.leaves += columns
        text.keys += [FIELD] * len(columns)
        text.objects.append(pool)
        text.pools.append(pool)
        if any(is_entries(cls) or is_fixed(cls) for cls in packer.schema.classes):
            others = "".join(f"{name}, " for name in text.containers)
            text.test(f"{text.name(_are_rows_apart)}({pool}, ({others}))")


class _Packer:
    """Packs the trees of one pool."""

    def __init__(
        self, schema: Schema, kinds: Sequence[tuple[int, ...]], lists: Sequence[bool]
    ) -> None:
        """kinds: those that each root may be of. lists: whether it is a list of trees."""
        tables = tables_of(schema)
        if tables is None or tables.holds_arrays:
            raise NeedsMore
        self.tables, self.schema = tables, schema
        self.names = [name for name, _ in tables.order]
        self.kinds, self.lists = kinds, lists
        self.known: list[set[frozenset[int]]] = [set() for _ in kinds]

    def __call__(self, roots: tuple[Any, ...]) -> list[Any]:
        """Kinds and rows of each root, the columns of the pool, and the pool. Raises ValueError
        where the roots are unlike those that the program was made for."""
        pairs = zip(roots, self.lists, strict=True)
        trees = [root if is_list else (root,) for root, is_list in pairs]
        found = self.tables.packed(None, trees[0] if len(trees) == 1 else [*chain(*trees)])
        if found is None:
            raise ValueError
        packed, (kinds, rows) = found
        leaves: list[Any] = []
        start = 0
        for k, own in enumerate(trees):
            stop = start + len(own)
            of_root = kinds[start:stop]
            first = int(of_root[0])
            alike = bool((of_root == first).all())
            met = frozenset([first] if alike else of_root.tolist())
            if met not in self.known[k]:
                self._look_at(met, k)
            if self.lists[k]:
                leaves += of_root, rows[start:stop]
            else:
                leaves += int(of_root[0]), int(rows[start])
            start = stop
        return [*leaves, *packed.columns.values(), packed]

    def _look_at(self, met: frozenset[int], root: int) -> None:
        """Note that the trees of a root may be of these kinds; ValueError if they may not."""
        possible = {k for kind in met for k in alternatives(self.schema, kind)}
        if NO_NODE in met or tuple(sorted(possible)) != self.kinds[root]:
            raise ValueError
        self.known[root].add(met)


def _are_rows_apart(packed: Packed, containers: Sequence[Any]) -> bool:
    """Whether no dict or short list is a node in one place and a container in another."""
    others = {
        id(c) for c in containers
        if type(c) is dict or (type(c) is list and 0 < len(c) <= MOST_ITEMS)
    }
    return not others or all(others.isdisjoint(map(id, nodes)) for nodes in packed.objects)


__all__ = ["FIELD", "PLACE", "pack_trees"]
