"""Functions of the library that take any number of arguments, for as many as there are.

In and out: what the function takes and gives where the items of a list are spread into it,
`max(*items)`, of which only the running program knows how many there are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from pyrelay.infer.in_python import iteration, python_math


def greatest(*items: Any, **named: Any) -> Any:
    """max(*items, **named) of numbers."""
    _check("max", items)
    return max(items, **named)


def least(*items: Any, **named: Any) -> Any:
    """min(*items, **named) of numbers."""
    _check("min", items)
    return min(items, **named)


def _check(name: str, items: tuple[Any, ...]) -> None:
    """Raise as Python does for fewer than two numbers."""
    if len(items) == 0:
        raise TypeError(f"{name} expected at least 1 argument, got 0")
    if len(items) == 1:
        raise TypeError(f"'{type(items[0]).__name__}' object is not iterable")


def chained(*iterables: Any) -> Iterator[Any]:
    """itertools.chain(*iterables)."""
    yield from iteration.chained(iterables)


def fitting(
    items: Any, fewer: tuple[str, ...], one_more: str, more: str, before: int
) -> Any:
    """The items, which are as many as a function takes behind those `before`.

    Raises what Python says of fewer, by their number, or of more: `one_more`, or `more` in front of
    the number."""
    count = len(items)
    for number, said in enumerate(fewer):
        if count == number:
            raise TypeError(said)
    if count == len(fewer) + 1:
        raise TypeError(one_more)
    if count > len(fewer):
        raise TypeError(f"{more}{count + before} were given")
    return items


#: What takes any number of arguments, in place of the library's.
OF_ANY_NUMBER: dict[Any, Any] = {
    math.gcd: python_math.gcd, math.lcm: python_math.lcm, math.hypot: python_math.hypot,
    itertools.chain: chained,
}
#: The same for functions that take one list, too: only of numbers they tell one from many.
OF_NUMBERS: dict[Any, Any] = {max: greatest, min: least}

__all__ = ["OF_ANY_NUMBER", "OF_NUMBERS", "chained", "fitting", "greatest", "least"]
