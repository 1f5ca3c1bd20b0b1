"""Attention over float16 and bfloat16 in CUDA C++, by tensor cores, as one kernel.

In: the type of queries, keys and values, that of the result, whether probabilities are rounded to
the former. Out: the text, to stand behind `cuda_prelude`; parameters are those of
`lower.planning.target.AttentionKernel`, with those of the kernel that makes scores at the end.

Operands are read as they lie in memory, 16 bytes at once where that is possible, and multiplied by
`mma.sync.m16n8k16`, whose products of them are exact and whose sums are float32. A block of four
warps has 64 rows; a warp has 16 of them, its queries, scores and results in registers. Keys and
values come through shared memory, 64 at a time: values while scores are made, the next keys while
they are used (Dao, *FlashAttention-2*, 2023). Depths over 128 come in parts, widths over 128 in
rounds that make the scores again.

Powers that the program does not round are multiplied as sums of numbers of 16 bits, two of float16
or three of bfloat16, which are as good as float32: the setting `matmul_precision` allows fewer.
Powers of float16 are 1024 times as large, so that small ones keep their digits.
"""

from __future__ import annotations

import functools

from pyrelay.devices.gpu import cuda_attention
from pyrelay.devices.gpu.cuda_attention import MOST_OPERANDS, PICOSECONDS
from pyrelay.devices.gpu.cuda_tensor_cores import LINE, TILES
from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.planning.target import AttentionKernel

ROWS = KEYS = 64

_PARTS = {"f16": "precision == 0 ? 2 : 1", "bf16": "precision == 0 ? 3 : precision == 1 ? 2 : 1"}
_SCALES = {"f16": "1024.0f", "bf16": "1.0f"}

