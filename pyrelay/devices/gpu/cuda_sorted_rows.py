"""Numbers of the rows that few indices mean, and the places that sort them, in CUDA C++.

In: how the row of an index is found. Out: a text to stand behind `cuda_prelude`; parameters are
those of `lower.planning.target.ScatterKernel.few`.

One block has all indices, keeps their numbers in registers and sorts them by way of shared memory,
as `cuda_sorts` does short lines: one launch in place of five, of which a kernel that counts and one
for each digit had a block or two each. Digits that are 0 in all numbers move nothing.
"""

from __future__ import annotations

from pyrelay.devices.gpu import cuda_sorts

THREADS, MOST = 512, 8192
"""Threads of the block; indices, at most: shared memory holds their numbers."""

_SORTED = """\
#define BLOCK_THREADS {threads}
{ranks}{head}\
    PYRELAY_SHARED(u32, room, TILE);
    const int own = first_place(threadIdx.x), left = (int)count - own;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        u32 key[EACH], place[EACH], to[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {{
            const i64 k = own + 32 * i;
            i64 row = 0;
            place[i] = (u32)k, key[i] = ~(u32)0;
            if (k < count) {{
{place}                key[i] = row < 0 ? 0 : (u32)row;
                numbers[k] = key[i];
            }}
        }}
#pragma unroll 1
        for (int pass = 0; pass < 4; pass++) {{
            bool some = false;
#pragma unroll
            for (int i = 0; i < EACH; i++) {{
                some |= 32 * i < left && (key[i] >> 8 * pass & 255) != 0;
            }}
            if (!__syncthreads_or(some)) continue;
            // What lies behind the last index has the greatest digits and stays there.
            ranked(to, [&](int i) {{ return key[i] >> 8 * pass & 255; }}, [](u32) {{}});
#pragma unroll
            for (int i = 0; i < EACH; i++) room[to[i]] = key[i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < EACH; i++) key[i] = room[own + 32 * i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < EACH; i++) room[to[i]] = place[i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < EACH; i++) place[i] = room[own + 32 * i];
        }}
#pragma unroll
        for (int i = 0; i < EACH; i++) {{
            if (32 * i < left) order[own + 32 * i] = place[i];
        }}
    }}
}}
"""


def sorted_rows(head: str, place: str) -> str:
    """The text, of how its kernel begins, and how the row of index `k` is found."""
    ranks = cuda_sorts.ranks(THREADS, MOST)
    # As many registers as so many threads may have.
    head = head.replace("__global__ ", f"__global__ __launch_bounds__({THREADS}) ", 1)
    return _SORTED.format(ranks=ranks, threads=THREADS, head=head, place=place)
