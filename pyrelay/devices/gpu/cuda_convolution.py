"""The three products of convolutions in CUDA C++: products of matrices that nobody builds.

In: a dtype, which product, whether channels come last. Out: the text, to stand behind
`cuda_prelude`; parameters are those of `lower.planning.target.ConvolutionKernel`, with those of the
kernel that finishes the product at the end. That is a function of the kernel here: a thread calls
it for each sum that it has in a register, and nothing but what it leaves goes to memory.

Patches of an image are the lines of a matrix that is read where it lies ("implicit GEMM", Chetlur
et al., "cuDNN: Efficient primitives for deep learning", 2014). A block computes a tile of `TILE` by
`TILE` elements from slices of both operands in shared memory. A thread keeps the place of its lines
and works out only where the elements of a slice are. With `matmul_precision` tf32 or bf16 warps
multiply the slices of float32 by `mma.sync`, else each thread has 4 by 4 elements. Images of
16-bit floats have tiles of their own (`cuda_half_convolution`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyrelay.devices.gpu import cuda_totals, launch_texts
from pyrelay.devices.gpu.cuda_half_convolution import ACROSS, DOWN, HALF_TILES
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.devices.gpu.launch_texts import MOST_OPERANDS, KernelOf, Launched
from pyrelay.ir.types import DType, f32
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import KernelAddress
from pyrelay.lower.planning.target import BACK, FORWARD, WEIGHTS, ConvolutionKernel, SumParts
from pyrelay.lower.text.emit_cuda import emit_item
from pyrelay.records import dataclass

TILE = 64
_ROOM = 16 * 68  # elements of a slice in shared memory
_PICOSECONDS = 1000  # for a multiplication: nobody shares this work, so it matters to nobody

_TILES = """\
#define BLOCK_THREADS 256
template <class T, int MODE> struct Tile;
// Each thread has 4 by 4 elements.
template <class T> struct Tile<T, 0> {
    T sums[4][4] = {};
    template <class Memory> __device__ void add(Memory a, Memory b) {
        const int i = threadIdx.x / 16 * 4, j = threadIdx.x % 16 * 4;
#pragma unroll
        for (int k = 0; k < 16; k++) {
#pragma unroll
            for (int u = 0; u < 4; u++) {
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    sums[u][v] = fma(a[k * 68 + i + u], b[k * 68 + j + v], sums[u][v]);
                }
            }
        }
    }
    template <class Put> __device__ void put(const Put &out) const {
        const int i = threadIdx.x / 16 * 4, j = threadIdx.x % 16 * 4;
#pragma unroll
        for (int u = 0; u < 4; u++) {
#pragma unroll
            for (int v = 0; v < 4; v++) out(i + u, j + v, sums[u][v]);
        }
    }
};
// Each warp has 32 by 16 elements, as four products of the tensor cores: their operands have
// groups of 4 lanes by lines, lanes of a group by places in a line.
template <class T> struct Warps {
    T sums[2][2][4] = {};
    int i, j, group, lane;
    __device__ Warps()
        : i(threadIdx.x / 32 % 2 * 32), j(threadIdx.x / 64 * 16), group(threadIdx.x % 32 / 4),
          lane(threadIdx.x % 4) {}
    template <class Put> __device__ void put(const Put &out) const {
#pragma unroll
        for (int u = 0; u < 2; u++) {
#pragma unroll
            for (int v = 0; v < 2; v++) {
                const int down = i + 16 * u + group, across = j + 8 * v + 2 * lane;
                out(down, across, sums[u][v][0]);
                out(down, across + 1, sums[u][v][1]);
                out(down + 8, across, sums[u][v][2]);
                out(down + 8, across + 1, sums[u][v][3]);
            }
        }
    }
};
template <class T> struct Tile<T, 1> : Warps<T> {
    template <class Memory> __device__ void add(Memory a, Memory b) {
        const int g = this->group;
#pragma unroll
        for (int step = 0; step < 16; step += 8) {
            const int k = step + this->lane;
#pragma unroll
            for (int u = 0; u < 2; u++) {
                const int i = this->i + 16 * u + g;
                const f32 left[4] = {
                    a[k * 68 + i], a[k * 68 + i + 8], a[(k + 4) * 68 + i], a[(k + 4) * 68 + i + 8]
                };
#pragma unroll
                for (int v = 0; v < 2; v++) {
                    const int j = this->j + 8 * v + g;
                    const f32 right[2] = {b[k * 68 + j], b[(k + 4) * 68 + j]};
                    pyrelay_mma_tf32(this->sums[u][v], left, right);
                }
            }
        }
    }
};
template <class T> struct Tile<T, 2> : Warps<T> {
    template <class Memory> __device__ void add(Memory a, Memory b) {
        const int g = this->group, k = 2 * this->lane;
#pragma unroll
        for (int u = 0; u < 2; u++) {
            const int i = this->i + 16 * u + g;
            f32 left[8];
#pragma unroll
            for (int e = 0; e < 8; e++) {
                left[e] = a[(k + e % 2 + e / 4 * 8) * 68 + i + e / 2 % 2 * 8];
            }
#pragma unroll
            for (int v = 0; v < 2; v++) {
                const int j = this->j + 8 * v + g;
                const f32 right[4] = {
                    b[k * 68 + j], b[(k + 1) * 68 + j], b[(k + 8) * 68 + j], b[(k + 9) * 68 + j]
                };
                pyrelay_mma_bf16(this->sums[u][v], left, right);
            }
        }
    }
};
// A slice of 16 places of 64 lines, at [place][line].
template <class T, class Side> struct Slice {
    static const int held = Side::along ? 4 : 1;
    typename Side::Line lines[held];
    __device__ Slice(const Side &side, i64 first) {
#pragma unroll
        for (int s = 0; s < held; s++) lines[s] = side.line(first + line(s));
    }
    static __device__ int line(int s) {
        return Side::along ? threadIdx.x / 16 + 16 * s : threadIdx.x % 64;
    }
    static __device__ int place(int s) {
        return Side::along ? threadIdx.x % 16 : threadIdx.x / 64 + 4 * s;
    }
    template <class Memory>
    __device__ void take(const Side &side, Memory memory, i64 first, i64 k0) const {
#pragma unroll
        for (int s = 0; s < 4; s++) {
            const i64 k = k0 + place(s);
            const bool inside = first + line(s) < side.lines && k < side.places;
            memory[place(s) * 68 + line(s)] =
                inside ? side.at(lines[Side::along ? s : 0], k) : T(0);
        }
    }
};
template <class T, int MODE, class Memory, class Left, class Right, class Put>
__device__ void multiply(
    Memory a, Memory b, const Left &left, const Right &right, const Put &out,
    i64 i0, i64 j0, i64 begin, i64 end
) {
    Tile<T, MODE> tile;
    const Slice<T, Left> down(left, i0);
    const Slice<T, Right> across(right, j0);
    for (i64 k0 = begin; k0 < end; k0 += 16) {
        down.take(left, a, i0, k0);
        across.take(right, b, j0, k0);
        __syncthreads();
        tile.add(a, b);
        __syncthreads();
    }
    tile.put([&](int i, int j, T value) {
        if (i0 + i < left.lines && j0 + j < right.lines) out(i0 + i, j0 + j, value);
    });
}
"""

_SHAPES = """\
// Where an image, its weights and what comes of them have their elements, for one group.
struct Shapes {{
    i64 entries, groups, channels, outputs;
    i64 extents[3], taps[3], out[3], stride[3], step[3], before[3];
    i64 group;
    __device__ i64 size(const i64 (&extents)[3]) const {{
        return extents[0] * extents[1] * extents[2];
    }}
    __device__ i64 x(i64 entry, i64 channel, i64 place) const {{ return {x}; }}
    __device__ i64 w(i64 output, i64 channel, i64 tap) const {{ return {w}; }}
    __device__ i64 y(i64 entry, i64 output, i64 pixel) const {{ return {y}; }}
    // An index of an entry or a channel, and one inside.
    __device__ static void parted(i64 index, i64 size, i64 &outer, i64 &inner) {{
        outer = index / size, inner = index - outer * size;
    }}
    // One of weights: a channel (or an output) and a tap.
    __device__ void weight(i64 index, i64 channels, i64 &channel, i64 &tap) const {{
        {weight};
    }}
    __device__ static void axes(i64 index, const i64 (&extents)[3], i64 (&place)[3]) {{
        const i64 rest = index / extents[2];
        place[2] = index - rest * extents[2];
        place[0] = rest / extents[1];
        place[1] = rest - place[0] * extents[1];
    }}
    // The element of an image at a place, -1 outside of it.
    __device__ i64 inside(const i64 (&place)[3]) const {{
        for (int d = 0; d < 3; d++) if (place[d] < 0 || place[d] >= extents[d]) return -1;
        return (place[0] * extents[1] + place[1]) * extents[2] + place[2];
    }}
}};
"""

# Sides of a product: how many lines and places in a line, what a line is, where its element at a
# place is (-1: it is 0). `along`: neighbouring places of a line are neighbours in memory, else
# neighbouring lines are; `packs`: eight of them from a multiple of 8 on, and so in memory.
_SIDE = """\
struct {name} {{
    static const bool along = {along};
    struct Line {{ {members} }};
    const Shapes &shapes;
    Buffer<const {t}> array;
    i64 lines, places;
    __device__ bool packs() const {{ return {packs}; }}
    __device__ Line line(i64 index) const {{
        Line made;
{line}        return made;
    }}
    __device__ i64 where(const Line &line, i64 k) const {{
{where}    }}
    __device__ {t} at(const Line &line, i64 k) const {{
        const i64 place = where(line, k);
        return place < 0 ? {t}(0) : array[place];
    }}
}};
"""

#: Members of a line, how it is made of its index, where its element at k is; for channels first
#: and last, whether eight elements are neighbours.
_PATCHES = ("i64 entry, place[3];", """\
        i64 pixel;
        Shapes::parted(index, shapes.size(shapes.out), made.entry, pixel);
        Shapes::axes(pixel, shapes.out, made.place);
        for (int d = 0; d < 3; d++) {
            made.place[d] = made.place[d] * shapes.stride[d] - shapes.before[d];
        }
