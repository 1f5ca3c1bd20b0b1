"""Where the operands of an operation stand in the user's source, for the marks of a message.

In: the span of an expression or a statement. Out: the spans of its operands, found by parsing the
text again: a variable's own span says where it was set, not where it is used; and what is said of
these operands, their types.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrelay.errors import Span
from pyrelay.infer import values as V
from pyrelay.ir.nodes import PyCall, Var

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter


def operand_spans(span: Span) -> list[Span]:
    """Spans of the operands of the operator, call, subscript or assignment that `span` covers.

    Of a call they are the receiver of a method, then the arguments. Empty where the text is none of
    these.
    """
    text = span.text()
    try:
        node: ast.AST = ast.parse(f"({text}\n)", mode="eval").body
        shift = 1
    except SyntaxError:
        try:
            node = ast.parse(text).body[0]
        except (SyntaxError, IndexError):
            return []
        shift = 0
    lines = text.split("\n")
    return [_within(span, lines, part, shift) for part in _parts(node)]


def _parts(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Subscript(value=value):
            return [value]
        case ast.Call(func=func, args=args, keywords=keywords):
            receiver = [func.value] if isinstance(func, ast.Attribute) else []
            return [*receiver, *args, *(k.value for k in keywords)]
        case ast.AugAssign(target=target, value=value):
            return [target, value]
        case ast.Assign(targets=[target], value=value):
            return [target, value]
    return []


def _within(span: Span, lines: list[str], part: ast.expr, shift: int) -> Span:
    def place(line: int, column: int) -> tuple[int, int]:
        if line == 1:
            column -= shift
        characters = len(lines[line - 1].encode()[:column].decode(errors="ignore"))
        return span.line + line - 1, characters + (span.column if line == 1 else 0)

    assert part.end_lineno is not None
    assert part.end_col_offset is not None
    start = place(part.lineno, part.col_offset)
    end = place(part.end_lineno, part.end_col_offset)
    return Span(span.source, *start, *end, span.function)


def marked_operands(
    it: Interpreter, here: Span | None
) -> tuple[Span | None, str | None, Sequence[tuple[Span, str]]]:
    """Marks that show the types of the operands of the op at hand: the main one, its label, the
    others."""
    rhs = it.let.rhs if it.let else None
    if here is None or not isinstance(rhs, PyCall):
        return here, None, ()
    if any(isinstance(a, Var) and a not in it.frame.env for a in rhs.args):
        return here, None, ()  # the last op of a call that is over: a loop around it fails
    spans = operand_spans(here)
    if rhs.kind in ("binary", "inplace", "compare") and len(spans) == len(rhs.args) == 2:
        (left, right) = (V.describe(it.value(a)) for a in rhs.args)
        return spans[0], left, ((spans[1], right),)
    values = _shown(it, rhs)
    if rhs.kind not in ("call", "item", "unary") or len(spans) != len(values):
        return here, None, ()
    pairs = zip(spans, values, strict=True)
    return here, None, [
        (s, V.describe(v)) for s, v in pairs if V.tensor_type(v) is not None and not
        V.is_known_number(v)
    ][:3]


def _shown(it: Interpreter, rhs: PyCall) -> list[V.Value]:
    """The values that `operand_spans` finds the places of."""
    values = [it.value(a) for a in rhs.args]
    if rhs.kind == "item":
        return values[:1]
    if rhs.kind == "call":
        callee, *given = values
        if isinstance(callee, V.Method):
            return [callee.receiver, *given]
        here = it.let.span if it.let else None
        written = operand_spans(here) if here is not None else []
        module = [V.NONE] if len(written) == len(given) + 1 else []  # np in np.sum(x)
        return [*module, *given]
    return values
