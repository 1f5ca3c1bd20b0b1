"""Matrix products: source texts of kernels that compute ``c[..., m, n] = a @ b``.

In: a dtype and a ``Form``; out: a kernel's text (ABI of ``kernel_compiler``).  ``a`` is
``[*batch, m, k]``, or ``[*batch, k, m]`` where ``transpose_a``; ``b`` is ``[*batch, k, n]``, or
``[*batch, n, k]``; all buffers C-contiguous, ``c`` distinct from both.  Parameters:

    block[1..6]      addresses of a, b, c; m, n, k
    block[7 ...]     for each batch axis: its extent, a's stride and b's stride along it, in
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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyrelay.ir.types import DType

ROW_UNIT = 256
COLUMN_UNIT = 32
# Blocking, measured on Sapphire Rapids: a panel of b (two vectors wide, 32 KiB) stays in the first
# cache, a group of panels and a band of a in the second.
_DEPTH = 256  # values of k
_GROUP_BYTES = 2048  # of a row of b
_BAND = 128  # rows of a


@dataclass(frozen=True, slots=True)
class Form:
    """Which product: layouts of the operands, rank of the batch, ``c = a b`` or ``c += a b``."""

    transpose_a: bool = False
    transpose_b: bool = False
    batch_rank: int = 0
    accumulate: bool = False


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


def matmul_kernel(dtype: DType, form: Form, vector_bits: int | None = None) -> str:
    """The text of the kernel for this dtype and form.

    ``vector_bits``: 128, 256 or 512; this CPU's widest vectors unless given.
    """
    if dtype.kind != "f":
        return _plain_kernel(dtype, form)
    bits = native_vector_bits() if vector_bits is None else vector_bits
    return _Tiled(dtype, form, bits).text()


def _indented(text: str, depth: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "    " * depth)


def _prologue(form: Form, size: int) -> str:
    """From the block to the rows ``i0..i1`` and columns ``j0..j1`` of one matrix, unit by unit."""
    axes = range(form.batch_rank)
    batch_params = "".join(
        f"    extent{axis} = param_i64(block, {7 + 3 * axis})\n"
        f"    a_stride{axis} = param_i64(block, {8 + 3 * axis})\n"
        f"    b_stride{axis} = param_i64(block, {9 + 3 * axis})\n"
        for axis in axes
    )
    # Element offsets of the matrices of one batch entry, from its number.
    decode = ""
    if form.batch_rank:
        decode = "        left = batch\n"
        for axis in reversed(axes):
            decode += (
                f"        index = left % extent{axis}\n"
                f"        left = left // extent{axis}\n"
                f"        a += index * a_stride{axis} * {size}\n"
                f"        b += index * b_stride{axis} * {size}\n"
            )
    return f"""\
    a_base = param_i64(block, 1)
    b_base = param_i64(block, 2)
    c_base = param_i64(block, 3)
    m = param_i64(block, 4)
    n = param_i64(block, 5)
    k = param_i64(block, 6)
{batch_params}\
    bands = (m + {ROW_UNIT - 1}) // {ROW_UNIT}
    units = (n + {COLUMN_UNIT - 1}) // {COLUMN_UNIT} * bands
    unit = begin
    while unit < end:
        batch = unit // units
        a = a_base
        b = b_base
        c = c_base + batch * m * n * {size}
{decode}\
        rest = unit - batch * units
        last = minimum(units, rest + end - unit)
        first = rest // bands
        band = rest - first * bands
        count = (last - rest) // bands if band == 0 else 0
        if count > 0:
            i0 = 0
            i1 = m
            j1 = minimum(n, (first + count) * {COLUMN_UNIT})
            unit += count * bands
        else:
            stop = minimum(bands, band + last - rest)
            i0 = band * {ROW_UNIT}
            i1 = minimum(m, stop * {ROW_UNIT})
            j1 = minimum(n, (first + 1) * {COLUMN_UNIT})
            unit += stop - band
        j0 = first * {COLUMN_UNIT}
"""


def _cases(cases: Sequence[tuple[str, str]], template: str) -> str:
    """``if``, ``elif`` and, for the condition "True", ``else``; bodies put into a template."""
    lines = []
    for place, (test, body) in enumerate(cases):
        head = "else:" if test == "True" else f"{'elif' if place else 'if'} {test}:"
        lines.append(f"{head}\n{_indented(template.format(body), 1)}")
    return "\n".join(lines)


_BLOCKED = """\
packs = {packs}
for g0 in range(j0, j1, {group}):
    g1 = minimum(j1, g0 + {group})
    for k0 in range(0, maximum(k, 1), {depth}):
        depth = minimum({depth}, k - k0)
        keep = {keep}
        if packs:
            for j in range(g0, g1, {width}):
                {pack_b}
        for h0 in range(i0, i1, {band}):
            h1 = minimum(i1, h0 + {band})
            if packs:
                for i in range(h0, h1, {rows}):
                    {pack_a}
            for j in range(g0, g1, {width}):
{tiles}"""


class _Operand(NamedTuple):
    """Texts: the address of a block's first element, its stride across and its stride along k."""

    address: str
    row: str
    step: str


