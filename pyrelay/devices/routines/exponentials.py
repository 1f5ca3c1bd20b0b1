"""Exponentials, erf, logarithms and powers of floats, as expressions over ``Lane``.

In: lanes of f32 or f64; out: lanes.  Branch-free, special values as in C99 Annex F; error bounds
in ``vector_math.ERROR_BOUNDS``.  Argument reduction in the manner of Cody and Waite, *Software
Manual for the Elementary Functions* (1980); the logarithm is summed up as in Sun's fdlibm (1993);
polynomials are Chebyshev fits at 50 digits.
"""

from __future__ import annotations

import math

from pyrelay.devices.routines.lanes import SINGLE, Lane

_INF = math.inf
_LOG2_E = 1.4426950408889634
_LN2 = 0.6931471805599453

# ln 2 in two positive parts; the first has trailing zeros: its small multiples are exact.
_LN2_PARTS = {
    32: (6.9314575195e-1, 1.4286067653e-6),
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
# tanh(r) / r in r**2 on |r| <= ln(2) / 4
_TANH = {
    32: (1.0, -0.33333331516186643, 0.13332243337326238, -0.05299651905296254),
    64: (1.0, -0.3333333333333328, 0.13333333333212813, -0.053968253499597746,
         0.0218694218251623, -0.008858936173340154, 0.003463917733483273),
}  # fmt: skip
# erf(x) / x - 1 in x**2, on x up to _ERF_SMALL
_ERF_SMALL = {32: 0.93, 64: 1.0}
_ERF = {
    32: (0.12837914890025234, -0.37612487525837646, 0.11281737863595863, -0.026763396787364117,
         0.0049880207962084665, -0.0005962780285957963),
    64: (0.12837916709551256, -0.3761263890318354, 0.1128379167094491, -0.026866170643221454,
         0.005223977606976882, -0.0008548325968458515, 0.00012055294691019695,
         -1.4924732685547572e-05, 1.6447371314258486e-06, -1.6208065704722215e-07,
         1.3718218762051456e-08, -7.792387776980085e-10),
}  # fmt: skip
# log(erfc(x)) / x + 1 from there to 3.93, where erf is 1 in single precision
_LOG_ERFC = (-0.12869156977595808, -0.6349377049190295, -0.1066489612159347, 0.024160983060987334,
             -0.003847986455775106, 0.00037650302388101764, -1.681585618519212e-05)  # fmt: skip
# exp(x**2) erfc(x) in 1 / (x + 2), on x from 1 to 6, where erf is 1 in double precision
_SCALED_ERFC = (1.6244354052816742e-07, 0.5641771445218928, 1.1288206067673503, 1.9650373497966256,
                2.965071301188919, 1.1128518052088745, 12.469751253410971, -86.02581533235686,
                356.0335755254665, -1304.8941077302502, 3393.7599457843403, -5751.799294829191,
                6141.290070913369, -3802.3400597529926, 1051.480954582798)  # fmt: skip
# (log((1 + s) / (1 - s)) - 2 s) / s**3 in z = s**2, on 1 / sqrt(2) <= (1 + s) / (1 - s) <= sqrt(2)
_LOG_TAIL = (0.666666666666667, 0.3999999999989322, 0.28571428628810996, 0.22222210674238516,
             0.18182922513515942, 0.15330617306743305, 0.1463003136412286)  # fmt: skip
# (log(1 + f) - f + f**2 / 2) / f**3, on 1 / sqrt(2) <= 1 + f <= sqrt(2), for f32
_LOG_SINGLE = (0.33333331180030046, -0.24999996957950882, 0.200007157488921, -0.16667802319501254,
               0.1424905764569748, -0.12425687331451106, 0.1168541992348674, -0.11479733846637635,
               0.06971611471451178)  # fmt: skip


# -- exponentials --------------------------------------------------------------------------------


def _nearest(x: Lane, factor: float, offset: int) -> tuple[Lane, Lane]:
    """``factor * x`` rounded to a whole number: as a float n, and an integer lane whose low bits
    are those of ``n + offset``.

    Adding 1.5 * 2**mantissa leaves the whole number in the low bits of the sum, without a
    conversion that NaN would make undefined. Shifted to the left by ``mantissa``, where only as
    many of them stay as an exponent has, they are a power of two: so the offset costs nothing.
    """
    magic = 1.5 * 2.0**x.format.mantissa + offset
    shifted = x.fma(factor, magic)
    return shifted - magic, shifted.bits()


def _split(x: Lane, offset: int) -> tuple[Lane, Lane]:
    """``x = n ln 2 + r`` with ``|r| <= ln(2) / 2``: r, and ``n + offset`` in the low bits."""
    high, low = _LN2_PARTS[x.format.bits]
    n, raised = _nearest(x, _LOG2_E, offset)
    return n.fma(-low, n.fma(-high, x)), raised


def _power(raised: Lane) -> Lane:
    """``2**n`` for ``n + bias`` in the low bits."""
    return (raised << raised.format.mantissa).as_float()


def _scaled(x: Lane, raised: Lane) -> Lane:
    """``x * 2**n`` for ``n + 2 bias`` in the low bits, n up to twice the format's range.

    Two factors, so that results below the normal range are rounded once and results above it
    become infinite.
    """
    half = raised >> 1
    return x * _power(half) * _power(raised - half)


def _clamp(x: Lane, low: float, high: float) -> Lane:
    """``x`` between two bounds; NaN stays."""
    x = (x > high).choose(x.constant(high), x)
    return (x < low).choose(x.constant(low), x)


def _exp_reduced(r: Lane) -> Lane:
    """``exp(r) - 1`` for ``|r| <= ln(2) / 2``."""
    return (r * r).fma(r.polynomial(_EXP_TAIL[r.format.bits]), r)


def _exp_of_reduced(r: Lane) -> Lane:
    """``exp(r)`` for ``|r| <= ln(2) / 2``."""
    if r.format is not SINGLE:
        return _exp_reduced(r) + 1.0
    return r.horner((1.0, 1.0, *_EXP_TAIL[32]))


def lane_exp(x: Lane) -> Lane:
    low, high = (-104.0, 89.0) if x.format is SINGLE else (-746.0, 710.0)
    x = _clamp(x, low, high)
    r, raised = _split(x, 2 * x.format.bias)
    half = raised >> 1
    # Zeros are products by a zero: going below the normal range costs a hundred cycles, and masks
    # full of -inf are common. It is chosen as an integer: see `Lane.choose`.
    last = (raised - half) << x.format.mantissa
    last = x.equals(low).choose(last.constant(0), last)
    return _exp_of_reduced(r) * _power(half) * last.as_float()


def lane_exp_of_negative(x: Lane) -> Lane:
    """``exp(x)`` for ``x <= 0``, where rounding may have left it a little above; NaN for NaN. A
    quarter fewer instructions."""
    low, up = (-104.0, 64) if x.format is SINGLE else (-746.0, 512)
    vanishes = x < low
    # 2**n goes below the normal range, and 2**(n + up) does not: the last factor alone is rounded.
    r, raised = _split(vanishes.choose(x.constant(low), x), x.format.bias + up)
    power = vanishes.choose(x.constant(0.0), _power(raised))
    return _exp_of_reduced(r) * power * 2.0**-up


def lane_weight(x: Lane) -> Lane:
    """``exp(x)`` for ``x <= 0`` that is a rounded difference, 0 where it would be below the normal
    range; NaN for NaN. Half the instructions of ``lane_exp``.

    Its error is that of one rounding of x or less: so ln 2 has one part.
    """
    stays = x.at_least(-87.0 if x.format is SINGLE else -708.0)
    n, raised = _nearest(x, _LOG2_E, x.format.bias)
    r, bits = n.fma(-_LN2, x), x.format.bits
    power = r.horner((1.0, 1.0, *_EXP_TAIL[bits])) * _power(raised)
    return stays.choose(power, power.constant(0.0))


def lane_half_exp(x: Lane) -> Lane:
    """``exp(x) / 2`` for ``x >= 0``, infinite only where that is."""
    bounded = _clamp(x, 0.0, 90.0 if x.format is SINGLE else 711.0)
    r, raised = _split(bounded, 2 * x.format.bias - 1)
    return _scaled(_exp_of_reduced(r), raised)


def lane_exp2(x: Lane) -> Lane:
    low, high = (-151.0, 129.0) if x.format is SINGLE else (-1076.0, 1025.0)
    x = _clamp(x, low, high)
    n, raised = _nearest(x, 1.0, 2 * x.format.bias)
    return _scaled(_exp_of_reduced((x - n) * _LN2), raised)


def lane_expm1(x: Lane) -> Lane:
    fmt = x.format
    low, high = (-26.0, 89.0) if fmt is SINGLE else (-50.0, 710.0)
    r, raised = _split(_clamp(x, low, high), 2 * fmt.bias)
    # 2**n (exp(r) - 1) + (2**n - 1), with 2**n in two factors: one alone overflows too early.
    half = raised >> 1
    rest = raised - half
    first, second, inverse = _power(half), _power(rest), _power(2 * fmt.bias - rest)
    value = first.fma(_exp_reduced(r), first - inverse) * second
    return x.equals(0.0).choose(x, value)  # keeps the sign of zero


def lane_tanh(x: Lane) -> Lane:
    """With ``x = n ln(2) / 2 + r`` and ``w = tanh(r)``, ``exp(2 x) = 2**n (1 + w) / (1 - w)``: so
    ``(exp(2 x) - 1) / (exp(2 x) + 1)`` is one division, and exact in the signs of x."""
    fmt = x.format
    bound = 10.0 if fmt is SINGLE else 20.0
    high, low = _LN2_PARTS[fmt.bits]
    x = _clamp(x, -bound, bound)
    n, raised = _nearest(x, 2.0 * _LOG2_E, fmt.bias)
    r = n.fma(-0.5 * low, n.fma(-0.5 * high, x))
    w = r * (r * r).polynomial(_TANH[fmt.bits])
    power = _power(raised)
    lost, more = 1.0 - power, power + 1.0  # not power - 1, which would make -0 a 0
    return more.fma(w, -lost) / w.fma(-lost, more)


def lane_sigmoid(x: Lane) -> Lane:
    fmt = x.format
    bound = 105.0 if fmt is SINGLE else 746.0
    r, raised = _split(_clamp(-x, -bound, bound), 2 * fmt.bias)
    # 1 / (1 + p a b) as (1 / a) / (1 / a + p b), with powers of two that are finite.
    half = raised >> 1
    rest, inverse = _power(raised - half), _power(2 * fmt.bias - half)
    return inverse / rest.fma(_exp_of_reduced(r), inverse)


def lane_erf(x: Lane) -> Lane:
    """``x + x p(x**2)`` where x is small, else ``1 - erfc(x)``; in single precision erfc is the
    exponential of a polynomial, as in N. Juffa's erff (NVIDIA developer forums, 2016), in double
    precision that of -x**2, scaled."""
    fmt = x.format
    size = x.abs()
    small = size.fma((size * size).polynomial(_ERF[fmt.bits]), size)
    limit = 3.93 if fmt is SINGLE else 6.0
    bounded = (size > limit).choose(size.constant(limit), size)
    if fmt is SINGLE:
        scale = bounded.constant(1.0)
        exponent = bounded.fma(bounded.polynomial(_LOG_ERFC), -bounded)
    else:
        scale = (1.0 / (bounded + 2.0)).polynomial(_SCALED_ERFC)
        exponent = -(bounded * bounded)
    r, raised = _split(exponent, fmt.bias)
    power = _power(raised) * scale
    large = (-power).fma(_exp_reduced(r), 1.0 - power)
    return (size < _ERF_SMALL[fmt.bits]).choose(small, large).copysign(x)


# -- logarithms ----------------------------------------------------------------------------------

_ROOT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}


