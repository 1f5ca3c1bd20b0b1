"""Running sums and products along an axis, in CUDA C++.

In: which scan, a dtype, whether the elements of a line lie side by side. Out: two texts to stand
behind `cuda_prelude`; parameters are those of `lower.target.ScanKernels`.

Lines are cut into chunks. One launch leaves the total of every chunk but a line's last; the next
takes the totals before a chunk and goes through it. Where there are lines enough to fill the
machine a chunk is a whole line, and nothing is read twice (Sengupta et al., "Scan primitives for
GPU computing", 2007).

Where lines lie side by side, a thread does one, so that neighbours read neighbours; where elements
do, the threads of a block share one: tiles go through shared memory, each thread sums some
neighbours, and warps combine those sums by shuffles. The order is always the same.

Sums may be taken in another order than Python's, as reductions are. Products of floats and linear
recurrences may not: a product of factors overflows where the running value does not. They are
parallel over lines only.
"""

from __future__ import annotations

from pyrelay.devices.driver import ADDRESS
from pyrelay.ir.types import DType
from pyrelay.lower.cuda_numbers import literal
from pyrelay.lower.target import ScanKernels

THREADS, EACH = 256, 8
_TILE = THREADS * EACH

#: What stands before the first element, and the next value; `v` is the value before.
_STEPS = {
    "cumsum": (-0.0, "v + x0[at]"), "cumprod": (1, "v * x0[at]"),
    "linear_scan": (-0.0, "x0[at] * v + x1[at]"),
}
_COMBINED = {"cumsum": "a + b", "cumprod": "a * b"}

_HEAD = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, {operands}, Buffer<{t}> totals,
    Buffer<{t}> y, i64 outer, i64 length, i64 inner, i64 chunk, i64 reverse
) {{
    if (pyrelay_over(record, launch)) return;
    const i64 chunks = (length + chunk - 1) / chunk{parts};
"""

# An item: a chunk of a line; of the lines side by side the same chunk follows.
_BY_THREADS = """\
    for (i64 item = first + (i64)blockIdx.x * blockDim.x + threadIdx.x; item < last;
         item += (i64)gridDim.x * blockDim.x) {{
        const i64 column = item % inner, part = item / inner % chunks;
        const i64 line = item / inner / chunks, start = part * chunk;
        const i64 stop = start + chunk < length ? start + chunk : length;
        {t} v = {identity};
{carry}        for (i64 k = start; k < stop; k++) {{
            const i64 at = (line * length + (reverse ? length - 1 - k : k)) * inner + column;
            v = {t}({step});
{store}        }}
{total}    }}
}}
"""
_THREAD_CARRY = """\
        for (i64 k = 0; k < part; k++) {{
            const {t} a = v, b = totals[(line * (chunks - 1) + k) * inner + column];
            v = {t}({combined});
        }}
"""

_BY_BLOCKS = """\
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 part = item % chunks, line = item / chunks, start = part * chunk;
        const i64 stop = start + chunk < length ? start + chunk : length;
        auto combine = []({t} a, {t} b) {{ return {t}({combined}); }};
        {t} v = {identity};
{work}    }}
}}
"""
_BLOCK_TOTAL = """\
        for (i64 k = start + threadIdx.x; k < stop; k += BLOCK_THREADS) {{
            v = combine(v, x0[line * length + (reverse ? length - 1 - k : k)]);
        }}
        v = pyrelay_combined(v, combine);
        if (threadIdx.x == 0) totals[item] = v;
