"""Rows added to an array at sorted places, in CUDA C++.

In: a dtype, and whether the array is zeros. Out: two texts to stand behind `cuda_prelude`;
parameters are those of `lower.planning.target.SortedAdds`.

Indices are sorted stably before, so that rows for one place of the array stand together in Python's
order. What is added lies in memory, or a kernel of the plan makes an element of it here
(`row_elements`). Rows are cut into chunks, whatever places they are for: a thread goes through a
chunk for a column and adds up rows of one place after the other, to what the array has there where
they begin in its chunk. What goes on from the chunk before is left aside, and the second kernel
adds it in order (Sengupta et al., "Scan primitives for GPU computing", 2007, section 2.3). So every
run gives the same bits, and rows of a place that lie in one chunk are added as Python does.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyrelay.devices.gpu import launch_texts
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.devices.gpu.launch_texts import KernelOf, Launched
from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import OUTPUT, without_results
from pyrelay.lower.kernels.row_elements import COLUMN
from pyrelay.lower.planning.target import SortedAdds
from pyrelay.lower.text.cuda_heads import parameter_types
from pyrelay.lower.text.cuda_numbers import literal
from pyrelay.lower.text.emit_cuda import emit_item

THREADS, CHUNK, AHEAD, COLUMNS = 128, 32, 8, 4
"""Threads of a block, rows of a chunk, rows that a thread reads before it adds them, columns that
it has of wide rows."""

_KINDS = (ADDRESS,) * 4 + ("i64",) * 2  # but for the rows that are added

_HEAD = """\
#define BLOCK_THREADS {threads}
#define CHUNK {chunk}
{found}extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<{t}> array,
    {values}Buffer<const u32> numbers, Buffer<const i64> order,
    {carried}, i64 count, i64 width{given}
) {{
    if (pyrelay_over(record, launch)) return;
    const int span = width < BLOCK_THREADS ? (int)width : BLOCK_THREADS;
    const int beside = BLOCK_THREADS / span, own = threadIdx.x / span;
    const i64 chunks = (count + {chunk} - 1) / {chunk};
"""

# Threads of a block stand side by side along columns; where there are few, it has several chunks.
# Of wide rows a thread has several columns; all threads are of one chunk, whose places they find
# together.
_ADDED = """\
{shared}    const int N = {columns}, AHEAD = {ahead_of};
    const i64 each = (i64)span * N, parts = (width + each - 1) / each;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 chunk = item / parts * beside + own, start = chunk * {chunk};
        if (own >= beside || chunk >= chunks) continue;
{found_together}        // Beyond the last column stands that one again: nothing is stored there.
        i64 column[N];
        bool is_inside[N];
#pragma unroll
        for (int l = 0; l < N; l++) {{
            column[l] = item % parts * each + threadIdx.x % span + l * span;
            is_inside[l] = column[l] < width;
            if (!is_inside[l]) column[l] = width - 1;
        }}
        const i64 stop = start + {chunk} < count ? start + {chunk} : count;
        i64 row = start > 0 ? row_at(start - 1) : -1;
        bool begun = false, goes_on = true;
        {t} sum[N];
#pragma unroll
        for (int l = 0; l < N; l++) sum[l] = {nothing};
        auto put = [&]() {{
#pragma unroll
            for (int l = 0; l < N; l++) {{
                if (!is_inside[l]) continue;
                if (goes_on) carried[chunk * width + column[l]] = sum[l];
                else array[row * width + column[l]] = sum[l];
            }}
        }};
        for (i64 place = start; place < stop; place += AHEAD) {{
            i64 from[AHEAD], of[AHEAD];
            {t} value[AHEAD][N], old[AHEAD][N];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {{
                from[k] = from_at(place + k < stop ? place + k : place);
            }}
#pragma unroll
            for (int k = 0; k < AHEAD; k++) of[k] = {row_of};
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {{
#pragma unroll
                for (int l = 0; l < N; l++) {{
                    {value}
{old}                }}
            }}
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {{
                if (place + k >= stop) break;
                if (of[k] != row) {{
                    if (begun) put();
                    row = of[k], goes_on = false;
#pragma unroll
                    for (int l = 0; l < N; l++) sum[l] = old[k][l];
                }}
                begun = true;
#pragma unroll
                for (int l = 0; l < N; l++) sum[l] = {t}(sum[l] + value[k][l]);
            }}
        }}
        put();
    }}
}}
"""
_NARROW = {
    "shared": "", "row_of": "numbers[from[k]]",
    "found_together": """\
        auto from_at = [&](i64 place) { return order[place]; };
        auto row_at = [&](i64 place) { return (i64)numbers[order[place]]; };
""",
}
_WIDE = {
    "shared": """\
    PYRELAY_SHARED(u32, froms, CHUNK + 1);
    PYRELAY_SHARED(u32, rows, CHUNK + 1);
""",
    "row_of": "row_at(place + k < stop ? place + k : place)",
    "found_together": """\
        __syncthreads();
        for (int k = threadIdx.x; k <= CHUNK; k += BLOCK_THREADS) {
            const i64 place = start + k - 1;
            const u32 from = (u32)order[place < 0 ? 0 : place < count ? place : count - 1];
            froms[k] = from, rows[k] = numbers[from];
        }
        __syncthreads();
        auto from_at = [&](i64 place) { return (i64)froms[place - start + 1]; };
        auto row_at = [&](i64 place) { return (i64)rows[place - start + 1]; };
