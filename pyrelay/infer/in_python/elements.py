"""NumPy functions of single elements, comparisons and selections, in plain Python.

In and out: what the NumPy function of the same name takes and gives, for the arguments listed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any

__all__ = [
    "allclose", "angle", "array_equal", "array_equiv", "bitwise_count", "choose", "deg2rad",
    "degrees", "divmod", "fabs", "fix", "float_power", "fmod", "frexp", "gcd", "heaviside",
    "isclose", "iscomplex", "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj", "lcm",
    "ldexp", "logaddexp2", "modf", "nan_to_num", "piecewise", "rad2deg", "radians", "select",
    "signbit", "sinc",
]


# -- numbers ---------------------------------------------------------------------------------------


def fabs(x: Array) -> Array:
    """The absolute value, as a float."""
    a = np.asarray(x)
    return np.absolute(a if a.dtype.kind == "f" else a.astype(np.float64))


def float_power(x1: Array, x2: Array) -> Array:
    """A power in double precision at least."""
    return np.power(_double(np.asarray(x1)), _double(np.asarray(x2)))


def _double(a: Array) -> Array:
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def heaviside(x1: Array, x2: Array) -> Array:
    """0 for negative numbers, 1 for positive ones, x2 for 0."""
    return np.where(np.isnan(x1), np.nan, np.where(x1 == 0, x2, np.where(x1 < 0, 0.0, 1.0)))[()]


def nan_to_num(
    x: Array, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    """NaN and infinities replaced by numbers."""
    a = np.asarray(x)
    if a.dtype.kind not in "fc":
        return a.copy()[()]
    if a.dtype.kind == "c":
        imaginary = _numbers(a.imag, nan, posinf, neginf)
        fixed = _numbers(a.real, nan, posinf, neginf) + imaginary * 1j
    else:
        fixed = _numbers(a, nan, posinf, neginf)
    if copy:
        return fixed[()]
    x[...] = fixed
    return x


def _numbers(a: Array, nan: float, posinf: Any, neginf: Any) -> Array:
    limits = np.finfo(a.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    finite = np.where(a == np.inf, high, np.where(a == -np.inf, low, a))
    return np.where(np.isnan(a), nan, finite).astype(a.dtype)


def fix(x: Array) -> Array:
    """Rounded towards zero."""
    return np.trunc(x)


def fmod(x1: Array, x2: Array) -> Array:
    """The remainder with the sign of the dividend."""
    a, b = np.asarray(x1), np.asarray(x2)
    if a.dtype.kind in "iu":  # the magnitude of the least integer is not one of its type
        rest = a % b
        return np.where((rest != 0) & ((a < 0) != (b < 0)), rest - b, rest)[()]
    r = np.abs(x1) % np.abs(x2)
    return np.where(np.signbit(x1), -r, r)[()]


def divmod(x1: Array, x2: Array) -> Any:
    """Floor division and its remainder."""
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


def modf(x: Array) -> Any:
    """The fractional and the whole part, both with the sign of x."""
    a = np.asarray(x) * 1.0
    whole = np.trunc(a)
    part = np.where(np.isinf(a), 0.0, a - whole)
    return np.where(part == 0, np.copysign(0.0, a), part)[()], whole


def ldexp(x1: Array, x2: Array) -> Array:
    """x1 * 2**x2, in three factors so that none overflows before the product does."""
    a, exponent = _own_bits(np.asarray(x1) * 1.0), np.clip(np.asarray(x2), -2400, 2400)
    third = exponent // 3
    power = _power_of_two(a, third)
    return (a * power * power * _power_of_two(a, exponent - 2 * third)).astype(
        (np.asarray(x1) * 1.0).dtype
    )


def frexp(x: Array) -> Any:
    """Mantissas of magnitude in [0.5, 1) and the exponents of 2, out of the bits (IEEE 754)."""
    given = np.asarray(x) * 1.0
    a = _own_bits(given)
    digits, bias = (23, 127) if a.dtype == np.float32 else (52, 1023)
    regular = np.isfinite(a) & (a != 0)
    small, large = np.abs(a) < 2.0 ** (2 - bias), np.abs(a) >= 2.0 ** (bias - 1)
    # neither has a power of 2 that it is to be multiplied by: they are scaled first
    scaled = np.where(small, a * 2.0**64, np.where(large, a * 2.0**-64, a))
    field = ((_bits(scaled) >> digits) & (2 * bias + 1)).astype(np.int32)
    raised = np.where(small, bias + 63, np.where(large, bias - 65, bias - 1)).astype(np.int32)
    exponent = np.where(regular, field - raised, np.int32(0))
    mantissa = np.where(regular, scaled * _power_of_two(a, bias - 1 - field), a)
    return mantissa.astype(given.dtype)[()], exponent[()]


def _own_bits(a: Array) -> Array:
    """Floats whose bits can be taken: those of 16 bits in single precision."""
    return a.astype(np.float32) if a.dtype.itemsize == 2 else a


def _bits(a: Array) -> Array:
    """The bits of floats as integers of as many."""
    return a.view(np.int32 if a.dtype == np.float32 else np.int64)


def _power_of_two(like: Array, exponent: Array) -> Array:
    """Powers of 2 in the type of other floats, put together from bits; none beyond its exponents.
    """
    if like.dtype == np.float32:
        return ((np.clip(exponent, -126, 127).astype(np.int32) + 127) << 23).view(np.float32)
    return ((np.asarray(exponent).astype(np.int64) + 1023) << 52).view(np.float64)


def next_half(x1: Array, x2: Array) -> Array:
    """np.nextafter of floats of 16 bits, in single precision: a unit in the last place further."""
    a, b = np.asarray(x1).astype(np.float32), np.asarray(x2).astype(np.float32)
    _, exponent = frexp(a)
    exponent = np.where((a == 0) | (exponent < -13), -13, exponent)
    unit = np.ldexp(np.float32(1.0), exponent - 11)
    inwards = (a < b) != (a > 0)
    halved = inwards & (np.abs(a) == unit * np.float32(1024.0)) & (exponent > -13)
    unit = np.where(np.isinf(a), np.float32(32.0), np.where(halved, unit / 2, unit))
    start = np.where(np.isinf(a), np.copysign(np.float32(65536.0), a), a)
    beside = np.where(a < b, start + unit, start - unit)
    beside = np.where(beside == 0, np.copysign(beside, a), beside)
    found = np.where(np.isnan(a) | np.isnan(b), a + b, np.where(a == b, a, beside))
    return found.astype(np.float16)[()]


def spacing(x: Array) -> Array:
    """The distance to the next float away from 0, with the sign of x."""
    a = np.asarray(x)
    if a.dtype == np.float16:  # of halves NumPy gives it upwards, without a sign
        return next_half(a, np.float16(np.inf)) - a
    if a.dtype.itemsize == 2:
        return np.nextafter(a, np.copysign(np.asarray(math.inf).astype(a.dtype), a)) - a
    bits = _bits(np.abs(a))
    gap = (bits + 1).view(a.dtype) - bits.view(a.dtype)
    return np.where(a < 0, -gap, gap)[()]


def signbit(x: Array) -> Array:
    """Which elements have a sign bit (-0.0 has)."""
    return np.copysign(1.0, x) < 0


def logaddexp2(x1: Array, x2: Array) -> Array:
    """log2(2**x1 + 2**x2) without overflow; halves are computed in single precision."""
    scale = math.log(2.0)
    a, b = np.asarray(x1), np.asarray(x2)
    kind = np.result_type(a.dtype, b.dtype)
    if kind.itemsize == 2:
        a, b = a.astype(np.float32), b.astype(np.float32)
    found = np.logaddexp(a * scale, b * scale) / scale
    return found.astype(kind)


def sinc(x: Array) -> Array:
    """sin(pi x) / (pi x), 1 at 0."""
    a = np.asarray(x) * 1.0
    zero = a == 0
    y = math.pi * np.where(zero, 1.0, a)
    # The series keeps derivatives of any order right at 0, which the quotient would not.
    series = 1.0 - (math.pi * a) ** 2 / 6.0 + (math.pi * a) ** 4 / 120.0
    return np.where(zero, series, np.sin(y) / y)[()]


def degrees(x: Array) -> Array:
    """Radians as degrees."""
    return _by_factor(np.asarray(x), 180.0, math.pi)


def radians(x: Array) -> Array:
    """Degrees as radians."""
    return _by_factor(np.asarray(x), math.pi, 180.0)


def _by_factor(x: Array, over: float, under: float) -> Array:
    """The numbers times a quotient, which is one of their type; of float16 in float32, as NumPy."""
    if x.dtype == np.float64:
        return x * (over / under)
    factor = np.float32(over) / np.float32(under)
    return (x.astype(np.float32) * factor).astype(x.dtype)


rad2deg, deg2rad = degrees, radians


def gcd(x1: Array, x2: Array) -> Array:
    """Greatest common divisors by Euclid's algorithm (Knuth, volume 2, section 4.5.2)."""
    a, b = np.abs(x1) + 0 * np.abs(x2), np.abs(x2) + 0 * np.abs(x1)
    if a.ndim > 0 and _are_exact(a, b):
        return _gcd_of_floats(a, b).astype(a.dtype)
    while np.any(b != 0):
        running = b != 0
        rest = a % np.where(running, b, 1)
        a, b = np.where(running, b, a)[()], np.where(running, rest, 0)[()]
    return np.abs(a)  # the least int of a dtype is its own magnitude, and rests have its sign


