"""Attention over float16 and bfloat16 in CUDA C++, by tensor cores, as one kernel.

In: the type of queries, keys and values, that of the result, whether probabilities are rounded to
the former. Out: the text, to stand behind `cuda_prelude`; parameters are those of
`lower.planning.target.AttentionKernel`, with those of the kernel that makes scores at the end.

Operands are read as they lie in memory, 16 bytes at once where that is possible, and multiplied by
`mma.sync.m16n8k16`, whose products of them are exact and whose sums are float32. Heads of up to 64
are done by four warps of 32 rows, so that what they read of keys and values serves twice, with
queries in shared memory; others by four warps of 16 rows, with queries in registers. Keys and
values come through shared memory, 64 at a time: values while scores are made, the next keys while
values are used (Dao, *FlashAttention-2*, 2023). Depths over 128 come in parts, widths over 128 in
rounds that make the scores again.

Powers that the program does not round are multiplied as sums of numbers of 16 bits, two of float16
or three of bfloat16, which are as good as float32: the setting `matmul_precision` allows fewer.
Powers of float16 are 1024 times as large, so that small ones keep their digits.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from pyrelay.devices.gpu import cuda_attention, cuda_causal
from pyrelay.devices.gpu.cuda_attention import MOST_OPERANDS, PICOSECONDS, Forms
from pyrelay.devices.gpu.cuda_tensor_cores import TILES
from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.planning.target import AttentionKernel

ROWS = KEYS = 64
NARROW = 64  # depth and width of heads of which a warp has 32 rows

_PARTS = {"f16": (2, 1, 1), "bf16": (3, 2, 1)}  # by how products are rounded
_SCALES = {"f16": "1024.0f", "bf16": "1.0f"}
_DOUBLINGS = {"f16": "10.0f", "bf16": "0.0f"}

_ATTEND = """\
template <int N> struct Number {{ static const int value = N; }};
// Rows from i0 on of the result, its columns from e0 on. A warp has M times 16 rows. DEEP columns
// of queries, keys and values are in registers or tiles, more come in parts; of narrow matrices,
// DEEP below 128, there are no more. A depth is at least 1, of zeros if there is none. Powers are
// PARTS numbers of 16 bits.
template <int M, int DEEP, int PARTS, class Lines, class Shape, class Keep>
__device__ void attend(
    const Matrix &queries, const Matrix &of_keys, const Matrix &of_values, Buffer<u16> keys,
    Buffer<u16> values, i64 targets, const Lines &sources, i64 depth, i64 width, i64 i0, i64 e0,
    bool guarded, Buffer<{made}> y, i64 start, const Shape &shape, const Keep &keep
) {{
    const int STEP = DEEP + 8, SLICES = DEEP / 16;
    constexpr f32 LOG2E = 1.442695041f;
    const int own = threadIdx.x / 32 * 16 * M, group = threadIdx.x % 32 / 4;
    const int pair = threadIdx.x % 4 * 2;
    const bool whole = DEEP < 128 || depth <= DEEP;
    const int columns = DEEP < 128 ? DEEP : in_tile(width - e0);
    // Few columns leave room for queries in shared memory, more are in registers.
    const int behind = DEEP < 128 ? 64 * STEP : 0;
    const Buffer<u16> asked = own < 64 ? keys : values;
    u32 query[M][DEEP < 128 ? 1 : SLICES][4];
    auto ask = [&](i64 d0, int part) {{
        take<STEP>(queries, keys, i0, d0, part, behind);
        if (M == 2) take<STEP>(queries, values, i0 + 64, d0, part, behind);
        pyrelay_fetch_group();
        if (DEEP < 128) return;
        pyrelay_fetched<0>();
        __syncthreads();
#pragma unroll
        for (int s = 0; s < SLICES; s++) {{
            if (DEEP < 128 || 16 * s >= part) continue;
            pyrelay_matrices(query[0][DEEP < 128 ? 0 : s], keys, left_lane<STEP>(own) + 16 * s);
        }}
        __syncthreads();
    }};
    f32 sums[M][2 * SLICES][4] = {{}}, totals[M][2] = {{}}, largest[M][2];
#pragma unroll
    for (int m = 0; m < M; m++) largest[m][0] = largest[m][1] = -f32(PYRELAY_INFINITY);
    if (whole) {{
        const int part = DEEP < 128 ? DEEP : in_tile(depth);
        ask(0, part);
        take<STEP>(of_keys, keys, 0, 0, part);
        pyrelay_fetch_group();
    }}
    for (i64 j0 = 0; j0 < sources.to(); j0 += 64) {{
        f32 score[M][8][4] = {{}};
        for (i64 d0 = 0; d0 < (DEEP < 128 ? 1 : depth); d0 += DEEP) {{
            const int part = DEEP < 128 ? DEEP : in_tile(depth - d0);
            if (!whole) {{
                __syncthreads();
                ask(d0, part);
                take<STEP>(of_keys, keys, j0, d0, part);
                pyrelay_fetch_group();
            }}
            pyrelay_fetched<0>();
            __syncthreads();
            if (whole || d0 + DEEP >= depth) {{
                take<STEP>(of_values, values, j0, e0, columns);
                pyrelay_fetch_group();
            }}
#pragma unroll
            for (int s = 0; s < SLICES; s++) {{
                if (DEEP == 128 && 16 * s >= part) continue;
                const int place = DEEP < 128 ? 0 : s;
#pragma unroll
                for (int m = 0; m < (DEEP < 128 ? M : 0); m++) {{
                    pyrelay_matrices(
                        query[m][0], asked, behind + left_lane<STEP>(own % 64 + 16 * m) + 16 * s);
                }}
#pragma unroll
                for (int c = 0; c < 4; c++) {{
                    u32 key[4];
                    pyrelay_matrices(key, keys, right_lane<STEP>(16 * c) + 16 * s);
#pragma unroll
                    for (int m = 0; m < M; m++) {{
                        two_products<{of}>(
                            score[m][2 * c], score[m][2 * c + 1], query[m][place], key);
                    }}
                }}
            }}
        }}
        auto soften = [&](auto all) {{
#pragma unroll
            for (int n = 0; n < 2 * M; n++) {{
                const int m = n / 2, r = n % 2;
                const i64 row = i0 + own + group + 8 * n;
                f32 tops[2] = {{largest[m][r], -f32(PYRELAY_INFINITY)}};
#pragma unroll
                for (int k = 0; k < 16; k++) {{
                    const int c = k / 2, e = 2 * r + k % 2;
                    const i64 j = j0 + 8 * c + pair + k % 2;
                    f32 cell = score[m][c][e];
                    if (all.value || (row < targets && j < sources.to())) shape(row, j, cell);
                    else cell = -f32(PYRELAY_INFINITY);
                    score[m][c][e] = cell;
                    tops[k % 2] = fmaxf(tops[k % 2], cell);
                }}
                f32 top = fmaxf(tops[0], tops[1]);
                for (int step = 1; step < 4; step *= 2) {{
                    top = fmaxf(top, pyrelay_shuffled(top, step));
                }}
                const f32 shift = top == -f32(PYRELAY_INFINITY) ? 0.0f : top;
                const f32 scale = pyrelay_exp2((largest[m][r] - shift) * LOG2E);
                f32 added[2] = {{totals[m][r] * scale, 0.0f}};
#pragma unroll
                for (int k = 0; k < 16; k++) {{
                    f32 &cell = score[m][k / 2][2 * r + k % 2];
                    cell = pyrelay_exp2(fma(cell - shift, LOG2E, {doublings}));
                    added[k % 2] += cell;
                }}
                largest[m][r] = top, totals[m][r] = added[0] + added[1];
#pragma unroll
                for (int u = 0; u < 2 * SLICES; u++) {{
                    sums[m][u][2 * r] *= scale, sums[m][u][2 * r + 1] *= scale;
                }}
            }}
        }};
        if (i0 + 64 * M <= targets && j0 + 64 <= sources.to()) soften(Number<1>());
        else soften(Number<0>());
        pyrelay_fetched<0>();
        __syncthreads();
        if (whole && j0 + 64 < sources.to()) {{
            take<STEP>(of_keys, keys, j0 + 64, 0, DEEP < 128 ? DEEP : in_tile(depth));
            pyrelay_fetch_group();
        }}
#pragma unroll
        for (int s = 0; s < 4; s++) {{
            u32 power[PARTS][M][4];
#pragma unroll
            for (int p = 0; p < PARTS; p++) {{
#pragma unroll
                for (int e = 0; e < 4 * M; e++) {{
                    f32 (&pieces)[4] = score[e / 4][2 * s + e % 4 / 2];
                    f32 &low = pieces[e % 2 * 2], &high = pieces[e % 2 * 2 + 1];
                    power[p][e / 4][e % 4] = pyrelay_pair(low, high, {of}());
                    if (p + 1 == PARTS) continue;
                    pyrelay_rest(low, high, power[p][e / 4][e % 4], {of}());
                }}
            }}
#pragma unroll
            for (int u = 0; u < SLICES; u++) {{
                if (DEEP == 128 && 16 * u >= columns) continue;
                u32 value[4];
                pyrelay_matrices_turned(value, values, left_lane<STEP>(16 * s) + 16 * u);
#pragma unroll
                for (int n = 0; n < PARTS * M; n++) {{
                    two_products<{of}>(
                        sums[n % M][2 * u], sums[n % M][2 * u + 1], power[n / M][n % M], value);
                }}
            }}
        }}
    }}
    __syncthreads();
#pragma unroll
    for (int n = 0; n < 2 * M; n++) {{
        const int m = n / 2, r = n % 2;
        const i64 row = i0 + own + group + 8 * n;
        f32 total = totals[m][r];
        for (int step = 1; step < 4; step *= 2) total += pyrelay_shuffled(total, step);
        if (row >= targets) continue;
        if (pair == 0) keep(row, largest[m][r], total);
        const f32 share = guarded && total == 0 ? 1.0f : 1.0f / total;
#pragma unroll
        for (int u = 0; u < 2 * SLICES; u++) {{
            const i64 column = e0 + 8 * u + pair;
            put_pair<{made}>(
                y, start + row * width + column, sums[m][u][2 * r] * share,
                sums[m][u][2 * r + 1] * share, width - column);
        }}
    }}
}}
"""

_KERNEL = """\
#define BLOCK_THREADS 128
{shaping}{tiles}{attend}extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const u16> q,
    Buffer<const u16> k, Buffer<const u16> v, Buffer<{made}> y{rows_of}, i64 targets, i64 sources,
    i64 depth, i64 width, i64 q_turned, i64 k_turned, i64 v_turned, i64 q_line, i64 k_line,
    i64 v_line, i64 guarded, i64 no_operands, i64 axes{parameters}
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED(u16, keys, {tile});
    PYRELAY_SHARED(u16, values, {tile});
    PYRELAY_SHARED(Matrix, sides, 3);
{bounds}    // An item is a block of 64 rows, of which narrow matrices have {at_once} done at once.
    const i64 blocks = (targets + 63) / 64, steps = (blocks + {at_once} - 1) / {at_once};
    const i64 entries = last / blocks;
    for (i64 item = first + blockIdx.x; item < entries * steps; item += gridDim.x) {{
        const i64 entry = item / steps, step = item % steps, i0 = {step} * (64 * {at_once});
        i64 rest = entry, q_start = 0, k_start = 0, v_start = 0;
{batch}        __syncthreads();
        if (threadIdx.x == 0) {{  // in shared memory they take no registers
            sides[0] = {{q, q_start, q_line, targets, depth, q_turned != 0}};
            sides[1] = {{k, k_start, k_line, sources, depth, k_turned == 0}};
            sides[2] = {{v, v_start, v_line, sources, width, v_turned != 0}};
        }}
        __syncthreads();
        const i64 start = entry * targets * width;
        auto shape = [&](i64 row, i64 j, f32 &cell) {{
{shaped}        }};
{reached}        for (i64 e0 = 0; e0 < {across}; e0 += {deep}) {{
            auto keep = [&](i64 row, f32 top, f32 total) {{
                if (e0 != 0) return;
{kept}            }};
            attend<{at_once}, {deep}, {parts}>(
                sides[0], sides[1], sides[2], keys, values, targets, {sources},
                depth > 0 ? depth : 1, width, i0, e0, guarded != 0, y, start, shape, keep);
        }}
    }}
}}
"""

_SHAPED = """\
            shaped(record, launch, entry * targets + row, PYRELAY_BUFFER(f32, &cell - j), j, j + 1,
                   0{given});