""", """\
        i64 channel, tap, place[3];
        shapes.weight(k, shapes.channels, channel, tap);
        Shapes::axes(tap, shapes.taps, place);
        for (int d = 0; d < 3; d++) place[d] = place[d] * shapes.step[d] + line.place[d];
        const i64 source = shapes.inside(place);
        return source < 0 ? -1 : shapes.x(line.entry, channel, source);
""", ("false", "shapes.channels % 8 == 0"))
_SHIFTED = ("i64 channel, place[3];", """\
        i64 tap;
        shapes.weight(index, shapes.channels, made.channel, tap);
        Shapes::axes(tap, shapes.taps, made.place);
        for (int d = 0; d < 3; d++) {
            made.place[d] = made.place[d] * shapes.step[d] - shapes.before[d];
        }
""", """\
        i64 entry, pixel, place[3];
        Shapes::parted(k, shapes.size(shapes.out), entry, pixel);
        Shapes::axes(pixel, shapes.out, place);
        for (int d = 0; d < 3; d++) place[d] = place[d] * shapes.stride[d] + line.place[d];
        const i64 source = shapes.inside(place);
        return source < 0 ? -1 : shapes.x(entry, line.channel, source);
""", ("false", "shapes.channels % 8 == 0"))
_SPREAD = ("i64 entry, place[3];", """\
        i64 pixel;
        Shapes::parted(index, shapes.size(shapes.extents), made.entry, pixel);
        Shapes::axes(pixel, shapes.extents, made.place);
        for (int d = 0; d < 3; d++) made.place[d] += shapes.before[d];
