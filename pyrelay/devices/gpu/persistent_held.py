"""Products of one row by weights in registers, in kernels of loops, in CUDA C++.

In: nothing. Out: `ACROSS` and `HELD`, parts of `persistent_product.SUPPORT`.

Where one block multiplies a row by a matrix in each round, what a thread has of the matrix is the
same each time. From shared memory that is 128 bytes a cycle, all of the matrix in each round.
"""

from __future__ import annotations

from pyrelay.devices.gpu.persistent_held_tiles import STEPS
from pyrelay.devices.gpu.persistent_prelude import THREADS

ACROSS = r"""
// Of four columns each half of the threads goes on with two, each quarter with one: which it is,
// and its sum.
template <int C> __device__ int pyrelay_column(int across, int lane) {
    return C == 1 ? 0 : (lane & across / 2 ? 2 : 0) + (lane & across / 4 ? 1 : 0);
}
template <int C, class T>
__device__ T pyrelay_across(const T (&sums)[C], int across, int lane) {
    const bool upper = lane & across / 2, odd = lane & across / 4;
    T sum = sums[0];
    int mask = across / 2;
    if (C == 4) {
        const T low = T((upper ? sums[C / 2] : sum)
            + pyrelay_shuffled(upper ? sum : sums[C / 2], mask));
        const T high = T((upper ? sums[C - 1] : sums[C / 4])
            + pyrelay_shuffled(upper ? sums[C / 4] : sums[C - 1], mask));
        sum = T((odd ? high : low) + pyrelay_shuffled(odd ? low : high, mask / 2));
        mask /= 4;
    }
    for (; mask > 0; mask /= 2) sum = T(sum + pyrelay_shuffled(sum, mask));
    return sum;
}
"""

HELD = r"""
// Weights that each thread of a block has in registers. Those of one row, if it has two packs of
// one or four columns at most: those of `pyrelay_lines`; or those of a tile, in so many registers.
// Bytes that a block keeps weights in, or works in.
template <class T, int N> struct pyrelay_held {
    static const int W = N < 4 ? N : 4;
    T at[2][4][N], tile[STEPS][W];
    bool is, tiled;
    int registers;
    i64 room;
};
template <class T, int N> __device__ pyrelay_held<T, N> pyrelay_hold(
    const pyrelay_split &split, Buffer<const T> b, Index m, Index n, Index k, Index a_turned,
    Index turned, Index line, bool near, i64 space, int registers
) {
    pyrelay_held<T, N> held = {};
    const bool four = split.columns << split.bits > THREADS;
    const int bits = four && split.bits < 2 ? 2 : split.bits, across = 1 << bits;
    const int lane = threadIdx.x & (across - 1), wide = four ? 4 : 1;
    const bool once = split.columns <= (THREADS >> bits) * wide && k <= 2 * N * across;
    held.is = near && split.is && split.few && split.kept && !split.cores && m == 1 && !a_turned
        && k % N == 0 && once;
    constexpr int W = pyrelay_held<T, N>::W;
    const pyrelay_held_form form = pyrelay_held_form_of<4, W>(split, k);
    held.tiled = pyrelay_holds_tile<T, 4, W>(split, form, k, space, registers);
    held.registers = held.tiled ? pyrelay_held_registers<T, W>(form) : 0;
    held.room = held.tiled ? pyrelay_held_room<T, 4, W>(form, k) : split.bytes<T>();
    if (held.tiled) pyrelay_hold_tile(held.tile, form, split, b, n, k, turned, line);
    if (!held.is) return held;
    const Index j = (threadIdx.x >> bits) * wide;
    Index column[4];
#pragma unroll
    for (int e = 0; e < 4; e++) column[e] = e < wide ? split.at(split.mine, j + e, n) : -1;
    const bool together = four && !turned && line % 4 == 0 && column[0] >= 0
        && column[3] == column[0] + 3 && pyrelay_lined_up<4>(column[0], b);
#pragma unroll
    for (int p = 0; p < 2; p++) {
#pragma unroll
        for (int l = 0; l < N; l++) {
            const Index step = (p * across + lane) * N + l;
            if (step >= k) continue;
            if (together) {
                const auto some = pyrelay_together<4>(b, step * line + column[0]);
#pragma unroll
                for (int e = 0; e < 4; e++) held.at[p][e][l] = some.at[e];
                continue;
            }
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const Index place = turned ? column[e] * line + step : step * line + column[e];
                if (column[e] >= 0) held.at[p][e][l] = b[place];
            }
        }
    }
    return held;
}
template <int C, int N, class T, class Add> __device__ void pyrelay_held_line(
    const pyrelay_held<T, N> &held, const pyrelay_split &split, const pyrelay_operand<T> &a,
    Buffer<T> c, Index c_start, Index first, Index n, Index k, bool adds, Add add
) {
    const int bits = C == 4 && split.bits < 2 ? 2 : split.bits;
    const int across = 1 << bits, lane = threadIdx.x & (across - 1);
    const bool packs = pyrelay_lined_up<N>(a.start, a.data);
    pyrelay_pack<T, N> some[2];
#pragma unroll
    for (int p = 0; p < 2; p++) {
        const Index place = (p * across + lane) * N;
        if (place >= k) continue;
        if (packs) {
            some[p] = pyrelay_together<N>(a.data, a.start + place);
        } else {
#pragma unroll
            for (int l = 0; l < N; l++) some[p].at[l] = a.at(0, place + l);
        }
    }
    T sums[C];
#pragma unroll
    for (int e = 0; e < C; e++) sums[e] = T(0);
#pragma unroll
    for (int p = 0; p < 2; p++) {
        if ((p * across + lane) * N >= k) continue;
#pragma unroll
        for (int e = 0; e < C; e++) {
#pragma unroll
            for (int l = 0; l < N; l++) sums[e] = add(sums[e], some[p].at[l], held.at[p][e][l]);
        }
    }
    const Index mine = (threadIdx.x >> bits) * C + pyrelay_column<C>(across, lane);
    const Index column = mine < split.columns ? split.at(first, mine, n) : -1;
    const T sum = pyrelay_across(sums, across, lane);
    if ((lane & ((C == 1 ? across : across / 4) - 1)) != 0 || column < 0) return;
    c[c_start + column] = adds ? T(c[c_start + column] + sum) : sum;
}
""".replace("THREADS", str(THREADS)).replace("STEPS", str(STEPS))
