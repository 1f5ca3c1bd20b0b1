"""Attention in CUDA C++: ``softmax(score(q k')) v`` as one kernel, without its scores.

In: a dtype, the number of batch axes, the kernel that makes scores of products, if any. Out: the
text, to stand behind `cuda_prelude`; parameters are those of
`lower.planning.target.AttentionKernel`, with those of that kernel at the end.

A block does `ROWS` rows of the scores. Tiles of keys come through shared memory one after another:
each thread has a few scores and a few elements of the result in registers, the maximum and the sum
of a row are combined by shuffles, and a larger maximum scales what was summed (Milakov and
Gimelshein, *Online normalizer calculation for softmax*, 2018; Dao et al., *FlashAttention*, 2022).
Values wider than `width_of` are done in several rounds, which make the scores again.

Floats of 32 and of 16 bits have kernels of their own (`cuda_single_attention`,
`cuda_half_attention`), which take from here what all texts of attention have of a launch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.devices.gpu import cuda_causal, launch_texts
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.devices.gpu.launch_texts import MOST_OPERANDS, PRECISION, KernelOf, Launched
from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.passes.reciprocals import with_reciprocals
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import KernelAddress
from pyrelay.lower.planning.target import AttentionKernel
from pyrelay.lower.text.emit_cuda import emit_item
from pyrelay.records import dataclass

ROWS = KEYS = 32
"""Of a tile of scores; a thread has 2 rows and each 8th column of them."""

PICOSECONDS = 1000  # nobody shares this work
_STATISTICS, _SIZES, _SHAPING, _AXES = 4, 8, 19, 21  # places among the operands

_KERNEL = """\
{shaping}#define BLOCK_THREADS 128
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {t}> q,
    Buffer<const {t}> k, Buffer<const {t}> v, Buffer<{t}> y{rows_of}, i64 targets, i64 sources,
    i64 depth, i64 width, i64 q_turned, i64 k_turned, i64 v_turned, i64 q_line, i64 k_line,
    i64 v_line, i64 guarded, i64 no_operands, i64 axes{parameters}
) {{
    if (pyrelay_over(record, launch)) return;
    PYRELAY_SHARED({t}, left, {square});
    PYRELAY_SHARED({t}, right, {square});
    PYRELAY_SHARED({t}, scores, {square});
    PYRELAY_SHARED({t}, values, {values});
    const int r0 = threadIdx.x / 8 * 2, c0 = threadIdx.x % 8;
    const i64 blocks = (targets + {rows} - 1) / {rows};
    for (i64 item = first + blockIdx.x; item < last; item += gridDim.x) {{
        const i64 entry = item / blocks, i0 = item % blocks * {rows};
        i64 rest = entry, q_start = 0, k_start = 0, v_start = 0;
{batch}        for (i64 e0 = 0; e0 < width; e0 += {width}) {{
            {t} sums[{quads}][4], largest[2], totals[2];
#pragma unroll
            for (int r = 0; r < 2; r++) {{
                largest[r] = -{t}(PYRELAY_INFINITY), totals[r] = 0;
#pragma unroll
                for (int e = 0; e < {columns}; e++) {at} = 0;
            }}
            for (i64 j0 = 0; j0 < sources; j0 += {keys}) {{
                {t} score[2][4] = {{}};
                for (i64 d0 = 0; d0 < depth; d0 += 32) {{
                    for (int k0 = threadIdx.x; k0 < 1024; k0 += BLOCK_THREADS) {{
                        const int slow = k0 / 32, fast = k0 % 32;
                        int line = q_turned ? fast : slow, d = q_turned ? slow : fast;
                        const bool in_q = i0 + line < targets && d0 + d < depth;
                        const i64 i = i0 + line, j = j0 + (k_turned ? slow : fast);
                        left[line * 33 + d] = in_q
                            ? q[q_start + (q_turned ? (d0 + d) * q_line + i : i * q_line + d0 + d)]
                            : {t}(0);
                        line = k_turned ? slow : fast, d = k_turned ? fast : slow;
                        const bool in_k = j < sources && d0 + d < depth;
                        right[line * 33 + d] = in_k
                            ? k[k_start + (k_turned ? j * k_line + d0 + d : (d0 + d) * k_line + j)]
                            : {t}(0);
                    }}
                    __syncthreads();
#pragma unroll 8
                    for (int d = 0; d < 32; d++) {{
                        const {t} a = left[r0 * 33 + d], b = left[r0 * 33 + 33 + d];
#pragma unroll
                        for (int c = 0; c < 4; c++) {{
                            const {t} key = right[(c0 + 8 * c) * 33 + d];
                            score[0][c] = fma(a, key, score[0][c]);
                            score[1][c] = fma(b, key, score[1][c]);
                        }}
                    }}
                    __syncthreads();
                }}
#pragma unroll
                for (int r = 0; r < 2; r++) {{
                    const i64 row = i0 + r0 + r;
#pragma unroll
                    for (int c = 0; c < 4; c++) {{
                        const i64 j = j0 + c0 + 8 * c;
                        const int place = (r0 + r) * 33 + c0 + 8 * c;
                        const bool inside = row < targets && j < sources;
                        scores[place] = inside ? score[r][c] : -{t}(PYRELAY_INFINITY);
{shaped}                        score[r][c] = scores[place];
                    }}
                    {t} top = largest[r];
#pragma unroll
                    for (int c = 0; c < 4; c++) top = pyrelay_maximum(top, score[r][c]);
                    for (int step = 1; step < 8; step *= 2) {{
                        top = pyrelay_maximum(top, pyrelay_shuffled(top, step));
                    }}
                    const {t} shift = top == -{t}(PYRELAY_INFINITY) ? {t}(0) : top;
                    const {t} scale = exp({t}(largest[r] - shift));
                    {t} total = 0;
#pragma unroll
                    for (int c = 0; c < 4; c++) {{
                        const {t} power = exp({t}(score[r][c] - shift));
                        scores[(r0 + r) * 33 + c0 + 8 * c] = power;
                        total += power;
                    }}
                    for (int step = 1; step < 8; step *= 2) total += pyrelay_shuffled(total, step);
                    largest[r] = top, totals[r] = fma(totals[r], scale, total);
#pragma unroll
                    for (int e = 0; e < {columns}; e++) {at} *= scale;
                }}
                for (int k0 = threadIdx.x; k0 < {keys} * {width}; k0 += BLOCK_THREADS) {{
                    const int line = v_turned ? k0 % 32 : k0 / {width};
                    const int e = v_turned ? k0 / 32 : k0 % {width};
                    const i64 j = j0 + line;
                    values[line * {line} + e] = j < sources && e0 + e < width
                        ? v[v_start + (v_turned ? (e0 + e) * v_line + j : j * v_line + e0 + e)]
                        : {t}(0);
                }}
                __syncthreads();
                for (int j = 0; j < {keys}; j++) {{
                    const {t} a = scores[r0 * 33 + j], b = scores[r0 * 33 + 33 + j];
#pragma unroll
                    for (int e = 0; e < {columns}; e++) {{
                        const {t} value = values[j * {line} + c0 + 8 * e];
                        {at0} = fma(a, value, {at0});
                        {at1} = fma(b, value, {at1});
                    }}
                }}
                __syncthreads();
            }}
#pragma unroll
            for (int r = 0; r < 2; r++) {{
                const i64 row = i0 + r0 + r;
{kept}                const {t} total = guarded && totals[r] == 0 ? {t}(1) : totals[r];
#pragma unroll
                for (int e = 0; e < {columns}; e++) {{
                    const i64 column = e0 + c0 + 8 * e;
                    if (row < targets && column < width) {{
                        y[(entry * targets + row) * width + column] = {at} / total;
                    }}
                }}
            }}
        }}
    }}
}}
"""

_BATCH_AXIS = """\
        q_start += rest % extent{k} * q_stride{k};
        k_start += rest % extent{k} * k_stride{k};
        v_start += rest % extent{k} * v_stride{k};
        rest /= extent{k};
