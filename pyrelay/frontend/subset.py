"""The language that pyrelay compiles, as a table: every kind of syntax, read or refused.

In: the tree of a function. Out: every construct in it that is not compiled, each with its name in
the user's words and what to write instead. `LANGUAGE` names each class of Python's `ast` once: with
the fields that lowering reads and those it does not need (and why), or with the refusal. A field
that is in neither list would be a construct ignored in silence; a test compares the table with
`ast`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field

from pyrelay.frontend import generators
from pyrelay.frontend.scope import Problem
from pyrelay.frontend.source import FunctionNode
from pyrelay.frontend.trying import bare_raises
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Read:
    """Syntax that is compiled. `unread`: fields that mean nothing when the program runs."""

    fields: tuple[str, ...] = ()
    unread: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """Syntax that is not compiled: what users call it, and what to write instead."""

    word: str
    instead: str


def _read(fields: str = "", **unread: str) -> Read:
    return Read(tuple(fields.split()), unread)


_COMMENT = "a comment for type checkers"
_TYPE = "Python does not evaluate annotations of a function's variables"
_LAZY = "only modules import lazily"
_CONTEXT = "says load, store or delete, which the place of the node says too"
_CLASS = "Python makes the class, whose methods are read when they are called"
_ASYNC = Refused("async code", "compile an ordinary function and await around it")
_YIELD = Refused(
    "yield inside an expression",
    "write 'yield value', 'x = yield value' or 'x = yield from items' as a statement of its own",
)
_TEMPLATE = Refused("a template string", "write an f-string")
_UNKNOWN = Refused("newer syntax", "write it in the syntax of an older Python")
_TYPE_PARAMETER = Refused("a type parameter", "leave it out: types come from the arguments")

#: Class of `ast` -> how it is treated. Names, since newer Pythons have classes that 3.11 has not.
LANGUAGE: dict[str, Read | Refused] = {
    # functions
    "FunctionDef": _read(
        "name args body decorator_list", returns=_TYPE, type_comment=_COMMENT,
        type_params=_TYPE,
    ),
    "ClassDef": _read(
        "name", bases=_CLASS, keywords=_CLASS, body=_CLASS, decorator_list=_CLASS,
        type_params=_CLASS,
    ),
    "Lambda": _read("args body"),
    "arguments": _read("posonlyargs args vararg kwonlyargs kw_defaults kwarg defaults"),
    "arg": _read("arg", annotation=_TYPE, type_comment=_COMMENT),
    "Return": _read("value"),
    "Global": _read("names"),
    "Nonlocal": _read("names"),
    # statements
    "Assign": _read("targets value", type_comment=_COMMENT),
    "AugAssign": _read("target op value"),
    "AnnAssign": _read("target annotation value", simple="the target says it too"),
    "Delete": _read("targets"),
    "If": _read("test body orelse"),
    "For": _read("target iter body orelse", type_comment=_COMMENT),
    "While": _read("test body orelse"),
    "Break": _read(),
    "Continue": _read(),
    "Pass": _read(),
    "Expr": _read("value"),
    "Assert": _read("test msg"),
    "Raise": _read("exc cause"),
    "Try": _read("body handlers orelse finalbody"),
    "ExceptHandler": _read("type name body"),
    "With": _read("items body", type_comment=_COMMENT),
    "withitem": _read("context_expr optional_vars"),
    "Import": _read("names", is_lazy=_LAZY),
    "ImportFrom": _read("module names level", is_lazy=_LAZY),
    "alias": _read("name asname"),
    "Match": _read("subject cases"),
    "match_case": _read("pattern guard body"),
    # patterns
    "MatchValue": _read("value"),
    "MatchSingleton": _read("value"),
    "MatchSequence": _read("patterns"),
    "MatchMapping": _read("keys patterns rest"),
    "MatchClass": _read("cls patterns kwd_attrs kwd_patterns"),
    "MatchStar": _read("name"),
    "MatchAs": _read("pattern name"),
    "MatchOr": _read("patterns"),
    # expressions
    "Constant": _read("value", kind="the u of u'text'"),
    "Name": _read("id ctx"),
    "Attribute": _read("value attr", ctx=_CONTEXT),
    "Subscript": _read("value slice", ctx=_CONTEXT),
    "Slice": _read("lower upper step"),
    "Starred": _read("value", ctx=_CONTEXT),
    "Yield": _read("value"),
    "YieldFrom": _read("value"),
    "Call": _read("func args keywords"),
    "keyword": _read("arg value"),
    "BoolOp": _read("op values"),
    "BinOp": _read("left op right"),
    "UnaryOp": _read("op operand"),
    "Compare": _read("left ops comparators"),
    "IfExp": _read("test body orelse"),
    "NamedExpr": _read("target value"),
    "Tuple": _read("elts", ctx=_CONTEXT),
    "List": _read("elts", ctx=_CONTEXT),
    "Set": _read("elts"),
    "Dict": _read("keys values"),
    "ListComp": _read("elt generators"),
    "SetComp": _read("elt generators"),
    "DictComp": _read("key value generators"),
    "GeneratorExp": _read("elt generators"),
    "comprehension": _read("target iter ifs", is_async="refused where it is set"),
    "JoinedStr": _read("values"),
    "FormattedValue": _read("value conversion format_spec"),
    # operators and contexts
    **dict.fromkeys(
        (
            "Add", "Sub", "Mult", "MatMult", "Div", "Mod", "Pow", "LShift", "RShift", "BitOr",
            "BitXor", "BitAnd", "FloorDiv", "And", "Or", "Invert", "Not", "UAdd", "USub", "Eq",
            "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot", "In", "NotIn", "Load", "Store", "Del",
        ),
        _read(),
    ),
    # refused
    "AsyncFunctionDef": _ASYNC,
    "AsyncFor": _ASYNC,
    "AsyncWith": _ASYNC,
    "Await": _ASYNC,
    "TryStar": Refused("except*", "write except with a tuple of classes"),
    "TypeAlias": Refused("a type alias", "define it outside of the function"),
    "TypeVar": _TYPE_PARAMETER,
    "ParamSpec": _TYPE_PARAMETER,
    "TypeVarTuple": _TYPE_PARAMETER,
    "TemplateStr": _TEMPLATE,
    "Interpolation": _TEMPLATE,
    # other roots of `ast`, which stand in no function
    "Module": _read("body", type_ignores="comments"),
    "Interactive": _read("body"),
    "Expression": _read("body"),
    "FunctionType": _read("argtypes returns"),
    "TypeIgnore": _read("lineno tag"),
}

def scan(function: FunctionNode) -> list[Problem]:
    """All constructs in the body of a function that are not compiled, in order of the text."""
    problems: list[Problem] = []
    allowed: set[ast.AST] = set()  # yields that are statements, bare raises in handlers
    lazy = generators.kept(function)
    pending: list[ast.AST] = [function]
    while pending:
        node = pending.pop()
        treated = LANGUAGE.get(type(node).__name__, _UNKNOWN)
        refusal = treated if isinstance(treated, Refused) else _refusal_here(
            node, allowed, lazy
        )
        if refusal is None:
            pending += reversed(list(_parts(node, function)))
        else:
            place = node.target if isinstance(node, ast.comprehension) else node
            problems.append(Problem(place, refusal.word, refusal.instead))
            pending += _clauses(node)
    return problems


def _parts(node: ast.AST, function: FunctionNode) -> Iterator[ast.AST]:
    """The children that belong to the compiled text."""
    if node is function:  # decorators, defaults and annotations are Python's own business
        body = function.body
        yield from body if isinstance(body, list) else [body]
        return
    treated = LANGUAGE[type(node).__name__]
    assert isinstance(treated, Read)
    for name, value in ast.iter_fields(node):
        if name in treated.unread or (name == "annotation"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _clauses(node: ast.AST) -> list[ast.AST]:
    """Statements inside of a refused one, which may hold more to report."""
    handlers = getattr(node, "handlers", [])
    parts = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    parts.insert(1, [statement for handler in handlers for statement in handler.body])
    return [statement for part in reversed(parts) for statement in reversed(part)]


def _refusal_here(
    node: ast.AST, allowed: set[ast.AST], lazy: frozenset[ast.AST]
) -> Refused | None:
    """What is refused about a node of a kind that is compiled elsewhere."""
    match node:
        case ast.Expr(value=ast.Yield() | ast.YieldFrom() as statement):
            allowed.add(statement)
        case (
            ast.Assign(value=ast.Yield() | ast.YieldFrom() as statement)
            | ast.Return(value=ast.Yield() | ast.YieldFrom() as statement)
            | ast.AugAssign(target=ast.Name(), value=ast.Yield() | ast.YieldFrom() as statement)
        ):
            allowed.add(statement)
        case ast.Yield() | ast.YieldFrom() if node not in allowed:
            return _YIELD
        case ast.GeneratorExp() if node in lazy and _assigns(node):
            return Refused(":= in a generator kept for later", "assign before or after it")
        case ast.comprehension(is_async=1):
            return _ASYNC
        case ast.Delete(targets=targets) if any(isinstance(t, ast.Attribute) for t in targets):
            return Refused("del of an attribute", "assign None to it")
        case ast.ExceptHandler(body=body):
            allowed.update(bare_raises(body))
        case ast.Raise(exc=None) if node not in allowed:
            return Refused("raise without an exception", "name the exception to raise")
    return None


def _assigns(node: ast.GeneratorExp) -> bool:
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))
