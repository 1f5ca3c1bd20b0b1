"""Kernels of ours for products of matrices and of images, in CUDA C++.

In: a dtype, the number of batch axes of a product, which product of a convolution. Out: texts to
stand behind `cuda_prelude`; parameters are those of `lower.target`.

Products of matrices are computed in square tiles: the threads of a block keep a tile of each
operand in shared memory and add up one element each (Kirk and Hwu, *Programming Massively Parallel
Processors*, chapter 4). Convolutions compute one element per thread.
"""

from __future__ import annotations

import textwrap

from pyrelay.devices import cuda_attention, cuda_scans
from pyrelay.devices.driver import ADDRESS, Text
from pyrelay.ir.types import DType
from pyrelay.lower.emit_cuda import emit
from pyrelay.lower.target import (
    BACK,
    FORWARD,
    WEIGHTS,
    ConvolutionKernel,
    MatmulKernel,
    Target,
)

_made: dict[str, tuple[tuple[str, ...], DType | None]] = {}

_PICOSECONDS = 1000  # for a multiplication: nobody shares this work, so it matters to nobody

TILE = 16
"""Rows and columns of a tile; a block has as many threads as a tile has elements."""

_MATMUL = """\
#define BLOCK_THREADS {threads}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {t}> a,
    Buffer<const {t}> b, Buffer<{t}> c, i64 m, i64 n, i64 k, i64 a_turned, i64 b_turned, i64 adds,
    i64 a_line, i64 b_line, i64 c_line, i64 axes,
    i64 no_finisher, i64 no_operands{batch_parameters}
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED({t}, a_tile, {threads});
    PYRELAY_SHARED({t}, b_tile, {threads});
    const i64 row = threadIdx.x / {tile}, column = threadIdx.x % {tile};
    const i64 tiles_down = (m + {most}) / {tile}, tiles_across = (n + {most}) / {tile};
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 j = item % tiles_across * {tile} + column;
        i64 rest = item / tiles_across;
        const i64 i = rest % tiles_down * {tile} + row;
        rest /= tiles_down;
        const i64 c_start = rest * m * c_line;
        i64 a_start = 0, b_start = 0;
{batch}        {t} sum = {t}(0);
        for (i64 start = 0; start < k; start += {tile}) {{
            const i64 a_inner = start + column, b_inner = start + row;
            {t} value = {t}(0);
            if (i < m && a_inner < k) {{
                value = a[a_start + (a_turned ? a_inner * a_line + i : i * a_line + a_inner)];
            }}
            a_tile[threadIdx.x] = value;
            value = {t}(0);
            if (b_inner < k && j < n) {{
                value = b[b_start + (b_turned ? j * b_line + b_inner : b_inner * b_line + j)];
            }}
            b_tile[threadIdx.x] = value;
            __syncthreads();
            for (int step = 0; step < {tile}; step++) {{
                sum = {add};
            }}
            __syncthreads();
        }}
        if (i < m && j < n) {{
            const i64 place = c_start + i * c_line + j;
            c[place] = adds ? {t}(c[place] + sum) : sum;
        }}
    }}
}}
"""

_THIN = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {t}> a,
    Buffer<const {t}> b, Buffer<{t}> c, i64 m, i64 n, i64 k, i64 a_turned, i64 b_turned, i64 adds,
    i64 a_line, i64 b_line, i64 c_line, i64 axes,
    i64 no_finisher, i64 no_operands{batch_parameters}
) {{
    i64 stacks = 1;
{stacks}    for (i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x; item < m * n * stacks;
         item += (i64)gridDim.x * blockDim.x) {{
        const i64 j = item % n, i = item / n % m;
        i64 rest = item / n / m;
        const i64 c_start = rest * m * c_line;
        i64 a_start = 0, b_start = 0;
{batch}        {t} sum = {t}(0);
        for (i64 step = 0; step < k; step++) {{
            const {t} left = a[a_start + (a_turned ? step * a_line + i : i * a_line + step)];
            const {t} right = b[b_start + (b_turned ? j * b_line + step : step * b_line + j)];
            sum = {add};
        }}
        const i64 place = c_start + i * c_line + j;
        c[place] = adds ? {t}(c[place] + sum) : sum;
    }}
}}
"""

_BATCH_AXIS = """\
        a_start += rest % extent{k} * a_stride{k};
        b_start += rest % extent{k} * b_stride{k};
        rest /= extent{k};
