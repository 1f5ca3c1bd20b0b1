"""The derivative of attention over float16 and bfloat16 in CUDA C++, by tensor cores.

In: the type. Out: the text, to stand behind `cuda_prelude`, of a kernel that takes queries, keys,
values and the result's cotangent as they lie in memory, 16 bits an element, and gives cotangents of
float32. What it sums up, and in which order, is what `cuda_attention_gradient` says.

A block of four warps keeps 64 lines, 16 of them a warp's, and takes 64 others at a time. Of both it
makes scores and slopes, 32 or 16 others at once, and adds both sums that need them, so that seven
products are computed in all: three for rows, four for columns. Heads of up to 64 have the own lines
in registers, and the next lines are on their way while these are used; others read all from shared
memory, and depths and widths over 128 come in parts, their results in rounds.

Probabilities and cotangents of scores are float32. Beside bfloat16, which has its exponents, they
are multiplied as sums of three numbers of 8 digits (`matmul_precision` tf32: two, bf16: one).
float16 has not: there they are two numbers of 11 digits (else one), and what they are multiplied
with, which has no more, is exact.
"""

from __future__ import annotations

from pyrelay.devices.gpu.cuda_attention import Forms
from pyrelay.devices.gpu.cuda_attention_gradient import Form, Variety, kernel_of_variety
from pyrelay.devices.gpu.cuda_tensor_cores import TILES
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import AttentionGradientKernel

_SIDE = 64
_NARROW, _WIDE = 64, 128  # columns of tiles
_PARTS = {"bf16": (3, 2, 1), "f16": (2, 1, 1)}  # by how products are rounded

