"""`try` written with `Attempt`: a body whose exception becomes the value of a hidden variable.

In: an `ast.Try`. Out: the statements that stand for it. Handlers become a chain of `if` on the
exception's class, whose end raises it again; `finally` becomes an attempt around everything else.
A variable that the body assigns has to keep the value it had where the exception was raised, so
such variables live in cells, if somebody reads them then (`flow.analyse`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pyrelay.frontend.patterns import Ask

N = TypeVar("N", bound=ast.AST)


class Attempt(ast.stmt):
    """Run `body`; `target` becomes what it raised, or None. Then `final`; then `caught` if it
    raised, else `orelse`, unless `body` left by return, break or continue.

    types: the classes of the clauses, evaluated before; looks: whether the clause of each looks at
    the exception, or only at its class. managed: it is the body of a `with`, and `types` are its
    manager and the cell of what entering it gave; scope: its name, if it is a `pyrelay.scope`.
    """

    _fields = ("types", "body", "target", "final", "caught", "orelse")

    def __init__(
        self, types: list[ast.expr], looks: tuple[bool, ...], body: list[ast.stmt],
        target: ast.Name, final: list[ast.stmt], caught: list[ast.stmt], orelse: list[ast.stmt],
        *, managed: bool = False, scope: str = "",
    ) -> None:
        super().__init__()
        self.types, self.looks, self.body, self.target = types, looks, body, target
        self.final, self.caught, self.orelse = final, caught, orelse
        self.managed, self.scope = managed, scope


def as_attempts(
    node: ast.Try, fresh: Iterator[int], raised: dict[ast.Raise, ast.expr]
) -> list[ast.stmt]:
    """The statements that do what a `try` does.

    `fresh` numbers hidden names; to `raised` is added what each bare `raise` in a handler raises.
    """
    statements = [*node.body, *node.orelse]
    if node.handlers:
        statements = _with_handlers(node, fresh, raised)
    if not node.finalbody:
        return statements
    name = _hidden(fresh)
    again: ast.stmt = at(node, ast.Raise(load(node, name), None))
    target = store(node, name)
    return [at(node, Attempt([], (), statements, target, node.finalbody, [again], []))]


def _with_handlers(
    node: ast.Try, fresh: Iterator[int], raised: dict[ast.Raise, ast.expr]
) -> list[ast.stmt]:
    name = _hidden(fresh)
    classes: list[ast.stmt] = []
    types: list[ast.expr] = []
    looks: list[bool] = []
    bodies: list[tuple[ast.ExceptHandler, str, list[ast.stmt]]] = []
    for handler in node.handlers:
        cls = _hidden(fresh)
        everything: Any = BaseException
        caught = handler.type or at(handler, ast.Constant(everything))
        classes.append(at(handler, ast.Assign([store(handler, cls)], caught)))
        types.append(load(handler, cls))
        again = list(bare_raises(handler.body))
        for each in again:
            raised[each] = load(each, name)
        looks.append(bool(again) or handler.name is not None)
        body = handler.body
        if handler.name is not None:
            own = handler.name
            begin: ast.stmt = at(
                handler, ast.Assign([store(handler, own)], load(handler, name))
            )
            none = ast.Assign([store(handler, own)], at(handler, ast.Constant(None)))
            gone = ast.Delete([at(handler, ast.Name(own, ast.Del()))])
            body = [begin, *body, at(handler, none), at(handler, gone)]
        bodies.append((handler, cls, body))
    chain: list[ast.stmt] = [at(node, ast.Raise(load(node, name), None))]
    for handler, cls, body in reversed(bodies):
        if handler.type is None:
            chain = body
            continue
        test = at(handler, Ask("matches", [load(handler, name), load(handler, cls)]))
        chain = [at(handler, ast.If(test, body, chain))]
    target = store(node, name)
    attempt = Attempt(types, tuple(looks), node.body, target, [], chain, node.orelse)
    return [*classes, at(node, attempt)]


def bare_raises(body: Sequence[ast.stmt]) -> Iterator[ast.Raise]:
    """The `raise` statements without an exception that raise what this handler's body handles."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Raise) and node.exc is None:
            yield node
        elif isinstance(node, ast.Try):  # its handlers raise what they handle themselves
            pending += [*node.body, *node.orelse, *node.finalbody]
        elif isinstance(node, (ast.stmt, ast.match_case)) and not isinstance(
            node, (ast.FunctionDef, ast.ClassDef)
        ):
            pending += ast.iter_child_nodes(node)


def _hidden(fresh: Iterator[int]) -> str:
    return f".try{next(fresh)}"


def load(place: ast.AST, name: str) -> ast.Name:
    """A name that is read, placed where `place` is."""
    return at(place, ast.Name(name, ast.Load()))


def store(place: ast.AST, name: str) -> ast.Name:
    """A name that is assigned, placed where `place` is."""
    return at(place, ast.Name(name, ast.Store()))


def at(place: ast.AST, node: N) -> N:
    """A new node, placed where `place` is."""
    return ast.copy_location(node, place)