"""
_BLOCK_SCAN = """\
        PYRELAY_SHARED({t}, tile, {room});
        PYRELAY_SHARED({t}, warps, 32);
        for (i64 k = threadIdx.x; k < part; k += BLOCK_THREADS) {{
            v = combine(v, totals[line * (chunks - 1) + k]);
        }}
        {t} carry = pyrelay_combined(v, combine);
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = threadIdx.x * {each};
        for (i64 base = start; base < stop; base += {tile}) {{
            for (int k = threadIdx.x; k < {tile}; k += BLOCK_THREADS) {{
                const i64 place = base + k;
                tile[k + k / 32] = place < stop
                    ? {t}(x0[line * length + (reverse ? length - 1 - place : place)]) : {identity};
            }}
            __syncthreads();
            {t} sum = tile[own + own / 32];
            for (int k = own + 1; k < own + {each}; k++) {{
                sum = combine(sum, tile[k + k / 32]);
                tile[k + k / 32] = sum;
            }}
            // The sums of the threads before, in the warp and in the warps before.
            {t} upto = sum;
            for (int step = 1; step < 32; step *= 2) {{
                const {t} before = pyrelay_from_below(upto, step);
                if (lane >= step) upto = combine(before, upto);
            }}
            if (lane == 31) warps[warp] = upto;
            {t} ahead = pyrelay_from_below(upto, 1);
            __syncthreads();
            {t} all = carry;
            for (int k = 0; k < BLOCK_THREADS / 32; k++) {{
                if (k == warp) ahead = lane == 0 ? all : combine(all, ahead);
                all = combine(all, warps[k]);
            }}
            carry = all;
            for (int k = own; k < own + {each}; k++) {{
                tile[k + k / 32] = combine(ahead, tile[k + k / 32]);
            }}
            __syncthreads();
            for (int k = threadIdx.x; k < {tile}; k += BLOCK_THREADS) {{
                const i64 place = base + k;
                if (place >= stop) break;
                y[line * length + (reverse ? length - 1 - place : place)] = tile[k + k / 32];
            }}
            __syncthreads();
        }}
"""

#: What the parameters are of a text, by how many operands it has.
_KINDS = {count: (ADDRESS,) * (count + 2) + ("i64",) * 5 for count in (1, 2)}
_made: dict[str, tuple[str, ...]] = {}


def scan(name: str, dtype: DType, side_by_side: bool) -> ScanKernels:
    """The kernels of a scan; `side_by_side`: whether the elements of a line are neighbours."""
    free = name == "cumsum" or (name == "cumprod" and dtype.kind in "iu")
    if free and side_by_side:
        return ScanKernels(
            _by_blocks(name, dtype, totals=True), _by_blocks(name, dtype, totals=False),
            _TILE, 1024, 512,
        )  # fmt: skip
    return ScanKernels(
        _by_threads(name, dtype, totals=True) if free else "",
        _by_threads(name, dtype, totals=False), 64, 64 if free else 1, 1 << 14 if free else 0,
    )  # fmt: skip


def kinds_of(text: str) -> tuple[str, ...] | None:
    """What the parameters are of a text that this module made."""
    return _made.get(text)


def _by_threads(name: str, dtype: DType, *, totals: bool) -> str:
    t, (start, step) = dtype.name, _STEPS[name]
    carry = "" if totals or name not in _COMBINED else _THREAD_CARRY.format(
        t=t, combined=_COMBINED[name]
    )
    body = _BY_THREADS.format(
        t=t, identity=literal(start, dtype), step=step, carry=carry,
        store="" if totals else "            y[at] = v;\n",
        total="        totals[item] = v;\n" if totals else "",
    )
    return _text(t, "linear" in name, totals, body)


def _by_blocks(name: str, dtype: DType, *, totals: bool) -> str:
    t, combined = dtype.name, _COMBINED[name]
    identity = literal(_STEPS[name][0], dtype)
    room = _TILE + _TILE // 32
    work = (_BLOCK_TOTAL if totals else _BLOCK_SCAN).format(
        t=t, identity=identity, each=EACH, tile=_TILE, room=room
    )
    body = _BY_BLOCKS.format(t=t, combined=combined, identity=identity, work=work)
    return _text(t, False, totals, body, f"#define BLOCK_THREADS {THREADS}\n")


def _text(t: str, two: bool, totals: bool, body: str, before: str = "") -> str:
    operands = ", ".join(f"Buffer<const {t}> x{k}" for k in range(1 + two))
    text = before + _HEAD.format(t=t, operands=operands, parts=" - 1" * totals) + body
    _made[text] = _KINDS[1 + two]
    return text
