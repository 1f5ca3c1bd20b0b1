"""Rows of an array written or added to at indices, in CUDA C++.

In: which scatter, a dtype, the number of index arrays. Out: the text, to stand behind
`cuda_prelude`; parameters are those of `lower.planning.target.ScatterKernel`.

Each block owns a range of rows, looks at all indices and does those that are its own, in the order
of Python: several rows of one place are added in that order, and the last one written stays. So
there are no atomic additions, and every run gives the same bits. The indices that a block owns are
picked out of a tile by ballots, as in a compaction; the threads share the elements of a row, or,
where rows are short, the rows, so that those of one place always fall to the same thread.

Many indices are cut into parts. What is added at those of a part, a block adds up in an array of
the part's own, in their order, and other blocks add these arrays up, in theirs. Of rows that are
written to one place the last one is found first: the greatest number wins, whoever comes when.
"""

from __future__ import annotations

from pyrelay.devices.gpu import cuda_totals
from pyrelay.devices.gpu.driver import ADDRESS
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import ScatterKernel
from pyrelay.lower.text.cuda_numbers import literal

THREADS = 128
MOST_BLOCKS = 1024
"""Ranges of rows, at most; each of them looks at all indices."""

_STEPS = {"scatter_update": "value", "scatter_add": "array[place] + value"}

_HEAD = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, {parameters}
) {{
    if (pyrelay_over(record, launch)) return;
"""

_KERNEL = """\
#define BLOCK_THREADS {threads}
{head}\
    PYRELAY_SHARED(i64, places, {threads});
    PYRELAY_SHARED(int, sources, {threads});
    PYRELAY_SHARED(int, found, {warps});
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int span = width < 1 ? 1 : width < BLOCK_THREADS ? (int)width : BLOCK_THREADS;
    const int lines = BLOCK_THREADS / span, line = threadIdx.x / span;
    const i64 column = threadIdx.x % span;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
{range}\
        for (i64 start = begin; start < end; start += BLOCK_THREADS) {{
            const i64 k = start + threadIdx.x;
            i64 row = k < end ? 0 : -1;
            if (k < end) {{
{place}            }}
            const bool mine = row >= low && row < high;
            const u32 own = __ballot_sync(0xffffffffu, mine);
            if (lane == 0) found[warp] = __popc(own);
            __syncthreads();
            int at = __popc(own & ((1u << lane) - 1)), total = 0;
            for (int w = 0; w < {warps}; w++) {{
                if (w < warp) at += found[w];
                total += found[w];
            }}
            if (mine) places[at] = row, sources[at] = threadIdx.x;
            __syncthreads();
            for (int e = 0; e < total; e++) {{
                if (places[e] % lines != line) continue;
                for (i64 c = column; c < width; c += span) {{
                    const i64 place = {base}places[e] * width + c;
                    const {t} value = values[(start + sources[e]) * width + c];
                    array[place] = {t}({step});
                }}
            }}
            __syncthreads();
        }}
    }}
}}
"""
_ALL = """\
        const i64 low = item * share, high = low + share < rows ? low + share : rows;
        const i64 begin = 0, end = count;
"""
_PART = """\
        const i64 ranges = (rows + share - 1) / share, part = item / ranges;
        const i64 low = item % ranges * share, high = low + share < rows ? low + share : rows;
        const i64 begin = part * chunk, end = begin + chunk < count ? begin + chunk : count;
        const i64 base = part * rows * width;
        for (i64 e = low * width + threadIdx.x; e < high * width; e += BLOCK_THREADS) {{
            array[base + e] = {nothing};
        }}
        __syncthreads();
"""

# Who writes a row last, one more than its number; 0: nobody.
_BY_THREADS = """\
{head}\
    for (i64 item = first + (i64)blockIdx.x * blockDim.x + threadIdx.x; item < last;
         item += (i64)gridDim.x * blockDim.x) {{
{body}    }}
}}
"""
_CLEARED = "        winners[item] = 0;\n"
_CLAIMED = """\
        const i64 k = item;
        i64 row = 0;
{place}        if (row >= 0) atomicMax(&winners[row], k + 1);
"""
_WRITTEN = """\
        const i64 k = item / width;
        i64 row = 0;
{place}        if (row >= 0 && winners[row] == k + 1) {{
            array[row * width + item % width] = values[item];
        }}
