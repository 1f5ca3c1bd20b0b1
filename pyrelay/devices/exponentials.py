"""Exponentials, logarithms and powers of floats, as expressions over ``Lane``.

In: lanes of f32 or f64; out: lanes.  Branch-free, special values as in C99 Annex F; error bounds
in ``vector_math.ERROR_BOUNDS``.  Argument reduction in the manner of Cody and Waite, *Software
Manual for the Elementary Functions* (1980); the logarithm is summed up as in Sun's fdlibm (1993);
polynomials are Chebyshev fits at 50 digits.
"""

from __future__ import annotations

import math

from pyrelay.devices.lanes import SINGLE, Lane, scale_by_power_of_two

_INF = math.inf
_LOG2_E = 1.4426950408889634
_LN2 = 0.6931471805599453

# ln 2 in two parts; the first has trailing zeros, so that its small multiples are exact.
_LN2_PARTS = {
    32: (0.693359375, -2.12194440e-4),
    64: (6.93147180369123816490e-01, 1.90821492927058770002e-10),
}
# (exp(r) - 1 - r) / r**2 on |r| <= ln(2) / 2
_EXP_TAIL = {
    32: (0.5, 0.16666576845993977, 0.04166655443768594, 0.008363202971575855,
         0.0013926213466332444),
    64: (0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326112,
         0.001388888888888373, 0.0001984126987490126, 2.4801587325605324e-05,
         2.7557255297969643e-06, 2.755727357010214e-07, 2.5105259538448494e-08,
         2.0914717341716378e-09),
}  # fmt: skip
# (log((1 + s) / (1 - s)) - 2 s) / s**3 in z = s**2, on 1 / sqrt(2) <= (1 + s) / (1 - s) <= sqrt(2)
_LOG_TAIL = {
    32: (0.6666666654988318, 0.40000125594554364, 0.28550396959618013, 0.23341943388714562),
    64: (0.666666666666667, 0.3999999999989322, 0.28571428628810996, 0.22222210674238516,
         0.18182922513515942, 0.15330617306743305, 0.1463003136412286),
}  # fmt: skip


# -- exponentials --------------------------------------------------------------------------------


def _nearest(x: Lane) -> tuple[Lane, Lane]:
    """``x`` rounded to a whole number, as a float and as an integer lane.

    Adding 1.5 * 2**mantissa leaves the whole number in the low bits of the sum, without a
    conversion that NaN would make undefined.
    """
    fmt = x.format
    magic = 1.5 * 2.0**fmt.mantissa
    shifted = x + magic
    pattern = ((fmt.bias + fmt.mantissa) << fmt.mantissa) | (1 << (fmt.mantissa - 1))
    return shifted - magic, shifted.bits() - pattern


def _split(x: Lane) -> tuple[Lane, Lane]:
    """``x = n ln 2 + r`` with ``|r| <= ln(2) / 2``: (r, n as an integer lane)."""
    high, low = _LN2_PARTS[x.format.bits]
    n, exponent = _nearest(x * _LOG2_E)
    return n.fma(-low, n.fma(-high, x)), exponent


def _clamp(x: Lane, low: float, high: float) -> Lane:
    """``x`` between two bounds; NaN stays."""
    x = (x > high).choose(x.constant(high), x)
    return (x < low).choose(x.constant(low), x)


def _exp_reduced(r: Lane) -> Lane:
    """``exp(r) - 1`` for ``|r| <= ln(2) / 2``."""
    return (r * r).fma(r.polynomial(_EXP_TAIL[r.format.bits]), r)


def lane_exp(x: Lane) -> Lane:
    low, high = (-104.0, 89.0) if x.format is SINGLE else (-746.0, 710.0)
    # Zeros are not computed: going below the normal range costs a hundred cycles, and masks full
    # of -inf are common.
    vanishes = x < low
    bounded = vanishes.choose(x.constant(0.0), (x > high).choose(x.constant(high), x))
    r, exponent = _split(bounded)
    value = scale_by_power_of_two(_exp_reduced(r) + 1.0, exponent)
    return vanishes.choose(x.constant(0.0), value)


def lane_half_exp(x: Lane) -> Lane:
    """``exp(x) / 2`` for ``x >= 0``, infinite only where that is."""
    r, exponent = _split(_clamp(x, 0.0, 90.0 if x.format is SINGLE else 711.0))
    return scale_by_power_of_two(_exp_reduced(r) + 1.0, exponent - 1)