_KERNEL = """\
#define BLOCK_THREADS 128
{shaping}{tiles}extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const u16> q,
    Buffer<const u16> k, Buffer<const u16> v, Buffer<{made}> y{rows_of}, i64 targets, i64 sources,
    i64 depth, i64 width, i64 q_turned, i64 k_turned, i64 v_turned, i64 q_line, i64 k_line,
    i64 v_line, i64 guarded, i64 precision, i64 no_operands, i64 axes{parameters}
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED(u16, keys, {tile});
    PYRELAY_SHARED(u16, values, {tile});
    const int own = threadIdx.x / 32 * 16, group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4 * 2;
    const int parts = {parts};
    const bool whole = depth <= 128;
    const i64 blocks = (targets + 63) / 64;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 entry = item / blocks, i0 = item % blocks * 64;
        i64 rest = entry, q_start = 0, k_start = 0, v_start = 0;
{batch}        const Matrix queries = {{q, q_start, q_line, targets, depth, q_turned != 0}};
        const Matrix of_keys = {{k, k_start, k_line, sources, depth, k_turned == 0}};
        const Matrix of_values = {{v, v_start, v_line, sources, width, v_turned != 0}};
        for (i64 e0 = 0; e0 < width; e0 += 128) {{
            const int columns = in_tile(width - e0), deep = in_tile(depth);
            f32 sums[16][4] = {{}}, totals[2] = {{}};
            f32 largest[2] = {{-f32(PYRELAY_INFINITY), -f32(PYRELAY_INFINITY)}};
            u32 query[8][4];
            if (whole) {{
                take(queries, keys, i0, 0, deep);
                pyrelay_fetch_group();
                pyrelay_fetched<0>();
                __syncthreads();
#pragma unroll
                for (int s = 0; s < 8; s++) {{
                    if (16 * s < deep) pyrelay_matrices(query[s], keys, left_lane(own) + 16 * s);
                }}
                __syncthreads();
                take(of_keys, keys, 0, 0, deep);
                pyrelay_fetch_group();
            }}
            for (i64 j0 = 0; j0 < sources; j0 += 64) {{
                take(of_values, values, j0, e0, columns);
                pyrelay_fetch_group();
                f32 score[8][4] = {{}};
                for (i64 d0 = 0; d0 < depth; d0 += 128) {{
                    const int part = in_tile(depth - d0);
                    if (whole) {{
                        pyrelay_fetched<1>();
                    }} else {{
                        take(queries, keys, i0, d0, part);
                        pyrelay_fetch_group();
                        pyrelay_fetched<0>();
                        __syncthreads();
#pragma unroll
                        for (int s = 0; s < 8; s++) {{
                            if (16 * s < part) {{
                                pyrelay_matrices(query[s], keys, left_lane(own) + 16 * s);
                            }}
                        }}
                        __syncthreads();
                        take(of_keys, keys, j0, d0, part);
                        pyrelay_fetch_group();
                        pyrelay_fetched<0>();
                    }}
                    __syncthreads();
#pragma unroll
                    for (int s = 0; s < 8; s++) {{
                        if (16 * s >= part) continue;
#pragma unroll
                        for (int c = 0; c < 4; c++) {{
                            u32 key[4];
                            pyrelay_matrices(key, keys, right_lane(16 * c) + 16 * s);
                            two_products<{of}>(score[2 * c], score[2 * c + 1], query[s], key);
                        }}
                    }}
                    __syncthreads();
                }}
                if (whole && j0 + 64 < sources) take(of_keys, keys, j0 + 64, 0, deep);
                pyrelay_fetch_group();
#pragma unroll
                for (int r = 0; r < 2; r++) {{
                    const i64 row = i0 + own + group + 8 * r;
                    f32 top = largest[r];
#pragma unroll
                    for (int c = 0; c < 8; c++) {{
#pragma unroll
                        for (int e = 0; e < 2; e++) {{
                            const i64 j = j0 + 8 * c + pair + e;
                            const bool inside = row < targets && j < sources;
                            f32 cell = inside ? score[c][2 * r + e] : -f32(PYRELAY_INFINITY);
{shaped}                            score[c][2 * r + e] = cell;
                            top = pyrelay_maximum(top, cell);
                        }}
                    }}
                    for (int step = 1; step < 4; step *= 2) {{
                        top = pyrelay_maximum(top, pyrelay_shuffled(top, step));
                    }}
                    const f32 shift = top == -f32(PYRELAY_INFINITY) ? 0.0f : top;
                    const f32 scale = exp(f32(largest[r] - shift));
                    f32 total = 0;
#pragma unroll
                    for (int c = 0; c < 8; c++) {{
#pragma unroll
                        for (int e = 0; e < 2; e++) {{
                            const f32 power = exp(f32(score[c][2 * r + e] - shift)) * {scale};
                            score[c][2 * r + e] = power;
                            total += power;
                        }}
                    }}
                    for (int step = 1; step < 4; step *= 2) total += pyrelay_shuffled(total, step);
                    largest[r] = top, totals[r] = fma(totals[r], scale, total);
#pragma unroll
                    for (int u = 0; u < 16; u++) {{
                        sums[u][2 * r] *= scale, sums[u][2 * r + 1] *= scale;
                    }}
                }}
                pyrelay_fetched<1>();
                __syncthreads();
#pragma unroll
                for (int s = 0; s < 4; s++) {{
                    u32 power[{most}][4];
#pragma unroll
                    for (int p = 0; p < {most}; p++) {{
#pragma unroll
                        for (int e = 0; e < 4; e++) {{
                            f32 (&pieces)[4] = score[2 * s + e / 2];
                            f32 &low = pieces[e % 2 * 2], &high = pieces[e % 2 * 2 + 1];
                            power[p][e] = pyrelay_pair(low, high, {of}());
                            low -= f32({of}(low)), high -= f32({of}(high));
                        }}
                    }}
#pragma unroll
                    for (int u = 0; u < 8; u++) {{
                        if (16 * u >= columns) continue;
                        u32 value[4];
                        pyrelay_matrices_turned(value, values, left_lane(16 * s) + 16 * u);
#pragma unroll
                        for (int p = 0; p < {most}; p++) {{
                            if (p < parts) {{
                                two_products<{of}>(sums[2 * u], sums[2 * u + 1], power[p], value);
                            }}
                        }}
                    }}
                }}
                __syncthreads();
            }}
            pyrelay_fetched<0>();
#pragma unroll
            for (int r = 0; r < 2; r++) {{
                const i64 row = i0 + own + group + 8 * r;
                if (row >= targets) continue;
{kept}                const f32 total = guarded && totals[r] == 0 ? 1.0f : totals[r];
#pragma unroll
                for (int u = 0; u < 16; u++) {{
                    const i64 column = e0 + 8 * u + pair;
                    put_pair<{made}>(
                        y, (entry * targets + row) * width + column, sums[u][2 * r] / total,
                        sums[u][2 * r + 1] / total, width - column);
                }}
            }}
        }}
    }}
}}
"""

_SHAPED = """\
                            if (inside) {{
                                shaped(record, launch, entry * targets + row,
                                       PYRELAY_BUFFER(f32, &cell - j), j, j + 1, 0{given});
                            }}
"""

_KEPT = """\
                if (e0 == 0 && pair == 0) {{
                    tops[entry * targets + row] = largest[r];
                    sums_of_rows[entry * targets + row] = totals[r] / {scale};
                }}
"""


def attention(of: DType, made: DType, rounded: bool) -> AttentionKernel:
    """The kernel for queries, keys and values `of` a type. `launch_texts.for_launch` gives what a
    launch needs."""
    writer = functools.partial(_text, of.name, made.name, rounded)
    return AttentionKernel(cuda_attention.written_by(writer), ROWS, PICOSECONDS, MOST_OPERANDS)


def _text(
    of: str, made: str, rounded: bool, axes: int, shaping: Kernel | None, *, statistics: bool
) -> str:
    own = cuda_attention.of_launch(axes, shaping)
    places = {"of": of, "made": made, "scale": _SCALES[of], "tile": 64 * LINE, "tiles": TILES}
    parts, most = ("1", 1) if rounded else (_PARTS[of], 2 if of == "f16" else 3)
    return _KERNEL.format(
        **places, parts=parts, most=most, shaping=own.function, parameters=own.parameters,
        batch=own.batch, shaped=_SHAPED.format(given=own.given) if shaping is not None else "",
        rows_of=", Buffer<f32> tops, Buffer<f32> sums_of_rows" if statistics else "",
        kept=_KEPT.format(**places) if statistics else "",
    )