def _log_split(x: Lane) -> tuple[Lane, Lane]:
    """``x = 2**k m`` with ``m`` between the square roots of 1/2 and 2: (k as a float, m).

    ``x`` is positive and finite; otherwise the results are numbers without meaning.
    """
    fmt = x.format
    root = _ROOT_HALF_BITS[fmt.bits]
    # Below the normal range the bits are those of x * 2**mantissa, with an exponent as much lower.
    raised = (x * 2.0**fmt.mantissa).bits() - (root + (fmt.mantissa << fmt.mantissa))
    above = (x < fmt.smallest_normal).choose(raised, x.bits() - root)
    exponent = above >> fmt.mantissa
    return exponent.to_float(), (above - (exponent << fmt.mantissa) + root).as_float()


def _log_rest(f: Lane) -> Lane:
    """``log(1 + f) - f`` of an f32: without a division, which takes as long as ten products."""
    value = f.horner((-0.5, *_LOG_SINGLE))
    return f * f * value


def _log_of_split(k: Lane, m: Lane, correction: Lane) -> Lane:
    """``k ln 2 + log(m) + correction``, large terms last (in f64 as fdlibm adds it up)."""
    high, low = _LN2_PARTS[m.format.bits]
    f = m - 1.0
    if m.format is SINGLE:
        return k.fma(high, f + (_log_rest(f) + k.fma(low, correction)))
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    tail = z * z.polynomial(_LOG_TAIL)
    small = s.fma(half_square + tail, k.fma(low, correction))
    return k.fma(high, f - (half_square - small))


