"""Launches of kernels through CuPy's binding of the driver.

In: a compiled kernel, for how many items, the words of its parameters, a stream. Out: the launch.

The words lie in a block of memory of each thread's own, behind a table of their addresses that is
made once: CUDA copies what a launch needs from there (NVIDIA, "CUDA Driver API", cuLaunchKernel),
so that nothing is made for a launch. A word is little-endian: a narrow parameter is its beginning.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from typing import Any

from pyrelay.devices.gpu import cuda_diagnosis
from pyrelay.devices.gpu.bounded import Bounded
from pyrelay.devices.gpu.driver import ADDRESS, Ready, Text, block_threads, pack
from pyrelay.devices.gpu.graphs import UnfitError
from pyrelay.devices.gpu.row_geometry import WARP, Limits, Rows, rows_of, shape_of
from pyrelay.devices.runtime.layout import WORD
from pyrelay.records import dataclass

ELEMENT_THREADS = 256
"""Threads of a block whose items are computed one by one, at most."""

WAVES = 32
"""Blocks for each multiprocessor, at most, of kernels whose threads do items together, which go on
to further items by themselves. Where each thread does its own there is no such bound: as many
blocks as there are elements read memory 5% faster than those that go on (an H200, 4 GB)."""

_ROOM = 128  # words that a thread's block has at first
_MOST_BLOCKS = 2**31 - 1  # of a grid
_NONE = Limits(0, 1024)  # of kernels that do no rows
_ALWAYS = (ADDRESS, "i64", "i64", "i64")  # the record, the launch and the range


@dataclass(frozen=True, slots=True)
class Grid:
    """Blocks, threads of a block side by side and above each other, bytes of shared memory."""

    blocks: int
    threads: int
    beside: int = 1
    shared: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A compiled kernel: its handle, how many threads work on an item together, how many items a
    thread does at once, how many blocks of it may meet, how its words are laid out, which of these
    parameters begin with, if not all (complex128 has two), what is known of its items, how many
    bytes of shared memory a launch has to ask for, what a block that does a row may have, and the
    grids of its launches so far. kernel: what keeps the handle.
    """

    kernel: Any
    handle: int
    together: int
    pack: int
    resident: int
    layout: struct.Struct
    firsts: tuple[int, ...] | None
    rows: Rows | None
    asked: int
    limits: Limits
    grids: Bounded[tuple[int, int], Grid]


def function(
    kernel: Any, text: Text, resident: int, asked: int = 0, limits: Limits = _NONE
) -> Function:
    """A kernel of CuPy's, as it is launched."""
    firsts: list[int] = []
    words = 0
    for kind in (*_ALWAYS, *text.kinds):
        firsts.append(words)
        words += 2 if kind == "c128" else 1
    return Function(
        kernel, int(kernel.ptr), block_threads(text.source), pack(text.source), resident,
        struct.Struct(f"<{words}q"), tuple(firsts) if words > len(firsts) else None,
        rows_of(text.source), asked, limits, Bounded(),
    )


class _Words(threading.local):
    """The block of words of a thread, and the tables of their addresses."""

    def __init__(self, runtime: Any, device: int) -> None:
        runtime.setDevice(device)  # a new thread has no context of CUDA's
        self.room = 0
        self.grow(_ROOM)

    def grow(self, room: int) -> None:
        """Make room for so many words."""
        self.room = room
        self.block = (ctypes.c_int64 * room)()
        self.start = ctypes.addressof(self.block)
        self.tables: dict[tuple[int, ...], Any] = {}
        self.all = self.table(tuple(range(room)))

    def table(self, firsts: tuple[int, ...]) -> int:
        """The address of a table of the addresses of these words."""
        made = self.tables.get(firsts)
        if made is None:
            places = [self.start + WORD * k for k in firsts]
            made = self.tables[firsts] = (ctypes.c_void_p * len(firsts))(*places)
        return ctypes.addressof(made)