"""

_SHAPED = """\
                        if (inside) {{
                            shaped(record, launch, entry * targets + row,
                                   PYRELAY_BUFFER({t}, &scores[place] - j), j, j + 1, 0{given});
                        }}
"""

_KEPT = """\
                if (e0 == 0 && c0 == 0 && row < targets) {{
                    tops[entry * targets + row] = largest[r];
                    sums_of_rows[entry * targets + row] = totals[r];
                }}
"""

Writer = Callable[..., str]
"""Gives the text of a form of a kernel: with so many batch axes, a kernel that makes scores (or
None), and `statistics` if it leaves maxima and sums of rows."""


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms of a kernel: the number of one by how products are rounded, for heads of any size;
    then as many for heads whose depth and width are at most `narrow`, if that is not 0."""

    by_precision: tuple[int, ...]
    narrow: int = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return (1 + (self.narrow > 0)) * len({*self.by_precision})

    def chosen(self, depth: str, width: str) -> str:
        """The number of the form of a launch, as text of a plan."""
        made = "0"
        if len({*self.by_precision}) > 1:
            made = f"{self.by_precision}[{PRECISION}]"
        if self.narrow:
            half = self.count // 2
            made += f" + {half} * ({depth} <= {self.narrow} and {width} <= {self.narrow})"
        return made


_REACHED = """\
        i64 stop = sources;
        if ({causal}) {{
            const i64 below = i0 + {rows} < targets ? i0 + {rows} : targets;
            stop = reach(shape, below - 1, sources);
            if (anywhere(has_odd({values}, stop, sources), {room})) stop = sources;
        }}
        if (threadIdx.x == 0) bounds[1] = stop;
        __syncthreads();
"""

