"""Slices of lists take any iterable."""

from __future__ import annotations

from typing import Any

import pyrelay


def rearranged(a: Any, k: int) -> Any:
    a[:k] = reversed(a[:k])
    a[1:3] = (x * 2 for x in a[1:3])
    a[::2] = map(abs, a[::2])
    short = [1, 2]
    short[:] = zip(short, short, strict=True)
    none: list[int] = []
    none[:] = reversed([4, 5])
    return a, short, none


def test_iterators_are_gone_through() -> None:
    compiled = pyrelay.jit(rearranged)
    for a, k in (([1, 2, 3, 4, 5, 6], 2), ([1, 2, 3, 4, 5, 6], 4), ([3, 1, 2], 3)):
        given, expected = a.copy(), a.copy()
        assert compiled(given, k) == rearranged(expected, k)
        assert given == expected
