"""Function values: nested `def` and `lambda`.

In: the node of a nested function. Out: a PyCall that makes the function value from its defaults and
the cells it captures, and an entry in the program's list of functions to lower.
"""

from __future__ import annotations

import ast

from pyrelay.frontend.flow import evaluated_defaults
from pyrelay.frontend.lowering import Lowering, Pending, evaluate
from pyrelay.frontend.recursion import Work
from pyrelay.frontend.source import FunctionNode
from pyrelay.ir.nodes import Atom


def make(low: Lowering, node: FunctionNode) -> Work[Atom]:
    """Evaluate the defaults and make the function value."""
    args: list[Atom] = []
    for default in evaluated_defaults(node.args):
        args.append((yield evaluate(low, default)))
    scope = low.names.functions[node]
    name = low.program.function_name(low.name, node)
    certain = {v for v in scope.cells if v not in low.env.unset and not v.deleted}
    plain = isinstance(node, ast.FunctionDef) and not node.decorator_list
    if plain and node in low.names.meaning:
        own = low.names.variable(node)  # set as soon as the function is there to be called
        if not own.deleted:
            certain.add(own)
    low.program.pending.append(Pending(node, name, frozenset(certain)))
    return low.py(
        "function",
        (*args, *(low.cells[v] for v in scope.cells)),
        low.span(node) if isinstance(node, ast.Lambda) else low.first_line(node),
        function=name,
        defaults=tuple(defaulted(node.args)),
        cells=tuple(v.name for v in scope.cells),
    )


def defaulted(args: ast.arguments) -> list[str]:
    """Names of the parameters that have a default, in the order the defaults are evaluated."""
    positional = [*args.posonlyargs, *args.args]
    named = positional[len(positional) - len(args.defaults) :]
    named += [a for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
    return [a.arg for a in named]
