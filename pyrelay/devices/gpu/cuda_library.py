"""Kernels of ours for products of matrices, in CUDA C++, and what the planner asks of a GPU.

In: a dtype, the number of batch axes of a product. Out: texts to stand behind `cuda_prelude`;
parameters are those of `lower.planning.target`.

Products of matrices are computed in square tiles: the threads of a block keep a tile of each
operand in shared memory and add up one element each (Kirk and Hwu, *Programming Massively Parallel
Processors*, chapter 4).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyrelay.devices.gpu import (
    cuda_attention,
    cuda_attention_gradient,
    cuda_convolution,
    cuda_half_attention,
    cuda_half_attention_gradient,
    cuda_scans,
    cuda_scatters,
    cuda_single_attention,
    cuda_single_attention_gradient,
    cuda_sorted_adds,
    cuda_sorts,
)
from pyrelay.devices.gpu.driver import ADDRESS, Text
from pyrelay.ir.types import DType, f32
from pyrelay.lower.planning.target import (
    AttentionGradientKernel,
    AttentionKernel,
    MatmulKernel,
    Target,
)
from pyrelay.lower.text.emit_cuda import emit

_LIBRARIES = cuda_convolution, cuda_scans, cuda_scatters, cuda_sorted_adds, cuda_sorts

_made: dict[str, tuple[tuple[str, ...], tuple[DType, DType]]] = {}

_PICOSECONDS = 100  # for a multiplication, as `persistent_choice` has it; nobody else asks

TILE = 16
"""Rows and columns of a tile; a block has as many threads as a tile has elements."""

_MATMUL = """\
#define BLOCK_THREADS {threads}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const {of}> a,
    Buffer<const {of}> b, Buffer<{made}> c, i64 m, i64 n, i64 k, i64 a_turned, i64 b_turned,
    i64 adds, i64 a_line, i64 b_line, i64 c_line, i64 axes,
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
            c[place] = {made}(adds ? {t}(c[place] + sum) : sum);
        }}
    }}
}}
"""

_BATCH_AXIS = """\
        a_start += rest % extent{k} * a_stride{k};
        b_start += rest % extent{k} * b_stride{k};
        rest /= extent{k};