class _Tiled:
    """The text for f32 and f64."""

    def __init__(self, dtype: DType, form: Form, bits: int) -> None:
        self.form, self.dtype = form, dtype
        self.size = dtype.size
        self.lanes = bits // (8 * dtype.size)
        # Sixteen accumulators of 32 registers, or eight of 16.
        self.rows = 8 if bits == 512 else 4
        self.used: set[str] = set()

    def call(self, kind: str, lanes: int, rows: int, across: int, arguments: str) -> str:
        name = f"{kind}_{self.dtype.name}x{lanes}_{rows}x{across}"
        self.used.add(name)
        return f"{name}({arguments})"

    def keep(self, k0: str) -> str:
        """Whether a tile adds to ``c``: always if accumulating, else after the first block."""
        return "1" if self.form.accumulate else f"i64({k0} > 0)"

    def whole_keep(self) -> str:
        return "1" if self.form.accumulate else "0"

    def tile(self, rows: int, across: int, a: _Operand, b: _Operand, packed: bool = False) -> str:
        """A tile at row ``i`` and column ``j`` of the block of ``depth`` values from ``k0``."""
        return self.call(
            "packed_tile" if packed else "tile", self.lanes, rows, across,
            f"{a.address}, {a.row}, {a.step}, {b.address}, {b.step}, "
            f"c + (i * n + j) * {self.size}, n, depth, minimum({rows}, i1 - i), "
            f"minimum({across * self.lanes}, j1 - j), keep",
        )  # fmt: skip

    def a_in_place(self) -> _Operand:
        if self.form.transpose_a:
            return _Operand(f"a + (k0 * m + i) * {self.size}", "1", "m")
        return _Operand(f"a + (i * k + k0) * {self.size}", "k", "1")

    def b_in_place(self) -> _Operand:
        if self.form.transpose_b:
            return _Operand(f"b + (j * k + k0) * {self.size}", "k", "1")
        return _Operand(f"b + (k0 * n + j) * {self.size}", "1", "n")

    def one_column(self) -> str:
        """``n == 1``: the column of c as a row, ``c^T = b^T a^T``."""
        size = self.size
        if self.form.transpose_a:
            step = 8 * self.lanes
            call = self.call(
                "tile", self.lanes, 1, 8,
                f"b, 0, 1, a + i * {size}, m, c + i * {size}, 0, k, 1, "
                f"minimum({step}, i1 - i), {self.whole_keep()}",
            )  # fmt: skip
        else:
            step = 8
            call = self.call(
                "dots", self.lanes, 1, 8,
                f"b, 0, a + i * k * {size}, k, c + i * {size}, 0, k, 1, "
                f"minimum(8, i1 - i), {self.whole_keep()}",
            )  # fmt: skip
        return f"for i in range(i0, i1, {step}):\n    {call}"

    def one_row(self) -> str:
        """A row times ``b`` in place."""
        call = self.tile(1, 8, self.a_in_place(), self.b_in_place())
        return (
            f"i = i0\n"
            f"for k0 in range(0, maximum(k, 1), {_DEPTH}):\n"
            f"    depth = minimum({_DEPTH}, k - k0)\n"
            f"    keep = {self.keep('k0')}\n"
            f"    for j in range(j0, j1, {8 * self.lanes}):\n"
            f"        {call}"
        )

    def few_rows(self) -> str:
        """``a b^T`` with at most 8 rows, as dot products."""
        size = self.size

        def call(rows: int, across: int) -> str:
            return self.call(
                "dots", self.lanes, rows, across,
                f"a + i * k * {size}, k, b + j * k * {size}, k, c + (i * n + j) * {size}, n, k, "
                f"minimum({rows}, i1 - i), minimum({across}, j1 - j), {self.whole_keep()}",
            )  # fmt: skip

        thin = self.rows // 2
        return (
            f"if i1 - i0 == 1:\n"
            f"    i = i0\n"
            f"    for j in range(j0, j1, 8):\n"
            f"        {call(1, 8)}\n"
            f"else:\n"
            f"    for j in range(j0, j1, 4):\n"
            f"        for i in range(i0, i1, {thin}):\n"
            f"            {call(thin, 4)}"
        )

    def packing(self, source: _Operand, lanes: int, across: int, target: str, valid: str) -> str:
        """Packing of one panel; ``turn`` where the operand is contiguous along ``k``."""
        kind, stride = ("turn", source.row) if source.step == "1" else ("pack", source.step)
        return self.call(
            kind, lanes, 1, across, f"{source.address}, {stride}, {target}, depth, {valid}"
        )

    def blocked(self) -> str:
        """The general case: both operands packed, ``b`` into panels two vectors wide, ``a`` into
        bands; or read in place, where packing would not pay."""
        width, size, rows = 2 * self.lanes, self.size, self.rows
        panel = _Operand(f"packed_b + (j - g0) * {_DEPTH * size}", "1", str(width))
        band = _Operand(f"packed_a + (i - h0) * {_DEPTH * size}", "1", str(rows))
        a, b = self.a_in_place(), self.b_in_place()
        pack_b = self.packing(b, self.lanes, 2, panel.address, f"minimum({width}, j1 - j)")
        pack_a = self.packing(a, rows, 1, band.address, f"minimum({rows}, i1 - i)")
        wide = self.tile(rows, 2, band, panel, packed=True)
        if self.form.transpose_b:
            packs = "True"
            tiles = [
                (f"j1 - j > {self.lanes}", wide),
                ("True", self.tile(rows, 1, band, panel, packed=True)),
            ]
        else:
            packs = "i1 - i0 > 32 and n > 64"
            tiles = [
                ("packs", wide),
                (f"j1 - j > {self.lanes}", self.tile(rows, 2, a, b)),
                ("True", self.tile(rows, 1, a, b)),
            ]
        return _BLOCKED.format(
            packs=packs, group=_GROUP_BYTES // size, depth=_DEPTH, band=_BAND, width=width,
            rows=rows, keep=self.keep("k0"), pack_a=pack_a, pack_b=pack_b,
            tiles=_indented(_cases(tiles, f"for i in range(h0, h1, {rows}):\n    {{}}"), 4),
        )  # fmt: skip

    def text(self) -> str:
        cases = [("n == 1", self.one_column())]
        if not self.form.transpose_b:
            cases.append(("i1 - i0 == 1", self.one_row()))
        elif not self.form.transpose_a:
            cases.append(("i1 - i0 <= 8", self.few_rows()))
        cases.append(("True", self.blocked()))
        body = _cases(cases, "{}")
        imports = ", ".join(sorted(self.used))
        local = f"local_{self.dtype.name}"
        return (
            f"from pyrelay.devices.matmul_tiles import {imports}\n"
            f"from pyrelay.devices.vocabulary import i64, {local}, maximum, minimum, param_i64\n"
            f"\n\ndef kernel(block, begin, end):\n"
            f"    packed_a = {local}({_BAND * _DEPTH})\n"
            f"    packed_b = {local}({_GROUP_BYTES // self.size * _DEPTH})\n"
            f"{_prologue(self.form, self.size)}"
            f"{_indented(body, 2)}\n"
            f"    return 0\n"
        )


