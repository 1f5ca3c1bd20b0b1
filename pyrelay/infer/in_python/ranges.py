"""Items and parts of ranges, and slices whose steps are computed, in plain Python that our own
frontend compiles.

In and out: what indexing a `range`, or an array by a slice, takes and means.
"""

from __future__ import annotations

from typing import Any

from pyrelay.infer.in_python.missing import missing


def item(r: Any, k: Any) -> Any:
    """r[k] of an int. Raises IndexError."""
    count, at = len(r), int(k)
    if at < 0:
        at += count
    if not 0 <= at < count:
        raise IndexError("range object index out of range")
    return r.start + at * r.step


def place(r: Any, value: Any) -> Any:
    """r.index(value) of a number. Raises ValueError."""
    if value not in r:
        raise ValueError(missing(value, "range"))
    return int((value - r.start) // r.step)


def count(r: Any, value: Any) -> Any:
    """r.count(value) of a number."""
    return 1 if value in r else 0


def equal(r: Any, s: Any) -> Any:
    """r == s: the same numbers in the same order."""
    count = len(r)
    if count != len(s) or count == 0:
        return count == len(s)
    return r.start == s.start and (count == 1 or r.step == s.step)


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


def elements(start: Any, stop: Any, step: Any, size: Any) -> tuple[Any, Any, Any, Any]:
    """The elements that the slice start:stop:step means in an axis of `size` elements: the first,
    how many, and the step as the difference of two numbers of which one is 0."""
    if step == 0:
        raise ValueError("slice step cannot be zero")
    forward, backward = max(step, 0), max(-step, 0)
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first, last = (low, high) if step > 0 else (high, low)
    if start is not None:
        first = min(max(start + size if start < 0 else start, low), high)
    if stop is not None:
        last = min(max(stop + size if stop < 0 else stop, low), high)
    span = last - first if step > 0 else first - last
    if span <= 0:
        return 0, 0, forward, backward
    return first, (span - 1) // (forward + backward) + 1, forward, backward
