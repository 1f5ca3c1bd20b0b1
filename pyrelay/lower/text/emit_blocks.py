"""Loops of a kernel that the threads of a GPU's block share, in CUDA C++.

In: such loops, as `cooperation` and `column_blocks` tell them. Out: lines of `emit_cuda`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import (
    Body,
    For,
    Load,
    Local,
    LocalArray,
    Operand,
    Parameter,
    Store,
    statements,
)
from pyrelay.lower.kernels.reductions import identity
from pyrelay.lower.passes.column_blocks import ColumnBlocks
from pyrelay.lower.passes.cooperation import Cooperation, Part
from pyrelay.lower.passes.held_rows import HeldRows
from pyrelay.lower.passes.row_packs import START, RowPacks, row_packs
from pyrelay.lower.text.cuda_numbers import bare, literal
from pyrelay.ops.scalar import SCALARS


class BlockPrinter(ABC):
    """What a printer of kernels knows of the threads of a block."""

    shared: Cooperation | None
    columns: ColumnBlocks | None
    wide: str
    alone: bool
    threads: str  # how many threads do an item together
    held: HeldRows | None
    apart: For | None  # the loop over an item's elements, where a block does several items at once
    names: dict[Local | LocalArray, str]
    parameters: dict[Parameter, str]
    lanes: dict[Load | Store, str]
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
            if self.alone:  # the loop over rows has left out the other threads
                self._line("{", depth)
                self._line(f"const {kind} {index} = threadIdx.x % {self.wide};", depth + 1)
                self._body(loop.body, depth + 1)
                self._line("}", depth)
                return True
            self.wide = self._wide(last, depth)
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
        across = bare(self.pending.take(inner.stop, 0, depth).tree)
        wide = self.wide = self._wide(across, depth)
        shares = self.columns.rows[loop]
        before = []
        for share in shares:
            name, dtype = self.names[share.array], share.array.dtype
            before.append(f"before{self.counts.setdefault('before', 0)}")
            self.counts["before"] += 1
            self._line(f"const {dtype.name} {before[-1]} = {name};", depth)
            self._line(f"{name} = {literal(identity(share.op, dtype), dtype)};", depth)
        lane, lanes = f"threadIdx.x / {wide}", f"BLOCK_THREADS / {wide}"
        # Asked once, so that the loads of several rows may be on their way together.
        self._line(f"if (threadIdx.x % {wide} < {across}) {{", depth)
        self._line("#pragma unroll 8", 0)
        self._line(f"for ({kind} {index} = {first} + {lane}; {index} < {last};", depth + 1)
        self._line(f"     {index} += {lanes}) {{", depth + 1)
        self.alone = True
        self._body(loop.body, depth + 2)
        self.alone = False
        self._line("}", depth + 1)
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

    def _wide(self, columns: str, depth: int) -> str:
        """How many threads stand side by side along columns: a name."""
        name = f"wide{self.counts.setdefault('wide', 0)}"
        self.counts["wide"] += 1
        self._line(f"const int {name} = pyrelay_wide({columns});", depth)
        return name

    def _shared_loop(self, loop: For, index: str, first: str, last: str, depth: int) -> None:
        assert self.shared is not None
        stored = {s.array for s in statements(loop.body) if isinstance(s, Store)}
        if stored & self.shared.read_by_all:
            self._line("pyrelay_item_meets();", depth)
        before = self._parts_begin(self.shared.loops[loop], depth)
        found = row_packs(loop)
        self.alone = True
        if found is None:
            head = f"for ({self._type(loop.index)} {index} = {first} + {self._lane(loop)};"
            self._line(f"{head} {index} < {last}; {index} += {self._lanes(loop)}) {{", depth)
            self._body(loop.body, depth + 1)
            self._line("}", depth)
        else:
            self._by_packs(found, loop, index, first, last, depth)
        self.alone = False
        self._parts_end(self.shared.loops[loop], before, depth)
        met = loop in self.shared.met_around or loop is self.apart
        if stored and not before and not met:
            self._line("pyrelay_item_meets();", depth)

    def _lane(self, loop: For) -> str:
        """Which of the threads that share a loop a thread is."""
        return "threadIdx.x % lanes" if loop is self.apart else "threadIdx.x"

    def _lanes(self, loop: For) -> str:
        """How many threads share a loop."""
        return "lanes" if loop is self.apart else self.threads

    def _parts_begin(self, parts: Sequence[Part], depth: int) -> list[str]:
        """Has each thread begin with nothing; the names of what was there before."""
        before = []
        for part in parts:
            name, kind = self.names[part.variable], part.variable.dtype
            before.append(f"before{self.counts.setdefault('before', 0)}")
            self.counts["before"] += 1
            self._line(f"const {kind.name} {before[-1]} = {name};", depth)
            self._line(f"{name} = {literal(identity(part.op, kind), kind)};", depth)
        return before

    def _parts_end(self, parts: Sequence[Part], before: Sequence[str], depth: int) -> None:
        """Combines what the threads have."""
        own: dict[Local, str] = {}
        for relative in dict.fromkeys(p.relative for p in parts if p.relative is not None):
            own[relative] = f"own{self.counts.setdefault('own', 0)}"
            self.counts["own"] += 1
            self._line(
                f"const {relative.dtype.name} {own[relative]} = {self.names[relative]};", depth
            )
        for old, part in zip(before, parts, strict=True):
            name, kind = self.names[part.variable], part.variable.dtype
            if part.relative is not None:
                mine, all_of = own[part.relative], self.names[part.relative]
                power = SCALARS["exp"].cuda(part.relative.dtype).format(f"({mine} - {all_of})")
                nothing = literal(identity("add", kind), kind)
                made = f"{name} = {nothing if part.counts else f'{name} * {kind.name}({power})'};"
                self._line(f"if ({mine} != {all_of}) {made}", depth)
            spelling = SCALARS[part.primitive].cuda(kind)
            combine = _combining(kind, spelling)
            self._line(f"{name} = pyrelay_combined({name}, {combine});", depth)
            self._line(f"{name} = {bare(spelling.format(old, name))};", depth)

    def _by_packs(
        self, found: RowPacks, loop: For, index: str, first: str, last: str, depth: int
    ) -> None:
        """The rounds of a loop that is shared, several at a time where addresses allow it: a
        function of how many, whose body stands in the text once."""
        kind, number = self._type(loop.index), self.counts.setdefault("round", 0)
        self.counts["round"] += 1

        def place(base: Operand) -> str:
            return "" if base is START else f"{self.pending.take(base, 0, depth).tree} + "

        at = {s: place(base) for s, (_, base) in (*found.loads.items(), *found.stores.items())}
        arrays = {
            s: self.parameters[a] for s, (a, _) in (*found.loads.items(), *found.stores.items())
        }
        packs = f"pack{number}"
        held = {} if self.held is None else {p: k for k, p in enumerate(self.held.places)}
        self._line(f"const auto take{number} = [&](auto together, const {kind} {packs}) {{", depth)
        self._line("constexpr int N = decltype(together)::N;", depth + 1)
        types, taken = [], []
        for each, (load, found_at) in enumerate(found.loads.items()):
            self.lanes[load] = f"in.in{each}.at[lane]"
            types.append(f"pyrelay_pack<{load.array.dtype.name}, N> in{each};")
            taken.append(f"pyrelay_together<N>({arrays[load]}, {at[load]}{packs})")
            if found_at in held:
                given = f"row{held[found_at]}, {packs}, {arrays[load]}, {at[load]}{packs}"
                taken[-1] = f"pyrelay_of_row<N>({given})"
        self._line(f"struct {{ {' '.join(types)} }} in = {{", depth + 1)
        for text in taken:
            self._line(f"{text},", depth + 2)
        self._line("};", depth + 1)
        self._line("return in;", depth + 1)
        self._line("};", depth)
        given = f"auto together, const {kind} {packs}, const auto &in"
        self._line(f"const auto round{number} = [&]({given}) {{", depth)
        self._line("constexpr int N = decltype(together)::N;", depth + 1)
        for each, (store, (array, _)) in enumerate(found.stores.items()):
            self.lanes[store] = f"out{each}.at[lane]"
            self._line(f"pyrelay_pack<{array.dtype.name}, N> out{each};", depth + 1)
        self._line("#pragma unroll", 0)
        self._line("for (int lane = 0; lane < N; lane++) {", depth + 1)
        self._line(f"const {kind} {index} = {packs} + lane;", depth + 2)
        self._body(loop.body, depth + 2)
        self._line("}", depth + 1)
        for each, store in enumerate(found.stores):
            put = f"pyrelay_put_together({arrays[store]}, {at[store]}{packs}, out{each});"
            self._line(put, depth + 1)
        self._line("};", depth)
        count = found.count
        start = f"{kind}({first})"
        wanted = {f"pyrelay_lined_up<{count}>({at[s]}{start}, {arrays[s]})" for s in at}
        ahead = 1 if any(p in held for p in found.loads.values()) else found.ahead
        self._line(f"pyrelay_rounds<{count}, {ahead}>(", depth)
        for fits in (f"({last} - {start}) % {count} == 0", *sorted(wanted)[:-1]):
            self._line(f"{fits} &&", depth + 1)
        self._line(f"{sorted(wanted)[-1]},", depth + 1)
        threads = f"{self._lane(loop)}, {self._lanes(loop)}"
        self._line(f"{start}, {last}, {threads}, take{number}, round{number});", depth + 1)

    def _hold(self, held: HeldRows, depth: int) -> None:
        """Begins to copy what is held, and waits for it."""
        self._line("pyrelay_item_meets();", depth)  # nobody reads what was held before
        length = bare(self.pending.take(held.length, 0, depth).tree)
        before = 0
        for number, (array, base) in enumerate(held.places):
            begin = bare(self.pending.take(base, 0, depth).tree)
            room = f"pyrelay_room<{array.dtype.name}>({held.nbytes}, {before})"
            given = f"{room}, {self.parameters[array]}, {begin}, {length}"
            self._line(f"const auto row{number} = pyrelay_hold({given});", depth)
            before += array.dtype.size
        self._line("pyrelay_fetch_group();", depth)
        self._line("pyrelay_fetched<0>();", depth)
        self._line("pyrelay_item_meets();", depth)


def _combining(dtype: DType, spelling: str) -> str:
    """A function of two elements."""
    return f"[]({dtype.name} a, {dtype.name} b) {{ return {spelling.format('a', 'b')}; }}"
