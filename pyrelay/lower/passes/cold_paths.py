"""What seldom happens leaves the way of what does: index checks and float checks of a CPU kernel.

In: the body of a kernel. Out: the same, in which

* a check of an index `k` against an extent `n` and what wraps a negative one, `where(k < 0, k + n,
  k)`, are one unsigned comparison: if `k` is in 0..n-1 it is the position, else an unlikely branch
  adds `n`, checks again and fails. So a load does not wait for its check. Of an index that is known
  to be below n the branch asks whether it is below 0.
* neighbouring checks of one float stand in an unlikely branch (`cold_floats`); where they are those
  of `int(x)`, which is an index, the index lies outside if one fails, so that they stand there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    EXTENT,
    Assign,
    Body,
    Call,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Load,
    Local,
    Operand,
    Read,
    Statement,
    While,
    renamed,
    statements,
)
from pyrelay.lower.kernels.values import operand_key
from pyrelay.lower.passes.cleaning import without_unused
from pyrelay.lower.passes.cold_floats import LOST, with_cold_floats

_EITHER = frozenset(["logical_or", "bitwise_or"])
_Place: TypeAlias = tuple[tuple[Any, ...], tuple[Any, ...]]


def with_cold_paths(body: Body, results: Sequence[Operand] = ()) -> Body:
    """The body with its checks in unlikely branches; `results` are read after it."""
    return without_unused(_Rewriter().body(with_cold_floats(body)), results)


# -- indices -------------------------------------------------------------------------------------


class _Rewriter:
    """Follows which computed values stand for what, in order.

    What reads a variable is forgotten when that is assigned.
    """

    def __init__(self) -> None:
        self.makers: dict[Local, Compute] = {}
        self.places: dict[_Place, Local] = {}  # an index and its extent -> the position
        self.readers: dict[Local, list[Local | _Place]] = {}  # of a variable
        self.names: dict[Operand, Operand] = {}
        self.extents: set[Operand] = set()
        self.changing: set[Operand] | None = None  # in the innermost loop; None outside of loops

    def body(self, body: Body) -> Body:
        """The body, rewritten; what it says of indices holds in it only."""
        out: list[Statement] = []
        known = set(self.places)
        for statement in body:
            out += self._statement(renamed(statement, self.names), out)
        for place in self.places.keys() - known:
            del self.places[place]
        return tuple(out)

    def _statement(self, s: Statement, before: list[Statement]) -> list[Statement]:
        match s:
            case Compute(out=out, primitive="where", args=(Local() as cond, a, b)):
                place = self._wraps(cond, a, b)
                if place in self.places:
                    self.names[out] = self.places[place]
                    return []
                self._made(s)
            case Compute():
                self._made(s)
            case Fail(cond=Local() as cond):
                checked = self._checks(cond)
                if checked is not None:
                    first = self._taken_from(before, checked[0])
                    return self._position(s, *checked, first)
                low = self._checks_below(cond)
                if low is not None:
                    return self._position_below(s, *low)
            case Read(out=out, parameter=parameter) if parameter.role == EXTENT:
                self.extents.add(out)
            case Assign(variable=variable):
                self._forget(variable)
            case For() | While():
                for inner in statements(s.body):
                    if isinstance(inner, Assign):
                        self._forget(inner.variable)
                return [replace(s, body=self._loop(s))]
            case If():
                then, orelse = self.body(s.then), self.body(s.orelse)
                return [replace(s, then=then, orelse=orelse)]
        return [s]

    def _loop(self, s: For | While) -> Body:
        around = self.changing
        self.changing = {s.index} if isinstance(s, For) else set()
        for inner in statements(s.body):
            match inner:
                case Compute(out=out) | Load(out=out) | Assign(variable=out) | For(index=out):
                    self.changing.add(out)
                case Call(outs=outs):
                    self.changing.update(outs)
        body = self.body(s.body)
        self.changing = around
        return body

    def _made(self, s: Compute) -> None:
        self.makers[s.out] = s
        for arg in s.args:
            if isinstance(arg, Local) and arg.variable:
                self.readers.setdefault(arg, []).append(s.out)

    def _forget(self, variable: Local) -> None:
        for reader in self.readers.pop(variable, ()):
            if isinstance(reader, Local):
                self.makers.pop(reader, None)
            else:
                self.places.pop(reader, None)

    def _maker(self, operand: Operand) -> Compute | None:
        return self.makers.get(operand) if isinstance(operand, Local) else None

    def _checks(self, cond: Local) -> tuple[Operand, Operand] | None:
        """The index and the extent of `k < 0 - n or k >= n`."""
        either = self._maker(cond)
        if either is None or either.primitive not in _EITHER:
            return None
        low, high = map(self._maker, either.args)
        if low is None or high is None:
            return None
        if (low.primitive, high.primitive) != ("less", "greater_equal"):
            return None
        (k, least), (again, n) = low.args, high.args
        if k is not again or k.dtype != i64 or not isinstance(k, Local):
            return None
        extent = self._negated(least)
        if extent is not None:
            fits = operand_key(extent) == operand_key(n)
        else:
            fits = isinstance(least, Literal) and isinstance(n, Literal) and (
                least.value == -n.value
            )
        if self.changing is not None and k not in self.changing:
            return None  # LLVM takes it out of the loop, which it does not with a branch in it
        return (k, n) if fits else None

    def _checks_below(self, cond: Local) -> tuple[Operand, Operand] | None:
        """The index and the extent of `k < 0 - n`, of an index that is known to be below n."""
        low = self._maker(cond)
        if low is None or low.primitive != "less":
            return None
        k, least = low.args
        n = self._negated(least)
        if n not in self.extents or k.dtype != i64 or not isinstance(k, Local):
            return None
        if self.changing is not None and k not in self.changing:
            return None
        return k, n

    def _negated(self, operand: Operand) -> Operand | None:
        """n, of 0 - n."""
        maker = self._maker(operand)
        if maker is None or maker.primitive != "subtract":
            return None
        zero, extent = maker.args
        return extent if isinstance(zero, Literal) and zero.value == 0 else None

    def _wraps(self, cond: Operand, a: Operand, b: Operand) -> _Place | None:
        """The index and the extent of `where(k < 0, k + n, k)`."""
        less, total = self._maker(cond), self._maker(a)
        if less is None or total is None or less.primitive != "less" or total.primitive != "add":
            return None
        k, zero = less.args
        if k is not b or not isinstance(zero, Literal) or zero.value != 0:
            return None
        first, n = total.args
        return (operand_key(k), operand_key(n)) if first is k else None

    def _taken_from(self, before: list[Statement], k: Operand) -> Body:
        """The checks of the float that an index is made of, if nothing else happens after them.

        They are taken out: if one fails, the index is the least integer.
        """
        for number in range(len(before) - 1, -1, -1):
            match before[number]:
                case Compute():
                    continue
                case If(cond=cond, then=then):
                    maker = self._maker(cond)
                    if maker is not None and maker.primitive == "equal" and (
                        maker.args[0] is k and maker.args[1] is LOST
                    ):
                        del before[number]
                        return then
            break
        return ()

    def _position_below(self, fail: Fail, k: Operand, n: Operand) -> list[Statement]:
        position, below, wrapped = self._placed(k, n), Local(bool_), Local(i64)
        again: Body = (fail, Compute(wrapped, "add", (k, n)), Assign(position, wrapped))
        return [
            Compute(below, "less", (k, Literal(0, i64))), Assign(position, k),
            If(below, again, (), unlikely=True),
        ]  # fmt: skip

    def _placed(self, k: Operand, n: Operand) -> Local:
        """The position that an index is, from here on."""
        position, place = Local(i64, variable=True), (operand_key(k), operand_key(n))
        self.places[place] = position
        for operand in (k, n):
            if isinstance(operand, Local) and operand.variable:
                self.readers.setdefault(operand, []).append(place)
        return position

    def _position(
        self, fail: Fail, k: Operand, n: Operand, first: Body
    ) -> list[Statement]:
        position = self._placed(k, n)
        outside, wrapped, beyond = Local(bool_), Local(i64), Local(bool_)
        again: Body = (
            *first, Compute(wrapped, "add", (k, n)), Compute(beyond, "outside", (wrapped, n)),
            replace(fail, cond=beyond), Assign(position, wrapped),
        )  # fmt: skip
        return [
            Compute(outside, "outside", (k, n)), Assign(position, k),
            If(outside, again, (), unlikely=True),
        ]  # fmt: skip
