"""Loops over the range of a kernel, in CUDA C++.

In: how the threads of a GPU go through the items of a kernel: one by one, by packs of neighbours,
by blocks, or each block those elements that it owns (`devices.gpu.ownership`). Out: lines of
`emit_cuda`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from pyrelay.lower.kernels.kernel import Body, For, Kernel, Local, Parameter
from pyrelay.lower.passes.packs import Packs
from pyrelay.lower.passes.row_packs import row_packs
from pyrelay.lower.text.cuda_numbers import bare
from pyrelay.lower.text.emit_blocks import BlockPrinter
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Elements:
    """A kernel whose elements are dealt out one by one: the loop over the columns of an item, None
    where an item is an element."""

    column: For | None


class RangePrinter(BlockPrinter):
    """What a printer of kernels knows of their range."""

    kernel: Kernel
    body: Body
    parameters: dict[Parameter, str]
    small: frozenset[Local]
    packed: Packs | None
    owned: Elements | None
    out: Any

    @abstractmethod
    def _one(self) -> Any:
        """A printer of the same kernel that does one item."""

    def _range(self) -> None:
        """The head of the loop over items, and what comes before it."""
        thread = "(i64)blockIdx.x * blockDim.x + threadIdx.x"
        step = "(i64)gridDim.x * blockDim.x"
        if self.apart is not None:
            found = row_packs(self.apart)
            stop = self.pending.take(self.apart.stop, 0, 1).tree
            each = 1 if found is None else found.count
            self._line(f"const int lanes = pyrelay_lanes<{each}, BLOCK_THREADS>({bare(stop)});", 1)
            rows = "(BLOCK_THREADS / lanes)"
            thread = f"(i64)blockIdx.x * {rows} + threadIdx.x / lanes"
            step = f"(i64)gridDim.x * {rows}"
        elif self.threads == "blockDim.x":
            thread = "(i64)blockIdx.x * blockDim.y + threadIdx.y"
            step = "(i64)gridDim.x * blockDim.y"
        elif self.shared is not None or self.columns is not None:
            thread, step = "blockIdx.x", "gridDim.x"
        if self.owned is not None:
            self._line("for (Index cell = own.begin(); cell < line.end;", 1)
            self._line("     cell += own.step()) {", 1)
            self._line("const pyrelay_place at = own.at(cell, line);", 2)
            self._line("if (!at.is) continue;", 2)
            by_row = self.owned.column is not None
            item = "at.row" if by_row else "at.row * line.count + at.column"
            self._line(f"const i64 begin = {item};", 2)
        elif self.packed is None:
            self._line(f"for (i64 begin = first + {thread};", 1)
            self._line(f"     begin < last; begin += {step}) {{", 1)
        else:
            self._line(f"const i64 thread = {thread};", 1)
            self._line(f"const i64 threads = {step};", 1)
            self._packs(self.packed)

    def _packs(self, found: Packs) -> None:
        """The loop over packs, and the head of one over the elements before and behind them."""
        count = found.count
        arrays = ", ".join(self.parameters[array] for array in found.arrays)
        self._line(f"const i64 head = pyrelay_head<{count}>(first, last, {arrays});", 1)
        self._line(f"const i64 packs = (last - head) / {count};", 1)
        self._line("for (i64 pack = thread; pack < packs; pack += threads) {", 1)
        self._line(f"const i64 start = head + pack * {count};", 2)
        lanes = self._one()
        for number, (load, array) in enumerate(found.loads.items()):
            lanes.lanes[load] = f"in{number}.at[lane]"
            taken = f"pyrelay_together<{count}>({self.parameters[array]}, start)"
            self._line(f"const auto in{number} = {taken};", 2)
        for number, (store, array) in enumerate(found.stores.items()):
            lanes.lanes[store] = f"out{number}.at[lane]"
            self._line(f"pyrelay_pack<{array.dtype.name}, {count}> out{number};", 2)
        self._line("#pragma unroll", 0)
        self._line(f"for (int lane = 0; lane < {count}; lane++) {{", 2)
        self._line("const i64 begin = start + lane;", 3)
        for each in lanes.declared:
            self._line(each, 3)
        lanes._body(self.body, 3)
        self.out.write(lanes.out.getvalue())
        self._line("}", 2)
        for number, array in enumerate(found.stores.values()):
            name = self.parameters[array]
            self._line(f"pyrelay_put_together({name}, start, out{number});", 2)
        self._line("}", 1)
        self._line(f"const i64 before = head - first, inside = packs * {count};", 1)
        self._line("for (i64 k = thread; k < last - first - inside; k += threads) {", 1)
        self._line("const i64 begin = first + k + (k < before ? 0 : inside);", 2)
