"""How far a row of a table has to be ahead of the next one, so that both may be filled together.

In: a loop around a loop, and what is known of the integers around it. Out: by how many columns each
row has to lag behind the one before it, and what each round touches of the arrays that are written;
None if rows wait for each other otherwise.

Positions in an array that is written are `a * i + b * j + c` with the same factors everywhere, and
differ by whole steps of both loops: an access at (row, column) touches in round (i, j) what the
first one touches in round (i + row, j + column). Where no row reaches into the next one, two rounds
touch the same element exactly if these sums are equal. What round (i, j) does to an element that
round (i + d, k) touches as well has to be done before: with a lag of L columns for each row it is,
if k - j + d * L >= 0 (loop skewing: Wolfe, "Loop skewing: the wavefront method revisited",
International Journal of Parallel Programming 15, 1986). Where the later round reads what the
earlier one stores, the lag is a column more, so that no row waits for another one in the same step.
An array that all rows go through alike, `a` being zero, is such a table whose rows all meet, and
two arrays that change places after each row are taken for one of that kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.lower.kernels.kernel import (
    SLOT,
    Array,
    Body,
    For,
    Load,
    Local,
    Parameter,
    Pointed,
    Store,
)
from pyrelay.lower.passes.distinct_places import Integers, accesses, linear, may_ask, unknown
from pyrelay.records import dataclass

_MOST_LAG = 4
_MOST_ROWS_OFF, _MOST_COLUMNS_OFF = 3, 4

_Places: TypeAlias = "list[tuple[Load | Store, Extent]]"
_Split: TypeAlias = tuple[Extent, Extent, Extent]


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """A loop whose body is one loop, and what stands in front of that and behind it; and variables
    with the addresses of two arrays that change places behind all that."""

    loop: For
    before: Body
    inner: For
    after: Body
    exchanged: tuple[Local, Local] | None = None

    @property
    def body(self) -> Body:
        """What a row consists of."""
        return (*self.before, self.inner, *self.after)

    def entered(self, around: Integers) -> tuple[Integers, _Places, Integers]:
        """What is known of the integers of a row, the accesses in front of its columns, and what is
        known in a round."""
        row = Integers(around)
        row.enter(self.loop)
        before = list(accesses(self.before, row))
        inside = Integers(row)
        inside.enter(self.inner)
        return row, before, inside


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A load or a store, and which element it touches: in rows and columns from that of the first
    one. In front of the inner loop the column is counted from the first round of that."""

    statement: Load | Store
    row: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """What the inner loop touches of an array that it writes. `flat`: all rows go through it."""

    accesses: list[Access]
    flat: bool


@dataclass(frozen=True, slots=True, eq=False)
class Lags:
    """By how many columns rows lag, the arrays that are written, and sums of extents that must not
    be negative for all that; and loads of each round that find the same in all rows of a column, or
    in all columns of a row."""

    lag: int
    written: list[Touched]
    asked: list[Extent]
    by_column: list[Load]
    by_row: list[Load]


def lags(nest: Nest, around: Integers) -> Lags | None:
    """How rows wait for each other, if a lag is all that they need."""
    outside, before, inside = nest.entered(around)
    body = list(accesses(nest.inner.body, inside))
    after = list(accesses(nest.after, Integers(outside)))
    parts = before, body, after
    written = dict.fromkeys(_array(a, nest) for part in parts for a, _ in part if _is_store(a))
    (i, rows), (j, columns) = outside.steps[-1], inside.steps[-1]
    found, steady = Lags(0, [], [], [], []), around.steady()
    for access, place in body:
        split = _split(place, i, j, steady)
        if split is None or _array(access, nest) in written or isinstance(access.array, Pointed):
            continue
        if isinstance(access, Load) and access in nest.inner.body and 0 in split[:2]:
            (found.by_column if split[1] != 0 else found.by_row).append(access)
    for array in written:
        mine = [[each for each in part if _array(each[0], nest) == array] for part in parts]
        if sum(map(bool, mine)) == 1 and not mine[1]:
            continue  # rows do all of that in their order
        slot = isinstance(array, Parameter) and array.role == SLOT
        if slot or not isinstance(array, (Parameter, tuple)) or not mine[1]:
            return None
        frame = _Frame.of(mine[1][0][1], i, j, steady)
        if frame is None:
            return None
        first, filling, last = (
            frame.accesses(part, i, j, by)
            for part, by in zip(mine, (0, frame.by_column, 0), strict=True)
        )
        if first is None or filling is None or last is None:
            return None
        apart = frame.apart((*first, *filling, *last), rows, columns, around)
        lag = _lag(frame.by_row == 0, first, filling, last)
        if apart is None or lag is None or (isinstance(array, tuple) and frame.by_row != 0):
            return None
        touched = [*found.written, Touched(filling, frame.by_row == 0)]
        asked = [*found.asked, *apart]
        found = replace(found, lag=max(found.lag, lag), written=touched, asked=asked)
    return found if found.lag <= _MOST_LAG else None


