"""Matrix products: source texts of kernels that compute ``c[..., m, n] = a @ b``.

In: a dtype; out: one kernel's text (ABI of ``kernel_compiler``) for products of every layout and
size, so that a machine compiles it once.  ``a`` is ``[*batch, m, k]``, or ``[*batch, k, m]`` where
it is transposed; ``b`` is ``[*batch, k, n]``, or ``[*batch, n, k]``; elements of a line are
adjacent, and the matrices of ``c``, distinct from both, follow each other.  Parameters:

    block[1..6]      addresses of a, b, c; m, n, k
    block[7..9]      1 or 0: whether a is transposed, whether b is, whether to add to c; 2 in the
                     second place: b lies in panels (``matmul_panels``), and a is one row
    block[10..12]    elements from one line of a, of b, of c to the next, as they lie in memory
    block[13]        the number of batch axes
    block[14..15]    the address of a kernel that finishes the product, or 0; how many operands that
                     has (at most ``FINISHING_OPERANDS``)
    block[16 ...]    for each batch axis: its extent, a's stride and b's stride along it, in
                     elements (0 where that operand is broadcast)
    block[...]       the operands of the finishing kernel

A finishing kernel (``lower/planning/finishing.py``) is called for every part of c whose sums are
complete; the matrices of c lie densely then.

The parallel axis counts units of ``ROW_UNIT`` rows by ``COLUMN_UNIT`` columns of one matrix:
``ceil(m / ROW_UNIT) * ceil(n / COLUMN_UNIT) * product of batch extents``; a range may be cut
anywhere.  Units that are neighbours stand below each other, or, where the product is taller than
wide, beside each other: so a range reads one operand in part and the shorter one whole.  A thread
packs what it needs into a room of its own (about 700 KiB; ``rooms``).

Floats use the register tiles of ``matmul_tiles`` on blocks of ``b`` packed into panels (Goto and
van de Geijn 2008).  Thin products skip the packing: up to 64 rows read a ``b`` that stays in the
second cache in place, up to 16 a larger one, line by line where its lines are far apart, and
``a b^T`` with few rows or a single column are dot products, and so are many rows by fewer columns
than a vector has, which are laid along k (``matmul_columns``); of a turned ``a`` vectors lie along
the rows then, and the sums are turned at the end.  Other dtypes use plain loops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from pyrelay.devices.choices import DEFAULT, Choices
from pyrelay.devices.routines import matmul_choice
from pyrelay.devices.routines.made_of import part_text
from pyrelay.devices.routines.matmul_choice import COLUMN_UNIT, ROW_UNIT

if TYPE_CHECKING:
    from pyrelay.ir.types import DType

FINISHING_OPERANDS = 40


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


def matmul_kernel(
    dtype: DType, vector_bits: int | None = None, choices: Choices = DEFAULT
) -> str:
    """The text of the kernel for this dtype.

    ``vector_bits``: 128, 256 or 512; this CPU's widest vectors unless given. Of ``choices`` the
    sizes of blocks count.
    """
    if dtype.kind != "f":
        return _plain_kernel(dtype)
    bits = native_vector_bits() if vector_bits is None else vector_bits
    return _TILED.format(vectors=product_name(dtype, bits, choices))


@functools.cache
def ways(
    dtype: DType, choices: Choices = DEFAULT
) -> Callable[[Sequence[int | None], bool, bool], list[str]]:
    """What gives the texts of the parts that a product of floats is likely to call, from m, n and
    k, of which None is not known, and whether a and b are transposed."""
    lanes = panel_lanes(dtype)

    def texts(extents: Sequence[int | None], transpose_a: bool, transpose_b: bool) -> list[str]:
        taken = matmul_choice.ways(extents, transpose_a, transpose_b, lanes, dtype.size)
        return [*parts_by_name(taken, dtype, choices)]

    return texts


def parts_by_name(
    names: Iterable[str], dtype: DType, choices: Choices = DEFAULT
) -> tuple[str, ...]:
    """The texts of these parts (``made_of.PARTS``), as products of a form call them."""
    form = product_name(dtype, native_vector_bits(), choices)
    return tuple(part_text(name, form) for name in names)


def panel_kernels(
    dtype: DType, vector_bits: int | None = None, choices: Choices = DEFAULT
) -> tuple[str, str]:
    """The texts of two kernels: the product of a matrix and panels, and what lays panels.

    ``vector_bits`` and ``choices`` as ``matmul_kernel`` takes them; a float dtype.
    """
    bits = native_vector_bits() if vector_bits is None else vector_bits
    name = product_name(dtype, bits, choices)
    return _BY_PANELS.format(name=f"panels_{name}"), _BY_PANELS.format(name=f"pack_{name}")


def panel_lanes(dtype: DType, vector_bits: int | None = None) -> int:
    """How many elements a vector has; a panel is two vectors wide, see ``matmul_panels``."""
    bits = native_vector_bits() if vector_bits is None else vector_bits
    return bits // (8 * dtype.size)


def product_name(dtype: DType, bits: int, choices: Choices = DEFAULT) -> str:
    """What ``matmul_blocks`` calls a product, after ``product_``: dtype, lanes, sizes of blocks."""
    name = f"{dtype.name}x{bits // (8 * dtype.size)}"
    sizes = choices.depth, choices.row_bytes, choices.band
    if sizes == (DEFAULT.depth, DEFAULT.row_bytes, DEFAULT.band):
        return name
    return "_".join([name, *map(str, sizes)])


_TILED = """\
from pyrelay.devices.routines.matmul_blocks import product_{vectors}

