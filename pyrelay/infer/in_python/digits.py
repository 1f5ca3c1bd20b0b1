"""The digits of numbers as code points, in plain Python that our own frontend compiles.

In: numbers of the running program. Out: what `str`, `format` and their like write of them. What is
not plain (floats beyond 16 digits before or 4 zeros behind the point, infinities), Python is asked
for (open_sequences.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.infer.in_python import once
from pyrelay.infer.in_python.numbers_in_texts import EXACT, lost, power_of_ten, quotient

FORM = ("base", "letters", "prefix", "width", "zeros", "plus", "group")
MOST_PLACES = 22
"""Behind the point: powers of ten are floats up to this one."""
MOST_DIGITS = 15
"""Behind the first one, of floats with a power of ten."""


def digits_of(
    number: Any, base: Any, letters: Any, prefix: Any, width: Any, zeros: Any, plus: Any, group: Any
) -> Any:
    """The code points of an int in a base, of which the digits from 10 on are from `letters` on,
    in groups of three if there is a character between them, behind a prefix, with a sign if it is
    negative or if `plus` says so, and with spaces or zeros in front up to a width."""
    codes = np.full(max(width, (66 if base == 2 else 32) + len(prefix)), 32)
    end = len(codes)
    if number < 0:
        last = (base - number % base) % base
        left = -((number + last) // base)  # the least int has no opposite
    else:
        last, left = number % base, number // base
    at = end - 1
    codes[at] = _digit(last, letters)
    while left > 0:
        if group and (end - at) % 4 == 3:
            at -= 1
            codes[at] = ord(group)
        at -= 1
        codes[at] = _digit(left % base, letters)
        left = left // base
    if zeros:
        while end - at + len(prefix) + (number < 0 or plus) < width:
            at -= 1
            codes[at] = 48
    for character in reversed(prefix):
        at -= 1
        codes[at] = ord(character)
    if number < 0 or plus:
        at -= 1
        codes[at] = 45 if number < 0 else 43
    return codes[min(at, end - width):]


def _digit(value: Any, letters: Any) -> Any:
    """The code point of a digit."""
    code = int(value)
    return 48 + code if letters == 0 or code < 10 else letters - 10 + code


def shown_by_python(x: Any, spec: Any) -> Any:
    """The code points of format(x, spec); a handler asks Python."""
    return np.array(list(map(ord, format(x, spec))))


def _signed(codes: Any, at: Any, x: Any, width: Any, zeros: Any, plus: Any) -> Any:
    """Where a float's digits begin with zeros in front, up to a width, and its sign."""
    negative = math.copysign(1.0, x) < 0.0
    if zeros:
        while len(codes) - at + (negative or plus) < width:
            at -= 1
            codes[at] = 48
    if negative or plus:
        at -= 1
        codes[at] = 45 if negative else 43
    return at


def fixed(
    x: Any, places: Any, width: Any, zeros: Any, plus: Any, group: Any, percent: Any, spec: Any
) -> Any:
    """The code points of a float with so many places behind the point, those before it in groups as
    an int's, with spaces or zeros in front up to a width, a sign if it is negative or if `plus`
    says so, and as so many per cent if `percent` does; `spec` says the same."""
    size, ten = abs(x) * 100.0 if percent else abs(x), 10.0 ** places
    if not size * ten < EXACT:
        return shown_by_python(x, spec)
    codes = np.full(max(width, places + 28), 32)
    end = len(codes)
    if percent:
        codes[end - 1] = 37
    at = _written(codes, end - int(percent), _scaled(size, ten), places, group)
    at = _signed(codes, at, x, width, zeros, plus)
    return codes[min(at, end - width):]


def scientific(
    x: Any, places: Any, width: Any, zeros: Any, plus: Any, e: Any, general: Any, spec: Any
) -> Any:
    """The code points of a float with one digit before the point, so many behind it, and a power of
    ten behind the letter `e`; or, if `general` says so, of as many digits without the zeros at
    their end, and without a power from -4 on up to as many as there are digits. Spaces, zeros,
    signs and `spec` as of `fixed`."""
    number, power = _leading(abs(x), places)
    if number < 0:
        return shown_by_python(x, spec)
    plain = general and power >= -4 and power <= places
    if general:
        while places > 0 and number % 10 == 0:
            number, places = number // 10, places - 1
    codes = np.full(max(width, 48), 32)
    end = len(codes)
    at = end
    if plain:
        behind = places - power
        for _ in range(-behind):
            number = number * 10
        at = _written(codes, at, number, max(behind, 0), "")
    else:
        at = _written(codes, _with_power(codes, at, power, e), number, places, "")
    at = _signed(codes, at, x, width, zeros, plus)
    return codes[min(at, end - width):]


