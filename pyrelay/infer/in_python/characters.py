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


def digit_of(code: Any, zeros: Any) -> Any:
    """int(character), by the code points of the zeros of all scripts."""
    if code >= 48 and code <= 57:
        return code - 48
    k = places_before(zeros, code)
    if k > 0 and code - zeros[k - 1] < 10:
        return int(code - zeros[k - 1])
    raise ValueError(f"invalid literal for int() with base 10: {chr(code)!r}")


def same_codes(one: Any, other: Any) -> Any:
    """Whether two strings, as arrays of code points, are equal."""
    if len(one) != len(other):
        return False
    for k in range(len(one)):  # noqa: SIM110
        if one[k] != other[k]:
            return False
    return True
