"""Where the interpreter is: activations of functions, places of blocks, what was read on the way.

Records only; `interpreter.py` makes them and takes them back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from pyrelay.infer import values as V
from pyrelay.ir.nodes import Function, Let, Var
from pyrelay.records import dataclass

Question = tuple[Any, ...]
"""An op and the numbers it is given, of which it is asked whether it raises."""


@dataclass
class Frame:
    """One activation of a Relay function."""

    function: Function
    home: Any  # ParsedFunction the function belongs to
    owner: Any  # Python function whose globals and closure it reads
    env: dict[Var, V.Value] = field(default_factory=dict)
    consumer: Callable[[V.Value], V.Value] | None = None  # of a generator: takes what it yields


@dataclass(frozen=True, slots=True)
class Read:
    """A value read from a field, or a number that an extent was bound to, and the last Let that
    this took, by its block and place."""

    value: V.Value
    lets: list[Let]
    count: int
    last: Let | None

    @property
    def valid(self) -> bool:
        """False if the Lets were taken back."""
        if not self.count:
            return True
        return len(self.lets) >= self.count and self.lets[self.count - 1] is self.last


@dataclass(frozen=True, slots=True)
class Mark:
    """A place of the block at hand: what is emitted behind it may be taken back."""

    lets: int
    answered: frozenset[Question]
    asked: frozenset[Question]
