"""Functions of Python's `math`, in plain Python.

In and out: what the function of the same name takes and gives: Python numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.ops.python_numbers import words
from pyrelay.python_sums import rounding_error

__all__ = [
    "comb", "degrees", "dist", "factorial", "fmod", "frexp", "fsum", "gcd", "isclose", "isqrt",
    "lcm", "ldexp", "modf", "perm", "radians", "remainder", "sumprod", "ulp",
]

_BY_ZERO = words(lambda: divmod(1.0, 0.0))


def divided(x: float, y: float) -> Any:
    """divmod(x, y), of which one is a float."""
    if y == 0:
        raise ZeroDivisionError(_BY_ZERO)
    return x // y, x % y


# -- rounding --------------------------------------------------------------------------------------


def rounded(x: float, digits: int) -> float:
    """round(x, digits): the float next to the decimal that is next to x, half to even.

    The product with a power of ten may be rounded across the half; what it lost is found as by
    Dekker, "A floating-point technique for extending the available precision" (1971).
    """
    if digits < 0:
        if math.isnan(x) or math.isinf(x):
            return x
        if digits < -308:
            return 0.0 * x
        whole = 10.0 ** -digits
        near = round(x / whole)
        over = x - near * whole
        if over > 0.5 * whole:
            near += 1
        elif over < -0.5 * whole:
            near -= 1
        return math.copysign(near * whole, x)
    if digits > 323:  # a float has no more
        return x
    if digits > 308:  # whatever has such digits has few
        product = x * 1e300 * 10.0 ** (digits - 300)
        whole_number = abs(product) < 4503599627370496.0
        return round(product) / 10.0 ** (digits - 300) / 1e300 if whole_number else x
    scale = 10.0**digits
    product = x * scale
    if not abs(product) < 4503599627370496.0:  # 2**52: no digits there
        return x
    near = math.floor(product + 0.5)
    if near - product == 0.5 and near % 2:
        near -= 1
    big, small = _halves(x)
    high, low = _halves(scale)
    lost = ((big * high - product) + big * low + small * high) + small * low
    over = product - near
    if over + lost > 0.5 or (over == 0.5 and lost > 0):
        near += 1
    elif over + lost < -0.5 or (over == -0.5 and lost < 0):
        near -= 1
    return math.copysign(near / scale, x)


def _halves(x: float) -> tuple[float, float]:
    """Two floats of half the digits, whose sum is x (Veltkamp)."""
    wide = x * 134217729.0
    big = wide - (wide - x)
    return big, x - big


def rounded_int(n: int, unit: int) -> int:
    """The multiple of the unit next to n, half to even."""
    quotient, rest = divmod(n, unit)
    if 2 * rest > unit or (2 * rest == unit and quotient % 2):
        quotient += 1
    return quotient * unit


def rounded_far(n: int) -> int:
    """The multiple of 10**19 next to n, which has 64 bits: another one than 0 has more."""
    if -5 * 10**18 <= n <= 5 * 10**18:
        return 0
    return n // abs(n) * 10**18 * 10


# -- whole numbers ---------------------------------------------------------------------------------


def gcd(*integers: Any) -> int:
    """The greatest common divisor (Euclid; Knuth, volume 2, section 4.5.2)."""
    found = 0
    for number in integers:
        if not isinstance(number, (int, np.integer)):
            kind = type(number).__name__
            raise TypeError(f"'{kind}' object cannot be interpreted as an integer")
        found = _gcd(found, int(number))
    return found


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return abs(a)


def lcm(*integers: int) -> int:
    """The least common multiple."""
    found = 1
    for number in integers:
        found = abs(found // _gcd(found, number) * number) if found and number else 0
    return found


def factorial(n: int) -> int:
    """n!"""
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    result = 1
    for k in range(2, n + 1):
        result *= k
    return result


def comb(n: int, k: int) -> int:
    """Binomial coefficients."""
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")
    result = 1 if k <= n else 0
    for i in range(min(k, n - k)):
        result = result * (n - i) // (i + 1)
    return result


def perm(n: int, k: Any = None) -> int:
    """Ordered choices of k among n."""
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    count = n if k is None else k
    if count < 0:
        raise ValueError("k must be a non-negative integer")
    result = 1 if count <= n else 0
    for i in range(min(count, n)):
        result = result * (n - i)
    return result


def isqrt(n: Any) -> int:
    """The floor of the square root, by Newton's method."""
    if not isinstance(n, (int, np.integer)):
        kind = type(n).__name__
        raise TypeError(f"'{kind}' object cannot be interpreted as an integer")
    x = int(n)
    if x < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    return _isqrt(x)


