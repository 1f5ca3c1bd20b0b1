"""The derivative of attention over float32 in CUDA C++.

In: nothing. Out: the text, to stand behind `cuda_prelude`. What it sums up is what
`cuda_attention_gradient` says; products are those of `cuda_single_tiles`.

A block keeps 64 lines and takes 64 others at a time. Of both it makes scores and slopes, and adds
both sums that need them, so that seven products are computed in all: three for rows, four for
columns. Cotangents of scores come before powers, so that the next lines are on their way while
powers are multiplied. Maximum and sum of a row are one number, whose power of 2 the scores are
taken to (Dao, *FlashAttention-2*, 2023, section 3.1.1). Depths and widths over 64 come in parts,
and their results in rounds, which make the scores again.
"""

from __future__ import annotations

from pyrelay.devices.gpu.cuda_attention import Forms
from pyrelay.devices.gpu.cuda_attention_gradient import Form, Variety, kernel_of_variety
from pyrelay.devices.gpu.cuda_single_tiles import SQUARE, product, tiles
from pyrelay.lower.planning.target import AttentionGradientKernel

_SIDE = 64
_FORMS = Forms((0, 1, 2), narrow=64)

_SUM = """\
// Up to 64 columns of each result at a time; NARROW says that there are no more, nor places.
template <class Product, bool NARROW, class Lines, class Shape, class Turn>
__device__ void sum_up(
    const Matrix &own, const Matrix &other, const Matrix &own_slopes, const Matrix &other_slopes,
    const Rows &rows, const Result &by_slopes, const Result &by_powers, bool by_rows,
    const Lines &others, i64 first, Buffer<f32> near, Buffer<f32> near_slopes, Buffer<f32> far,
    Buffer<f32> far_slopes, Buffer<f32> weights, Buffer<f32> known, const Shape &shape,
    const Turn &turn
) {
    constexpr f32 LOG2E = 1.442695041f;
    const int ROWS = Product::ROWS, COLUMNS = Product::COLUMNS;
    const bool whole = NARROW || (own.depth <= 64 && own_slopes.depth <= 64);
    const i64 most = own.depth > own_slopes.depth ? own.depth : own_slopes.depth;
    auto fetch = [&](const Matrix &x, Buffer<f32> tile, i64 line, i64 d0) {
        take(x, tile, line, d0);
        pyrelay_fetch_group();
    };
    auto fetch_now = [&](const Matrix &x, Buffer<f32> tile, i64 line, i64 d0) {
        fetch(x, tile, line, d0);
        pyrelay_fetched<0>();
        Product::arrived(x, tile);
        __syncthreads();
    };
    for (i64 e0 = 0; e0 < (NARROW ? 1 : most); e0 += 64) {
        f32 sums[2][ROWS][COLUMNS] = {};
        typename Product::Own kept, kept_slopes;
        if (whole) {
            __syncthreads();
            take(own, near, first, 0);
            take(own_slopes, near_slopes, first, 0);
            fetch(other, far, others.from(), 0);
            fetch(other_slopes, far_slopes, others.from(), 0);
        }
        for (i64 y0 = others.from(); y0 < others.to(); y0 += 64) {
            f32 score[ROWS][COLUMNS] = {}, slope[ROWS][COLUMNS] = {};
            f32 shift = 0, mean = 0;  // of a row
            const i64 stated = (by_rows ? first : y0) + threadIdx.x;
            if (threadIdx.x < 64 && stated < rows.targets) {
                const f32 top = rows.tops[rows.start + stated];
                const f32 total = rows.totals[rows.start + stated];
                mean = rows.means[rows.start + stated];
                shift = rows.guarded && total == 0 ? 0.0f : fma(top, LOG2E, pyrelay_log2(total));
            }
            for (i64 d0 = 0; d0 < (NARROW ? 1 : own.depth); d0 += 64) {
                if (!whole) {
                    __syncthreads();
                    take(own, near, first, d0);
                    fetch(other, far, y0, d0);
                    pyrelay_fetched<0>();
                } else {
                    pyrelay_fetched<1>();
                }
                if (!whole || y0 == others.from()) Product::arrived(own, near);
                Product::arrived(other, far);
                __syncthreads();
                if (!whole || y0 == others.from()) Product::keep(kept, near);
                Product::scores(score, kept, far, in_part(own.depth - d0));
            }
            if (threadIdx.x < 64) known[2 * threadIdx.x] = shift, known[2 * threadIdx.x + 1] = mean;
            for (i64 d0 = 0; d0 < (NARROW ? 1 : own_slopes.depth); d0 += 64) {
                if (!whole) {
                    __syncthreads();
                    take(own_slopes, near_slopes, first, d0);
                    fetch(other_slopes, far_slopes, y0, d0);
                }
                pyrelay_fetched<0>();
                if (!whole || y0 == others.from()) Product::arrived(own_slopes, near_slopes);
                Product::arrived(other_slopes, far_slopes);
                __syncthreads();
                if (!whole || y0 == others.from()) Product::keep(kept_slopes, near_slopes);
                Product::scores(slope, kept_slopes, far_slopes, in_part(own_slopes.depth - d0));
            }
            if (!whole) __syncthreads();
            const int down = own.lines - first < 64 ? (int)(own.lines - first) : 64;
            const int across = others.to() - y0 < 64 ? (int)(others.to() - y0) : 64;
            // Powers in the place of scores, cotangents of products in that of slopes.
            auto soften = [&](auto all, bool of_rows) {
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++) {
                        const int i = Product::row(r), j = Product::key(c);
                        f32 power = 0, weighted = 0;
                        if (all.value || (i < down && j < across)) {
                            const pyrelay_pack<f32, 2> stated =
                                pyrelay_together<2>(known, 2 * (of_rows ? i : j));
                            const i64 row = of_rows ? first + i : y0 + j;
                            const i64 column = of_rows ? y0 + j : first + i;
                            shape(row, column, score[r][c]);
                            power = pyrelay_exp2(fma(score[r][c], LOG2E, -stated.at[0]));
                            const f32 rest = slope[r][c] - stated.at[1];
                            weighted = rest == 0 ? 0.0f : rest * power;
                            turn(row, column, weighted);
                        }
                        score[r][c] = power, slope[r][c] = weighted;
                    }
                }
            };
            if (down < 64 || across < 64) soften(Number<0>(), by_rows);
            else if (by_rows) soften(Number<1>(), true);
            else soften(Number<1>(), false);
            const bool more = whole && y0 + 64 < others.to();
            if (by_slopes.wanted) {
                if (!whole) fetch_now(other, far, y0, e0);
                Product::leave(slope, weights);
                __syncwarp();
                Product::add(sums[0], slope, weights, far);
            }
            __syncthreads();
            if (more) fetch(other, far, y0 + 64, 0);
            if (by_powers.wanted) {
                if (!whole) fetch_now(other_slopes, far_slopes, y0, e0);
                Product::leave(score, weights);
                __syncwarp();
                Product::add(sums[1], score, weights, far_slopes);
            }
            __syncthreads();
            if (more) fetch(other_slopes, far_slopes, y0 + 64, 0);
        }
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const Result &result = n == 0 ? by_slopes : by_powers;
            if (!result.wanted) continue;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    result.put(
                        first + Product::row(r), e0 + Product::column(c), own.lines, sums[n][r][c]);
                }
            }
        }
    }
}
"""

