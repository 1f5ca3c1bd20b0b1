"""Matrices that a loop multiplies by, laid in panels once before it.

In: a loop. Out: instructions before it that lay the right operands of its products as the device's
kernel for such products wants them (`target.PanelKernel`), `Panels` by which those products find
them, and instructions after it that free them.

A product of a few rows spends a third to a half of its time on a matrix that is stored by rows: it
reads stripes of it, line by line. What the loop does not change is laid once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, KernelCall, Let, Loop, OpCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.lower.instructions import Alloc, Free, Launch, Slot
from pyrelay.lower.kernel import Product
from pyrelay.opt.finishing import product_of
from pyrelay.opt.shapes import shape_of
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.plan_function import FunctionPlanner
    from pyrelay.lower.target import PanelKernel

_PICOSECONDS_PER_ELEMENT = 150  # of a matrix that is laid, about

Key = tuple[Atom, bool, int]
"""A matrix, whether products take its transpose, and how many matrices it is, side by side."""


@dataclass(frozen=True, slots=True)
class Panels:
    """The slot of the address of a matrix in panels; how many matrices it is, side by side."""

    slot: int
    gates: int


def lay(p: FunctionPlanner, loop: Loop) -> list[Key]:
    """Lay what a loop multiplies by and does not change; what was laid."""
    laid: list[Key] = []
    for block in (loop.test, loop.body):
        for let in () if block is None else walk.nested_lets(block):
            for key in _right_operands(p, let):
                kernel = _kernel(p, key[0])
                if key not in p.panels and key[0] in p.buffers and kernel is not None:
                    p.panels[key] = _launch(p, key, kernel)
                    laid.append(key)
    return laid


def forget(p: FunctionPlanner, laid: list[Key]) -> None:
    """Free what was laid for a loop that has ended."""
    for key in laid:
        p.frame.emit(Free(Slot(p.panels.pop(key).slot)))


@contextmanager
def of_product(p: FunctionPlanner, product: Product, call: KernelCall) -> Iterator[Panels | None]:
    """The panels of a product in a group: those of a loop, or, where it takes several matrices side
    by side, panels of its own."""
    key = _key(product, call)
    kernel = None if key is None else _kernel(p, key[0])
    own: list[Key] = []
    if key is not None and kernel is not None and product.gates > 1 and key not in p.panels:
        p.panels[key] = _launch(p, key, kernel)
        own.append(key)
    yield None if key is None else p.panels.get(key)
    forget(p, own)


def _right_operands(p: FunctionPlanner, let: Let) -> Iterator[Key]:
    """The matrices that the product of a Let, if it has one, would read from panels."""
    rhs = let.rhs
    if isinstance(rhs, OpCall) and rhs.op.schedule == "matmul" and _has_rows(let):
        yield rhs.args[1], rhs.attrs["transpose_b"], 1
    elif isinstance(rhs, KernelCall) and product_of(rhs.function.body) is not None:
        product = p.program.lowering(rhs.function).lowering.product
        key = None if product is None else _key(product, rhs)
        if key is not None:
            yield key


def _key(product: Product, call: KernelCall) -> Key | None:
    """The right operand of a product of matrices in a group."""
    rhs = product.let.rhs
    assert isinstance(rhs, OpCall)
    if rhs.op.schedule != "matmul" or not _has_rows(product.let):
        return None
    return call.args[product.operands[1]], rhs.attrs["transpose_b"], product.gates


def _has_rows(let: Let) -> bool:
    """Whether a product is one of two matrices, not of vectors."""
    assert isinstance(let.rhs, OpCall)
    return len(shape_of(let.outs[0])) == 2 == len(shape_of(let.rhs.args[1])) and all(
        extent != 1 for extent in shape_of(let.outs[0])
    )


def _kernel(p: FunctionPlanner, matrix: Atom) -> PanelKernel | None:
    """The kernel of products with this matrix, where the device has one."""
    assert isinstance(matrix.type, TensorType)
    return p.program.target.matmul(matrix.type.dtype, 0).panels


def _launch(p: FunctionPlanner, key: Key, kernel: PanelKernel) -> Panels:
    """Lay a matrix into a buffer of its own."""
    matrix, turned, gates = key
    assert isinstance(matrix, Var)
    ty = matrix.type
    assert isinstance(ty, TensorType)
    k, n = reversed(ty.shape) if turned else ty.shape
    n = dims.quotient(n, gates)
    count = dims.multiply(gates, _whole(n, kernel.columns))
    deep = dims.multiply(_whole(k, kernel.rows), kernel.rows)
    panel = dims.multiply(deep, kernel.columns)
    slot = p.frame.slot()
    p.frame.emit(Alloc(slot, p.sizes.value(dims.product((count, panel, ty.dtype.size)))))
    sizes = p.sizes.values((k, n, ty.shape[-1], int(turned)))
    operands = *p.value(matrix), Slot(slot), *sizes
    p.frame.emit(
        Launch(
            p.program.source(kernel.lays, "panels"), operands, p.sizes.value(count),
            p.sizes.value(dims.multiply(panel, _PICOSECONDS_PER_ELEMENT)),
        )
    )
    return Panels(slot, gates)


def _whole(extent: Extent, unit: int) -> Extent:
    return dims.quotient(dims.add(extent, unit - 1), unit)
