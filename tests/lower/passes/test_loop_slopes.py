"""Which way integers of a loop go, and at which end a comparison of them has to be asked."""

from __future__ import annotations

import pytest

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import Compute, Literal, Local, Operand
from pyrelay.lower.passes.loop_slopes import Slopes

UP, DOWN, STAYS, UNKNOWN = (Local(i64) for _ in range(4))
WAYS: dict[Operand, int | None] = {UP: 1, DOWN: -1, UNKNOWN: None}


def _slopes(*computed: Compute) -> Slopes:
    slopes = Slopes({c.out: c for c in computed})
    slopes.known |= WAYS
    return slopes


def _way(primitive: str, *args: Operand) -> int | None:
    out = Local(i64)
    return _slopes(Compute(out, primitive, args)).of(out)


def _end(primitive: str, *args: Operand) -> int | None:
    return _slopes().end(Compute(Local(bool_), primitive, args))


@pytest.mark.parametrize(
    ("primitive", "args", "way"),
    [
        ("add", (UP, UP), 1), ("add", (UP, STAYS), 1), ("add", (STAYS, DOWN), -1),
        ("add", (UP, DOWN), None), ("add", (UP, UNKNOWN), None), ("add", (STAYS, STAYS), 0),
        ("subtract", (UP, DOWN), 1), ("subtract", (STAYS, UP), -1), ("subtract", (UP, UP), None),
        ("negative", (UP,), -1), ("negative", (UNKNOWN,), None),
        ("multiply", (UP, Literal(3, i64)), 1), ("multiply", (Literal(-3, i64), UP), -1),
        ("multiply", (UP, Literal(0, i64)), None), ("multiply", (UP, STAYS), None),
        ("remainder", (UP, STAYS), None), ("remainder", (STAYS, STAYS), 0),
    ],
)  # fmt: skip
def test_what_is_computed_goes_as_what_it_is_made_of(
    primitive: str, args: tuple[Operand, ...], way: int | None
) -> None:
    assert _way(primitive, *args) == way


def test_what_a_loop_does_not_compute_stays() -> None:
    assert _slopes().of(STAYS) == 0
    assert _slopes().of(Literal(7, i64)) == 0


@pytest.mark.parametrize(
    ("primitive", "args", "end"),
    [
        ("greater", (UP, STAYS), 1), ("greater_equal", (STAYS, UP), 0), ("less", (UP, STAYS), 0),
        ("less_equal", (DOWN, STAYS), 1), ("greater", (DOWN, UP), 0), ("less", (UP, UP), None),
        ("greater", (UP, UNKNOWN), None), ("equal", (UP, STAYS), None),
    ],
)  # fmt: skip
def test_a_comparison_is_asked_where_it_would_be_true_first(
    primitive: str, args: tuple[Operand, ...], end: int | None
) -> None:
    assert _end(primitive, *args) == end
