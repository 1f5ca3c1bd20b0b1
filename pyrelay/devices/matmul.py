"""Matrix products: source texts of kernels that compute ``c[..., m, n] = a @ b``.

In: a dtype; out: one kernel's text (ABI of ``kernel_compiler``) for products of every layout and
size, so that a machine compiles it once.  ``a`` is ``[*batch, m, k]``, or ``[*batch, k, m]`` where
it is transposed; ``b`` is ``[*batch, k, n]``, or ``[*batch, n, k]``; all buffers C-contiguous,
``c`` distinct from both.  Parameters:

    block[1..6]      addresses of a, b, c; m, n, k
    block[7..9]      1 or 0: whether a is transposed, whether b is, whether the product is added to c
    block[10]        the number of batch axes
    block[11 ...]    for each batch axis: its extent, a's stride and b's stride along it, in
                     elements (0 where that operand is broadcast)

The parallel axis counts units of ``ROW_UNIT`` rows by ``COLUMN_UNIT`` columns of one matrix:
``ceil(m / ROW_UNIT) * ceil(n / COLUMN_UNIT) * product of batch extents``; a range may be cut
anywhere.  No scratch buffer: a thread packs what it needs into its own stack (about 700 KiB).

Floats use the register tiles of ``matmul_tiles`` on blocks of ``b`` packed into panels (Goto and
van de Geijn 2008).  Thin products skip the packing: up to 32 rows read ``b`` in place, and
``a b^T`` with few rows or a single column are dot products.  Other dtypes use plain loops.
"""

from __future__ import annotations

import functools
import textwrap

from pyrelay.ir.types import DType

ROW_UNIT = 256
COLUMN_UNIT = 32
# Blocking, measured on Sapphire Rapids: a panel of b (two vectors wide, 32 KiB) stays in the first
# cache, a group of panels and a band of a in the second.
_DEPTH = 256  # values of k
_GROUP_BYTES = 2048  # of a row of b
_BAND = 128  # rows of a


@functools.cache
def native_vector_bits() -> int:
    """The width of this CPU's widest vectors."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return 512 if features.get("avx512f") else 256 if features.get("avx2") else 128


def units(m: int, n: int, batch: int = 1) -> int:
    """The length of the parallel axis."""
    return -(-m // ROW_UNIT) * -(-n // COLUMN_UNIT) * batch


def picoseconds_per_product(dtype: DType) -> float:
    """About how long one multiplication and addition takes on one thread."""
    if dtype.kind != "f":
        return 400.0
    lanes = native_vector_bits() // (8 * dtype.size)
    return 200.0 / lanes


def matmul_kernel(dtype: DType, vector_bits: int | None = None) -> str:
    """The text of the kernel for this dtype.

    ``vector_bits``: 128, 256 or 512; this CPU's widest vectors unless given.
    """
    if dtype.kind != "f":
        return _plain_kernel(dtype)
    bits = native_vector_bits() if vector_bits is None else vector_bits
    return _tiled_kernel(dtype, bits // (8 * dtype.size))


_PROLOGUE = """\
    a_base = param_i64(block, 1)
    b_base = param_i64(block, 2)
    c_base = param_i64(block, 3)
    m = param_i64(block, 4)
    n = param_i64(block, 5)
    k = param_i64(block, 6)
    a_turned = param_i64(block, 7) != 0
    b_turned = param_i64(block, 8) != 0
    added = param_i64(block, 9)
    axes = param_i64(block, 10)
    # Strides: of a along m and k, of b along k and n.
    a_row = 1 if a_turned else k
    a_step = m if a_turned else 1
    b_step = 1 if b_turned else n
    b_column = k if b_turned else 1
    bands = (m + {row_unit} - 1) // {row_unit}
    units = (n + {column_unit} - 1) // {column_unit} * bands
    unit = begin
    while unit < end:
        batch = unit // units
        a = a_base
        b = b_base
        c = c_base + batch * m * n * {size}
        left = batch
        for axis in range(axes):
            place = 8 + 3 * (axes - axis)
            extent = param_i64(block, place)
            index = left % extent
            left = left // extent
            a += index * param_i64(block, place + 1) * {size}
            b += index * param_i64(block, place + 2) * {size}
        # Whole columns of units at a time, or what of one column is left: rows i0..i1 and
        # columns j0..j1.
        rest = unit - batch * units
        last = minimum(units, rest + end - unit)
        first = rest // bands
        band = rest - first * bands
        count = (last - rest) // bands if band == 0 else 0
        j0 = first * {column_unit}
        if count > 0:
            i0 = 0
            i1 = m
            j1 = minimum(n, (first + count) * {column_unit})
            unit += count * bands
        else:
            stop = minimum(bands, band + last - rest)
            i0 = band * {row_unit}
            i1 = minimum(m, stop * {row_unit})
            j1 = minimum(n, (first + 1) * {column_unit})
            unit += stop - band
