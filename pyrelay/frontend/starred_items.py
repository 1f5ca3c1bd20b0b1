"""Comprehensions whose item is `*items` or `**entries` (PEP 798, Python 3.15), without the stars.

In: the tree of a function. Out: the tree with one more loop in each of them: `[*x for x in a]` is
`[item for x in a for item in x]`, `{**d for d in a}` is `{k: v for d in a for k, v in d.items()}`.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)


def without_stars(tree: Node) -> Node:
    """The tree itself where there are no such comprehensions."""
    if not any(map(_is_starred, ast.walk(tree))):
        return tree
    made: Node = _Writer().visit(copy.deepcopy(tree))
    return made


def _is_starred(node: ast.AST) -> bool:
    if isinstance(node, ast.DictComp):
        value: ast.expr | None = node.value
        return value is None
    return isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) and isinstance(
        node.elt, ast.Starred
    )


class _Writer(ast.NodeTransformer):
    def __init__(self) -> None:
        self.count = 0

    def visit(self, node: ast.AST) -> Any:
        node = self.generic_visit(node)
        if not _is_starred(node):
            return node
        assert isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp))
        if isinstance(node, ast.DictComp):
            many: ast.expr = node.key
            node.key, node.value = self._name(many, ast.Load()), self._name(many, ast.Load(), 1)
            names: list[ast.expr] = [
                self._name(many, ast.Store()), self._name(many, ast.Store(), 1)
            ]
            target: ast.expr = ast.copy_location(ast.Tuple(names, ast.Store()), many)
            method = ast.copy_location(ast.Attribute(many, "items", ast.Load()), many)
            many = ast.copy_location(ast.Call(method, [], []), many)
        else:
            assert isinstance(node.elt, ast.Starred)
            many = node.elt.value
            node.elt, target = self._name(many, ast.Load()), self._name(many, ast.Store())
        node.generators.append(ast.comprehension(target, many, [], 0))
        self.count += 2
        return node

    def _name(self, at: ast.expr, context: ast.expr_context, more: int = 0) -> ast.Name:
        """A name that no program has."""
        return ast.copy_location(ast.Name(f".item{self.count + more}", context), at)


__all__ = ["without_stars"]
