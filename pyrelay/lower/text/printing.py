"""Syntax trees as text, with no more parentheses than Python's grammar asks for.

In: an `ast` tree of statements such as kernels consist of. Out: source text that parses back to the
same tree. (`astunparse` itself puts every operation in parentheses.) Machines with GPUs are often
without a network, and have not all packages: where `astunparse` is missing, Python's own printer
gives the same text.
"""

from __future__ import annotations

import ast
import io
from typing import Any

try:
    from astunparse import Unparser
except ImportError:
    Unparser = None

# How tightly expressions bind, after the grammar in Python's language reference, section 6.17.
_CONDITIONAL, _OR, _AND, _NOT, _COMPARISON = range(5)
_BINARY = {
    ast.BitOr: 5, ast.BitXor: 6, ast.BitAnd: 7, ast.LShift: 8, ast.RShift: 8, ast.Add: 9,
    ast.Sub: 9, ast.Mult: 10, ast.Div: 10, ast.FloorDiv: 10, ast.Mod: 10, ast.MatMult: 10,
}  # fmt: skip
_UNARY, _ATOM = 11, 13


def _binding(node: ast.AST) -> int:
    match node:
        case ast.IfExp():
            return _CONDITIONAL
        case ast.BoolOp(op=op):
            return _OR if isinstance(op, ast.Or) else _AND
        case ast.UnaryOp(op=op):
            return _NOT if isinstance(op, ast.Not) else _UNARY
        case ast.Compare():
            return _COMPARISON
        case ast.BinOp(op=op):
            return _BINARY[type(op)]
    return _ATOM


class _Printer(Unparser or object):  # type: ignore[misc]
    """astunparse's printer with parentheses by precedence and PEP 8's layout of definitions."""

    def _operand(self, node: ast.AST, least: int) -> None:
        if _binding(node) < least:
            self.write("(")
            self.dispatch(node)
            self.write(")")
        else:
            self.dispatch(node)

    def _UnaryOp(self, t: Any) -> None:  # noqa: N802
        least = _NOT if isinstance(t.op, ast.Not) else _UNARY
        self.write("not " if isinstance(t.op, ast.Not) else self.unop[type(t.op).__name__])
        self._operand(t.operand, least)

    def _BinOp(self, t: Any) -> None:  # noqa: N802
        own = _BINARY[type(t.op)]
        self._operand(t.left, own)
        self.write(f" {self.binop[type(t.op).__name__]} ")
        self._operand(t.right, own + 1)

    def _Compare(self, t: Any) -> None:  # noqa: N802
        self._operand(t.left, _COMPARISON + 1)
        for op, right in zip(t.ops, t.comparators, strict=True):
            self.write(f" {self.cmpops[type(op).__name__]} ")
            self._operand(right, _COMPARISON + 1)

    def _BoolOp(self, t: Any) -> None:  # noqa: N802
        own = _binding(t)
        for k, value in enumerate(t.values):
            if k:
                self.write(" or " if isinstance(t.op, ast.Or) else " and ")
            self._operand(value, own + 1)

    def _IfExp(self, t: Any) -> None:  # noqa: N802
        self._operand(t.body, _CONDITIONAL + 1)
        self.write(" if ")
        self._operand(t.test, _CONDITIONAL + 1)
        self.write(" else ")
        self._operand(t.orelse, _CONDITIONAL)

    def _If(self, t: Any) -> None:  # noqa: N802
        self._branch("if ", t)
        rest = t.orelse
        while len(rest) == 1 and isinstance(rest[0], ast.If):
            self._branch("elif ", rest[0])
            rest = rest[0].orelse
        if rest:
            self.fill("else")
            self._suite(rest)

    def _branch(self, word: str, t: Any) -> None:
        self.fill(word)
        self.dispatch(t.test)
        self._suite(t.body)

    def _While(self, t: Any) -> None:  # noqa: N802
        self._branch("while ", t)

    def _suite(self, body: list[ast.stmt]) -> None:
        self.enter()
        self.dispatch(body)
        self.leave()


def unparse(tree: ast.Module) -> str:
    """The text of a module."""
    if Unparser is None:
        return ast.unparse(tree) + "\n"
    out = io.StringIO()
    _Printer(tree, file=out)
    lines = (line.rstrip() for line in out.getvalue().strip("\n").split("\n"))
    return "\n".join(lines) + "\n"
