"""Attention over float32 in CUDA C++, as one kernel.

In: nothing. Out: the text, to stand behind `cuda_prelude`; parameters are those of
`lower.planning.target.AttentionKernel`, with those of the kernel that makes scores at the end.

A block of four warps has 64 rows; tiles of 64 keys and values come through shared memory, copied
without registers where lines are whole 16 bytes (Dao, *FlashAttention-2*, 2023). Powers take the
place of the keys that they were made of. A warp has 16 rows, so that it makes the powers which it
multiplies. Without `matmul_precision` a thread has 8 rows by 4 columns of scores and of each 64
columns of results, and reads 4 places of a line at once; else warps multiply by `mma.sync`, whose
sums of powers are its operands in the registers where they are, with keys in the order that needs
no exchange. Places of 16 bytes in a line are turned by its number, so that what 8 lanes read lies
in different banks. Depths over 64 come in parts, widths over 128 in rounds that make the scores
again.
"""

from __future__ import annotations

from pyrelay.devices.gpu import cuda_attention
from pyrelay.devices.gpu.cuda_attention import MOST_OPERANDS, PICOSECONDS
from pyrelay.devices.gpu.cuda_tensor_cores import matrix
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.planning.target import AttentionKernel

ROWS = 64

_TILES = matrix("f32") + """\
typedef pyrelay_pack<f32, 4> Four;
// Where four elements of a line lie, from 4 * four on: of lines that lanes take beside each other,
// and of lines that they take in pairs.
// Lines 8 apart are turned alike, so what is taken of them is 512 apart.
struct Beside {
    static __device__ int place(int line, int four) {
        return line * 64 + (four ^ ((line & 1) << 2 | (line >> 1 & 3))) * 4;
    }
};
struct InPairs {
    static __device__ int place(int line, int four) {
        return line * 64 + (four ^ (line >> 1 & 3) << 1) * 4;
    }
};
// Elements from d0 on of 64 lines, 64 of each; zeros outside. What can be copied without registers
// is on its way only.
template <class Places>
__device__ void take(const Matrix &x, Buffer<f32> tile, i64 first, i64 d0) {
    const bool fits = x.step % 4 == 0 && pyrelay_address(x.array, x.start) % 16 == 0;
    if (fits && !x.turned && first + 64 <= x.lines && d0 + 64 <= x.depth) {
        const int four = threadIdx.x % 16;
        i64 from = x.start + (first + threadIdx.x / 16) * x.step + d0 + 4 * four;
#pragma unroll 4
        for (int n = 0; n < 8; n++, from += 8 * x.step) {
            pyrelay_fetch(
                tile, Places::place(threadIdx.x / 16 + 8 * n, four), x.array, from);
        }
        return;
    }
#pragma unroll 1
    for (int k = threadIdx.x; k < 1024; k += BLOCK_THREADS) {
        const int i = x.turned ? k % 64 : k / 16, four = x.turned ? k / 64 : k % 16;
        const i64 line = first + i, d = d0 + 4 * four;
        const int place = Places::place(i, four);
        if (fits && !x.turned && line < x.lines && d + 4 <= x.depth) {
            pyrelay_fetch(tile, place, x.array, x.start + line * x.step + d);
            continue;
        }
        Four pack = {};
#pragma unroll
        for (int e = 0; e < 4; e++) {
            if (line < x.lines && d + e < x.depth) {
                pack.at[e] = x.array[
                    x.start + (x.turned ? (d + e) * x.step + line : line * x.step + d + e)];
            }
        }
        pyrelay_put_together<4>(tile, place, pack);
    }
}
template <int N> struct Number { static const int value = N; };
"""

