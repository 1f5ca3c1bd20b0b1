"""Which ways a product of some size goes: what decides it, and what will be needed.

In: extents and layouts. Out: names of parts (``made_of.WAYS``) that ``matmul_blocks`` is likely to
call. It decides by the same limits, for the part of the product that a thread is at; what is not
foreseen here is made when it is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyrelay.devices.routines.made_of import WAYS

NARROW_LINE = 2048  # bytes from one row of a to the next, up to which bands are not packed
FEW_ROWS = 16  # of a, for which lines of b that are far apart stream through the cache
FAR_LINE = 512  # bytes from one row of b to the next, beyond which stripes of it are read slowly
STRIPED_ROWS = 64  # of a, for which b is not packed where it stays in the second cache
DOTTED_ROWS = 32  # of a, from which on a few columns of b are laid along k
TURNED_DEPTH = 32  # values of k, from which on sums of few columns are turned at their end
NEAR_BYTES = 1 << 20  # of b: half of a second cache of 2 MiB
DOT_ROWS = 9  # of a, from which on a product with a transposed b is no dot products
ROW_UNIT, COLUMN_UNIT = 256, 32  # rows and columns that threads do not share
_SHARED, _PIECES = 1 << 20, 8  # multiplications from which on threads share a product, in so many
SMALL = 8  # rows and values of k, up to which a stack of products is done one after the other
LOW = 4
"""Rows of a lower tile, for the last few; for as many, vectors of b are read where they are
aligned."""


def ways(
    extents: Sequence[int | None], transpose_a: bool, transpose_b: bool, lanes: int, size: int,
    line: int | None = None,
) -> Iterator[str]:  # fmt: skip
    """Names of parts for m, n, k, of which None is not known: all of them, unless there is a single
    row or column. Elements have ``size`` bytes, vectors ``lanes`` of them; a's rows are ``line``
    apart, or k."""
    m, n, k = extents
    form = transpose_a, transpose_b, lanes, size, line or k or 0
    if m is None or n is None or k is None:
        if m == 1 or n == 1:
            yield _thin(m, n, transpose_a, transpose_b)
        else:
            for names in WAYS.values():
                yield from (name for name in names if name != "panel_row")
        return
    if max(m, k) <= SMALL and n <= lanes and not transpose_b:
        yield "small_stack"
    yield from _part(m, n, k, n, *form)
    if m * n * k >= _SHARED:
        # What a thread does may be some of the columns, of which the last are no whole unit.
        units = -(-n // COLUMN_UNIT)
        last = n - units * (_PIECES - 1) // _PIECES * COLUMN_UNIT
        for columns in (-(-units // _PIECES) * COLUMN_UNIT, last):
            if columns < n:
                yield from _part(m, columns, k, n, *form)
        if m > ROW_UNIT and m % ROW_UNIT:
            yield from _part(m % ROW_UNIT, n, k, n, *form)


def _thin(m: int | None, n: int | None, transpose_a: bool, transpose_b: bool) -> str:
    lines = transpose_a and m != 1 if n == 1 else not transpose_b
    return "vector_lines" if lines else "vector_dots"


def _part(
    m: int, columns: int, k: int, n: int, transpose_a: bool, transpose_b: bool, lanes: int,
    size: int, line: int,
) -> Iterator[str]:  # fmt: skip
    """For m rows by so many columns of a product of n columns."""
    beside = 2 if columns <= 2 else -(-columns // 4) * 4
    fewer = (-(-k // lanes) + 3) * beside < k
    unit = lanes if lanes * size == 64 else 2 * lanes  # three of those are beside each other
    if m == 1 or n == 1:
        yield _thin(m, n, transpose_a, transpose_b)
    elif transpose_b and not transpose_a and m < DOT_ROWS:
        yield "few_rows"
    elif fewer and not transpose_a and m >= DOTTED_ROWS and columns <= lanes:
        yield "column_dots"
    elif transpose_a and columns <= lanes // 2 and m >= DOTTED_ROWS and k >= TURNED_DEPTH:
        yield "turned_tiles"
    elif (
        not transpose_a and not transpose_b and m <= STRIPED_ROWS
        and columns - columns % unit > lanes and k * columns * size <= NEAR_BYTES
    ):  # fmt: skip
        yield "near_rows"
        if columns % unit or m <= LOW:
            yield "in_place"
    elif not transpose_b and n * size > FAR_LINE and m <= FEW_ROWS:
        yield "swept_lines"
    elif transpose_b or (m > FEW_ROWS and n >= 4 * lanes):
        yield "packed_columns"
        near = not transpose_a and line * size <= NARROW_LINE
        yield "near_rows" if near else "packed_rows"
    else:
        yield "in_place"
