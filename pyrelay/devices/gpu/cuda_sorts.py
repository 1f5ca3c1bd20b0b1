"""The places that sort lines of numbers, in CUDA C++.

In: a dtype. Out: two texts to stand behind `cuda_prelude`; parameters are those of
`lower.planning.target.SortKernels`.

Numbers become keys, unsigned integers in the same order: NaNs are the greatest, and the zeros of
both signs are one. A block sorts a tile of a line in shared memory, by Batcher's bitonic network
(Knuth, The Art of Computer Programming, volume 3, section 5.3.4); equal keys are compared by their
places, so that no two elements are equal and the order is the stable one. Then runs are merged, and
each thread writes some neighbours: where these begin in both runs a bisection along a diagonal
finds (Green, McColl and Bader, "GPU merge path", ICS 2012).
"""

from __future__ import annotations

from pyrelay.devices.gpu.driver import ADDRESS
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import SortKernels

THREADS, TILE, PART = 256, 1024, 8

_TILES = """\
__device__ {k} sort_key({t} value) {{
{key}}}
#define BLOCK_THREADS {threads}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {t}> x, Buffer<{k}> keys,
    Buffer<i64> order, i64 n, i64 keeps
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED({k}, key, {tile});
    PYRELAY_SHARED(i32, place, {tile});
    const i64 tiles = (n + {tile} - 1) / {tile};
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 start = item % tiles * {tile}, base = item / tiles * n + start;
        const int count = n - start < {tile} ? (int)(n - start) : {tile};
        int size = 1;
        while (size < count) size *= 2;
        for (int e = threadIdx.x; e < size; e += BLOCK_THREADS) {{
            place[e] = e;
            key[e] = e < count ? sort_key(x[base + e]) : ({k})~({k})0;
        }}
        __syncthreads();
        for (int span = 2; span <= size; span *= 2) {{
            for (int step = span / 2; step > 0; step /= 2) {{
                for (int e = threadIdx.x; e < size / 2; e += BLOCK_THREADS) {{
                    const int i = 2 * e - (e & (step - 1)), j = i + step;
                    const {k} a = key[i], b = key[j];
                    const i32 at = place[i], to = place[j];
                    if ((a > b || (a == b && at > to)) == ((i & span) == 0)) {{
                        key[i] = b, key[j] = a;
                        place[i] = to, place[j] = at;
                    }}
                }}
                __syncthreads();
            }}
        }}
        for (int e = threadIdx.x; e < count; e += BLOCK_THREADS) {{
            order[base + e] = start + place[e];
            if (keeps) keys[base + e] = key[e];
        }}
        __syncthreads();
    }}
}}
"""

_MERGE = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {k}> keys,
    Buffer<const i64> order, Buffer<{k}> new_keys, Buffer<i64> new_order, i64 n, i64 width
) {{
    if (pyrelay_over(record, launch)) return;
    const i64 parts = (n + {part} - 1) / {part};
    for (i64 item = first + (i64)blockIdx.x * blockDim.x + threadIdx.x; item < last;
         item += (i64)gridDim.x * blockDim.x) {{
        const i64 base = item / parts * n, begin = item % parts * {part};
        const i64 start = begin / (2 * width) * (2 * width);
        const i64 middle = start + width < n ? start + width : n;
        const i64 end = start + 2 * width < n ? start + 2 * width : n;
        const i64 before = begin - start;
        // How many of the elements before these are of the left run.
        i64 low = before > end - middle ? before - (end - middle) : 0;
        i64 high = before < middle - start ? before : middle - start;
        while (low < high) {{
            const i64 half = (low + high) / 2;
            if (keys[base + start + half] <= keys[base + middle + before - 1 - half]) {{
                low = half + 1;
            }} else {{
                high = half;
            }}
        }}
        i64 i = start + low, j = middle + before - low;
        for (i64 e = begin; e < begin + {part} && e < end; e++) {{
            const bool left = j >= end || (i < middle && keys[base + i] <= keys[base + j]);
            const i64 from = base + (left ? i++ : j++);
            new_keys[base + e] = keys[from];
            new_order[base + e] = order[from];
        }}
    }}
}}
"""

_FLOAT = """\
    if (value != value) return ({k})~({k})0;
    const {s} bits = value == {t}(0) ? 0 : {bits};
    return bits < 0 ? ~({k})bits : ({k})bits | {top};
"""

_made: dict[str, tuple[str, ...]] = {}


def sort(dtype: DType) -> SortKernels:
    """The kernels for a type of elements."""
    wide = dtype.size > 4
    kinds = {"k": "u64", "s": "i64"} if wide else {"k": "u32", "s": "i32"}
    top = "(1ull << 63)" if wide else "0x80000000u"
    if dtype.kind == "f":
        bits = "__double_as_longlong(value)" if wide else "__float_as_int(value)"
        number = "f64" if wide else "f32"
        key = _FLOAT.format(t=number, bits=bits, top=top, **kinds)
    elif dtype.kind == "i":
        key = f"    return ({kinds['k']})({kinds['s']})value ^ {top};\n"
        number = dtype.name
    else:
        key, number = f"    return ({kinds['k']})value;\n", dtype.name
    tiles = _TILES.format(
        t=dtype.name, k=kinds["k"], key=key, threads=THREADS, tile=TILE
    )
    if number != dtype.name:  # 16 bits, whose order is that of the same numbers in 32
        tiles = tiles.replace(f"sort_key({dtype.name} value)", f"sort_key({number} value)")
        tiles = tiles.replace("sort_key(x[base + e])", f"sort_key({number}(x[base + e]))")
    merge = _MERGE.format(k=kinds["k"], part=PART)
    _made[tiles] = (ADDRESS,) * 3 + ("i64",) * 2
    _made[merge] = (ADDRESS,) * 4 + ("i64",) * 2
    return SortKernels(tiles, merge, TILE, PART, 8 if wide else 4)


def kinds_of(text: str) -> tuple[str, ...] | None:
    """What the parameters are of a text that this module made."""
    return _made.get(text)
