"""Rows of an array written or added to at indices, in CUDA C++.

In: which scatter, a dtype, the number of index arrays. Out: the text, to stand behind
`cuda_prelude`; parameters are those of `lower.planning.target.ScatterKernel`.

Each block owns a range of rows, looks at all indices and does those that are its own, in the order
of Python: several rows of one place are added in that order, and the last one written stays. So
there are no atomic additions, and every run gives the same bits. The indices that a block owns are
picked out of a tile by ballots, as in a compaction; the threads share the elements of a row, or,
where rows are short, the rows, so that those of one place always fall to the same thread.

Where indices are many, the numbers of the rows that they mean are sorted (up to some ten thousands
of them in one launch, `cuda_sorted_rows`), and rows added in that order (`cuda_sorted_adds`).
Integers, whose sums are the same in any order, are added atomically, to small arrays in shared
memory first. Of rows that are written to one place the last one is found first: the greatest number
wins, whoever comes when.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pyrelay.devices.gpu import cuda_sorted_rows, launch_texts
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.devices.gpu.launch_texts import KernelOf, Launched
from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import OUTPUT, without_results
from pyrelay.lower.planning.target import ScatterKernel
from pyrelay.lower.text.cuda_heads import parameter_types
from pyrelay.lower.text.cuda_numbers import literal
from pyrelay.lower.text.emit_cuda import emit_item

THREADS = 128
MOST_BLOCKS = 1024
"""Ranges of rows, at most; each of them looks at all indices."""

EACH = 4
"""Indices that a thread looks at before the threads of a block meet, outside of loops."""

COUNTED = 2048
"""Elements of an array that each block adds integers up in for itself."""

_COPIES, _COUNTING_THREADS = 8, 256

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
    PYRELAY_SHARED(i64, places, {tile});
    PYRELAY_SHARED(int, sources, {tile});
    PYRELAY_SHARED(int, found, {counts});
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int span = width < 1 ? 1 : width < BLOCK_THREADS ? (int)width : BLOCK_THREADS;
    const int lines = BLOCK_THREADS / span, line = threadIdx.x / span;
    const i64 column = threadIdx.x % span;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 low = item * share, high = low + share < rows ? low + share : rows;
        for (i64 e = low * width + threadIdx.x; fills && e < high * width; e += BLOCK_THREADS) {{
            array[e] = {t}({zero});
        }}
        if (fills) __syncthreads();
        for (i64 start = 0; start < count; start += {tile}) {{
            i64 rows_of[{each}];
            u32 own[{each}];
#pragma unroll
            for (int e = 0; e < {each}; e++) {{
                const i64 k = start + e * BLOCK_THREADS + threadIdx.x;
                i64 row = k < count ? 0 : -1;
                if (k < count) {{
{place}                }}
                rows_of[e] = row >= low && row < high ? row : -1;
            }}
#pragma unroll
            for (int e = 0; e < {each}; e++) {{
                own[e] = __ballot_sync(0xffffffffu, rows_of[e] >= 0);
                if (lane == 0) found[e * {warps} + warp] = __popc(own[e]);
            }}
            __syncthreads();
            int total = 0;
#pragma unroll
            for (int e = 0; e < {each}; e++) {{
                int at = total + __popc(own[e] & ((1u << lane) - 1));
                for (int w = 0; w < {warps}; w++) {{
                    if (w < warp) at += found[e * {warps} + w];
                    total += found[e * {warps} + w];
                }}
                if (rows_of[e] < 0) continue;
                places[at] = rows_of[e], sources[at] = e * BLOCK_THREADS + threadIdx.x;
            }}
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
# Integers have the same sum in every order: blocks add up small arrays in shared memory, of which
# each warp has a copy where there is room, and then to the array. Shared memory adds 32 bits by one
# instruction, and 64 in a loop that compares and swaps: the upper half is another number, to which
# is added what is left of a value, or carried, and mostly nothing is.
_COUNTS = """\
#define BLOCK_THREADS {threads}
{found}{head}\
    PYRELAY_SHARED(u32, held, {room} * {halves});
    const i64 elements = rows * width;
    const int copies = elements > {room} ? 0 : elements * {copies} <= {room} ? {copies} : 1;
    for (int e = threadIdx.x; e < copies * elements; e += BLOCK_THREADS) {{
        held[e] = 0;
        if ({halves} == 2) held[{room} + e] = 0;
    }}
    __syncthreads();
    const i64 own = copies == 0 ? 0 : threadIdx.x / 32 % copies * elements;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        for (i64 e = item * BLOCK_THREADS + threadIdx.x; e < count * width;
             e += (last - first) * BLOCK_THREADS) {{
            const i64 k = width == 1 ? e : e / width;
            i64 row = 0;
{computed}{place}            if (row < 0) continue;
            const i64 at = width == 1 ? row : row * width + e % width;
            const {u} value = {u}({value});
            if (value == 0) continue;
            if (copies == 0) {{
                atomicAdd(({u} *)&array[at], value);
                continue;
            }}
            u32 left = 0;
            if (u32(value) != 0) {{
                const u32 before = atomicAdd(&held[own + at], u32(value));
                left = u32(before + u32(value)) < before;
            }}
            if ({halves} == 1) continue;
            left += u32(u64(value) >> 32);
            if (left != 0) atomicAdd(&held[{room} + own + at], left);
        }}
    }}
    __syncthreads();
    for (int e = threadIdx.x; copies > 0 && e < elements; e += BLOCK_THREADS) {{
        {u} sum = 0;
        for (int copy = 0; copy < copies; copy++) {{
            const i64 at = copy * elements + e;
            sum += held[at];
            if ({halves} == 2) sum += {u}(u64(held[{room} + at]) << 32);
        }}
        if (sum != 0) atomicAdd(({u} *)&array[e], sum);
    }}
}}
"""

# The row of an index; who writes a row last, one more than its number, 0: nobody.
_BY_THREADS = """\
{head}\
    for (i64 item = first + (i64)blockIdx.x * blockDim.x + threadIdx.x; item < last;
         item += (i64)gridDim.x * blockDim.x) {{
{body}    }}
}}
"""
_NUMBERED = """\
        const i64 k = item;
        i64 row = 0;
{place}        numbers[k] = row < 0 ? 0 : (u32)row;
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
                const i64 index{k} = {index};
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
_finding: set[str] = set()  # that compute the places