def lane_exp2(x: Lane) -> Lane:
    low, high = (-151.0, 129.0) if x.format is SINGLE else (-1076.0, 1025.0)
    x = _clamp(x, low, high)
    n, exponent = _nearest(x)
    return scale_by_power_of_two(_exp_reduced((x - n) * _LN2) + 1.0, exponent)


def lane_expm1(x: Lane) -> Lane:
    fmt = x.format
    low, high = (-26.0, 89.0) if fmt is SINGLE else (-50.0, 710.0)
    r, exponent = _split(_clamp(x, low, high))
    # 2**n (exp(r) - 1) + (2**n - 1), with 2**n in two factors: one alone overflows too early.
    half = exponent >> 1
    rest = exponent - half
    first = ((half + fmt.bias) << fmt.mantissa).as_float()
    second = ((rest + fmt.bias) << fmt.mantissa).as_float()
    inverse = ((fmt.bias - rest) << fmt.mantissa).as_float()
    value = first.fma(_exp_reduced(r), first - inverse) * second
    return x.equals(0.0).choose(x, value)  # keeps the sign of zero


def _expm1_of_negative(x: Lane) -> Lane:
    """``exp(x) - 1`` for ``x <= 0``, with one power of two."""
    fmt = x.format
    r, exponent = _split((x < -60.0).choose(x.constant(-60.0), x))
    power = ((exponent + fmt.bias) << fmt.mantissa).as_float()
    return power.fma(_exp_reduced(r), power - 1.0)


def lane_tanh(x: Lane) -> Lane:
    size = x.abs()
    t = _expm1_of_negative(size * -2.0)
    return (-t / (t + 2.0)).copysign(x)


def lane_sigmoid(x: Lane) -> Lane:
    fmt = x.format
    bound = 105.0 if fmt is SINGLE else 746.0
    r, exponent = _split(_clamp(-x, -bound, bound))
    # 1 / (1 + p a b) as (1 / a) / (1 / a + p b), with powers of two that are finite.
    half = exponent >> 1
    rest = ((exponent - half + fmt.bias) << fmt.mantissa).as_float()
    inverse = ((fmt.bias - half) << fmt.mantissa).as_float()
    return inverse / rest.fma(_exp_reduced(r) + 1.0, inverse)


# -- logarithms ----------------------------------------------------------------------------------

_ROOT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}


def _log_split(x: Lane) -> tuple[Lane, Lane]:
    """``x = 2**k m`` with ``m`` between the square roots of 1/2 and 2: (k as a float, m).

    ``x`` is positive and finite; otherwise the results are numbers without meaning.
    """
    fmt = x.format
    tiny = x < fmt.smallest_normal
    x = tiny.choose(x * 2.0**fmt.mantissa, x)
    bits = x.bits()
    exponent = (bits - _ROOT_HALF_BITS[fmt.bits]) >> fmt.mantissa
    m = (bits - (exponent << fmt.mantissa)).as_float()
    return (exponent - tiny.choose(bits.constant(fmt.mantissa), 0)).to_float(), m


def _log_of_split(k: Lane, m: Lane, correction: Lane) -> Lane:
    """``k ln 2 + log(m) + correction``, as fdlibm adds it up: large terms last."""
    high, low = _LN2_PARTS[m.format.bits]
    f = m - 1.0
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    tail = z * z.polynomial(_LOG_TAIL[m.format.bits])
    small = s.fma(half_square + tail, k.fma(low, correction))
    return k.fma(high, f - (half_square - small))


def _log_edges(x: Lane, value: Lane) -> Lane:
    """``value`` with the logarithm's results at 0, infinity and below 0; NaN stays."""
    value = x.equals(0.0).choose(x.constant(-_INF), value)
    value = (x < 0.0).choose(x.constant(math.nan), value)
    return (x < _INF).choose(value, (x < 0.0).choose(value, x))


def lane_log(x: Lane) -> Lane:
    k, m = _log_split(x)
    return _log_edges(x, _log_of_split(k, m, x.constant(0.0)))


def _log_mantissa(m: Lane) -> Lane:
    zero = m.constant(0.0)
    return _log_of_split(zero, m, zero)


def lane_log2(x: Lane) -> Lane:
    k, m = _log_split(x)
    return _log_edges(x, _log_mantissa(m).fma(_LOG2_E, k))


# log10(2) in two parts, the first short.
_LOG10_2_PARTS = {
    32: (3.0102920532e-01, 7.9034151668e-07),
    64: (3.01029995663611771306e-01, 3.69423907715893078616e-13),
}


def lane_log10(x: Lane) -> Lane:
    k, m = _log_split(x)
    high, low = _LOG10_2_PARTS[x.format.bits]
    return _log_edges(x, k.fma(high, _log_mantissa(m).fma(0.4342944819032518, k * low)))


