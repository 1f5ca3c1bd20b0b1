"""Numbers that texts tell, in plain Python that our own frontend compiles.

In: strings that the running program has as code points. Out: what `int` and `float` give of them.
What is not plain (underscores, digits of other scripts, too many of them), Python is asked for
(text.py); what is surely no number raises what Python raises.
"""

from __future__ import annotations

from typing import Any

from pyrelay.infer.in_python import once

EXACT = 1 << 53
"""Ints up to this one are floats; so are powers of ten up to the 22nd."""


def whole_of_python(string: Any, base: Any) -> Any:
    """int(string, base); a handler asks Python."""
    return int(string, base)


def real_of_python(string: Any) -> Any:
    """float(string); a handler asks Python."""
    return float(string)


def said_of_none(kind: Any, string: Any) -> Any:
    """What Python says of a text that is no int or no float; a handler leaves it to Python."""
    try:
        kind(string)
    except ValueError as error:
        return str(error)
    raise AssertionError


def _bounds(string: Any) -> Any:
    """Where a number begins and ends, its sign left out, and whether that is a minus."""
    first, last = 0, len(string)
    while first < last and string[first] == " ":
        first += 1
    while last > first and (string[last - 1] == " " or string[last - 1] == "\n"):
        last -= 1
    negative = first < last and string[first] == "-"
    if negative or (first < last and string[first] == "+"):
        first += 1
    return first, last, negative


def whole(string: Any, base: Any) -> Any:
    """int(string, base), for a base from 2 to 36."""
    value, plain, none = _whole(string, base)
    if none:
        raise ValueError(said_of_none(int, string))
    if not plain:
        return whole_of_python(string, base)
    return value


@once
def _whole(string: Any, base: Any) -> Any:
    """What `whole` gives, whether it is plain, and whether it is surely no number."""
    first, last, negative = _bounds(string)
    letter = _prefix(base)
    if letter and last - first > 2 and string[first] == "0" and (
        ord(string[first + 1]) | 32 == letter
    ):
        first += 2
    value = 0
    plain = first < last and last - first <= _most_digits(base)
    none = base == 10 and len(string) == 0
    for k in range(first, last):
        code = ord(string[k])
        digit = _digit(code)
        if digit >= base:
            none = base == 10 and _is_sign(code) and code != 95
            plain = False
        if not plain:
            break
        value = value * base + digit
    return (-value if negative else value), plain, none


def _prefix(base: Any) -> Any:
    """The letter behind a zero in front of a number in a base, by its code point; 0 for none."""
    if base == 16:
        return 120
    return 98 if base == 2 else 111 if base == 8 else 0


def _most_digits(base: Any) -> Any:
    """How many digits surely are an int of 63 bits."""
    if base == 2:
        return 62
    return 20 if base <= 8 else 18 if base <= 10 else 15 if base <= 16 else 12


def _is_sign(code: Any) -> Any:
    """Whether a character is one of ASCII that no text has around a number."""
    return code > 32 and code < 127


def whole_of_character(code: Any, base: Any) -> Any:
    """int(character, base), for a base from 2 to 36, by its code point."""
    digit = _digit(code)
    if digit >= base:
        return whole_of_python(chr(code), base)
    return digit


def _digit(code: Any) -> Any:
    """What a code point is worth as a digit, 36 if it is none."""
    if code >= 48 and code <= 57:
        return code - 48
    if (code >= 65 and code <= 90) or (code >= 97 and code <= 122):
        return (code | 32) - 87
    return 36


def real(string: Any) -> Any:
    """float(string)."""
    size, plain, none = _real(string)
    if none:
        raise ValueError(said_of_none(float, string))
    if not plain:
        return real_of_python(string)
    return size


@once
def _real(string: Any) -> Any:
    """What `real` gives, whether it is plain, and whether it is surely no number: up to 18 digits
    are an int, which is multiplied or divided by a power of ten and rounded once."""
    first, last, negative = _bounds(string)
    if len(string) == 0 or (first < last and _begins_none(ord(string[first]))):
        return 0.0, False, True
    value, digits, power = 0, 0, 0
    plain, found, behind = True, False, False
    end = last  # of the digits; an exponent follows
    for k in range(first, last):
        code = ord(string[k])
        if code >= 48 and code <= 57 and digits < 18:
            found = True
            value = value * 10 + code - 48
            if value > 0:
                digits += 1
            if behind:
                power -= 1
        elif code == 46 and not behind:
            behind = True
        elif code | 32 == 101 and found:
            end = k
            break
        else:
            plain = False
            break
    if end < last:
        exponent, given = _exponent(string, end + 1, last)
        power += exponent
        plain = plain and given
    if not plain or not found or power < -22 or power > 22 or (value > EXACT and power < -20):
        return 0.0, False, False
    if value > EXACT and power > 0:
        return 0.0, False, False
    ten = power_of_ten(abs(power))
    if power >= 0:
        size = value * ten
    elif value <= EXACT:
        size = value / ten
    else:
        size = quotient(value, ten)
    return (-size if negative else size), True, False


def _begins_none(code: Any) -> Any:
    """Whether no number begins so, its sign left out: they do with a digit, a point, as "inf", or
    as "nan"."""
    digits = code >= 48 and code <= 57
    letters = code | 32 == 105 or code | 32 == 110
    return _is_sign(code) and not (digits or letters or code == 46)


def _exponent(string: Any, first: Any, last: Any) -> Any:
    """The int behind an `e`, and whether it is one of at most three digits."""
    negative = first < last and string[first] == "-"
    if negative or (first < last and string[first] == "+"):
        first += 1
    value = 0
    given = first < last and last - first <= 3
    for k in range(first, last):
        code = ord(string[k])
        if not given or code < 48 or code > 57:
            given = False
            break
        value = value * 10 + code - 48
    return (-value if negative else value), given


def power_of_ten(power: Any) -> Any:
    """10.0 ** power, exact up to the 22nd."""
    ten = 1.0
    for _ in range(power):
        ten *= 10.0
    return ten


def quotient(value: Any, ten: Any) -> Any:
    """An int below 10**18 by a power of ten up to the 20th, rounded to the nearest float.

    What the quotient's product leaves is exact, as ten's odd part has 47 bits. A quotient that is
    not in the middle of two floats is at least 2**-48 of their distance away from it.
    """
    high = float(value)
    low = float(value - int(high))
    near = high / ten
    product = near * ten
    return near + ((high - product) - lost(near, ten, product) + low) / ten


def lost(x: Any, y: Any, product: Any) -> Any:
    """x * y, as it is, less the float that it is rounded to.

    Dekker, A floating-point technique for extending the available precision (Numer. Math. 18,
    1971).
    """
    x_high, x_low = _halves(x)
    y_high, y_low = _halves(y)
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _halves(x: Any) -> Any:
    """A float as the sum of two of half as many bits."""
    scaled = 134217729.0 * x
    high = scaled - (scaled - x)
    return high, x - high