"""

def matmul(dtype: DType, axes: int, of: DType | None = None) -> str:
    """The product of stacks of matrices with this many batch axes, of 16-bit floats that are added
    up in float32 if their type is given."""
    t, of = "f32" if of else dtype.name, of or dtype
    parameters = "".join(f", i64 extent{k}, i64 a_stride{k}, i64 b_stride{k}" for k in range(axes))
    product = f"a_tile[row * {TILE} + step] * b_tile[step * {TILE} + column]"
    add = f"{t}(sum | ({product}))" if dtype.kind == "b" else f"{t}(sum + {product})"
    text = _MATMUL.format(
        t=t, of=of.name, made=dtype.name, tile=TILE, most=TILE - 1, threads=TILE * TILE, add=add,
        batch_parameters=parameters,
        batch="".join(_BATCH_AXIS.format(k=k) for k in reversed(range(axes))),
    )
    _made[text] = ((ADDRESS,) * 3 + ("i64",) * (12 + 3 * axes), (of, dtype))
    return text


def kinds_of(text: str) -> tuple[str, ...]:
    """What the parameters are of a text of the library."""
    for each in _LIBRARIES:
        kinds = each.kinds_of(text)
        if kinds is not None:
            return kinds
    return _made[text][0]


def is_known(text: str) -> bool:
    """Whether a text is one of the library."""
    return text in _made or any(each.kinds_of(text) is not None for each in _LIBRARIES)


def can_fail(text: str) -> bool:
    """Whether launches of a text of the library may fail."""
    return cuda_scatters.can_fail(text)


def product_of(text: str) -> DType | None:
    """The element type of products of matrices that a text computes, if it is that of the operands
    too; None for another text."""
    found = multiplied(text)
    if found is None or found[0] != found[1] or found[1].name in ("f16", "bf16"):
        return None
    return found[1]


def multiplied(text: str) -> tuple[DType, DType] | None:
    """The element types of the operands and the result of products of matrices that a text
    computes; None for another text."""
    return _made[text][1] if text in _made else None


def is_phase(text: str) -> bool:
    """Whether a kernel of a loop may have a text of the library among its phases."""
    if cuda_scatters.is_phase(text) or product_of(text) is not None:
        return True
    return any(each.kinds_of(text) is not None for each in (cuda_scans, cuda_sorts))


def is_told(text: str, operands: Sequence[Any]) -> bool:
    """Whether a launch gives a text its parameters one by one; attention is given others."""
    return len(_parameters(text)[4:]) == len(operands)


def typed(text: str, operands: Sequence[Any]) -> list[tuple[str | None, Any]]:
    """The operands of a text that `is_phase`, with the types of elements of those that are buffers,
    None for numbers."""
    found: list[tuple[str | None, Any]] = []
    for declared, operand in zip(_parameters(text)[4:], operands, strict=True):
        kind = re.search(r"Buffer<(.*)>", declared)
        found.append((None if kind is None else kind[1], operand))
    return found


def for_blocks(text: str, threads: int) -> str:
    """The text of a scan, scatter or sort for blocks of so many threads."""
    if cuda_scatters.kinds_of(text) is not None:
        return cuda_scatters.for_blocks(text, threads)
    assert threads == cuda_scans.THREADS == cuda_sorts.THREADS
    return text


def _parameters(text: str) -> list[str]:
    """How a text of the library declares its parameters."""
    head = re.search(r"void kernel\((.*?)\)", text, re.DOTALL)
    assert head is not None
    return head[1].split(",")


_ELEMENT = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, {parameters}
) {{
    if (pyrelay_over(record, launch) || blockIdx.x != 0 || threadIdx.x != 0) return;
    {body}
}}
"""


def element_read(kind: str, placed: bool = False) -> Text:
    """A kernel that copies one element (kind from `opcodes.MEMORY`) to a word: its address
    and index, or where that is `placed`, the word's address."""
    index, at = _index(placed)
    parameters = f"Buffer<const {kind}> array, {index}, i64 *word"
    source = _ELEMENT.format(parameters=parameters, body=f"*word = (i64)array[{at}];")
    return Text(source, (ADDRESS, ADDRESS if placed else "i64", ADDRESS))


def _index(placed: bool) -> tuple[str, str]:
    return ("const i64 *index", "*index") if placed else ("i64 index", "index")


#: Ends a graph: numbers of launches come again when it is replayed, and are no longer the same.
SEAL = Text("""\
extern "C" __global__ void kernel(pyrelay_record *record, i64 launch, i64 first, i64 last) {
    if (blockIdx.x == 0 && threadIdx.x == 0 && record->status == 1) record->status = 3;
}
""", ())


def element_write(kind: str, placed: bool = False) -> Text:
    """A kernel that copies a word to one element: its address and index, or where that is `placed`,
    the word's address."""
    index, at = _index(placed)
    parameters = f"Buffer<{kind}> array, {index}, const i64 *word"
    source = _ELEMENT.format(parameters=parameters, body=f"array[{at}] = ({kind})*word;")
    return Text(source, (ADDRESS, ADDRESS if placed else "i64", ADDRESS))


def element_put() -> Text:
    """A kernel that writes a word to one element: its address and index, the word."""
    parameters = "Buffer<i64> array, i64 index, i64 word"
    source = _ELEMENT.format(parameters=parameters, body="array[index] = word;")
    return Text(source, (ADDRESS, "i64", "i64"))


