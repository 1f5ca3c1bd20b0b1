"""Expressions, each evaluated in Python's order.

In: an expression node. Out: the atom that holds its value, and the Lets that compute it.
`condition` lowers an expression of which only the truth counts. Comprehensions have a file of
their own.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyrelay.errors import Span
from pyrelay.frontend import closures, constant_sets
from pyrelay.frontend.flow import always_true
from pyrelay.frontend.lowering import FALSE, NONE, TRUE, Lowering, evaluate, lowers
from pyrelay.frontend.operators import BINARY, COMPARE, UNARY
from pyrelay.frontend.patterns import Ask, Bind
from pyrelay.frontend.recursion import Work
from pyrelay.frontend.regions import DONE, FALL, BranchRegion
from pyrelay.ir.nodes import TEMPORARY, Atom, Const

_CONVERSIONS = {-1: "", 115: "s", 114: "r", 97: "a"}


@lowers(ast.Constant)
def constant(low: Lowering, node: ast.Constant) -> Atom:
    return Const(node.value)


@lowers(ast.Name)
def name(low: Lowering, node: ast.Name) -> Atom:
    return low.read(low.names.meaning[node], low.span(node))


@lowers(ast.Attribute)
def attribute(low: Lowering, node: ast.Attribute) -> Work[Atom]:
    owner = yield evaluate(low, node.value)
    return low.py("attribute", (owner,), low.span(node), name=low.names.mangled(node.attr))


@lowers(ast.Subscript)
def subscript(low: Lowering, node: ast.Subscript) -> Work[Atom]:
    owner = yield evaluate(low, node.value)
    key = yield evaluate(low, node.slice)
    span = low.span(node)
    if isinstance(node.value, (ast.ListComp, ast.List)) and isinstance(node.slice, ast.Slice):
        return low.py("item", (owner, key), span, unnamed=True)
    return low.py("item", (owner, key), span)


@lowers(ast.Slice)
def slice_(low: Lowering, node: ast.Slice) -> Work[Atom]:
    parts: list[Atom] = []
    for part in (node.lower, node.upper, node.step):
        parts.append(NONE if part is None else (yield evaluate(low, part)))
    return low.py("slice", parts, low.span(node))


@lowers(ast.UnaryOp)
def unary(low: Lowering, node: ast.UnaryOp) -> Work[Atom]:
    operand = node.operand
    if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant):
        value = operand.value
        if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
            return Const(-value)  # -1 is a constant, as an exponent or an index it has to be
    x = yield evaluate(low, operand)
    return low.py("unary", (x,), low.span(node), op=UNARY[type(node.op)])


@lowers(ast.BinOp)
def binary(low: Lowering, node: ast.BinOp) -> Work[Atom]:
    x = yield evaluate(low, node.left)
    y = yield evaluate(low, node.right)
    return low.py("binary", (x, y), low.span(node), op=BINARY[type(node.op)])


@lowers(ast.NamedExpr)
def walrus(low: Lowering, node: ast.NamedExpr) -> Work[Atom]:
    value = yield evaluate(low, node.value)
    variable = low.names.variable(node.target)
    value = low.named(value, variable.shown)
    low.write(variable, value, low.span(node.target))
    return value


@lowers(Bind)
def bind(low: Lowering, node: Bind) -> Work[Atom]:
    value = yield evaluate(low, node.value)
    low.write(low.names.variable(node.target), value, low.span(node.target))
    return TRUE


@lowers(Ask)
def ask(low: Lowering, node: Ask) -> Work[Atom]:
    operands = yield values(low, node.operands)
    attrs = {} if node.index is None else {"index": node.index}
    return low.py(node.kind, operands, low.span(node), **attrs)


@lowers(ast.Lambda)
def function(low: Lowering, node: ast.Lambda) -> Work[Atom]:
    return (yield closures.make(low, node))


def values(low: Lowering, nodes: Sequence[ast.AST]) -> Work[list[Atom]]:
    """The values of several expressions, in order."""
    found: list[Atom] = []
    for node in nodes:
        found.append((yield evaluate(low, node)))
    return found


# -- displays and calls --------------------------------------------------------------------------


@lowers(ast.Tuple, ast.List, ast.Set)
def display(low: Lowering, node: ast.Tuple | ast.List | ast.Set) -> Work[Atom]:
    return (yield _displayed(low, node, False))


def _displayed(
    low: Lowering, node: ast.Tuple | ast.List | ast.Set, iterated: bool
) -> Work[Atom]:
    kind = type(node).__name__.lower()
    elts: Sequence[ast.expr] = node.elts
    attrs = {}
    if isinstance(node, ast.Set):
        elts, attrs["copied"] = constant_sets.in_order(node, low.program.code, iterated)
    starred = tuple(isinstance(e, ast.Starred) for e in elts)
    items = yield values(low, [e.value if isinstance(e, ast.Starred) else e for e in elts])
    return low.py(kind, items, low.span(node), starred=starred, **attrs)


def gone_through(low: Lowering, node: ast.AST) -> Work[Atom]:
    """What a `for` runs over."""
    if isinstance(node, ast.Set):
        return (yield _displayed(low, node, True))
    return (yield evaluate(low, node))


@lowers(ast.Dict)
def dictionary(low: Lowering, node: ast.Dict) -> Work[Atom]:
    items: list[Atom] = []
    for key, value in zip(node.keys, node.values, strict=True):
        items.append(NONE if key is None else (yield evaluate(low, key)))
        items.append((yield evaluate(low, value)))
    merged = tuple(key is None for key in node.keys)
    return low.py("dict", items, low.span(node), merged=merged)


def call(low: Lowering, node: ast.Call) -> Work[Atom]:
    """A call of any callee (`comprehensions` decides which calls are more than that)."""
    callee = yield evaluate(low, node.func)
    args: list[Atom] = []
    keywords: list[str | None] = []
    for arg in node.args:
        starred = isinstance(arg, ast.Starred)
        args.append((yield evaluate(low, arg.value if isinstance(arg, ast.Starred) else arg)))
        keywords.append("*" if starred else None)
    for keyword in node.keywords:
        args.append((yield evaluate(low, keyword.value)))
        keywords.append(keyword.arg or "**")
    return low.py("call", (callee, *args), low.span(node), keywords=tuple(keywords))


@lowers(ast.JoinedStr)
def f_string(low: Lowering, node: ast.JoinedStr) -> Work[Atom]:
    parts: list[str | None] = []
    conversions: list[str] = []
    args: list[Atom] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        parts.append(None)
        conversions.append(_CONVERSIONS[part.conversion])
        args.append((yield evaluate(low, part.value)))
        args.append((yield format_spec(low, part.format_spec)))
    return low.py(
        "format", args, low.span(node), parts=tuple(parts), conversions=tuple(conversions)
    )


def format_spec(low: Lowering, node: ast.expr | None) -> Work[Atom]:
    """The text behind the colon, a constant if nothing in it is computed."""
    if node is None:
        return Const("")
    assert isinstance(node, ast.JoinedStr)
    texts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
    if len(texts) == len(node.values):
        return Const("".join(texts))
    return (yield evaluate(low, node))


# -- what is evaluated only sometimes ------------------------------------------------------------


@lowers(ast.IfExp)
def ternary(low: Lowering, node: ast.IfExp) -> Work[Atom]:
    cond = yield condition(low, node.test)
    then, orelse = evaluate(low, node.body), evaluate(low, node.orelse)
    return (yield alternatives(low, node, cond, then, orelse))


@lowers(ast.BoolOp)
def boolean(low: Lowering, node: ast.BoolOp) -> Work[Atom]:
    return (yield short_circuit(low, node, 0))


def short_circuit(low: Lowering, node: ast.BoolOp, at: int) -> Work[Atom]:
    """The operand that decides, from operand `at` on."""
    value: Atom = yield evaluate(low, node.values[at])
    if at + 1 == len(node.values):
        return value
    cond = truth(low, value, low.span(node.values[at]))
    sides = (short_circuit(low, node, at + 1), value)
    then, orelse = sides if isinstance(node.op, ast.And) else sides[::-1]
    return (yield alternatives(low, node, cond, then, orelse))


@lowers(ast.Compare)
def compare(low: Lowering, node: ast.Compare) -> Work[Atom]:
    left = yield evaluate(low, node.left)
    return (yield chain(low, node, left, 0))


def chain(low: Lowering, node: ast.Compare, left: Atom, at: int) -> Work[Atom]:
    """`left op comparator [and comparator op ...]`, from comparator `at` on."""
    right = yield evaluate(low, node.comparators[at])
    span = low.span(node)
    value = low.py("compare", (left, right), span, op=COMPARE[type(node.ops[at])])
    if at + 1 == len(node.comparators):
        return value
    cond = truth(low, value, span)
    rest = chain(low, node, right, at + 1)
    return (yield alternatives(low, node, cond, rest, value))


def alternatives(
    low: Lowering, node: ast.expr, cond: Atom, then: Work[Atom] | Atom, orelse: Work[Atom] | Atom,
    live: tuple[int, int] | None = None,
) -> Work[Atom]:
    """An If for a value, inside of an expression that may assign with `:=`.

    `live` are the variables live after each of the sides, where that is known for each.
    """
    assigned = list(low.flow.assigned(node))
    if live is None:
        live = (low.flow.joined[node],) * 2 if assigned else (0, 0)
    joined = [v for v in assigned if v.bit & (live[0] | live[1])]
    region = BranchRegion({FALL: live[0], DONE: live[1]}, joined)

    def side(work: Work[Atom] | Atom, exit: str) -> Work[tuple[Atom, ...]]:
        value = yield work
        return (value, *region.leave(low, exit))

    first = yield low.block(side(then, FALL))
    second = yield low.block(side(orelse, DONE))
    names = (TEMPORARY, *region.slots)
    value, *outs = low.choose(cond, first, second, names, low.span(node))
    region.take_over(low, assigned, outs)
    return value


# -- truth ---------------------------------------------------------------------------------------


def truth(low: Lowering, value: Atom, span: Span) -> Atom:
    """bool(value), as `if` judges it."""
    if isinstance(value, Const) and isinstance(value.value, bool):
        return value
    return low.py("truth", (value,), span)


def condition(low: Lowering, node: ast.expr, live: tuple[int, int] | None = None) -> Work[Atom]:
    """The truth of an expression.

    `live` are the variables live if it holds and if not: what `:=` sets on the way to one of them
    need not be carried to the other.
    """
    if always_true(node):
        return TRUE
    if isinstance(node, ast.BoolOp):
        return (yield decide(low, node, 0, live))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        operand = yield condition(low, node.operand, None if live is None else live[::-1])
        return low.py("unary", (operand,), low.span(node), op="not")
    value = yield evaluate(low, node)
    return truth(low, value, low.span(node))


def decide(low: Lowering, node: ast.BoolOp, at: int, live: tuple[int, int] | None) -> Work[Atom]:
    """The truth of `and` or `or` from operand `at` on."""
    if at + 1 == len(node.values):
        return (yield condition(low, node.values[at], live))
    cond: Atom = yield condition(low, node.values[at])
    rest = decide(low, node, at + 1, live)
    conjunction = isinstance(node.op, ast.And)
    if isinstance(cond, Const):  # what a pattern binds is true
        return (yield rest) if cond.value is conjunction else cond
    if conjunction:
        after = None if live is None else (live[0] | live[1], live[1])
        return (yield alternatives(low, node, cond, rest, FALSE, after))
    after = None if live is None else (live[0], live[0] | live[1])
    return (yield alternatives(low, node, cond, TRUE, rest, after))