def _with_power(codes: Any, at: Any, power: Any, e: Any) -> Any:
    """Write a power of ten into an array before a place; where it begins."""
    left = abs(power)
    codes[at - 1] = 48 + left % 10
    codes[at - 2] = 48 + left // 10
    codes[at - 3] = 45 if power < 0 else 43
    codes[at - 4] = ord(e)
    return at - 4


@once
def _leading(size: Any, places: Any) -> Any:
    """The first digits of a float, one and so many more, as an int, rounded once, and the power of
    ten of the first; the int is -1 where that is for Python to say."""
    if size == 0.0:
        return 0, 0
    if not (size >= 1e-21 and size < 9e18):
        return -1, 0
    power, ten = 0, 10.0
    if size >= 1.0:
        while size >= ten:
            power, ten = power + 1, ten * 10.0
    else:
        product = size * ten
        power = -1
        while product < 1.0 or (product == 1.0 and lost(size, ten, product) < 0.0):
            power, ten = power - 1, ten * 10.0
            product = size * ten
    if places - power > MOST_PLACES:
        return -1, 0
    if places >= power:
        number = _scaled(size, power_of_ten(places - power))
    else:
        number = _shortened(size, int(power_of_ten(power - places)))
    if number >= int(power_of_ten(places + 1)):  # by rounding
        number, power = number // 10, power + 1
    return number, power


def _shortened(size: Any, ten: Any) -> Any:
    """size / ten as the nearest int, of two the even one; size is below 2**63."""
    whole = int(size)
    number, rest = whole // ten, whole % ten
    above = 2 * rest - ten
    if above > 0 or (above == 0 and (size > whole or number % 2 == 1)):
        number += 1
    return number


def shortest(x: Any) -> Any:
    """The code points of repr(x) of a float."""
    codes, at = _shortest(x)
    if at < 0:
        return shown_by_python(x, "")
    return codes[at:]


@once
def _shortest(x: Any) -> Any:
    """What `shortest` gives behind a place, -1 if that is for Python to say: of as few digits as
    tell the float from all others, the nearest ones.

    What 15 digits can tell, 15 digits do tell once they are rounded to; where they do not, 16 or 17
    do (Steele and White, How to print floating-point numbers accurately, PLDI 1990).
    """
    size, codes = abs(x), np.full(28, 32)
    if size != 0.0 and not (size >= 1e-4 and size < 1e16):
        return codes, -1
    places = 14 + int(size < 1.0) + int(size < 0.1) + int(size < 0.01) + int(size < 0.001)
    ten = 10.0
    while size >= ten:
        places, ten = places - 1, ten * 10.0
    places = max(places, 0)
    ten = power_of_ten(places)
    number = _scaled(size, ten)
    if quotient(number, ten) != size:
        if math.frexp(size)[0] == 0.5:  # the next float below is nearer than the one above
            return codes, -1
        places, ten = places + 1, ten * 10.0
        number = _scaled(size, ten)
        if quotient(number, ten) != size:
            places, ten = places + 1, ten * 10.0
            number = _scaled(size, ten)
    if places == 0:
        number, places = number * 10, 1
    while places > 1 and number % 10 == 0:
        number, places = number // 10, places - 1
    at = _written(codes, len(codes), number, places, "")
    if math.copysign(1.0, x) < 0.0:
        at -= 1
        codes[at] = 45
    return codes, at


def _written(codes: Any, at: Any, number: Any, places: Any, group: Any) -> Any:
    """Write an int's digits into an array before a place, with a point before the last so many, and
    a character between groups of three of the others; where they begin."""
    for _ in range(places):
        at -= 1
        codes[at] = 48 + number % 10
        number = number // 10
    if places > 0:
        at -= 1
        codes[at] = 46
    point = at
    at -= 1
    codes[at] = 48 + number % 10
    number = number // 10
    while number > 0:
        if group and (point - at) % 4 == 3:
            at -= 1
            codes[at] = ord(group)
        at -= 1
        codes[at] = 48 + number % 10
        number = number // 10
    return at


def _scaled(size: Any, ten: Any) -> Any:
    """size * ten as the nearest int, of two the even one; it is below 10**17."""
    product = size * ten
    whole = int(product)
    part, rest = product - whole, lost(size, ten, product)
    if product >= EXACT:
        shift = math.floor(rest)
        whole += shift
        rest -= shift
    above = (part - 0.5) + rest
    if above > 0.0 or (above == 0.0 and whole % 2 == 1):
        whole += 1
    return whole
