"""Classes that are defined inside functions: made once, when the function is read.

In: the definitions of a function, and the names that its variables have. Out: the classes, as
Python makes them, or `Problem`s: a class that reads variables of the function is another one at
each call, and one with attributes that can be changed begins anew with each.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from pyrelay.frontend import source
from pyrelay.frontend.scope import Problem
from pyrelay.python_trees import MADE, nodes

_CHANGED = (list, dict, set, bytearray, np.ndarray)
_OUTSIDE = "define the class outside of the function"


def made(
    function: types.FunctionType, definitions: Sequence[ast.ClassDef], around: Collection[str]
) -> tuple[dict[ast.ClassDef, type], list[Problem]]:
    """The classes of these definitions, which stand in one function; or why there are none.

    around: the variables of that function and of those around it, its classes among them.
    """
    names = [each.name for each in definitions]
    twice = [each for k, each in enumerate(definitions) if each.name in names[:k]]
    if twice:
        return {}, [Problem(twice[0], "a second class of this name", "give it another name")]
    code = _code(function, definitions, sorted(set(around) - set(names)))
    if code.co_freevars:
        return {}, [_reading(definitions, code.co_freevars[0])]
    try:
        classes = types.FunctionType(code, function.__globals__)()
    except Exception as error:
        word = f"a class definition that raises {type(error).__name__}: {error}"
        return {}, [Problem(definitions[0], word, _OUTSIDE)]
    problems = []
    for cls, node in zip(classes, definitions, strict=True):
        cls.__qualname__ = f"{function.__qualname__}.<locals>.{cls.__name__}"
        setattr(cls, MADE, True)
        for method in _functions(cls):
            _give_source(function, method, node)
        problems += [
            Problem(node, f"a class with an attribute that can be changed, {name!r}", _OUTSIDE)
            for name in _assigned(node) if _can_change(vars(cls).get(name))
        ]
    return dict(zip(definitions, classes, strict=True)), problems


def _code(
    function: types.FunctionType, definitions: Sequence[ast.ClassDef], around: Sequence[str]
) -> types.CodeType:
    """The code that makes the classes; what it reads of `around` is free in it."""
    first = definitions[0]
    found = ast.Tuple([ast.Name(each.name, ast.Load()) for each in definitions], ast.Load())
    given = ast.arguments([], [ast.arg(name) for name in around], None, [], [], None, [])
    nothing = ast.arguments([], [], None, [], [], None, [])
    inner = ast.FunctionDef("made", nothing, [*definitions, ast.Return(found)], [], None)
    outer = ast.FunctionDef("around", given, [inner], [], None)
    for each in (outer, inner):
        ast.copy_location(each, first)
    whole = ast.fix_missing_locations(ast.Module([outer], []))
    code = function.__code__
    flags = code.co_flags & source.FUTURE_FLAGS
    compiled = compile(whole, code.co_filename, "exec", flags, True)
    for _ in range(2):
        compiled = next(c for c in compiled.co_consts if isinstance(c, types.CodeType))
    return compiled


def _reading(definitions: Sequence[ast.ClassDef], name: str) -> Problem:
    reader = next(
        (each for each in definitions if any(
            isinstance(node, ast.Name) and node.id == name for node in nodes(each)
        )), definitions[0],
    )
    return Problem(
        reader, f"a class that reads {name!r}, which is a variable of the function",
        "give it to the objects, or define the class outside of the function",
    )


def _functions(cls: type) -> Iterator[types.FunctionType]:
    """The functions that were written in a class."""
    for value in vars(cls).values():
        parts: tuple[Any, ...] = (value,)
        if isinstance(value, property):
            parts = (value.fget, value.fset, value.fdel)
        elif isinstance(value, (staticmethod, classmethod)):
            parts = (value.__func__,)
        yield from (part for part in parts if isinstance(part, types.FunctionType))


def _give_source(
    function: types.FunctionType, method: types.FunctionType, definition: ast.ClassDef
) -> None:
    for node in nodes(definition):
        if isinstance(node, ast.FunctionDef) and node.name == method.__name__:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == method.__code__.co_firstlineno:
                source.give(method, node, source.of(function), definition.name)


def _assigned(definition: ast.ClassDef) -> Iterator[str]:
    """The names of the attributes that a class assigns in its body."""
    for statement in definition.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _can_change(value: object) -> bool:
    return isinstance(value, _CHANGED) or hasattr(value, "__next__")
