"""heapq and bisect over lists, in plain Python that our own frontend compiles.

In and out: what the functions of these names take and give, for lists whose length may be known
only at run time. Source: Williams, Algorithm 232: Heapsort (CACM 7, 1964); the order of moves is
that of Python's heapq, so that lists of equal keys end up the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = [
    "bisect", "bisect_left", "bisect_right", "heapify", "heappop", "heappush", "heappushpop",
    "heapreplace", "insort", "insort_left", "insort_right", "merge", "nlargest", "nsmallest",
]


def holds_lists(heap: Any) -> bool:
    """Whether lists are items of a heap, or in its items: pyrelay knows while compiling. Such items
    exchange places, so that no list is in two of them in between."""
    return False


def _rise(heap: Any, start: Any, place: Any) -> None:
    """Move the item at a place up to where its parent is not larger."""
    if holds_lists(heap):
        _rise_by_exchanges(heap, start, place)
        return
    item = heap[place]
    while place > start:
        above = (place - 1) >> 1
        if not item < heap[above]:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


def _rise_by_exchanges(heap: Any, start: Any, place: Any) -> None:
    while place > start:
        above = (place - 1) >> 1
        if not heap[place] < heap[above]:
            break
        heap[place], heap[above] = heap[above], heap[place]
        place = above


def _sink(heap: Any, place: Any) -> None:
    """Move the item at a place down to a leaf, smaller children up, then up to where it belongs."""
    if holds_lists(heap):
        _sink_by_exchanges(heap, place)
        return
    start, end = place, len(heap)
    item = heap[place]
    child = 2 * place + 1
    while child < end:
        if child + 1 < end and not heap[child] < heap[child + 1]:
            child += 1
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    _rise(heap, start, place)


def _sink_by_exchanges(heap: Any, place: Any) -> None:
    start, end = place, len(heap)
    child = 2 * place + 1
    while child < end:
        if child + 1 < end and not heap[child] < heap[child + 1]:
            child += 1
        heap[place], heap[child] = heap[child], heap[place]
        place = child
        child = 2 * place + 1
    _rise_by_exchanges(heap, start, place)


def _replaced(heap: Any, item: Any) -> Any:
    """Take the first item out, for which another one comes in."""
    if holds_lists(heap):
        heap.append(item)
        return _least_for_last(heap)
    least = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return least


def _least_for_last(heap: Any) -> Any:
    """Take the first item out, whose place the last one takes."""
    heap[0], heap[-1] = heap[-1], heap[0]
    least = heap.pop()
    _sink(heap, 0)
    return least


def heappush(heap: Any, item: Any) -> None:
    """heapq.heappush."""
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


def heappop(heap: Any) -> Any:
    """heapq.heappop."""
    if len(heap) == 0:
        raise IndexError("index out of range")
    if holds_lists(heap):
        return heap.pop() if len(heap) == 1 else _least_for_last(heap)
    last = heap.pop()
    return last if len(heap) == 0 else _replaced(heap, last)


def heapreplace(heap: Any, item: Any) -> Any:
    """heapq.heapreplace."""
    if len(heap) == 0:
        raise IndexError("index out of range")
    return _replaced(heap, item)


def heappushpop(heap: Any, item: Any) -> Any:
    """heapq.heappushpop."""
    return _replaced(heap, item) if len(heap) > 0 and heap[0] < item else item


def heapify(heap: Any) -> None:
    """heapq.heapify."""
    place = len(heap) // 2 - 1
    while place >= 0:
        _sink(heap, place)
        place -= 1


def nsmallest(n: Any, iterable: Iterable[Any], key: Any = None) -> Any:
    """heapq.nsmallest."""
    return sorted(iterable, key=key)[: max(n, 0)]


def merge(*iterables: Iterable[Any], key: Any = None, reverse: Any = False) -> Any:
    """heapq.merge: the items of sorted iterables in order, of equal ones the first one's first."""
    merged: list[Any] = []
    for iterable in iterables:
        merged = _two_merged(merged, list(iterable), key, reverse)
    yield from merged


def _two_merged(a: Any, b: Any, key: Any, reverse: Any) -> Any:
    merged = []
    i = j = 0
    while i < len(a) and j < len(b):
        x, y = (a[i], b[j]) if key is None else (key(a[i]), key(b[j]))
        if x < y if reverse else y < x:
            merged.append(b[j])
            j += 1
        else:
            merged.append(a[i])
            i += 1
    merged.extend(a[i:])
    merged.extend(b[j:])
    return merged


def nlargest(n: Any, iterable: Iterable[Any], key: Any = None) -> Any:
    """heapq.nlargest."""
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def bisect_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    """bisect.bisect_left."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    end = len(a) if hi is None else hi
    while lo < end:
        middle = (lo + end) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            lo = middle + 1
        else:
            end = middle
    return lo


def bisect_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    """bisect.bisect_right."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    end = len(a) if hi is None else hi
    while lo < end:
        middle = (lo + end) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            end = middle
        else:
            lo = middle + 1
    return lo


bisect = bisect_right


def insort_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    """bisect.insort_left."""
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    """bisect.insort_right."""
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


insort = insort_right
