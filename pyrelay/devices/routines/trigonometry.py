"""Trigonometric and hyperbolic functions and cbrt of floats, as expressions over ``Lane``.

In: lanes of f32 or f64; out: lanes.  Branch-free, special values as in C99 Annex F; error bounds
in ``vector_math.ERROR_BOUNDS``.  Sine, cosine and tangent of large f32 reduce their argument in f64
with a table of 2/pi that starts where the argument's exponent makes its bits matter (Payne and
Hanek, *Radian Reduction for Trigonometric Functions*, SIGNUM 18, 1983), of others as below, in f32
(``vector_calls``); polynomials are Chebyshev fits at 50 digits.  In f64, sin, cos and tan are the C
library's, which tables make quick and no vectors; of angles that are known to be small they are
found by subtracting quarter turns in parts (Cody and Waite, *Software Manual for the Elementary
Functions*, 1980).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import EVERY_LOOP, WORD, access_group
from pyrelay.devices.routines.exponentials import lane_half_exp, lane_log1p
from pyrelay.devices.routines.lanes import SINGLE, Lane
from pyrelay.devices.routines.vector_calls import vector_call

_INF = math.inf
_PI = math.pi
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_LN2 = 0.6931471805599453
_DOUBLE = llvm.DoubleType()
_Pair = tuple[Lane, Lane]

# (sin(r) - r) / r**3 and (cos(r) - 1) / r**2 in r**2, on |r| <= pi / 4
_SIN_TAIL = (-0.16666666663844049, 0.008333331870341349, -0.00019840084376422702,
             2.724962008007533e-06)  # fmt: skip
_COS_TAIL = (-0.4999999999996371, 0.04166666663727906, -0.001388888508002599,
             2.4799858750748857e-05, -2.7236822001886194e-07)  # fmt: skip
# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2, on |r| <= pi / 4, for f64
_NEAR_SIN_TAIL = (-0.16666666666666666, 0.008333333333330948, -0.00019841269836756774,
                  2.7557316101617874e-06, -2.505113165023518e-08,
                  1.5918115263265974e-10)  # fmt: skip
_NEAR_COS_TAIL = (0.041666666666666664, -0.0013888888888887398, 2.480158729876456e-05,
                  -2.7557317271145144e-07, 2.087614614655861e-09,
                  -1.1382623647474603e-11)  # fmt: skip
# the same for f32
_SINGLE_SIN_TAIL = (-0.16666666663409865, 0.008333331704724155, -0.00019839996607644324,
                    2.7238454628945354e-06)  # fmt: skip
_SINGLE_COS_TAIL = (0.04166666442552445, -0.0013888258397517655, 2.4538474883631592e-05)
_SINGLE_QUARTER_TURN = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
# pi / 2 as a sum of three numbers of 33 bits, and what is left
_QUARTER_TURN = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21,
                 8.4784276603689e-32)  # fmt: skip
# (atan(t) - t) / t**3 in t**2, on |t| <= tan(pi / 8)
_ATAN_TAIL = {
    32: (-0.3333333175381697, 0.1999953879477192, -0.14263897112598675, 0.1074309966767457,
         -0.06449835224591496),
    64: (-0.3333333333333333, 0.1999999999999548, -0.14285714284657894, 0.11111111014561013,
         -0.09090904549884611, 0.07692182535116648, -0.06664502215671447, 0.058580687568615106,
         -0.05085030492810941, 0.03921955253255129, -0.019162068915902573),
}  # fmt: skip
# (asin(t) - t) / t**3 in t**2, on |t| <= 1/2
_ASIN_TAIL = {
    32: (0.16666672427703408, 0.07498852962262084, 0.0450018940882998, 0.026550662963657472,
         0.038093962148042254),
    64: (0.1666666666666665, 0.07500000000020869, 0.04464285710323956, 0.030381947379559158,
         0.022372047201808885, 0.01735526856395352, 0.013929545950485803, 0.011876344296279416,
         0.0077986264075622334, 0.01604912458494932, -0.010773195325585556, 0.028187667142318098),
}  # fmt: skip
# (sinh(t) - t) / t**3 in t**2, on |t| <= 1
_SINH_TAIL = {
    32: (0.16666666646842135, 0.00833333967591706, 0.00019838101968683888, 2.8062802582276946e-06),
    64: (0.16666666666666666, 0.008333333333333333, 0.00019841269841269773, 2.755731922404034e-06,
         2.505210836405804e-08, 1.6059048396350562e-10, 7.646625361656657e-13,
         2.8445264169895285e-15),
}  # fmt: skip
# 1 / cbrt(m) to 0.017, on 1 <= m <= 8
_CBRT_START = (1.23702005, -0.2972082, 0.04589481, -0.00254891)


def library(name: str) -> Callable[..., Lane]:
    """A function of C's math library: a call, so that the loop around it stays scalar."""

    def function(*args: Lane) -> Lane:
        x = args[0]
        symbol = name + ("f" if x.format is SINGLE else "")
        kind = x.v.type
        signature = llvm.FunctionType(kind, [kind] * len(args))
        callee = x.b.module.globals.get(symbol)
        if callee is None:
            callee = llvm.Function(x.b.module, signature, symbol)
            # Nobody reads errno: so LLVM calls `sincos` for a sine and a cosine of one number.
            for attribute in ("readnone", "nounwind"):
                callee.attributes.add(attribute)
        return Lane(x.b, x.b.call(callee, [each.v for each in args]))

    return function