def _plain_kernel(dtype: DType, form: Form) -> str:
    """The text for integers, booleans and complex numbers."""
    short = dtype.name
    zero = f"{'boolean' if dtype.kind == 'b' else short}(0)"
    add, multiply = ("|", "&") if dtype.kind == "b" else ("+", "*")
    a = f"load_{short}(a, {'kk * m + i' if form.transpose_a else 'i * k + kk'})"
    start = f"load_ordered_{short}(c, i * n + j)" if form.accumulate else zero
    if form.transpose_b:
        body = f"""
        for i in range(i0, i1):
            for j in range(j0, j1):
                total = {start}
                for kk in range(k):
                    total = total {add} {a} {multiply} load_{short}(b, j * k + kk)
                store_ordered_{short}(c, i * n + j, total)
        """
    else:
        # Rows of b stay in cache while c's row is swept once per value of k.
        clear = f"""
            for j in range(j0, j1):
                store_ordered_{short}(c, i * n + j, {zero})"""
        body = f"""
        for i in range(i0, i1):{"" if form.accumulate else clear}
            for kk in range(k):
                factor = {a}
                for j in range(j0, j1):
                    product = factor {multiply} load_ordered_{short}(b, kk * n + j)
                    place = i * n + j
                    total = load_ordered_{short}(c, place) {add} product
                    store_ordered_{short}(c, place, total)
        """
    return (
        f"from pyrelay.devices.vocabulary import *\n"
        f"\n\ndef kernel(block, begin, end):\n"
        f"{_prologue(form, dtype.size)}"
        f"{_indented(body, 2)}\n"
        f"    return 0\n"
    )
