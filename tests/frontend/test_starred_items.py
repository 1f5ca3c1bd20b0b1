"""Comprehensions of `*items` are those with one more loop."""

from __future__ import annotations

import ast
import re

import pytest

from pyrelay.frontend.starred_items import without_stars


def _starred(text: str) -> ast.Module:
    """A tree as Python 3.15 reads it: items whose name begins with two underscores are starred."""

    class Stars(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id.startswith("__"):
                name = ast.copy_location(ast.Name(node.id[2:], node.ctx), node)
                return ast.copy_location(ast.Starred(name, ast.Load()), node)
            return node

        def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
            node.value = None
            return node

    tree = ast.parse(text)
    return Stars().visit(tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[__x for x in a if x]", [1, 2, 3]),
        ("sorted({__x for x in a})", [1, 2, 3]),
        ("list(__x for x in a)", [1, 2, 3]),
        ("{d: 0 for d in b}", {1: 2, 3: 4}),
        ("[len([__y for y in [x, x]]) for x in a]", [4, 2]),
        ("[k for k in a]", [[1, 2], [3]]),
    ],
)
def test_values_are_those_of_the_loops(text: str, expected: object) -> None:
    tree = _starred(text)
    written = without_stars(tree)
    assert (written is tree) == (text == "[k for k in a]")
    named = re.sub(r"\.item(\d)", r"item\1", ast.unparse(written))
    assert eval(named, {"a": [[1, 2], [3]], "b": [{1: 2}, {3: 4}]}) == expected
