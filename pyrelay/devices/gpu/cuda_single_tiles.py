"""Tiles of float32 in shared memory and products of them in CUDA C++, for attention.

In: nothing. Out: `tiles(precision)`, text that defines how 64 by 64 elements of a matrix come to
shared memory, and the structure `product(precision, ...)` that multiplies such tiles: by threads,
or by tensor cores with numbers of 11 digits (`matmul_precision` tf32) or 8 (bf16).

A block has four warps and 64 lines of its own, a warp 16 of them, so that it makes the scores which
it multiplies. A thread has 8 rows by 4 columns of products and reads 4 places of a line at once; or
warps multiply by `mma.sync` with own lines in registers, where sums of scores are operands in the
registers where they are, with lines in the order that needs no exchange. What tensor cores take of
a tile is rounded once, by the thread that copied it.
"""

from __future__ import annotations

from pyrelay.devices.gpu.cuda_tensor_cores import matrix

SQUARE = 64 * 64
"""Elements of a tile."""

_TILES = matrix("f32") + """\
typedef pyrelay_pack<f32, 4> Four;
const int SQUARE = 64 * 64;
// Where four elements of a line lie, from 4 * four on. What 8 lanes read at once lies in different
// banks: of 8 lines beside each other, of two such lines and four neighbours, of each second of 8
// lines and two neighbours. Lines 8 apart are turned alike: what is read of them is 512 apart.
__device__ i64 place(int line, int four) {
    return line * 64 + (four ^ (line & 7) ^ (line & 1) << 2) * 4;
}
// Of a turned matrix a thread has twice four lines, 32 apart, from `turned_line` on, and four
// places of each. Eight lanes leave a line each in different banks, and read 32 bytes beside each
// other.
__device__ int turned_line(int thread) { return thread % 32 / 8 * 8 + thread % 2 * 4; }
__device__ int turned_four(int thread) { return thread / 32 * 4 + thread % 8 / 2; }
// Elements from d0 on of 64 lines, 64 of each; zeros outside. What can be copied without registers
// is on its way only.
__device__ void take(const Matrix &x, Buffer<f32> tile, i64 first, i64 d0, int behind = 0) {
    const bool fits = x.step % 4 == 0 && pyrelay_address(x.array, x.start) % 16 == 0;
    const bool inside = first + 64 <= x.lines && d0 + 64 <= x.depth;
    const int thread = pyrelay_anew(threadIdx.x);
    if (x.turned) {
        const int near = turned_line(thread), four = turned_four(thread);
        if (!fits || !inside) {
#pragma unroll 1
            for (int k = 0; k < 32; k++) {
                const int i = near + k / 16 * 32 + k / 4 % 4;
                const i64 line = first + i, d = d0 + 4 * four + k % 4;
                tile[behind + place(i, four) + k % 4] =
                    line < x.lines && d < x.depth ? x.array[x.start + d * x.step + line] : 0.0f;
            }
            return;
        }
        i64 from = x.start + (d0 + 4 * four) * x.step + first + near;
        Four packs[2][4];
#pragma unroll
        for (int k = 0; k < 4; k++, from += x.step) {
            packs[0][k] = pyrelay_together<4>(x.array, from);
            packs[1][k] = pyrelay_together<4>(x.array, from + 32);
        }
#pragma unroll
        for (int k = 0; k < 8; k++) {
            Four pack;
#pragma unroll
            for (int e = 0; e < 4; e++) pack.at[e] = packs[k / 4][e].at[k % 4];
            pyrelay_put_together<4>(
                tile, behind + place(near + k / 4 * 32 + k % 4, four), pack);
        }
        return;
    }
    if (fits && inside) {
        const int four = thread % 16;
        i64 from = x.start + (first + thread / 16) * x.step + d0 + 4 * four;
#pragma unroll 4
        for (int n = 0; n < 8; n++, from += 8 * x.step) {
            pyrelay_fetch(
                tile, behind + place(thread / 16 + 8 * n, four), x.array, from);
        }
        return;
    }
#pragma unroll 1
    for (int k = thread; k < 1024; k += BLOCK_THREADS) {
        const i64 line = first + k / 16, d = d0 + 4 * (k % 16), from = x.start + line * x.step + d;
        const i64 at = behind + place(k / 16, k % 16);
        if (fits && line < x.lines && d + 4 <= x.depth) {
            pyrelay_fetch(tile, at, x.array, from);
            continue;
        }
        Four pack = {};
#pragma unroll
        for (int e = 0; e < 4; e++) {
            if (line < x.lines && d + e < x.depth) pack.at[e] = x.array[from + e];
        }
        pyrelay_put_together<4>(tile, at, pack);
    }
}
// How many places a part of a depth has, by sixteens.
__device__ int in_part(i64 left) { return left < 64 ? ((int)left + 15) / 16 * 16 : 64; }
template <int N> struct Number { static const int value = N; };
"""