_TILES = ("near", "near_slopes", "far", "far_slopes", "weights")


def attention_gradient() -> AttentionGradientKernel:
    """The kernel. Wide heads have 11 digits where 8 would do: packing those takes more registers
    than there are."""
    wide = [_form(min(precision, 1), narrow=False) for precision in range(3)]
    narrow = [_form(precision, narrow=True) for precision in range(3)]
    return kernel_of_variety(Variety("f32", "f32", _SIDE, (*wide, *narrow), _FORMS))


def _form(precision: int, *, narrow: bool) -> Form:
    # Tensor cores keep weights where they are.
    names = _TILES[:4] if precision else _TILES
    shared = "".join(
        f"    PYRELAY_PART(f32, {name}, {4 * k * SQUARE}, {SQUARE});\n"
        for k, name in enumerate(names)
    )
    given = (*names, "far")[:5]
    return Form(
        f"#define BLOCK_THREADS 128\n#define SHARED_BYTES {4 * SQUARE * len(names)}\n"
        f"const int SIDE = {_SIDE};\n" + tiles(precision), _SUM,
        shared + "    PYRELAY_SHARED(f32, stated, 128);\n",
        f"sum_up<{product(precision)}, {str(narrow).lower()}>",
        ", ".join((*given, "stated")), "f32", "far",
    )
