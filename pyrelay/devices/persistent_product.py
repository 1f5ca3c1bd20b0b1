"""Products of matrices inside of kernels of loops, in CUDA C++.

In: a dtype, the number of batch axes. Out: the text of a phase, which all threads of a grid go
through; its parameters are those of `lower.target.MatmulKernel`, behind what is kept of the right
operand.

A block has a tile of the result, of as many rows and columns that each block has one and that what
it reads in a round is least. Its threads have a column each, for eight rows, and share the sum in
slices, which are added up in a fixed order. Weights, right operands that the loop does not change,
stay in shared memory from round to round if a block's part of them fits there (Diamos et al.,
"Persistent RNNs", 2016).
"""

from __future__ import annotations

from pyrelay.devices.persistent_prelude import THREADS
from pyrelay.ir.types import DType

WORK = 2048
"""Elements of shared memory that products of a dtype work in: parts of sums for all threads."""

ROWS = 8

SUPPORT = r"""
// How blocks share a product: tiles side by side, rows and columns of each, whether the columns of
// the right operand stay in shared memory.
struct pyrelay_split { i64 across, down, rows, columns; bool kept; };
__device__ pyrelay_split pyrelay_split_of(i64 m, i64 n, i64 k, i64 room) {
    pyrelay_split best = {1, 1, m, n, false};
    i64 least = -1;
    for (i64 down = 1; down <= 16 && down <= gridDim.x; down *= 2) {
        if (down > 1 && (down - 1) * ROWS >= m) break;
        const i64 across = gridDim.x / down;
        const i64 rows = (m + down - 1) / down;
        const i64 columns = ((n + across - 1) / across + 7) / 8 * 8;
        const bool kept = columns * k <= room;
        const i64 reads = (rows + (kept ? 0 : columns)) * k;
        if (least < 0 || reads < least) {
            least = reads;
            best.rows = rows < 1 ? 1 : rows, best.columns = columns < 1 ? 1 : columns;
            best.kept = kept;
        }
    }
    best.across = (n + best.columns - 1) / best.columns;
    best.down = (m + best.rows - 1) / best.rows;
    return best;
}
template <class T> __device__ void pyrelay_keep(
    T *kept, const pyrelay_split &split, Buffer<const T> b, i64 n, i64 k, i64 turned, i64 line
) {
    if (!split.kept) return;
    const i64 first = blockIdx.x % split.across * split.columns;
    for (i64 e = threadIdx.x; e < k * split.columns; e += blockDim.x) {
        const i64 step = e / split.columns, j = first + e % split.columns;
        if (j < n) kept[e] = b[turned ? j * line + step : step * line + j];
    }
}
// An operand: where it begins, its lines, whether it is transposed.
template <class T> struct pyrelay_operand {
    Buffer<const T> data;
    i64 start, line, turned;
    __device__ T at(i64 row, i64 column) const {
        return data[start + (turned ? column * line + row : row * line + column)];
    }
};
// A tile of a product, R rows at once; `kept` is 0 where the right operand is read as it lies.
template <int R, class T, class Add> __device__ void pyrelay_tile(
    Buffer<T> work, const T *kept, i64 columns, const pyrelay_operand<T> &a,
    const pyrelay_operand<T> &b, Buffer<T> c, i64 c_start, i64 c_line, i64 row, i64 rows,
    i64 column, i64 width, i64 k, bool adds, Add add
) {
    const int depth = WORK / R;
    int wide = 8;
    while (wide < width && wide < THREADS) wide *= 2;
    const int slices = THREADS / wide;
    const bool along = kept == nullptr && b.turned;  // neighbours read neighbours
    const int own = along ? threadIdx.x / slices : threadIdx.x % wide;
    const int slice = along ? threadIdx.x % slices : threadIdx.x / wide;
    for (i64 left = 0; left < width; left += wide) {
        const i64 j = left + own;
        for (i64 top = 0; top < rows; top += R) {
            T sums[R];
#pragma unroll
            for (int r = 0; r < R; r++) sums[r] = T(0);
            for (i64 start = 0; start < k; start += depth) {
                const int steps = k - start < depth ? (int)(k - start) : depth;
                __syncthreads();
                for (int e = threadIdx.x; e < steps * R; e += THREADS) {
                    const int line = R == 1 ? 0 : e / steps, step = e - line * steps;
                    const i64 i = top + line;
                    work[step * R + line] = i < rows ? a.at(row + i, start + step) : T(0);
                }
                __syncthreads();
                if (j >= width) continue;
#pragma unroll 4
                for (int step = slice; step < steps; step += slices) {
                    const T right = kept != nullptr ? kept[(start + step) * columns + j]
                        : b.at(start + step, column + j);
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
                if (top + line >= rows || left + at >= width) continue;
                T sum = work[line * THREADS + at];
                for (int s = 1; s < slices; s++) {
                    sum = T(sum + work[line * THREADS + s * wide + at]);
                }
                const i64 place = c_start + (row + top + line) * c_line + column + left + at;
                c[place] = adds ? T(c[place] + sum) : sum;
            }
            __syncthreads();
        }
    }
}
""".replace("ROWS", str(ROWS)).replace("WORK", str(WORK)).replace("THREADS", str(THREADS))

_PHASE = """\
__device__ void phase(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<{t}> work, const {t} *kept,
    const pyrelay_split &split, Buffer<const {t}> a, Buffer<const {t}> b, Buffer<{t}> c, i64 m,
    i64 n, i64 k, i64 a_turned, i64 b_turned, i64 adds, i64 a_line, i64 b_line, i64 c_line,
    i64 axes, i64 no_finisher, i64 no_operands{batch_parameters}
) {{
    auto add = []({t} sum, {t} left, {t} right) {{ return {add}; }};
    const i64 tiles = split.across * split.down;
    i64 stacks = 1;
{stacks}    for (i64 item = blockIdx.x; item < tiles * stacks; item += gridDim.x) {{
        const i64 column = item % split.across * split.columns;
        const i64 row = item / split.across % split.down * split.rows;
        i64 rest = item / tiles;
        const i64 c_start = rest * m * c_line;
        i64 a_start = 0, b_start = 0;
{batch}        const pyrelay_operand<{t}> left = {{a, a_start, a_line, a_turned}};
        const pyrelay_operand<{t}> right = {{b, b_start, b_line, b_turned}};
        const i64 rows = m - row < split.rows ? m - row : split.rows;
        const i64 width = n - column < split.columns ? n - column : split.columns;
        if (rows == 1) {{
            pyrelay_tile<1>(work, split.kept ? kept : nullptr, split.columns, left, right, c,
                c_start, c_line, row, rows, column, width, k, adds != 0, add);
        }} else {{
            pyrelay_tile<{rows}>(work, split.kept ? kept : nullptr, split.columns, left, right, c,
                c_start, c_line, row, rows, column, width, k, adds != 0, add);
        }}
    }}
}}
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
    parameters = "".join(f", i64 extent{k}, i64 a_stride{k}, i64 b_stride{k}" for k in range(axes))
    return _PHASE.format(
        t=t, add=add, rows=ROWS, batch_parameters=parameters,
        stacks="".join(f"    stacks *= extent{k};\n" for k in range(axes)),
        batch="".join(_BATCH_AXIS.format(k=k) for k in reversed(range(axes))),
    )