_BY_THREADS = """\
// A thread has ROWS rows of the block's, COLUMNS of 64 columns; LANES lanes share a row.
struct ByThreads {
    static const int ROWS = 8, COLUMNS = 4, LANES = 16;
    static __device__ int row(int r) { return threadIdx.x / 16 + 8 * r; }
    static __device__ int key(int c) { return threadIdx.x % 16 + 16 * c; }
    static __device__ int column(int c) { return threadIdx.x % 16 * 4 + c; }
    // Adds products of queries and keys over so many places.
    static __device__ void scores(
        f32 (&score)[8][4], Buffer<f32> queries, Buffer<f32> keys, int depth
    ) {
#pragma unroll 2
        for (int four = 0; four < depth / 4; four++) {
            const int down = Beside::place(row(0), four), across = Beside::place(key(0), four);
            Four x[8], y[4];
#pragma unroll
            for (int r = 0; r < 8; r++) x[r] = pyrelay_together<4>(queries, down + 512 * r);
#pragma unroll
            for (int c = 0; c < 4; c++) y[c] = pyrelay_together<4>(keys, across + 1024 * c);
#pragma unroll
            for (int e = 0; e < 4; e++) {
#pragma unroll
                for (int r = 0; r < 8; r++) {
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        score[r][c] = fma(x[r].at[e], y[c].at[e], score[r][c]);
                    }
                }
            }
        }
    }
    // Leaves powers where lanes of the same warp take them.
    static __device__ void leave(f32 (&score)[8][4], Buffer<f32> powers) {
#pragma unroll
        for (int r = 0; r < 8; r++) {
#pragma unroll
            for (int c = 0; c < 4; c++) {
                powers[Beside::place(row(r), key(c) / 4) + key(c) % 4] = score[r][c];
            }
        }
    }
    static __device__ void add(
        f32 (&sums)[8][4], f32 (&)[8][4], Buffer<f32> powers, Buffer<f32> values
    ) {
#pragma unroll 2
        for (int four = 0; four < 16; four++) {
            const int down = Beside::place(row(0), four);
            Four x[8];
#pragma unroll
            for (int r = 0; r < 8; r++) x[r] = pyrelay_together<4>(powers, down + 512 * r);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const Four y = pyrelay_together<4>(
                    values, InPairs::place(4 * four + e, threadIdx.x % 16));
#pragma unroll
                for (int r = 0; r < 8; r++) {
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        sums[r][c] = fma(x[r].at[e], y.at[c], sums[r][c]);
                    }
                }
            }
        }
    }
};
// The same by tensor cores, of numbers of 11 digits (N is 1) or 8 (2).
template <int N> struct ByWarps {
    static const int ROWS = 2, COLUMNS = 16, LANES = 4;
    static __device__ int row(int r) {
        return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * r;
    }
    static __device__ int key(int c) { return c / 2 * 8 + threadIdx.x % 4 * 2 + c % 2; }
    static __device__ int column(int c) {
        return c / 8 * 32 + threadIdx.x % 4 * 8 + c % 2 * 4 + c % 8 / 2;
    }
    static __device__ void multiply(f32 (&sums)[4], const f32 (&a)[4], const f32 (&b)[2]) {
        pyrelay_mma_tf32(sums, a, b);
    }
    static __device__ void multiply(f32 (&sums)[4], const f32 (&a)[8], const f32 (&b)[4]) {
        pyrelay_mma_bf16(sums, a, b);
    }
    // Adds a product to 16 by 8 sums, of which a thread has two in each of its rows.
    static __device__ void add_at(
        f32 (&sums)[2][16], int place, const f32 (&a)[4 * N], const f32 (&b)[2 * N]
    ) {
        f32 four[4] = {
            sums[0][place], sums[0][place + 1], sums[1][place], sums[1][place + 1]
        };
        multiply(four, a, b);
        sums[0][place] = four[0], sums[0][place + 1] = four[1];
        sums[1][place] = four[2], sums[1][place + 1] = four[3];
    }
    static __device__ void scores(
        f32 (&score)[2][16], Buffer<f32> queries, Buffer<f32> keys, int depth
    ) {
        const int line = threadIdx.x % 32 / 4, lane = threadIdx.x % 4;
#pragma unroll 1
        for (int four = lane; four < depth / 4; four += 4) {
            const int down = Beside::place(row(0), four), across = Beside::place(line, four);
            const Four x[2] = {
                pyrelay_together<4>(queries, down), pyrelay_together<4>(queries, down + 512)
            };
#pragma unroll
            for (int n = 0; n < 8; n++) {
                const Four y = pyrelay_together<4>(keys, across + 512 * n);
#pragma unroll
                for (int h = 0; h < 2; h += N) {
                    f32 a[4 * N], b[2 * N];
#pragma unroll
                    for (int k = 0; k < 2 * N; k++) {
                        const int at = k / N * 2 * N + k % N;
                        a[at] = x[0].at[2 * h + k], a[at + N] = x[1].at[2 * h + k];
                        b[k] = y.at[2 * h + k];
                    }
                    add_at(score, 2 * n, a, b);
                }
            }
        }
    }
    static __device__ void leave(f32 (&)[2][16], Buffer<f32>) {}
    static __device__ void add(
        f32 (&sums)[2][16], f32 (&score)[2][16], Buffer<f32>, Buffer<f32> values
    ) {
        const int place = InPairs::place(threadIdx.x % 4 * 2, threadIdx.x % 32 / 4);
#pragma unroll
        for (int s = 0; s < 8; s += N) {
            f32 a[4 * N];
#pragma unroll
            for (int k = 0; k < 2 * N; k++) {
                const int at = k / N * 2 * N + k % N;
                a[at] = score[0][2 * s + k], a[at + N] = score[1][2 * s + k];
            }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                Four y[2 * N];
#pragma unroll
                for (int k = 0; k < 2 * N; k++) {
                    y[k] = pyrelay_together<4>(
                        values, place + (8 * s + k / 2 * 8 + k % 2) * 64 + 32 * h);
                }
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    f32 b[2 * N];
#pragma unroll
                    for (int k = 0; k < 2 * N; k++) b[k] = y[k].at[n];
                    add_at(sums, 8 * h + 2 * n, a, b);
                }
            }
        }
    }
};
"""

