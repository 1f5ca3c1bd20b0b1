"""Long lines scanned in one pass over memory, in CUDA C++.

In: how a scan goes, a dtype. Out: a text to stand behind `cuda_prelude`; parameters are those of
`lower.planning.target.OnePassScan`.

A block keeps a tile of a line in registers from when it has read it until it knows what is before
it. Tiles tell each other what they come to by words of memory, and what is before a tile is put
together of these in one and the same way, whoever was first, so that every run gives the same
bits: tiles are in groups of 32 and those in groups of 64, whose last tile tells what the whole
group comes to. A warp looks at the tiles of its group that are before it, others at the groups
before that one in the larger group, and one at the larger groups before. That is two times waiting
for others, where a tile that goes on with the sum of the one before it (Merrill and Garland,
"Single-pass parallel prefix scan with decoupled look-back", 2016) adds as many up as it happens to
find. Blocks take tiles by number in the order in which they begin, so that whoever is waited for
runs.
"""

from __future__ import annotations

from pyrelay.devices.gpu.cuda_scan_forms import IN_WARPS, Form
from pyrelay.devices.gpu.driver import ADDRESS
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import OnePassScan

LEAST = 1 << 23
"""Bytes from which on one pass is worth it: fewer are in a cache still when they are read again."""

THREADS, ROUNDS = 128, 8
"""Of a block, and packs of 16 bytes that a thread has of a tile."""

_BLOCKS = {4: 8, 8: 5}
"""Blocks of a multiprocessor, by bytes of what goes from element to element; 4 if there are more.
The more elements wait in registers, the longer may they wait."""

HEAD = 16
"""Words before those that tiles tell: how many tiles were taken."""

NEAR, FAR = 32, 64
"""Tiles of a group, and groups of a larger one."""

KINDS = (ADDRESS,) * 3 + ("i64",) * 3
"""What the parameters are of all texts."""


# A word has 32 bits of what is told, and a 1 above them where it has been told.
_TOLD = """\
#define BLOCK_THREADS {threads}
template <class T> __device__ void tell(Buffer<u64> memory, i64 at, i64 apart, const T &value) {{
    u32 parts[{parts}] = {{}};
    memcpy(parts, &value, sizeof(T));
#pragma unroll
    for (int p = 0; p < {parts}; p++) {{
        *(volatile u64 *)&memory[at + p * apart] = (u64)1 << 32 | parts[p];
    }}
}}
template <class T> __device__ T told(Buffer<u64> memory, i64 at, i64 apart) {{
    u32 parts[{parts}];
    for (;;) {{
        bool all = true;
#pragma unroll
        for (int p = 0; p < {parts}; p++) {{
            const u64 word = *(volatile u64 *)&memory[at + p * apart];
            parts[p] = (u32)word, all = all && word >> 32 != 0;
        }}
        if (all) break;
        PYRELAY_PAUSE();
    }}
    T value;
    memcpy(&value, parts, sizeof(T));
    return value;
}}
// What the warp's values are in their order: each lane has those up to its own.
template <class T, class Op> __device__ T in_lanes(T value, Op combine) {{
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {{
        const T before = pyrelay_from_below(value, step);
        if ((int)threadIdx.x % 32 >= step) value = combine(before, value);
    }}
    return value;
}}
"""