ONE = Forms((0, 0, 0))


@dataclass(frozen=True, slots=True)
class OfLaunch:
    """What the text of a launch has of its own: the function that makes scores, further parameters
    and what of them that function is given, the starts of an entry's matrices, and the condition by
    which scores are masked as `cuda_causal` says; None if they are not."""

    function: str
    parameters: str
    given: str
    batch: str
    causal: str | None


def attention(dtype: DType) -> AttentionKernel:
    """The kernel for floats of this type. Its text is one without batch axes and a kernel that
    makes scores: `launch_texts.for_launch` gives what a launch needs."""
    return AttentionKernel(
        written_by(functools.partial(_text, dtype), ONE), ROWS, PICOSECONDS, MOST_OPERANDS
    )


def written_by(writer: Writer, forms: Forms) -> str:
    """The text that stands in plans for the kernels of attention that a writer gives."""
    text = writer(0, 0, None, statistics=False)
    return launch_texts.known(text, functools.partial(_launched, writer, forms))


def width_of(dtype: DType) -> int:
    """How wide a tile of values is, so that all tiles fit into shared memory."""
    return 512 // dtype.size


def _launched(
    writer: Writer, forms: Forms, operands: Sequence[Any], kernel_of: KernelOf
) -> Launched:
    axes, statistics = operands[_AXES].word, operands[_STATISTICS] != ZERO
    address = operands[_SHAPING]
    shaping = kernel_of(address) if isinstance(address, KernelAddress) else None
    arrays = [*operands[:_STATISTICS]]
    if statistics:
        arrays += operands[_STATISTICS : _STATISTICS + 2]
    sizes = operands[_SIZES:_SHAPING]
    kinds = (ADDRESS,) * len(arrays) + ("i64",) * (len(sizes) + 2 + 4 * axes)
    kinds += launch_texts.given(shaping).kinds
    texts = tuple(
        Text(writer(form, axes, shaping, statistics=statistics), kinds)
        for form in range(forms.count)
    )
    depth = len(arrays) + 2
    return Launched(
        texts, [*arrays, *sizes, ZERO, *operands[_AXES:]],
        form=lambda words: forms.chosen(*words[depth : depth + 2]),
    )


def _text(dtype: DType, _form: int, axes: int, shaping: Kernel | None, *, statistics: bool) -> str:
    t, width, own = dtype.name, width_of(dtype), of_launch(axes, shaping)
    shaped = "" if shaping is None else _SHAPED.format(t=t, given=own.given)
    columns, line = width // 8, width + 4
    return _KERNEL.format(
        t=t, rows=ROWS, keys=KEYS, square=33 * 32, width=width, columns=columns,
        quads=columns // 2, line=line, values=KEYS * line, shaping=own.function, shaped=shaped,
        at=_sum("r"), at0=_sum("0"), at1=_sum("1"), parameters=own.parameters,
        rows_of=f", Buffer<{t}> tops, Buffer<{t}> sums_of_rows" if statistics else "",
        kept=_KEPT.format() if statistics else "",
        batch=own.batch,
    ).replace("COLUMNS", str(columns))


def of_launch(axes: int, shaping: Kernel | None) -> OfLaunch:
    """What a text has of its own for so many batch axes and a kernel that makes scores."""
    strides = ("extent", "q_stride", "k_stride", "v_stride")
    parameters = "".join(f", i64 {name}{k}" for k in range(axes) for name in strides)
    function = "" if shaping is None else emit_item(with_reciprocals(shaping), "shaped")
    own = launch_texts.given(shaping)
    batch = "".join(_BATCH_AXIS.format(k=k) for k in reversed(range(axes)))
    return OfLaunch(function, parameters + own.parameters, own.names, batch, _causal(shaping))


def _causal(shaping: Kernel | None) -> str | None:
    """Rows are those of an entry, and numbers with what is added to them do not wrap."""
    mask = cuda_causal.causal(shaping)
    if mask is None or shaping is None:
        return None
    name_of = functools.partial(launch_texts.name_of, shaping)
    tests = [] if mask.rows is None else [f"{name_of(mask.rows)} == targets"]
    tests += [f"{name_of(p)} >> 32 == {name_of(p)} >> 63" for p in mask.added]
    return " && ".join(tests) or "true"


def reached(causal: str | None, rows: int, values: str, room: str) -> str:
    """The text by which a block of so many rows finds which keys a causal mask leaves to it, if
    there is one: values of the others are looked at, by a `room` in shared memory."""
    if causal is None:
        return ""
    return _REACHED.format(causal=causal, rows=rows, values=values, room=room)


def _sum(row: str) -> str:
    """Where a thread has element e of one of its two rows."""
    return f"sums[({row} * COLUMNS + e) / 4][e % 4]"
