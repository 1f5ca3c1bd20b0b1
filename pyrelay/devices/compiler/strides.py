"""Which products of a kernel's text are strides that only the call knows.

In: the nodes of a kernel's tree. Out: the products of what differs between rounds of an innermost
loop and of an extent: `x[:, k]` reads every so many elements. LLVM guesses of such a number that it
is 1: it makes vectors for that case alone, and goes one by one through the columns of all other
matrices.
Where it does not see the number itself it makes vectors whose lanes are gathered, if that is worth
it: functions of columns take a third of the time. Where little is computed gathering is slower, and
so it is in many loops of the user's own, with branches and exchanges, that call no such function.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.python_trees import nodes

_MUCH = 14  # operations of a round, accesses among them


def strides(
    every: Sequence[ast.AST], names: Mapping[str, Any]
) -> dict[ast.BinOp, ast.expr]:
    """Such products, and the side of each that is the stride.

    every: all nodes of the kernel's definition. names: what the text imports.
    """
    own = "param_apart" in names
    extents = {
        target.id for each in every if isinstance(each, ast.Assign)
        for target in each.targets if isinstance(target, ast.Name) and _is_extent(each.value)
    }
    found: dict[ast.BinOp, ast.expr] = {}
    for loop in every if extents else ():
        if not isinstance(loop, ast.For) or _has_loops(loop):
            continue
        if not _calls_much(loop, names) and (own or not _computes_much(loop)):
            continue
        changing = {
            each.id for each in nodes(loop)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        for each in nodes(loop):
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult):
                for stride, other in ((each.left, each.right), (each.right, each.left)):
                    if _is_stride(stride, extents) and _mentions(other, changing):
                        found[each] = stride
    return found


def _is_extent(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
        and value.func.id == "param_extent"
    )


def _has_loops(loop: ast.For) -> bool:
    return any(each is not loop and isinstance(each, (ast.For, ast.While)) for each in nodes(loop))


def _calls_much(loop: ast.For, names: Mapping[str, Any]) -> bool:
    """Whether a loop calls a function of many instructions."""
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
        and getattr(names.get(each.func.id), "chained", False) for each in nodes(loop)
    )


def _computes_much(loop: ast.For) -> bool:
    """Whether a round of a loop has many operations, or one that takes long."""
    made = [each for each in nodes(loop) if isinstance(each, (ast.BinOp, ast.Compare, ast.Call))]
    return len(made) >= _MUCH or any(
        isinstance(each.op, ast.Div) if isinstance(each, ast.BinOp)
        else isinstance(each, ast.Call) and ast.unparse(each.func) == "sqrt" for each in made
    )


def _is_stride(value: ast.expr, extents: set[str]) -> bool:
    match value:
        case ast.Name(id=name):
            return name in extents
        case ast.BinOp(left=ast.Constant(), op=ast.Mult(), right=ast.Name(id=name)):
            return name in extents
    return False


def _mentions(value: ast.expr, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in nodes(value))