def through_double(name: str) -> Callable[[Lane], Lane]:
    """A function of C's math library, of an f32 too in double precision."""
    function = library(name)

    def wide(x: Lane) -> Lane:
        return function(x.widen()).narrow() if x.format is SINGLE else function(x)

    return wide


# -- sine, cosine, tangent -----------------------------------------------------------------------

# 2 / pi to 256 bits: floor(2**256 * 2 / pi).
_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561
_FIRST_EXPONENT = 151  # of an f32, biased: below, no bit of 2/pi may be left out
_HIGH_BITS = 29  # times the 24 bits of an f32 they fill the 53 of an f64


@functools.cache
def _reduction_table() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For biased exponents from 151 on, 2/pi without the bits whose products with any f32 of that
    exponent are multiples of 4: its first 29 bits and the next 53."""
    highs, lows = [], []
    for exponent in range(_FIRST_EXPONENT, 256):
        unit = Fraction(2) ** (exponent - 150)  # weight of the last bit of the significand
        value = Fraction(_TWO_OVER_PI, 2**256) * unit % 4 / unit
        scale = Fraction(2) ** (_HIGH_BITS - 1 - _exponent_of(value))
        high = Fraction(int(value * scale)) / scale
        highs.append(float(high))
        lows.append(float(value - high))
    return tuple(highs), tuple(lows)


def _exponent_of(value: Fraction) -> int:
    """``e`` with ``2**e <= value < 2**(e + 1)``."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent - (value < Fraction(2) ** exponent)


def _table_entry(index: Lane, name: str, values: tuple[float, ...]) -> Lane:
    """``values[index]`` from a constant array of the kernel's module."""
    b = index.b
    kind = llvm.ArrayType(_DOUBLE, len(values))
    table = b.module.globals.get(name)
    if table is None:
        table = llvm.GlobalVariable(b.module, kind, name)
        table.initializer = llvm.Constant(kind, list(values))
        table.global_constant, table.linkage = True, "internal"
    place = b.gep(table, [llvm.Constant(WORD, 0), b.zext(index.v, WORD)], inbounds=True)
    value = b.load(place)
    value.set_metadata("llvm.access.group", access_group(b.module, EVERY_LOOP))
    return Lane(b, value)


def _quarter_turns(x: Lane) -> tuple[Lane, Lane]:
    """An f32 as ``n`` quarter turns and an angle within an eighth of a turn: (n, angle in f64)."""
    highs, lows = _reduction_table()
    exponent = (x.bits() >> 23) & 0xFF
    low_end = exponent < _FIRST_EXPONENT
    index = low_end.choose(exponent.constant(0), exponent - _FIRST_EXPONENT)
    wide = x.widen()
    turns = wide * _table_entry(index, "pyrelay_two_over_pi_high", highs)
    magic = 1.5 * 2.0**52
    shifted = turns + magic
    rest = wide.fma(_table_entry(index, "pyrelay_two_over_pi_low", lows), turns - (shifted - magic))
    return shifted.bits(), rest * (_PI / 2)


def _sine_and_cosine(angle: Lane) -> tuple[Lane, Lane]:
    """Within an eighth of a turn, in f64, to about 2**-34."""
    z = angle * angle
    return (z * angle).fma(z.polynomial(_SIN_TAIL), angle), z.fma(z.polynomial(_COS_TAIL), 1.0)


