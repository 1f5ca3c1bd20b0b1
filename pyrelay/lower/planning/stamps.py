"""A plan that measures itself.

In: a plan. Out: the same plan with a `Stamp` in front of each launch and each call out of it and
one behind, and what each row of the times that they write is of. What threads do in parts, each a
run of its own, is one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pyrelay.lower.planning.instructions import (
    Copy,
    Data,
    HostCall,
    Immediate,
    Instruction,
    Label,
    Launch,
    Parts,
    Plan,
    PlanFunction,
    Return,
    Stamp,
    UfuncCall,
    Zero,
)
from pyrelay.records import dataclass

OUTSIDE, BETWEEN = 0, 1
"""The rows of what passes from one run to the next, and of what lies between launches."""

Timed = tuple[Launch | HostCall | UfuncCall | Copy | Zero, ...]
"""The instructions that a row measures together."""


@dataclass(frozen=True, slots=True, eq=False)
class Stamped:
    """A plan that measures itself.

    rows: what each row from the third on is of. times: int64, the last time in nanoseconds, then a
    count of stamps and nanoseconds for each row, as the executor writes them.
    """

    plan: Plan
    rows: tuple[Timed, ...]
    times: np.ndarray[Any, Any]

    def begin(self) -> None:
        """Forget what was measured so far."""
        self.times[1:] = 0

    def measured(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """How often each row was reached since then, and seconds in all."""
        return self.times[1::2].copy(), self.times[2::2] * 1e-9


def stamped(plan: Plan) -> Stamped:
    """The plan with stamps."""
    rows: list[Timed] = []
    functions = tuple(
        replace(f, code=tuple(_with_stamps(f, rows, Data(len(plan.arrays)), number == 0)))
        for number, f in enumerate(plan.functions)
    )
    times = np.zeros(1 + 2 * (2 + len(rows)), np.int64)
    return Stamped(
        replace(plan, functions=functions, arrays=(*plan.arrays, times)), tuple(rows), times
    )


def _with_stamps(
    function: PlanFunction, rows: list[Timed], times: Data, is_entry: bool
) -> Iterator[Instruction]:
    """The code of a function; `rows` grows by its rows."""
    if is_entry:
        yield Stamp(times, Immediate(OUTSIDE))
    parts, inside, together = "", False, list[Any]()
    for instruction in function.code:
        match instruction:
            case Parts(label=parts):
                yield Stamp(times, Immediate(BETWEEN))
                yield instruction
                inside, together = True, []
            case Launch() | HostCall() | UfuncCall() | Copy() | Zero() if inside:
                together.append(instruction)
                yield instruction
            case Label(name) if inside and name == parts:
                yield instruction
                inside = False
                rows.append(tuple(together))
                yield Stamp(times, Immediate(BETWEEN + len(rows)))
            case Launch() | HostCall() | UfuncCall() | Copy() | Zero():
                yield Stamp(times, Immediate(BETWEEN))
                yield instruction
                rows.append((instruction,))
                yield Stamp(times, Immediate(BETWEEN + len(rows)))
            case Return() if is_entry:
                yield Stamp(times, Immediate(BETWEEN))
                yield instruction
            case _:
                yield instruction
