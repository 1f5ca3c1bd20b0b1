"""Running sums, products and extremes along an axis, in CUDA C++.

In: which scan, a dtype, whether the elements of a line lie side by side. Out: two texts to stand
behind `cuda_prelude`; parameters are those of `lower.planning.target.ScanKernels`.

Lines are cut into chunks. One launch leaves the total of every chunk but a line's last; the next
takes the totals before a chunk and goes through it. Where there are lines enough to fill the
machine a chunk is a whole line, and nothing is read twice (Sengupta et al., "Scan primitives for
GPU computing", 2007).

Where lines lie side by side, a thread does one, so that neighbours read neighbours; where elements
do, the threads of a block share one: tiles go through shared memory, each thread sums some
neighbours, and warps combine those sums by shuffles. The order is always the same.

Scans of `ops.running`, sums, and recurrences whose factors are between -1 and 1 are taken in
groups; sums so in another order than Python's, as reductions are. Products of floats and other
recurrences are, where a look at the elements allows it (`cuda_recurrences`); those of other types
than float32 and float64 are parallel over lines only. Elements of a recurrence join as the maps
that they are (Blelloch, "Prefix sums and their applications", 1990, section 1.4), which may not
change places.
"""

from __future__ import annotations

from pyrelay.devices.gpu import cuda_recurrences
from pyrelay.devices.gpu.cuda_recurrences import BLOCK_THREADS, HEAD, THREADS
from pyrelay.devices.gpu.driver import ADDRESS
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import ScanKernels
from pyrelay.lower.text.cuda_numbers import literal
from pyrelay.ops.running import identity, step_of
from pyrelay.ops.scalar import SCALARS
from pyrelay.records import dataclass

EACH = 8
_TILE = THREADS * EACH

#: What stands before the first element, and two values that follow each other as one.
_JOINED = {"cumsum": (-0.0, "a + b"), "cumprod": (1, "a * b")}

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
_BLOCK_TOTAL = """\
        for (i64 k = start + threadIdx.x; k < stop; k += BLOCK_THREADS) {{
            v = combine(v, entering(line * length + (reverse ? length - 1 - k : k)));
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


@dataclass(frozen=True, slots=True)
class _Form:
    """How a scan goes, as text: the type of what goes from element to element, what it is before
    the first one, how `a` and the `b` that follows it are one, what enters at `at`, and the result
    of `v`; how many such values a thread keeps in shared memory."""

    state: str
    identity: str
    combined: str
    entering: str
    value: str
    nbytes: int
    each: int = EACH


def scan(name: str, dtype: DType, side_by_side: bool) -> ScanKernels:
    """The kernels of a scan; `side_by_side`: whether the elements of a line are neighbours."""
    if cuda_recurrences.is_guarded(name, dtype):
        return _guarded(name, dtype, side_by_side)
    form, grouped = _form(name, dtype), _is_grouped(name, dtype)
    by_blocks = side_by_side and grouped
    last = _text(name, dtype, form, by_blocks=by_blocks, totals=False)
    if not grouped:
        return ScanKernels("", last, 64, 1, 0, form.nbytes)
    totals = _text(name, dtype, form, by_blocks=by_blocks, totals=True)
    if by_blocks:
        return ScanKernels(totals, last, _TILE, 1024, 512, form.nbytes)
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


def _is_grouped(name: str, dtype: DType) -> bool:
    """Whether elements may be taken together before what precedes them is known."""
    return dtype.kind in "iu" if name == "cumprod" else name != "linear_scan"


def _form(name: str, dtype: DType) -> _Form:
    t, step = dtype.name, step_of(name)
    if step is not None:
        first = literal(identity(step, dtype), dtype)
        joined = SCALARS[step].cuda(dtype).format("a", "b")
        return _Form(t, first, joined, "x0[at]", "v", dtype.size)
    if name in _JOINED:
        start, joined = _JOINED[name]
        return _Form(t, literal(start, dtype), joined, "x0[at]", "v", dtype.size)
    state = f"pyrelay_affine<{t}>"
    first = f"State({literal(1, dtype)}, {literal(-0.0, dtype)})"
    joined = "b.factor * a.factor, b.factor * a.term + b.term"
    return _Form(state, first, joined, "x0[at], x1[at]", "v.term", 2 * dtype.size, EACH // 2)


def _text(name: str, dtype: DType, form: _Form, *, by_blocks: bool, totals: bool) -> str:
    t, operands = dtype.name, 1 + (form.value != "v")
    tile = THREADS * form.each
    words = {
        "t": t, "state": form.state, "identity": form.identity, "combined": form.combined,
        "entering": form.entering, "value": form.value, "each": form.each, "tile": tile,
        "room": tile + tile // 32, "parts": " - 1" * totals,
        "operands": ", ".join(f"Buffer<const {t}> x{k}" for k in range(operands)),
    }
    if by_blocks:
        words["stores"] = "" if totals else _BLOCK_STORES.format(**words)
        works = (_BLOCK_TILES, _LAST_TOTAL) if operands > 1 else (_BLOCK_TOTAL,)
        works = works if totals else (_BLOCK_CARRY, _BLOCK_TILES)
        words["work"] = "".join(works).format(**words)
        text = BLOCK_THREADS + (HEAD + _COMBINE + _BY_BLOCKS).format(**words)
    else:
        words["carry"] = _THREAD_CARRY if not totals and _is_grouped(name, dtype) else ""
        words["store"] = "" if totals else f"            y[at] = {form.value};\n"
        words["total"] = "        totals[item] = v;\n" if totals else ""
        text = (HEAD + _COMBINE + _BY_THREADS).format(**words)
    _made[text] = _KINDS[operands]
    return text
