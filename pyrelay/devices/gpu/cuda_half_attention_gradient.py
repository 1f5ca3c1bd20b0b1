"""The derivative of attention over bfloat16 in CUDA C++, by tensor cores.

In: nothing. Out: the text, to stand behind `cuda_prelude`, of a kernel that takes queries, keys,
values and the result's cotangent as they lie in memory, 16 bits an element, and gives cotangents of
float32. What it sums up, and in which order, is what `cuda_attention_gradient` says.

A block of four warps keeps 64 lines, 16 of them in the registers of a warp, and takes 64 others at
a time through shared memory, where they serve the products that make scores and slopes and the
sum. Probabilities and cotangents of scores, which are float32, are multiplied as sums of three
numbers of 8 digits (`matmul_precision` tf32: two, bf16: one). Their exponents are those of float32:
float16 has no such numbers, and no such kernel. Depths and widths over 128 come in parts.
"""

from __future__ import annotations

from pyrelay.devices.gpu.cuda_attention import Forms
from pyrelay.devices.gpu.cuda_attention_gradient import Form, Variety, kernel_of_variety
from pyrelay.devices.gpu.cuda_tensor_cores import LINE, TILES
from pyrelay.ir.types import DType
from pyrelay.lower.planning.target import AttentionGradientKernel

_SIDE = 64

