"""The derivative of attention in CUDA C++, as one kernel that makes tiles of scores again.

In: a dtype. Out: the text, to stand behind `cuda_prelude`; parameters are those of
`lower.planning.target.AttentionGradientKernel`, with those of the kernels that make scores of
products and cotangents of products of those of scores at the end.

Three sums over tiles of scores have one form (Dao, *FlashAttention-2*, 2023, section 3.1.2): a
block keeps some lines and takes the others tile by tile,

    cotangent of   lines kept        lines taken        weights of the sum
    q              of q and do       of k and v         cotangents of products, times k
    k              of k and v        of q and do        cotangents of products, times q
    v              of k              of q               probabilities, times do

so that nobody adds to what another block computes, and every run gives the same bits: scores are
made for each of the three. Results wider than 128 are done in rounds.

With `matmul_precision` tf32 or bf16 warps multiply float32 by `mma.sync`; else each thread has 4 by
4 elements of a tile (float64: 2 by 2).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pyrelay.devices.gpu import launch_texts
from pyrelay.devices.gpu.cuda_attention import PICOSECONDS, of_launch
from pyrelay.devices.gpu.cuda_tensor_cores import matrix
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.devices.gpu.launch_texts import MOST_OPERANDS, KernelOf, Launched
from pyrelay.ir.types import DType, f32
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.passes.reciprocals import with_reciprocals
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import KernelAddress
from pyrelay.lower.planning.target import AttentionGradientKernel
from pyrelay.lower.text.emit_cuda import emit_item
from pyrelay.records import dataclass

# Places among the operands.
_WANTED, _KEPT, _SIZES, _SHAPING, _TURNING, _AXES = 7, 10, 12, 23, 25, 28

_TENSOR = """\
// Adds the product of 16 by 32 elements, in lines of 33, and 32 by 8 elements to sums, by tensor
// cores: the lanes that have them are those of `pyrelay_mma`.
template <int N, class Memory> __device__ void tensor_product(
    f32 (&sums)[4], const Memory a, const Memory b, int a0, int b0, int b_down, int b_across
) {
    const int line = threadIdx.x % 32 / 4, lane = threadIdx.x % 4;
#pragma unroll
    for (int k0 = 0; k0 < 32; k0 += 8 * N) {
        f32 left[4 * N], right[2 * N];
#pragma unroll
        for (int e = 0; e < 2 * N; e++) {
            const int k = k0 + e / N * 4 * N + lane * N + e % N, place = e / N * 2 * N + e % N;
            left[place] = a[a0 + line * 33 + k];
            left[place + N] = a[a0 + line * 33 + 264 + k];
            right[e] = b[b0 + k * b_down + line * b_across];
        }
        tensor_cores(sums, left, right);
    }
}
"""

_TENSOR_CORES = """\
__device__ void tensor_cores(f32 (&sums)[4], const f32 (&a)[4], const f32 (&b)[2]) {
    pyrelay_mma_tf32(sums, a, b);
}
__device__ void tensor_cores(f32 (&sums)[4], const f32 (&a)[8], const f32 (&b)[4]) {
    pyrelay_mma_bf16(sums, a, b);
}
"""

_TENSOR_PRODUCT = _TENSOR_CORES + _TENSOR
_TILES = """\
#define BLOCK_THREADS 256
const int SIDE = {side}, EACH = SIDE / 16, CELLS = SIDE * SIDE / 256, RESULTS = SIDE / 8;
{matrix}// Elements from d0 on of lines from `first` on, 32 of each, in lines of 33; zeros outside.
__device__ void take(const Matrix &x, Buffer<{t}> tile, i64 first, i64 d0) {{
#pragma unroll 4
    for (int k = threadIdx.x; k < 32 * SIDE; k += BLOCK_THREADS) {{
        const int i = x.turned ? k % SIDE : k / 32, d = x.turned ? k / SIDE : k % 32;
        const i64 line = first + i, place = d0 + d;
        tile[i * 33 + d] = line < x.lines && place < x.depth
            ? x.array[x.start + (x.turned ? place * x.step + line : line * x.step + place)]
            : {t}(0);
    }}
}}
// Where a tile of scores has an element: lines of 32, side by side.
__device__ int cell(int i, int j) {{ return j / 32 * SIDE * 33 + i * 33 + j % 32; }}
// Threads have 4 by 4 scores, 4 by 2 results, or 2 by 2 of both; or they have those of `mma.sync`.
struct ByThreads {{
    // Leaves the product of lines of two matrices, to each other, in a tile of scores.
    static __device__ void scores(
        const Matrix &x, const Matrix &y, i64 x0, i64 y0, Buffer<{t}> left, Buffer<{t}> right,
        Buffer<{t}> made, i64
    ) {{
        const int i = threadIdx.x / 16, j = threadIdx.x % 16;
        {t} sums[EACH][EACH] = {{}};
        for (i64 d0 = 0; d0 < x.depth; d0 += 32) {{
            take(x, left, x0, d0);
            take(y, right, y0, d0);
            __syncthreads();
#pragma unroll 4
            for (int d = 0; d < 32; d++) {{
#pragma unroll
                for (int u = 0; u < EACH; u++) {{
#pragma unroll
                    for (int v = 0; v < EACH; v++) {{
                        const {t} a = left[(i + 16 * u) * 33 + d], b = right[(j + 16 * v) * 33 + d];
                        sums[u][v] = fma(a, b, sums[u][v]);
                    }}
                }}
            }}
            __syncthreads();
        }}
#pragma unroll
        for (int u = 0; u < EACH; u++) {{
#pragma unroll
            for (int v = 0; v < EACH; v++) made[cell(i + 16 * u, j + 16 * v)] = sums[u][v];
        }}
    }}
    // Adds scores times 32 columns of lines.
    static __device__ void add({t} (&sums)[RESULTS], Buffer<{t}> scores, Buffer<{t}> lines, i64) {{
        const int i = threadIdx.x / 16, e = threadIdx.x % 16;
#pragma unroll 4
        for (int j = 0; j < SIDE; j++) {{
            const {t} one = lines[j * 33 + e], other = lines[j * 33 + e + 16];
#pragma unroll
            for (int u = 0; u < EACH; u++) {{
                const {t} score = scores[cell(i + 16 * u, j)];
                sums[2 * u] = fma(score, one, sums[2 * u]);
                sums[2 * u + 1] = fma(score, other, sums[2 * u + 1]);
            }}
        }}
    }}
    // The line and the column of a sum.
    static __device__ int line(int n, i64) {{ return threadIdx.x / 16 + n / 2 * 16; }}
    static __device__ int column(int n, i64) {{ return threadIdx.x % 16 + n % 2 * 16; }}
}};
"""

_BY_WARPS = """\
// Each warp has 16 by 32 scores, 16 by 16 results, where float32 is rounded.
struct ByWarps {
    static __device__ void scores(
        const Matrix &x, const Matrix &y, i64 x0, i64 y0, Buffer<f32> left, Buffer<f32> right,
        Buffer<f32> made, i64 precision
    ) {
        if (precision == 0) return ByThreads::scores(x, y, x0, y0, left, right, made, 0);
        const int i = threadIdx.x / 64 * 16, j = threadIdx.x / 32 % 2 * 32;
        f32 sums[4][4] = {};
        for (i64 d0 = 0; d0 < x.depth; d0 += 32) {
            take(x, left, x0, d0);
            take(y, right, y0, d0);
            __syncthreads();
#pragma unroll
            for (int v = 0; v < 4; v++) {
                const int place = (j + 8 * v) * 33;
                if (precision == 1) tensor_product<1>(sums[v], left, right, i * 33, place, 1, 33);
                else tensor_product<2>(sums[v], left, right, i * 33, place, 1, 33);
            }
            __syncthreads();
        }
#pragma unroll
        for (int n = 0; n < 16; n++) {
            const int across = j + n / 4 * 8 + threadIdx.x % 4 * 2 + n % 2;
            made[cell(i + threadIdx.x % 32 / 4 + n / 2 % 2 * 8, across)] = sums[n / 4][n % 4];
        }
    }
    static __device__ void add(
        f32 (&sums)[RESULTS], Buffer<f32> scores, Buffer<f32> lines, i64 precision
    ) {
        if (precision == 0) return ByThreads::add(sums, scores, lines, 0);
        const int i = threadIdx.x / 64 * 16, e = threadIdx.x / 32 % 2 * 16;
#pragma unroll
        for (int v = 0; v < 2; v++) {
            f32 four[4] = {sums[4 * v], sums[4 * v + 1], sums[4 * v + 2], sums[4 * v + 3]};
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int at = (half * SIDE + i) * 33, place = half * 32 * 33 + e + 8 * v;
                if (precision == 1) tensor_product<1>(four, scores, lines, at, place, 33, 1);
                else tensor_product<2>(four, scores, lines, at, place, 33, 1);
            }
#pragma unroll
            for (int n = 0; n < 4; n++) sums[4 * v + n] = four[n];
        }
    }
    static __device__ int line(int n, i64 precision) {
        if (precision == 0) return ByThreads::line(n, 0);
        return threadIdx.x / 64 * 16 + threadIdx.x % 32 / 4 + n / 2 % 2 * 8;
    }
    static __device__ int column(int n, i64 precision) {
        if (precision == 0) return ByThreads::column(n, 0);
        return threadIdx.x / 32 % 2 * 16 + n / 4 * 8 + threadIdx.x % 4 * 2 + n % 2;
    }
};
"""

_ROWS = """\
// What is known of the rows of scores, from the first row of an entry on.
struct Rows {{
    Buffer<const {t}> tops, totals, means;
    i64 start, targets, sources;
    bool guarded;
}};
// The probability of a product of one row and one column.
template <class Shape> __device__ {t} probability(
    const Rows &rows, i64 row, i64 column, {t} score, const Shape &shape
) {{
    const {t} top = rows.tops[rows.start + row];
    {t} total = rows.totals[rows.start + row];
    shape(row, column, score);
    if (rows.guarded && total == 0) total = 1;
    const {t} shift = top == -{t}(PYRELAY_INFINITY) ? {t}(0) : top;
    return exp({t}(score - shift)) / total;
}}
// The cotangent of that product, of the probability and that of the result.
template <class Turn> __device__ {t} cotangent(
    const Rows &rows, i64 row, i64 column, {t} power, {t} slope, const Turn &turn
) {{
    const {t} rest = slope - rows.means[rows.start + row];
    {t} weighted = rest == 0 ? {t}(0) : rest * power;
    turn(row, column, weighted);
    return weighted;
}}
"""

_SUM = """\
// Lines from `first` on of a result, `turned` or not: sums over tiles of scores, `own` lines down
// and `other` lines across (rows and columns if `by_rows`, or columns and rows), times `summed`
// lines; scores become probabilities, or with `slopes` cotangents.
template <class Product, class Shape, class Turn>
__device__ void sum_up(
    const Matrix &own, const Matrix &other, const Matrix &own_slopes, const Matrix &other_slopes,
    const Matrix &summed, const Rows &rows, Buffer<{t}> out, i64 start, bool turned, bool by_rows,
    bool slopes, i64 precision, i64 first, Buffer<{t}> left, Buffer<{t}> right, Buffer<{t}> scores,
    const Shape &shape, const Turn &turn
) {{
    for (i64 e0 = 0; e0 < summed.depth; e0 += 128) {{
        {t} sums[4][RESULTS] = {{}};
        for (i64 y0 = 0; y0 < other.lines; y0 += SIDE) {{
            {t} powers[CELLS];
            Product::scores(own, other, first, y0, left, right, scores, precision);
            __syncthreads();
#pragma unroll
            for (int n = 0; n < CELLS; n++) {{
                const int k = threadIdx.x + 256 * n, i = k / SIDE, j = k % SIDE;
                const i64 row = by_rows ? first + i : y0 + j, column = by_rows ? y0 + j : first + i;
                {t} power = 0;
                if (row < rows.targets && column < rows.sources) {{
                    power = probability(rows, row, column, scores[cell(i, j)], shape);
                }}
                powers[n] = power;
                if (!slopes) scores[cell(i, j)] = power;
            }}
            __syncthreads();
            if (slopes) {{
                Product::scores(
                    own_slopes, other_slopes, first, y0, left, right, scores, precision);
                __syncthreads();
#pragma unroll
                for (int n = 0; n < CELLS; n++) {{
                    const int k = threadIdx.x + 256 * n, i = k / SIDE, j = k % SIDE;
                    const i64 row = by_rows ? first + i : y0 + j;
                    const i64 column = by_rows ? y0 + j : first + i;
                    {t} weighted = 0;
                    if (row < rows.targets && column < rows.sources) {{
                        weighted = cotangent(
                            rows, row, column, powers[n], scores[cell(i, j)], turn);
                    }}
                    scores[cell(i, j)] = weighted;
                }}
                __syncthreads();
            }}
#pragma unroll
            for (int c = 0; c < 4; c++) {{
                if (e0 + 32 * c >= summed.depth) continue;
                take(summed, right, y0, e0 + 32 * c);
                __syncthreads();
                Product::add(sums[c], scores, right, precision);
                __syncthreads();
            }}
        }}
#pragma unroll
        for (int c = 0; c < 4; c++) {{
#pragma unroll
            for (int n = 0; n < RESULTS; n++) {{
                const i64 line = first + Product::line(n, precision);
                const i64 e = e0 + 32 * c + Product::column(n, precision);
                const i64 place = turned ? e * own.lines + line : line * summed.depth + e;
                if (line < own.lines && e < summed.depth) out[start + place] = sums[c][n];
            }}
        }}
    }}
}}
"""

_KERNEL = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {of}> q,
    Buffer<const {of}> k, Buffer<const {of}> v, Buffer<const {of}> y, Buffer<const {t}> tops,
    Buffer<const {t}> totals, Buffer<const {t}> means{results}, i64 targets, i64 sources,
    i64 depth, i64 width, i64 q_turned, i64 k_turned, i64 v_turned, i64 q_line, i64 k_line,
    i64 v_line, i64 guarded, i64 precision, i64 axes{parameters}
) {{
    if (pyrelay_over(record, launch)) return;
{shared}    PYRELAY_SHARED(Matrix, sides, 5);
    PYRELAY_SHARED(Rows, known, 1);
    const i64 down = (targets + SIDE - 1) / SIDE, across = (sources + SIDE - 1) / SIDE;
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 entry = item / (down + across), number = item % (down + across);
        i64 rest = entry, q_start = 0, k_start = 0, v_start = 0;
{batch}        const Matrix queries = {{q, q_start, q_line, targets, depth, q_turned != 0}};
        const Matrix keys = {{k, k_start, k_line, sources, depth, k_turned == 0}};
        const Matrix values = {{v, v_start, v_line, sources, width, v_turned != 0}};
        const Matrix given = {{y, entry * targets * width, width, targets, width, false}};
        auto shape = [&](i64 row, i64 j, {t} &score) {{
{shaped}        }};
        auto turn = [&](i64 row, i64 j, {t} &weighted) {{
{turned}        }};
        const bool by_rows = number < down;
        const i64 own = (by_rows ? number : number - down) * SIDE;
        // The cotangents of q, of k, of v.
        for (int which = by_rows ? 0 : 1; which < (by_rows ? 1 : 3); which++) {{
            Buffer<{t}> out = {some};
            bool wanted = false;
{chosen}            if (!wanted) continue;
            const i64 start = entry * (by_rows ? targets : sources) * (which == 2 ? width : depth);
            const bool turned = which == 0 ? q_turned : which == 1 ? !k_turned : v_turned;
            __syncthreads();
            if (threadIdx.x == 0) {{  // in shared memory they take no registers
                sides[0] = by_rows ? queries : keys, sides[1] = by_rows ? keys : queries;
                sides[2] = by_rows ? given : values, sides[3] = by_rows ? values : given;
                sides[4] = which == 0 ? keys : which == 1 ? queries : given;
                known[0] = {{
                    tops, totals, means, entry * targets, targets, sources, guarded != 0
                }};
            }}
            __syncthreads();
            {sum_up}(
                sides[0], sides[1], sides[2], sides[3], sides[4], known[0], out, start, turned,
                by_rows, which != 2, precision, own, {tiles}, shape, turn);
        }}
    }}
}}
"""

