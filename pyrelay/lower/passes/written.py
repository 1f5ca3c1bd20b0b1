"""Statements of integers that passes write.

In: primitives and operands, or sums of integers that are known in front of a loop. Out: the
statements that compute them, in order.
"""

from __future__ import annotations

from pyrelay.ir.types import DType, i64
from pyrelay.lower.kernels.kernel import Compute, Literal, Local, Operand, Statement
from pyrelay.lower.passes.distinct_places import Near


def number(value: int) -> Literal:
    """A literal integer."""
    return Literal(value, i64)


class Text:
    """Statements that are being written."""

    def __init__(self) -> None:
        self.body: list[Statement] = []

    def add(self, statement: Statement) -> None:
        """Writes a statement."""
        self.body.append(statement)

    def new(self, primitive: str, *args: Operand, dtype: DType = i64) -> Local:
        """Computes an integer, or a number of another type."""
        out = Local(dtype)
        self.body.append(Compute(out, primitive, args))
        return out

    def plus(self, operand: Operand, more: int) -> Operand:
        """So much more than an integer."""
        if isinstance(operand, Literal):
            return number(operand.value + more)
        return self.new("add", operand, number(more)) if more else operand

    def sum(self, near: Near) -> Operand:
        """A sum of integers and a constant."""
        ((_, total), *others), more = near
        for sign, other in others:
            total = self.new("add" if sign > 0 else "subtract", total, other)
        return self.plus(total, more)
