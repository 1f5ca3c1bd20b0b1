"""Recursion over programs of any depth: generators that yield the work they wait for.

A piece of work is a generator. It yields another piece to have it done and is sent its result, so
a recursive walk reads as one and never meets Python's recursion limit: an expression of 2,900
operands is a tree 2,900 deep, and CPython compiles it. What is yielded and is no generator is a
result already, and is sent back as it is. (The technique is called a trampoline.)
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")

#: Work that ends with a T. What it is sent is the result of the work it yielded last.
Work = Generator[Any, Any, T]


def run(work: Work[T]) -> T:
    """Do a piece of work, and all the work that it yields, on a stack of our own."""
    stack: list[Work[Any]] = [work]
    result: Any = None
    while stack:
        try:
            waited_for = stack[-1].send(result)
        except StopIteration as done:
            stack.pop()
            result = done.value
        else:
            if isinstance(waited_for, Generator):
                stack.append(waited_for)
                result = None
            else:
                result = waited_for
    return result
