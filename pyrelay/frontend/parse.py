"""A Python function as untyped Relay: the frontend in order.

In: a function object. Out: `ParsedFunction`: a module with the function and all that are defined
in it, and the text that its spans point into. The steps: find the source (`source`), refuse what is
not compiled, all of it at once (`subset`, `scope`), compute joins (`flow`), lower (`statements`).
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import sys
import threading
import types
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from pyrelay.errors import SourceText, UnsupportedSyntaxError
from pyrelay.frontend import (
    comprehensions,  # noqa: F401  registers the rules of all expressions
    flow,
    local_classes,
    resuming,
    scope,
    source,
    statements,
    subset,
)
from pyrelay.frontend.flow import RETURN
from pyrelay.frontend.lowering import NONE, NOT_READ, NOT_SET, Lowering, Program, evaluate
from pyrelay.frontend.recursion import Work, run
from pyrelay.frontend.regions import FALL, FunctionRegion
from pyrelay.frontend.scope import FunctionScope, Names, Problem, Variable
from pyrelay.frontend.source import FunctionNode, FunctionSource, position
from pyrelay.frontend.starred_items import without_stars
from pyrelay.ir.nodes import Atom, Block, Function, Module, Parameter, Var
from pyrelay.records import dataclass

_KEPT = 2048


@dataclass(frozen=True, slots=True, eq=False)
class ParsedFunction:
    """A function as a module: its entry is the function, the others are defined inside of it.

    annotations: of the others, the texts by function and parameter, "return" for the result.
    """

    module: Module
    code: types.CodeType
    source: SourceText
    annotations: dict[str, dict[str, str]]

    def resumable(
        self, function: types.FunctionType, generator: Function
    ) -> dict[str, Any] | None:
        """What the objects do that can stand for generators of a function, or of one defined in
        it."""
        assert generator.span is not None
        if "<genexpr>" in generator.name:  # which has no `def` to be taken apart
            return None
        return resuming.functions_of(function, generator.span.line, generator.cells)


# By identity: code objects compare equal across files. A kept value keeps its code alive, so that
# the id stays its own.
_parsed: OrderedDict[int, ParsedFunction] = OrderedDict()
_lock = threading.Lock()


def parse(function: types.FunctionType) -> ParsedFunction:
    """The untyped program of a function, remembered by its code object.

    Raises SourceUnavailableError without a source, UnsupportedSyntaxError with all constructs that
    are not compiled.
    """
    key = id(function.__code__)
    with _lock:
        known = _parsed.get(key)
        if known is not None:
            _parsed.move_to_end(key)
            return known
    made = _parse(function)
    with _lock:
        _parsed[key] = made
        while len(_parsed) > _KEPT:
            _parsed.popitem(last=False)
    return made


def _parse(function: types.FunctionType) -> ParsedFunction:
    found = source.of(function)
    if sys.version_info >= (3, 15):
        found = dataclasses.replace(found, node=without_stars(found.node))
    code = function.__code__
    problems = subset.scan(found.node)
    names = scope.analyse(found.node, found.class_name, code.co_freevars)
    problems += names.problems
    classes: dict[ast.ClassDef, type] = {}
    for inside, definitions in names.classes.items():
        own, wrong = local_classes.made(function, definitions, _around(inside, code.co_freevars))
        classes |= own
        problems += wrong
    if problems:
        raise _unsupported(function.__name__, problems, found)

    def is_builtin(name: str) -> bool:
        return name not in function.__globals__ and hasattr(builtins, name)

    program = Program(found, names, is_builtin, code, function.__globals__.get("__package__") or "")
    program.classes = classes
    entry = function.__name__
    program.taken.add(entry)
    functions = {entry: _function(program, found.node, entry, frozenset())}
    annotations: dict[str, dict[str, str]] = {}
    while program.pending:
        inner = program.pending.pop(0)
        functions[inner.name] = _function(program, inner.node, inner.name, inner.certain)
        annotations[inner.name] = _annotations(inner.node)
    return ParsedFunction(Module(functions, entry), code, found.text, annotations)


def _around(scope: FunctionScope, free: Iterable[str]) -> set[str]:
    """The names of the variables of a function, and of those that are around it."""
    found, here = set(free), scope
    while True:
        found |= {variable.name for variable in here.variables if variable.name.isidentifier()}
        if here.parent is None:
            return found
        here = here.parent


def _annotations(node: FunctionNode) -> dict[str, str]:
    """The texts of a function's annotations, by parameter; of its result by "return"."""
    found = {
        arg.arg: ast.unparse(arg.annotation)
        for arg in ast.walk(node.args) if isinstance(arg, ast.arg) and arg.annotation
    }
    if isinstance(node, ast.FunctionDef) and node.returns:
        found["return"] = ast.unparse(node.returns)
    return found


def _function(
    program: Program, node: FunctionNode, name: str, certain: frozenset[Variable]
) -> Function:
    """One function; `certain` are the captured variables that are set whenever it runs."""
    names: Names = program.names
    own = names.functions[node]
    low = Lowering(program, own, flow.analyse(node.body, names), name)
    span = low.span(node) if isinstance(node, ast.Lambda) else low.first_line(node)
    defaults = set(_with_default(node.args))
    params: list[Var] = []
    signature: list[Parameter] = []
    for kind, variable, arg in own.params:
        param = Var(variable.name, span=low.span(arg))
        params.append(param)
        signature.append(Parameter(variable.name, kind, arg in defaults))
        low.begin(variable, param, low.span(arg))
    for variable in own.variables[len(params) :]:
        if not variable.comprehension:
            low.begin(variable, NOT_SET, span)
    for variable in own.cells:
        cell = Var(variable.name, span=span)
        params.append(cell)
        low.cells[variable] = cell
        if variable not in certain:
            low.env.unset.add(variable)
    (result,) = run(_body(low, node))
    result = NONE if result is NOT_READ else result  # every path raises
    return Function(
        name, tuple(params), Block(tuple(low.lets), (result,)), span=span,
        signature=tuple(signature), cells=tuple(v.name for v in own.cells), doc=_docstring(node),
    )


def _docstring(node: FunctionNode) -> str | None:
    """`__doc__`, from which Python takes the indentation since 3.13."""
    if isinstance(node, ast.Lambda):
        return None
    return ast.get_docstring(node, clean=sys.version_info >= (3, 13))


def _body(low: Lowering, node: FunctionNode) -> Work[tuple[Atom, ...]]:
    """The body of a function, to its result."""
    if isinstance(node, ast.Lambda):
        return ((yield evaluate(low, node.body)),)
    region = FunctionRegion({RETURN: 0, FALL: 0})
    return (yield statements.lower(low, (node.body, 0, None), region))


def _with_default(args: ast.arguments) -> list[ast.arg]:
    """The parameters that have a default."""
    positional = [*args.posonlyargs, *args.args]
    found = positional[len(positional) - len(args.defaults) :]
    found += [a for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
    return found


def _unsupported(
    name: str, problems: list[Problem], found: FunctionSource
) -> UnsupportedSyntaxError:
    """One error for all constructs, each marked in the text."""
    ordered = sorted(problems, key=lambda p: position(p.node)[:2])
    marks = [
        (found.first_line(p.node, name), f"{p.word}: {p.instead}") for p in ordered
    ]
    (span, label), *related = marks
    count = "a construct" if len(marks) == 1 else f"{len(marks)} constructs"
    return UnsupportedSyntaxError(
        f"'{name}' has {count} that pyrelay does not compile.",
        span=span, label=label, related=related,
    )
