"""Elementary functions of complex numbers, from functions of their real and imaginary parts.

In: the scalar emitter and a complex value. Out: its image. Inverse functions follow W. Kahan,
"Branch cuts for complex elementary functions" (1987), which keeps the sign of zeros on the cuts.
The target's scalar table supplies complex arithmetic, exp, log, sqrt, sin and cos.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pyrelay.ops.relations import real_part

Parts = tuple[Any, Any]


def _parts(s: Any, z: Any) -> Parts:
    return s.real(z), s.imag(z)


def _number(s: Any, value: float) -> Any:
    """A real constant of the precision of the complex result."""
    return s.const(value, real_part(s.result[0].dtype))


def _roots(s: Any, z: Any) -> tuple[Any, Any]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    x, y = _parts(s, z)
    one = _number(s, 1.0)
    return (
        s.sqrt(s.make_complex(s.subtract(one, x), s.negative(y))),
        s.sqrt(s.make_complex(s.add(one, x), y)),
    )


def _imag_of_conj_product(s: Any, a: Any, b: Any) -> Any:
    """Im(conj(a) * b)."""
    (p, q), (u, v) = _parts(s, a), _parts(s, b)
    return s.subtract(s.multiply(p, v), s.multiply(q, u))


def _times_i(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    return s.make_complex(s.negative(y), x)


def _over_i(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    return s.make_complex(y, s.negative(x))


def _is_zero(s: Any, x: Any) -> Any:
    return s.equal(x, _number(s, 0.0))


def _wild(s: Any, x: Any) -> Any:
    """Infinite, or NaN. What functions give there is in annex G of C99."""
    return s.logical_not(s.isfinite(x))


def _rint(s: Any, z: Any) -> Any:
    return s.make_complex(*(s.rint(p) for p in _parts(s, z)))


def _exp2(s: Any, z: Any) -> Any:
    factor = _number(s, math.log(2))
    return s.exp(s.make_complex(*(s.multiply(p, factor) for p in _parts(s, z))))


def _sign(s: Any, z: Any) -> Any:
    """z / |z|, and 0 for 0; of an infinite |z| along the axis of the infinite part."""
    x, y = _parts(s, z)
    size, zero = s.hypot(x, y), _number(s, 0.0)
    far, beside, origin = s.isinf(size), s.isinf(x), _is_zero(s, size)
    corner = s.where(s.isinf(y), _number(s, math.nan), _signed(s, 1.0, x))
    axes = s.where(beside, corner, zero), s.where(
        beside, s.where(s.isinf(y), _number(s, math.nan), zero), _signed(s, 1.0, y)
    )
    return s.make_complex(*(
        s.where(far, axis, s.where(origin, zero, s.divide(part, size)))
        for part, axis in zip((x, y), axes, strict=True)
    ))


def _expm1(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    half = s.sin(s.multiply(y, _number(s, 0.5)))
    lost = s.multiply(_number(s, 2.0), s.multiply(half, half))
    real = s.subtract(s.multiply(s.expm1(x), s.cos(y)), lost)
    return s.make_complex(real, s.multiply(s.exp(x), s.sin(y)))


def _log_to(base: float) -> Callable[[Any, Any], Any]:
    def log(s: Any, z: Any) -> Any:
        x, y = _parts(s, s.log(z))
        factor = _number(s, 1 / math.log(base))
        return s.make_complex(s.multiply(x, factor), s.multiply(y, factor))

    return log


def _log1p(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    shifted = s.add(x, _number(s, 1.0))
    return s.make_complex(s.log(s.hypot(shifted, y)), s.arctan2(y, shifted))


def _sinh(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    real, imag = s.multiply(s.sinh(x), s.cos(y)), s.multiply(s.cosh(x), s.sin(y))
    kept = s.logical_and(_wild(s, y), s.logical_or(_is_zero(s, x), s.isinf(x)))
    real = s.where(kept, s.where(s.isinf(x), s.absolute(x), x), real)
    return s.make_complex(real, s.where(_is_zero(s, y), y, imag))


def _cosh(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    real, imag = s.multiply(s.cosh(x), s.cos(y)), s.multiply(s.sinh(x), s.sin(y))
    far, axis = s.logical_and(_wild(s, y), s.isinf(x)), _is_zero(s, y)
    origin = s.logical_and(_is_zero(s, x), _wild(s, y))
    signed = s.multiply(s.copysign(_number(s, 1.0), x), y)
    imag = s.where(axis, signed, s.where(origin, _number(s, 0.0), imag))
    return s.make_complex(s.where(far, s.absolute(x), real), imag)


def _tanh(s: Any, z: Any) -> Any:
    """Kahan's form; beyond |Re z| = 20, where cosh would overflow later, the limit."""
    x, y = _parts(s, z)
    one = _number(s, 1.0)
    far = s.greater(s.absolute(x), _number(s, 20.0))
    near = s.where(far, _number(s, 0.0), x)
    tangent, sine = s.tan(y), s.sinh(near)
    beta = s.add(one, s.multiply(tangent, tangent))
    rho = s.sqrt(s.add(one, s.multiply(sine, sine)))
    below = s.add(one, s.multiply(beta, s.multiply(sine, sine)))
    real = s.divide(s.multiply(beta, s.multiply(rho, sine)), below)
    imag = s.divide(tangent, below)
    decay = s.exp(s.multiply(_number(s, -2.0), s.absolute(x)))
    wave = s.multiply(s.multiply(_number(s, 4.0), s.sin(y)), s.multiply(s.cos(y), decay))
    zero = _number(s, 0.0)
    lost = s.where(s.isinf(y), y, s.multiply(s.sin(y), s.cos(y)))
    wave = s.where(s.isinf(x), s.copysign(zero, lost), wave)
    imag = s.where(_is_zero(s, y), y, s.where(far, wave, imag))
    real = s.where(s.logical_and(_is_zero(s, x), _wild(s, y)), x, real)
    return s.make_complex(s.where(far, s.copysign(one, x), real), imag)


