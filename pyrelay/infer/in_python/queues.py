"""`queue.Queue` and its kin, in plain Python that our own frontend compiles.

In and out: what their methods take and give. A compiled program is one thread, so what would wait
for another one raises.
"""

from __future__ import annotations

import heapq
import queue
from collections import deque
from collections.abc import Sequence
from typing import Any


class SimpleQueue:
    """queue.SimpleQueue: what was put first comes first."""

    def __init__(self) -> None:
        self.queue: Any = deque()

    def qsize(self) -> int:
        return len(self.queue)

    def empty(self) -> bool:
        return len(self.queue) == 0

    def _put(self, item: Any) -> None:
        self.queue.append(item)

    def _get(self) -> Any:
        return self.queue.popleft()

    def put(self, item: Any, block: bool = True, timeout: Any = None) -> None:
        self._put(item)

    def put_nowait(self, item: Any) -> None:
        self.put(item, False)

    def get(self, block: bool = True, timeout: Any = None) -> Any:
        if len(self.queue) == 0:
            if block and timeout is None:
                raise RuntimeError("get() of an empty queue waits for another thread, without end")
            raise queue.Empty
        return self._get()

    def get_nowait(self) -> Any:
        return self.get(False)


class Queue(SimpleQueue):
    """queue.Queue: the same with room for `maxsize` items, and a count of what is not done."""

    def __init__(self, maxsize: int = 0) -> None:
        self.queue = deque()
        self.maxsize = maxsize
        self.unfinished_tasks = 0

    def full(self) -> bool:
        return 0 < self.maxsize <= len(self.queue)

    def put(self, item: Any, block: bool = True, timeout: Any = None) -> None:
        if self.full():
            if block and timeout is None:
                raise RuntimeError("put() to a full queue waits for another thread, without end")
            raise queue.Full
        self._put(item)
        self.unfinished_tasks += 1

    def task_done(self) -> None:
        if self.unfinished_tasks == 0:
            raise ValueError("task_done() called too many times")
        self.unfinished_tasks -= 1

    def join(self) -> None:
        if self.unfinished_tasks > 0:
            raise RuntimeError("join() waits for another thread, without end")


class LifoQueue(Queue):
    """queue.LifoQueue: what was put last comes first."""

    def __init__(self, maxsize: int = 0) -> None:
        self.queue = []
        self.maxsize = maxsize
        self.unfinished_tasks = 0

    def _get(self) -> Any:
        return self.queue.pop()


class PriorityQueue(LifoQueue):
    """queue.PriorityQueue: the least comes first."""

    def _put(self, item: Any) -> None:
        heapq.heappush(self.queue, item)

    def _get(self) -> Any:
        return heapq.heappop(self.queue)


#: The classes with room for a number of items, and what they are in Python.
STANDS_FOR: dict[type, type] = {
    Queue: queue.Queue, LifoQueue: queue.LifoQueue, PriorityQueue: queue.PriorityQueue,
}


# -- back in Python --------------------------------------------------------------------------------


def simple(items: Sequence[Any]) -> Any:
    """A queue.SimpleQueue of these items."""
    made: Any = queue.SimpleQueue()
    for item in items:
        made.put(item)
    return made


def filled(cls: type, items: Sequence[Any], maxsize: int, unfinished: int) -> Any:
    """A queue of a class with these items."""
    made: Any = cls(maxsize)
    made.queue.extend(items)
    made.unfinished_tasks = unfinished
    return made
