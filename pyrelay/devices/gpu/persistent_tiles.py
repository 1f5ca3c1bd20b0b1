"""Tiles of products of matrices inside of kernels of loops, in CUDA C++.

In: nothing. Out: `TILE`, a part of `persistent_product.SUPPORT`.
"""

from __future__ import annotations

from pyrelay.devices.gpu.persistent_prelude import THREADS

WORK = 2048
"""Elements of shared memory that products of a dtype work in: parts of sums for all threads."""

BOTH = 2
"""Rows of a thread whose sums are added up at once: those of all threads fit into `WORK`."""

TILE = r"""
// How threads share a tile: so many packs of W columns side by side, and of R rows above each
// other, as powers of two.
struct pyrelay_shares { int bits, high; };
template <int R, int W> __device__ pyrelay_shares pyrelay_shares_of(Index columns, Index rows) {
    int bits = 0, high = 0;
    while (W << bits < columns && 1 << bits < THREADS) bits++;
    while (R << high < rows && high < 3 && 1 << (bits + high) < THREADS) high++;
    while (bits + high < 3) bits++;  // sums of more slices take longer than what they save
    return {bits, high};
}
// A tile of a product: a thread has R rows of W columns, or of several such packs, and a slice of
// the sum; from what the block keeps of the right operand, if it does.
template <int R, int W, int U = R == 1 ? 8 : 4, class T, class Add> __device__ void pyrelay_tile(
    Buffer<T> work, const T *kept, const pyrelay_split &split, const pyrelay_operand<T> &a,
    const pyrelay_operand<T> &b, Buffer<T> c, Index c_start, Index c_line, Index row, Index rows,
    Index first, Index n, Index k, bool adds, Add add
) {
    typedef pyrelay_pack<T, W> Pack;
    const Index columns = split.columns;
    const pyrelay_shares shares = pyrelay_shares_of<R, W>(columns, split.rows);
    const int bits = shares.bits, high = shares.high;
    const int wide = 1 << bits, group = wide << high, slices = THREADS >> (bits + high);
    const int lines = R << high, depth = WORK / R >> high;
    const bool along = !split.kept && b.turned;  // neighbours read neighbours
    const int share = along ? threadIdx.x * group / THREADS : threadIdx.x & (group - 1);
    const int slice = along ? threadIdx.x & (slices - 1) : threadIdx.x >> (bits + high);
    const int own = share & (wide - 1), part = share >> bits;
    const bool packs = !a.turned && k % W == 0 && a.line % W == 0
        && pyrelay_lined_up<W>(a.start, a.data);
    for (Index left = 0; left < columns; left += wide * W) {
        const Index j = left + own * W;
        Index column[W];
#pragma unroll
        for (int w = 0; w < W; w++) column[w] = split.at(first, j + w, n);
        bool together = !b.turned && b.line % W == 0 && column[0] >= 0;
#pragma unroll
        for (int w = 1; w < W; w++) together = together && column[w] == column[0] + w;
        together = together && pyrelay_lined_up<W>(b.start + column[0], b.data);
        for (Index top = 0; top < rows; top += lines) {
            T sums[R][W];
#pragma unroll
            for (int r = 0; r < R; r++) {
#pragma unroll
                for (int w = 0; w < W; w++) sums[r][w] = T(0);
            }
            // Neighbours have lines, and packs of these; the next ones come meanwhile.
            constexpr int TAKES = WORK / (THREADS * W);
            Pack some[TAKES];
            const auto fetch = [&](Index start) {
#pragma unroll
                for (int t = 0; t < TAKES && packs; t++) {
                    const int e = threadIdx.x + t * THREADS, step = (e / R >> high) * W;
                    const Index i = top + (e & (lines - 1));
                    some[t] = {};
                    if (step < depth && start + step < k && i < rows) {
                        some[t] = pyrelay_together<W>(
                            a.data, a.start + (row + i) * a.line + start + step
                        );
                    }
                }
            };
            fetch(0);
            for (Index start = 0; start < k; start += depth) {
                const int steps = k - start < depth ? (int)(k - start) : depth;
                __syncthreads();
#pragma unroll
                for (int t = 0; t < TAKES && packs; t++) {
                    const int e = threadIdx.x + t * THREADS, step = (e / R >> high) * W;
                    if (step >= depth) continue;
#pragma unroll
                    for (int w = 0; w < W; w++) {
                        work[(step + w) * lines + (e & (lines - 1))] = some[t].at[w];
                    }
                }
                for (int e = threadIdx.x; !packs && e < steps * lines; e += THREADS) {
                    const int line = e & (lines - 1), step = e / R >> high;
                    const Index i = top + line;
                    work[step * lines + line] = i < rows ? a.at(row + i, start + step) : T(0);
                }
                __syncthreads();
                fetch(start + depth);
                const auto sum_up = [&](auto of) {
#pragma unroll(U)
                    for (int step = slice; step < steps; step += slices) {
                        const Pack right = of(start + step);
                        const auto own_rows = pyrelay_together<R>(work, step * lines + part * R);
#pragma unroll
                        for (int r = 0; r < R; r++) {
#pragma unroll
                            for (int w = 0; w < W; w++) {
                                sums[r][w] = add(sums[r][w], own_rows.at[r], right.at[w]);
                            }
                        }
                    }
                };
                if (j >= columns) continue;
                if (split.kept) {
                    sum_up([&](Index step) {
                        return *(const Pack *)(kept + step * split.held + j);
                    });
                } else if (together) {
                    sum_up([&](Index step) {
                        return pyrelay_together<W>(b.data, b.start + step * b.line + column[0]);
                    });
                } else {
                    sum_up([&](Index step) {
                        Pack some;
#pragma unroll
                        for (int w = 0; w < W; w++) {
                            some.at[w] = column[w] < 0 ? T(0) : b.at(step, column[w]);
                        }
                        return some;
                    });
                }
            }
            const int each = group * W;
#pragma unroll
            for (int base = 0; base < R; base += BOTH) {
                __syncthreads();
#pragma unroll
                for (int r = 0; r < BOTH && base + r < R; r++) {
                    Pack some;
#pragma unroll
                    for (int w = 0; w < W; w++) some.at[w] = sums[base + r][w];
                    pyrelay_put_together(work, (r * THREADS + slice * group + share) * W, some);
                }
                __syncthreads();
                const int many = R < BOTH ? R : BOTH;
                for (int e = threadIdx.x; e < many * each; e += THREADS) {
                    const int r = e >= each, at = e - r * each, pack = at / W;
                    const Index line = top + (pack >> bits) * R + base + r;
                    const Index found = split.at(
                        first, left + (pack & (wide - 1)) * W + at % W, n
                    );
                    if (line >= rows || found < 0) continue;
                    T sum = work[r * THREADS * W + at];
                    for (int s = 1; s < slices; s++) {
                        sum = T(sum + work[r * THREADS * W + s * each + at]);
                    }
                    const Index place = c_start + (row + line) * c_line + found;
                    c[place] = adds ? T(c[place] + sum) : sum;
                }
            }
            __syncthreads();
        }
    }
}
"""
for _name, _number in (("WORK", WORK), ("THREADS", THREADS), ("BOTH", BOTH)):
    TILE = TILE.replace(_name, str(_number))
TILE = TILE[1:]
