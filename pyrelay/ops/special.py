"""The complementary error function, the gamma function and its logarithm; neighbouring floats.

In: floating operands (integers are cast first). Out: what C's `erfc`, `tgamma`, `lgamma` and
`nextafter` give. With strict=True (Python numbers only) they raise as the functions of `math` do.
The derivative of log gamma is `digamma`, an expression of other ops and so differentiable again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay.ir import types
from pyrelay.ir.build import Handle
from pyrelay.ir.op import Promotion, RelationError, Sample
from pyrelay.ops.elementwise import elementwise
from pyrelay.ops.functions import exp, log, tan
from pyrelay.ops.logic import less, where
from pyrelay.ops.python_numbers import RANGE, domain_words
from pyrelay.ops.relations import Attributes, tensors
from pyrelay.ops.relations import elementwise as same_dtype
from pyrelay.ops.samples import binary, integers, unary

#: B(2k) / 2k, the coefficients of Stirling's series of digamma
_STIRLING = (
    1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160,
)
_SHIFT = 10


def digamma(x: Handle) -> Handle:
    """The logarithmic derivative of the gamma function, of floats.

    Stirling's series at x + 10 and the recurrence back, left of 1/2 by reflection (Abramowitz and
    Stegun, Handbook of Mathematical Functions, 6.3.5, 6.3.7, 6.3.18).
    """
    left = less(x, 0.5)
    positive = where(left, 1 - x, x)
    far = positive + _SHIFT
    square = 1 / (far * far)
    series = square * _STIRLING[-1]
    for coefficient in reversed(_STIRLING[:-1]):
        series = (series + coefficient) * square
    total = log(far) - 0.5 / far - series
    for k in range(_SHIFT):
        total = total - 1 / (positive + k)
    pole: Handle = where(left, math.pi / tan(math.pi * where(left, x, 0.25)), 0)
    return total - pole


def _each(function: Callable[[float], float], pole: float) -> Callable[[Any], Any]:
    """A function of `math` on the elements of an array; infinite where it raises."""

    def one(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return pole if value == np.floor(value) else math.nan
        except OverflowError:
            return math.inf

    def meaning(x: Any) -> Any:
        array = np.asarray(x)
        found = [one(v) for v in array.ravel().tolist()]
        return np.array(found, dtype=array.dtype).reshape(array.shape)[()]

    return meaning


def _gamma(x: Any) -> Any:
    found = _each(math.gamma, math.nan)(x)
    with np.errstate(divide="ignore"):
        return np.where(np.equal(x, 0), np.divide(1, x), found).astype(found.dtype)[()]


def _raising(name: str) -> Callable[..., Any]:
    """The element of gamma and lgamma: with `strict` a pole is a domain error, as in `math`."""

    def element(s: Any, i: Any, x: Any, *, strict: bool = False) -> Any:
        value = x(i)
        result = getattr(s, name)(value)
        if strict:
            zero = s.const(0, types.f64)
            integral = s.equal(value, s.floor(value))
            pole = s.logical_and(s.less_equal(value, zero), integral)
            finite = s.isfinite(value)
            invented = s.logical_and(s.isnan(result), s.logical_not(s.isnan(value)))
            refused = s.logical_or(s.logical_and(pole, finite), invented)
            s.fail("ValueError", domain_words(name), refused, value)
            s.fail("OverflowError", (RANGE,), s.logical_and(s.isinf(result), finite))
        return result

    return element


erfc = elementwise(
    "erfc", _each(math.erfc, math.nan),
    (lambda y, x: -2 / math.sqrt(math.pi) * exp(-(x * x)),), kinds="f",
    promotion=Promotion.FLOAT, samples=(*unary(-3.0, 3.0), integers((3,), low=1, high=1)),
    doc="1 - erf(x), precise where it is small",
)
lgamma = elementwise(
    "lgamma", _each(math.lgamma, math.inf), (lambda y, x: digamma(x),), kinds="f",
    promotion=Promotion.FLOAT, element=_raising("lgamma"),
    samples=(*unary(0.2, 9.0), integers((3,), low=1, high=1),
             Sample((np.array([-2.5, -0.5, 0.0, 300.0]),), {}, False)),
    doc="the logarithm of |gamma(x)|",
)
gamma = elementwise(
    "gamma", _gamma, (lambda y, x: y * digamma(x),), kinds="f", promotion=Promotion.FLOAT,
    element=_raising("gamma"),
    samples=(*unary(0.2, 6.0), integers((3,), low=1, high=1),
             Sample((np.array([-2.5, -0.5, 0.0, 300.0]),), {}, False)),
    doc="the gamma function",
)


def _next_type(args: tuple[types.Type, ...], attrs: Attributes) -> tuple[types.Type, ...]:
    """As other functions of two floats, but not of 16 bits: kernels compute in 32."""
    for k, ty in enumerate(tensors(args)):
        if ty.dtype in (types.f16, types.bf16):
            raise RelationError(
                f"does not take {ty.dtype.numpy_name}", arg=k, kind="type",
                hint="convert the argument first, as with x.astype(np.float32).",
            )
    return same_dtype("f")(args, attrs)


nextafter = elementwise(
    "nextafter", np.nextafter, (1, None), relation=_next_type, promotion=Promotion.FLOAT,
    samples=tuple(binary(-2.0, 2.0)), doc="the next float after x towards y",
)