_SHARED = """\
    PYRELAY_SHARED({t}, left, 33 * SIDE);
    PYRELAY_SHARED({t}, right, 33 * SIDE);
    PYRELAY_SHARED({t}, scores, 33 * SIDE * SIDE / 32);
"""

_CALL = """\
            {name}(record, launch, entry * targets + row, PYRELAY_BUFFER({t}, &{cell} - j), j,
                   j + 1, 0{given});
"""

_RESULTS = "of_q", "of_k", "of_v"


@dataclass(frozen=True, slots=True)
class Variety:
    """A kernel by what it does in its own way: the types of results and of elements of operands,
    lines of a tile, definitions that stand before `Rows` and behind them, shared memory, the
    function that computes a sum, and the tiles that it is given."""

    t: str
    of: str
    side: int
    before: str
    behind: str
    shared: str
    sum_up: str
    tiles: str


def attention_gradient(dtype: DType) -> AttentionGradientKernel:
    """The kernel for floats of this type."""
    t, side = dtype.name, 64 if dtype == f32 else 32
    before, product = _TILES.format(t=t, side=side, matrix=matrix(t)), "ByThreads"
    if dtype == f32:
        before, product = _TENSOR_PRODUCT + before + _BY_WARPS, "ByWarps"
    return kernel_of_variety(
        Variety(
            t, t, side, before, _SUM.format(t=t), _SHARED.format(t=t), f"sum_up<{product}>",
            "left, right, scores",
        )
    )