_ATTEND = """\
// Rows from i0 on of the result, up to 128 columns from e0 on.
template <class Product, class Shape, class Keep>
__device__ void attend(
    const Matrix &of_queries, const Matrix &of_keys, const Matrix &of_values, Buffer<f32> queries,
    Buffer<f32> keys, Buffer<f32> values, i64 targets, i64 sources, i64 depth, i64 width, i64 i0,
    i64 e0, bool guarded, Buffer<f32> y, i64 start, const Shape &shape, const Keep &keep
) {
    constexpr f32 LOG2E = 1.442695041f;
    const int ROWS = Product::ROWS, COLUMNS = Product::COLUMNS;
    const bool whole = depth <= 64;
    f32 sums[2][ROWS][COLUMNS] = {}, totals[ROWS] = {}, largest[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) largest[r] = -f32(PYRELAY_INFINITY);
    if (whole) {
        take<Beside>(of_queries, queries, i0, 0);
        take<Beside>(of_keys, keys, 0, 0);
        pyrelay_fetch_group();
    }
    for (i64 j0 = 0; j0 < sources; j0 += 64) {
        f32 score[ROWS][COLUMNS] = {};
        for (i64 d0 = 0; d0 < depth; d0 += 64) {
            if (!whole) {
                __syncthreads();
                take<Beside>(of_queries, queries, i0, d0);
                take<Beside>(of_keys, keys, j0, d0);
                pyrelay_fetch_group();
            }
            pyrelay_fetched<0>();
            __syncthreads();
            if (d0 + 64 >= depth) {
                take<InPairs>(of_values, values, j0, e0);
                pyrelay_fetch_group();
            }
            Product::scores(
                score, queries, keys, depth - d0 < 64 ? ((int)(depth - d0) + 15) / 16 * 16 : 64);
        }
        const int down = targets - i0 < 64 ? (int)(targets - i0) : 64;
        const int across = sources - j0 < 64 ? (int)(sources - j0) : 64;
        auto soften = [&](auto all) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const int line = Product::row(r);
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
                const f32 scale = pyrelay_exp2((largest[r] - shift) * LOG2E);
                largest[r] = top, totals[r] *= scale;
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    score[r][c] = pyrelay_exp2((score[r][c] - shift) * LOG2E);
                    totals[r] += score[r][c];
                    sums[0][r][c] *= scale, sums[1][r][c] *= scale;
                }
            }
        };
        if (down == 64 && across == 64) soften(Number<1>());
        else soften(Number<0>());
        __syncthreads();
        Product::leave(score, keys);
        pyrelay_fetched<0>();
        __syncthreads();
        Product::add(sums[0], score, keys, values);
        if (width - e0 > 64) {
            __syncthreads();
            take<InPairs>(of_values, values, j0, e0 + 64);
            pyrelay_fetch_group();
            pyrelay_fetched<0>();
            __syncthreads();
            Product::add(sums[1], score, keys, values);
        }
        __syncthreads();
        if (whole && j0 + 64 < sources) {
            take<Beside>(of_keys, keys, j0 + 64, 0);
            pyrelay_fetch_group();
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const i64 row = i0 + Product::row(r);
        f32 total = totals[r];
        for (int step = 1; step < Product::LANES; step *= 2) total += pyrelay_shuffled(total, step);
        if (row >= targets) continue;
        if (Product::key(0) == 0) keep(row, largest[r], total);
        const f32 share = guarded && total == 0 ? 1.0f : 1.0f / total;
        const i64 place = start + row * width + e0;
        const int inside = width - e0 < 128 ? (int)(width - e0) : 128;
#pragma unroll
        for (int k = 0; k < 2 * COLUMNS; k++) {
            const int column = k / COLUMNS * 64 + Product::column(k % COLUMNS);
            if (column < inside) y[place + column] = sums[k / COLUMNS][r][k % COLUMNS] * share;
        }
    }
}
"""

