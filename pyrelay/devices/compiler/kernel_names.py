"""Which names of a kernel need no memory.

In: the definition of a function of the kernel language. Out: `values_alone`, the names that are
bound at one place, below which, and in no other list of statements than that or those inside of it,
are all their uses: such a name stands for one value wherever it is used. Of other names
`kernel_lowering` makes variables.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyrelay.python_trees import nodes

Path = tuple[tuple[int, int], ...]
"""Where a statement stands: for each list around it, from the outside, its number and the place in
it."""


class _Places:
    """Where names are bound, and where they are used."""

    def __init__(self) -> None:
        self.bound: dict[str, list[Path]] = {}
        self.used: dict[str, list[Path]] = {}
        self._lists = 0

    def walk(self, statements: Sequence[ast.stmt], around: Path, bound: ast.expr | None = None
             ) -> None:
        """Look through a list of statements, before which a name is bound."""
        self._lists += 1
        number = self._lists
        if bound is not None:
            self._names(bound, (*around, (number, -1)))
        for place, statement in enumerate(statements):
            here = (*around, (number, place))
            if isinstance(statement, ast.For):
                self._names(statement.iter, here)
                self.walk(statement.body, here, statement.target)
            elif isinstance(statement, (ast.If, ast.While)):
                self._names(statement.test, here)
                self.walk(statement.body, here)
                self.walk(statement.orelse, here)
            else:
                self._names(statement, here)
                if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                    self.used.setdefault(statement.target.id, []).append(here)

    def _names(self, node: ast.AST, here: Path) -> None:
        for each in nodes(node):
            if isinstance(each, ast.Name):
                found = self.used if isinstance(each.ctx, ast.Load) else self.bound
                found.setdefault(each.id, []).append(here)


def values_alone(definition: ast.FunctionDef) -> set[str]:
    """The names, parameters among them, that stand for one value wherever they are used."""
    places = _Places()
    for parameter in definition.args.args:
        places.bound[parameter.arg] = [((0, 0),)]
    places.walk(definition.body, ((0, 1),))
    return {
        name for name, found in places.bound.items()
        if len(found) == 1 and all(_is_below(use, found[0]) for use in places.used.get(name, ()))
    }


def _is_below(use: Path, bound: Path) -> bool:
    """Whether a statement only runs after another, which is not run again between the two."""
    depth = len(bound) - 1
    return (
        len(use) > depth and use[:depth] == bound[:depth] and use[depth][0] == bound[depth][0]
        and use[depth][1] > bound[depth][1]
    )
