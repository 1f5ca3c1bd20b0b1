"""A plan that measures itself has a stamp around each launch, and a row for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.lower.planning.instructions import (
    Immediate,
    Jump,
    Label,
    Launch,
    PartEnd,
    Parts,
    Plan,
    PlanFunction,
    Return,
    Slot,
    Stamp,
    Unary,
)
from pyrelay.lower.planning.stamps import BETWEEN, OUTSIDE, stamped

LAUNCHES = [Launch(k, (Slot(0),), Immediate(4), Immediate(1)) for k in range(3)]


def _function(*code: Any) -> PlanFunction:
    return PlanFunction("main", 0, 3, code)


def _rows(function: PlanFunction) -> list[Any]:
    """Rows of stamps, and the other instructions as they are."""
    return [i.row.word if isinstance(i, Stamp) else i for i in function.code]


def test_each_launch_has_a_row_and_what_lies_between_them_one() -> None:
    first, second, _ = LAUNCHES
    move = Unary("move", 1, Slot(0))
    found = stamped(Plan((_function(first, move, second, Return(())),)))
    assert _rows(found.plan.functions[0]) == [
        OUTSIDE, BETWEEN, first, 2, move, BETWEEN, second, 3, BETWEEN, Return(()),
    ]  # fmt: skip
    assert found.rows == ((first,), (second,))
    assert found.plan.arrays[-1] is found.times
    assert found.times.shape == (1 + 2 * 4,)


def test_what_threads_do_in_parts_is_one_row_measured_by_whoever_goes_on() -> None:
    first, second, third = LAUNCHES
    parts = Parts(0, 1, 2, Immediate(8), Immediate(1), "together")
    loop = (Label("head"), first, second, Jump("head"), PartEnd())
    found = stamped(Plan((_function(parts, *loop, Label("together"), third, Return(())),)))
    assert _rows(found.plan.functions[0]) == [
        OUTSIDE, BETWEEN, parts, *loop, Label("together"), 2, BETWEEN, third, 3, BETWEEN,
        Return(()),
    ]  # fmt: skip
    assert found.rows == ((first, second), (third,))


def test_functions_that_the_entry_calls_have_rows_of_their_own_and_no_way_in_or_out() -> None:
    first, second, _ = LAUNCHES
    inner = PlanFunction("inner", 0, 3, (second, Return(())))
    found = stamped(Plan((_function(first, Return(())), inner)))
    assert _rows(found.plan.functions[1]) == [BETWEEN, second, 3, Return(())]


def test_what_the_executor_has_written_is_read_by_row_and_forgotten() -> None:
    first, _, _ = LAUNCHES
    found = stamped(Plan((_function(first, Return(())),)))
    found.times[:] = [99, 1, 10, 2, 500, 3, 7_000]
    counts, seconds = found.measured()
    assert counts.tolist() == [1, 2, 3]
    np.testing.assert_allclose(seconds, [1e-8, 5e-7, 7e-6])
    found.begin()
    assert found.times.tolist() == [99, 0, 0, 0, 0, 0, 0]
