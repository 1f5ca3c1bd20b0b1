"""Products of matrices inside of kernels of loops, in CUDA C++.

In: a dtype, the number of batch axes. Out: the text of a phase, which all threads of a grid go
through; its parameters are those of `lower.planning.target.MatmulKernel`, behind what is kept of
the right operand.

A block has a tile of the result, of as many rows and columns that each block has one and that what
it reads in a round is least; or the rows and columns of the elements that it owns (`ownership`).
Its threads have four columns of four rows each, and share the sum in slices, which are added up in
a fixed order. For few rows neighbouring threads, as many as the sum has use for and up to a warp,
have a column or four, whose operands they read along the sum, 16 bytes at a time. With
`matmul_precision` tf32 or bf16 tensor cores multiply tiles of 8 rows and more of float32, whose
weights lie in shared memory as they read them. Weights, right operands that the loop does not
change, stay in shared memory from round to round if a block's part of them fits there, or in
registers (`persistent_held`, `persistent_held_tiles`).
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.devices.gpu.persistent_held import ACROSS, HELD
from pyrelay.devices.gpu.persistent_held_tiles import HELD_TILE
from pyrelay.devices.gpu.persistent_prelude import PHASE, THREADS
from pyrelay.devices.gpu.persistent_tiles import TILE
from pyrelay.ir.types import DType
from pyrelay.lower.planning.instructions import Immediate, Launch

ROWS = 8

FEW = 4
"""Rows of a tile whose columns neighbouring threads share."""

STEPS = 16
"""Places of a sum that tensor cores multiply at once."""

SUPPORT = r"""
// How blocks share a product: tiles side by side, the rows of each, and its columns, which are
// `run` neighbours each time and `apart` from one run to the next; those of the next tile begin
// `stride` further, and none of a run is at `limit`. Whether the columns of the right operand stay
// in shared memory; whether rows are few: then they lie there one by one, of `padded` elements;
// whether tensor cores multiply: then `held` columns lie there as their warps read them. Columns
// that are no one's are zeros.
// `is`: whether the block has a tile; `mine` and `top`: the first column and row of it. bits: how
// many threads share a column of few rows, as a logarithm.
struct pyrelay_split {
    Index across, down, rows, columns, run, stride, apart, limit, padded, held, mine, top;
    pyrelay_divisor runs;
    int bits;
    bool kept, few, cores, is;
    template <class T> __device__ Index bytes() const {
        return kept ? held * padded * (Index)sizeof(T) : 0;
    }
    __device__ Index first(Index item) const { return item % across * stride; }
    // The column of the result; -1 for none.
    __device__ Index at(Index first, Index j, Index n) const {
        const Index group = j < run ? 0 : runs.of(j), own = first + j - group * run;
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
    const Index whole = split.cores ? 8 : split.few ? 1 : fits;
    split.held = (split.columns + whole - 1) / whole * whole;
    split.kept = (i64)split.held * split.padded <= room / (Index)sizeof(T);
    split.runs = pyrelay_divides(split.run, split.columns);
    while (split.bits < 5 && fits << split.bits < k) split.bits++;
    split.is = (Index)blockIdx.x < split.across * split.down;
    split.mine = split.first(blockIdx.x);
    split.top = blockIdx.x / split.across % split.down * split.rows;
}
template <class T>
__device__ pyrelay_split pyrelay_split_of(Index m, Index n, Index k, Index room, i64 precision) {
    pyrelay_split best = {1, 1, m, n, n, n, 0, n, k, n};
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
        own.units, k
    };
    pyrelay_lay<T>(found, k, room, precision);
    return found;
}
template <class T> __device__ void pyrelay_keep(
    T *kept, const pyrelay_split &split, Buffer<const T> b, Index n, Index k, Index turned,
    Index line
) {
    if (!split.kept) return;
    const Index first = split.mine, columns = split.held, depth = split.few ? split.padded : k;
    for (Index e = threadIdx.x; split.cores && e < split.held * split.padded; e += blockDim.x) {
        const Index lane = e / 4 % 32, slice = e / (8 * STEPS) % (split.padded / STEPS);
        const Index step = slice * STEPS + lane % 4 * 4 + e % 4;
        const Index j = split.at(first, e / 8 / split.padded * 8 + lane / 4, n);
        kept[e] = j < 0 || step >= k ? T(0) : b[turned ? j * line + step : step * line + j];
    }
    // Neighbours read neighbours; eight where these lie apart here: more wait for each other.
    const Index wide = split.few && !turned ? 8 : columns;
    const Index places = (columns + wide - 1) / wide * wide * depth;
    for (Index e = threadIdx.x; !split.cores && e < places; e += blockDim.x) {
        const Index step = turned ? e % depth : e / wide % depth, some = e / wide / depth * wide;
        const Index own = turned ? e / depth : some + e % wide;
        if (own >= columns) continue;
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
            if (split.kept) {
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
// A tile of few rows: C columns for a power of two of neighbouring threads, which share the sum and
// read packs of N.
template <int R, int C, int N, class T, class Add> __device__ void pyrelay_lines(
    const T *kept, const pyrelay_split &split, const pyrelay_operand<T> &a,
    const pyrelay_operand<T> &b, Buffer<T> c, Index c_start, Index c_line, Index row, Index rows,
    Index first, Index n, Index k, bool adds, Add add
) {
    typedef pyrelay_pack<T, N> Pack;
    const int bits = C == 4 && split.bits < 2 ? 2 : split.bits;
    const int across = 1 << bits, lane = threadIdx.x & (across - 1), side = threadIdx.x >> bits;
    const Index columns = split.columns;
    const bool wide = N > 1 && b.line % N == 0 && pyrelay_lined_up<N>(b.start, b.data);
    for (Index base = 0; base < columns; base += (THREADS >> bits) * C) {
        const Index j = base + side * C;
        T sums[R][C];
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
            for (int e = 0; e < C; e++) sums[r][e] = T(0);
        }
        // So many packs at once, of those that there are.
        const auto packs_of = [&](auto count, Index start, auto of) {
            constexpr int M = decltype(count)::N;
            Pack right[M][C], some[M][R];
#pragma unroll
            for (int p = 0; p < M; p++) {
                const Index place = start + p * across * N;
                if (place >= k) continue;
#pragma unroll
                for (int e = 0; e < C; e++) right[p][e] = of(e, place);
#pragma unroll
                for (int r = 0; r < R; r++) {
                    if (R > 1 && r >= rows) break;
                    if (N > 1) {
                        some[p][r] = pyrelay_together<N>(
                            a.data, a.start + (row + r) * a.line + place
                        );
                    } else {
                        some[p][r].at[0] = a.at(row + r, place);
                    }
                }
            }
#pragma unroll
            for (int p = 0; p < M; p++) {
                if (start + p * across * N >= k) continue;
#pragma unroll
                for (int r = 0; r < R; r++) {
                    if (R > 1 && r >= rows) break;
#pragma unroll
                    for (int e = 0; e < C; e++) {
#pragma unroll
                        for (int l = 0; l < N; l++) {
                            sums[r][e] = add(sums[r][e], some[p][r].at[l], right[p][e].at[l]);
                        }
                    }
                }
            }
        };
        const auto sum_up = [&](auto of) {
            constexpr int M = R == 1 ? 2 : 1;
            for (Index start = lane * N; start < k; start += M * across * N) {
                packs_of(pyrelay_count<M>(), start, of);
            }
        };
        if (split.kept) {
            sum_up([&](int e, Index start) {
                const Index held = j + e < columns ? j + e : columns - 1;
                return *(const Pack *)(kept + held * split.padded + start);
            });
        } else {
            Index column[C];
#pragma unroll
            for (int e = 0; e < C; e++) {
                const Index found = split.at(first, j + e, n);
                column[e] = found < 0 ? 0 : found;
            }
            if (wide) {
                sum_up([&](int e, Index start) {
                    return pyrelay_together<N>(b.data, b.start + column[e] * b.line + start);
                });
            } else {
                sum_up([&](int e, Index start) {
                    Pack some;
#pragma unroll
                    for (int l = 0; l < N; l++) {
                        some.at[l] = start + l < k ? b.at(start + l, column[e]) : T(0);
                    }
                    return some;
                });
            }
        }
        const Index mine = j + pyrelay_column<C>(across, lane), last = C == 1 ? across : across / 4;
        const Index column = mine < columns ? split.at(first, mine, n) : -1;
#pragma unroll
        for (int r = 0; r < R; r++) {
            if (R > 1 && r >= rows) break;
            const T sum = pyrelay_across(sums[r], across, lane);
            if ((lane & (last - 1)) != 0 || column < 0) continue;
            const Index place = c_start + (row + r) * c_line + column;
            c[place] = adds ? T(c[place] + sum) : sum;
        }
    }
}
"""
SUPPORT = SUPPORT.replace("// A tile by tensor cores", f"{TILE}// A tile by tensor cores")
SUPPORT = SUPPORT.replace("// A tile of few rows", f"{ACROSS[1:]}// A tile of few rows")
SUPPORT += HELD_TILE[1:] + HELD[1:]
for _name, _number in (
    ("ROWS", ROWS), ("FEW", FEW), ("STEPS", STEPS), ("THREADS", THREADS)
):
    SUPPORT = SUPPORT.replace(_name, str(_number))

_PLAIN = 15
"""Operands of a product without batch axes."""

_PHASE = """\
{phase}(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<{t}> work, {t} *kept,
    const pyrelay_held<{t}, {pack}> &held, const pyrelay_split &split, Buffer<const {t}> a,
    Buffer<const {t}> b, Buffer<{t}> c, Index m, Index n, Index k, Index a_turned, Index b_turned,
    Index adds, Index a_line, Index b_line, Index c_line, Index axes, Index no_finisher,
    Index no_operands{batch_parameters}, i64 precision
) {{
    const auto add = []({t} sum, {t} left, {t} right) {{ return {add}; }};
{head}        const pyrelay_operand<{t}> left = {{a, a_start, a_line, a_turned}};
        const pyrelay_operand<{t}> right = {{b, b_start, b_line, b_turned}};
        const bool some = m % split.rows != 0 && m - row < split.rows;
        const Index rows = some ? m - row : split.rows;
{cores}{forms}    }}
}}
"""

_FORMS = """\
        if (held.is) {{
            if (split.columns << split.bits > {threads}) {{
                pyrelay_held_line<4>(held, split, left, c, c_start, first, n, k, adds != 0, add);
            }} else {{
                pyrelay_held_line<1>(held, split, left, c, c_start, first, n, k, adds != 0, add);
            }}
#if HOLDS_TILES
        }} else if (held.tiled) {{
            pyrelay_held_tile<4, {wide}>(kept, held.tile, split, left, c, c_start, c_line, row,
                rows, first, n, k, adds != 0, add);
#endif
        }} else if (split.few && (split.kept || b_turned)) {{
            const bool packs = !a_turned && k % {pack} == 0 && a_line % {pack} == 0
                && pyrelay_lined_up<{pack}>(a_start, a);
            const bool one = rows == 1;
            if (packs && one && split.columns << split.bits > {threads}) {{
                pyrelay_lines<1, 4, {pack}>(kept, split, left, right, c, c_start, c_line, row,
                    rows, first, n, k, adds != 0, add);
            }} else if (packs && one) {{
                pyrelay_lines<1, 1, {pack}>(kept, split, left, right, c, c_start, c_line, row,
                    rows, first, n, k, adds != 0, add);
            }} else if (packs) {{
                pyrelay_lines<{few}, 4, {pack}>(kept, split, left, right, c, c_start, c_line,
                    row, rows, first, n, k, adds != 0, add);
            }} else {{
                pyrelay_lines<{few}, 4, 1>(kept, split, left, right, c, c_start, c_line, row,
                    rows, first, n, k, adds != 0, add);
            }}
        }} else if (split.rows == 1) {{
            pyrelay_tile<1, {wide}>(work, kept, split, left, right, c, c_start, c_line, row,
                rows, first, n, k, adds != 0, add);
        }} else {{
            pyrelay_tile<4, {wide}>(work, kept, split, left, right, c, c_start, c_line, row,
                rows, first, n, k, adds != 0, add);
        }}