""",
}

_OLD = """\
                    // What is not there stands for the first row, which may be another chunk's.
                    const bool begins = place + k < stop && of[k] != (k == 0 ? row : of[k - 1]);
                    if (begins && is_inside[l]) old[k][l] = array[of[k] * width + column[l]];
"""
_NO_OLD = "                    old[k][l] = {zero};\n"

_FINISHED = """\
    const i64 parts = (width + span - 1) / span;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 chunk = item / parts * beside + own, start = chunk * {chunk};
        const i64 column = item % parts * span + threadIdx.x % span;
        if (own >= beside || chunk >= chunks || column >= width || chunk == 0) continue;
        auto row_at = [&](i64 place) {{ return (i64)numbers[order[place]]; }};
        const i64 row = row_at(start);
        if (row_at(start - 1) != row) continue;
        // The first of the chunks that go on with these rows adds what they all have.
        if (chunk > 1 && row_at(start - {chunk} - 1) == row) continue;
        {t} sum = array[row * width + column];
        bool more = true;
        for (i64 begin = chunk; more; begin += {ahead}) {{
            bool goes_on[{ahead}];
            {t} left[{ahead}];
#pragma unroll
            for (int k = 0; k < {ahead}; k++) {{
                const i64 at = begin + k < chunks ? begin + k : chunk;
                goes_on[k] = begin + k < chunks && row_at(at * {chunk}) == row;
                left[k] = carried[at * width + column];
            }}
#pragma unroll
            for (int k = 0; k < {ahead}; k++) {{
                more = more && goes_on[k];
                if (more) sum = {t}(sum + left[k]);
            }}
        }}
        array[row * width + column] = sum;
    }}
}}
"""

_made: dict[str, tuple[str, ...]] = {}


def sorted_adds(dtype: DType, to_zeros: bool) -> SortedAdds:
    """The kernels for a type of elements, and arrays that are zeros, or any."""
    value = "value[k][l] = values[from[k] * width + column[l]];"
    values = f"Buffer<const {dtype.name}> values, "
    finished = _text(dtype, _FINISHED, f"Buffer<const {dtype.name}> carried")
    _made[finished] = _KINDS
    added, computing = [], []
    for is_wide in (False, True):
        added.append(_added(dtype, to_zeros, is_wide, value=value, values=values))
        _made[added[-1]] = ADDRESS, *_KINDS
        what = f"{'wide ' * is_wide}rows of {dtype.name} are added{' to zeros' * to_zeros}"
        text = f"// What a kernel of the plan computes, of which {what}.\n"
        made = functools.partial(_computed, dtype, to_zeros, is_wide)
        computing.append(launch_texts.known(text, made))
    return SortedAdds(
        (added[0], added[1]), (computing[0], computing[1]), finished, CHUNK, THREADS, COLUMNS
    )


def _added(dtype: DType, to_zeros: bool, is_wide: bool, **words: str) -> str:
    old = _NO_OLD.format(zero=literal(0, dtype)) if to_zeros else _OLD
    # Of wide rows that are read first there are half as many, for the registers.
    ahead = AHEAD if to_zeros or not is_wide else AHEAD // 2
    return _text(
        dtype, _ADDED, f"Buffer<{dtype.name}> carried", old=old, ahead_of=ahead,
        columns=COLUMNS if is_wide else 1, **(_WIDE if is_wide else _NARROW), **words,
    )


def _text(
    dtype: DType, body: str, carried: str, *, found: str = "", values: str = "", given: str = "",
    **words: str | int,
) -> str:
    numbers: dict[str, Any] = {
        "t": dtype.name, "threads": THREADS, "chunk": CHUNK, "ahead": AHEAD,
        "nothing": literal(False if dtype.kind == "b" else -0.0, dtype),
    }
    head = _HEAD.format(
        found=found, values=values, given=given, carried=carried, **numbers
    )
    return head + body.format(**numbers, **words)


def _computed(
    dtype: DType, to_zeros: bool, is_wide: bool, operands: Sequence[Any], kernel_of: KernelOf
) -> Launched:
    """What a launch needs of the kernel that computes what it adds."""
    shared, (address, *others) = operands[: len(_KINDS)], operands[len(_KINDS) :]
    kernel = kernel_of(address)
    parameters = tuple(p for p in kernel.parameters if p != COLUMN)
    is_row = len(parameters) < len(kernel.parameters)
    own = launch_texts.given(without_results(replace(kernel, parameters=parameters)))
    handed = iter(own.names.split(", ")[1:])
    names = [
        "column[l]" if p == COLUMN else "value[k][l]" if p.role == OUTPUT else next(handed)
        for p in parameter_types(kernel)
    ]
    item = "from[k]" if is_row else "from[k] * width + column[l]"
    text = _added(
        dtype, to_zeros, is_wide, value=f"found(record, launch, {', '.join([item, *names])});",
        found=emit_item(kernel, "found", results=False), given=own.parameters,
    )
    kinds = _made[text] = (*_KINDS, *own.kinds)
    return Launched((Text(text, kinds),), [*shared, *others])


def kinds_of(text: str) -> tuple[str, ...] | None:
    """What the parameters are of a text that this module made."""
    return _made.get(text)