_SUM = """\
__device__ void arrived() {
    pyrelay_fetch_group();
    pyrelay_fetched<0>();
    __syncthreads();
}
__device__ void keep(u32 (&kept)[8][4], Buffer<u16> tile, int columns) {
#pragma unroll
    for (int s = 0; s < 8; s++) {
        if (16 * s < columns) {
            pyrelay_matrices(kept[s], tile, left_lane(threadIdx.x / 32 * 16) + 16 * s);
        }
    }
}
// Products of the lines that are kept and 16 others from line h of a tile on, which has both where
// they are not `whole`.
__device__ void multiply(
    f32 (&made)[2][4], u32 (&kept)[8][4], const Matrix &own, const Matrix &other,
    Buffer<u16> tile, i64 first, i64 y0, int h, bool whole
) {
    for (i64 d0 = 0; d0 < own.depth; d0 += 128) {
        const int columns = in_tile(own.depth - d0);
        if (!whole) {
            __syncthreads();
            take(own, tile, first, d0, columns);
            arrived();
            keep(kept, tile, columns);
            __syncthreads();
            take(other, tile, y0, d0, columns);
            arrived();
        }
#pragma unroll
        for (int s = 0; s < 8; s++) {
            if (16 * s >= columns) continue;
            u32 lines[4];
            pyrelay_matrices(lines, tile, right_lane(h) + 16 * s);
            two_products<bf16>(made[0], made[1], kept[s], lines);
        }
    }
}
template <int PARTS, class Shape, class Turn>
__device__ void one_sum(
    const Matrix &own, const Matrix &other, const Matrix &own_slopes, const Matrix &other_slopes,
    const Matrix &summed, const Rows &rows, const Result &result, bool by_rows, bool slopes,
    i64 first, Buffer<u16> near, Buffer<u16> far, const Shape &shape, const Turn &turn
) {
    if (!result.wanted) return;
    const int line = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, pair = threadIdx.x % 4 * 2;
    const bool whole = own.depth <= 128 && own_slopes.depth <= 128;
    for (i64 e0 = 0; e0 < summed.depth; e0 += 128) {
        const int columns = in_tile(summed.depth - e0);
        f32 sums[16][4] = {};
        u32 kept[8][4], kept_slopes[8][4];
        if (whole) {
            take(own, near, first, 0, in_tile(own.depth));
            take(own_slopes, far, first, 0, in_tile(own_slopes.depth));
            arrived();
            keep(kept, near, in_tile(own.depth));
            keep(kept_slopes, far, in_tile(own_slopes.depth));
            __syncthreads();
        }
        for (i64 y0 = 0; y0 < other.lines; y0 += SIDE) {
            if (whole) {
                take(other, near, y0, 0, in_tile(other.depth));
                take(other_slopes, far, y0, 0, in_tile(other_slopes.depth));
                arrived();
            }
#pragma unroll 1
            for (int h = 0; h < SIDE; h += 16) {
                f32 weights[2][4] = {}, slope[2][4] = {};
                multiply(weights, kept, own, other, near, first, y0, h, whole);
                if (slopes) {
                    multiply(
                        slope, kept_slopes, own_slopes, other_slopes, near_or(far, near, whole),
                        first, y0, h, whole);
                }
#pragma unroll
                for (int n = 0; n < 8; n++) {
                    const i64 i = first + line + n / 2 % 2 * 8;
                    const i64 j = y0 + h + n / 4 * 8 + pair + n % 2;
                    const i64 row = by_rows ? i : j, column = by_rows ? j : i;
                    f32 weight = 0;
                    if (row < rows.targets && column < rows.sources) {
                        weight = probability(rows, row, column, weights[n / 4][n % 4], shape);
                        if (slopes) {
                            weight = cotangent(
                                rows, row, column, weight, slope[n / 4][n % 4], turn);
                        }
                    }
                    weights[n / 4][n % 4] = weight;
                }
                if (!whole) {
                    __syncthreads();
                    take(summed, far, y0, e0, columns);
                    arrived();
                }
                const Buffer<u16> lines = near_or(far, near, !(whole && slopes));
#pragma unroll 1
                for (int p = 0; p < PARTS; p++) {
                    u32 weight[4];
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        f32 &low = weights[e / 2][e % 2 * 2], &high = weights[e / 2][e % 2 * 2 + 1];
                        weight[e] = pyrelay_pair(low, high, bf16());
                        low -= f32(bf16(low)), high -= f32(bf16(high));
                    }
#pragma unroll
                    for (int u = 0; u < 8; u++) {
                        if (16 * u >= columns) continue;
                        u32 values[4];
                        pyrelay_matrices_turned(values, lines, left_lane(h) + 16 * u);
                        two_products<bf16>(sums[2 * u], sums[2 * u + 1], weight, values);
                    }
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int n = 0; n < 64; n++) {
            const i64 i = first + line + n / 2 % 2 * 8, e = e0 + n / 4 * 8 + pair + n % 2;
            result.put(i, e, own.lines, sums[n / 4][n % 4]);
        }
    }
}
template <int PARTS, class Shape, class Turn>
__device__ void sum_up(
    const Matrix &own, const Matrix &other, const Matrix &own_slopes, const Matrix &other_slopes,
    const Rows &rows, const Result &by_slopes, const Result &by_powers, bool by_rows, i64 first,
    Buffer<u16> near, Buffer<u16> far, const Shape &shape, const Turn &turn
) {
    one_sum<PARTS>(own, other, own_slopes, other_slopes, other, rows, by_slopes, by_rows, true,
                   first, near, far, shape, turn);
    one_sum<PARTS>(own, other, own_slopes, other_slopes, other_slopes, rows, by_powers, by_rows,
                   false, first, near, far, shape, turn);
}
"""

_NEAR_OR = """\
const int SIDE = 64;
__device__ Buffer<u16> near_or(Buffer<u16> far, Buffer<u16> near, bool is_far) {
    return is_far ? far : near;
}
"""


def half_attention_gradient(of: DType) -> AttentionGradientKernel | None:
    """The kernel for operands `of` a type, if there is one."""
    if of.name != "bf16":
        return None
    before = "#define BLOCK_THREADS 128\n" + TILES + _NEAR_OR
    shared = "".join(f"    PYRELAY_SHARED(u16, {name}, {64 * LINE});\n" for name in ("near", "far"))
    forms = tuple(
        Form(before, _SUM, shared, f"sum_up<{parts}>", "near, far") for parts in (3, 2, 1)
    )
    return kernel_of_variety(Variety("f32", "u16", _SIDE, forms, Forms((0, 1, 2))))