""", """\
        i64 output, tap, place[3], pixel = 0;
        shapes.weight(k, shapes.outputs, output, tap);
        Shapes::axes(tap, shapes.taps, place);
        for (int d = 0; d < 3; d++) {
            const i64 far = line.place[d] - place[d] * shapes.step[d];
            const i64 number = far / shapes.stride[d];
            if (far < 0 || number * shapes.stride[d] != far || number >= shapes.out[d]) return -1;
            pixel = pixel * shapes.out[d] + number;
        }
        return shapes.y(line.entry, output, pixel);
""", ("false", "shapes.outputs % 8 == 0"))
_FILTER = ("i64 output;", "        made.output = index;\n", """\
        i64 channel, tap;
        shapes.weight(k, shapes.channels, channel, tap);
        return shapes.w(line.output, channel, tap);
""", ("places % 8 == 0", "shapes.outputs % 8 == 0"))
_FILTERS_BACK = ("i64 channel;", "        made.channel = index;\n", """\
        i64 output, tap;
        shapes.weight(k, shapes.outputs, output, tap);
        return shapes.w(output, line.channel, tap);
""", ("false", "shapes.outputs % 8 == 0"))
_OUTPUTS = ("i64 output;", "        made.output = index;\n", """\
        i64 entry, pixel;
        Shapes::parted(k, shapes.size(shapes.out), entry, pixel);
        return shapes.y(entry, line.output, pixel);
