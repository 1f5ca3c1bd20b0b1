"""Running sums, products and extremes along an axis, in CUDA C++.

In: which scan, a dtype, whether the elements of a line lie side by side. Out: two texts to stand
behind `cuda_prelude`; parameters are those of `lower.planning.target.ScanKernels`.

Lines are cut into chunks. One launch leaves the total of every chunk but a line's last; the next
takes the totals before a chunk and goes through it. Where there are lines enough to fill the
machine a chunk is a whole line, and nothing is read twice (Sengupta et al., "Scan primitives for
GPU computing", 2007).

Where lines lie side by side, a thread does one, so that neighbours read neighbours; where elements
do, the threads of a block share one, a tile after the other: each thread sums some neighbours, of
16 bytes that it reads and writes at once, and warps combine those sums by shuffles; tiles of
recurrences go through shared memory. The order is always the same.

Scans of `ops.running`, sums, and recurrences whose factors are between -1 and 1 are taken in
groups; sums so in another order than Python's, as reductions are. Products of floats and other
recurrences are, where a look at the elements allows it (`cuda_recurrences`); those of other types
than float32 and float64 are parallel over lines only. Elements of a recurrence join as the maps
that they are (Blelloch, "Prefix sums and their applications", 1990, section 1.4), which may not
change places.
"""

from __future__ import annotations

from pyrelay.devices.gpu import cuda_one_pass_scans, cuda_recurrences
from pyrelay.devices.gpu.cuda_recurrences import BLOCK_THREADS, HEAD, THREADS
from pyrelay.devices.gpu.cuda_scan_forms import EACH, IN_WARPS, Form, form_of, is_grouped
from pyrelay.devices.gpu.driver import ADDRESS
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import ScanKernels

_TILE = THREADS * EACH

# What goes from element to element, and how the elements at a place enter it.
_COMBINE = """\
    typedef {state} State;
    auto combine = [](State a, State b) {{ return State({combined}); }};
    auto entering = [&](i64 at) {{ return State({entering}); }};
"""

# An item: a chunk of a line; of the lines side by side the same chunk follows.
_BY_THREADS = """\
    for (i64 item = first + (i64)blockIdx.x * blockDim.x + threadIdx.x; item < last;
         item += (i64)gridDim.x * blockDim.x) {{
        const i64 column = item % inner, part = item / inner % chunks;
        const i64 line = item / inner / chunks, start = part * chunk;
        const i64 stop = start + chunk < length ? start + chunk : length;
        State v = {identity};
{carry}        for (i64 k = start; k < stop; k++) {{
            const i64 at = (line * length + (reverse ? length - 1 - k : k)) * inner + column;
            v = combine(v, entering(at));
{store}        }}
{total}    }}
}}
"""
_THREAD_CARRY = """\
        for (i64 k = 0; k < part; k++) {
            v = combine(v, State(totals[(line * (chunks - 1) + k) * inner + column]));
        }
"""

