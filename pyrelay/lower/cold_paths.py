"""What seldom happens leaves the way of what does: index checks and float checks of a CPU kernel.

In: the body of a kernel. Out: the same, in which

* a check of an index `k` against an extent `n` and what wraps a negative one, `where(k < 0, k + n,
  k)`, are one unsigned comparison: if `k` is in 0..n-1 it is the position, else an unlikely branch
  adds `n`, checks again and fails. So a load does not wait for its check.
* neighbouring checks of one float, as those of `int(x)` for NaN, infinities and range, stand in an
  unlikely branch under the one condition that holds if any of them does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.cleaning import without_unused
from pyrelay.lower.kernel import (
    Assign,
    Body,
    Break,
    Call,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Load,
    Local,
    Operand,
    Statement,
    Store,
    While,
    replace_bodies,
    statements,
)
from pyrelay.lower.values import operand_key

_EITHER = frozenset(["logical_or", "bitwise_or"])
_BOTH = frozenset(["logical_and", "bitwise_and"])
Makers: TypeAlias = Mapping[Local, Compute]
_Place: TypeAlias = tuple[tuple[Any, ...], tuple[Any, ...]]


def with_cold_paths(body: Body, results: Sequence[Operand] = ()) -> Body:
    """The body with its checks in unlikely branches; `results` are read after it."""
    return without_unused(_Rewriter().body(_together(body)), results)


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
        self.changing: set[Operand] | None = None  # in the innermost loop; None outside of loops

    def body(self, body: Body) -> Body:
        """The body, rewritten; what it says of indices holds in it only."""
        out: list[Statement] = []
        known = set(self.places)
        for statement in body:
            out += self._statement(self._renamed(statement))
        for place in self.places.keys() - known:
            del self.places[place]
        return tuple(out)

    def _statement(self, s: Statement) -> list[Statement]:
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
                    return self._position(s, *checked)
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
        negated = self._maker(least)
        if negated is not None and negated.primitive == "subtract":
            zero, extent = negated.args
            fits = isinstance(zero, Literal) and zero.value == 0
            fits = fits and operand_key(extent) == operand_key(n)
        else:
            fits = isinstance(least, Literal) and isinstance(n, Literal) and (
                least.value == -n.value
            )
        if self.changing is not None and k not in self.changing:
            return None  # LLVM takes it out of the loop, which it does not with a branch in it
        return (k, n) if fits else None

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

    def _position(self, fail: Fail, k: Operand, n: Operand) -> list[Statement]:
        position, outside, wrapped, beyond = (
            Local(i64, variable=True), Local(bool_), Local(i64), Local(bool_)
        )  # fmt: skip
        place = operand_key(k), operand_key(n)
        self.places[place] = position
        for operand in (k, n):
            if isinstance(operand, Local) and operand.variable:
                self.readers.setdefault(operand, []).append(place)
        again: Body = (
            Compute(wrapped, "add", (k, n)), Compute(beyond, "outside", (wrapped, n)),
            replace(fail, cond=beyond), Assign(position, wrapped),
        )  # fmt: skip
        return [
            Compute(outside, "outside", (k, n)), Assign(position, k),
            If(outside, again, (), unlikely=True),
        ]  # fmt: skip

    def _renamed(self, s: Statement) -> Statement:
        """The statement itself with positions for what they replace; not the bodies inside it."""
        names = self.names
        if not names:
            return s

        def at(operand: Operand) -> Operand:
            return names.get(operand, operand)

        match s:
            case Compute(args=args) | Call(args=args):
                return replace(s, args=tuple(map(at, args)))
            case Load(index=index):
                return replace(s, index=at(index))
            case Store(index=index, value=value):
                return replace(s, index=at(index), value=at(value))
            case Assign(value=value):
                return replace(s, value=at(value))
            case If(cond=cond) | Break(cond=cond):
                return replace(s, cond=at(cond))
            case For(start=start, stop=stop):
                return replace(s, start=at(start), stop=at(stop))
            case Fail(cond=cond, values=values):
                return replace(s, cond=at(cond), values=tuple(map(at, values)))
        return s


# -- floats --------------------------------------------------------------------------------------


def _together(body: Body) -> Body:
    """The body with neighbouring checks of one float in one branch."""
    makers = {s.out: s for s in statements(body) if isinstance(s, Compute)}
    return _gathered(body, makers)


def _gathered(body: Body, makers: Makers) -> Body:
    out: list[Statement] = []
    place = 0
    while place < len(body):
        x, end = _neighbours(body, place, makers)
        part = body[place:end]
        if x is not None and sum(isinstance(s, Fail) for s in part) > 1:
            out += [s for s in part if not isinstance(s, Fail)]
            out += _guarded(x, [s for s in part if isinstance(s, Fail)], makers)
            place = end
        else:
            out.append(replace_bodies(body[place], lambda inner: _gathered(inner, makers)))
            place += 1
    return tuple(out)


def _neighbours(body: Body, place: int, makers: Makers) -> tuple[Local | None, int]:
    """The float that a check looks at, and the end of its checks from there on.

    Between them stand computations that no assignment changes.
    """
    first = body[place]
    x = _float_checked(first.cond, makers) if isinstance(first, Fail) else None
    end = place + 1
    for number in range(end, len(body) if x is not None else 0):
        match body[number]:
            case Fail(cond=cond) if _float_checked(cond, makers) is x:
                end = number + 1
            case Compute(args=args) if not any(isinstance(a, Local) and a.variable for a in args):
                pass
            case _:
                break
    return x, end


def _maker(operand: Operand, makers: Makers) -> Compute | None:
    return makers.get(operand) if isinstance(operand, Local) else None


def _float_checked(cond: Operand, makers: Makers) -> Local | None:
    """The float that is NaN, infinite or out of a range if a condition holds."""
    maker = _maker(cond, makers)
    if maker is None:
        return None
    parts = [_maker(a, makers) for a in maker.args] if maker.primitive in _BOTH else [maker]
    for part in parts:
        if part is not None and part.primitive in ("isnan", "isinf"):
            return _fixed_float(part.args[0])
    return _ranged(maker, makers)


def _fixed_float(x: Operand) -> Local | None:
    fits = isinstance(x, Local) and not x.variable and x.dtype.kind == "f"
    return x if fits else None  # type: ignore[return-value]


def _ranged(maker: Compute, makers: Makers) -> Local | None:
    """The float of `not (x >= low and x < high)`, which holds of NaN and infinities too."""
    both = _maker(maker.args[0], makers) if maker.primitive == "logical_not" else None
    if both is None or both.primitive not in _BOTH:
        return None
    low, high = (_maker(a, makers) for a in both.args)
    if low is None or high is None or (low.primitive, high.primitive) != ("greater_equal", "less"):
        return None
    (x, least), (again, limit) = low.args, high.args
    finite = all(isinstance(o, Literal) and math.isfinite(o.value) for o in (least, limit))
    return _fixed_float(x) if x is again and finite else None


def _guarded(x: Local, checks: Sequence[Fail], makers: Makers) -> list[Statement]:
    """Checks of `x` under a condition that holds if any of theirs does."""
    ranges = [c.cond for c in checks if _ranged(makers[c.cond], makers) is x]  # type: ignore[index]
    if len(ranges) > 1:
        return list(checks)
    if ranges:
        return [If(ranges[0], tuple(checks), (), unlikely=True)]
    finite, doubt = Local(bool_), Local(bool_)
    return [
        Compute(finite, "isfinite", (x,)), Compute(doubt, "logical_not", (finite,)),
        If(doubt, tuple(checks), (), unlikely=True),
    ]  # fmt: skip