""", ("shapes.size(shapes.out) % 8 == 0", "shapes.outputs % 8 == 0"))

_PIXEL_OF = "i64 entry, pixel;\n        Shapes::parted(i, {size}, entry, pixel);\n"

#: Of each product: its sides with whether they go along their memory (channels first, last), what
#: their lines and places are, where an element of the result is, and which row and column
#: that is for a kernel which finishes it (channels first, last).
_PRODUCTS = {
    FORWARD: (
        (_PATCHES, (False, True)), (_FILTER, (True, False)),
        ("entries * pixels", "outputs", "channels * taps"),
        "shapes.y(entry, j, pixel)", _PIXEL_OF.format(size="pixels"),
        (("(entry * groups + shapes.group) * outputs + j", "pixel"),
         ("i", "shapes.group * outputs + j")),
    ),
    WEIGHTS: (
        (_SHIFTED, (True, False)), (_OUTPUTS, (True, False)),
        ("channels * taps", "outputs", "entries * pixels"),
        "shapes.w(j, channel, tap)",
        "i64 channel, tap;\n        shapes.weight(i, shapes.channels, channel, tap);\n", None,
    ),
    BACK: (
        (_SPREAD, (False, True)), (_FILTERS_BACK, (False, True)),
        ("entries * extent", "channels", "outputs * taps"),
        "shapes.x(entry, j, pixel)", _PIXEL_OF.format(size="extent"),
        (("(entry * groups + shapes.group) * channels + j", "pixel"),
         ("i", "shapes.group * channels + j")),
    ),
}  # fmt: skip

_KERNEL = """\
{finisher}extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {t}> a,
    Buffer<const {t}> b{stored}, i64 entries, i64 groups, i64 channels, i64 outputs,
    i64 extent0, i64 taps0, i64 out0, i64 stride0, i64 step0, i64 before0,
    i64 extent1, i64 taps1, i64 out1, i64 stride1, i64 step1, i64 before1,
    i64 extent2, i64 taps2, i64 out2, i64 stride2, i64 step2, i64 before2, i64 chunk,
    i64 precision{parameters}
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED({t}, left, {rooms[0]});
    PYRELAY_SHARED({t}, right, {rooms[1]});
    Shapes shapes = {{
        entries, groups, channels, outputs, {{extent0, extent1, extent2}}, {{taps0, taps1, taps2}},
        {{out0, out1, out2}}, {{stride0, stride1, stride2}}, {{step0, step1, step2}},
        {{before0, before1, before2}}, 0
    }};
    const i64 extent = shapes.size(shapes.extents), taps = shapes.size(shapes.taps);
    const i64 pixels = shapes.size(shapes.out);
    const i64 m = {m}, n = {n}, k = {k};
    const Left down = {{shapes, a, m, k}};
    const Right across = {{shapes, b, n, k}};
    i64 offset = 0;
    auto out = [&](i64 i, i64 j, {sum} value) {{
        {place}{put}    }};
    const i64 tiles_down = (m + {down} - 1) / {down}, tiles_across = (n + 63) / 64;
    const i64 tiles = tiles_down * tiles_across * groups;
    const i64 parts = chunk > 0 ? (k + chunk - 1) / chunk : 1;
    for (i64 item = blockIdx.x; item < tiles * parts; item += gridDim.x) {{
        const i64 part = item / tiles, tile = item - part * tiles;
        const i64 j0 = tile % tiles_across * 64, rest = tile / tiles_across;
        const i64 i0 = rest % tiles_down * {down};
        shapes.group = rest / tiles_down;
        const i64 begin = part * chunk, end = chunk > 0 && begin + chunk < k ? begin + chunk : k;
        offset = part * m * n * groups;
{multiplied}    }}
}}
"""
_PUT = "        c[offset + {result}] = {made}(value);\n"
_FINISHED = """\
        const i64 row = {row}, column = {column};
        finished(record, launch, row, value, column, column + 1, 0{given});