def _turned(x: Lane, quarter: int) -> Lane:
    """``sin(x + quarter * pi / 2)`` of an f32."""
    n, angle = _quarter_turns(x)
    sine, cosine = _sine_and_cosine(angle)
    n = n + quarter
    value = (n & 1).differs(0).choose(cosine, sine)
    return (n & 2).differs(0).choose(-value, value).narrow()


def _far_tan(x: Lane) -> Lane:
    n, angle = _quarter_turns(x)
    sine, cosine = _sine_and_cosine(angle)
    odd = (n & 1).differs(0)
    return (odd.choose(-cosine, sine) / odd.choose(sine, cosine)).narrow()


def _difference(a: Lane, b: Lane) -> tuple[Lane, Lane]:
    """``a - b`` rounded, and what rounding lost (Knuth's two-sum)."""
    total = a - b
    of_b = a - total
    return total, (a - (total + of_b)) + (of_b - b)


def _near_parts(x: Lane) -> tuple[Lane, Lane, Lane]:
    """An f64 of at most ``NEAR_ANGLE`` as quarter turns, and the sine and the cosine of what is
    left."""
    magic = 1.5 * 2.0**52
    shifted = x * (2 / _PI) + magic
    turns = shifted - magic
    first, second, third, rest = _QUARTER_TURN
    # The first three products are exact, and so is the first difference.
    angle, lost = _difference(x - turns * first, turns * second)
    angle, more = _difference(angle, turns * third)
    lost = lost + more - turns * rest
    high = angle + lost
    low = lost - (high - angle)
    z = high * high
    half = z * 0.5
    about = 1.0 - half
    sine = high + (z * high).fma(z.polynomial(_NEAR_SIN_TAIL), low * about)
    tail = (z * z).fma(z.polynomial(_NEAR_COS_TAIL), (1.0 - about) - half)
    return shifted.bits(), sine, about + (tail - high * low)


def _near_turned(x: Lane, quarter: int) -> Lane:
    """``sin(x + quarter * pi / 2)`` of such an f64."""
    turns, sine, cosine = _near_parts(x)
    n = turns + quarter
    value = (n & 1).differs(0).choose(cosine.bits(), sine.bits())
    return (value ^ ((n & 2) << 62)).as_float()


def lane_near_sin(x: Lane) -> Lane:
    if x.format is SINGLE:
        return lane_sin(x)
    return x.equals(0.0).choose(x, _near_turned(x, 0))  # keeps the sign of zero


def lane_near_cos(x: Lane) -> Lane:
    return lane_cos(x) if x.format is SINGLE else _near_turned(x, 1)


def lane_near_tan(x: Lane) -> Lane:
    if x.format is SINGLE:
        return lane_tan(x)
    n, sine, cosine = _near_parts(x)
    odd = (n & 1).differs(0)
    above = odd.choose((-cosine).bits(), sine.bits()).as_float()
    value = above / odd.choose(sine.bits(), cosine.bits()).as_float()
    return x.equals(0.0).choose(x, value)  # keeps the sign of zero


# -- sine, cosine and tangent of an f32 that is not far from 0 ------------------------------------


def _single_parts(x: Lane) -> tuple[Lane, _Pair, _Pair]:
    """An f32 of at most ``_SINGLE_BOUND`` as quarter turns, and the sine and the cosine of what is
    left, each as a large part and a small one. All in f32: what is left, too, is two of these."""
    magic = 1.5 * 2.0**23
    shifted = x.fma(2 / _PI, magic)
    turns = shifted - magic
    first, second, third = _SINGLE_QUARTER_TURN
    # The first difference is exact: it is a multiple of the last bit of both, and less than 1.
    product = turns * second
    lost = turns.exact_fma(second, -product)
    angle, low = _difference(turns.exact_fma(-first, x), product)
    low = turns.fma(-third, low - lost)
    z = angle * angle
    about = z.fma(-0.5, 1.0)
    rest = (1.0 - about) - z * 0.5
    sine = (z * angle).fma(z.horner(_SINGLE_SIN_TAIL), low)
    cosine = (z * z).fma(z.horner(_SINGLE_COS_TAIL), low.fma(-angle, rest))
    return shifted.bits(), (angle, sine), (about, cosine)


def _swapped(odd: Lane, x: Lane, y: Lane) -> Lane:
    return odd.choose(y.bits(), x.bits()).as_float()


