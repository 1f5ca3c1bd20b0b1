"""All of a tree is walked but its contexts and operators."""

from __future__ import annotations

import ast
from pathlib import Path

import pyrelay
from pyrelay.python_trees import children, nodes

IDLE = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
EVERYTHING = """
async def f(a, /, b: int = 1, *c, d=2, **e) -> None:
    async with a as b, c: pass
    return [x async for x in y if z], {**a, 'b': c}, f'{a!r:>{b}}', a[1:2, ...], not -a < b <= c
class A(B, metaclass=C):
    x: int = 1
    global g
try: raise E from e
except (F, G) as h: del i, j[0]
match a:
    case {'k': K(1, l=[2, *m]), **n} | None as o if p: lambda q=1: (yield q)
"""


def test_all_nodes_but_contexts_and_operators_are_found() -> None:
    texts = [EVERYTHING, (Path(pyrelay.__file__).parent / "pipeline.py").read_text()]
    for tree in map(ast.parse, texts):
        wanted = {node for node in ast.walk(tree) if not isinstance(node, IDLE)}
        found = list(nodes(tree))
        assert set(found) == wanted
        assert len(found) == len(wanted)
        for node in found:
            assert children(node) == [
                n for n in ast.iter_child_nodes(node) if not isinstance(n, IDLE)
            ]