_SUM = """\
template <int N> struct Number { static const int value = N; };
// Adds 16 lines of a tile, DEEP columns, each times a number of the thread's two rows: what is
// `near` are those of lines 0 to 7 and `far` of 8 to 15, as `mma.sync` leaves them.
template <int PARTS, int DEEP>
__device__ void add_lines(
    f32 (&sums)[DEEP / 8][4], f32 (&near)[4], f32 (&far)[4], Buffer<u16> tiles, int at, bf16
) {
    u32 weight[PARTS][4];
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            f32 (&pieces)[4] = e < 2 ? near : far;
            f32 &low = pieces[e % 2 * 2], &high = pieces[e % 2 * 2 + 1];
            weight[p][e] = pyrelay_pair(low, high, bf16());
            if (p + 1 < PARTS) pyrelay_rest(low, high, weight[p][e], bf16());
        }
    }
#pragma unroll
    for (int u = 0; u < DEEP / 16; u++) {
        u32 lines[4];
        pyrelay_matrices_turned(lines, tiles, at + left_lane<DEEP + 8>(0) + 16 * u);
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            two_products<bf16>(sums[2 * u], sums[2 * u + 1], weight[p], lines);
        }
    }
}
// A product of 8 lines takes its left operand's columns in the order in which sums of scores have
// them: 0, 2, 4, 6, 1, 3, 5, 7.
template <int PARTS, int DEEP>
__device__ void add_lines(
    f32 (&sums)[DEEP / 8][4], f32 (&near)[4], f32 (&far)[4], Buffer<u16> tiles, int at, f16
) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32 weight[PARTS][4];
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                f32 &piece = (half ? far : near)[e % 2 * 2 + e / 2];
                weight[p][e] = pyrelay_tf32(piece);
                if (p + 1 < PARTS) piece -= __int_as_float((i32)weight[p][e]);
            }
        }
        const int from = at + (threadIdx.x % 8 + 8 * half) * (DEEP + 8) + threadIdx.x % 32 / 8 * 8;
#pragma unroll
        for (int u = 0; u < DEEP / 32; u++) {
            u32 lines[4];
            pyrelay_matrices_turned(lines, tiles, from + 32 * u);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const u32 line[2] = {
                    (u32)__float_as_int(pyrelay_half_value((u16)lines[k])),
                    (u32)__float_as_int(pyrelay_half_value((u16)(lines[k] >> 16)))
                };
#pragma unroll
                for (int p = 0; p < PARTS; p++) {
                    pyrelay_mma(sums[4 * u + k], weight[p], line, tf32());
                }
            }
        }
    }
}
// DEEP columns of each result at a time; 64 mean that there are no more, nor places.
template <class H, int DEEP, int PARTS, class Lines, class Shape, class Turn>
__device__ void sum_up(
    const Matrix &own, const Matrix &other, const Matrix &own_slopes, const Matrix &other_slopes,
    const Rows &rows, const Result &by_slopes, const Result &by_powers, bool by_rows,
    const Lines &others, i64 first, Buffer<u16> tiles, Buffer<f32> known, const Shape &shape,
    const Turn &turn
) {
    constexpr f32 LOG2E = 1.442695041f;
    const bool NARROW = DEEP < 128;
    const int STEP = DEEP + 8, TILE = 64 * STEP, SLICES = DEEP / 16, AT = NARROW ? 32 : 16;
    const int line = threadIdx.x / 32 * 16, group = threadIdx.x % 32 / 4;
    const int pair = threadIdx.x % 4 * 2;
    const bool whole = NARROW || (own.depth <= DEEP && own_slopes.depth <= DEEP);
    const int most = (int)(own.depth > own_slopes.depth ? own.depth : own_slopes.depth);
    auto columns = [&](i64 left) { return NARROW ? DEEP : in_tile(left); };
    auto fetch = [&](const Matrix &x, int tile, i64 from, int d0) {
        if (!NARROW && d0 >= x.depth) return;
        take<STEP>(x, tiles, from, d0, columns(x.depth - d0), tile * TILE);
    };
    auto arrived = [&]() {
        pyrelay_fetch_group();
        pyrelay_fetched<0>();
        __syncthreads();
    };
    // Logarithm of the sum of powers, and mean, of 64 rows.
    auto state = [&](int at, i64 row) {
        if (threadIdx.x >= 64 || row + threadIdx.x >= rows.targets) return;
        const i64 place = rows.start + row + threadIdx.x;
        const f32 top = rows.tops[place], total = rows.totals[place];
        const f32 shift = rows.guarded && total == 0 ? 0.0f : fma(top, LOG2E, pyrelay_log2(total));
        const pyrelay_pack<f32, 2> both = {{shift, rows.means[place]}};
        pyrelay_put_together<2>(known, 2 * (at + threadIdx.x), both);
    };
    u32 kept[NARROW ? SLICES : 1][4], kept_slopes[NARROW ? SLICES : 1][4];
    auto keep = [&](u32 (&lines)[NARROW ? SLICES : 1][4], int tile) {
#pragma unroll
        for (int s = 0; s < (NARROW ? SLICES : 0); s++) {
            pyrelay_matrices(lines[s], tiles, tile * TILE + left_lane<STEP>(line) + 16 * s);
        }
    };
    // Adds products of own lines with 32 others from line h of a tile on.
    auto multiply = [&](
        f32 (&made)[AT / 8][4], u32 (&lines)[NARROW ? SLICES : 1][4], int own_tile, int tile, int h,
        int places
    ) {
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            if (!NARROW && 16 * s >= places) continue;
            u32 (&left)[4] = lines[NARROW ? s : 0];
            if (!NARROW) {
                pyrelay_matrices(left, tiles, own_tile * TILE + left_lane<STEP>(line) + 16 * s);
            }
#pragma unroll
            for (int c = 0; c < AT / 16; c++) {
                u32 right[4];
                pyrelay_matrices(
                    right, tiles, tile * TILE + right_lane<STEP>(h + 16 * c) + 16 * s);
                two_products<H>(made[2 * c], made[2 * c + 1], left, right);
            }
        }
    };
    for (int e0 = 0; e0 < (NARROW ? 1 : most); e0 += DEEP) {
        f32 sums[2][2 * SLICES][4] = {};
        __syncthreads();
        if (whole) {
            // Registers take own lines from where the others of the second round will lie.
            fetch(own, 2, first, 0);
            fetch(own_slopes, 3, first, 0);
            if (NARROW) {
                fetch(other, 0, others.from(), 0);
                fetch(other_slopes, 1, others.from(), 0);
                arrived();
                keep(kept, 2);
                keep(kept_slopes, 3);
            }
        }
        state(0, by_rows ? first : others.from());
        for (i64 y0 = others.from(); y0 < others.to(); y0 += 64) {
            const int stage = (int)((y0 - others.from()) / 64) % 2, tile = NARROW ? 2 * stage : 0;
            const bool more = y0 + 64 < others.to();
            if (!NARROW && whole) {
                if (y0 != others.from()) __syncthreads();
                fetch(other, 0, y0, 0);
                fetch(other_slopes, 1, y0, 0);
            }
            arrived();
            if (NARROW && more) {
                fetch(other, 2 - tile, y0 + 64, 0);
                fetch(other_slopes, 3 - tile, y0 + 64, 0);
            }
            if (!by_rows && more) state(64 - 64 * stage, y0 + 64);
            const int down = own.lines - first < 64 ? (int)(own.lines - first) : 64;
            const int across = others.to() - y0 < 64 ? (int)(others.to() - y0) : 64;
#pragma unroll 1
            for (int h = 0; h < across; h += AT) {
                f32 score[AT / 8][4] = {}, slope[AT / 8][4] = {};
                if (whole) {
                    multiply(score, kept, 2, tile, h, columns(own.depth));
                    multiply(slope, kept_slopes, 3, tile + 1, h, columns(own_slopes.depth));
                }
                for (int d0 = 0; d0 < (whole ? 0 : most); d0 += DEEP) {
                    __syncthreads();
                    fetch(own, 2, first, d0);
                    fetch(other, 0, y0, d0);
                    fetch(own_slopes, 3, first, d0);
                    fetch(other_slopes, 1, y0, d0);
                    arrived();
                    multiply(score, kept, 2, 0, h, columns(own.depth - d0));
                    multiply(slope, kept_slopes, 3, 1, h, columns(own_slopes.depth - d0));
                }
                // Powers in the place of scores, cotangents of products in that of slopes.
                auto soften = [&](auto all, bool of_rows) {
#pragma unroll
                    for (int k = 0; k < AT / 2; k++) {
                        const int i = line + group + k / 2 % 2 * 8;
                        const int j = h + k / 4 * 8 + pair + k % 2;
                        f32 &cell = score[k / 4][k % 4], &rest = slope[k / 4][k % 4];
                        f32 power = 0, weighted = 0;
                        if (all.value || (i < down && j < across)) {
                            const pyrelay_pack<f32, 2> stated = pyrelay_together<2>(
                                known, 2 * (of_rows ? i : 64 * stage + j));
                            const i64 row = of_rows ? first + i : y0 + j;
                            const i64 column = of_rows ? y0 + j : first + i;
                            shape(row, column, cell);
                            power = pyrelay_exp2(fma(cell, LOG2E, -stated.at[0]));
                            const f32 centred = rest - stated.at[1];
                            weighted = centred == 0 ? 0.0f : centred * power;
                            turn(row, column, weighted);
                        }
                        cell = power, rest = weighted;
                    }
                };
                if (down < 64 || across < 64) soften(Number<0>(), by_rows);
                else if (by_rows) soften(Number<1>(), true);
                else soften(Number<1>(), false);
                if (!whole) {
                    __syncthreads();
                    fetch(other, 0, y0, e0);
                    fetch(other_slopes, 1, y0, e0);
                    arrived();
                }
#pragma unroll
                for (int s = 0; s < AT / 16; s++) {
                    const int at = tile * TILE + (h + 16 * s) * STEP;
                    if (by_slopes.wanted) {
                        add_lines<PARTS, DEEP>(
                            sums[0], slope[2 * s], slope[2 * s + 1], tiles, at, H());
                    }
                    if (by_powers.wanted) {
                        add_lines<PARTS, DEEP>(
                            sums[1], score[2 * s], score[2 * s + 1], tiles, at + TILE, H());
                    }
                }
            }
        }
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const Result &result = n == 0 ? by_slopes : by_powers;
            if (!result.wanted) continue;
#pragma unroll
            for (int k = 0; k < 8 * SLICES; k++) {
                const i64 i = first + line + group + k / 2 % 2 * 8;
                const i64 e = e0 + k / 4 * 8 + pair + k % 2;
                result.put(i, e, own.lines, sums[n][k / 4][k % 4]);
            }
        }
    }
}
"""


def half_attention_gradient(of: DType) -> AttentionGradientKernel:
    """The kernel for operands `of` a type of 16 bits."""
    parts = _PARTS[of.name]
    fewest = sorted({*parts}, reverse=True)
    written = tuple(_form(of.name, deep, p) for deep in (_WIDE, _NARROW) for p in fewest)
    forms = Forms(tuple(map(fewest.index, parts)), narrow=_NARROW)
    return kernel_of_variety(Variety("f32", "u16", _SIDE, written, forms))


def _form(of: str, deep: int, parts: int) -> Form:
    tiles = 4 * _SIDE * (deep + 8)
    return Form(
        f"#define BLOCK_THREADS 128\n#define SHARED_BYTES {2 * tiles}\n"
        f"const int SIDE = {_SIDE};\n" + TILES, _SUM,
        f"    PYRELAY_PART(u16, tiles, 0, {tiles});\n    PYRELAY_SHARED(f32, stated, 256);\n",
        f"sum_up<{of}, {deep}, {parts}>", "tiles, stated", of, "tiles",
    )
