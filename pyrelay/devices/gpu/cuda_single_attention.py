"""Attention over float32 in CUDA C++, as one kernel.

In: nothing. Out: the text, to stand behind `cuda_prelude`; parameters are those of
`lower.planning.target.AttentionKernel`, with those of the kernel that makes scores at the end.

A block of four warps has 64 rows, or 128 of narrow heads by tensor cores, so that what a warp reads
of keys and values serves twice; tiles of 64 keys and values come through shared memory (Dao,
*FlashAttention-2*, 2023), and products are those of `cuda_single_tiles`: where a thread's sums are
its own, powers take the place of the keys that they were made of; tensor cores have them in
registers, and the next keys are on their way while values are used. Depths over 64 come in parts,
widths over 128 in rounds that make the scores again.
"""

from __future__ import annotations

from pyrelay.devices.gpu import cuda_attention, cuda_causal
from pyrelay.devices.gpu.cuda_attention import MOST_OPERANDS, PICOSECONDS, Forms
from pyrelay.devices.gpu.cuda_single_tiles import SQUARE, product, tiles
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.planning.target import AttentionKernel

ROWS = 64

FORMS = Forms((0, 1, 2), narrow=64)
"""By how products are rounded, and those for heads of up to 64."""

_ATTEND = """\
// Rows from i0 on of the result, HALVES times 64 columns from e0 on; one half means that there are
// no more columns, nor places of a depth, which is at least 1, of zeros if there is none.
template <class Product, int HALVES, class Lines, class Shape, class Keep>
__device__ void attend(
    const Matrix &of_queries, const Matrix &of_keys, const Matrix &of_values, Buffer<f32> queries,
    Buffer<f32> keys, Buffer<f32> values, i64 targets, const Lines &sources, i64 depth, i64 width,
    i64 i0, i64 e0, bool guarded, Buffer<f32> y, i64 start, const Shape &shape, const Keep &keep
) {
    constexpr f32 LOG2E = 1.442695041f;
    const int LINES = Product::LINES, ROWS = Product::ROWS, COLUMNS = Product::COLUMNS;
    const bool whole = HALVES == 1 || depth <= 64;
    f32 sums[HALVES][ROWS][COLUMNS] = {}, totals[ROWS] = {}, largest[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) largest[r] = -f32(PYRELAY_INFINITY);
    typename Product::Own own;
    auto ask = [&](i64 d0) {
#pragma unroll
        for (int m = 0; m < LINES / 64; m++) take(of_queries, queries, i0 + 64 * m, d0, SQUARE * m);
    };
    if (whole) {
        ask(0);
        take(of_keys, keys, 0, 0);
        pyrelay_fetch_group();
    }
    for (i64 j0 = 0; j0 < sources.to(); j0 += 64) {
        f32 score[ROWS][COLUMNS] = {};
        for (i64 d0 = 0; d0 < (HALVES == 1 ? 1 : depth); d0 += 64) {
            if (!whole) {
                __syncthreads();
                ask(d0);
                take(of_keys, keys, j0, d0);
                pyrelay_fetch_group();
            }
            pyrelay_fetched<0>();
            if (!whole || j0 == 0) {
#pragma unroll
                for (int m = 0; m < LINES / 64; m++) {
                    Product::arrived(of_queries, queries, SQUARE * m);
                }
            }
            Product::arrived(of_keys, keys);
            __syncthreads();
            if (!whole || j0 == 0) Product::keep(own, queries);
            if (whole || d0 + 64 >= depth) {
                take(of_values, values, j0, e0);
                pyrelay_fetch_group();
            }
            Product::scores(score, own, keys, in_part(depth - d0));
        }
        const int down = targets - i0 < LINES ? (int)(targets - i0) : LINES;
        const int across = sources.to() - j0 < 64 ? (int)(sources.to() - j0) : 64;
        auto soften = [&](auto all) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const int line = pyrelay_anew(Product::row(r));
                f32 top = largest[r];
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    const int key = Product::key(c);
                    if (all.value || (line < down && key < across)) {
                        shape(i0 + line, j0 + key, score[r][c]);
                    } else {
                        score[r][c] = -f32(PYRELAY_INFINITY);
                    }
                    top = fmaxf(top, score[r][c]);
                }
#pragma unroll
                for (int step = 1; step < Product::LANES; step *= 2) {
                    top = fmaxf(top, pyrelay_shuffled(top, step));
                }
                const f32 shift = top == -f32(PYRELAY_INFINITY) ? 0.0f : top;
                const f32 lower = -shift * LOG2E;
                const f32 scale = pyrelay_exp2(fma(largest[r], LOG2E, lower));
                largest[r] = top, totals[r] *= scale;
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    score[r][c] = pyrelay_exp2(fma(score[r][c], LOG2E, lower));
                    totals[r] += score[r][c];
                    sums[0][r][c] *= scale;
                    if (HALVES > 1) sums[HALVES - 1][r][c] *= scale;
                }
            }
        };
        if (down == LINES && across == 64) soften(Number<1>());
        else soften(Number<0>());
        __syncthreads();
        const bool more = whole && j0 + 64 < sources.to();
        auto fetch_keys = [&]() {
            take(of_keys, keys, j0 + 64, 0);
            pyrelay_fetch_group();
        };
        Product::leave(score, keys);
        if (!Product::LEAVES && more) {
            fetch_keys();
            pyrelay_fetched<1>();
        } else {
            pyrelay_fetched<0>();
        }
        Product::arrived(of_values, values);
        __syncthreads();
        Product::add(sums[0], score, keys, values);
        if (HALVES > 1 && width - e0 > 64) {
            __syncthreads();
            take(of_values, values, j0, e0 + 64);
            pyrelay_fetch_group();
            pyrelay_fetched<0>();
            Product::arrived(of_values, values);
            __syncthreads();
            Product::add(sums[HALVES - 1], score, keys, values);
        }
        if (Product::LEAVES) {
            __syncthreads();
            if (more) fetch_keys();
        }
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const i64 row = i0 + pyrelay_anew(Product::row(r));
        f32 total = totals[r];
        for (int step = 1; step < Product::LANES; step *= 2) total += pyrelay_shuffled(total, step);
        if (row >= targets) continue;
        if (Product::key(0) == 0) keep(row, largest[r], total);
        const f32 share = guarded && total == 0 ? 1.0f : 1.0f / total;
        const i64 place = start + row * width + e0;
        const int inside = width - e0 < 64 * HALVES ? (int)(width - e0) : 64 * HALVES;
#pragma unroll
        for (int k = 0; k < HALVES * COLUMNS; k++) {
            const int column = k / COLUMNS * 64 + Product::column(k % COLUMNS);
            if (column < inside) y[place + column] = sums[k / COLUMNS][r][k % COLUMNS] * share;
        }
    }
}
"""

