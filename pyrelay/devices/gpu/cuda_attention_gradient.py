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
made for rows and for columns. Here each of the sums makes its own, a thread has 2 by 2 elements of
a tile, and results wider than 128 are done in rounds; floats of 32 and of 16 bits have kernels of
their own (`cuda_single_attention_gradient`, `cuda_half_attention_gradient`), which take from here
what all texts have of a launch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pyrelay.devices.gpu import cuda_causal, launch_texts
from pyrelay.devices.gpu.cuda_attention import ONE, PICOSECONDS, Forms, of_launch
from pyrelay.devices.gpu.cuda_tensor_cores import matrix
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.devices.gpu.launch_texts import MOST_OPERANDS, KernelOf, Launched
from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.passes.reciprocals import with_reciprocals
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import KernelAddress
from pyrelay.lower.planning.target import AttentionGradientKernel
from pyrelay.lower.text.emit_cuda import emit_item
from pyrelay.records import dataclass

# Places among the operands.
_WANTED, _KEPT, _SIZES, _SHAPING, _TURNING, _AXES = 7, 10, 12, 23, 25, 28

SIDE = 32
"""Lines of a tile of float64."""

_TILES = """\
#define BLOCK_THREADS 256
const int SIDE = 32, EACH = SIDE / 16, CELLS = SIDE * SIDE / 256, RESULTS = SIDE / 8;
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
// Threads have 2 by 2 scores and results.
struct ByThreads {{
    // Leaves the product of lines of two matrices, to each other, in a tile of scores.
    static __device__ void scores(
        const Matrix &x, const Matrix &y, i64 x0, i64 y0, Buffer<{t}> left, Buffer<{t}> right,
        Buffer<{t}> made
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
    static __device__ void add({t} (&sums)[RESULTS], Buffer<{t}> scores, Buffer<{t}> lines) {{
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
    static __device__ int line(int n) {{ return threadIdx.x / 16 + n / 2 * 16; }}
    static __device__ int column(int n) {{ return threadIdx.x % 16 + n % 2 * 16; }}
}};
"""

_ROWS = """\
// What is known of the rows of scores, from the first row of an entry on.
struct Rows {{
    Buffer<const {t}> tops, totals, means;
    i64 start, targets, sources;
    bool guarded;
}};
// A matrix that is summed up, if it is wanted: its lines stand side by side, or `turned`.
struct Result {{
    Buffer<{t}> out;
    i64 start, columns;
    bool wanted, turned;
    __device__ void put(i64 line, i64 column, i64 lines, {t} value) const {{
        if (line >= lines || column >= columns) return;
        const i64 place = turned ? column * lines + line : line * columns + column;
        out[start + place] = value;
    }}
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
template <class Shape, class Turn>
__device__ void one_sum(
    const Matrix &own, const Matrix &other, const Matrix &own_slopes, const Matrix &other_slopes,
    const Matrix &summed, const Rows &rows, const Result &result, bool by_rows, bool slopes,
    i64 first, Buffer<{t}> left, Buffer<{t}> right, Buffer<{t}> scores, const Shape &shape,
    const Turn &turn
) {{
    if (!result.wanted) return;
    for (i64 e0 = 0; e0 < summed.depth; e0 += 128) {{
        {t} sums[4][RESULTS] = {{}};
        for (i64 y0 = 0; y0 < other.lines; y0 += SIDE) {{
            {t} powers[CELLS];
            ByThreads::scores(own, other, first, y0, left, right, scores);
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
                ByThreads::scores(own_slopes, other_slopes, first, y0, left, right, scores);
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
                ByThreads::add(sums[c], scores, right);
                __syncthreads();
            }}
        }}
#pragma unroll
        for (int c = 0; c < 4; c++) {{
#pragma unroll
            for (int n = 0; n < RESULTS; n++) {{
                const i64 line = first + ByThreads::line(n);
                const i64 e = e0 + 32 * c + ByThreads::column(n);
                result.put(line, e, own.lines, sums[c][n]);
            }}
        }}
    }}
}}
template <class Shape, class Turn>
__device__ void sum_up(
    const Matrix &own, const Matrix &other, const Matrix &own_slopes, const Matrix &other_slopes,
    const Rows &rows, const Result &by_slopes, const Result &by_powers, bool by_rows, i64 first,
    Buffer<{t}> left, Buffer<{t}> right, Buffer<{t}> scores, const Shape &shape, const Turn &turn
) {{
    one_sum(own, other, own_slopes, other_slopes, other, rows, by_slopes, by_rows, true, first,
            left, right, scores, shape, turn);
    one_sum(own, other, own_slopes, other_slopes, other_slopes, rows, by_powers, by_rows, false,
            first, left, right, scores, shape, turn);
}}
"""

