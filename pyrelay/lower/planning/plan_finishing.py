"""Launches of products that another kernel finishes (`finishing.py`).

In: the call of a fused group with a product in it. Out: one launch.

The product lies in the buffer of a result of its size, so it costs no memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import KernelCall, Let, OpCall, Var
from pyrelay.ir.types import TensorType, Type
from pyrelay.lower.kernels.kernel import Product
from pyrelay.lower.planning import plan_kernels, plan_panels, plan_passing
from pyrelay.lower.planning.finishing import without_product
from pyrelay.lower.planning.instructions import AddressOf, Free, Slot, Value
from pyrelay.lower.planning.plan_library import Finish, launch_product
from pyrelay.lower.planning.program import Group, name_of
from pyrelay.opt.shapes import is_array

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


def finished_product(p: FunctionPlanner, let: Let, call: KernelCall, group: Group) -> None:
    """Plan a group with a product."""
    product, (kernel,) = group.lowering.product, group.lowering.kernels
    assert product is not None
    extents = dict(zip(group.dims, call.dims, strict=True))
    operand_types = _types(product, extents)
    made = operand_types[-1]
    assert isinstance(made, TensorType)
    arrays: dict[int, Value] = {
        k: Slot(p.buffer(a).slot) for k, a in enumerate(call.args) if is_array(a)
    }
    outputs, address, fresh = _buffers(p, let, call, group, made)
    operands: list[Value] = []
    for each in plan_kernels.operands_of(p, kernel, call, arrays, outputs):
        assert not isinstance(each, AddressOf), "what finishes a product has arrays as results"
        operands.append(each)
    name = name_of(without_product(call.function, product.let))
    number = p.program.kernel(kernel, f"finish_{name}")
    finish = Finish(number, tuple(operands), dims.substitute(kernel.cost, extents))
    assert isinstance(product.let.rhs, OpCall)
    names = walk.Renaming()
    names.dims.update(extents)
    operation = replace(product.let.rhs, attrs=names.attrs(product.let.rhs.attrs))
    places = [arrays[k] for k in product.operands]
    with plan_panels.of_product(p, product, call) as panels:
        launch_product(p, operation, operand_types, (*places, Slot(address)), panels, finish)
    if fresh:
        p.frame.emit(Free(Slot(address)))


def _types(product: Product, extents: dict[Symbol, Extent]) -> list[Type]:
    assert isinstance(product.let.rhs, OpCall)
    found = []
    for atom in (*product.let.rhs.args, *product.let.outs):
        assert atom.type is not None
        found.append(types.substitute(atom.type, extents))
    return found


def _buffers(
    p: FunctionPlanner, let: Let, call: KernelCall, group: Group, made: TensorType
) -> tuple[list[int], int, bool]:
    """The slot of each result's address, that of the product's, and whether that is no result."""
    product = group.lowering.product
    assert product is not None
    uses = Counter(p.buffer(a) for a in call.args if is_array(a))
    read = {p.buffer(call.args[k]) for k in product.operands}
    home = product.result
    if home is None:
        home = next((j for j, out in enumerate(let.outs) if _as_large(out, made)), None)
    outputs: list[int] = []
    for j, out in enumerate(let.outs):
        allowed = [
            k for k in group.lowering.shares[j]
            if k < len(call.args) and p.buffer(call.args[k]) not in read
            and plan_passing.may_take(p, out, call.args[k])
        ]  # fmt: skip
        outputs.append(
            p.make(out) if j == home
            else plan_kernels.made_or_reused(p, call, out, allowed, uses)
        )
    if home is not None:
        return outputs, outputs[home], False
    address = p.frame.slot()
    p.frame.allocate(address, p.bytes_of(made))
    return outputs, address, True


def _as_large(out: Var, made: TensorType) -> bool:
    ty = out.type
    assert isinstance(ty, TensorType)
    return ty.dtype.size == made.dtype.size and ty.size == made.size
