"""Checks of functions of `math` that cannot fail leave: what the signs of floats tell.

In: the body of a scalar kernel. Out: the same without checks of results that are never NaN or
infinite, and of `sqrt(x)` and `exp(x)` where `x` has the right sign: it is made of squares,
absolute values, exponentials, constants and the like by sums, products and quotients. A loop whose
body cannot fail may become vector code.

A float counts as positive if it is NaN or at least +0.0: that is closed under sums, products and
quotients. It counts as negative if it is NaN or not above 0. Integers count as what they are made
of says if a check sees to it that they fit in 64 bits.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    EXTENT,
    Assign,
    Body,
    Compute,
    Fail,
    For,
    Literal,
    Local,
    Operand,
    Read,
    bodies,
    replace_bodies,
    statements,
)

_BOTH = frozenset(["logical_and", "bitwise_and"])
#: Functions that are finite wherever their operand is, and whose NaN comes from NaN only.
_TOTAL = frozenset(["tanh", "arctan", "arcsinh", "cbrt", "erf", "sigmoid"])
#: Functions that are never infinite.
_BOUNDED = _TOTAL | {"sqrt", "sin", "cos", "arcsin", "arccos", "erfc"}
#: Functions whose NaN comes from NaN only.
_DEFINED = _TOTAL | {"exp", "exp2", "expm1", "sinh", "cosh", "erfc"}


def without_certain_checks(body: Body) -> Body:
    """The body without checks of floats that never fail."""
    checks = [s for s in statements(body) if isinstance(s, Fail) and isinstance(s.cond, Local)]
    if not checks:
        return body
    makers = {s.out: s for s in statements(body) if isinstance(s, Compute)}
    asked = [(check, found) for check in checks if (found := _asked(check.cond, makers))]
    if not asked:
        return body
    signs = _Signs(body)
    never: set[Operand] = {check.cond for check, found in asked if _never(*found, signs)}
    return _without(body, never) if never else body


def _asked(cond: Operand, makers: dict[Local, Compute]) -> tuple[str, Compute] | None:
    """Whether a condition is that a function is NaN ("isnan") or infinite where `x` is not."""
    both = makers.get(cond)  # type: ignore[arg-type]
    if both is None or both.primitive not in _BOTH:
        return None
    test, other = (makers.get(a) for a in both.args)  # type: ignore[arg-type]
    if test is None or other is None or test.primitive not in ("isnan", "isinf"):
        return None
    function = makers.get(test.args[0])  # type: ignore[arg-type]
    if function is None or len(function.args) != 1:
        return None
    if test.primitive == "isnan" and other.primitive == "logical_not":
        inner = makers.get(other.args[0])  # type: ignore[arg-type]
        fits = inner is not None and inner.primitive == "isnan"
        fits = fits and inner.args[0] is function.args[0]  # type: ignore[union-attr]
    else:
        fits = (test.primitive, other.primitive) == ("isinf", "isfinite")
        fits = fits and other.args[0] is function.args[0]
    return (test.primitive, function) if fits else None


def _never(question: str, function: Compute, signs: _Signs) -> bool:
    name, x = function.primitive, function.args[0]
    if question == "isinf":
        return name in _BOUNDED or (name in ("exp", "exp2", "expm1") and signs.is_negative(x))
    return name in _DEFINED or (name == "sqrt" and signs.is_positive(x))


def _without(body: Body, never: set[Operand]) -> Body:
    return tuple(
        replace_bodies(s, lambda b: _without(b, never)) if bodies(s) else s
        for s in body if not (isinstance(s, Fail) and s.cond in never)
    )


# -- signs ---------------------------------------------------------------------------------------

_Way: TypeAlias = "Compute | Operand | None"


class _Signs:
    """The greatest sets of positive and of negative numbers of a kernel, found together."""

    def __init__(self, body: Body) -> None:
        ways: dict[Local, list[_Way]] = {}
        self._makers: dict[Operand, Compute] = {}
        rising: set[Local] = set()
        lost: dict[Operand, tuple[str, tuple[Operand, ...]]] = {}
        self._checked: set[tuple[str, tuple[Operand, ...]]] = set()
        for s in statements(body):
            match s:
                case Compute(out=out):
                    ways.setdefault(out, []).append(s)
                    self._makers[out] = s
                    if s.primitive.endswith("_overflows"):
                        lost[out] = s.primitive.removesuffix("_overflows"), s.args
                case Fail(cond=cond) if cond in lost:
                    self._checked.add(lost[cond])
                case Assign(variable=variable, value=value):
                    ways.setdefault(variable, []).append(value)
                case For(index=index, start=start):
                    ways.setdefault(index, []).append(start)
                    rising.add(index)
                case Read(out=out, parameter=parameter) if parameter.role == EXTENT:
                    ways.setdefault(out, []).append(Literal(0, i64))
        self.positive, self.negative = set(ways), set(ways) - rising
        changed = True
        while changed:
            before = len(self.positive), len(self.negative)
            for local, made in ways.items():
                if local in self.positive and not all(map(self._makes_positive, made)):
                    self.positive.discard(local)
                if local in self.negative and not all(map(self._makes_negative, made)):
                    self.negative.discard(local)
            changed = before != (len(self.positive), len(self.negative))

    def is_positive(self, operand: Operand) -> bool:
        """Whether a number is NaN or at least +0.0, for certain."""
        if isinstance(operand, Literal):
            return _is_real(operand) and math.copysign(1.0, operand.value) > 0.0
        return operand in self.positive

    def is_negative(self, operand: Operand) -> bool:
        """Whether a number is NaN or not above 0, for certain."""
        if isinstance(operand, Literal):
            return _is_real(operand) and not operand.value > 0
        return operand in self.negative

    def _makes_positive(self, way: _Way) -> bool:
        if not isinstance(way, Compute):
            return way is not None and self.is_positive(way)
        args, positive, negative = way.args, self.is_positive, self.is_negative
        match way.primitive:
            case _ if not self._fits(way):
                return False
            case "absolute" | "exp" | "exp2" | "cosh" | "square" | "hypot":
                return True
            case "sqrt" | "cast":
                return positive(args[0])
            case "multiply":
                return self._is_square(*args) or all(map(positive, args))
            case "add" | "add_reassociated" | "divide" | "true_quotient":
                return all(map(positive, args))
            case "subtract":
                return positive(args[0]) and negative(args[1])
            case "where":
                return all(map(positive, args[1:]))
            case "minimum":
                return all(map(positive, args))
            case "maximum":
                return all(map(positive, args)) or any(map(_is_above_zero, args))
        return False

    def _fits(self, way: Compute) -> bool:
        """Whether a number is no integer that may have lost bits: one that is positive may be
        negated."""
        if way.out.dtype.kind == "f" or (way.primitive, way.args) in self._checked:
            return True
        turned = way.primitive == "negative" and way.out.dtype == i64
        return turned and self.is_positive(way.args[0])

    def _is_square(self, a: Operand, b: Operand) -> bool:
        """Whether two factors are the same but for what is positive."""
        if a is b:
            return True
        maker = self._makers.get(a)
        return maker is not None and maker.primitive == "multiply" and any(
            x is b and self.is_positive(y)
            for x, y in (maker.args, maker.args[::-1])
        )

    def _makes_negative(self, way: _Way) -> bool:
        if not isinstance(way, Compute):
            return way is not None and self.is_negative(way)
        args, positive, negative = way.args, self.is_positive, self.is_negative
        if not self._fits(way):
            return False
        match way.primitive:
            case "negative":
                return positive(args[0])
            case "cast":
                return negative(args[0])
            case "multiply":
                a, b = args
                return (positive(a) and negative(b)) or (negative(a) and positive(b))
            case "divide":
                return negative(args[0]) and positive(args[1])
            case "add" | "add_reassociated" | "maximum":
                return all(map(negative, args))
            case "subtract":
                return negative(args[0]) and positive(args[1])
            case "where":
                return all(map(negative, args[1:]))
            case "minimum":
                return any(map(negative, args))
        return False


def _is_real(literal: Literal) -> bool:
    return literal.dtype.kind in "if"


def _is_above_zero(operand: Operand) -> bool:
    return isinstance(operand, Literal) and _is_real(operand) and operand.value > 0
