"""Numbers of the rows that few indices mean, and the places that sort them, in CUDA C++.

In: how the row of an index is found. Out: a text to stand behind `cuda_prelude`; parameters are
those of `lower.planning.target.ScatterKernel.few`.

A block has a share of the indices, neighbours, and looks at all: it sorts the numbers of its own
rows, finds by bisection among them between which of these each number lies that another block has,
and counts them. Equal numbers come before its own if their indices do. What has come together up to
one of its own, and those of its own before, is the place of that. No block waits for another one,
and it is one launch, where digits are four and more. The other items fill an array with zeros
meanwhile.
"""

from __future__ import annotations

THREADS, SHARES, MOST_SHARE = 512, 128, 128
"""Threads of a block; about how many blocks share the indices; how many each has, at most."""

MOST = SHARES * MOST_SHARE

ZEROED = 1 << 16
"""Bytes that an item fills with zeros."""

_SORTED = """\
#define BLOCK_THREADS {threads}
{head}\
    PYRELAY_SHARED(u32, found, {most});
    PYRELAY_SHARED(u32, sorted, 2 * {most});
    PYRELAY_SHARED(u32, places, {most});
    PYRELAY_SHARED(u32, counts, {most} + 1);
    const int thread = threadIdx.x;
    const i64 groups = (count + share - 1) / share;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        if (item >= groups) {{
            const i64 begin = (item - groups) * {zeroed};
            const i64 end = begin + {zeroed} < nbytes ? begin + {zeroed} : nbytes;
#pragma unroll 8
            for (i64 at = begin + thread * 16; at < end; at += BLOCK_THREADS * 16) {{
                if (at + 16 <= end && pyrelay_lined_up<16>(at, zeros)) {{
                    pyrelay_put_together<16>(zeros, at, pyrelay_pack<u8, 16>());
                }} else {{
                    for (i64 k = at; k < end && k < at + 16; k++) zeros[k] = 0;
                }}
            }}
            continue;
        }}
        const i64 begin = item * share;
        const int own = (int)(count - begin < share ? count - begin : share);
        int top = 1;
        while (2 * top - 1 < own) top *= 2;
        __syncthreads();
        if (thread < own) {{
            const i64 k = begin + thread;
            i64 row = 0;
{told}            numbers[k] = found[thread] = row < 0 ? 0 : (u32)row;
        }}
        for (int e = thread; e <= own; e += BLOCK_THREADS) counts[e] = 0;
        // What lies behind the own numbers is greater than all.
        for (int e = own + thread; e < 2 * top; e += BLOCK_THREADS) sorted[e] = ~(u32)0;
        __syncthreads();
        if (thread < own) {{
            const u32 number = found[thread];
            int before = 0;
#pragma unroll 8
            for (int e = 0; e < own; e++) {{
                before += e < thread ? found[e] <= number : found[e] < number;
            }}
            sorted[before] = number, places[before] = thread;
        }}
        __syncthreads();
        for (i64 start = thread; start < count; start += {together} * BLOCK_THREADS) {{
            u32 beyond[{together}];
            int at[{together}];
#pragma unroll
            for (int e = 0; e < {together}; e++) {{
                // Behind the last index stands that one again: it is not counted.
                const i64 place = start + e * BLOCK_THREADS, k = place < count ? place : count - 1;
                i64 row = 0;
{place}                beyond[e] = (row < 0 ? 0 : (u32)row) + (k >= begin);
                at[e] = 0;
            }}
            for (int step = top; step > 0; step /= 2) {{
#pragma unroll
                for (int e = 0; e < {together}; e++) {{
                    at[e] += sorted[at[e] + step - 1] < beyond[e] ? step : 0;
                }}
            }}
#pragma unroll
            for (int e = 0; e < {together}; e++) {{
                const i64 k = start + e * BLOCK_THREADS;
                if (k < begin || (k >= begin + own && k < count)) atomicAdd(&counts[at[e]], 1u);
            }}
        }}
        __syncthreads();
        if (thread < own) {{
            i64 rank = thread;
#pragma unroll 8
            for (int e = 0; e <= thread; e++) rank += counts[e];
            order[rank] = begin + places[thread];
        }}
    }}
}}
"""

_TOGETHER = 8  # indices that a thread loads before it looks for their places


def sorted_rows(head: str, told: str, place: str) -> str:
    """The text, of how its kernel begins, and how the row of index `k` is found, where an index
    that is outside is told and where it is not."""
    return _SORTED.format(
        threads=THREADS, most=MOST_SHARE, zeroed=ZEROED, together=_TOGETHER, head=head, told=told,
        place=place,
    )
