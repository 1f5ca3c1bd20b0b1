"""Whether rounds of a loop look up short numbers at places that they have read.

In: the statements of a loop in the kernel language, with no loop inside. Out: `looks_up_short`,
whether one of them loads an element of one or two bytes from a place that is made of what the round
has loaded, as `out[i] = table[data[i] & 63]` does. Processors load vectors from places that lie
apart for numbers of four and eight bytes only: LLVM makes vectors of such loops where what is
around the lookup gains by it, and takes each number out of one vector and puts it into another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pyrelay.python_trees import nodes

_SHORT = ("_u8", "_i8", "_u16", "_i16", "_bool")


def looks_up_short(body: Iterable[ast.stmt]) -> bool:
    """Whether a statement of the body, or of its branches, is such a lookup."""
    return _found(body, set())


def _found(body: Iterable[ast.stmt], loaded: set[str]) -> bool:
    for statement in body:
        whole: ast.AST = statement.test if isinstance(statement, ast.If) else statement
        for each in nodes(whole):
            match each:
                case ast.Call(func=ast.Name(id=name), args=[_, place]) if (
                    name.startswith("load_") and name.endswith(_SHORT)
                    and any(_is_read(part, loaded) for part in nodes(place))
                ):  # fmt: skip
                    return True
        if isinstance(statement, ast.If):
            if _found((*statement.body, *statement.orelse), loaded):
                return True
        elif isinstance(statement, ast.Assign) and any(
            _is_read(part, loaded) for part in nodes(statement)
        ):
            loaded.update(t.id for t in statement.targets if isinstance(t, ast.Name))
    return False


def _is_read(node: ast.AST, loaded: set[str]) -> bool:
    """Whether a part of an expression is loaded, or made of what is."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name.startswith("load_")
        case ast.Name(id=name):
            return name in loaded
    return False
