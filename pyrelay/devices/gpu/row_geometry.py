"""How many threads do an item of a kernel whose threads share items, and how many a block has.

In: what a text says of its items (`lower.text.emit_cuda`), how many elements each has. Out: threads
of an item, items of a block, bytes of shared memory that a launch asks for.

Short rows are a warp's each, which needs no barrier, several in a block; of longer ones a thread
has about 32 elements, so that every multiprocessor has several blocks, some of which copy while
others compute. Measured on an H200, rows of 1024 elements take 77 us by warps, 90 by 128 threads
and 138 by 256; rows of 8192 take 81 us by 128, 76 by 256, 86 by 512 and 177 by 1024.

A block that takes all registers or the shared memory of a multiprocessor is alone there: while it
computes and stores, nothing is loaded. So rows have no more than half of both where that leaves out
little of a row, which is read again, out of the cache.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from pyrelay.records import dataclass

WARP = 32
BESIDE = 4
"""Rows of warps in a block."""

_WARP_PACKS, _THREAD_PACKS = 8, 8  # of a row, for each thread of a warp, of a block
_FEWEST = 128  # threads of a block that does a row
_AGAIN = 16 << 10
"""Bytes of a row that two blocks of a multiprocessor leave out, at most: of all blocks that run at
the same time these are a tenth of what the cache holds (4.3 MB of 50 on an H200)."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Items of a kernel: how many elements a thread takes at once, bytes of an element that are
    held, and which word of a launch says how many elements there are, or the number itself."""

    pack: int
    held: int
    word: int | None
    elements: int


@dataclass(frozen=True, slots=True)
class RowShape:
    """Threads of an item, items of a block, bytes of shared memory."""

    threads: int
    beside: int
    shared: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What a block that does a row may have: bytes of shared memory and threads. half, pair: of
    these as much and as many as leave room for two blocks on a multiprocessor, 0 where there is
    none."""

    shared: int
    threads: int
    half: int = 0
    pair: int = 0


def rows_of(source: str) -> Rows | None:
    """What the text of a kernel says of its items, if it says how long they are."""
    told = re.findall(r"^#define (ROW_\w+|HELD_BYTES) (\d+)$", source, re.MULTILINE)
    found = {name: int(number) for name, number in told}
    if "ROW_PACK" not in found:
        return None
    held = found.get("HELD_BYTES", 0)
    return Rows(found["ROW_PACK"], held, found.get("ROW_WORD"), found.get("ROW_ELEMENTS", 0))


@functools.cache
def shape_of(rows: Rows, elements: int, limits: Limits) -> RowShape:
    """How items of so many elements are done."""
    packs = -(-elements // rows.pack)
    held = -(-elements // 64) * 64 * rows.held
    if packs <= WARP * _WARP_PACKS:
        return RowShape(WARP, BESIDE, min(held * BESIDE, limits.shared))
    threads = _FEWEST
    while 2 * threads <= limits.threads and threads * _THREAD_PACKS < packs:
        threads *= 2
    if limits.pair and held <= limits.half + _AGAIN:
        return RowShape(min(threads, limits.pair), 1, min(held, limits.half))
    return RowShape(threads, 1, min(held, limits.shared))


def pair_of(fits: Callable[[int], bool], most: int) -> int:
    """How many threads each of two blocks of a multiprocessor may have, by what the driver says of
    so many: a power of two, or 0 where not even few do."""
    threads = _FEWEST
    while 2 * threads <= most:
        threads *= 2
    while threads >= _FEWEST:
        if fits(threads):
            return threads
        threads //= 2
    return 0
