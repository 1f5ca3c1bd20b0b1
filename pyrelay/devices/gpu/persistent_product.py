"""Products of matrices inside of kernels of loops, in CUDA C++.

In: a dtype, the number of batch axes. Out: the text of a phase, which all threads of a grid go
through; its parameters are those of `lower.planning.target.MatmulKernel`, behind what is kept of
the right operand.

A block has a tile of the result, of as many rows and columns that each block has one and that what
it reads in a round is least; or the rows and columns of the elements that it owns (`ownership`).
Its threads have a column each, for eight rows, and share the sum in slices, which are added up in a
fixed order. For few rows a warp has a column, whose operands its threads read along the sum, 16
bytes at a time. With `matmul_precision` tf32 or bf16 tensor cores multiply tiles of 8 rows and more
of float32, whose weights lie in shared memory as they read them. Weights, right operands that the
loop does not change, stay in shared memory from round to round if a block's part of them fits there
(Diamos et al., "Persistent RNNs", 2016).
"""

from __future__ import annotations

from pyrelay.devices.gpu.persistent_prelude import THREADS
from pyrelay.ir.types import DType

WORK = 2048
"""Elements of shared memory that products of a dtype work in: parts of sums for all threads."""

ROWS = 8

FEW = 4
"""Rows of a tile that warps have the columns of."""

STEPS = 16
"""Places of a sum that tensor cores multiply at once."""