_KERNEL = """\
#define BLOCK_THREADS 128
{shaping}{tiles}extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const f32> q,
    Buffer<const f32> k, Buffer<const f32> v, Buffer<f32> y{rows_of}, i64 targets, i64 sources,
    i64 depth, i64 width, i64 q_turned, i64 k_turned, i64 v_turned, i64 q_line, i64 k_line,
    i64 v_line, i64 guarded, i64 precision, i64 no_operands, i64 axes{parameters}
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED(f32, queries, 64 * 64);
    PYRELAY_SHARED(f32, keys, 64 * 64);
    PYRELAY_SHARED(f32, values, 64 * 64);
    const i64 blocks = (targets + 63) / 64;
    auto by = [&](auto product) {{
        // Items are 64 rows of memory: their number has 32 bits, and less registers than 64.
        for (u32 item = (u32)first + blockIdx.x; item < (u32)last; item += gridDim.x) {{
            const i64 entry = item / (u32)blocks, i0 = item % (u32)blocks * 64;
            i64 rest = entry, q_start = 0, k_start = 0, v_start = 0;
{batch}            const Matrix of_queries = {{q, q_start, q_line, targets, depth, q_turned != 0}};
            const Matrix of_keys = {{k, k_start, k_line, sources, depth, k_turned == 0}};
            const Matrix of_values = {{v, v_start, v_line, sources, width, v_turned != 0}};
            auto shape = [&](i64 row, i64 j, f32 &cell) {{
{shaped}            }};
            for (i64 e0 = 0; e0 < width; e0 += 128) {{
                auto keep = [&](i64 row, f32 top, f32 total) {{
{kept}                }};
                attend<decltype(product)>(
                    of_queries, of_keys, of_values, queries, keys, values, targets, sources, depth,
                    width, i0, e0, guarded != 0, y, entry * targets * width, shape, keep);
            }}
        }}
    }};
    if (precision == 0) by(ByThreads());
    else if (precision == 1) by(ByWarps<1>());
    else by(ByWarps<2>());
}}
"""

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
    return AttentionKernel(cuda_attention.written_by(_text), ROWS, PICOSECONDS, MOST_OPERANDS)


def _text(axes: int, shaping: Kernel | None, *, statistics: bool) -> str:
    own = cuda_attention.of_launch(axes, shaping)
    return _KERNEL.format(
        tiles=_TILES + _BY_THREADS + _ATTEND, shaping=own.function, parameters=own.parameters,
        batch=own.batch, shaped=_SHAPED.format(given=own.given) if shaping is not None else "",
        rows_of=", Buffer<f32> tops, Buffer<f32> sums_of_rows" if statistics else "",
        kept=_KEPT if statistics else "",
    )