"""

_CONVOLUTION = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<{left}> {first},
    Buffer<{right}> {second}, Buffer<{t}> {result},
    i64 entries, i64 groups, i64 channels, i64 outputs,
    i64 extent0, i64 taps0, i64 out0, i64 stride0, i64 step0, i64 before0,
    i64 extent1, i64 taps1, i64 out1, i64 stride1, i64 step1, i64 before1,
    i64 extent2, i64 taps2, i64 out2, i64 stride2, i64 step2, i64 before2
) {{
    if (pyrelay_over(record, launch)) return;
    const i64 extent = extent0 * extent1 * extent2, taps = taps0 * taps1 * taps2;
    const i64 pixels = out0 * out1 * out2;
    const i64 threads = (i64)gridDim.x * blockDim.x;
    i64 item = first + (i64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; item < last; item += threads) {{
        i64 rest = item;
{body}    }}
}}
"""

# What each product does with its item: `entry, group, channel, output`, a pixel, a tap.
_TAKE = "const i64 {name} = rest % {extent};\nrest /= {extent};\n"
_PIXEL = """\
const i64 p2 = pixel % out2, p1 = pixel / out2 % out1, p0 = pixel / out2 / out1;
"""
_TAP = """\
const i64 t2 = tap % taps2, t1 = tap / taps2 % taps1, t0 = tap / taps2 / taps1;
"""
_SOURCE = """\
const i64 s0 = p0 * stride0 + t0 * step0 - before0;
const i64 s1 = p1 * stride1 + t1 * step1 - before1;
const i64 s2 = p2 * stride2 + t2 * step2 - before2;
if (s0 < 0 || s0 >= extent0 || s1 < 0 || s1 >= extent1 || s2 < 0 || s2 >= extent2) continue;
const i64 source = (s0 * extent1 + s1) * extent2 + s2;
"""
_X = (
    "x[((entry * groups + group) * channels + channel) * extent + source]",
    "x[((entry * extent + source) * groups + group) * channels + channel]",
)
_W = (
    "w[((group * outputs + output) * channels + channel) * taps + tap]",
    "w[((tap * channels + channel) * groups + group) * outputs + output]",
)
_Y = (
    "y[((entry * groups + group) * outputs + output) * pixels + pixel]",
    "y[((entry * pixels + pixel) * groups + group) * outputs + output]",
)


def matmul(dtype: DType, axes: int) -> str:
    """The product of stacks of matrices with this many batch axes."""
    t = dtype.name
    parameters = "".join(f", i64 extent{k}, i64 a_stride{k}, i64 b_stride{k}" for k in range(axes))
    product = f"a_tile[row * {TILE} + step] * b_tile[step * {TILE} + column]"
    add = f"{t}(sum | ({product}))" if dtype.kind == "b" else f"{t}(sum + {product})"
    text = _MATMUL.format(
        t=t, tile=TILE, most=TILE - 1, threads=TILE * TILE, add=add, batch_parameters=parameters,
        batch="".join(_BATCH_AXIS.format(k=k) for k in reversed(range(axes))),
    )
    _made[text] = ((ADDRESS,) * 3 + ("i64",) * (12 + 3 * axes), dtype)
    return text


def thin_product(dtype: DType, axes: int) -> str:
    """The same with an element per thread: for one block, whose threads would be idle at tiles."""
    t = dtype.name
    parameters = "".join(f", i64 extent{k}, i64 a_stride{k}, i64 b_stride{k}" for k in range(axes))
    add = f"{t}(sum | (left * right))" if dtype.kind == "b" else f"{t}(sum + (left * right))"
    return _THIN.format(
        t=t, add=add, batch_parameters=parameters,
        stacks="".join(f"    stacks *= extent{k};\n" for k in range(axes)),
        batch="".join(_BATCH_AXIS.format(k=k) for k in reversed(range(axes))),
    )


