"""Items and parts of ranges, in plain Python that our own frontend compiles.

In and out: what indexing a `range` takes and gives.
"""

from __future__ import annotations

from typing import Any


def item(r: Any, k: Any) -> Any:
    """r[k] of an int. Raises IndexError."""
    count, at = len(r), int(k)
    if at < 0:
        at += count
    if not 0 <= at < count:
        raise IndexError("range object index out of range")
    return r.start + at * r.step


def part(r: Any, lower: Any, upper: Any, by: Any) -> Any:
    """r[lower:upper:by], where any of the three may be None. Raises ValueError for a step of 0."""
    count = len(r)
    step = 1 if by is None else by
    if step == 0:
        raise ValueError("slice step cannot be zero")
    first, last = (0, count) if step > 0 else (-1, count - 1)
    before, behind = (first, last) if step > 0 else (last, first)
    start = before if lower is None else within(lower, count, first, last)
    stop = behind if upper is None else within(upper, count, first, last)
    return range(r.start + start * r.step, r.start + stop * r.step, r.step * step)


def within(bound: Any, count: Any, first: Any, last: Any) -> Any:
    """A bound of a slice, counted from the start and not beyond either end."""
    return max(bound + count, first) if bound < 0 else min(bound, last)
