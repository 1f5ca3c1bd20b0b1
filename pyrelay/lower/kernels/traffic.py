"""How many bytes a kernel moves, by its text alone: no clock, no device.

In: a kernel, the values of its extents, the length of its parallel axis. Out: the bytes that its
loads and stores of buffers ask for. What several threads or rounds ask for is counted each time,
but for rows that the threads of a block hold (`lower.passes.held_rows`), so that the number over
the least possible one, every array read or written once, says how much a kernel leaves to the
caches.

Integers that follow from extents and loop indices are computed; both ways of a choice that hangs on
data count, the larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def moved(kernel: Kernel, extents: Sequence[int], items: int) -> int:
    """Bytes that the loads and stores of `items` items of the parallel axis ask for.

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


def _chooses(statement: Statement) -> bool:
    """Whether it hangs on a condition which bytes are moved."""
    if not isinstance(statement, If):
        return False
    return any(isinstance(s, (Load, Store)) for s in statements((statement,)))


class _Counter:
    def __init__(self, extents: Sequence[int]) -> None:
        self.extents = extents
        self.known: dict[Local, Any] = {}  # None for what hangs on data
        self.held: HeldRows | None = None

    def value(self, operand: Operand) -> Any:
        return operand.value if isinstance(operand, Literal) else self.known.get(operand)

    def body(self, body: Body) -> int:
        return sum(map(self.statement, body))

    def statement(self, statement: Statement) -> int:
        match statement:
            case Load(out=out, array=array):
                self.known[out] = None
                if self.held is not None and statement in self.held.again and self._fits(self.held):
                    return 0
                return 0 if isinstance(array, LocalArray) else array.dtype.size
            case Store(array=array):
                slot = isinstance(array, Parameter) and array.role == SLOT
                return 0 if slot or isinstance(array, LocalArray) else array.dtype.size
            case Read(out=out, parameter=parameter):
                of_extent = parameter.role == EXTENT
                self.known[out] = self.extents[parameter.position] if of_extent else None
            case Compute(out=out, primitive=name, args=args):
                values = [self.value(a) for a in args]
                told = name in _INTEGERS and None not in values
                self.known[out] = _INTEGERS[name](*values) if told else None
            case Assign(variable=variable, value=value):
                self.known[variable] = self.value(value)
            case If(cond=cond, then=then, orelse=orelse):
                taken = self.value(cond)
                if taken is None:
                    return max(self.body(then), self.body(orelse))
                return self.body(then if taken else orelse)
            case For():
                return self.loop(statement)
            case While():
                raise ValueError("a loop runs as often as data says")
        return 0

    def _fits(self, held: HeldRows) -> bool:
        length = self.value(held.length)
        return length is not None and length * held.nbytes <= ROOM

    def loop(self, loop: For) -> int:
        start, stop = self.value(loop.start), self.value(loop.stop)
        if start is None or stop is None:
            raise ValueError("a loop runs as often as data says")
        for variable in (s.variable for s in statements(loop.body) if isinstance(s, Assign)):
            self.known[variable] = None  # it is not the same in every round
        rounds = max(stop - start, 0)
        if not any(isinstance(s, (For, While)) or _chooses(s) for s in statements(loop.body)):
            self.known[loop.index] = None
            return rounds * self.body(loop.body)
        total = 0
        for index in range(start, stop):
            self.known[loop.index] = index
            total += self.body(loop.body)
        return total