def kernel_of_variety(variety: Variety) -> AttentionGradientKernel:
    """The kernel. Its text is one with all results, without batch axes and kernels that are called:
    `launch_texts.for_launch` gives what a launch needs."""
    text, side = _text(variety, _RESULTS, 0, None, None), variety.side
    source = launch_texts.known(text, functools.partial(_launched, variety))
    return AttentionGradientKernel(source, side, side, PICOSECONDS, MOST_OPERANDS, wholes=False)


def _launched(variety: Variety, operands: Sequence[Any], kernel_of: KernelOf) -> Launched:
    shaping, turning = (
        kernel_of(o) if isinstance(o, KernelAddress) else None
        for o in (operands[_SHAPING], operands[_TURNING])
    )
    results = operands[_WANTED:_KEPT]
    wanted = tuple(name for name, o in zip(_RESULTS, results, strict=True) if o != ZERO)
    axes = operands[_AXES].word
    text = _text(variety, wanted, axes, shaping, turning)
    arrays = [*operands[:_WANTED], *(o for o in results if o != ZERO)]
    sizes = operands[_SIZES:_SHAPING]
    kinds = (ADDRESS,) * len(arrays) + ("i64",) * (len(sizes) + 2 + 4 * axes)
    for called in (shaping, turning):
        kinds += launch_texts.given(called).kinds
    before = [*arrays, *sizes]
    return Text(text, kinds), [*before, ZERO, *operands[_AXES:]], len(before)


def _text(
    variety: Variety, wanted: Sequence[str], axes: int, shaping: Kernel | None,
    turning: Kernel | None,
) -> str:
    t = variety.t
    own = of_launch(axes, shaping)
    back = launch_texts.given(turning, "back")
    parameters = own.parameters + back.parameters
    chosen = "".join(
        f"            if (which == {n}) out = {name}, wanted = true;\n"
        for n, name in enumerate(_RESULTS) if name in wanted
    )
    return (
        own.function + ("" if turning is None else emit_item(with_reciprocals(turning), "turned"))
        + variety.before + _ROWS.format(t=t) + variety.behind + _KERNEL.format(
            t=t, of=variety.of, shared=variety.shared, sum_up=variety.sum_up, tiles=variety.tiles,
            results="".join(f", Buffer<{t}> {name}" for name in wanted),
            parameters=parameters, batch=own.batch, some=wanted[0], chosen=chosen,
            shaped="" if shaping is None else _CALL.format(
                name="shaped", cell="score", t=t, given=own.given
            ),
            turned="" if turning is None else _CALL.format(
                name="turned", cell="weighted", t=t, given=back.names
            ),
        )
    )  # fmt: skip
