"""Loops whose rounds touch nothing of each other's are said to be such.

In: a kernel of a program's loops, for the CPU. Out: its body with innermost loops marked
`independent` that go through rows of the arrays that they write: `a[i, j] -= f * a[k, j]` for all
`j`. Rows that are as long as the array is wide are one row or have no element in common, whichever
rows they are. Compilers compare addresses in front of such a loop, or of the loop around it, where
the rows that it goes through meet: then they make no vectors of it.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    For,
    If,
    Kernel,
    Load,
    Parameter,
    Read,
    Statement,
    Store,
    statements,
)
from pyrelay.lower.passes.distinct_places import (
    Integers,
    Step,
    accesses,
    least,
    linear,
    may_ask,
    unknown,
    with_loops,
)

_MOST_STATEMENTS = 200  # of a round
_MOST_TIMES = 3  # a row's length, as a factor


def with_independent_rounds(kernel: Kernel) -> Body:
    """The body of a kernel with such loops marked."""
    if not kernel.apart or not any(isinstance(s, Store) for s in statements(kernel.body)):
        return kernel.body
    return with_loops(kernel.body, Integers(), _marked)


def _marked(loop: For, around: Integers) -> list[Statement] | None:
    marked = loop.independent or independence(loop, around) == []
    return [replace(loop, independent=True)] if marked else None


def independence(
    loop: For, around: Integers, known: Container[Statement] = ()
) -> list[Extent] | None:
    """What must not be negative for no round of a loop to touch what another one stores, but for
    the loads `known`; None if they may touch it."""
    every = list(statements(loop.body))
    if len(every) > _MOST_STATEMENTS or loop.rescaled is not None or loop.lanes:
        return None
    if not all(isinstance(s, (Compute, Read, Load, Store, Assign, If)) for s in every):
        return None
    written = dict.fromkeys(s.array for s in every if isinstance(s, Store))
    if not written or not all(isinstance(array, Parameter) for array in written):
        return None
    inside = Integers(around)
    inside.enter(loop)
    places = [each for each in accesses(loop.body, inside) if each[0] not in known]
    own, asked = inside.steps[-1], list[Extent]()
    for array in written:
        mine = [place for a, place in places if a.array == array]
        found = _rows(mine, own, around)
        if found is None:
            return None
        asked += found
    return asked


def _rows(places: list[Extent], own: Step, around: Integers) -> list[Extent] | None:
    """What must not be negative for positions to be in rows that are longer than a loop goes round:
    all grow by one from round to round, and differ by whole rows, whatever the rounds are. None if
    they are not in rows."""
    step, last = own
    splits = [linear(place, step) for place in places]
    if any(split is None or split[0] not in (1, -1) for split in splits):
        return None
    starts = [split[1] for split in splits if split is not None]
    if len({split[0] for split in splits if split is not None}) != 1:
        return None
    offs = [dims.add(start, dims.multiply(-1, starts[0])) for start in starts[1:]]
    if not any(map(unknown, starts)) and all(off == 0 for off in offs):
        return []
    for row in _lengths(starts, around):
        whole = all(_whole(each, row) for each in offs)
        if whole and all(_unknown_are_whole(each, row) for each in starts):
            more = (dims.add(row, dims.add(-1, dims.multiply(-1, most))) for most in last)
            longer = [each for extent in more for each in least(extent, around.all_steps())]
            if any(map(dims.non_negative, longer)):
                return []
            return next(([each] for each in longer if may_ask(each, around)), None)
    return None


def _lengths(starts: list[Extent], around: Integers) -> dict[Extent, None]:
    """How long rows may be: by so much positions grow with the indices of outer loops."""
    splits = (linear(start, symbol) for start in starts for symbol, _ in around.all_steps())
    return {split[0]: None for split in splits if split and not isinstance(split[0], int)}


def _whole(extent: Extent, row: Extent) -> bool:
    """Whether an integer is a multiple of a row's length, whatever it is made of."""
    within = set(dims.symbols(row))
    for symbol in dims.symbols(extent):
        if symbol not in within:
            split = linear(extent, symbol)
            if split is None or not _is_times(split[0], row):
                return False
            extent = split[1]
    return _is_times(extent, row)


def _unknown_are_whole(start: Extent, row: Extent) -> bool:
    """Whether what is not known of a position, and may differ from round to round, is rows."""
    splits = (linear(start, symbol) for symbol in unknown(start))
    return all(split is not None and _is_times(split[0], row) for split in splits)


def _is_times(extent: Extent, row: Extent) -> bool:
    factors = range(-_MOST_TIMES, _MOST_TIMES + 1)
    return any(extent == dims.multiply(factor, row) for factor in factors)