_KERNEL = """\
extern "C" __global__ __launch_bounds__({threads}, {blocks}) void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {t}> x0,
    Buffer<u64> memory, Buffer<{t}> y, i64 lines, i64 length, i64 reverse
) {{
    if (pyrelay_over(record, launch)) return;
    typedef {state} State;
    auto combine = [](State a, State b) {{ return State({combined}); }};
    const int WARPS = BLOCK_THREADS / 32, RUN = {rounds} * WARPS / 32;
    PYRELAY_SHARED({state}, sums, {rounds} * BLOCK_THREADS / 32);
    PYRELAY_SHARED({state}, befores, {looking});
    PYRELAY_SHARED(i64, number, 1);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 tiles = (length + {tile} - 1) / {tile};
    const i64 groups = (tiles + {near} - 1) / {near}, all = (groups + {far} - 1) / {far};
    for (bool more = true; more; more = gridDim.x < last - first) {{
        __syncthreads();
        // The tiles before are those of blocks that have begun.
        if (threadIdx.x == 0) number[0] = first + (i64)atomicAdd(&memory[0], (u64)1);
        __syncthreads();
        const i64 item = number[0];
        if (item >= last) break;
        const i64 line = lines == 1 ? 0 : item / tiles, tile = item - line * tiles;
        // Where the tile's elements begin, as it goes through them, and how many there are.
        const i64 start = tile * {tile}, all_left = length - start;
        const i64 origin = line * length + (reverse ? all_left - {pack} : start);
        const int left = all_left < {tile} ? (int)all_left : {tile}, sign = reverse ? -1 : 1;
        const bool packed = pyrelay_lined_up<{pack}>(origin, x0, y);
        const int own_at = threadIdx.x * {pack};
        State own[{rounds}][{pack}], upto[{rounds}];
#pragma unroll
        for (int r = 0; r < {rounds}; r++) {{
            const int place = own_at + r * BLOCK_THREADS * {pack};
            const i64 low = origin + sign * place;
            if (packed && place + {pack} <= left) {{
                const auto in = pyrelay_together<{pack}>(x0, low);
#pragma unroll
                for (int p = 0; p < {pack}; p++) {{
                    own[r][p] = State(in.at[reverse ? {pack} - 1 - p : p]);
                }}
            }} else {{
#pragma unroll
                for (int p = 0; p < {pack}; p++) {{
                    own[r][p] = {identity};
                    const i64 at = reverse ? low + {pack} - 1 - p : low + p;
                    if (place + p < left) own[r][p] = {entering};
                }}
            }}
        }}
""" + IN_WARPS + """\
#pragma unroll
        for (int r = 0; r < {rounds}; r++) {{
            if (lane == 31) sums[r * WARPS + warp] = upto[r];
            upto[r] = pyrelay_from_below(upto[r], 1);
            if (lane == 0) upto[r] = {identity};
        }}
        __syncthreads();
        const i64 group = tile / {near}, larger = group / {far};
        const i64 apart = lines * tiles, apart_far = lines * groups, apart_larger = lines * all;
        const i64 nears = {head} + line * tiles, fars = {head} + {parts} * apart + line * groups;
        const i64 larges = {head} + {parts} * (apart + apart_far) + line * all;
        State total = {identity};
        if (warp == 0) {{
            State run[RUN];
#pragma unroll
            for (int k = 0; k < RUN; k++) {{
                run[k] = sums[lane * RUN + k];
                if (k > 0) run[k] = combine(run[k - 1], run[k]);
            }}
            total = in_lanes(run[RUN - 1], combine);
            if (lane == 31) tell(memory, nears + tile, apart, total);
            // What is before each warp's packs, in the tile.
            State ahead = pyrelay_from_below(total, 1);
            if (lane == 0) ahead = {identity};
#pragma unroll
            for (int k = 0; k < RUN; k++) {{
                sums[lane * RUN + k] = k == 0 ? ahead : combine(ahead, run[k - 1]);
            }}
        }}
        // What is before the tile: of its group, of the groups before, of larger ones before.
        if (warp < {looking}) {{
            i64 at = nears + group * {near} + lane, from = apart, count = tile % {near} - lane;
            if (warp > 0) {{
                const int other = (warp - 1) * 32 + lane;
                at = fars + larger * {far} + other, from = apart_far, count = group % {far} - other;
            }}
            State value = {identity};
            if (warp == {looking} - 1) {{
                const i64 each = (larger + 31) / 32, begin = lane * each;
                for (i64 k = begin; k < begin + each && k < larger; k++) {{
                    value = combine(value, told<State>(memory, larges + k, apart_larger));
                }}
            }} else if (count > 0) {{
                value = told<State>(memory, at, from);
            }}
            __syncwarp();
            value = in_lanes(value, combine);
            if (lane == 31) {{
                befores[warp] = value;
                if (warp == 0 && tile % {near} == {near} - 1) {{
                    tell(memory, fars + group, apart_far, combine(value, total));
                }}
            }}
        }}
        __syncthreads();
        State of_far = befores[1];
#pragma unroll
        for (int k = 2; k < {looking} - 1; k++) of_far = combine(of_far, befores[k]);
        if (threadIdx.x == 31 && tile % ({near} * {far}) == {near} * {far} - 1) {{
            tell(memory, larges + larger, apart_larger,
                combine(of_far, combine(befores[0], total)));
        }}
        const State begun = combine(combine(befores[{looking} - 1], of_far), befores[0]);
#pragma unroll
        for (int r = 0; r < {rounds}; r++) {{
            const State ahead = combine(combine(begun, sums[r * WARPS + warp]), upto[r]);
            const int place = own_at + r * BLOCK_THREADS * {pack};
            const i64 low = origin + sign * place;
#pragma unroll
            for (int p = 0; p < {pack}; p++) own[r][p] = combine(ahead, own[r][p]);
            if (packed && place + {pack} <= left) {{
                pyrelay_pack<{t}, {pack}> out;
#pragma unroll
                for (int p = 0; p < {pack}; p++) {{
                    out.at[reverse ? {pack} - 1 - p : p] = own[r][p];
                }}
                pyrelay_put_together(y, low, out);
            }} else {{
#pragma unroll
                for (int p = 0; p < {pack}; p++) {{
                    if (place + p < left) y[reverse ? low + {pack} - 1 - p : low + p] = own[r][p];
                }}
            }}
        }}
    }}
}}
"""


def scan(dtype: DType, form: Form) -> OnePassScan:
    """The kernel of a scan whose states are elements."""
    pack, parts = max(min(4, 16 // dtype.size), 1), -(-form.nbytes // 4)
    tile = THREADS * ROUNDS * pack
    words = {
        "t": dtype.name, "state": form.state, "identity": form.identity, "pack": pack,
        "combined": form.combined, "entering": form.entering, "rounds": ROUNDS, "tile": tile,
        "near": NEAR, "far": FAR, "head": HEAD, "parts": parts, "looking": 2 + -(-FAR // 32),
        "threads": THREADS, "blocks": _BLOCKS.get(max(form.nbytes, 4), 4),
    }
    text = (_TOLD + _KERNEL).format(**words)
    return OnePassScan(text, LEAST // dtype.size, HEAD, tile, NEAR, FAR, parts)
