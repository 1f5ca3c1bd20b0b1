"""How many bytes a kernel moves, by its text alone: no clock, no device.

In: a kernel, the values of its extents, the length of its parallel axis. Out: the bytes that its
loads and stores of buffers ask for. What several threads or rounds ask for is counted each time,
but for rows that the threads of a block hold (`lower.passes.held_rows`), so that the number over
the least possible one, every array read or written once, says how much a kernel leaves to the
caches.

Integers that follow from extents and loop indices are computed; both ways of a choice that hangs on
data count, the larger one, and so does the later one of two ends of a loop that data choose from.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrelay.lower.kernels.kernel import (
    EXTENT,
    SLOT,
    Assign,
    Body,
    Compute,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    LocalArray,
    Operand,
    Parameter,
    Pointed,
    Read,
    Statement,
    Store,
    While,
    statements,
)
from pyrelay.lower.passes.cooperation import cooperation
from pyrelay.lower.passes.held_rows import ROOM, HeldRows, held_rows

_INTEGERS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b if b else 0, "remainder": lambda a, b: a % b if b else 0,
    "minimum": min, "maximum": max, "where": lambda c, a, b: a if c else b,
    "less": lambda a, b: a < b, "less_equal": lambda a, b: a <= b, "equal": lambda a, b: a == b,
    "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b,
    "not_equal": lambda a, b: a != b, "right_shift": lambda a, b: a >> b, "cast": int,
}  # fmt: skip


Buffer = Parameter | Pointed
"""Buffers that a kernel is given."""


def asked(kernel: Kernel, extents: Sequence[int], items: int) -> Mapping[Buffer, int]:
    """Bytes that the loads and stores of `items` items of the parallel axis ask for, by array.

    `extents` are the values of the function's dims. Raises ValueError where the rounds of a loop
    hang on data.
    """
    if kernel.routines:
        raise ValueError("the kernel calls itself as often as data says")
    counter = _Counter(extents)
    counter.known[kernel.begin], counter.known[kernel.end] = 0, items
    shared = cooperation(kernel)
    counter.held = None if shared is None else held_rows(kernel, shared)
    return counter.body(kernel.body)


def moved(kernel: Kernel, extents: Sequence[int], items: int) -> int:
    """The same of all arrays together."""
    return sum(asked(kernel, extents, items).values())


def _chooses(statement: Statement) -> bool:
    """Whether it hangs on a condition which bytes are moved."""
    if not isinstance(statement, If):
        return False
    return any(isinstance(s, (Load, Store)) for s in statements((statement,)))


Bytes = Counter[Buffer]


class _Counter:
    def __init__(self, extents: Sequence[int]) -> None:
        self.extents = extents
        self.known: dict[Local, Any] = {}  # None for what hangs on data
        self.latest: dict[Local, int] = {}  # of numbers that data choose from
        self.held: HeldRows | None = None

    def value(self, operand: Operand) -> Any:
        return operand.value if isinstance(operand, Literal) else self.known.get(operand)

    def body(self, body: Body) -> Bytes:
        total: Bytes = Counter()
        for statement in body:
            total.update(self.statement(statement))
        return total

    def statement(self, statement: Statement) -> Bytes:
        match statement:
            case Load(out=out, array=array):
                self.known[out] = None
                if self.held is not None and statement in self.held.again and self._fits(self.held):
                    return Counter()
                return _once(array)
            case Store(array=array):
                slot = isinstance(array, Parameter) and array.role == SLOT
                return Counter() if slot else _once(array)
            case Read(out=out, parameter=parameter):
                of_extent = parameter.role == EXTENT
                self.known[out] = self.extents[parameter.position] if of_extent else None
            case Compute(out=out, primitive=name, args=args):
                values = [self.value(a) for a in args]
                told = name in _INTEGERS and None not in values
                self.known[out] = _INTEGERS[name](*values) if told else None
                if name == "where" and None not in values[1:]:
                    self.latest[out] = max(values[1:])
            case Assign(variable=variable, value=value):
                self.known[variable] = self.value(value)
            case If(cond=cond, then=then, orelse=orelse):
                taken = self.value(cond)
                if taken is None:
                    return max(self.body(then), self.body(orelse), key=Counter.total)
                return self.body(then if taken else orelse)
            case For():
                return self.loop(statement)
            case While():
                raise ValueError("a loop runs as often as data says")
        return Counter()

    def _fits(self, held: HeldRows) -> bool:
        length = self.value(held.length)
        return length is not None and length * held.nbytes <= ROOM

    def loop(self, loop: For) -> Bytes:
        start, stop = self.value(loop.start), self.value(loop.stop)
        if stop is None and isinstance(loop.stop, Local):
            stop = self.latest.get(loop.stop)
        if start is None or stop is None:
            raise ValueError("a loop runs as often as data says")
        for variable in (s.variable for s in statements(loop.body) if isinstance(s, Assign)):
            self.known[variable] = None  # it is not the same in every round
        rounds = max(stop - start, 0)
        if not any(_chooses(s) for s in statements(loop.body)):
            self.known[loop.index] = None
            with contextlib.suppress(ValueError):  # of a loop inside, whose end is the index'
                once = self.body(loop.body)
                return Counter({array: rounds * nbytes for array, nbytes in once.items()})
        total: Bytes = Counter()
        for index in range(start, stop):
            self.known[loop.index] = index
            total.update(self.body(loop.body))
        return total


def _once(array: Buffer | LocalArray) -> Bytes:
    return Counter() if isinstance(array, LocalArray) else Counter({array: array.dtype.size})