_BY_THREADS = """\
// A thread has ROWS rows of the block's, COLUMNS of 64 columns; LANES lanes share a row.
struct ByThreads {
    static const int LINES = 64, ROWS = 8, COLUMNS = 4, LANES = 16;
    static const bool LEAVES = true;  // powers where the keys were
    static __device__ int row(int r) { return threadIdx.x / 16 + 8 * r; }
    static __device__ int key(int c) { return threadIdx.x % 16 + 16 * c; }
    static __device__ int column(int c) { return threadIdx.x % 16 * 4 + c; }
    // What the block keeps of its own lines.
    struct Own { Buffer<f32> tile; };
    static __device__ void keep(Own &own, Buffer<f32> tile) { own.tile = tile; }
    // What a thread does with what it has begun to take, when that is there.
    static __device__ void arrived(const Matrix &, Buffer<f32>, int = 0) {}
    // Adds products of own lines and others over so many places.
    static __device__ void scores(
        f32 (&score)[8][4], const Own &own, Buffer<f32> others, int depth
    ) {
#pragma unroll 2
        for (int four = 0; four < depth / 4; four++) {
            const i64 down = place(row(0), four), across = place(key(0), four);
            Four x[8], y[4];
#pragma unroll
            for (int r = 0; r < 8; r++) x[r] = pyrelay_together<4>(own.tile, down + 512 * r);
#pragma unroll
            for (int c = 0; c < 4; c++) y[c] = pyrelay_together<4>(others, across + 1024 * c);
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
                powers[place(row(r), key(c) / 4) + key(c) % 4] = score[r][c];
            }
        }
    }
    static __device__ void add(
        f32 (&sums)[8][4], f32 (&)[8][4], Buffer<f32> powers, Buffer<f32> values
    ) {
#pragma unroll 2
        for (int four = 0; four < 16; four++) {
            const i64 down = place(row(0), four);
            Four x[8];
#pragma unroll
            for (int r = 0; r < 8; r++) x[r] = pyrelay_together<4>(powers, down + 512 * r);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const Four y = pyrelay_together<4>(
                    values, place(4 * four + e, threadIdx.x % 16));
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
"""