def lane_log1p(x: Lane) -> Lane:
    u = x + 1.0
    part = u - 1.0
    lost = (1.0 - (u - part)) + (x - part)  # Knuth: 1 + x is u + lost exactly
    k, m = _log_split(u)
    value = _log_edges(u, _log_of_split(k, m, lost / u))
    return x.equals(0.0).choose(x, value)


# -- powers --------------------------------------------------------------------------------------

# (log((1 + s) / (1 - s)) - 2 s - 2/3 s**3) / s**5 in z = s**2
_POWER_TAIL = (0.4, 0.28571428571429425, 0.2222222222162076, 0.18181818343316125,
               0.1538459412012637, 0.13334850282547114, 0.11705021567538627,
               0.11735818855512968)  # fmt: skip
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)

_Pair = tuple[Lane, Lane]


def _product(x: Lane, y: Lane) -> _Pair:
    """``x * y`` exactly, as the rounded product and its error."""
    p = x * y
    return p, x.exact_fma(y, -p)


def _sum(x: Lane, y: Lane) -> _Pair:
    """``x + y`` exactly, as the rounded sum and its error (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _log_pair(x: Lane) -> _Pair:
    """The logarithm of a positive finite f64 to about 2**-64, as a sum of two."""
    k, m = _log_split(x)
    f = m - 1.0
    d = f + 2.0
    d_low = f - (d - 2.0)
    s = f / d
    s_low = (s.exact_fma(-d, f) - s * d_low) / d
    z, z_low = _product(s, s)
    z_low = z_low + (s + s) * s_low
    w, w_low = _product(z, s)
    w_low = w_low + z.fma(s_low, z_low * s)
    p, p_low = _product(w, x.constant(_TWO_THIRDS[0]))
    p_low = p_low + w.fma(_TWO_THIRDS[1], w_low * _TWO_THIRDS[0])
    tail = z * w * z.polynomial(_POWER_TAIL)
    high, low = _LN2_PARTS[64]
    total, error = _sum(k * high, s + s)
    total, second_error = _sum(total, p)
    rest = k.fma(low, s_low + s_low + p_low + tail)
    return total, (error + second_error) + rest


def _exp_of_product(y: Lane, log: _Pair) -> Lane:
    """``exp(y * log)`` in f64."""
    high, low = log
    p, p_low = _product(y, high)
    p_low = y.fma(low, p_low)
    p_low = (p.abs() < 800.0).choose(p_low, 0.0)
    r, exponent = _split(_clamp(p, -746.0, 710.0))
    return scale_by_power_of_two(_exp_reduced(r + p_low) + 1.0, exponent)


def lane_power(x: Lane, y: Lane) -> Lane:
    size = x.abs()
    if x.format is SINGLE:
        k, m = _log_split(size.widen())
        log = _log_of_split(k, m, k.constant(0.0))
        value = lane_exp(y.widen() * log).narrow()
    else:
        value = _exp_of_product(y, _log_pair(size))
    return _power_edges(x, y, size, value)


def _power_edges(x: Lane, y: Lane, size: Lane, value: Lane) -> Lane:
    """``value = size ** y`` with C99's special cases and the sign."""
    infinite, zero, one = (x.constant(c) for c in (_INF, 0.0, 1.0))
    upward = y > 0.0
    value = size.equals(0.0).choose(upward.choose(zero, infinite), value)
    value = size.equals(_INF).choose(upward.choose(infinite, zero), value)
    grows = ~((size > 1.0) ^ upward)
    at_infinite_y = size.equals(1.0).choose(one, grows.choose(infinite, zero))
    value = y.abs().equals(_INF).choose(at_infinite_y, value)
    half = y * 0.5
    whole = y.equals(y.trunc())
    odd = whole & half.differs(half.trunc())
    value = (odd & (x.bits() < 0)).choose(-value, value)
    no_real = (x < 0.0) & (size < _INF) & ~whole
    value = (no_real | x.is_nan() | y.is_nan()).choose(x.constant(math.nan), value)
    return (y.equals(0.0) | x.equals(1.0)).choose(one, value)


def lane_logaddexp(x: Lane, y: Lane) -> Lane:
    gap = x - y
    large = (gap > 0.0).choose(x, y)
    value = large + lane_log1p(lane_exp(-gap.abs()))
    # Equal operands include two infinities, whose difference is NaN.
    value = x.equals(y).choose(x + _LN2, value)
    return (x.is_nan() | y.is_nan()).choose(x + y, value)