BY_HAND = True


def kernel(block, begin, end):
    product_{vectors}(block, begin, end)
    return 0
"""

_BY_PANELS = """\
from pyrelay.devices.routines.matmul_panels import {name}

BY_HAND = True


def kernel(block, begin, end):
    if begin < end:  # else the part may not be there
        {name}(block, begin, end)
    return 0
"""

_PLAIN = """\
from pyrelay.devices.routines.matmul_blocks import next_part
from pyrelay.devices.compiler.vocabulary import *


def kernel(block, begin, end):
    k = param_i64(block, 6)
    a_line, b_line, c_line = param_i64(block, 10), param_i64(block, 11), param_i64(block, 12)
    a_row = 1 if param_i64(block, 7) != 0 else a_line
    a_step = a_line if param_i64(block, 7) != 0 else 1
    b_turned = param_i64(block, 8) != 0
    added = param_i64(block, 9)
    part = local_i64(7)
    unit = begin
    while unit < end:
        unit = next_part(block, unit, end, part, {size})
        a = load_ordered_i64(part, 0)
        b = load_ordered_i64(part, 1)
        c = load_ordered_i64(part, 2)
        i0, i1 = load_ordered_i64(part, 3), load_ordered_i64(part, 4)
        j0, j1 = load_ordered_i64(part, 5), load_ordered_i64(part, 6)
        if b_turned:
            for i in range(i0, i1):
                for j in range(j0, j1):
                    total = load_ordered_{dtype}(c, i * c_line + j) if added != 0 else {zero}
                    for kk in range(k):
                        x = load_{dtype}(a, i * a_row + kk * a_step)
                        total = total {add} x {multiply} load_{dtype}(b, j * b_line + kk)
                    store_ordered_{dtype}(c, i * c_line + j, total)
        else:
            # Rows of b stay in cache while c's row is swept once per value of k.
            for i in range(i0, i1):
                if added == 0:
                    for j in range(j0, j1):
                        store_ordered_{dtype}(c, i * c_line + j, {zero})
                for kk in range(k):
                    factor = load_{dtype}(a, i * a_row + kk * a_step)
                    for j in range(j0, j1):
                        product = factor {multiply} load_ordered_{dtype}(b, kk * b_line + j)
                        place = i * c_line + j
                        total = load_ordered_{dtype}(c, place) {add} product
                        store_ordered_{dtype}(c, place, total)
    return 0
"""


def _plain_kernel(dtype: DType) -> str:
    """The text for integers, booleans and complex numbers."""
    add, multiply = ("|", "&") if dtype.kind == "b" else ("+", "*")
    return _PLAIN.format(
        dtype=dtype.name, size=dtype.size, add=add, multiply=multiply,
        zero=f"{'boolean' if dtype.kind == 'b' else dtype.name}(0)",
    )  # fmt: skip
