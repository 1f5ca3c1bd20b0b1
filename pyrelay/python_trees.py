"""Walks over Python's syntax trees.

In: a node of `ast`. Out: its children, or all nodes below it. Contexts (`Load`, `Store`, `Del`) and
operators are no children: nobody walks for them, and they are a third of what `ast.walk` gives.
"""

from __future__ import annotations

import ast
from typing import Any

MADE = "__pyrelay_made__"
"""In the namespace of functions and classes that were made of a tree which is no text of a file."""

#: Fields that hold texts, numbers, contexts or operators.
_NO_NODES = {
    "arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "lineno", "module",
    "op", "ops", "rest", "simple", "tag", "type_comment",
}  # fmt: skip

#: The fields of a class in which nodes may be.
_FIELDS: dict[type, tuple[str, ...]] = {ast.Constant: ()}

_LEAVES = {ast.Constant, ast.Name}
"""Classes of most nodes that have none below them."""


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes that are fields of a node, in their order."""
    found: list[ast.AST] = []
    fields = _FIELDS.get(type(node))
    if fields is None:
        fields = _FIELDS[type(node)] = tuple(f for f in node._fields if f not in _NO_NODES)
    for name in fields:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def nodes(tree: ast.AST) -> list[ast.AST]:
    """A node and all below it, those that stand later first."""
    found: list[ast.AST] = []
    pending = [tree]
    while pending:
        node = pending.pop()
        found.append(node)
        if type(node) not in _LEAVES:
            pending += children(node)
    return found


def is_made(value: Any) -> bool:
    """True for a function or class that was made of a tree; it changes with what it was made of."""
    return MADE in getattr(value, "__dict__", ())
