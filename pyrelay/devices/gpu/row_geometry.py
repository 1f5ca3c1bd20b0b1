"""How many threads do an item of a kernel whose threads share items, and how many a block has.

In: what a text says of its items (`lower.text.emit_cuda`), how many elements each has. Out: threads
of an item, items of a block, bytes of shared memory that a launch asks for.

Short rows are a warp's each, which needs no barrier, several in a block; of longer ones a thread
has about 32 elements, so that every multiprocessor has several blocks, some of which copy while
others compute. Measured on an H200, rows of 1024 elements take 77 us by warps, 90 by 128 threads
and 138 by 256; rows of 8192 take 81 us by 128, 76 by 256, 86 by 512 and 177 by 1024.
"""

from __future__ import annotations

import functools
import re

from pyrelay.records import dataclass

WARP = 32
BESIDE = 4
"""Rows of warps in a block."""

_WARP_PACKS, _THREAD_PACKS = 8, 8  # of a row, for each thread of a warp, of a block
_FEWEST = 128  # threads of a block that does a row


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


def rows_of(source: str) -> Rows | None:
    """What the text of a kernel says of its items, if it says how long they are."""
    told = re.findall(r"^#define (ROW_\w+|HELD_BYTES) (\d+)$", source, re.MULTILINE)
    found = {name: int(number) for name, number in told}
    if "ROW_PACK" not in found:
        return None
    held = found.get("HELD_BYTES", 0)
    return Rows(found["ROW_PACK"], held, found.get("ROW_WORD"), found.get("ROW_ELEMENTS", 0))


@functools.cache
def shape_of(rows: Rows, elements: int, most_shared: int, most_threads: int) -> RowShape:
    """How items of so many elements are done, with up to so many bytes of shared memory and threads
    of a block."""
    packs = -(-elements // rows.pack)
    held = -(-elements // 64) * 64 * rows.held
    if packs <= WARP * _WARP_PACKS:
        return RowShape(WARP, BESIDE, min(held * BESIDE, most_shared))
    threads = _FEWEST
    while 2 * threads <= most_threads and threads * _THREAD_PACKS < packs:
        threads *= 2
    return RowShape(threads, 1, min(held, most_shared))