def scatter(name: str, dtype: DType, axes: int) -> ScatterKernel:
    """The kernel of a scatter at indices of this many leading axes."""
    text = _text(name, dtype, axes, THREADS)
    _made[text] = name, dtype, axes
    if name == "scatter_add" and dtype.kind in "iu" and dtype.size >= 4:
        computing = _computing(dtype) if axes == 1 else ""
        return ScatterKernel(text, MOST_BLOCKS, (_counting(dtype, axes),), True, computing)
    if name != "scatter_add":
        return ScatterKernel(text, MOST_BLOCKS, _writing(dtype, axes))
    few = _sorted(axes)
    return ScatterKernel(
        text, MOST_BLOCKS, (_numbered(axes),), few=few, most_few=cuda_sorted_rows.MOST,
        shares=cuda_sorted_rows.SHARES, zeroed=cuda_sorted_rows.ZEROED,
    )


def for_blocks(text: str, threads: int) -> str:
    """A text that this module made, for blocks of so many threads."""
    return _text(*_made[text], threads, 1)


def can_fail(text: str) -> bool:
    """Whether a text is one of this module: all of them look at indices."""
    return kinds_of(text) is not None or text in _finding


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
    return "".join(_looked_at(k, axes, claims, f"indices{k}[k]") for k in range(axes))


def _looked_at(k: int, axes: int, claims: str, index: str) -> str:
    return _PLACE.format(k=k, axes=axes, claims=claims, index=index)