def _beyond(s: Any, z: Any, real: tuple[Any, Any], imag: tuple[Any, Any], axis: Parts) -> Any:
    """The first of each part for a finite z, the second where a part of z is infinite, and `axis`
    where z lies on the imaginary axis, nowhere (annex G of C99)."""
    x, y = _parts(s, z)
    far = s.logical_or(s.isinf(x), s.isinf(y))
    nowhere = s.logical_and(_is_zero(s, x), s.isnan(y))
    return s.make_complex(*(
        s.where(far, there, s.where(nowhere, on_axis, here))
        for (here, there), on_axis in zip((real, imag), axis, strict=True)
    ))


def _signed(s: Any, size: float, y: Any) -> Any:
    return s.copysign(_number(s, size), y)


def _arcsin(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    below, above = _roots(s, z)
    angle = s.arctan2(x, s.real(s.multiply(below, above)))
    height = s.arcsinh(_imag_of_conj_product(s, below, above))
    far = s.arctan2(x, s.absolute(y)), _signed(s, math.inf, y)
    return _beyond(s, z, (angle, far[0]), (height, far[1]), (x, y))


def _arccos(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    below, above = _roots(s, z)
    half = s.arctan2(s.real(below), s.real(above))
    height = s.arcsinh(_imag_of_conj_product(s, above, below))
    far = s.arctan2(s.absolute(y), x), s.negative(_signed(s, math.inf, y))
    right = _number(s, math.pi / 2)
    return _beyond(s, z, (s.add(half, half), far[0]), (height, far[1]), (right, y))


def _arccosh(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    one = _number(s, 1.0)
    low = s.sqrt(s.make_complex(s.subtract(x, one), y))
    high = s.sqrt(s.make_complex(s.add(x, one), y))
    real = s.arcsinh(s.real(s.multiply(s.conj(low), high)))
    half = s.arctan2(s.imag(low), s.real(high))
    far, right = (_number(s, math.inf), s.arctan2(y, x)), _number(s, math.pi / 2)
    return _beyond(s, z, (real, far[0]), (s.add(half, half), far[1]), (y, right))


def _arctanh(s: Any, z: Any) -> Any:
    x, y = _parts(s, z)
    one, four = _number(s, 1.0), _number(s, 4.0)
    rest, square = s.subtract(one, x), s.multiply(y, y)
    ratio = s.divide(s.multiply(four, x), s.add(s.multiply(rest, rest), square))
    real = s.multiply(s.log1p(ratio), _number(s, 0.25))
    below = s.subtract(s.multiply(rest, s.add(one, x)), square)
    angle = s.multiply(s.arctan2(s.add(y, y), below), _number(s, 0.5))
    far = _signed(s, 0.0, x), s.where(s.isnan(y), y, _signed(s, math.pi / 2, y))
    return _beyond(s, z, (real, far[0]), (angle, far[1]), (x, y))


#: Op name -> how its element is computed for complex operands.
def _compared(real: str, imaginary: str) -> Callable[[Any, Any, Any], Any]:
    """NumPy's order: by the real parts, where they are equal by the imaginary ones; an imaginary
    part that is NaN is before and after nothing."""

    def element(s: Any, a: Any, b: Any) -> Any:
        (ar, ai), (br, bi) = _parts(s, a), _parts(s, b)
        numbers = s.logical_and(s.equal(ai, ai), s.equal(bi, bi))
        apart = s.logical_and(getattr(s, real)(ar, br), numbers)
        return s.logical_or(apart, s.logical_and(s.equal(ar, br), getattr(s, imaginary)(ai, bi)))

    return element


_ORDERS: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "less": _compared("less", "less"), "less_equal": _compared("less", "less_equal"),
    "greater": _compared("greater", "greater"),
    "greater_equal": _compared("greater", "greater_equal"),
}


def _extreme(order: str, *, ignores_nan: bool) -> Callable[[Any, Any, Any], Any]:
    """The first of two numbers where it is in order, or is NaN (`ignores_nan`: the other one is).
    """

    def element(s: Any, a: Any, b: Any) -> Any:
        real, imaginary = _parts(s, b if ignores_nan else a)
        is_nan = s.logical_or(s.not_equal(real, real), s.not_equal(imaginary, imaginary))
        return s.where(s.logical_or(_ORDERS[order](s, a, b), is_nan), a, b)

    return element


COMPLEX: Mapping[str, Callable[..., Any]] = {
    **_ORDERS,
    "maximum": _extreme("greater_equal", ignores_nan=False),
    "minimum": _extreme("less_equal", ignores_nan=False),
    "fmax": _extreme("greater_equal", ignores_nan=True),
    "fmin": _extreme("less_equal", ignores_nan=True),
    "rint": _rint, "sign": _sign, "exp2": _exp2, "expm1": _expm1, "log2": _log_to(2.0),
    "log10": _log_to(10.0), "log1p": _log1p, "sinh": _sinh, "cosh": _cosh, "tanh": _tanh,
    "tan": lambda s, z: _over_i(s, _tanh(s, _times_i(s, z))),
    "arcsin": _arcsin, "arccos": _arccos, "arccosh": _arccosh, "arctanh": _arctanh,
    "arcsinh": lambda s, z: _over_i(s, _arcsin(s, _times_i(s, z))),
    "arctan": lambda s, z: _over_i(s, _arctanh(s, _times_i(s, z))),
}
