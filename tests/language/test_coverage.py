"""Every construct of the language has programs, run and differentiated, or a golden refusal.

The programs are the rows of the document and the two corpora; a construct is found in them by the
shape of its syntax. `SHAPES` are the constructs that one class of `ast` does not tell.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrelay.frontend.subset import LANGUAGE, Refused
from tests.language import constructs  # noqa: F401  fills the rows
from tests.language.rows import ROWS
from tests.programs import PROGRAMS
from tests.users import test_users  # noqa: F401  fills the corpus
from tests.users.corpus import USED

GOLDEN = Path(__file__).parents[1] / "golden" / "errors"

#: Syntax without a derivative of its own: it names things, or works on ints.
NOT_DIFFERENTIATED = {"BitXor", "RShift", "LShift", "BitOr", "BitAnd", "Invert"}
#: Roots of trees and what Python 3.11 cannot read.
NOT_SHOWN = {"Module", "Interactive", "Expression", "FunctionType", "TypeIgnore", "Del"}


def inside(node: ast.AST, kinds: Any) -> bool:
    return any(isinstance(n, kinds) for n in ast.walk(node) if n is not node)


def negative(node: ast.AST | None) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def called(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


SHAPES: dict[str, Callable[[ast.AST], bool]] = {
    "else of a for": lambda n: isinstance(n, ast.For) and bool(n.orelse),
    "else of a while": lambda n: isinstance(n, ast.While) and bool(n.orelse),
    "return from a loop": lambda n: isinstance(n, (ast.For, ast.While)) and inside(n, ast.Return),
    "break under a condition": lambda n: isinstance(n, ast.If) and inside(n, ast.Break),
    "continue under a condition": lambda n: isinstance(n, ast.If) and inside(n, ast.Continue),
    "loop in a loop": lambda n: isinstance(n, (ast.For, ast.While))
    and inside(n, (ast.For, ast.While)),
    "while True": lambda n: isinstance(n, ast.While) and isinstance(n.test, ast.Constant),
    "chained comparison": lambda n: isinstance(n, ast.Compare) and len(n.ops) > 1,
    "value of an or": lambda n: isinstance(n, ast.Assign) and isinstance(n.value, ast.BoolOp),
    "is None": lambda n: isinstance(n, ast.Compare) and isinstance(n.ops[0], (ast.Is, ast.IsNot)),
    "nested unpacking": lambda n: isinstance(n, (ast.Assign, ast.For)) and any(
        isinstance(t, ast.Tuple) and inside(t, ast.Tuple)
        for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
    ),
    "swap": lambda n: isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple)
    and isinstance(n.value, ast.Tuple),
    "swap of items": lambda n: isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple)
    and all(isinstance(t, ast.Subscript) for t in n.targets[0].elts),
    "several targets": lambda n: isinstance(n, ast.Assign) and len(n.targets) > 1,
    "starred target": lambda n: isinstance(n, ast.Assign) and inside(n.targets[0], ast.Starred),
    "annotated assignment": lambda n: isinstance(n, ast.AnnAssign),
    "augmented item": lambda n: isinstance(n, ast.AugAssign)
    and isinstance(n.target, ast.Subscript),
    "augmented attribute": lambda n: isinstance(n, ast.AugAssign)
    and isinstance(n.target, ast.Attribute),
    "write to a slice": lambda n: isinstance(n, ast.Assign) and any(
        isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Slice) for t in n.targets),
    "write to a mask": lambda n: isinstance(n, (ast.Assign, ast.AugAssign)) and any(
        isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Compare)
        for t in (n.targets if isinstance(n, ast.Assign) else [n.target])),
    "negative step": lambda n: isinstance(n, ast.Slice) and negative(n.step),
    "negative index": lambda n: isinstance(n, ast.Subscript) and negative(n.slice),
    "ellipsis": lambda n: isinstance(n, ast.Constant) and n.value is Ellipsis,
    "new axis": lambda n: isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Tuple) and any(
        isinstance(e, ast.Constant) and e.value is None for e in n.slice.elts),
    "closure": lambda n: isinstance(n, ast.FunctionDef) and inside(n, ast.FunctionDef),
    "default of a parameter": lambda n: isinstance(n, ast.arguments) and bool(n.defaults),
    "keyword-only parameter": lambda n: isinstance(n, ast.arguments) and bool(n.kwonlyargs),
    "positional-only parameter": lambda n: isinstance(n, ast.arguments) and bool(n.posonlyargs),
    "*args": lambda n: isinstance(n, ast.arguments) and n.vararg is not None,
    "**kwargs": lambda n: isinstance(n, ast.arguments) and n.kwarg is not None,
    "starred argument": lambda n: isinstance(n, ast.Call) and any(
        isinstance(a, ast.Starred) for a in n.args),
    "keywords from a dict": lambda n: isinstance(n, ast.Call) and any(
        k.arg is None for k in n.keywords),
    "comprehension with a condition": lambda n: isinstance(n, ast.comprehension) and bool(n.ifs),
    "comprehension of two loops": lambda n: isinstance(n, ast.ListComp) and len(n.generators) > 1,
    "comprehension in a comprehension": lambda n: isinstance(n, ast.ListComp)
    and inside(n, ast.ListComp),
    "dict merged into a dict": lambda n: isinstance(n, ast.Dict) and None in n.keys,
    "else of a try": lambda n: isinstance(n, ast.Try) and bool(n.orelse),
    "finally": lambda n: isinstance(n, ast.Try) and bool(n.finalbody),
    "several handlers": lambda n: isinstance(n, ast.Try) and len(n.handlers) > 1,
    "exception by name": lambda n: isinstance(n, ast.ExceptHandler) and n.name is not None,
    "raise from": lambda n: isinstance(n, ast.Raise) and n.cause is not None,
    "raise again": lambda n: isinstance(n, ast.Raise) and n.exc is None,
    "try in a loop": lambda n: isinstance(n, (ast.For, ast.While)) and inside(n, ast.Try),
    "manager with a name": lambda n: isinstance(n, ast.withitem) and n.optional_vars is not None,
    "several managers": lambda n: isinstance(n, ast.With) and len(n.items) > 1,
    "case with a guard": lambda n: isinstance(n, ast.match_case) and n.guard is not None,
    "case of anything": lambda n: isinstance(n, ast.MatchAs) and n.name is None,
    "message of an assert": lambda n: isinstance(n, ast.Assert) and n.msg is not None,
    "format specification": lambda n: isinstance(n, ast.FormattedValue)
    and n.format_spec is not None,
    **{
        f"{name}()": functools.partial(called, name=name)
        for name in (
            "zip", "enumerate", "reversed", "map", "filter", "len", "abs", "min", "max", "sum",
            "round", "pow", "divmod", "sorted", "any", "all", "isinstance", "range", "print",
            "int", "float", "bool", "list", "tuple", "dict", "set", "super", "hasattr", "getattr",
        )
    },
}
#: Shapes that give numbers which do not depend on floats, or say something.
_NO_GRADIENT = {"set()", "bool()", "divmod()", "raise from", "message of an assert", "raise again"}


@functools.cache
def definitions(module: str) -> dict[str, ast.AST]:
    """The functions and classes at the top of a module."""
    file = sys.modules[module].__file__
    assert file is not None
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {n.name: n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


@functools.cache
def trees(differentiated: bool) -> tuple[ast.AST, ...]:
    """The functions that are run, or those that are differentiated, and what they call."""
    functions = [e.function for e in (*PROGRAMS, *USED) if e.wrt or not differentiated]
    if not differentiated:
        functions += [row.function for row in ROWS if row.works]
    pending = [(f.__module__, f.__name__) for f in functions]
    found: dict[tuple[str, str], ast.AST] = {}
    while pending:
        module, name = place = pending.pop()
        own = definitions(module)
        if place not in found and name in own:
            found[place] = own[name]
            pending += [(module, n.id) for n in ast.walk(own[name]) if isinstance(n, ast.Name)]
    return tuple(found.values())


@functools.cache
def nodes(differentiated: bool) -> dict[str, list[ast.AST]]:
    """All syntax of those functions, by class."""
    found: dict[str, list[ast.AST]] = {}
    for tree in trees(differentiated):
        for node in ast.walk(tree):
            found.setdefault(type(node).__name__, []).append(node)
    return found


def holds(shape: Callable[[ast.AST], bool], differentiated: bool) -> bool:
    return any(shape(node) for same in nodes(differentiated).values() for node in same)


READ = sorted(n for n, t in LANGUAGE.items() if not isinstance(t, Refused) and n not in NOT_SHOWN)


@pytest.mark.parametrize("name", READ)
def test_syntax_that_is_compiled_is_run_and_differentiated(name: str) -> None:
    assert name in nodes(False), f"no program has a {name}"
    assert name in NOT_DIFFERENTIATED or name in nodes(True), f"no derivative has a {name}"


@pytest.mark.parametrize("name", SHAPES)
def test_constructs_are_run_and_differentiated(name: str) -> None:
    assert holds(SHAPES[name], False), f"no program has: {name}"
    assert name in _NO_GRADIENT or holds(SHAPES[name], True), f"no derivative has: {name}"


def test_refused_syntax_has_a_golden_text() -> None:
    texts = "\n".join(p.read_text(encoding="utf-8") for p in GOLDEN.glob("syntax_*.txt"))
    for name, treated in LANGUAGE.items():
        newer = name in ("TypeAlias", "TypeVar", "ParamSpec", "TypeVarTuple", "TemplateStr",
                         "Interpolation")  # fmt: skip
        if isinstance(treated, Refused) and not newer:
            assert treated.word in texts, name
            assert treated.instead in texts, name
