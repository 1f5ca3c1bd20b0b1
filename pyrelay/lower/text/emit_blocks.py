"""Loops of a kernel that the threads of a GPU's block share, in CUDA C++.

In: such loops, as `cooperation` and `column_blocks` tell them. Out: lines of `emit_cuda`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import Body, For, Local, LocalArray, Store, statements
from pyrelay.lower.kernels.reductions import identity
from pyrelay.lower.passes.column_blocks import ColumnBlocks
from pyrelay.lower.passes.cooperation import Cooperation
from pyrelay.lower.text.cuda_numbers import bare, literal
from pyrelay.ops.scalar import SCALARS


class BlockPrinter(ABC):
    """What a printer of kernels knows of the threads of a block."""

    shared: Cooperation | None
    columns: ColumnBlocks | None
    wide: str
    alone: bool
    names: dict[Local | LocalArray, str]
    counts: dict[str, int]
    pending: Any

    @abstractmethod
    def _line(self, text: str, depth: int) -> None:
        """Write a line of the kernel."""

    @abstractmethod
    def _body(self, body: Body, depth: int) -> None:
        """Write statements."""

    @abstractmethod
    def _type(self, local: Local) -> str:
        """The C++ type of a variable."""

    def _by_columns(self, loop: For, index: str, first: str, last: str, depth: int) -> bool:
        """Writes a loop over columns, or over rows that the lanes of a block share."""
        assert self.columns is not None
        kind = self._type(loop.index)
        if loop in self.columns.columns:
            self.wide = f"pyrelay_wide({last})"
            self._line("{", depth)
            self._line(f"const {kind} {index} = threadIdx.x % {self.wide};", depth + 1)
            self._line(f"if ({index} < {last}) {{", depth + 1)
            self._body(loop.body, depth + 2)
            self._line("}", depth + 1)
            self._line("}", depth)
            return True
        if loop not in self.columns.rows:
            return False
        inner = next(s for s in loop.body if isinstance(s, For))
        wide = f"pyrelay_wide({bare(self.pending.take(inner.stop, 0, depth).tree)})"
        shares = self.columns.rows[loop]
        before = []
        for share in shares:
            name, dtype = self.names[share.array], share.array.dtype
            before.append(f"before{self.counts.setdefault('before', 0)}")
            self.counts["before"] += 1
            self._line(f"const {dtype.name} {before[-1]} = {name};", depth)
            self._line(f"{name} = {literal(identity(share.op, dtype), dtype)};", depth)
        lane, lanes = f"threadIdx.x / {wide}", f"BLOCK_THREADS / {wide}"
        self._line(f"for ({kind} {index} = {first} + {lane}; {index} < {last};", depth)
        self._line(f"     {index} += {lanes}) {{", depth)
        self.alone = True
        self._body(loop.body, depth + 1)
        self.alone = False
        self._line("}", depth)
        if loop in self.columns.storing:
            self._line("__syncthreads();", depth)
        for old, share in zip(before, shares, strict=True):
            name, dtype = self.names[share.array], share.array.dtype
            spelling = SCALARS[share.primitive].cuda(dtype)
            combine = _combining(dtype, spelling)
            self._line(f"{name} = pyrelay_of_column({name}, {wide}, {combine});", depth)
            self._line(f"{name} = {bare(spelling.format(old, name))};", depth)
        return True

    def _shared_loop(self, loop: For, index: str, first: str, last: str, depth: int) -> None:
        assert self.shared is not None
        stored = {s.array for s in statements(loop.body) if isinstance(s, Store)}
        if stored & self.shared.read_by_all:
            self._line("__syncthreads();", depth)
        before = []
        for part in self.shared.loops[loop]:
            name, kind = self.names[part.variable], part.variable.dtype
            before.append(f"before{self.counts.setdefault('before', 0)}")
            self.counts["before"] += 1
            self._line(f"const {kind.name} {before[-1]} = {name};", depth)
            self._line(f"{name} = {literal(identity(part.op, kind), kind)};", depth)
        head = f"for ({self._type(loop.index)} {index} = {first} + threadIdx.x; {index} < {last};"
        self._line(f"{head} {index} += BLOCK_THREADS) {{", depth)
        self.alone = True
        self._body(loop.body, depth + 1)
        self.alone = False
        self._line("}", depth)
        for old, part in zip(before, self.shared.loops[loop], strict=True):
            name, kind = self.names[part.variable], part.variable.dtype
            spelling = SCALARS[part.primitive].cuda(kind)
            combine = _combining(kind, spelling)
            self._line(f"{name} = pyrelay_combined({name}, {combine});", depth)
            self._line(f"{name} = {bare(spelling.format(old, name))};", depth)
        if not before:
            self._line("__syncthreads();", depth)


def _combining(dtype: DType, spelling: str) -> str:
    """A function of two elements."""
    return f"[]({dtype.name} a, {dtype.name} b) {{ return {spelling.format('a', 'b')}; }}"