def _log_edges(x: Lane, value: Lane) -> Lane:
    """``value`` with the logarithm's results at 0, infinity and below 0; NaN stays."""
    value = x.equals(0.0).choose(x.constant(-_INF), value)
    value = (x < 0.0).choose(x.constant(math.nan), value)
    return (x < _INF).choose(value, x)


def lane_log(x: Lane) -> Lane:
    k, m = _log_split(x)
    return _log_edges(x, _log_of_split(k, m, x.constant(0.0)))


def _log_mantissa(m: Lane) -> Lane:
    zero = m.constant(0.0)
    return _log_of_split(zero, m, zero)


_Parts = tuple[float, float]


def _log_by(m: Lane, unit: _Parts, correction: Lane) -> Lane:
    """``log(m) * unit + correction`` of an f32, ``unit`` in two parts: m's own bits are
    multiplied by both, what is small beside them by one."""
    high, low = unit
    f = m - 1.0
    return f.fma(high, _log_rest(f).fma(high, f.fma(low, correction)))


def lane_log2(x: Lane) -> Lane:
    k, m = _log_split(x)
    if x.format is SINGLE:
        return _log_edges(x, k + _log_by(m, _LOG2_E_PARTS, x.constant(0.0)))
    return _log_edges(x, _log_mantissa(m).fma(_LOG2_E, k))


