"""The code of one plan function while it is written: slots, labels, instructions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pyrelay.ir.nodes import Const
from pyrelay.ir.types import TapeType, TensorType, Type
from pyrelay.lower.planning.instructions import (
    Alloc,
    Immediate,
    Instruction,
    Label,
    Launch,
    PlanFunction,
    Slot,
    Unary,
    Value,
    immediate,
)

Words = tuple[Value, ...]
ZERO, ONE = Immediate(0), Immediate(1)


def word_count(ty: Type | None) -> int:
    """How many slots a value takes: an array its address, complex128 two words, a tape its handle.

    Extents are separate values.
    """
    if isinstance(ty, TensorType) and not ty.shape and ty.dtype.size == 16:
        return 2
    assert isinstance(ty, (TensorType, TapeType))
    return 1


def constant_words(const: Const) -> Words:
    """A scalar constant as operands."""
    assert isinstance(const.type, TensorType)
    name = const.type.dtype.numpy_name
    if name == "complex128":
        number = complex(const.value)
        return (immediate(number.real, "float64"), immediate(number.imag, "float64"))
    value = bool(const.value) if name == "bool" else const.value
    return (immediate(value, name),)


class Frame:
    """Collects instructions; nested lists are places that are filled in later.

    array: what is computed now, and what the buffers are that are allocated for it, in the user's
    words.
    """

    def __init__(self, name: str) -> None:
        self.name, self.array = name, ""
        self.slots = 0
        self._code: list[Any] = []
        self._labels = itertools.count()

    def slot(self) -> int:
        """A fresh slot."""
        self.slots += 1
        return self.slots - 1

    def words(self, count: int) -> tuple[int, ...]:
        """Several fresh slots."""
        return tuple(self.slot() for _ in range(count))

    def label(self, what: str) -> str:
        """A fresh label name."""
        return f"{what}{next(self._labels)}"

    def emit(self, instruction: Instruction) -> None:
        """Append an instruction."""
        if isinstance(instruction, Launch) and not instruction.computes:
            instruction = replace(instruction, computes=self.array)
        self._code.append(instruction)

    def allocate(self, slot: int, nbytes: Value, passing: bool = False) -> None:
        """Fresh memory, its address in a slot."""
        self.emit(Alloc(slot, nbytes, self.array, passing))

    def place(self, label: str) -> None:
        """Put a label here."""
        self._code.append(Label(label))

    def placeholder(self) -> list[Any]:
        """A place here whose instructions may be added later."""
        here: list[Any] = []
        self._code.append(here)
        return here

    def mark(self) -> int:
        """Where the code is now, for `since`."""
        return len(self._code)

    def since(self, mark: int) -> list[Any]:
        """The code from a mark to here, taken out of the frame."""
        code = self._code[mark:]
        del self._code[mark:]
        return code

    def extend(self, code: Iterable[Any]) -> None:
        """Append what `since` took out, or what is in its place."""
        self._code.extend(code)

    def move(self, targets: Sequence[int], sources: Iterable[Value]) -> None:
        """Assign all targets at once: no target is written while its old value is still needed."""
        pending = {t: s for t, s in zip(targets, sources, strict=True) if s != Slot(t)}
        while pending:
            read = {s.index for s in pending.values() if isinstance(s, Slot)}
            ready = [t for t in pending if t not in read]
            if not ready:  # only cycles are left: free one target by keeping its old value aside
                target = next(iter(pending))
                aside = self.slot()
                self.emit(Unary("move", aside, Slot(target)))
                pending = {
                    t: Slot(aside) if s == Slot(target) else s for t, s in pending.items()
                }
                ready = [target]
            for target in ready:
                self.emit(Unary("move", target, pending.pop(target)))

    def finish(self, parameters: int) -> PlanFunction:
        """The function; its first `parameters` slots are filled by the caller."""
        code: list[Instruction] = []
        for item in self._code:
            if isinstance(item, list):
                code.extend(item)
            else:
                code.append(item)
        return PlanFunction(self.name, parameters, self.slots, tuple(code))