_KERNEL = """\
#define BLOCK_THREADS 128
{bytes}{shaping}{tiles}extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const f32> q,
    Buffer<const f32> k, Buffer<const f32> v, Buffer<f32> y{rows_of}, i64 targets, i64 sources,
    i64 depth, i64 width, i64 q_turned, i64 k_turned, i64 v_turned, i64 q_line, i64 k_line,
    i64 v_line, i64 guarded, i64 no_operands, i64 axes{parameters}
) {{
    if (pyrelay_over(record, launch)) return;
{shared}    // Items are 64 rows, of which {at_once} are done at once; their number has 32 bits, and
    // less registers than 64.
    const u32 blocks = (u32)((targets + 63) / 64);
    const u32 steps = (blocks + {at_once} - 1) / {at_once};
    const u32 items = (u32)last / blocks * steps;
    for (u32 item = (u32)first + blockIdx.x; item < items; item += gridDim.x) {{
        const i64 entry = item / steps, i0 = (i64){step} * (64 * {at_once});
        i64 rest = entry, q_start = 0, k_start = 0, v_start = 0;
{batch}        const Matrix of_queries = {{q, q_start, q_line, targets, depth, q_turned != 0}};
        const Matrix of_keys = {{k, k_start, k_line, sources, depth, k_turned == 0}};
        const Matrix of_values = {{v, v_start, v_line, sources, width, v_turned != 0}};
        auto shape = [&](i64 row, i64 j, f32 &cell) {{
{shaped}        }};
{reached}        for (i64 e0 = 0; e0 < width; e0 += 64 * {halves}) {{
            auto keep = [&](i64 row, f32 top, f32 total) {{
{kept}            }};
            attend<{product}, {halves}>(
                of_queries, of_keys, of_values, queries, keys, values, targets, {sources},
                depth > 0 ? depth : 1, width, i0, e0, guarded != 0, y, entry * targets * width,
                shape, keep);
        }}
    }}
}}
"""

_NAMES = ("keys", "values", "queries")
_SHARED = "".join(f"    PYRELAY_SHARED(f32, {name}, {SQUARE});\n" for name in _NAMES)
_SHARED_PARTS = "".join(
    f"    PYRELAY_PART(f32, {name}, {4 * k * SQUARE}, {{many}} * {SQUARE});\n".format(
        many="{at_once}" if name == "queries" else 1
    ) for k, name in enumerate(_NAMES)
) + "    PYRELAY_PART(i64, bounds, {end}, 2);\n"

_SHAPED = """\
            shaped(record, launch, entry * targets + row, PYRELAY_BUFFER(f32, &cell - j), j, j + 1,
                   0{given});
"""

_KEPT = """\
                if (e0 != 0) return;
                tops[entry * targets + row] = top;
                sums_of_rows[entry * targets + row] = total;
"""


def attention() -> AttentionKernel:
    """The kernel. `launch_texts.for_launch` gives what a launch needs."""
    source = cuda_attention.written_by(_text, FORMS)
    return AttentionKernel(source, ROWS, PICOSECONDS, MOST_OPERANDS)


def _text(form: int, axes: int, shaping: Kernel | None, *, statistics: bool) -> str:
    own = cuda_attention.of_launch(axes, shaping)
    precision, narrow = form % 3, form >= 3
    # Tensor cores take more rows at once where their sums leave room for it.
    at_once = 2 if narrow and precision else 1
    # Sums of wide heads by threads take all registers.
    causal = own.causal if narrow or precision else None
    masked = causal is not None
    end, row = 4 * (2 + at_once) * SQUARE, "item % steps"
    # Without bounds tiles are what a text may have of its own.
    parts = masked or at_once > 1
    return _KERNEL.format(
        product=product(precision, at_once), halves=1 if narrow else 2, at_once=at_once,
        tiles=tiles(precision) + cuda_causal.lines("f32", some=masked) + _ATTEND,
        bytes=f"#define SHARED_BYTES {end + 16}\n" if parts else "",
        shared=_SHARED_PARTS.format(at_once=at_once, end=end) if parts else _SHARED,
        reached=cuda_attention.reached(causal, ROWS * at_once, "of_values", "keys"),
        sources="SomeLines{bounds}" if masked else "AllLines{sources}",
        # What a mask leaves most of comes first.
        step=f"(steps - 1 - {row})" if masked else f"({row})",
        shaping=own.function, parameters=own.parameters, batch=own.batch,
        shaped=_SHAPED.format(given=own.given) if shaping is not None else "",
        rows_of=", Buffer<f32> tops, Buffer<f32> sums_of_rows" if statistics else "",
        kept=_KEPT if statistics else "",
    )
