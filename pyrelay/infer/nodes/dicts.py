"""Dicts of known keys: values on the heap, or nodes with a field for each key.

In: keys and values. Out: a dict of the program, or, where the expression at hand makes dicts that
are items of lists (`Program.keyed`), a node (in_python/entries.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrelay import errors
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.in_python.entries import entries_class, is_entries
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.datatypes import Families


def new_dict(it: Interpreter, content: Mapping[Any, V.Value]) -> V.Value:
    """The dict that the expression at hand makes."""
    if it.let is None or it.let not in it.program.keyed:
        return it.new_ref("dict", dict(content))
    from pyrelay.infer.nodes.building import build

    cls = entries_class(*content)
    it.program.entries.setdefault(cls, set()).add(it.let)
    declare(it.program.families, cls)
    return build(it, cls, {f"_{k}": value for k, value in enumerate(content.values())})


def declare(families: Families, cls: type) -> None:
    """Make dicts of a class nodes: all such dicts of a program are of one data type, so that one
    list may have dicts of different keys."""
    if families.of(cls) is None:
        families.declare([*filter(is_entries, families.entered), cls])


def refuse_leaf(it: Interpreter, cls: type, value: V.Ref) -> None:
    """Raises NeedsEntries for a dict in a dict that is a node: the leaves of a tree of dicts."""
    made = value.root.made
    if value.root.kind == "dict" and made is not None and is_entries(cls) and it.content(
        value.root
    ) and made not in it.program.keyed | it.program.nested | it.program.tables:
        raise needs.NeedsEntries(it.program.keyed | {made}, endless=True)


def refuse_keys(it: Interpreter, cls: type) -> errors.PyrelayError:
    """The error for a dict with a field for each key that would get other ones: a table it is."""
    it.program.outgrown |= it.program.entries.get(cls, set())
    return it.failure(
        errors.UnsupportedOperationError,
        "this dict is an item of a list, and gets a key here that it was not made with, or loses "
        "one",
        hints=("make it with all its keys: {'id': k, 'weight': None}",),
    )