class Launches:
    """How kernels are launched on a device of so many multiprocessors."""

    def __init__(self, cupy: Any, device: int, processors: int) -> None:
        self.issue = cupy.cuda.driver.launchKernel
        self.issue_meeting = cupy.cuda.driver.launchCooperativeKernel
        self.own = _Words(cupy.cuda.runtime, device)
        self.processors, self.most_blocks = processors, WAVES * processors

    def launch(self, made: Function, items: int, words: Sequence[int], stream: int) -> None:
        """Run a kernel over some items. Raises DeviceError where CUDA refuses that."""
        rows = made.rows
        elements = 0
        if rows is not None:
            at = rows.word
            elements = rows.elements if at is None else words[len(_ALWAYS) + at]
        grid = made.grids.get((items, elements))
        if grid is None:
            grid = self._grid(made, items, elements)
        table = self._laid_out(made, words)
        try:
            self.issue(
                made.handle, grid.blocks, 1, 1, grid.threads, grid.beside, 1, grid.shared, stream,
                table, 0,
            )
        except RuntimeError as error:
            raise cuda_diagnosis.not_begun(error) from error

    def ready(
        self, made: Function, items: int, words: Sequence[int | None], meeting: int = 0
    ) -> Ready:
        """A launch over some items, or of so many blocks that meet, whose words lie in a block of
        its own; None is put there before each launch. Raises UnfitError where the extent of a row
        is such a word."""
        elements: int | None = 0
        rows = made.rows
        if rows is not None:
            at = rows.word
            elements = rows.elements if at is None else words[len(_ALWAYS) + at]
        if elements is None:
            raise UnfitError
        block = (ctypes.c_int64 * len(words))(*(word or 0 for word in words))
        firsts = made.firsts or range(len(words))
        places = [ctypes.addressof(block) + WORD * k for k in firsts]
        table = (ctypes.c_void_p * len(places))(*places)
        address = ctypes.addressof(table)
        if meeting:
            before = (made.handle, meeting, 1, 1, made.together, 1, 1, 0)
        else:
            grid = made.grids.get((items, elements)) or self._grid(made, items, elements)
            before = (made.handle, grid.blocks, 1, 1, grid.threads, grid.beside, 1, grid.shared)
        if meeting > 1:
            return Ready(block, table, self.issue_meeting, before, (address,))
        return Ready(block, table, self.issue, before, (address, 0))

    def launch_meeting(
        self, made: Function, blocks: int, words: Sequence[int], stream: int
    ) -> None:
        """Run a kernel whose blocks wait for each other: CUDA refuses that where not all fit.

        Raises DeviceError then.
        """
        table = self._laid_out(made, words)
        threads = made.together
        try:
            if blocks > 1:
                self.issue_meeting(
                    made.handle, blocks, 1, 1, threads, 1, 1, 0, stream, table
                )
            else:
                self.issue(made.handle, 1, 1, 1, threads, 1, 1, 0, stream, table, 0)
        except RuntimeError as error:
            raise cuda_diagnosis.not_begun(error) from error

    def _laid_out(self, made: Function, words: Sequence[int]) -> int:
        """Put words where a launch finds them; the address of their table."""
        own = self.own
        if len(words) > own.room:
            own.grow(2 * len(words))
        made.layout.pack_into(own.block, 0, *words)
        return own.all if made.firsts is None else own.table(made.firsts)

    def _grid(self, made: Function, items: int, elements: int) -> Grid:
        """The grid for some items, of so many elements each if that is known."""
        if made.rows is not None:
            shape = shape_of(made.rows, elements, made.limits)
            blocks = min(-(-items // shape.beside), _MOST_BLOCKS)
            grid = Grid(blocks, shape.threads, shape.beside, shape.shared)
        elif made.together:
            grid = Grid(min(items, self.most_blocks), made.together, shared=made.asked)
        else:
            # Few items are spread over all multiprocessors, by whole warps.
            parts = -(-items // made.pack)
            share = -(-parts // (WARP * self.processors)) * WARP
            threads = min(share, ELEMENT_THREADS)
            grid = Grid(min(-(-parts // threads), _MOST_BLOCKS), threads)
        made.grids[items, elements] = grid
        return grid