def _single_turned(x: Lane, quarter: int) -> Lane:
    """``sin(x + quarter * pi / 2)`` of such an f32."""
    turns, (sine, sine_low), (cosine, cosine_low) = _single_parts(x)
    n = turns + quarter
    odd = (n & 1).differs(0)
    value = _swapped(odd, sine + sine_low, cosine + cosine_low)
    return (value.bits() ^ ((n & 2) << 30)).as_float()


def _single_sin(x: Lane) -> Lane:
    return x.equals(0.0).choose(x, _single_turned(x, 0))  # keeps the sign of zero


def _single_tan(x: Lane) -> Lane:
    n, (sine, sine_low), (cosine, cosine_low) = _single_parts(x)
    odd = (n & 1).differs(0)
    sine, cosine = sine + sine_low, cosine + cosine_low
    value = _swapped(odd, sine, cosine) / _swapped(odd, cosine, sine)
    return x.equals(0.0).choose(x, (value.bits() ^ (n << 31)).as_float())


_SINGLE_BOUND = 1e5


def _is_large(x: Lane) -> Lane:
    return ~(x.abs() <= _SINGLE_BOUND)


_sin = vector_call("sin", _single_sin, lambda x: _turned(x, 0), _is_large)
_cos = vector_call("cos", lambda x: _single_turned(x, 1), lambda x: _turned(x, 1), _is_large)
_tan = vector_call("tan", _single_tan, _far_tan, _is_large)


def lane_sin(x: Lane) -> Lane:
    return _sin(x) if x.format is SINGLE else library("sin")(x)


def lane_cos(x: Lane) -> Lane:
    return _cos(x) if x.format is SINGLE else library("cos")(x)


def lane_tan(x: Lane) -> Lane:
    return _tan(x) if x.format is SINGLE else library("tan")(x)


# -- inverses ------------------------------------------------------------------------------------


def _atan_of_quotient(numerator: Lane, denominator: Lane) -> Lane:
    """``atan(numerator / denominator)`` for ``0 <= numerator <= denominator``, finite: below
    tan(pi / 8) as it is, above it turned by pi / 4."""
    one = denominator.constant(1.0)
    # A number, since a bit would choose four times: see `Lane.choose`.
    turn = (numerator > denominator * 0.41421356237309503).choose(one, 0.0)
    t = turn.fma(-denominator, numerator) / turn.fma(numerator, denominator)
    z = t * t
    tail = (z * t) * z.polynomial(_ATAN_TAIL[t.format.bits])
    return turn * (_HALF_PI[0] / 2) + (t + turn.fma(_low_part(t, _PI / 4), tail))


def _low_part(x: Lane, value: float) -> float:
    """What the constant ``value`` loses in ``x``'s format."""
    if x.format is SINGLE:
        import numpy as np

        return value - float(np.float32(value))
    return _HALF_PI[1] * (value / _HALF_PI[0])


def lane_arctan(x: Lane) -> Lane:
    size = x.abs()
    one, most = size.constant(1.0), size.constant(1e38 if x.format is SINGLE else 1e300)
    numerator = (size > 1.0).choose(one, size)
    denominator = (size < 1.0).choose(one, (size > most).choose(most, size))
    angle = _atan_of_quotient(numerator, denominator)
    turned = x.constant(_HALF_PI[0]) - (angle - _low_part(x, _PI / 2))
    return (size > 1.0).choose(turned, angle).copysign(x)


def lane_arctan2(y: Lane, x: Lane) -> Lane:
    a, b = y.abs(), x.abs()
    steep = a > b
    small, large = steep.choose(b, a), steep.choose(a, b)
    # Two infinities make an eighth of a turn, two zeros none; huge sums must not overflow.
    infinite = large.equals(_INF)
    one = x.constant(1.0)
    small = infinite.choose(small.equals(_INF).choose(one, 0.0), small)
    large = infinite.choose(one, large)
    large = large.equals(0.0).choose(one, large)
    factor = (large > 1e30).choose(one * 0.25, one)
    angle = _atan_of_quotient(small * factor, large * factor)
    angle = steep.choose(x.constant(_HALF_PI[0]) - (angle - _low_part(x, _PI / 2)), angle)
    behind = x.bits() < 0
    angle = behind.choose(x.constant(_PI) - (angle - _low_part(x, _PI)), angle)
    angle = angle.copysign(y)
    return (x.is_nan() | y.is_nan()).choose(x + y, angle)