_BY_BLOCKS = """\
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 part = item % chunks, line = item / chunks, start = part * chunk;
        const i64 stop = start + chunk < length ? start + chunk : length;
        State v = {identity};
{work}    }}
}}
"""
# What changes places may: the threads take packs as they lie.
_BLOCK_TOTAL = """\
        const i64 low = line * length + (reverse ? length - stop : start), count = stop - start;
        const bool packed = pyrelay_lined_up<{pack}>(low, x0);
        const i64 packs = packed ? count / {pack} : 0;
#pragma unroll 4
        for (i64 k = threadIdx.x; k < packs; k += BLOCK_THREADS) {{
            const auto in = pyrelay_together<{pack}>(x0, low + k * {pack});
#pragma unroll
            for (int p = 0; p < {pack}; p++) v = combine(v, State(in.at[p]));
        }}
        for (i64 k = packs * {pack} + threadIdx.x; k < count; k += BLOCK_THREADS) {{
            v = combine(v, entering(low + k));
        }}
        v = pyrelay_combined(v, combine);
        if (threadIdx.x == 0) totals[item] = v;
"""
# The totals before, a run of neighbours a thread.
_BLOCK_CARRY = """\
        const i64 run = (part + BLOCK_THREADS - 1) / BLOCK_THREADS;
        for (i64 k = threadIdx.x * run; k < part && k < (threadIdx.x + 1) * run; k++) {{
            v = combine(v, State(totals[line * (chunks - 1) + k]));
        }}
        v = pyrelay_in_order(v, combine);
"""
_BLOCK_TILES = """\
        PYRELAY_SHARED({state}, tile, {room});
        PYRELAY_SHARED({state}, warps, 32);
        State carry = v;
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = threadIdx.x * {each};
        for (i64 base = start; base < stop; base += {tile}) {{
            for (int k = threadIdx.x; k < {tile}; k += BLOCK_THREADS) {{
                const i64 place = base + k;
                tile[k + k / 32] = place < stop
                    ? entering(line * length + (reverse ? length - 1 - place : place)) : {identity};
            }}
            __syncthreads();
            State sum = tile[own + own / 32];
            for (int k = own + 1; k < own + {each}; k++) {{
                sum = combine(sum, tile[k + k / 32]);
                tile[k + k / 32] = sum;
            }}
            // The sums of the threads before, in the warp and in the warps before.
            State upto = sum;
            for (int step = 1; step < 32; step *= 2) {{
                const State before = pyrelay_from_below(upto, step);
                if (lane >= step) upto = combine(before, upto);
            }}
            if (lane == 31) warps[warp] = upto;
            State ahead = pyrelay_from_below(upto, 1);
            __syncthreads();
            State all = carry;
            for (int k = 0; k < BLOCK_THREADS / 32; k++) {{
                if (k == warp) ahead = lane == 0 ? all : combine(all, ahead);
                all = combine(all, warps[k]);
            }}
            carry = all;
{stores}            __syncthreads();
        }}
"""
# The same by packs, which stay in registers: a thread has {rounds} of a tile, as far apart as the
# block has threads, so that neighbours lie beside each other.
_BLOCK_PACKS = """\
        PYRELAY_SHARED({state}, warps, {rounds} * 2 * 32);
        State carry = v;
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const i64 line_at = line * length;
        const bool packed = pyrelay_lined_up<{pack}>(
            reverse ? line_at + length - start - {pack} : line_at + start, x0, y);
        int half = 0;
        for (i64 base = start; base < stop; base += {tile}, half ^= 1) {{
            State own[{rounds}][{pack}], upto[{rounds}];
#pragma unroll
            for (int r = 0; r < {rounds}; r++) {{
                const i64 place = base + (r * BLOCK_THREADS + threadIdx.x) * {pack};
                const i64 low = line_at + (reverse ? length - place - {pack} : place);
                if (packed && place + {pack} <= stop) {{
                    const auto in = pyrelay_together<{pack}>(x0, low);
#pragma unroll
                    for (int p = 0; p < {pack}; p++) {{
                        own[r][p] = State(in.at[reverse ? {pack} - 1 - p : p]);
                    }}
                }} else {{
#pragma unroll
                    for (int p = 0; p < {pack}; p++) {{
                        own[r][p] = place + p < stop
                            ? entering(reverse ? low + {pack} - 1 - p : low + p) : {identity};
                    }}
                }}
            }}
""" + IN_WARPS + """\
            const int here = half * {rounds} * 32;
#pragma unroll
            for (int r = 0; r < {rounds}; r++) {{
                if (lane == 31) warps[here + r * 32 + warp] = upto[r];
            }}
            __syncthreads();
#pragma unroll
            for (int r = 0; r < {rounds}; r++) {{
                State ahead = pyrelay_from_below(upto[r], 1), all = carry;
#pragma unroll
                for (int k = 0; k < BLOCK_THREADS / 32; k++) {{
                    if (k == warp) ahead = lane == 0 ? all : combine(all, ahead);
                    all = combine(all, warps[here + r * 32 + k]);
                }}
                carry = all;
                const i64 place = base + (r * BLOCK_THREADS + threadIdx.x) * {pack};
                const i64 low = line_at + (reverse ? length - place - {pack} : place);
#pragma unroll
                for (int p = 0; p < {pack}; p++) own[r][p] = combine(ahead, own[r][p]);
                if (packed && place + {pack} <= stop) {{
                    pyrelay_pack<{t}, {pack}> out;
#pragma unroll
                    for (int p = 0; p < {pack}; p++) {{
                        out.at[reverse ? {pack} - 1 - p : p] = own[r][p];
                    }}
                    pyrelay_put_together(y, low, out);
                }} else {{
#pragma unroll
                    for (int p = 0; p < {pack}; p++) {{
                        if (place + p < stop) {{
                            y[reverse ? low + {pack} - 1 - p : low + p] = own[r][p];
                        }}
                    }}
                }}
            }}
        }}
        __syncthreads();
"""
_LAST_TOTAL = """\
        if (threadIdx.x == 0) totals[item] = carry;
"""
_BLOCK_STORES = """\
            for (int k = own; k < own + {each}; k++) {{
                tile[k + k / 32] = combine(ahead, tile[k + k / 32]);
            }}
            __syncthreads();
            for (int k = threadIdx.x; k < {tile}; k += BLOCK_THREADS) {{
                const i64 place = base + k;
                if (place >= stop) break;
                v = tile[k + k / 32];
                y[line * length + (reverse ? length - 1 - place : place)] = {value};
            }}
"""