SUPPORT = r"""
// How blocks share a product: tiles side by side, the rows of each, and its columns, which are
// `run` neighbours each time and `apart` from one run to the next; those of the next tile begin
// `stride` further, and none of a run is at `limit`. Whether the columns of the right operand stay
// in shared memory; whether rows are few: then they lie there one by one, of `padded` elements;
// whether tensor cores multiply: then `held` columns lie there as their warps read them.
struct pyrelay_split {
    Index across, down, rows, columns, run, stride, apart, limit, padded, held;
    bool kept, few, cores;
    template <class T> __device__ Index bytes() const {
        return kept ? held * padded * (Index)sizeof(T) : 0;
    }
    __device__ Index first(Index item) const { return item % across * stride; }
    // The column of the result; -1 for none.
    __device__ Index at(Index first, Index j, Index n) const {
        const Index group = j < run ? 0 : j / run, own = first + j - group * run;
        const Index found = own + group * apart;
        return j < columns && own < limit && found < n ? found : -1;
    }
};
template <class T>
__device__ void pyrelay_lay(pyrelay_split &split, Index k, Index room, i64 precision) {
    split.few = split.rows <= FEW;
    split.cores = precision != 0 && sizeof(T) == 4 && split.rows >= ROWS;
    const Index fits = 16 / (Index)sizeof(T) > 0 ? 16 / (Index)sizeof(T) : 1;
    const Index pack = split.cores ? STEPS : fits;
    split.padded = (k + pack - 1) / pack * pack;
    split.held = split.cores ? (split.columns + 7) / 8 * 8 : split.columns;
    split.kept = (i64)split.held * split.padded <= room / (Index)sizeof(T);
}
template <class T>
__device__ pyrelay_split pyrelay_split_of(Index m, Index n, Index k, Index room, i64 precision) {
    pyrelay_split best = {1, 1, m, n, n, n, 0, n, k, n, false, false, false};
    i64 least = -1;
    for (Index down = 1; down <= 16 && down <= gridDim.x; down *= 2) {
        if (down > 1 && (down - 1) * ROWS >= m) break;
        const Index across = gridDim.x / down;
        const Index rows = (m + down - 1) / down;
        const Index columns = ((n + across - 1) / across + 7) / 8 * 8;
        const bool kept = (i64)columns * k * (Index)sizeof(T) <= room;
        const i64 reads = (i64)(rows + (kept ? 0 : columns)) * k;
        if (least < 0 || reads < least) {
            least = reads;
            best.rows = rows < 1 ? 1 : rows, best.columns = columns < 1 ? 1 : columns;
        }
    }
    best.across = (n + best.columns - 1) / best.columns;
    best.down = (m + best.rows - 1) / best.rows;
    best.run = best.stride = best.columns;
    pyrelay_lay<T>(best, k, room, precision);
    return best;
}
// The same where blocks own elements: the columns of theirs.
template <class T> __device__ pyrelay_split pyrelay_split_owned(
    const pyrelay_own &own, Index m, Index n, Index k, Index room, i64 precision
) {
    if (!own.on) return pyrelay_split_of<T>(m, n, k, room, precision);
    const Index rows = (own.rows + own.down - 1) / own.down;
    pyrelay_split found = {
        own.across, own.down, rows, own.wide * own.groups(n), own.wide, own.wide, own.units,
        own.units, k, 0, false, false, false
    };
    pyrelay_lay<T>(found, k, room, precision);
    return found;
}
template <class T> __device__ void pyrelay_keep(
    T *kept, const pyrelay_split &split, Buffer<const T> b, Index n, Index k, Index turned,
    Index line
) {
    if (!split.kept) return;
    const Index first = split.first(blockIdx.x);
    const Index columns = split.columns, depth = split.few ? split.padded : k;
    for (Index e = threadIdx.x; split.cores && e < split.held * split.padded; e += blockDim.x) {
        const Index lane = e / 4 % 32, slice = e / (8 * STEPS) % (split.padded / STEPS);
        const Index step = slice * STEPS + lane % 4 * 4 + e % 4;
        const Index j = split.at(first, e / 8 / split.padded * 8 + lane / 4, n);
        kept[e] = j < 0 || step >= k ? T(0) : b[turned ? j * line + step : step * line + j];
    }
    for (Index e = threadIdx.x; !split.cores && e < depth * columns; e += blockDim.x) {
        // Neighbours read neighbours.
        const Index step = turned ? e % depth : e / columns, own = turned ? e / depth : e % columns;
        const Index j = split.at(first, own, n);
        const T value = j < 0 || step >= k ? T(0) : b[turned ? j * line + step : step * line + j];
        kept[split.few ? own * depth + step : step * columns + own] = value;
    }
}
// An operand: where it begins, its lines, whether it is transposed.
template <class T> struct pyrelay_operand {
    Buffer<const T> data;
    Index start, line, turned;
    __device__ T at(Index row, Index column) const {
        return data[start + (turned ? column * line + row : row * line + column)];
    }
};
// A tile of a product, R rows at once; `kept` is 0 where the right operand is read as it lies.
template <int R, class T, class Add> __device__ void pyrelay_tile(
    Buffer<T> work, const T *kept, const pyrelay_split &split, const pyrelay_operand<T> &a,
    const pyrelay_operand<T> &b, Buffer<T> c, Index c_start, Index c_line, Index row, Index rows,
    Index first, Index n, Index k, bool adds, Add add
) {
    const int depth = WORK / R;
    const Index columns = split.columns;
    int wide = 8;
    while (wide < columns && wide < THREADS) wide *= 2;
    const int slices = THREADS / wide;
    const bool along = kept == nullptr && b.turned;  // neighbours read neighbours
    const int own = along ? threadIdx.x / slices : threadIdx.x % wide;
    const int slice = along ? threadIdx.x % slices : threadIdx.x / wide;
    for (Index left = 0; left < columns; left += wide) {
        const Index j = left + own, column = split.at(first, j, n);
        for (Index top = 0; top < rows; top += R) {
            T sums[R];
#pragma unroll
            for (int r = 0; r < R; r++) sums[r] = T(0);
            for (Index start = 0; start < k; start += depth) {
                const int steps = k - start < depth ? (int)(k - start) : depth;
                __syncthreads();
                for (int e = threadIdx.x; e < steps * R; e += THREADS) {
                    const int line = R == 1 ? 0 : e / steps, step = e - line * steps;
                    const Index i = top + line;
                    work[step * R + line] = i < rows ? a.at(row + i, start + step) : T(0);
                }
                __syncthreads();
                if (column < 0) continue;
#pragma unroll 4
                for (int step = slice; step < steps; step += slices) {
                    const T right = kept != nullptr ? kept[(start + step) * columns + j]
                        : b.at(start + step, column);
#pragma unroll
                    for (int r = 0; r < R; r++) sums[r] = add(sums[r], work[step * R + r], right);
                }
            }
            __syncthreads();
#pragma unroll
            for (int r = 0; r < R; r++) work[r * THREADS + slice * wide + own] = sums[r];
            __syncthreads();
            for (int e = threadIdx.x; e < R * wide; e += THREADS) {
                const int line = e / wide, at = e % wide;
                const Index found = split.at(first, left + at, n);
                if (top + line >= rows || found < 0) continue;
                T sum = work[line * THREADS + at];
                for (int s = 1; s < slices; s++) {
                    sum = T(sum + work[line * THREADS + s * wide + at]);
                }
                const Index place = c_start + (row + top + line) * c_line + found;
                c[place] = adds ? T(c[place] + sum) : sum;
            }
            __syncthreads();
        }
    }
}
// A tile by tensor cores: a warp has 16 rows of 8 columns, and a slice of the sum where there are
// more warps than that. A lane reads packs of four: which places of a sum are multiplied together
// hangs on both operands alike. precision: 1 for TF32, 2 for bfloat16.
template <class T> __device__ void pyrelay_cores(
    Buffer<T> work, const T *kept, const pyrelay_split &split, const pyrelay_operand<T> &a,
    const pyrelay_operand<T> &b, Buffer<T> c, Index c_start, Index c_line, Index row, Index rows,
    Index first, Index n, Index k, bool adds, i64 precision
) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4;
    const int warps = THREADS / 32;
    const Index across = (split.columns + 7) / 8, tiles = (rows + 15) / 16 * across;
    int slices = 1;
    while (slices * 2 <= warps && slices * 2 * tiles <= warps) slices *= 2;
    const int slice = warp % slices;
    const bool packs = !a.turned && k % 4 == 0 && a.line % 4 == 0
        && pyrelay_lined_up<4>(a.start, a.data);
    for (Index base = 0; base < tiles; base += warps / slices) {
        const Index tile = base + warp / slices, top = tile / across * 16, left = tile % across * 8;
        const Index column = split.at(first, left + group, n);
        f32 sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
        for (Index start = slice * STEPS; tile < tiles && start < k; start += slices * STEPS) {
            const Index place = start + lane % 4 * 4;
            pyrelay_pack<T, 4> lines[2], right;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const Index i = top + half * 8 + group;
                if (packs) {
                    lines[half] = {};
                    if (i < rows && place < k) {
                        lines[half] = pyrelay_together<4>(
                            a.data, a.start + (row + i) * a.line + place
                        );
                    }
                } else {
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        const bool inside = i < rows && place + e < k;
                        lines[half].at[e] = inside ? a.at(row + i, place + e) : T(0);
                    }
                }
            }
            if (kept != nullptr) {
                right = *(const pyrelay_pack<T, 4> *)(
                    kept + left * split.padded + start * 8 + lane * 4
                );
            } else {
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const bool inside = column >= 0 && place + e < k;
                    right.at[e] = inside ? b.at(place + e, column) : T(0);
                }
            }
            const T (&x)[4] = lines[0].at, (&y)[4] = lines[1].at;
            if (precision == 1) {
#pragma unroll
                for (int e = 0; e < 4; e += 2) {
                    const f32 both[4] = {x[e], y[e], x[e + 1], y[e + 1]};
                    const f32 other[2] = {right.at[e], right.at[e + 1]};
                    pyrelay_mma_tf32(sums, both, other);
                }
            } else {
                const f32 both[8] = {x[0], x[1], y[0], y[1], x[2], x[3], y[2], y[3]};
                const f32 other[4] = {right.at[0], right.at[1], right.at[2], right.at[3]};
                pyrelay_mma_bf16(sums, both, other);
            }
        }
        if (slices > 1) {
            __syncthreads();
            for (int e = 0; e < 4; e++) work[threadIdx.x * 4 + e] = sums[e];
            __syncthreads();
            for (int s = 1; s < slices && slice == 0; s++) {
                for (int e = 0; e < 4; e++) sums[e] += work[(threadIdx.x + s * 32) * 4 + e];
            }
        }
        for (int e = 0; e < 4 && slice == 0 && tile < tiles; e++) {
            const Index i = top + e / 2 * 8 + group;
            const Index found = split.at(first, left + lane % 4 * 2 + e % 2, n);
            if (i >= rows || found < 0) continue;
            const Index place = c_start + (row + i) * c_line + found;
            c[place] = adds ? T(c[place] + sums[e]) : sums[e];
        }
    }
    __syncthreads();
}
// A tile of few rows: a column for each warp, whose threads share the sum and read packs of N.
template <int R, int N, class T, class Add> __device__ void pyrelay_lines(
    const T *kept, const pyrelay_split &split, const pyrelay_operand<T> &a,
    const pyrelay_operand<T> &b, Buffer<T> c, Index c_start, Index c_line, Index row, Index rows,
    Index first, Index n, Index k, bool adds, Add add
) {
    typedef pyrelay_pack<T, N> Pack;
    const int lane = threadIdx.x % 32;
    for (Index j = threadIdx.x / 32; j < split.columns; j += THREADS / 32) {
        const Index column = split.at(first, j, n);
        if (column < 0) continue;
        T sums[R];
#pragma unroll
        for (int r = 0; r < R; r++) sums[r] = T(0);
#pragma unroll 2
        for (Index start = lane * N; start < k; start += 32 * N) {
            Pack right;
            if (kept != nullptr) {
                right = *(const Pack *)(kept + j * split.padded + start);
            } else {
#pragma unroll
                for (int e = 0; e < N; e++) {
                    right.at[e] = start + e < k ? b.at(start + e, column) : T(0);
                }
            }
#pragma unroll
            for (int r = 0; r < R; r++) {
                if (r >= rows) break;
                const Index place = a.start + (row + r) * a.line + start;
                if (N > 1) {
                    const auto left = pyrelay_together<N>(a.data, place);
#pragma unroll
                    for (int e = 0; e < N; e++) sums[r] = add(sums[r], left.at[e], right.at[e]);
                } else {
                    sums[r] = add(sums[r], a.at(row + r, start), right.at[0]);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            if (r >= rows) break;
            T sum = sums[r];
            for (int step = 16; step > 0; step /= 2) sum = T(sum + pyrelay_shuffled(sum, step));
            if (lane != 0) continue;
            const Index place = c_start + (row + r) * c_line + column;
            c[place] = adds ? T(c[place] + sum) : sum;
        }
    }
}
"""
for _name, _number in (
    ("ROWS", ROWS), ("FEW", FEW), ("STEPS", STEPS), ("WORK", WORK), ("THREADS", THREADS)
):
    SUPPORT = SUPPORT.replace(_name, str(_number))