"""
_PLACE = """\
                const i64 index{k} = indices{k}[k];
                if (row >= 0 && (index{k} < -extent{k} || index{k} >= extent{k})) {{
                    row = -1;
                    if ({claims}pyrelay_claim(record, launch, k * {axes} + {k}, 0)) {{
                        pyrelay_put(record->values, index{k});
                        pyrelay_put(record->values + 1, i64({k}));
                        pyrelay_put(record->values + 2, extent{k});
                        pyrelay_release(record);
                    }}
                }}
                if (row >= 0) row = row * extent{k} + index{k} + (index{k} < 0 ? extent{k} : 0);
"""

_made: dict[str, tuple[str, DType, int]] = {}
_for_many: dict[str, tuple[str, ...]] = {}


def scatter(name: str, dtype: DType, axes: int) -> ScatterKernel:
    """The kernel of a scatter at indices of this many leading axes."""
    text = _text(name, dtype, axes, THREADS)
    _made[text] = name, dtype, axes
    many = _adding(dtype, axes) if name == "scatter_add" else _writing(dtype, axes)
    return ScatterKernel(text, MOST_BLOCKS, many)


def for_blocks(text: str, threads: int) -> str:
    """A text that this module made, for blocks of so many threads."""
    return _text(*_made[text], threads)


def is_phase(text: str) -> bool:
    """Whether a text is that of a scatter that one kernel does."""
    return text in _made


def _head(parameters: str, axes: int) -> str:
    """How a kernel begins, with the extents of the axes behind its own parameters."""
    return _HEAD.format(parameters=parameters + _extents(axes))


def _indices(axes: int) -> str:
    return ", ".join(f"Buffer<const i64> indices{k}" for k in range(axes))


def _extents(axes: int) -> str:
    return "".join(f", i64 extent{k}" for k in range(axes))


def _place(axes: int, claims: str) -> str:
    """How the row of index `k` is found; `claims` is what has to hold for an error to be told."""
    return "".join(_PLACE.format(k=k, axes=axes, claims=claims) for k in range(axes))


def _text(name: str, dtype: DType, axes: int, threads: int) -> str:
    parameters = (
        f"Buffer<{dtype.name}> array,\n    Buffer<const {dtype.name}> values, {_indices(axes)}, "
        "i64 count, i64 rows, i64 width, i64 share"
    )
    return _KERNEL.format(
        t=dtype.name, threads=threads, warps=threads // 32, step=_STEPS[name], range=_ALL, base="",
        head=_head(parameters, axes), place=_place(axes, "item == 0 && "),
    )


def _adding(dtype: DType, axes: int) -> tuple[str, ...]:
    """Rows added at many indices, in parts."""
    t, nothing = dtype.name, literal(False if dtype.kind == "b" else -0.0, dtype)
    parameters = (
        f"Buffer<{t}> array,\n    Buffer<const {t}> values, {_indices(axes)}, "
        "i64 count, i64 rows, i64 width, i64 share, i64 chunk"
    )
    parts = _KERNEL.format(
        t=t, threads=THREADS, warps=THREADS // 32, step=_STEPS["scatter_add"], base="base + ",
        range=_PART.format(nothing=nothing), head=_head(parameters, axes),
        place=_place(axes, "low == 0 && "),
    )
    totals = cuda_totals.totals(dtype, dtype, nothing, "array[e]")
    _for_many[parts] = (ADDRESS,) * (2 + axes) + ("i64",) * (5 + axes)
    _for_many[totals] = cuda_totals.KINDS
    return parts, totals


def _writing(dtype: DType, axes: int) -> tuple[str, ...]:
    """Rows written at many indices: all find out who is last, who is writes."""
    t, indices = dtype.name, _indices(axes)
    cleared = _BY_THREADS.format(head=_head("Buffer<i64> winners", 0), body=_CLEARED)
    claimed = _BY_THREADS.format(
        head=_head(f"Buffer<i64> winners, {indices}", axes),
        body=_CLAIMED.format(place=_place(axes, "")),
    )
    written = _BY_THREADS.format(
        head=_head(
            f"Buffer<{t}> array, Buffer<const {t}> values, Buffer<const i64> winners, {indices}, "
            "i64 width", axes,
        ),
        body=_WRITTEN.format(place=_place(axes, "false && ")),
    )
    _for_many[cleared] = (ADDRESS,)
    _for_many[claimed] = (ADDRESS,) * (1 + axes) + ("i64",) * axes
    _for_many[written] = (ADDRESS,) * (3 + axes) + ("i64",) * (1 + axes)
    return cleared, claimed, written


def kinds_of(text: str) -> tuple[str, ...] | None:
    """What the parameters are of a text that this module made."""
    if text not in _made:
        return _for_many.get(text)
    _, _, axes = _made[text]
    return (ADDRESS,) * (2 + axes) + ("i64",) * (4 + axes)