#: Closes where a condition of the device is not what was guessed: its address, the guess, and the
#: number of the guess.
GATE = Text("""\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, const i64 *word, i64 expected,
    i64 guess
) {
    if (pyrelay_over(record, launch) || blockIdx.x != 0 || threadIdx.x != 0) return;
    if ((*word != 0) == (expected != 0)) return;
    record->site = guess;
    record->launch = launch;
    __threadfence();
    record->status = 4;
}
""", (ADDRESS, "i64", "i64"))

_BYTES = """\
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, {parameters}, i64 nbytes
) {{
    if (pyrelay_over(record, launch)) return;
    {taken}
    for (i64 item = first + (i64)blockIdx.x * blockDim.x + threadIdx.x; item < last;
         item += (i64)gridDim.x * blockDim.x) {{
        const i64 start = item * 8, stop = start + 8 < nbytes ? start + 8 : nbytes;
        if (stop == start + 8 && pyrelay_lined_up<8>(start, {arrays})) {{
            {whole}
        }} else {{
            for (i64 k = start; k < stop; k++) {single}
        }}
    }}
}}
"""

_COPIED: dict[str, str] = {
    "arrays": "target, source",
    "whole": "pyrelay_put_together<8>(target, start, pyrelay_together<8>(source, start));",
    "single": "target[k] = source[k];",
}

#: Copies bytes, eight an item: addresses of where they go and where they are, how many.
COPY = Text(_BYTES.format(
    parameters="Buffer<u8> target, Buffer<const u8> source", taken="", **_COPIED
), (ADDRESS, ADDRESS, "i64"))

#: Copies bytes from where a word says: where they go, the word's address, how many.
FETCH = Text(_BYTES.format(
    parameters="Buffer<u8> target, const i64 *place",
    taken="PYRELAY_TAKEN(*place, nbytes);\n    Buffer<const u8> source = "
    "PYRELAY_BUFFER(const u8, *place);", **_COPIED,
), (ADDRESS, ADDRESS, "i64"))

#: Copies bytes to where a word says: the word's address, where they are, how many.
DELIVER = Text(_BYTES.format(
    parameters="const i64 *place, Buffer<const u8> source",
    taken="PYRELAY_TAKEN(*place, nbytes);\n    Buffer<u8> target = "
    "PYRELAY_BUFFER(u8, *place);", **_COPIED,
), (ADDRESS, ADDRESS, "i64"))

#: Zeroes bytes, eight an item: their address, how many.
ZERO = Text(_BYTES.format(
    parameters="Buffer<u8> target", taken="", arrays="target",
    whole="pyrelay_put_together<8>(target, start, pyrelay_pack<u8, 8>());",
    single="target[k] = 0;",
), (ADDRESS, "i64"))


def _matmul(dtype: DType, axes: int) -> MatmulKernel:
    return MatmulKernel(matmul(dtype, axes), TILE, TILE, _PICOSECONDS)


def _half_matmul(of: DType, dtype: DType, axes: int) -> MatmulKernel:
    return MatmulKernel(matmul(dtype, axes, of), TILE, TILE, _PICOSECONDS)


def _attention(dtype: DType) -> AttentionKernel:
    return cuda_single_attention.attention() if dtype == f32 else cuda_attention.attention(dtype)


def _attention_gradient(dtype: DType) -> AttentionGradientKernel:
    if dtype == f32:
        return cuda_single_attention_gradient.attention_gradient()
    return cuda_attention_gradient.attention_gradient(dtype)


TARGET = Target(
    emit, _matmul, cuda_convolution.convolution, _attention, cuda_scans.scan,
    cuda_scatters.scatter, sort=cuda_sorts.sort,
    sorted_adds=cuda_sorted_adds.sorted_adds, half_attention=cuda_half_attention.attention,
    attention_gradient=_attention_gradient, keeps_scores=False,
    half_attention_gradient=cuda_half_attention_gradient.half_attention_gradient,
    half_matmul=_half_matmul, half_convolution=cuda_convolution.half_convolution,
    splits=True,
)
"""What the planner asks of a GPU."""
