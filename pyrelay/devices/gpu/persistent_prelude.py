"""What kernels of loops are written with, in CUDA C++: the arena, meetings of blocks.

In: nothing. Out: `SUPPORT`, which stands before the phases of such a kernel and behind
`cuda_prelude`.

Blocks meet by counting arrivals in a word that is zero when the kernel begins; only a launch whose
blocks all run at the same time may do that (cooperative launches). What a thread has written before
is seen by all behind it: one thread of a block releases it with its arrival, and acquires what the
others have released, for its block, whose barriers order the rest before and after it (Xiao and
Feng, "Inter-block GPU communication via fast barrier synchronization", 2010; NVIDIA, "PTX ISA",
Memory Consistency Model: causality order).

Blocks that share rows meet without the others where no others use what they do (`row_groups`): a
group counts its arrivals in a word of its own, in a line of the cache of its own.

Blocks leave together: a block that has seen a failure says so where it arrives, in one of two words
that take turns, so that nobody has gone on to the next meeting but one before all have read it.
"""

from __future__ import annotations

THREADS = 256
"""Threads of a block."""

CELL = 16
"""Bytes of a scalar in the arena, and of what blocks meet by, which stands at its beginning."""

MOST_DOWN = 16
"""Groups of blocks that share rows, at most."""

APART = 128
"""Bytes from the word of one such group to that of the next: a line of the cache."""

GROUPS = APART * MOST_DOWN
"""Bytes behind the scalars in the arena, by which these groups meet."""

ALIGNED = 256
"""Bytes that buffers of the arena are multiples of."""

PLAIN, LOOK, ASK = 0, 1, 2
"""What a meeting looks at: nothing, whether a launch has failed, whether the host wants an end."""


def index_type(small: bool) -> str:
    """The type of numbers of elements in phases: `Index`."""
    return f"typedef {'i32' if small else 'i64'} Index;"


def meeting(look: int = PLAIN, between: str = "", who: str = "grid") -> str:
    """All threads wait for each other, or those of `group`, blocks that share rows; true if they
    are to leave. `between` is called by those of several blocks when they have arrived."""
    more = f", {between}" if between else ""
    return f"pyrelay_meet({who}, record, launch, {look}{more})"