#: What the parameters are of a text, by how many operands it has.
_KINDS = {count: (ADDRESS,) * (count + 2) + ("i64",) * 5 for count in (1, 2)}
_made: dict[str, tuple[str, ...]] = {}


def scan(name: str, dtype: DType, side_by_side: bool) -> ScanKernels:
    """The kernels of a scan; `side_by_side`: whether the elements of a line are neighbours."""
    if cuda_recurrences.is_guarded(name, dtype):
        return _guarded(name, dtype, side_by_side)
    form, grouped = form_of(name, dtype), is_grouped(name, dtype)
    by_blocks = side_by_side and grouped
    last = _text(name, dtype, form, by_blocks=by_blocks, totals=False)
    if not grouped:
        return ScanKernels("", last, 64, 1, 0, form.nbytes)
    totals = _text(name, dtype, form, by_blocks=by_blocks, totals=True)
    if by_blocks:
        once = None if form.value != "v" else cuda_one_pass_scans.scan(dtype, form)
        if once is not None:
            _made[once.source] = cuda_one_pass_scans.KINDS
        return ScanKernels(totals, last, _TILE, 1024, 512, form.nbytes, once)
    return ScanKernels(totals, last, 64, 64, 1 << 14, form.nbytes)


def _guarded(name: str, dtype: DType, side_by_side: bool) -> ScanKernels:
    """The kernels of a scan that takes chunks together where that may be done."""
    last, totals = (
        cuda_recurrences.text(name, dtype, by_blocks=side_by_side, totals=totals)
        for totals in (False, True)
    )
    _made[last] = _made[totals] = _KINDS[1 if name == "cumprod" else 2]
    nbytes = cuda_recurrences.state_bytes(name, dtype)
    if side_by_side:
        return ScanKernels(totals, last, cuda_recurrences.tile_of(name), 1024, 512, nbytes)
    return ScanKernels(totals, last, 64, 64, 1 << 14, nbytes)


def kinds_of(text: str) -> tuple[str, ...] | None:
    """What the parameters are of a text that this module made."""
    return _made.get(text)


def _text(name: str, dtype: DType, form: Form, *, by_blocks: bool, totals: bool) -> str:
    t, operands = dtype.name, 1 + (form.value != "v")
    tile, pack = THREADS * form.each, max(min(4, 16 // dtype.size), 1)
    words = {
        "t": t, "state": form.state, "identity": form.identity, "combined": form.combined,
        "entering": form.entering, "value": form.value, "each": form.each, "tile": tile,
        "room": tile + tile // 32, "pack": pack, "rounds": form.each // pack,
        "parts": " - 1" * totals,
        "operands": ", ".join(f"Buffer<const {t}> x{k}" for k in range(operands)),
    }
    if by_blocks:
        words["stores"] = "" if totals else _BLOCK_STORES.format(**words)
        tiles = _BLOCK_TILES if operands > 1 else _BLOCK_PACKS
        works = (tiles, _LAST_TOTAL) if operands > 1 else (_BLOCK_TOTAL,)
        works = works if totals else (_BLOCK_CARRY, tiles)
        words["work"] = "".join(works).format(**words)
        text = BLOCK_THREADS + (HEAD + _COMBINE + _BY_BLOCKS).format(**words)
    else:
        words["carry"] = _THREAD_CARRY if not totals and is_grouped(name, dtype) else ""
        words["store"] = "" if totals else f"            y[at] = {form.value};\n"
        words["total"] = "        totals[item] = v;\n" if totals else ""
        text = (HEAD + _COMBINE + _BY_THREADS).format(**words)
    _made[text] = _KINDS[operands]
    return text
