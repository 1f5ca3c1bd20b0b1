"""Bounds of floats of a kernel: between which two numbers one lies that is not NaN.

In: operands and the primitives that make them. Out: the ends of each of which something is known,
which is what the checks of `int(x)` ask: that `x` is a number, finite, and no more than 64 bits.
What integers, comparisons and roots give is known; what loads do is not, nor what variables are
that loops change.

Functions that rise take ends to ends, for rounding never changes an order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pyrelay.ir.types import f32, f64
from pyrelay.lower.kernels.kernel import Compute, Literal, Local, Operand

Ends: TypeAlias = tuple[float, float]  # both inclusive, perhaps infinite
FARTHEST = 2.0**63
"""No int64 is further from 0."""
_LARGEST = {f32: 3e38, f64: 1e300}  # no result of these is rounded to one that is infinite
_WIDER = {f32: 1e-6, f64: 1e-14}  # than the ends as computed here: how results may be rounded
_SMALL = 1e-300  # what dividing by less may give is not said
_INEXACT = 1e-6  # of functions that are not rounded as they should be
_EVERY = -math.inf, math.inf


class FloatBounds:
    """Ends of floats as far as they are known at one place of a program."""

    def __init__(self) -> None:
        self._known: dict[Local, Ends | None] = {}
        self._unless_nan: dict[Local, Ends | None] = {}  # of those that may be NaN
        self._trail: list[tuple[Local, Ends | None, Ends | None]] = []

    def copy(self) -> FloatBounds:
        """The same, of which more can be found out apart."""
        new = FloatBounds()
        new._known, new._unless_nan = dict(self._known), dict(self._unless_nan)
        return new

    def mark(self) -> int:
        """A place to come back to."""
        return len(self._trail)

    def undo(self, mark: int) -> None:
        """Forget what was found out since then."""
        while len(self._trail) > mark:
            local, before, unless_nan = self._trail.pop()
            self._known[local], self._unless_nan[local] = before, unless_nan

    def of(self, operand: Operand) -> Ends | None:
        """The ends of a float that is not NaN; None if it may be."""
        if isinstance(operand, Literal):
            value = float(operand.dtype.numpy.type(operand.value))
            return None if math.isnan(value) else (value, value)
        return self._known.get(operand)

    def put(self, local: Local, ends: Ends | None, unless_nan: Ends | None = None) -> None:
        """Note all that is known of a float from here on, and what is if it is not NaN."""
        before = self._known.get(local), self._unless_nan.get(local)
        if before != (ends, unless_nan):
            self._trail.append((local, *before))
            self._known[local], self._unless_nan[local] = ends, unless_nan

    def of_each(self, variables: Sequence[Local]) -> list[Ends | None]:
        """What is known of some variables here."""
        return [self._known.get(v) for v in variables]

    def join(self, variables: Sequence[Local], ways: Sequence[list[Ends | None]]) -> None:
        """Note that variables are as one of some ways leaves them, of which each says all."""
        for v, *ends in zip(variables, *ways, strict=True):
            known = [each for each in ends if each is not None]
            same = known and len(known) == len(ends)
            self.put(v, _spanned([end for each in known for end in each]) if same else None)

    def make(self, s: Compute, of_integer: Callable[[Operand], Ends | None]) -> None:
        """Note what is known of a result, with what is known of integers."""
        if s.out.dtype not in _LARGEST or s.out.variable:
            return
        values = s.args[1:] if s.primitive == "where" else s.args
        found = [self.of(a) if a.dtype.kind == "f" else of_integer(a) for a in values]
        ends = [each for each in found if each is not None]
        made = _made(_spelled(s), ends) if len(ends) == len(found) else None
        if made is not None:
            wider = 0.0 if s.primitive in _CHOICES else _WIDER[s.out.dtype]
            low, high = made[0] - wider * abs(made[0]), made[1] + wider * abs(made[1])
            beyond = max(abs(low), abs(high)) > _LARGEST[s.out.dtype]
            made = None if beyond and s.primitive not in _CHOICES else (low, high)
        self.put(s.out, made)

    def truth(self, name: str, args: Sequence[Operand]) -> bool | None:
        """What a question about floats certainly gives."""
        found = [self.of(a) for a in args if a.dtype.kind == "f"]
        if len(found) != len(args):
            return None
        match name, found:
            case "isnan", [(_, _)]:
                return False
            case "isinf", [(low, high)] if max(abs(low), abs(high)) < math.inf:
                return False
            case "less" | "less_equal", [(_, _) as a, (_, _) as b]:
                return _less(a, b, name == "less_equal")
            case "greater" | "greater_equal", [(_, _) as a, (_, _) as b]:
                return _less(b, a, name == "greater_equal")
            case "equal" | "not_equal", [(low, high), (least, most)] if high < least or most < low:
                return name == "not_equal"
        return None

    def assume(self, name: str, args: Sequence[Operand], truth: bool) -> None:
        """Note that a comparison of two floats holds: then neither is NaN. Or that it does not:
        then one may be, and something is known of it if it is not."""
        a, b = args if (name in ("less", "less_equal")) is truth else reversed(args)
        numbers = [truth or self.of(each) is not None for each in (a, b)]
        (low, high), (least, most) = self._of_number(a), self._of_number(b)
        if isinstance(a, Local) and numbers[1]:
            self._narrow(a, (low, min(high, most)), numbers[0])
        if isinstance(b, Local) and numbers[0]:
            self._narrow(b, (max(least, low), most), numbers[1])

    def assume_number(self, operand: Operand) -> None:
        """Note that a float is not NaN."""
        if isinstance(operand, Local):
            self.put(operand, self._of_number(operand))

    def _of_number(self, operand: Operand) -> Ends:
        """The ends of a float if it is not NaN."""
        unless_nan = self._unless_nan.get(operand) if isinstance(operand, Local) else None
        return self.of(operand) or unless_nan or _EVERY

    def _narrow(self, local: Local, ends: Ends, is_number: bool) -> None:
        self.put(local, ends if is_number else None, None if is_number else ends)


def _spelled(s: Compute) -> str:
    """The primitive that makes a result: `x * x` is a square."""
    return "square" if s.primitive == "multiply" and s.args[0] is s.args[1] else s.primitive


def _less(a: Ends, b: Ends, equal: bool) -> bool | None:
    """Whether one number is below another, or no more than it."""
    if a[1] < b[0] or (equal and a[1] == b[0]):
        return True
    return False if b[1] < a[0] or (not equal and b[1] == a[0]) else None


_CHOICES = frozenset(["where", "minimum", "maximum", "fmin", "fmax", "absolute", "negative"])


def _made(primitive: str, found: Sequence[Ends]) -> Ends | None:
    """The ends of a result, by those of what it is made of."""
    if primitive not in _CHOICES and any(math.isinf(end) for ends in found for end in ends):
        return None
    match primitive, found:
        case "cast" | "positive", [a]:
            return a
        case "negative", [(low, high)]:
            return -high, -low
        case "absolute", [(low, high)]:
            return max(low, -high, 0.0), max(abs(low), abs(high))
        case "sqrt", [(low, high)] if low >= 0:
            return math.sqrt(low), math.sqrt(high)
        case "floor" | "ceil" | "trunc" | "rint", [(low, high)]:
            return float(math.floor(low)), float(math.ceil(high))
        case "add", [a, b]:
            return a[0] + b[0], a[1] + b[1]
        case "subtract", [a, b]:
            return a[0] - b[1], a[1] - b[0]
        case "multiply", [a, b]:
            return _unless_nan([x * y for x in a for y in b])
        case "divide", [a, (low, high) as b] if low > 0 or high < 0:
            small = min(abs(low), abs(high)) < _SMALL
            return None if small else _unless_nan([x / y for x in a for y in b])
        case "square", [a, *_]:
            return 0.0, max(x * x for x in a)
        case "where", [a, b]:
            return _spanned([*a, *b])
        case "minimum" | "fmin", [a, b]:
            return min(a[0], b[0]), min(a[1], b[1])
        case "maximum" | "fmax", [a, b]:
            return max(a[0], b[0]), max(a[1], b[1])
        case "sin" | "cos" | "tanh", [_]:
            return -1.0 - _INEXACT, 1.0 + _INEXACT
    return None


def _spanned(ends: Sequence[float]) -> Ends:
    """From the least to the greatest of these."""
    return min(ends), max(ends)


def _unless_nan(ends: Sequence[float]) -> Ends | None:
    """The same, unless one of them is no number."""
    return None if any(map(math.isnan, ends)) else _spanned(ends)
