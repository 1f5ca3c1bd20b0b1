"""How far rows lag behind each other, and what of a table has to be asked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyrelay.ir.types import f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
    Body,
    Compute,
    For,
    Literal,
    Load,
    Local,
    Parameter,
    Read,
    Statement,
    Store,
)
from pyrelay.lower.passes.distinct_places import Integers
from pyrelay.lower.passes.row_lags import Lags, Nest, lags

TABLE = Parameter(ARRAY, 0, f64)
ROWS, COLUMNS, OTHER = (Parameter(EXTENT, k, i64) for k in (1, 2, 3))
_Place = tuple[int, int]


def number(value: int) -> Literal:
    return Literal(value, i64)


class Text:
    """A nest over all rows and columns but the outer ones."""

    def __init__(self, stride: Parameter) -> None:
        self.integers = Integers()
        self.n, self.m, self.stride = Local(i64), Local(i64), Local(i64)
        self.last_row, self.last_column = Local(i64), Local(i64)
        head: list[Statement] = [Read(self.n, ROWS), Read(self.m, COLUMNS)]
        if stride is COLUMNS:
            self.stride = self.m
        else:
            head.append(Read(self.stride, stride))
        head += [
            Compute(self.last_row, "add", (self.n, number(-2))),
            Compute(self.last_column, "add", (self.m, number(-4))),
        ]
        for statement in head:
            self.integers.note(statement)
        self.i, self.j = Local(i64), Local(i64)

    def place(self, row: int, column: int, out: list[Statement], *, flat: bool) -> Local:
        """Where the element lies that is so many rows and columns off."""
        i, start, j, at = Local(i64), Local(i64), Local(i64), Local(i64)
        out.append(Compute(i, "add", (self.i, number(row))))
        out.append(Compute(start, "multiply", (i, number(0) if flat else self.stride)))
        out.append(Compute(j, "add", (self.j, number(column))))
        out.append(Compute(at, "add", (start, j)))
        return at

    def lags(self, loads: Sequence[_Place], stores: Sequence[_Place], *, flat: bool) -> Lags | None:
        """Of rounds with these loads, and then these stores."""
        out: list[Statement] = []
        for place in loads:
            out.append(Load(Local(f64), TABLE, self.place(*place, out, flat=flat), False))
        for place in stores:
            index = self.place(*place, out, flat=flat)
            out.append(Store(TABLE, index, Literal(0.0, f64), False))
        body: Body = tuple(out)
        inner = For(self.j, number(2), self.last_column, body)
        rows = For(self.i, number(1), self.last_row, (inner,))
        return lags(Nest(rows, (), inner, ()), self.integers)


@pytest.mark.parametrize(
    ("loads", "lag"),
    [
        ([(0, -1)], 0),
        ([(-1, 0), (0, -1)], 1),
        ([(-1, -1)], 0),  # it is there a column before
        ([(-1, 1)], 2),
        ([(1, 1)], 0),
        ([(1, -1)], 1),  # it has to be read before the next row replaces it
        ([(-2, 2)], 2),
        ([(-2, 1)], 1),
        ([(-1, 2)], 3),
        ([(-1, 4)], None),
        ([(-1, 9)], None),
    ],
)
def test_lags_of_tables(loads: list[_Place], lag: int | None) -> None:
    found = Text(COLUMNS).lags(loads, [(0, 0)], flat=False)
    assert (None if found is None else found.lag) == lag
    assert found is None or not found.asked


def test_rows_that_all_go_through_one_line() -> None:
    for loads, lag in [([(0, -1)], 1), ([(0, 0)], 1), ([(0, 1)], 2)]:
        found = Text(COLUMNS).lags(loads, [(0, 0)], flat=True)
        assert found is not None
        assert found.lag == lag


def test_several_stores() -> None:
    stores = [(0, 0), (0, 1), (1, -1), (1, 0), (1, 1)]
    found = Text(COLUMNS).lags([(0, 0), (0, 1)], stores, flat=False)
    assert found is not None
    assert found.lag == 3


def test_a_table_of_unknown_width_is_asked() -> None:
    found = Text(OTHER).lags([(-1, 0)], [(0, 0)], flat=False)
    assert found is not None
    assert len(found.asked) == 1