"""

# What is computed once, before a loop, has one form, and keeps nothing.
_ANY_ROWS = """\
        pyrelay_split plain = split;
        plain.kept = false;
        pyrelay_tile<4, {wide}, 16>(work, kept, plain, left, right, c, c_start, c_line, row,
            rows, first, n, k, adds != 0, add);
"""

# Without batch axes there are no more tiles than blocks.
_ONE = """\
    for (bool once = split.is; once; once = false) {
        const Index first = split.mine, row = split.top, c_start = 0, a_start = 0, b_start = 0;
"""

_STACKS = """\
    const Index tiles = split.across * split.down;
    Index stacks = 1;
{stacks}    for (Index item = blockIdx.x; item < tiles * stacks; item += gridDim.x) {{
        const Index first = split.first(item), row = item / split.across % split.down * split.rows;
        Index rest = item / tiles;
        const Index c_start = rest * m * c_line;
        Index a_start = 0, b_start = 0;
{batch}"""

_CORES = """\
        if (split.cores) {
            pyrelay_cores(work, kept, split, left, right, c, c_start, c_line, row, rows, first,
                n, k, adds != 0, precision);
            continue;
        }
"""

_BATCH_AXIS = """\
        a_start += rest % extent{k} * a_stride{k};
        b_start += rest % extent{k} * b_stride{k};
        rest /= extent{k};
"""


def as_row(launch: Launch) -> Launch:
    """A product, with a column as its right operand turned into one of a row: blocks share the
    columns of a result, and keep right operands. Another launch is as it was."""
    if len(launch.operands) != _PLAIN:
        return launch
    a, b, c, m, n, k, a_turned, b_turned, adds, a_line, b_line, c_line = launch.operands[:12]
    one, flags = Immediate(1), (Immediate(0), Immediate(1))
    if n != one or c_line != one or m == one or not {a_turned, b_turned} <= {*flags}:
        return launch
    # A row whose elements are neighbours lies the same turned and not.
    flat = b_turned == one or b_line == one
    left = (flags[not flat], k if flat else b_line)
    shape = (b, a, c, one, m, k, left[0], flags[a_turned == flags[0]], adds, left[1], a_line, m)
    return replace(launch, operands=(*shape, *launch.operands[12:]))


def pack_of(dtype: DType) -> int:
    """Elements that are read at once."""
    return max(16 // dtype.size, 1)


def product(dtype: DType, axes: int, once: bool = False) -> str:
    """The product of stacks of matrices with this many batch axes. once: whether it comes before
    a loop, and has one form for all rows."""
    t = dtype.name
    add = f"{t}(sum | (left * right))" if dtype.kind == "b" else f"{t}(sum + left * right)"
    if t in ("f32", "f64"):  # as libraries add up
        add = "fma(left, right, sum)"
    pack = pack_of(dtype)
    parameters = "".join(
        f", Index extent{k}, Index a_stride{k}, Index b_stride{k}" for k in range(axes)
    )
    forms = (_ANY_ROWS if once else _FORMS).format(
        few=FEW, pack=pack, wide=min(pack, 4), threads=THREADS
    )
    return _PHASE.format(
        phase=PHASE, t=t, add=add, pack=pack, forms=forms, batch_parameters=parameters,
        cores=_CORES if t == "f32" else "",
        head=_STACKS.format(
            stacks="".join(f"    stacks *= extent{k};\n" for k in range(axes)),
            batch="".join(_BATCH_AXIS.format(k=k) for k in reversed(range(axes))),
        ) if axes else _ONE,
    )
