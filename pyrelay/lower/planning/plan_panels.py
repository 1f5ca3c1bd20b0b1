"""Matrices that a loop multiplies by, laid in panels once before it.

In: a loop. Out: instructions before it that lay the right operands of its products as the device's
kernel for such products wants them (`target.PanelKernel`), `Panels` by which those products find
them, and instructions after it that free them.

A product of a few rows spends a third to a half of its time on a matrix that is stored by rows: it
reads stripes of it, line by line. What the loop does not change is laid once. A product of one row
only gains where the matrix does not fit the second cache, and laying takes as long as two or three
of them: the running program decides, by the matrix's size and, where it is known, how often the
loop runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, KernelCall, Let, Loop, OpCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.lower.kernels.kernel import Product
from pyrelay.lower.planning.instructions import (
    Binary,
    Free,
    Immediate,
    Launch,
    Select,
    Slot,
    Value,
)
from pyrelay.opt.finishing import product_of
from pyrelay.opt.shapes import shape_of
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner
    from pyrelay.lower.planning.target import PanelKernel

_PICOSECONDS_PER_ELEMENT = 150  # of a matrix that is laid, about

SINGLE = 0
"""In place of how many matrices stand side by side: one, for products of a single row."""

_LARGE = 1 << 19
"""Bytes of a matrix from which on it is laid for products of a single row: half a second cache."""

_FEW_ROUNDS = 8
"""Rounds of a loop, if they are counted, for which that does not pay."""

Key = tuple[Atom, bool, int]
"""A matrix, whether products take its transpose, and how many matrices it is, side by side, or
SINGLE."""


@dataclass(frozen=True, slots=True)
class Panels:
    """Where products find a matrix in panels.

    slot: of the address of the panels, which are freed after the loop. gates: how many matrices
    stand side by side, or SINGLE. address, form: for SINGLE, what is read, which is the matrix
    itself where it was not laid, and what says how it lies.
    """

    slot: int
    gates: int
    address: Value
    form: Value


def lay(p: FunctionPlanner, loop: Loop) -> list[Key]:
    """Lay what a loop multiplies by and does not change; what was laid."""
    laid: list[Key] = []
    for block in (loop.test, loop.body):
        for let in () if block is None else walk.nested_lets(block):
            for key in _right_operands(p, let):
                kernel = _kernel(p, key[0])
                if key not in p.panels and key[0] in p.buffers and kernel is not None:
                    pays = _pays(p, key, loop)
                    if pays is not None:
                        p.panels[key] = _launch(p, key, kernel, pays)
                        laid.append(key)
    return laid


def _pays(p: FunctionPlanner, key: Key, loop: Loop) -> Value | None:
    """1 or 0 for whether a matrix is laid; None where that is known to be 0."""
    if key[2] != SINGLE:
        return Immediate(1)
    ty = key[0].type
    assert isinstance(ty, TensorType)
    large = p.sizes.value(dims.minimum(dims.quotient(_nbytes(ty), _LARGE), 1))
    if large == Immediate(0):
        return None
    if loop.count is None:
        return large
    rounds = p.scalar(loop.count)
    if isinstance(rounds, Immediate):
        return large if rounds.word >= _FEW_ROUNDS else None
    many, both = p.frame.slot(), p.frame.slot()
    p.frame.emit(Binary("le.i64", many, Immediate(_FEW_ROUNDS), rounds))
    p.frame.emit(Binary("mul.i64", both, Slot(many), large))
    return Slot(both)


def _nbytes(ty: TensorType) -> Extent:
    return dims.product((*ty.shape, ty.dtype.size))


def of_operation(p: FunctionPlanner, call: OpCall, out: Var) -> Panels | None:
    """The panels of a product that stands alone."""
    if call.op.schedule != "matmul":
        return None
    gates = SINGLE if _has_one_row(out, call) else 1
    return p.panels.get((call.args[1], call.attrs["transpose_b"], gates))


def forget(p: FunctionPlanner, laid: list[Key]) -> None:
    """Free what was laid for a loop that has ended."""
    for key in laid:
        p.frame.emit(Free(Slot(p.panels.pop(key).slot)))


@contextmanager
def of_product(p: FunctionPlanner, product: Product, call: KernelCall) -> Iterator[Panels | None]:
    """The panels of a product in a group: those of a loop, or, where it takes several matrices side
    by side, panels of its own."""
    key = key_of(product, call)
    kernel = None if key is None else _kernel(p, key[0])
    own: list[Key] = []
    if key is not None and kernel is not None and product.gates > 1 and key not in p.panels:
        p.panels[key] = _launch(p, key, kernel, Immediate(1))
        own.append(key)
    yield None if key is None else p.panels.get(key)
    forget(p, own)


def _right_operands(p: FunctionPlanner, let: Let) -> Iterator[Key]:
    """The matrices that the product of a Let, if it has one, would read from panels."""
    rhs = let.rhs
    if isinstance(rhs, OpCall) and rhs.op.schedule == "matmul":
        if _has_rows(let):
            yield rhs.args[1], rhs.attrs["transpose_b"], 1
        elif _has_one_row(let.outs[0], rhs):
            yield rhs.args[1], rhs.attrs["transpose_b"], SINGLE
    elif isinstance(rhs, KernelCall) and product_of(rhs.function.body) is not None:
        product = p.program.lowering(rhs.function).lowering.product
        key = None if product is None else key_of(product, rhs)
        if key is not None:
            yield key


def key_of(product: Product, call: KernelCall) -> Key | None:
    """The right operand of a product of matrices in a group."""
    rhs = product.let.rhs
    assert isinstance(rhs, OpCall)
    if rhs.op.schedule != "matmul":
        return None
    if product.gates == 1 and _has_one_row(product.let.outs[0], rhs):
        return call.args[product.operands[1]], rhs.attrs["transpose_b"], SINGLE
    if not _has_rows(product.let):
        return None
    return call.args[product.operands[1]], rhs.attrs["transpose_b"], product.gates


def _has_rows(let: Let) -> bool:
    """Whether a product is one of two matrices, not of vectors."""
    assert isinstance(let.rhs, OpCall)
    return len(shape_of(let.outs[0])) == 2 == len(shape_of(let.rhs.args[1])) and all(
        extent != 1 for extent in shape_of(let.outs[0])
    )


def _has_one_row(out: Var, call: OpCall) -> bool:
    """Whether a product is one of a row and a matrix of several columns."""
    rows, *columns = shape_of(out)
    return rows == 1 and len(columns) == 1 and columns[0] != 1 and len(shape_of(call.args[1])) == 2


def _kernel(p: FunctionPlanner, matrix: Atom) -> PanelKernel | None:
    """The kernel of products with this matrix, where the device has one."""
    assert isinstance(matrix.type, TensorType)
    return p.program.target.matmul(matrix.type.dtype, 0).panels


def _launch(p: FunctionPlanner, key: Key, kernel: PanelKernel, pays: Value) -> Panels:
    """Lay a matrix into a buffer of its own, if it `pays`."""
    matrix, turned, gates = key
    assert isinstance(matrix, Var)
    ty = matrix.type
    assert isinstance(ty, TensorType)
    k, n = reversed(ty.shape) if turned else ty.shape
    n = dims.quotient(n, max(gates, 1))
    count = dims.multiply(max(gates, 1), dims.quotient_up(n, kernel.columns))
    deep = dims.multiply(dims.quotient_up(k, kernel.rows), kernel.rows)
    panel = dims.multiply(deep, kernel.columns)
    size, slot = dims.product((count, panel, ty.dtype.size)), p.frame.slot()
    if gates != SINGLE:
        p.program.expect(kernel.laying)
    elif (dims.evaluated(_nbytes(ty), p.program.sizes) or _LARGE) >= _LARGE:
        p.program.expect((*kernel.laying, *kernel.single))
    p.frame.allocate(slot, _if_it_pays(p, pays, size))
    (address,) = p.value(matrix)
    sizes = p.sizes.values((k, n, ty.shape[-1], int(turned)))
    p.frame.emit(
        Launch(
            p.program.source(kernel.lays, "panels"), (address, Slot(slot), *sizes),
            _if_it_pays(p, pays, count),
            p.sizes.value(dims.multiply(panel, _PICOSECONDS_PER_ELEMENT)),
        )
    )
    if gates != SINGLE:
        return Panels(slot, gates, Slot(slot), Immediate(gates))
    read, form = p.frame.slot(), p.frame.slot()
    p.frame.emit(Select(read, pays, Slot(slot), address))
    p.frame.emit(Select(form, pays, Immediate(2), Immediate(int(turned))))
    return Panels(slot, gates, Slot(read), Slot(form))


def _if_it_pays(p: FunctionPlanner, pays: Value, extent: Extent) -> Value:
    """An extent, or 0."""
    value = p.sizes.value(extent)
    if pays == Immediate(1):
        return value
    found = p.frame.slot()
    p.frame.emit(Binary("mul.i64", found, pays, value))
    return Slot(found)
