"""Rows of an array written or added to at indices, in CUDA C++.

In: which scatter, a dtype, the number of index arrays. Out: the text, to stand behind
`cuda_prelude`; parameters are those of `lower.target.ScatterKernel`.

Each block owns a range of rows, looks at all indices and does those that are its own, in the order
of Python: several rows of one place are added in that order, and the last one written stays. So
there are no atomic additions, and every run gives the same bits. The indices that a block owns are
picked out of a tile by ballots, as in a compaction; the threads share the elements of a row, or,
where rows are short, the rows, so that those of one place always fall to the same thread.
"""

from __future__ import annotations

from pyrelay.devices.driver import ADDRESS
from pyrelay.ir.types import DType
from pyrelay.lower.target import ScatterKernel

THREADS = 128
MOST_BLOCKS = 1024
"""Ranges of rows, at most; each of them looks at all indices."""

_STEPS = {"scatter_update": "value", "scatter_add": "array[place] + value"}

_KERNEL = """\
#define BLOCK_THREADS {threads}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<{t}> array,
    Buffer<const {t}> values, {indices}, i64 count, i64 rows, i64 width, i64 share{extents}
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED(i64, places, {threads});
    PYRELAY_SHARED(int, sources, {threads});
    PYRELAY_SHARED(int, found, {warps});
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int span = width < 1 ? 1 : width < BLOCK_THREADS ? (int)width : BLOCK_THREADS;
    const int lines = BLOCK_THREADS / span, line = threadIdx.x / span;
    const i64 column = threadIdx.x % span;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 low = item * share, high = low + share < rows ? low + share : rows;
        for (i64 start = 0; start < count; start += BLOCK_THREADS) {{
            const i64 k = start + threadIdx.x;
            i64 row = k < count ? 0 : -1;
            if (k < count) {{
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
                    const i64 place = places[e] * width + c;
                    const {t} value = values[(start + sources[e]) * width + c];
                    array[place] = {t}({step});
                }}
            }}
            __syncthreads();
        }}
    }}
}}
"""
_PLACE = """\
                const i64 index{k} = indices{k}[k];
                if (row >= 0 && (index{k} < -extent{k} || index{k} >= extent{k})) {{
                    row = -1;
                    if (item == 0 && pyrelay_claim(record, launch, k * {axes} + {k}, 0)) {{
                        pyrelay_put(record->values, index{k});
                        pyrelay_put(record->values + 1, i64({k}));
                        pyrelay_put(record->values + 2, extent{k});
                        pyrelay_release(record);
                    }}
                }}
                if (row >= 0) row = row * extent{k} + index{k} + (index{k} < 0 ? extent{k} : 0);
"""

_made: dict[str, tuple[str, DType, int]] = {}


def scatter(name: str, dtype: DType, axes: int) -> ScatterKernel:
    """The kernel of a scatter at indices of this many leading axes."""
    text = _text(name, dtype, axes, THREADS)
    _made[text] = name, dtype, axes
    return ScatterKernel(text, MOST_BLOCKS)


def for_blocks(text: str, threads: int) -> str:
    """A text that this module made, for blocks of so many threads."""
    return _text(*_made[text], threads)


def _text(name: str, dtype: DType, axes: int, threads: int) -> str:
    return _KERNEL.format(
        t=dtype.name, threads=threads, warps=threads // 32, step=_STEPS[name],
        indices=", ".join(f"Buffer<const i64> indices{k}" for k in range(axes)),
        extents="".join(f", i64 extent{k}" for k in range(axes)),
        place="".join(_PLACE.format(k=k, axes=axes) for k in range(axes)),
    )


def kinds_of(text: str) -> tuple[str, ...] | None:
    """What the parameters are of a text that this module made."""
    if text not in _made:
        return None
    _, _, axes = _made[text]
    return (ADDRESS,) * (2 + axes) + ("i64",) * (4 + axes)