_PHASE = """\
__device__ void phase(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<{t}> work, const {t} *kept,
    const pyrelay_split &split, Buffer<const {t}> a, Buffer<const {t}> b, Buffer<{t}> c, Index m,
    Index n, Index k, Index a_turned, Index b_turned, Index adds, Index a_line, Index b_line,
    Index c_line, Index axes, Index no_finisher, Index no_operands{batch_parameters},
    i64 precision
) {{
    const auto add = []({t} sum, {t} left, {t} right) {{ return {add}; }};
    const Index tiles = split.across * split.down;
    Index stacks = 1;
{stacks}    for (Index item = blockIdx.x; item < tiles * stacks; item += gridDim.x) {{
        const Index first = split.first(item), row = item / split.across % split.down * split.rows;
        Index rest = item / tiles;
        const Index c_start = rest * m * c_line;
        Index a_start = 0, b_start = 0;
{batch}        const pyrelay_operand<{t}> left = {{a, a_start, a_line, a_turned}};
        const pyrelay_operand<{t}> right = {{b, b_start, b_line, b_turned}};
        const Index rows = m - row < split.rows ? m - row : split.rows;
        const {t} *const weights = split.kept ? kept : nullptr;
{cores}        if (split.few && (split.kept || b_turned)) {{
            const bool packs = !a_turned && k % {pack} == 0 && a_line % {pack} == 0
                && pyrelay_lined_up<{pack}>(a_start, a);
            if (packs) {{
                pyrelay_lines<{few}, {pack}>(weights, split, left, right, c, c_start, c_line, row,
                    rows, first, n, k, adds != 0, add);
            }} else {{
                pyrelay_lines<{few}, 1>(weights, split, left, right, c, c_start, c_line, row,
                    rows, first, n, k, adds != 0, add);
            }}
        }} else if (rows == 1) {{
            pyrelay_tile<1>(work, weights, split, left, right, c, c_start, c_line, row, rows,
                first, n, k, adds != 0, add);
        }} else {{
            pyrelay_tile<{rows}>(work, weights, split, left, right, c, c_start, c_line, row, rows,
                first, n, k, adds != 0, add);
        }}
    }}
}}
"""

_CORES = """\
        if (split.cores) {
            pyrelay_cores(work, weights, split, left, right, c, c_start, c_line, row, rows, first,
                n, k, adds != 0, precision);
            continue;
        }
"""

_BATCH_AXIS = """\
        a_start += rest % extent{k} * a_stride{k};
        b_start += rest % extent{k} * b_stride{k};
        rest /= extent{k};
"""


def product(dtype: DType, axes: int) -> str:
    """The product of stacks of matrices with this many batch axes."""
    t = dtype.name
    add = f"{t}(sum | (left * right))" if dtype.kind == "b" else f"{t}(sum + left * right)"
    parameters = "".join(
        f", Index extent{k}, Index a_stride{k}, Index b_stride{k}" for k in range(axes)
    )
    return _PHASE.format(
        t=t, add=add, rows=ROWS, few=FEW, pack=max(16 // dtype.size, 1),
        batch_parameters=parameters, cores=_CORES if t == "f32" else "",
        stacks="".join(f"    stacks *= extent{k};\n" for k in range(axes)),
        batch="".join(_BATCH_AXIS.format(k=k) for k in reversed(range(axes))),
    )