_LOG2_E_PARTS = (1.4426950216293335, 1.9259629911e-08)  # of which the first is an f32
_LOG10_E_PARTS = (0.4342944920063019, -1.0103049952192e-08)
# log10(2) in two parts, the first short.
_LOG10_2_PARTS = {
    32: (3.0102920532e-01, 7.9034151668e-07),
    64: (3.01029995663611771306e-01, 3.69423907715893078616e-13),
}


def lane_log10(x: Lane) -> Lane:
    k, m = _log_split(x)
    high, low = _LOG10_2_PARTS[x.format.bits]
    if x.format is SINGLE:
        return _log_edges(x, k.fma(high, _log_by(m, _LOG10_E_PARTS, k * low)))
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
# log2((1 + s) / (1 - s)) / s in z, for powers of f32
_LOG2_SHORT = (2.885390081789987, 0.9617966734515485, 0.5770835660048659, 0.41167376623771057,
               0.3407120415619086)  # fmt: skip
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
    inverse = 1.0 / d
    s = f * inverse
    s_low = (s.exact_fma(-d, f) - s * d_low) * inverse
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
    r, raised = _split(_clamp(p, -746.0, 710.0), 2 * p.format.bias)
    return _scaled(_exp_of_reduced(r + p_low), raised)


def lane_power(x: Lane, y: Lane) -> Lane:
    if x.format is SINGLE:
        return _single_power(x, y)
    size = x.abs()
    return _power_edges(x, y, size, _exp_of_product(y, _log_pair(size)))


def _log2_in_double(size: Lane) -> Lane:
    """The logarithm of an f32 that is not negative in base 2, in f64, to about 2**-37."""
    k, m = _log_split(size)
    # Infinities come by way of k: they and NaN make of `y * log` what a power is.
    k = (size < _INF).choose(k, size)
    k = size.equals(0.0).choose(k.constant(-_INF), k)
    f = m - 1.0
    inverse = (1.0 / (f + 2.0)).widen()  # one step of Newton's makes a quotient in f64 of it
    f = f.widen()
    s = f * inverse
    s = s.exact_fma(-(f + 2.0), f).fma(inverse, s)
    return s.fma((s * s).polynomial(_LOG2_SHORT), k.widen())


def _single_power(x: Lane, y: Lane) -> Lane:
    """The power of f32, by way of f64 only where an f32 has too few bits."""
    largest, size = 3e38, x.abs()
    bounded = _clamp(y, -largest, largest)  # 1 to the power of infinity is no NaN
    p = _clamp(bounded.widen() * _log2_in_double(size), -152.0, 130.0)
    magic = 1.5 * 2.0**52 + 2 * x.format.bias
    shifted = p + magic
    r = ((p - (shifted - magic)) * _LN2).narrow()
    value = _scaled(_exp_of_reduced(r), shifted.bits().shortened())
    half = y * 0.5
    whole = y.equals(y.trunc())
    odd = whole & half.differs(half.trunc())
    sign = odd.choose(x.bits() & -(2**31), 0)
    value = (value.bits() ^ sign).as_float()
    no_real = (x < 0.0) & (size < _INF) & ~whole
    value = no_real.choose(x.constant(math.nan), value)
    return (y.equals(0.0) | x.equals(1.0)).choose(x.constant(1.0), value)


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