SUPPORT = r"""
template <class T> __device__ T pyrelay_scalar(i64 low, i64 high) {
    const i64 words[2] = {low, high};
    return pyrelay_words<T>::read(words);
}
// The first idle buffer of those that a mask tells.
__device__ i64 pyrelay_take(u64 &used, i64 base, i64 step, i64 nbytes) {
    const int k = __ffsll((long long)~used) - 1;
    used |= 1ull << k;
    PYRELAY_TAKEN(base + k * step, nbytes);
    return base + k * step;
}
// The number of a buffer is small, so that its quotient of floats is rounded to it.
__device__ void pyrelay_give(u64 &used, i64 base, f32 each, int chunks, i64 address) {
    const f32 number = (f32)((u64)(address - base) / ALIGNED) * each;
    if (address >= base && number < chunks - 0.5f) used &= ~(1ull << (int)(number + 0.5f));
}
// All threads of the grid copy or fill together.
__device__ void pyrelay_copy(i64 target, i64 source, i64 nbytes) {
    typedef pyrelay_pack<u64, 2> Pack;
    if (target == source || source == 0) return;
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    const i64 threads = (i64)gridDim.x * blockDim.x;
    const i64 packs = (target | source) % sizeof(Pack) == 0 ? nbytes / (i64)sizeof(Pack) : 0;
    for (i64 k = thread; k < packs; k += threads) ((Pack *)target)[k] = ((const Pack *)source)[k];
    for (i64 k = packs * (i64)sizeof(Pack) + thread; k < nbytes; k += threads) {
        ((u8 *)target)[k] = ((const u8 *)source)[k];
    }
}
__device__ void pyrelay_zero(i64 target, i64 nbytes) {
    typedef pyrelay_pack<u64, 2> Pack;
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    const i64 threads = (i64)gridDim.x * blockDim.x;
    const i64 packs = target % sizeof(Pack) == 0 ? nbytes / (i64)sizeof(Pack) : 0;
    for (i64 k = thread; k < packs; k += threads) ((Pack *)target)[k] = Pack{{0ull, 0ull}};
    for (i64 k = packs * (i64)sizeof(Pack) + thread; k < nbytes; k += threads) {
        ((u8 *)target)[k] = 0;
    }
}
// A thread for itself: what stands in the place of the numbers of threads in kernels of scalars.
struct pyrelay_alone { int x; };

// words: how many have arrived, and in turns whether they are to leave. met: meetings so far.
// blocks: how many meet.
struct pyrelay_meeting { u32 *words, met, blocks; };
__device__ bool pyrelay_leaves(pyrelay_record *record, i64 launch, int look) {
    if (launch != 0 && *(volatile i64 *)&record->status != 0) return true;
    int due = 0xfffff;
    return look == 2 && pyrelay_stopped(record, due);
}
// All threads of some blocks wait for each other; true for all of them if they are to leave, which
// those of the whole grid may be. `look`: 0 for no such thing, 1 if a launch may have failed, 2 if
// the host is to be asked too. `between`: what threads of several blocks do in the meantime.
template <class Between> __device__ bool pyrelay_meet(
    pyrelay_meeting &grid, pyrelay_record *record, i64 launch, int look, Between between
) {
    const u32 goal = ++grid.met * grid.blocks;
    __syncthreads();
    if (grid.blocks == 1 && look == 0) return false;
    int over = 0;
    u32 *flag = grid.words + 1 + (grid.met & 1);
    if (threadIdx.x == 0) {
        if (look != 0) over = pyrelay_leaves(record, launch, look);
        if (grid.blocks > 1) {
            if (over) atomicExch(flag, 1u);
            pyrelay_arrive(grid.words);
        }
    }
    if (grid.blocks > 1) between();
    if (threadIdx.x == 0 && grid.blocks > 1) {
        while ((i32)(pyrelay_arrived(grid.words) - goal) < 0) PYRELAY_PAUSE();
        if (look != 0) over = *(volatile u32 *)flag != 0;
    }
    if (look == 0) {
        __syncthreads();
        return false;
    }
    return __syncthreads_or(over) != 0;
}
__device__ bool pyrelay_meet(
    pyrelay_meeting &grid, pyrelay_record *record, i64 launch, int look
) {
    return pyrelay_meet(grid, record, launch, look, [] {});
}
""".replace("ALIGNED", str(ALIGNED))