"""
_CALL = "multiply<{t}, {mode}>(left, right, down, across, out, i0, j0, begin, end);"
_HALF_CALL = "multiply<{of}>(left, right, down, across, out, i0, j0, begin, end);"

# Where elements are, for channels first and last.
_X = (
    "((entry * groups + group) * channels + channel) * size(extents) + place",
    "((entry * size(extents) + place) * groups + group) * channels + channel",
)
_W = (
    "((group * outputs + output) * channels + channel) * size(taps) + tap",
    "((tap * channels + channel) * groups + group) * outputs + output",
)
_Y = (
    "((entry * groups + group) * outputs + output) * size(out) + pixel",
    "((entry * size(out) + pixel) * groups + group) * outputs + output",
)
_WEIGHT = ("parted(index, size(taps), channel, tap)", "parted(index, channels, tap, channel)")

_RESULT, _SIZES, _FINISHES = 2, 3, 25  # places among the operands

_totals: set[str] = set()

MODES = ("highest", "tf32", "bf16")


@dataclass(frozen=True, slots=True)
class Variety:
    """One of the three products, with results of a type, of 16-bit floats if their type is given.
    The text takes, behind the sizes of a plan, how many places of a line a part of the sum has, 0
    for all of them, and 0, 1 or 2 for how float32 is rounded. Parts of a sum are results of their
    own, one behind the other."""

    dtype: DType
    what: str
    channels_last: bool
    of: DType | None = None


def text_of(variety: Variety, finisher: Kernel | None = None, *, stores: bool = True) -> str:
    """The text of a product, with the kernel that finishes it, if any; it `stores` the product."""
    dtype, what, of, last = variety.dtype, variety.what, variety.of, int(variety.channels_last)
    t = "u16" if of else dtype.name
    left, right, (m, n, k), result, place, whose = _PRODUCTS[what]
    sides = ""
    for name, ((members, line, where, packs), along) in (("Left", left), ("Right", right)):
        sides += _SIDE.format(
            name=name, t=t, along=str(along[last]).lower(), members=members, line=line,
            where=where, packs=packs[last],
        )
    shapes = _SHAPES.format(x=_X[last], w=_W[last], y=_Y[last], weight=_WEIGHT[last])
    rooms: tuple[object, ...] = (_ROOM, _ROOM)
    if of is not None:
        rooms = f"(Slice<Left, {DOWN}>::room)", f"(Slice<Right, {ACROSS}>::room)"
        calls = [_HALF_CALL.format(of=of.name)]
    elif dtype == f32:
        calls = [f"if (precision == {mode}) {_CALL.format(t=t, mode=mode)}" for mode in range(3)]
    else:
        calls = [_CALL.format(t=t, mode=0)]
    given = launch_texts.given(finisher)
    put = _PUT.format(result=result, made=dtype.name) if stores else ""
    if finisher is not None:
        assert whose is not None
        row, column = whose[last]
        put += _FINISHED.format(row=row, column=column, given=given.names)
    return (HALF_TILES if of else _TILES) + shapes + sides + _KERNEL.format(
        t=t, sum="f32" if of else t, m=m, n=n, k=k, place=place, put=put,
        multiplied="".join(f"        {call}\n" for call in calls), rooms=rooms,
        down=DOWN if of else TILE, stored=f", Buffer<{dtype.name}> c" if stores else "",
        finisher="" if finisher is None else emit_item(finisher, "finished", in_register=True),
        parameters=given.parameters,
    )


def _launched(variety: Variety, operands: Sequence[Any], kernel_of: KernelOf) -> Launched:
    """The text of a launch: in the place of a kernel that finishes the product stands how long a
    part of the sum is, if it is cut."""
    address, chunk = operands[_FINISHES], operands[_FINISHES]
    finisher = None
    if isinstance(address, KernelAddress):
        finisher, chunk = kernel_of(address), ZERO
    stores = operands[_RESULT] != ZERO
    arrays = [*operands[:_RESULT], *([operands[_RESULT]] if stores else [])]
    before = [*arrays, *operands[_SIZES:_FINISHES], chunk]
    kinds = (ADDRESS,) * len(arrays) + ("i64",) * (len(before) - len(arrays) + 1)
    text = Text(
        text_of(variety, finisher, stores=stores), kinds + launch_texts.given(finisher).kinds
    )
    return Launched((text,), [*before, ZERO, *operands[_FINISHES + 2 :]], len(before))


def _source(variety: Variety) -> str:
    """The text that stands in plans."""
    return launch_texts.known(text_of(variety), functools.partial(_launched, variety))


def kinds_of(text: str) -> tuple[str, ...] | None:
    """What the parameters are of a kernel that adds up parts of sums; None for another text."""
    return cuda_totals.KINDS if text in _totals else None


def _kernel(variety: Variety, tile: int) -> ConvolutionKernel:
    parts = None
    if variety.what == WEIGHTS:  # only their sums are long enough to be cut
        wide = variety.dtype if variety.of is None else f32
        totals = cuda_totals.totals(variety.dtype, wide, "0", "0")
        _totals.add(totals)
        parts = SumParts(_source(replace(variety, dtype=wide)), wide, totals)
    return ConvolutionKernel(
        _source(variety), tile, tile, TILE, _PICOSECONDS, back_pixels=tile, parts=parts,
        finishes=0 if parts is not None else MOST_OPERANDS, in_registers=True,
    )


def convolution(dtype: DType, what: str, channels_last: bool) -> ConvolutionKernel:
    """The kernel of one of the products."""
    return _kernel(Variety(dtype, what, channels_last), TILE)


def half_convolution(
    of: DType, dtype: DType, what: str, channels_last: bool
) -> ConvolutionKernel:
    """The kernel of one of the products of 16-bit floats `of` a type."""
    return _kernel(Variety(dtype, what, channels_last, of), DOWN)
