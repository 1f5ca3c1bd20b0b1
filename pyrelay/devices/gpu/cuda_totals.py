"""Sums that blocks have computed in parts, in CUDA C++.

In: dtypes, what sums begin with. Out: the text, to stand behind `cuda_prelude`; parameters are the
result, the parts one behind the other, how many elements each has, how many parts there are.

A block adds up the parts of 32 neighbouring elements: each of its eight warps takes every eighth
part, and what they have is joined in order, so that every run gives the same bits.
"""

from __future__ import annotations

from pyrelay.devices.gpu.driver import ADDRESS
from pyrelay.ir.types import DType

KINDS = (ADDRESS,) * 2 + ("i64",) * 2
"""What the parameters are."""

_TEXT = """\
#define BLOCK_THREADS 256
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<{made}> array,
    Buffer<const {t}> partial, i64 elements, i64 parts
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED({t}, held, 256);
    const int lane = threadIdx.x / 32, column = threadIdx.x % 32;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 e = item * 32 + column;
        {t} sum = {nothing};
        for (i64 part = lane; e < elements && part < parts; part += 8) {{
            sum = {t}(sum + partial[part * elements + e]);
        }}
        held[threadIdx.x] = sum;
        __syncthreads();
        if (lane == 0 && e < elements) {{
            sum = {before};
            for (int k = 0; k < 8; k++) sum = {t}(sum + held[k * 32 + column]);
            array[e] = {made}(sum);
        }}
        __syncthreads();
    }}
}}
"""


def totals(made: DType, summed: DType, nothing: str, before: str) -> str:
    """The kernel for results `made` of parts `summed`: `nothing` is the sum of no parts, `before`
    what the sum of an element `e` begins with."""
    return _TEXT.format(made=made.name, t=summed.name, nothing=nothing, before=before)
