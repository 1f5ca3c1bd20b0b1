"""Generators: `yield` written as a condition, a generator expression as a generator function.

In: an `ast.Yield` or `ast.YieldFrom` that is a statement, a generator expression that is not used
up where it stands. Out: statements and a function without them: `yield v` hands `v` to the consumer
and asks whether the consumer is done, in which case the generator returns.
`x = yield from g()` asks for what `g()` returned behind that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeVar

from pyrelay.frontend.patterns import Ask
from pyrelay.ir.nodes import UNREAD
from pyrelay.python_trees import nodes

N = TypeVar("N", bound=ast.AST)

#: Callees that use up an iterable before they return: to these a list is as good.
_USE_UP = frozenset({
    "all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple",
})

#: Methods, and functions of modules, that ask an iterable for one item after the other.
_GO_ON = frozenset({
    "accumulate", "chain", "compress", "dropwhile", "filterfalse", "from_iterable", "groupby",
    "islice", "pairwise", "starmap", "takewhile", "tee", "zip_longest",
})

FIRST = ".0"
"""The parameter of the function of a generator expression: the first iterable (as in CPython)."""


def kept(function: ast.AST) -> frozenset[ast.AST]:
    """The generator expressions that are not used up where they stand."""
    found: set[ast.AST] = set()
    used_up: set[ast.AST] = set()
    for node in nodes(function):
        match node:
            case ast.GeneratorExp():
                found.add(node)
            case ast.Call(func=func, args=[ast.GeneratorExp() as only, *others], keywords=named):
                beside = [*others, *(k.value for k in named)]
                if _uses_up(func) and all(map(_has_no_effect, beside)):
                    used_up.add(only)
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=ast.GeneratorExp() as only):
                used_up.add(only)
            case ast.Starred(value=ast.GeneratorExp() as only):
                used_up.add(only)
    return frozenset(found - used_up)


def _uses_up(func: ast.expr) -> bool:
    if isinstance(func, ast.Name):
        return func.id in _USE_UP
    return not (isinstance(func, ast.Attribute) and func.attr in _GO_ON)


def _has_no_effect(node: ast.expr) -> bool:
    """Whether it does not matter if an argument is evaluated before or after the items."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, (ast.Constant, ast.Name, ast.Lambda))


def as_condition(node: ast.Yield | ast.YieldFrom, fresh: Iterator[int]) -> list[ast.stmt]:
    """The statements that do what `yield value` or `yield from iterable` does."""

    def at(made: N) -> N:
        return ast.fix_missing_locations(ast.copy_location(made, node))

    if isinstance(node, ast.YieldFrom):
        name = f".item{next(fresh)}"
        return [at(ast.For(
            at(ast.Name(name, ast.Store())), node.value,
            [_handed(at(ast.Name(name, ast.Load())), node)], [],
        ))]
    return [_handed(at(ast.Constant(None)) if node.value is None else node.value, node)]


def as_assignment(node: ast.Assign, fresh: Iterator[int]) -> list[ast.stmt]:
    """The statements that do what `x = yield value` or `x = yield from iterable` does."""

    def at(made: N) -> N:
        return ast.fix_missing_locations(ast.copy_location(made, node.value))

    if isinstance(node.value, ast.Yield):  # where a loop goes through it, nothing is sent
        statements, got = as_condition(node.value, fresh), at(ast.Constant(None))
        return [*statements, ast.copy_location(ast.Assign(node.targets, got), node)]
    assert isinstance(node.value, ast.YieldFrom)
    inner = f".inner{next(fresh)}"
    made = at(ast.Assign([ast.Name(inner, ast.Store())], node.value.value))
    through = as_condition(at(ast.YieldFrom(ast.Name(inner, ast.Load()))), fresh)
    returned = at(Ask("returned", [at(ast.Name(inner, ast.Load()))]))
    return [made, *through, ast.copy_location(ast.Assign(node.targets, returned), node)]


def parted(node: ast.AugAssign, before: str, got: str) -> list[ast.Assign | ast.AugAssign]:
    """`x += yield y` as it goes on: x is read, what is sent is assigned, and added to what was
    read. before, got: variables for these."""

    def named(name: str, context: ast.expr_context) -> ast.Name:
        return ast.copy_location(ast.Name(name, context), node.target)

    def assigned(target: ast.expr, value: ast.expr) -> ast.Assign:
        return ast.copy_location(ast.Assign([target], value), node)

    assert isinstance(node.target, ast.Name)
    changed = ast.AugAssign(named(before, ast.Store()), node.op, named(got, ast.Load()))
    return [
        assigned(named(before, ast.Store()), named(node.target.id, ast.Load())),
        assigned(named(got, ast.Store()), node.value),
        ast.copy_location(changed, node),
        assigned(node.target, named(before, ast.Load())),
    ]


def as_augmented(node: ast.AugAssign, fresh: Iterator[int]) -> list[ast.stmt]:
    """The statements that do what `x += yield value` or `x += yield from iterable` does, of a
    variable, which is read before."""
    number = next(fresh)
    read, sent, *added = parted(node, f".before{number}", f".got{number}")
    assert isinstance(sent, ast.Assign)
    return [read, *as_assignment(sent, fresh), *added]


def as_return(node: ast.Return, fresh: Iterator[int]) -> list[ast.stmt]:
    """The statements that do what `return (yield value)` or `return (yield from iterable)` does."""
    assert node.value is not None
    name = f".returned{next(fresh)}"
    stored = ast.copy_location(ast.Name(name, ast.Store()), node.value)
    kept = ast.copy_location(ast.Assign([stored], node.value), node)
    read = ast.copy_location(ast.Name(name, ast.Load()), node.value)
    return [*as_assignment(kept, fresh), ast.copy_location(ast.Return(read), node)]


def _handed(value: ast.expr, node: ast.expr) -> ast.stmt:
    """`if <the consumer of value is done>: return`, of which nobody reads what is returned."""
    asked = ast.copy_location(Ask("yield", [value]), node)
    unread: Any = UNREAD
    nothing = ast.copy_location(ast.Constant(unread), node)
    left = ast.copy_location(ast.Return(nothing), node)
    return ast.copy_location(ast.If(asked, [left], []), node)


def as_function(node: ast.GeneratorExp) -> ast.FunctionDef:
    """The generator function of a generator expression."""

    def at(made: N) -> N:
        return ast.copy_location(made, node)

    body: ast.stmt = at(ast.Expr(at(ast.Yield(node.elt))))
    for number, generator in reversed(list(enumerate(node.generators))):
        for test in reversed(generator.ifs):
            body = ast.copy_location(ast.If(test, [body], []), test)
        iterable = generator.iter if number else at(ast.Name(FIRST, ast.Load()))
        body = ast.copy_location(
            ast.For(generator.target, iterable, [body], []), generator.target
        )
    parameters = ast.arguments([at(ast.arg(FIRST))], [], None, [], [], None, [])
    return at(ast.FunctionDef("<genexpr>", parameters, [body], []))