_BY_WARPS = """\
// A thread has 2 M rows of the block's by 16 columns, as `mma.sync` has them; numbers have 11
// digits (N is 1) or 8 (2). What is read of the other lines serves M products.
template <int N, int M> struct ByWarps {
    static const int LINES = 64 * M, ROWS = 2 * M, COLUMNS = 16, LANES = 4;
    static const bool LEAVES = false;
    static __device__ int row(int r) {
        return threadIdx.x / 32 * 16 * M + threadIdx.x % 32 / 4 + 8 * r;
    }
    static __device__ int key(int c) { return c / 2 * 8 + threadIdx.x % 4 * 2 + c % 2; }
    static __device__ int column(int c) {
        return c / 8 * 32 + threadIdx.x % 4 * 8 + c % 2 * 4 + c % 8 / 2;
    }
    struct Own { Buffer<f32> tile; };
    // Registers of operands: four of own lines, places 16 * s + 4 * lane on, two of others. Numbers
    // of 11 digits are rounded where they arrive, so that they need nothing here but for scores.
    static __device__ void left(u32 (&made)[4], const f32 (&x)[4], const f32 (&y)[4]) {
        if (N == 1) {
            made[0] = pyrelay_tf32(x[0]), made[1] = pyrelay_tf32(y[0]);
            made[2] = pyrelay_tf32(x[1]), made[3] = pyrelay_tf32(y[1]);
        } else {
            made[0] = pyrelay_bf16(x[0], x[1]), made[1] = pyrelay_bf16(y[0], y[1]);
            made[2] = pyrelay_bf16(x[2], x[3]), made[3] = pyrelay_bf16(y[2], y[3]);
        }
    }
    static __device__ u32 right(f32 low, f32 high, int k) {
        return N == 2 ? pyrelay_bf16(low, high) : (u32)__float_as_int(k ? high : low);
    }
    static __device__ void ask(u32 (&made)[2 / N][4], Buffer<f32> tile, int s, int m) {
        const i64 down = place(row(2 * m), 4 * s + threadIdx.x % 4);
        const Four x = pyrelay_together<4>(tile, down), y = pyrelay_together<4>(tile, down + 512);
#pragma unroll
        for (int h = 0; h < 2 / N; h++) {
            if (N == 2) left(made[h], x.at, y.at);
#pragma unroll
            for (int k = 0; k < (N == 1 ? 4 : 0); k++) {
                made[h][k] = (u32)__float_as_int((k % 2 ? y : x).at[2 * h + k / 2]);
            }
        }
    }
    static __device__ void keep(Own &own, Buffer<f32> tile) { own.tile = tile; }
    static __device__ void arrived(const Matrix &x, Buffer<f32> tile, int behind = 0) {
        if (N == 2) return;
        const int thread = pyrelay_anew(threadIdx.x);
#pragma unroll
        for (int n = 0; n < 8; n++) {
            const i64 at = behind + (
                x.turned ? place(turned_line(thread) + n / 4 * 32 + n % 4, turned_four(thread))
                : place(thread / 16 + 8 * n, thread % 16));
            Four pack = pyrelay_together<4>(tile, at);
#pragma unroll
            for (int e = 0; e < 4; e++) pack.at[e] = __int_as_float((i32)pyrelay_tf32(pack.at[e]));
            pyrelay_put_together<4>(tile, at, pack);
        }
    }
    // Adds a product to 16 by 8 sums, of which a thread has two in each of its rows.
    static __device__ void add_at(
        f32 (&near)[16], f32 (&far)[16], int at, const u32 (&a)[4], const u32 (&b)[2]
    ) {
        f32 four[4] = {near[at], near[at + 1], far[at], far[at + 1]};
        if (N == 1) pyrelay_mma(four, a, b, tf32());
        else pyrelay_mma(four, a, b, bf16());
        near[at] = four[0], near[at + 1] = four[1], far[at] = four[2], far[at + 1] = four[3];
    }
    static __device__ void scores(
        f32 (&score)[2 * M][16], const Own &own, Buffer<f32> others, int depth
    ) {
#pragma unroll 1
        for (int s = 0; s < (depth + 15) / 16; s++) {
            u32 a[M][2 / N][4];
#pragma unroll
            for (int m = 0; m < M; m++) ask(a[m], own.tile, s, m);
            const i64 across = place(threadIdx.x % 32 / 4, 4 * s + threadIdx.x % 4);
#pragma unroll
            for (int n = 0; n < 8; n++) {
                const Four y = pyrelay_together<4>(others, across + 512 * n);
#pragma unroll
                for (int h = 0; h < 2 / N; h++) {
                    const u32 b[2] = {
                        right(y.at[2 * h], y.at[2 * h + 1], 0),
                        N == 2 ? right(y.at[2], y.at[3], 1) : right(y.at[2 * h], y.at[2 * h + 1], 1)
                    };
#pragma unroll
                    for (int m = 0; m < M; m++) {
                        add_at(score[2 * m], score[2 * m + 1], 2 * n, a[m][h], b);
                    }
                }
            }
        }
    }
    static __device__ void leave(f32 (&)[2 * M][16], Buffer<f32>) {}
    static __device__ void add(
        f32 (&sums)[2 * M][16], f32 (&score)[2 * M][16], Buffer<f32>, Buffer<f32> values
    ) {
        i64 lines[2];
        for (int k = 0; k < 2; k++) {
            lines[k] = pyrelay_anew(place(threadIdx.x % 4 * 2 + k, threadIdx.x % 32 / 4));
        }
#pragma unroll
        for (int s = 0; s < 8; s += N) {
            u32 a[M][4];
#pragma unroll
            for (int m = 0; m < M; m++) {
                const f32 *x = &score[2 * m][2 * s], *y = &score[2 * m + 1][2 * s];
                const f32 above[4] = {x[0], x[1], x[2 * N - 2], x[2 * N - 1]};
                const f32 below[4] = {y[0], y[1], y[2 * N - 2], y[2 * N - 1]};
                left(a[m], above, below);
            }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                Four y[2 * N];
#pragma unroll
                for (int k = 0; k < 2 * N; k++) {
                    y[k] = pyrelay_together<4>(
                        values, lines[k % 2] + (8 * s + k / 2 * 8) * 64 + 32 * h);
                }
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    const u32 b[2] = {
                        right(y[0].at[n], y[1].at[n], 0),
                        right(y[2 * N - 2].at[n], y[2 * N - 1].at[n], 1)
                    };
#pragma unroll
                    for (int m = 0; m < M; m++) {
                        add_at(sums[2 * m], sums[2 * m + 1], 8 * h + 2 * n, a[m], b);
                    }
                }
            }
        }
    }
};
"""


def product(precision: int, times: int = 1) -> str:
    """What computes products that are rounded so; by tensor cores a block has so many times 64 own
    lines."""
    return f"ByWarps<{precision}, {times}>" if precision else "ByThreads"


def tiles(precision: int) -> str:
    """The definitions, behind which stands that of BLOCK_THREADS, 128."""
    return _TILES + (_BY_WARPS if precision else _BY_THREADS)