"""

_TILED = """\
from pyrelay.devices.matmul_tiles import (
    dots_{dots}, dots_{thin_dots}, pack_{pack_a}, pack_{pack_b}, packed_tile_{tile},
    tile_{thin_tile}, tile_{tile}, turn_{pack_a}, turn_{pack_b},
)
from pyrelay.devices.vocabulary import i64, local_{dtype}, maximum, minimum, param_i64

BY_HAND = True


def kernel(block, begin, end):
    packed_a = local_{dtype}({band} * {depth})
    packed_b = local_{dtype}({group} * {depth})
{prologue}\
        rows = i1 - i0
        # A column, or else a row, of the product is a vector times a matrix: lines of the matrix
        # `line` apart, values to be added up `step` apart.
        if n == 1:
            vector, vector_step = b, 1
            matrix, line, step = a + i0 * a_row * {size}, a_row, a_step
            out, length = c + i0 * {size}, rows
        else:
            vector, vector_step = a + i0 * a_row * {size}, a_step
            matrix, line, step = b + j0 * b_column * {size}, b_column, b_step
            out, length = c + (i0 * n + j0) * {size}, j1 - j0
        thin = rows == 1 or n == 1
        if thin and step == 1 and vector_step == 1:
            for j in range(0, length, 8):
                dots_{thin_dots}(
                    vector, 0, matrix + j * line * {size}, line, out + j * {size}, 0,
                    k, 1, minimum(8, length - j), added,
                )
        elif thin and line == 1:
            for k0 in range(0, maximum(k, 1), {depth}):
                for j in range(0, length, 8 * {lanes}):
                    tile_{thin_tile}(
                        vector + k0 * vector_step * {size}, 0, vector_step,
                        matrix + (k0 * step + j) * {size}, step, out + j * {size}, 0,
                        minimum({depth}, k - k0), 1, minimum(8 * {lanes}, length - j),
                        added | i64(k0 > 0),
                    )
        elif rows <= 8 and step == 1 and vector_step == 1:
            for j in range(j0, j1, 4):
                for i in range(i0, i1, {dot_rows}):
                    dots_{dots}(
                        a + i * k * {size}, k, b + j * k * {size}, k, c + (i * n + j) * {size}, n,
                        k, minimum({dot_rows}, i1 - i), minimum(4, j1 - j), added,
                    )
        else:
            packs = b_turned or (rows > 32 and n > 64)
            for g0 in range(j0, j1, {group}):
                g1 = minimum(j1, g0 + {group})
                for k0 in range(0, maximum(k, 1), {depth}):
                    depth = minimum({depth}, k - k0)
                    keep = added | i64(k0 > 0)
                    if packs:
                        for j in range(g0, g1, {width}):
                            source = b + (k0 * b_step + j * b_column) * {size}
                            panel = packed_b + (j - g0) * {depth} * {size}
                            columns = minimum({width}, j1 - j)
                            if b_turned:
                                turn_{pack_b}(source, k, panel, depth, columns)
                            else:
                                pack_{pack_b}(source, n, panel, depth, columns)
                    for h0 in range(i0, i1, {band}):
                        h1 = minimum(i1, h0 + {band})
                        if packs:
                            for i in range(h0, h1, {rows}):
                                source = a + (i * a_row + k0 * a_step) * {size}
                                lines = packed_a + (i - h0) * {depth} * {size}
                                if a_turned:
                                    pack_{pack_a}(source, m, lines, depth, minimum({rows}, h1 - i))
                                else:
                                    turn_{pack_a}(source, k, lines, depth, minimum({rows}, h1 - i))
                        for j in range(g0, g1, {width}):
                            for i in range(h0, h1, {rows}):
                                if packs:
                                    packed_tile_{tile}(
                                        packed_a + (i - h0) * {depth} * {size}, 1, {rows},
                                        packed_b + (j - g0) * {depth} * {size}, {width},
                                        c + (i * n + j) * {size}, n, depth,
                                        minimum({rows}, h1 - i), minimum({width}, j1 - j), keep,
                                    )
                                else:
                                    tile_{tile}(
                                        a + (i * a_row + k0 * a_step) * {size}, a_row, a_step,
                                        b + (k0 * n + j) * {size}, n,
                                        c + (i * n + j) * {size}, n, depth,
                                        minimum({rows}, h1 - i), minimum({width}, j1 - j), keep,
                                    )
    return 0