"""

_KEPT = """\
                tops[entry * targets + row] = top;
                sums_of_rows[entry * targets + row] = total / {scale};
"""


def attention(of: DType, made: DType, rounded: bool) -> AttentionKernel:
    """The kernel for queries, keys and values `of` a type. `launch_texts.for_launch` gives what a
    launch needs."""
    parts = (1, 1, 1) if rounded else _PARTS[of.name]
    fewest = sorted({*parts})
    forms = Forms(tuple(map(fewest.index, parts)), narrow=NARROW)
    writer = functools.partial(_text, of.name, made.name, fewest)
    source = cuda_attention.written_by(writer, forms)
    return AttentionKernel(source, ROWS, PICOSECONDS, MOST_OPERANDS)


def _text(
    of: str, made: str, parts: Sequence[int], form: int, axes: int, shaping: Kernel | None, *,
    statistics: bool,
) -> str:
    own = cuda_attention.of_launch(axes, shaping)
    narrow, masked = form >= len(parts), own.causal is not None
    attend = _ATTEND.format(of=of, made=made, doublings=_DOUBLINGS[of])
    return _KERNEL.format(
        made=made, tile=128 * 72, tiles=TILES + cuda_causal.lines(of, some=masked), attend=attend,
        reached=cuda_attention.reached(own.causal, 128 if narrow else 64, "sides[2]", "keys"),
        sources="SomeLines{bounds}" if masked else "AllLines{sources}",
        # What a mask leaves most of comes first.
        step="(steps - 1 - step)" if masked else "step",
        bounds="    PYRELAY_SHARED(i64, bounds, 2);\n" if masked else "",
        at_once=2 if narrow else 1, deep=NARROW if narrow else 128,
        across="1" if narrow else "width", parts=parts[form % len(parts)],
        shaping=own.function, parameters=own.parameters,
        batch=own.batch, shaped=_SHAPED.format(given=own.given) if shaping is not None else "",
        rows_of=", Buffer<f32> tops, Buffer<f32> sums_of_rows" if statistics else "",
        kept=_KEPT.format(scale=_SCALES[of]) if statistics else "",
    )