def _isqrt(n: int) -> int:
    x = n
    y = x // 2 + x % 2
    while y < x:
        x = y
        y = (x + n // x) // 2
    return x


# -- parts of floats -------------------------------------------------------------------------------


def fmod(x: float, y: float) -> float:
    """The remainder with the sign of x."""
    if math.isnan(x) or math.isnan(y):
        return float(x) + float(y)
    if math.isinf(x) or y == 0:
        raise ValueError("math domain error")
    return math.copysign(abs(x) % abs(float(y)), x)


def remainder(x: float, y: float) -> float:
    """x minus the multiple of y that is nearest to it, the even one of two (IEEE 754)."""
    if math.isnan(x) or math.isnan(y):
        return float(x) + float(y)
    if math.isinf(x) or y == 0:
        raise ValueError("math domain error")
    size, unit = abs(float(x)), abs(float(y))
    if math.isinf(unit):
        return float(x)
    low = size % unit
    high = unit - low
    if low < high:
        found = low
    elif low > high:
        found = -high
    else:
        found = low - 2.0 * ((0.5 * (size - low)) % unit)
    return math.copysign(found, x) if found == 0.0 else -found if x < 0 else found


def modf(x: float) -> Any:
    """The fractional and the whole part."""
    value = float(x)
    if math.isinf(value):
        return math.copysign(0.0, value), value
    part = abs(value) % 1.0
    whole = abs(value) - part
    return math.copysign(part, value), math.copysign(whole, value)


def frexp(x: float) -> Any:
    """Mantissa of magnitude in [0.5, 1) and exponent of 2."""
    mantissa, exponent = np.frexp(np.float64(x))
    return float(mantissa), int(exponent)


def ldexp(x: float, i: int) -> float:
    """x * 2**i; OverflowError if that is no finite float."""
    value = float(x)
    left = i
    while left > 0 and abs(value) < math.inf and value != 0.0:
        step = min(left, 1000)
        value *= 2.0**step
        left -= step
    while left < 0 and value != 0.0:
        step = min(-left, 1000)
        value *= 2.0**-step
        left += step
    if math.isinf(value) and not math.isinf(x):
        raise OverflowError("math range error")
    return value


def degrees(x: float) -> float:
    """Radians as degrees."""
    return x * (180.0 / math.pi)


def radians(x: float) -> float:
    """Degrees as radians."""
    return x * (math.pi / 180.0)


def ulp(x: float) -> float:
    """The value of the last bit."""
    size = abs(float(x))
    if math.isinf(size):
        return size
    following = math.nextafter(size, math.inf)
    return size - math.nextafter(size, 0.0) if math.isinf(following) else following - size


# -- sums and comparisons --------------------------------------------------------------------------


def fsum(seq: Any) -> float:
    """The sum as if in three times the precision (Ogita, Rump and Oishi, "Accurate sum and dot
    product", 2005, algorithm 4.8 with K = 3)."""
    total, error, rest = 0.0, 0.0, 0.0
    special, infinite = 0.0, 0.0  # sums of what is not finite, as CPython keeps them
    for item in seq:
        value = float(item)
        if not math.isfinite(value):
            special += value
            infinite += value if math.isinf(value) else 0.0
        elif not math.isfinite(total + value):
            raise OverflowError("intermediate overflow in fsum")
        else:
            total, lost = _two_sum(total, value)
            error, more = _two_sum(error, lost)
            rest += more
    if special != 0.0:
        if math.isnan(infinite):
            raise ValueError("-inf + inf in fsum")
        return special
    return total + (error + rest)


def _two_sum(a: float, b: float) -> Any:
    """The rounded sum and its error."""
    return a + b, rounding_error(a, b)


def sumprod(p: Any, q: Any) -> Any:
    """The sum of products of two sequences of one length, of Python's floats as if in three times
    the precision (Ogita, Rump and Oishi, "Accurate sum and dot product", 2005, algorithm 5.10)."""
    if len(p) != len(q):
        raise ValueError("Inputs are not the same length")
    total, high, low, tiny = 0, 0.0, 0.0, 0.0
    floats, rounded_sum = False, 0.0
    for a, b in zip(p, q):  # noqa: B905
        if (type(a) is float or type(b) is float) and _is_plain(a) and _is_plain(b):
            x, y = float(a), float(b)
            floats = True
            rounded_sum += x * y
            high, lost = _two_sum(high, x * y)
            low, more = _two_sum(low, _product_error(x, y))
            low, rest = _two_sum(low, lost)
            tiny += more + rest
        else:
            total = total + a * b
    if not floats:
        return total
    last, error = _two_sum(low, high)
    exact = tiny + error + last
    return total + (exact if math.isfinite(exact) else rounded_sum)


def _is_plain(x: Any) -> bool:
    return type(x) is float or type(x) is int


def _product_error(x: float, y: float) -> float:
    """What x * y loses by rounding (Dekker, as above)."""
    a, b = 134217729.0 * x, 134217729.0 * y
    a, b = a - (a - x), b - (b - y)
    c, d = x - a, y - b
    return ((a * b - x * y) + a * d + c * b) + c * d


def dist(p: Any, q: Any) -> float:
    """The distance of two points."""
    return hypot(*[float(a) - float(b) for a, b in zip(p, q, strict=True)])


def hypot(*coordinates: float) -> float:
    """The length of a vector, scaled so that no square overflows."""
    sizes = [abs(float(c)) for c in coordinates]
    top = 0.0
    for size in sizes:
        if math.isinf(size):
            return math.inf
        top = max(top, size)
    if top == 0.0:
        return float(sum(sizes))  # 0, or nan
    total = 0.0
    for size in sizes:
        total += (size / top) * (size / top)
    return top * math.sqrt(total)


def isclose(a: float, b: float, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    """Equal, or within the tolerances and both finite."""
    if rel_tol < 0 or abs_tol < 0:
        raise ValueError("tolerances must be non-negative")
    if a == b:
        return True
    if math.isinf(a) or math.isinf(b):
        return False
    return abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)


def power_modulo(base: Any, exp: Any, mod: Any) -> Any:
    """pow(base, exp, mod): Knuth, The Art of Computer Programming 2, 4.6.3, algorithm A."""
    if mod == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    factor, left = base % mod, exp
    if exp < 0:
        factor, left = _inverse(factor, mod), -exp
    result = 1 % mod
    while left > 0:
        if left & 1:
            result = result * factor % mod
        left >>= 1
        if left > 0:
            factor = factor * factor % mod
    return result


def _inverse(number: Any, mod: Any) -> Any:
    """The number that gives 1 modulo `mod` when multiplied, by Euclid's extended algorithm."""
    old, new = number % mod, mod
    found, following = 1, 0
    while new != 0:
        quotient = old // new
        old, new = new, old - quotient * new
        found, following = following, found - quotient * following
    if abs(old) != 1:
        raise ValueError("base is not invertible for the given modulus")
    return found * old % mod


def bit_length(number: int) -> int:
    """int.bit_length(): the digits of the binary number without its sign."""
    left, count = abs(int(number)), 0
    while left > 0:
        left >>= 1
        count += 1
    return count


def bit_count(number: int) -> int:
    """int.bit_count(): the ones among the binary digits (Wegner 1960)."""
    left, count = abs(int(number)), 0
    while left > 0:
        left &= left - 1
        count += 1
    return count