def convolution(dtype: DType, what: str, channels_last: bool) -> str:
    """One of the three products of a convolution, an element per thread; `BACK` computes all
    pixels of a channel of one image in one thread."""
    t, last = dtype.name, int(channels_last)
    x, w, y = _X[last], _W[last], _Y[last]
    names: tuple[str, str, str]
    taken: tuple[str, ...]
    if what == FORWARD:
        names, taken = ("x", "w", "y"), ("output", "group", "pixel", "entry")
        inner = _loop("channel", "channels", _loop("tap", "taps", _TAP + _SOURCE + _sum(x, w)))
        body = f"{_PIXEL}{t} sum = {t}(0);\n{inner}{y} = sum;\n"
    elif what == WEIGHTS:
        names, taken = ("x", "y", "w"), ("output", "group", "channel", "tap")
        inner = _loop("entry", "entries", _loop("pixel", "pixels", _PIXEL + _SOURCE + _sum(x, y)))
        body = f"{_TAP}{t} sum = {t}(0);\n{inner}{w} = sum;\n"
    else:
        assert what == BACK
        names, taken = ("y", "w", "x"), ("channel", "group", "entry")
        added = _loop("output", "outputs", _sum(y, w))
        added = f"{t} sum = {t}(0);\n{added}{x} = {x} + sum;\n"
        zero = _loop("source", "extent", f"{x} = {t}(0);\n")
        over_taps = _loop("tap", "taps", _TAP + _SOURCE + added)
        body = zero + _loop("pixel", "pixels", _PIXEL + over_taps)
    extents = {
        "output": "outputs", "group": "groups", "pixel": "pixels", "entry": "entries",
        "channel": "channels", "tap": "taps",
    }
    head = "".join(_TAKE.format(name=name, extent=extents[name]) for name in taken)
    text = _CONVOLUTION.format(
        t=t, left=f"const {t}", right=f"const {t}", first=names[0], second=names[1],
        result=names[2], body=textwrap.indent(head + body, " " * 8),
    )
    _made[text] = ((ADDRESS,) * 3 + ("i64",) * 22, None)
    return text


def kinds_of(text: str) -> tuple[str, ...]:
    """What the parameters are of a text of the library."""
    return cuda_scans.kinds_of(text) or _made[text][0]


def product_of(text: str) -> DType | None:
    """The element type of products of matrices that a text computes; None for another text."""
    return _made[text][1] if text in _made else None


_ELEMENT = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, {parameters}
) {{
    if (pyrelay_over(record, launch) || blockIdx.x != 0 || threadIdx.x != 0) return;
    {body}
}}
"""


def element_read(kind: str) -> Text:
    """A kernel that copies one element (kind from `instructions.MEMORY`) to a word: its address
    and index, the word's address."""
    parameters = f"Buffer<const {kind}> array, i64 index, i64 *word"
    source = _ELEMENT.format(parameters=parameters, body="*word = (i64)array[index];")
    return Text(source, (ADDRESS, "i64", ADDRESS))


#: Ends a graph: numbers of launches come again when it is replayed, and are no longer the same.
SEAL = Text("""\
extern "C" __global__ void kernel(pyrelay_record *record, i64 launch, i64 first, i64 last) {
    if (blockIdx.x == 0 && threadIdx.x == 0 && record->status == 1) record->status = 3;
}
""", ())


def element_write(kind: str) -> Text:
    """A kernel that copies a word to one element: its address and index, the word's address."""
    parameters = f"Buffer<{kind}> array, i64 index, const i64 *word"
    source = _ELEMENT.format(parameters=parameters, body=f"array[index] = ({kind})*word;")
    return Text(source, (ADDRESS, "i64", ADDRESS))


def _loop(index: str, extent: str, body: str) -> str:
    inside = textwrap.indent(body, " " * 4)
    return f"for (i64 {index} = 0; {index} < {extent}; {index}++) {{\n{inside}}}\n"


def _sum(a: str, b: str) -> str:
    return f"sum = sum + {a} * {b};\n"


def _matmul(dtype: DType, axes: int) -> MatmulKernel:
    return MatmulKernel(matmul(dtype, axes), TILE, TILE, _PICOSECONDS)


def _convolution(dtype: DType, what: str, channels_last: bool) -> ConvolutionKernel:
    return ConvolutionKernel(convolution(dtype, what, channels_last), 1, 1, 1, _PICOSECONDS)


TARGET = Target(emit, _matmul, _convolution, cuda_attention.attention, cuda_scans.scan)
"""What the planner asks of a GPU."""
