"""Deques and bytearrays of the caller's, which have afterwards what the program left in them."""

from __future__ import annotations

from collections import deque

from tests.users.corpus import refuse, use


@use((deque([3, 1, 2]), 2), (deque([5]), 0), (deque(range(40)), 7))
def turned(q, k):
    q.rotate(k)
    q.append(9)
    return q.popleft(), list(q)


@use((deque(["a", "bb", "c"] * 7),), (deque(),), (deque(["b"]),))
def drained(q):
    letters = []
    while q:
        word = q.popleft()
        if len(word) > 1:
            q.extend(word)
        else:
            letters.append(word)
    return letters


@use((deque([1, 2, 3], maxlen=3), [4, 5]), (deque([1, 2, 3], maxlen=5), [4, 5]))
def means_of_a_window(window, items):
    means = []
    for item in items:
        window.append(item)
        means.append(sum(window) / len(window))
    return means, window, window.maxlen


@use((deque([1.5, 2.5]),), (deque([7.0]),), wrt=())
def only_read(q):
    return sum(q), q[0], len(q), 2.5 in q


@use((deque([1, 2, 3]),), (deque(),))
def raises_behind_a_change(q):
    q.popleft()
    q.appendleft(7)
    raise ValueError(f"there are {len(q)}")


@use((deque([1]), deque([2, 3])), (deque(), deque([4])))
def of_two(a, b):
    a.extend(b)
    b.clear()
    return a is b, a, [b]


class Line:
    def __init__(self, waiting):
        self.waiting = waiting
        self.served = 0

    def serve(self):
        self.served += self.waiting.popleft()
        self.waiting.append(self.served)


@use((Line(deque([1, 2])), 5), long=True)
def in_an_object(line, times):
    for _ in range(times):
        line.serve()
    return line.served


@use((deque([[1, 2], [3]]),), (deque([k, 1] for k in range(300)),), long=True)
def of_lists_that_are_changed(q):
    q[0].append(5)
    return len(q)


@refuse(
    (deque([k, 1] for k in range(300)),),
    "a deque of the caller's that has lists in it is changed",
)
def of_lists_that_change_places(q):
    q.rotate(1)


@use((bytearray(b"abc"),), (bytearray(b"abcdef" * 10),))
def bytes_changed(data):
    data.append(100)
    data[0] = 65
    data.extend(b"xy")
    data[1:2] = b"ZZ"
    del data[-1]
    return bytes(data), data.pop(), data


@use((bytearray(b"abc"), 3), (bytearray(), 3))
def bytes_in_place(data, key):
    for i in range(len(data)):
        data[i] ^= key