def _is_store(access: Load | Store) -> bool:
    return isinstance(access, Store)


def _array(access: Load | Store, nest: Nest) -> Array | tuple[Local, Local]:
    """What is read or written: an array, or one of those that change places."""
    array = access.array
    exchanged = nest.exchanged or ()
    if isinstance(array, Pointed) and array.address in exchanged and nest.exchanged is not None:
        return nest.exchanged
    return array


def _lag(
    flat: bool, first: list[Access], filling: list[Access], last: list[Access]
) -> int | None:  # fmt: skip
    """How far rows have to lag for one array; None if that does not help."""
    lag = 0
    for earlier, later, rows in _meeting(filling, filling, flat):
        flows = isinstance(earlier.statement, Store) and isinstance(later.statement, Load)
        lag = max(lag, -((earlier.column - later.column - flows) // rows))
    for earlier, later, rows in _meeting(filling, first, flat):
        lag = max(lag, -((earlier.column - later.column - 1) // rows))
    return None if any(_meeting(last, [*first, *filling, *last], flat)) else lag


def _meeting(
    earlier: Sequence[Access], later: Sequence[Access], flat: bool
) -> Iterator[tuple[Access, Access, int]]:
    """Pairs of accesses, one of them a store, of which the first touches in a row what the second
    one touches so many rows later; in an array that all rows go through, one row later."""
    for a in earlier:
        for b in later:
            if isinstance(a.statement, Load) and isinstance(b.statement, Load):
                continue
            if flat or a.row > b.row:
                yield a, b, 1 if flat else a.row - b.row


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Positions in an array: how they grow from row to row and from column to column, and that of
    the first access in the first round, which may be made of what is `steady`."""

    by_row: Extent
    by_column: Extent
    first: Extent
    steady: set[Symbol]

    @staticmethod
    def of(place: Extent, i: Symbol, j: Symbol, steady: set[Symbol]) -> _Frame | None:
        """What a position says."""
        split = _split(place, i, j, steady)
        return None if split is None or split[1] == 0 else _Frame(*split, steady)

    def accesses(
        self, places: _Places, i: Symbol, j: Symbol, by_column: Extent
    ) -> list[Access] | None:
        """Accesses at positions, if these differ by rows and columns alone."""
        found = []
        for statement, place in places:
            split = _split(place, i, j, self.steady)
            if split is None or split[:2] != (self.by_row, by_column):
                return None
            steps = self._steps(dims.add(split[2], dims.multiply(-1, self.first)))
            if steps is None:
                return None
            found.append(Access(statement, *steps))
        return found

    def _steps(self, off: Extent) -> tuple[int, int] | None:
        """Rows and columns that make up a difference of positions."""
        most = 0 if self.by_row == 0 else _MOST_ROWS_OFF
        for row in range(-most, most + 1):
            rest = dims.add(off, dims.multiply(-row, self.by_row))
            for column in range(-_MOST_COLUMNS_OFF, _MOST_COLUMNS_OFF + 1):
                if rest == dims.multiply(column, self.by_column):
                    return row, column
        return None

    def apart(
        self, every: Sequence[Access], rows: Sequence[Extent], columns: Sequence[Extent],
        around: Integers,
    ) -> list[Extent] | None:  # fmt: skip
        """What must not be negative for elements of other rows and columns to be other elements;
        None if they may be the same."""
        if self.by_row == 0:
            return []
        if self.by_column in (1, -1):
            off = max(a.column for a in every) - min(a.column for a in every)
            return _exceeds(self.by_row, columns, off, around)
        if self.by_row in (1, -1):
            off = max(a.row for a in every) - min(a.row for a in every)
            return _exceeds(self.by_column, rows, off, around)
        return None


def _exceeds(
    stride: Extent, last: Sequence[Extent], off: int, around: Integers
) -> list[Extent] | None:
    """What must not be negative for a stride, whatever its sign, to be more than the last of the
    rounds inside it and some elements more; None if that cannot be asked."""
    needed = [
        dims.add(dims.multiply(sign, stride), dims.add(-1 - off, dims.multiply(-1, each)))
        for each in last
        for sign in (1, -1)
    ]
    if any(map(dims.non_negative, needed)):
        return []
    return next(
        ([each] for each in needed if may_ask(each, around) or _is_of_others(each, around)), None
    )


def _is_of_others(condition: Extent, around: Integers) -> bool:
    """Whether a sum is one of few integers of which not all are extents."""
    return not around.of_extents(condition) and around.near(condition) is not None


def _split(place: Extent, i: Symbol, j: Symbol, steady: set[Symbol]) -> _Split | None:
    """How a position grows from row to row and from column to column, and where it begins; None if
    it does otherwise, or by what is not known: the beginning may be `steady` all the same."""
    columns = linear(place, j)
    rows = None if columns is None else linear(columns[1], i)
    if rows is None or columns is None or i in dims.symbols(columns[0]):
        return None
    split = rows[0], columns[0], rows[1]
    moving = set(unknown(split[2])) - steady
    return None if any(map(unknown, split[:2])) or moving else split