"""


def _tiled_kernel(dtype: DType, lanes: int) -> str:
    """The text for f32 and f64."""
    # Sixteen accumulators of 32 registers, or eight of 16.
    rows = 8 if lanes * dtype.size == 64 else 4
    vectors = f"{dtype.name}x{lanes}"
    return _TILED.format(
        prologue=_prologue(dtype), dtype=dtype.name, size=dtype.size, lanes=lanes, rows=rows,
        width=2 * lanes, depth=_DEPTH, band=_BAND, group=_GROUP_BYTES // dtype.size,
        tile=f"{vectors}_{rows}x2", thin_tile=f"{vectors}_1x8", thin_dots=f"{vectors}_1x8",
        dots=f"{vectors}_{rows // 2}x4", dot_rows=rows // 2,
        pack_a=f"{dtype.name}x{rows}_1x1", pack_b=f"{vectors}_1x2",
    )  # fmt: skip


def _prologue(dtype: DType) -> str:
    return _PROLOGUE.format(row_unit=ROW_UNIT, column_unit=COLUMN_UNIT, size=dtype.size)


_PLAIN = """
if b_turned:
    for i in range(i0, i1):
        for j in range(j0, j1):
            total = load_ordered_{dtype}(c, i * n + j) if added != 0 else {zero}
            for kk in range(k):
                x = load_{dtype}(a, i * a_row + kk * a_step)
                total = total {add} x {multiply} load_{dtype}(b, j * k + kk)
            store_ordered_{dtype}(c, i * n + j, total)
else:
    # Rows of b stay in cache while c's row is swept once per value of k.
    for i in range(i0, i1):
        if added == 0:
            for j in range(j0, j1):
                store_ordered_{dtype}(c, i * n + j, {zero})
        for kk in range(k):
            factor = load_{dtype}(a, i * a_row + kk * a_step)
            for j in range(j0, j1):
                product = factor {multiply} load_ordered_{dtype}(b, kk * n + j)
                place = i * n + j
                total = load_ordered_{dtype}(c, place) {add} product
                store_ordered_{dtype}(c, place, total)
"""


def _plain_kernel(dtype: DType) -> str:
    """The text for integers, booleans and complex numbers."""
    add, multiply = ("|", "&") if dtype.kind == "b" else ("+", "*")
    body = _PLAIN.format(
        dtype=dtype.name, add=add, multiply=multiply,
        zero=f"{'boolean' if dtype.kind == 'b' else dtype.name}(0)",
    )  # fmt: skip
    return (
        f"from pyrelay.devices.vocabulary import *\n"
        f"\n\ndef kernel(block, begin, end):\n"
        f"{_prologue(dtype)}"
        f"{textwrap.indent(body, '        ')}"
        f"    return 0\n"
    )
