"""The indices of a row step from row to row, and so does the place where it begins.

In: a kernel whose rows are numbered over several axes, as those of an array of three dimensions
are: row `p` is row `p % n` of plane `p // n`. Out: the body in which the loop over rows counts
these: the next row is the next one of the plane, or the first one of the next plane. A division
takes as long as twenty elements of a row. A row's number times the elements of a row is counted,
too: rows of 16 elements take 1.4 times as long where it is multiplied out.
"""

from __future__ import annotations

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    For,
    Kernel,
    Literal,
    Local,
    Operand,
    Statement,
    bound_by,
    has_loops,
    statements,
)

_ONE, _ZERO = Literal(1, i64), Literal(0, i64)


def stepped(kernel: Kernel) -> Body:
    """The body of a kernel whose rows are counted."""
    made: list[Statement] = []
    starts: set[Operand] = {kernel.begin}
    for s in kernel.body:
        if isinstance(s, Compute) and s.primitive == "floor_divide" and s.args[0] is kernel.begin:
            starts.add(s.out)  # of blocks of rows, over each of which stands a loop
        if isinstance(s, For) and s.start in starts and has_loops(s.body):
            made += _Rows(s).counted()
        else:
            made.append(s)
    return kernel.body if len(made) == len(kernel.body) else tuple(made)


class _Rows:
    """One loop over rows.

    steps: numbers that grow from row to row -> by how much, which is 0 or 1, and the first one.
    """

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.inside = {local for s in statements(loop.body) for local in bound_by(s)}
        self.steps: dict[Operand, tuple[Operand, Operand]] = {loop.index: (_ONE, loop.start)}
        self.pairs: dict[tuple[Operand, Operand], tuple[Local, Local]] = {}
        self.products: dict[Operand, Local] = {}
        self.before: list[Statement] = []
        self.after: list[Statement] = []

    def counted(self) -> list[Statement]:
        """What stands in front of the loop, and the loop."""
        body: list[Statement] = []
        for s in self.loop.body:
            found = self._counter(s) or self._product(s)
            if found is None:
                body.append(s)
            else:
                body.append(Compute(s.out, "positive", (found,)))  # type: ignore[union-attr]
        if not self.pairs and not self.products:
            return [self.loop]
        loop = For(
            self.loop.index, self.loop.start, self.loop.stop, (*body, *self.after),
            self.loop.program, self.loop.bounded, self.loop.rescaled, self.loop.lanes,
        )
        return [*self.before, loop]

    def _counter(self, s: Statement) -> Local | None:
        """The variable that holds what a statement divides out of a row's number."""
        if not isinstance(s, Compute) or s.primitive not in ("floor_divide", "remainder"):
            return None
        number, by = s.args
        if number not in self.steps or by in self.inside or s.out.dtype != i64:
            return None
        pair = self.pairs.get((number, by)) or self._pair(number, by)
        found = pair[s.primitive == "remainder"]
        if s.primitive == "floor_divide":
            self.steps[s.out] = self.steps[found]
        return found

    def _product(self, s: Statement) -> Local | None:
        """The variable that holds a row's number times what is the same in all rows."""
        if not isinstance(s, Compute) or s.primitive != "multiply" or s.out.dtype != i64:
            return None
        if self.loop.index not in s.args:
            return None
        first, second = s.args
        by = second if first == self.loop.index else first
        if by in self.inside or by == self.loop.index:
            return None
        if by not in self.products:
            found = self.products[by] = Local(i64, variable=True)
            start, sum_ = Local(i64), Local(i64)
            self.before += [
                Compute(start, "multiply", (self.loop.start, by)), Assign(found, start),
            ]
            self.after += [Compute(sum_, "add", (found, by)), Assign(found, sum_)]
        return self.products[by]

    def _pair(self, number: Operand, by: Operand) -> tuple[Local, Local]:
        step, first = self.steps[number]
        quotient, rest = Local(i64, variable=True), Local(i64, variable=True)
        self.pairs[number, by] = quotient, rest
        start, left = Local(i64), Local(i64)
        self.before += [
            Compute(start, "floor_divide", (first, by)), Assign(quotient, start),
            Compute(left, "remainder", (first, by)), Assign(rest, left),
        ]
        new, over, kept = Local(i64), Local(bool_), Local(i64)
        more, sum_ = Local(i64), Local(i64)
        self.after += [
            Compute(new, "add", (rest, step)), Compute(over, "greater_equal", (new, by)),
            Compute(kept, "where", (over, _ZERO, new)), Assign(rest, kept),
            Compute(more, "where", (over, _ONE, _ZERO)),
            Compute(sum_, "add", (quotient, more)), Assign(quotient, sum_),
        ]
        self.steps[quotient] = more, start
        return quotient, rest