def _are_exact(a: Array, b: Array) -> Any:
    """Whether what these numbers are divided by each other is exact in float64."""
    return np.all((a >= 0) & (a < 2**53) & (b >= 0) & (b < 2**53))


def _gcd_of_floats(a: Array, b: Array) -> Array:
    """The same of such numbers: CPUs divide vectors of floats, and none of integers."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    while np.any(b != 0):
        running = b != 0
        rest = a - np.trunc(a / np.where(running, b, 1.0)) * b
        a, b = np.where(running, b, a), np.where(running, rest, 0.0)
    return a


def lcm(x1: Array, x2: Array) -> Array:
    """Least common multiples."""
    divisor = gcd(x1, x2)
    return np.abs(x1) // np.where(divisor == 0, 1, divisor) * np.abs(x2)


def bitwise_count(x: Array) -> Array:
    """How many bits of the magnitude are set (Knuth, volume 4A, section 7.1.3)."""
    a = np.asarray(x)
    v: Array = (a if a.dtype.kind in "bu" else np.abs(a.astype(np.int64))).astype(np.uint64)
    v = v - ((v >> 1) & 0x5555555555555555)
    v = (v & 0x3333333333333333) + ((v >> 2) & 0x3333333333333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((v * 0x0101010101010101) >> 56).astype(np.uint8)


# -- complex numbers -------------------------------------------------------------------------------


def angle(z: Array, deg: bool = False) -> Array:
    """The argument of complex numbers."""
    parts = np.asarray(z)
    found = np.arctan2(np.imag(parts) if parts.dtype.kind == "c" else 0, np.real(parts))
    return found * (180.0 / math.pi) if deg else found


def isreal(x: Array) -> Array:
    """Which elements have no imaginary part."""
    return np.imag(x) == 0


def iscomplex(x: Array) -> Array:
    """Which elements have an imaginary part."""
    return np.not_equal(np.imag(x), 0)


def isrealobj(x: Array) -> bool:
    """True if the element type is not complex."""
    return np.asarray(x).dtype.kind != "c"


def iscomplexobj(x: Array) -> bool:
    """True if the element type is complex."""
    return np.asarray(x).dtype.kind == "c"


# -- comparisons -----------------------------------------------------------------------------------


def isposinf(x: Array) -> Array:
    """Which elements are +inf."""
    _refuse_complex(np.asarray(x).dtype)
    return np.equal(x, math.inf)


def isneginf(x: Array) -> Array:
    """Which elements are -inf."""
    _refuse_complex(np.asarray(x).dtype)
    return np.equal(x, -math.inf)


def _refuse_complex(dtype: Any) -> None:
    if dtype.kind == "c":
        raise TypeError(
            f"This operation is not supported for {dtype} values because it would be ambiguous."
        )


def isclose(
    a: Array, b: Array, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Array:
    """|a - b| <= atol + rtol |b| for finite b, else equality."""
    x, y = np.asarray(a), np.asarray(b)
    if y.dtype.kind in "biu":  # whose differences may not be numbers of their type
        y = y.astype(np.float64)
    near = (np.abs(x - y) <= atol + rtol * np.abs(y)) & np.isfinite(y) | (x == y)
    if equal_nan:
        near = near | (np.isnan(x) & np.isnan(y))
    return near


def allclose(
    a: Array, b: Array, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> bool:
    """True if all elements are close."""
    return bool(np.all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Array, a2: Array, equal_nan: bool = False) -> bool:
    """True for arrays of one shape and equal elements."""
    x, y = np.asarray(a1), np.asarray(a2)
    if x.shape != y.shape:
        return False
    same = x == y
    if equal_nan:
        same = same | (np.isnan(x) & np.isnan(y))
    return bool(np.all(same))


def array_equiv(a1: Array, a2: Array) -> bool:
    """True for arrays that broadcast to equal ones."""
    x, y = np.asarray(a1), np.asarray(a2)
    for n, m in list(zip(reversed(x.shape), reversed(y.shape), strict=False)):
        if n not in (1, m) and m != 1:
            return False
    return bool(np.all(x == y))


# -- selection -------------------------------------------------------------------------------------


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    """The first choice whose condition holds."""
    choices = list(choicelist)
    if len(condlist) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    if not choices:
        raise ValueError("select with an empty condition list is not possible")
    dtype = np.result_type(*choices, default)
    result = np.asarray(default).astype(dtype)
    for condition, choice in reversed(list(zip(list(condlist), choices, strict=True))):
        result = np.where(condition, np.asarray(choice).astype(dtype), result)
    return result


def choose(a: Array, choices: Any, mode: str = "raise") -> Array:
    """For each index the element of that choice."""
    options = list(choices)
    index = np.asarray(a)
    if mode == "wrap":
        index = index % len(options)
    elif mode == "clip":
        index = np.clip(index, 0, len(options) - 1)
    elif np.any((index < 0) | (index >= len(options))):
        raise ValueError("invalid entry in choice array")
    result = options[0]
    for k, option in list(enumerate(options))[1:]:
        result = np.where(index == k, option, result)
    return np.where(index == 0, options[0], result)


def piecewise(x: Array, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Array:
    """Each function's value where its condition holds; one function more is the default."""
    points = np.asarray(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    masks = [np.asarray(c) for c in conditions]
    functions = list(funclist)
    if len(functions) == len(masks) + 1:
        rest = np.ones(points.shape, dtype=bool)
        for mask in masks:
            rest = rest & ~mask
        masks = [*masks, rest]
    elif len(functions) != len(masks):
        raise ValueError("piecewise needs one function for each condition, or one more")
    flat = points.reshape(-1)
    result = np.zeros(flat.shape, dtype=points.dtype)
    for mask, function in list(zip(masks, functions, strict=True)):
        chosen = np.broadcast_to(mask, points.shape).reshape(-1)
        if callable(function):
            result[chosen] = function(flat[chosen], *args, **kw)
        else:
            result[chosen] = function
    return result.reshape(points.shape)
