"""Questions about single characters, in plain Python that our own frontend compiles.

In: code points, and what Python's own tables of characters say, as sorted arrays. Out: truths, and
the values of digits.
"""

from __future__ import annotations

from typing import Any


def places_before(bounds: Any, code: Any) -> Any:
    """How many of the sorted bounds are at most the code."""
    low, high = 0, len(bounds)
    while low < high:
        middle = (low + high) // 2
        if bounds[middle] <= code:
            low = middle + 1
        else:
            high = middle
    return low


def lies_inside(code: Any, bounds: Any) -> Any:
    """Whether the code lies in one of the ranges: bounds[0] to bounds[1], bounds[2] to ..."""
    return places_before(bounds, code) % 2 == 1


def other_case(code: Any, ascii: Any, cases: Any, name: Any) -> Any:
    """The code point of what a method of str makes of a character, by a table of those of ASCII and
    one of others (`own_arrays.cases_of`)."""
    if code < 128:
        return ascii[code]
    k = places_before(cases[0], code) - 1
    if k < 0 or cases[0, k] != code:
        return code
    if cases[1, k] < 0:
        raise NotImplementedError(
            f"{chr(code)!r}.{name}() has several characters, which a compiled function does not "
            "make of one"
        )
    return cases[1, k]


def repeated_codes(string: Any, count: Any) -> Any:
    """The code points of string * count."""
    codes: list[Any] = []
    once = codes_of_item(string)
    for _ in range(count):
        codes.extend(once)
    return codes


def digit_of(code: Any, zeros: Any) -> Any:
    """int(character), by the code points of the zeros of all scripts."""
    if code >= 48 and code <= 57:
        return code - 48
    k = places_before(zeros, code)
    if k > 0 and code - zeros[k - 1] < 10:
        return int(code - zeros[k - 1])
    raise ValueError(f"invalid literal for int() with base 10: {chr(code)!r}")


def codes_of_item(string: Any) -> Any:
    """The code points of a string that is put together with others, in a list of their own; a
    handler says that, and refuses what is no string."""
    return list(map(ord, string))


def joined_codes(separator: Any, strings: Any) -> Any:
    """The code points of separator.join(strings)."""
    codes: list[Any] = []
    between = codes_of_item(separator)
    for k in range(len(strings)):
        if k > 0:
            codes.extend(between)
        codes.extend(codes_of_item(strings[k]))
    return codes


def same_codes(one: Any, other: Any) -> Any:
    """Whether two strings, as arrays of code points, are equal."""
    if len(one) != len(other):
        return False
    for k in range(len(one)):  # noqa: SIM110
        if one[k] != other[k]:
            return False
    return True


def codes_precede(one: Any, other: Any) -> Any:
    """Whether a string stands before another; not by what compares lists, which hold strings."""
    for k in range(min(len(one), len(other))):
        if one[k] != other[k]:
            return one[k] < other[k]
    return len(one) < len(other)
