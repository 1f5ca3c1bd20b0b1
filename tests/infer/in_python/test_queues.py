"""The classes of Python's `queue`, in programs of one thread."""

from __future__ import annotations

import queue
from queue import Queue
from typing import Any

import pytest

import pyrelay


def distances(near: list[list[int]], start: int) -> list[int]:
    found = [-1] * len(near)
    found[start] = 0
    waiting: Any = Queue()
    waiting.put(start)
    while not waiting.empty():
        at = waiting.get()
        for other in near[at]:
            if found[other] < 0:
                found[other] = found[at] + 1
                waiting.put(other)
    return found


def ordered(items: list[int]) -> Any:
    least, last, first = queue.PriorityQueue(), queue.LifoQueue(), queue.SimpleQueue()
    for item in items:
        least.put((item % 4, item))
        last.put_nowait(item)
        first.put(item)
    taken = []
    while True:
        try:
            taken.append(least.get_nowait()[1] + 100 * last.get() + 10000 * first.get())
        except queue.Empty:
            break
    return taken, last.qsize(), isinstance(last, queue.Queue), first.empty()


def narrow(items: list[int], room: int) -> Any:
    line = Queue(maxsize=room)
    refused = 0
    for item in items:
        try:
            line.put(item, block=False)
        except queue.Full:
            refused += 1
    done = line.get()
    line.task_done()
    return refused, done, line.full(), line.qsize(), line.unfinished_tasks


@pytest.mark.parametrize(
    ("program", "args"),
    [(distances, ([[1, 2], [3], [3, 4], [], [1], [0]], 0)), (ordered, ([5, 3, 8, 1, 9, 2],)),
     (narrow, ([1, 2, 3, 4, 5, 6], 3)), (narrow, ([1, 2, 3, 4, 5, 6], 0))],
)  # fmt: skip
def test_queues_are_those_of_python(program: Any, args: tuple[Any, ...]) -> None:
    assert pyrelay.jit(program)(*args) == program(*args)


def test_a_queue_is_a_result() -> None:
    @pyrelay.jit
    def filled(n: int) -> Any:
        line: Any = Queue(7)
        for k in range(n):
            line.put(k * k)
        return line

    found = filled(4)
    assert type(found) is Queue
    assert (found.maxsize, found.unfinished_tasks) == (7, 4)
    assert [found.get() for _ in range(4)] == [0, 1, 4, 9]


def test_what_would_wait_for_another_thread_raises() -> None:
    def taken(n: int) -> int:
        line: Any = Queue()
        for k in range(n):
            line.put(k)
        return line.get()

    assert pyrelay.jit(taken)(2) == 0
    with pytest.raises(RuntimeError, match="an empty queue waits for another thread, without end"):
        pyrelay.jit(taken)(0)
