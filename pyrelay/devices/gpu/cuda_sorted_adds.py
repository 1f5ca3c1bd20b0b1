"""Rows added to an array at sorted places, in CUDA C++.

In: a dtype. Out: two texts to stand behind `cuda_prelude`; parameters are those of
`lower.planning.target.SortedAdds`.

Indices are sorted stably before, so that rows for one place of the array stand together in Python's
order. They are cut into chunks, whatever places they are for: a thread goes through a chunk for a
column and adds up rows of one place after the other, to what the array has there where they begin
in its chunk. What goes on from the chunk before is left aside, and the second kernel adds it in
order (Sengupta et al., "Scan primitives for GPU computing", 2007, section 2.3). So every run gives
the same bits, and rows of a place that lie in one chunk are added as Python does.
"""

from __future__ import annotations

from pyrelay.devices.gpu.driver import ADDRESS
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import SortedAdds
from pyrelay.lower.text.cuda_numbers import literal

THREADS, CHUNK, AHEAD = 128, 32, 8
"""Threads of a block, rows of a chunk, rows that a thread reads before it adds them."""

_KINDS = (ADDRESS,) * 5 + ("i64",) * 2

# Threads of a block stand side by side along columns; where there are few, it has several chunks.
_EACH = """\
#define BLOCK_THREADS {threads}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<{t}> array,
    {values}, Buffer<const u32> numbers, Buffer<const i64> order,
    {carried}, i64 count, i64 width
) {{
    if (pyrelay_over(record, launch)) return;
    const int span = width < BLOCK_THREADS ? (int)width : BLOCK_THREADS;
    const int beside = BLOCK_THREADS / span, own = threadIdx.x / span;
    const i64 chunks = (count + {chunk} - 1) / {chunk}, parts = (width + span - 1) / span;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 chunk = item / parts * beside + own;
        const i64 column = item % parts * span + threadIdx.x % span;
        if (own >= beside || chunk >= chunks || column >= width) continue;
        const i64 start = chunk * {chunk};
        auto row_at = [&](i64 place) {{ return (i64)numbers[order[place]]; }};
{body}    }}
}}
"""

_ADDED = """\
        const i64 stop = start + {chunk} < count ? start + {chunk} : count;
        i64 row = start > 0 ? row_at(start - 1) : -1;
        bool begun = false, goes_on = true;
        {t} sum = {nothing};
        auto put = [&]() {{
            if (goes_on) carried[chunk * width + column] = sum;
            else array[row * width + column] = sum;
        }};
        for (i64 place = start; place < stop; place += {ahead}) {{
            i64 from[{ahead}], of[{ahead}];
            {t} value[{ahead}], old[{ahead}];
#pragma unroll
            for (int k = 0; k < {ahead}; k++) {{
                from[k] = order[place + k < stop ? place + k : place];
            }}
#pragma unroll
            for (int k = 0; k < {ahead}; k++) of[k] = numbers[from[k]];
#pragma unroll
            for (int k = 0; k < {ahead}; k++) {{
                value[k] = values[from[k] * width + column];
                // What is not there stands for the first row, which may be another chunk's.
                const bool begins = place + k < stop && of[k] != (k == 0 ? row : of[k - 1]);
                if (begins) old[k] = array[of[k] * width + column];
            }}
#pragma unroll
            for (int k = 0; k < {ahead}; k++) {{
                if (place + k >= stop) break;
                if (of[k] != row) {{
                    if (begun) put();
                    row = of[k], sum = old[k], goes_on = false;
                }}
                begun = true;
                sum = {t}(sum + value[k]);
            }}
        }}
        put();
"""

_FINISHED = """\
        if (chunk == 0) continue;
        const i64 row = row_at(start);
        if (row_at(start - 1) != row) continue;
        // The first of the chunks that go on with these rows adds what they all have.
        if (chunk > 1 && row_at(start - {chunk} - 1) == row) continue;
        {t} sum = array[row * width + column];
        for (i64 k = chunk; k < chunks && row_at(k * {chunk}) == row; k++) {{
            sum = {t}(sum + carried[k * width + column]);
        }}
        array[row * width + column] = sum;
"""

_made: set[str] = set()


def sorted_adds(dtype: DType) -> SortedAdds:
    """The kernels for a type of elements."""
    t = dtype.name
    values, carried = f"Buffer<const {t}> values", f"Buffer<{t}> carried"
    words = {
        "t": t, "threads": THREADS, "chunk": CHUNK, "ahead": AHEAD,
        "nothing": literal(False if dtype.kind == "b" else -0.0, dtype),
    }
    added = _EACH.format(body=_ADDED.format(**words), values=values, carried=carried, **words)
    carried = carried.replace("<", "<const ")
    finished = _EACH.format(
        body=_FINISHED.format(**words), values=values, carried=carried, **words
    )
    _made.update((added, finished))
    return SortedAdds(added, finished, CHUNK, THREADS)


def kinds_of(text: str) -> tuple[str, ...] | None:
    """What the parameters are of a text that this module made."""
    return _KINDS if text in _made else None