def _arcsin_parts(x: Lane) -> tuple[Lane, Lane, Lane]:
    """(whether ``|x| > 1/2``, the root or ``|x|``, its arcsine)."""
    size = x.abs()
    square, other = size * size, (1.0 - size) * 0.5
    z = (other < square).choose(other, square)
    root = (size > 0.5).choose(z.sqrt(), size)
    angle = (z * root).fma(z.polynomial(_ASIN_TAIL[x.format.bits]), root)
    return root < size, root, angle


def lane_arcsin(x: Lane) -> Lane:
    large, _, angle = _arcsin_parts(x)
    far = x.constant(_HALF_PI[0]) - (angle + angle - _low_part(x, _PI / 2))
    return large.choose(far, angle).copysign(x)


def lane_arccos(x: Lane) -> Lane:
    large, _, angle = _arcsin_parts(x)
    twice = angle + angle
    near = x.constant(_HALF_PI[0]) - (angle.copysign(x) - _low_part(x, _PI / 2))
    far = (x < 0.0).choose(x.constant(_PI) - (twice - _low_part(x, _PI)), twice)
    return large.choose(far, near)


# -- hyperbolic functions ------------------------------------------------------------------------


def lane_sinh(x: Lane) -> Lane:
    size = x.abs()
    half = lane_half_exp(size)
    z = x * x
    inner = (z * x).fma(z.polynomial(_SINH_TAIL[x.format.bits]), x)
    return (size < 1.0).choose(inner, (half - 0.25 / half).copysign(x))


def lane_cosh(x: Lane) -> Lane:
    half = lane_half_exp(x.abs())
    return half + 0.25 / half


def lane_arcsinh(x: Lane) -> Lane:
    size = x.abs()
    huge = size > 2.0**x.format.mantissa
    bounded = huge.choose(size.constant(1.0), size)
    square = bounded * bounded
    inner = bounded + square / ((square + 1.0).sqrt() + 1.0)
    value = lane_log1p(huge.choose(size, inner))
    return huge.choose(value + _LN2, value).copysign(x)


def lane_arccosh(x: Lane) -> Lane:
    huge = x > 2.0**x.format.mantissa
    above = huge.choose(x.constant(1.0), x - 1.0)
    inner = above + (above.fma(above, above + above)).sqrt()
    value = lane_log1p(huge.choose(x, inner))
    value = huge.choose(value + _LN2, value)
    return (x < 1.0).choose(x.constant(math.nan), value)


def lane_arctanh(x: Lane) -> Lane:
    size = x.abs()
    return (lane_log1p((size + size) / (1.0 - size)) * 0.5).copysign(x)


# -- others --------------------------------------------------------------------------------------


def lane_cbrt(x: Lane) -> Lane:
    """``m r**2`` with ``r`` the inverse of the root, on ``|x| = 8**k m`` with m from 1 to 8: a
    cubic that is off by 1.7%, terms of the series of ``(1 - h)**(-1/3)``, no division, and at last
    a step of Newton's for the root itself."""
    fmt = x.format
    size = x.abs()
    # Below the normal range the bits are those of size * 2**54, with an exponent as much lower.
    raised = (size * 2.0**54).bits() - (54 << fmt.mantissa)
    bits = (size < fmt.smallest_normal).choose(raised, size.bits())
    # A third of the exponent, which is made positive first, by a product: 21846 is 2**16 / 3.
    more = 54 + -fmt.bias % 3
    positive = ((bits >> fmt.mantissa) + more) & 4095
    whole = ((positive * 21846) >> 16) - (more + fmt.bias) // 3
    m = (bits - ((whole * 3) << fmt.mantissa)).as_float()
    r = m.horner(_CBRT_START)
    h = 1.0 - r * r * r * m
    r = (r * h).fma(h.fma(2.0 / 9.0, 1.0 / 3.0), r)
    if fmt is not SINGLE:
        r = (r * (1.0 / 3.0)).fma(1.0 - r * r * r * m, r)
    t = m * (r * r)
    # As a small correction: its rounding errors are small as well.
    t = (r * r * (1.0 / 3.0)).fma((t * t).fma(-t, m), t)
    power = (whole + fmt.bias) << fmt.mantissa
    root = t * x.equals(0.0).choose(power.constant(0), power).as_float()
    return (x - x).equals(0.0).choose(root.copysign(x), x)