def _text(name: str, dtype: DType, axes: int, threads: int, each: int = EACH) -> str:
    parameters = (
        f"Buffer<{dtype.name}> array,\n    Buffer<const {dtype.name}> values, {_indices(axes)}, "
        "i64 count, i64 rows, i64 width, i64 share, i64 fills"
    )
    return _KERNEL.format(
        t=dtype.name, **_sizes(threads, each), step=_STEPS[name], zero=literal(0, dtype),
        head=_head(parameters, axes), place=_place(axes, "item == 0 && "),
    )


def _sizes(threads: int, each: int) -> dict[str, int]:
    """Numbers of a text whose threads look at so many indices each before they meet."""
    warps = threads // 32
    return {
        "threads": threads, "warps": warps, "each": each, "tile": each * threads,
        "counts": each * warps,
    }


def _counting(dtype: DType, axes: int) -> str:
    """Integers added at many indices."""
    parameters = (
        f"Buffer<{dtype.name}> array,\n    Buffer<const {dtype.name}> values, {_indices(axes)}, "
        "i64 count, i64 rows, i64 width"
    )
    text = _COUNTS.format(
        **_counted(dtype), head=_head(parameters, axes), place=_place(axes, ""), found="",
        computed="", value="values[e]",
    )
    _for_many[text] = (ADDRESS,) * (2 + axes) + ("i64",) * (3 + axes)
    return text


def _counted(dtype: DType) -> dict[str, Any]:
    """Numbers of a text that counts, and the type of sums."""
    return {
        "u": f"u{8 * dtype.size}", "halves": dtype.size // 4, "threads": _COUNTING_THREADS,
        "copies": _COPIES, "room": COUNTED,
    }


def _computing(dtype: DType) -> str:
    """The text that stands in plans for integers added at places that a kernel of these makes."""
    text = f"// A kernel of the plan finds the places where {dtype.name} are added.\n"
    _finding.add(text)
    return launch_texts.known(text, functools.partial(_computed, dtype))


def _computed(dtype: DType, operands: Sequence[Any], kernel_of: KernelOf) -> Launched:
    """What a launch of it needs."""
    array, count, rows, address, values, places, *others = operands
    kernel = kernel_of(address)
    own = launch_texts.given(without_results(kernel))
    handed = iter(own.names.split(", ")[1:])
    results = {p: f"found{p.position}" for p in kernel.parameters if p.role == OUTPUT}
    names = [results.get(p) or next(handed) for p in parameter_types(kernel)]
    computed = "".join(f"            {p.dtype.name} {name};\n" for p, name in results.items())
    computed += f"            found(record, launch, k, {', '.join(names)});\n"
    parameters = f"Buffer<{dtype.name}> array, i64 count, i64 rows{own.parameters}"
    text = _COUNTS.format(
        **_counted(dtype), found=emit_item(kernel, "found", results=False), computed=computed,
        head=_HEAD.format(parameters=parameters) + "    const i64 width = 1, extent0 = rows;\n",
        place=_looked_at(0, 1, "", f"found{places.word}"), value=f"found{values.word}",
    )
    kinds = (ADDRESS, "i64", "i64", *own.kinds)
    return Launched((Text(text, kinds),), [array, count, rows, *others])


def _numbered(axes: int) -> str:
    """The numbers of the rows that indices mean."""
    text = _BY_THREADS.format(
        head=_head(f"Buffer<u32> numbers, {_indices(axes)}", axes),
        body=_NUMBERED.format(place=_place(axes, "")),
    )
    _for_many[text] = (ADDRESS,) * (1 + axes) + ("i64",) * axes
    return text


def _sorted(axes: int) -> str:
    """The numbers of the rows that few indices mean, and the places that sort them."""
    parameters = (
        f"Buffer<u32> numbers, Buffer<i64> order,\n    Buffer<u8> zeros, {_indices(axes)}, "
        "i64 count, i64 share, i64 nbytes"
    )
    text = cuda_sorted_rows.sorted_rows(
        _head(parameters, axes), _place(axes, ""), _place(axes, "false && ")
    )
    _for_many[text] = (ADDRESS,) * (3 + axes) + ("i64",) * (3 + axes)
    return text


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
    return (ADDRESS,) * (2 + axes) + ("i64",) * (5 + axes)
