"""Products of convolutions over float16 and bfloat16, by tensor cores: their tiles.

In: nothing. Out: `HALF_TILES`, which stands in front of the sides of a product
(`cuda_convolution`) and multiplies two of them: operands are read as they lie in memory and
multiplied by `mma.sync.m16n8k16`, sums are float32.

A block computes 128 by 64 elements, each of its eight warps 32 by 32. Slices of 32 places come
through shared memory, the next one by way of registers while one is multiplied. A thread reads 8
elements at once where they are neighbours: places of a line, or lines of one place, which
`ldmatrix` turns.
"""

from __future__ import annotations

DOWN, ACROSS = 128, 64
"""Lines of the operands in a block."""

HALF_TILES = r"""
#define BLOCK_THREADS 256
typedef pyrelay_pack<u16, 8> Eight;
// A slice of 32 places of some lines: in lines of 40, or, where lines are neighbours in memory, a
// line for each place.
template <class Side, int LINES> struct Slice {
    static const int held = LINES / 64, stride = Side::along ? 40 : LINES + 8;
    static const int room = Side::along ? 40 * LINES : 32 * (LINES + 8);
    const bool packs;
    typename Side::Line lines[held];
    Eight next[held];
    __device__ Slice(const Side &side, i64 first)
        : packs(side.packs() && pyrelay_address(side.array, 0) % 16 == 0) {
#pragma unroll
        for (int s = 0; s < held; s++) lines[s] = side.line(first + line(s));
    }
    // The first of the eight elements that a thread has, for each s.
    __device__ int line(int s) const {
        const int thread = threadIdx.x;
        if (Side::along) return thread / 4 + 64 * s;
        return packs ? (thread + 256 * s) % (LINES / 8) * 8 : thread % 64 + 64 * s;
    }
    __device__ int place(int s) const {
        const int thread = threadIdx.x;
        if (Side::along) return thread % 4 * 8;
        return packs ? (thread + 256 * s) / (LINES / 8) : thread / 64;
    }
    __device__ void take(const Side &side, i64 first, i64 k0) {
#pragma unroll
        for (int s = 0; s < held; s++) {
            Eight made = {};
            const i64 k = k0 + place(s);
            if (first + line(s) < side.lines) {
                if (packs) {
                    const i64 from = k < side.places ? side.where(lines[s], k) : -1;
                    if (from >= 0) made = pyrelay_together<8>(side.array, from);
                } else {
#pragma unroll
                    for (int e = 0; e < 8; e++) {
                        const i64 at = k + (Side::along ? e : 4 * e);
                        const i64 from = at < side.places ? side.where(lines[s], at) : -1;
                        if (from >= 0) made.at[e] = side.array[from];
                    }
                }
            }
            next[s] = made;
        }
    }
    __device__ void put(Buffer<u16> memory) const {
#pragma unroll
        for (int s = 0; s < held; s++) {
            const int i = line(s), k = place(s);
            if (Side::along) pyrelay_put_together<8>(memory, i * stride + k, next[s]);
            else if (packs) pyrelay_put_together<8>(memory, k * stride + i, next[s]);
            else for (int e = 0; e < 8; e++) memory[(k + 4 * e) * stride + i] = next[s].at[e];
        }
    }
    // Operands of tensor cores: 16 lines by 16 places as a left one, 2 by 8 lines as right ones.
    __device__ static void left(u32 (&made)[4], Buffer<u16> memory, int i, int k) {
        const int lane = threadIdx.x % 32;
        if (Side::along) {
            pyrelay_matrices(made, memory, (i + lane % 16) * stride + k + lane / 16 * 8);
        } else {
            const int down = k + lane % 8 + lane / 16 * 8;
            pyrelay_matrices_turned(made, memory, down * stride + i + lane / 8 % 2 * 8);
        }
    }
    __device__ static void right(u32 (&made)[4], Buffer<u16> memory, int i, int k) {
        const int lane = threadIdx.x % 32;
        if (Side::along) {
            const int down = i + lane % 8 + lane / 16 * 8;
            pyrelay_matrices(made, memory, down * stride + k + lane / 8 % 2 * 8);
        } else {
            pyrelay_matrices_turned(made, memory, (k + lane % 16) * stride + i + lane / 16 * 8);
        }
    }
};
template <class H, class Left, class Right, class Put>
__device__ void multiply(
    Buffer<u16> a, Buffer<u16> b, const Left &left, const Right &right, const Put &out,
    i64 i0, i64 j0, i64 begin, i64 end
) {
    typedef Slice<Left, 128> Down;
    typedef Slice<Right, 64> Across;
    const int i = threadIdx.x / 32 % 4 * 32, j = threadIdx.x / 128 * 32;
    f32 sums[2][4][4] = {};
    Down down(left, i0);
    Across across(right, j0);
    down.take(left, i0, begin);
    across.take(right, j0, begin);
    for (i64 k0 = begin; k0 < end; k0 += 32) {
        down.put(a);
        across.put(b);
        __syncthreads();
        if (k0 + 32 < end) {
            down.take(left, i0, k0 + 32);
            across.take(right, j0, k0 + 32);
        }
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
            u32 x[2][4], y[2][4];
#pragma unroll
            for (int u = 0; u < 2; u++) {
                Down::left(x[u], a, i + 16 * u, k);
                Across::right(y[u], b, j + 16 * u, k);
            }
#pragma unroll
            for (int u = 0; u < 2; u++) {
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    const u32 other[2] = {y[v / 2][v % 2 * 2], y[v / 2][v % 2 * 2 + 1]};
                    pyrelay_mma(sums[u][v], x[u], other, H());
                }
            }
        }
        __syncthreads();
    }
    const int group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4 * 2;
#pragma unroll
    for (int u = 0; u < 2; u++) {
#pragma unroll
        for (int v = 0; v < 4; v++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const i64 row = i0 + i + 16 * u + group + e / 2 * 8;
                const i64 column = j0 + j + 8 * v + pair + e % 2;
                if (row < left.lines && column < right.lines) out(row, column, sums[u][v][e]);
            }
        }
    }
}
"""
