"""`with` written with `Attempt`: a body whose end tells its manager how it went.

In: an `ast.With`. Out: the statements that stand for it (Python's language reference, section 8.5):
the manager is entered, the body run, and the manager left with what the body raised, or None; it is
raised again unless the manager says that it has dealt with it. What the manager is, `infer` finds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrelay.frontend.patterns import Ask
from pyrelay.frontend.trying import Attempt, at, load, store


def as_attempts(node: ast.With, fresh: Iterator[int]) -> list[ast.stmt]:
    """The statements that do what a `with` does; `fresh` numbers hidden names."""
    statements = node.body
    for item in reversed(node.items):
        statements = _managed(item, statements, next(fresh))
    return statements


def _managed(item: ast.withitem, body: list[ast.stmt], number: int) -> list[ast.stmt]:
    place = item.context_expr
    manager, entered, raised, dealt = (
        f".with{number}.{part}" for part in ("manager", "entered", "raised", "dealt")
    )
    first: list[ast.stmt] = [
        at(place, ast.Assign([store(place, manager)], place)),
        at(place, ast.Assign(
            [store(place, entered)], at(place, Ask("enter", [load(place, manager)]))
        )),
    ]
    if item.optional_vars is not None:
        value = at(place, Ask("entered", [load(place, entered)]))
        body = [at(place, ast.Assign([item.optional_vars], value)), *body]
    left = at(place, Ask("exit", [load(place, manager), load(place, raised)]))
    final: list[ast.stmt] = [at(place, ast.Assign([store(place, dealt)], left))]
    again: ast.stmt = at(place, ast.Raise(load(place, raised), None))
    caught: list[ast.stmt] = [
        at(place, ast.If(load(place, dealt), [at(place, ast.Pass())], [again]))
    ]
    attempt = Attempt(
        [load(place, manager), load(place, entered)], (), body, store(place, raised), final,
        caught, [], managed=True, scope=_scope_of(place),
    )
    return [*first, at(place, attempt)]


def _scope_of(manager: ast.expr) -> str:
    """The name in `scope("name")`, "" for another manager; whose `scope` it is, `infer` checks."""
    match manager:
        case ast.Call(
            ast.Attribute(attr="scope") | ast.Name(id="scope"), [ast.Constant(str(name))], []
        ):
            return name.replace("/", ".")
    return ""