_KERNEL = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {of}> q,
    Buffer<const {of}> k, Buffer<const {of}> v, Buffer<const {of}> y, Buffer<const {t}> tops,
    Buffer<const {t}> totals, Buffer<const {t}> means{results}, i64 targets, i64 sources,
    i64 depth, i64 width, i64 q_turned, i64 k_turned, i64 v_turned, i64 q_line, i64 k_line,
    i64 v_line, i64 guarded, i64 axes{parameters}
) {{
    if (pyrelay_over(record, launch)) return;
{shared}{bounds}    PYRELAY_SHARED(Matrix, sides, 4);
    PYRELAY_SHARED(Result, results, 2);
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
        if (by_rows ? !{q_wanted} : !({k_wanted} || {v_wanted})) continue;
        __syncthreads();
        if (threadIdx.x == 0) {{  // in shared memory they take no registers
            sides[0] = by_rows ? queries : keys, sides[1] = by_rows ? keys : queries;
            sides[2] = by_rows ? given : values, sides[3] = by_rows ? values : given;
            results[0] = by_rows
                ? Result{{{of_q}, entry * targets * depth, depth, {q_wanted}, q_turned != 0}}
                : Result{{{of_k}, entry * sources * depth, depth, {k_wanted}, k_turned == 0}};
            results[1] = {{
                {of_v}, entry * sources * width, width, {v_wanted} && !by_rows, v_turned != 0
            }};
            known[0] = {{tops, totals, means, entry * targets, targets, sources, guarded != 0}};
        }}
        __syncthreads();
{reached}        {sum_up}(
            sides[0], sides[1], sides[2], sides[3], known[0], results[0], results[1], by_rows,
            {others}(by_rows ? number : number - down) * SIDE, {tiles}, shape, turn);
    }}
}}
"""

# Where a causal mask keeps any of the others: up to some columns, or from some rows on.
_REACHED = """\
        i64 from = 0, stop = by_rows ? sources : targets;
        if ({causal}) {{
            const i64 own = (by_rows ? number : number - down) * SIDE;
            const i64 below = own + SIDE < targets ? own + SIDE : targets;
            if (by_rows) stop = reach(shape, below - 1, sources);
            else from = onset(shape, own, targets);
            const i64 low = by_rows ? stop : 0, high = by_rows ? sources : from;
            bool odd = has_odd(sides[1], low, high) || has_odd(sides[3], low, high);
            for (i64 row = threadIdx.x; row < from; row += BLOCK_THREADS) {{
                const i64 i = known[0].start + row;
                odd |= is_odd(totals[i]) || is_odd(means[i]);
            }}
            if (anywhere(odd, {room})) from = 0, stop = by_rows ? sources : targets;
        }}
        if (threadIdx.x == 0) bounds[0] = from, bounds[1] = stop;
        __syncthreads();
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
class Form:
    """A form of a kernel by what it does in its own way: definitions that stand before `Rows` and
    behind them, shared memory, the function that computes sums, the tiles that it is given, and
    where tiles may be left out the type of matrices and one of the tiles."""

    before: str
    behind: str
    shared: str
    sum_up: str
    tiles: str
    lines: str = ""
    room: str = ""


@dataclass(frozen=True, slots=True)
class Variety:
    """A kernel: the types of results and of elements of operands, lines of a tile, its forms and
    what chooses one."""

    t: str
    of: str
    side: int
    written: tuple[Form, ...]
    forms: Forms = ONE


def attention_gradient(dtype: DType) -> AttentionGradientKernel:
    """The kernel for floats of this type."""
    t = dtype.name
    form = Form(
        _TILES.format(t=t, matrix=matrix(t)), _SUM.format(t=t), _SHARED.format(t=t), "sum_up",
        "left, right, scores",
    )
    return kernel_of_variety(Variety(t, t, SIDE, (form,)))


def kernel_of_variety(variety: Variety) -> AttentionGradientKernel:
    """The kernel. Its text is one with all results, without batch axes and kernels that are called:
    `launch_texts.for_launch` gives what a launch needs."""
    text, side = _text(variety, variety.written[0], _RESULTS, 0, None, None), variety.side
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
    arrays = [*operands[:_WANTED], *(o for o in results if o != ZERO)]
    sizes = operands[_SIZES:_SHAPING]
    kinds = (ADDRESS,) * len(arrays) + ("i64",) * (len(sizes) + 1 + 4 * axes)
    for called in (shaping, turning):
        kinds += launch_texts.given(called).kinds
    texts = tuple(
        Text(_text(variety, form, wanted, axes, shaping, turning), kinds)
        for form in variety.written
    )
    depth = len(arrays) + 2
    return Launched(
        texts, [*arrays, *sizes, *operands[_AXES:]],
        form=lambda words: variety.forms.chosen(*words[depth : depth + 2]),
    )


def _text(
    variety: Variety, form: Form, wanted: Sequence[str], axes: int, shaping: Kernel | None,
    turning: Kernel | None,
) -> str:
    t = variety.t
    own = of_launch(axes, shaping)
    back = launch_texts.given(turning, "back")
    parameters = own.parameters + back.parameters
    some = {name: name if name in wanted else wanted[0] for name in _RESULTS}
    flags = {f"{name[-1]}_wanted": str(name in wanted).lower() for name in _RESULTS}
    masked = bool(form.lines) and own.causal is not None
    others = "SomeLines{bounds}" if masked else "AllLines{sides[1].lines}"
    return (
        own.function + ("" if turning is None else emit_item(with_reciprocals(turning), "turned"))
        + form.before + (cuda_causal.lines(form.lines, some=masked) if form.lines else "")
        + _ROWS.format(t=t) + form.behind + _KERNEL.format(
            t=t, of=variety.of, shared=form.shared, sum_up=form.sum_up, tiles=form.tiles,
            results="".join(f", Buffer<{t}> {name}" for name in wanted),
            parameters=parameters, batch=own.batch, **some, **flags,
            others=f"{others}, " if form.lines else "",
            bounds="    PYRELAY_SHARED(i64, bounds, 2);\n" if masked else "",
            reached=_REACHED.format(causal=own.causal, room=form.room) if masked else "",
            shaped="" if shaping is None else _CALL.format(
                name="shaped", cell="score", t=t, given=own.given
            ),
            turned="" if turning is None else _CALL.format(
                name="turned", cell="weighted", t=t, given=back.names
            ),
        )
    )  # fmt: skip