OWNING = r"""
// Division of numbers from 0 on by one that stays the same: by 32 bits of its inverse where both
// have 16 (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994).
struct pyrelay_divisor {
    Index by;
    u32 inverse;
    __device__ Index of(Index number) const {
        if (by == 1) return number;
        return inverse != 0 ? (Index)((u64)(u32)number * inverse >> 32) : number / by;
    }
};
__device__ pyrelay_divisor pyrelay_divides(Index by, Index most) {
    const bool small = by > 1 && by < 65536 && most < 65536;
    return {by < 1 ? 1 : by, small ? 0xffffffffu / (u32)by + 1 : 0u};
}
struct pyrelay_place { Index row, column; bool is; };
// The elements of a phase: columns of a row, runs of them that are a block's, its columns and its
// elements, or where those of all end.
struct pyrelay_line {
    Index count;
    int groups, each;
    Index end;
    pyrelay_divisor rows, runs;
};
// Which elements are the block's: `deep` rows from `row` on, `wide` columns from `column` on, and
// those that are a multiple of `units` further. Elsewhere threads of the grid take turns.
struct pyrelay_own {
    int rows, units, deep, wide, row, column, down, across;
    bool on;
    __device__ Index begin() const {
        return on ? threadIdx.x : (Index)blockIdx.x * blockDim.x + threadIdx.x;
    }
    __device__ Index step() const { return on ? blockDim.x : (Index)gridDim.x * blockDim.x; }
    __device__ int groups(Index line) const {
        return line == units ? 1 : ((int)line + units - 1) / units;
    }
    __device__ pyrelay_line line(Index count, Index columns) const {
        const int runs = groups(columns), each = wide * runs;
        const Index end = on ? (Index)(deep * each) : count * columns;
        const Index length = on ? (Index)each : columns;
        return {
            columns, runs, each, end, pyrelay_divides(length, end), pyrelay_divides(wide, each)
        };
    }
    __device__ pyrelay_place at(Index cell, const pyrelay_line &line) const {
        const Index r = cell < line.rows.by ? 0 : line.rows.of(cell);
        const Index rest = cell - r * line.rows.by;
        if (!on) return {r, rest, true};
        const int group = line.groups == 1 ? 0 : (int)line.runs.of(rest);
        const int own = column + (int)rest - group * wide, found = group * units + own;
        return {row + r, found, own < units && found < line.count};
    }
};
template <class T> __device__ void pyrelay_copy_owned(
    const pyrelay_own &own, const pyrelay_line &line, i64 target, i64 source
) {
    if (target == source || source == 0) return;
    for (Index cell = own.begin(); cell < line.end; cell += own.step()) {
        const pyrelay_place at = own.at(cell, line);
        const Index e = at.row * line.count + at.column;
        if (at.is) ((T *)target)[e] = ((const T *)source)[e];
    }
}
template <class T> __device__ void pyrelay_zero_owned(
    const pyrelay_own &own, const pyrelay_line &line, i64 target
) {
    for (Index cell = own.begin(); cell < line.end; cell += own.step()) {
        const pyrelay_place at = own.at(cell, line);
        if (at.is) ((T *)target)[at.row * line.count + at.column] = T();
    }
}
// Rows and columns for each block so that what it reads in a round is least: `depth` elements for
// each row, `weights` for each column, unless it keeps so many.
__device__ pyrelay_own pyrelay_own_of(
    i64 rows, i64 units, i64 depth, i64 weights, i64 room, bool holds
) {
    pyrelay_own own = {0, 1, 0, 0, 0, 0, 1, 1, false};
    if (!holds || rows < 1 || units < 1) return own;
    own.on = true, own.rows = (int)rows, own.units = (int)units;
    i64 least = -1;
    for (int down = 1; down <= MOST_DOWN && down <= (int)gridDim.x; down *= 2) {
        if (down > 1 && (down - 1) * 8 >= rows) break;
        const int most = (int)gridDim.x / down;
        const int deep = (int)((rows + down - 1) / down), wide = (int)((units + most - 1) / most);
        const i64 reads = deep * depth + (wide * weights <= room ? 0 : wide * weights);
        if (least < 0 || reads < least) least = reads, own.deep = deep, own.wide = wide;
    }
    own.across = (own.units + own.wide - 1) / own.wide;
    own.down = (own.rows + own.deep - 1) / own.deep;
    own.column = (int)blockIdx.x % own.across * own.wide;
    own.row = (int)blockIdx.x / own.across * own.deep;
    const int left = own.rows - own.row;
    const bool some = own.rows % own.deep != 0 && left < own.deep;
    own.deep = left <= 0 ? 0 : some ? left : own.deep;
    return own;
}
// The blocks that own elements of the same rows; one that owns none waits for nobody. All where
// blocks own nothing. words: those of the first group.
__device__ pyrelay_meeting pyrelay_group(const pyrelay_own &own, u32 *words) {
    if (!own.on) return {words, 0u, (u32)gridDim.x};
    const int group = (int)blockIdx.x / own.across;
    if (group >= own.down) return {words, 0u, 1u};
    return {words + group * (APART / 4), 0u, (u32)own.across};
}
""".replace("MOST_DOWN", str(MOST_DOWN)).replace("APART", str(APART))

PHASE = "__device__ __forceinline__ void phase"
"""How the text of a phase begins. Where NVRTC 13.0 left one product of several a function that is
called, an H200 computed as if its result were never stored; without optimisation of machine code it
was right. Without the call the kernel has a third fewer registers, and half the instructions."""
