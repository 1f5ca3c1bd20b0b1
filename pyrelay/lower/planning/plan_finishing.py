"""Launches of products that another kernel finishes (`finishing.py`).

In: the call of a fused group with a product in it. Out: one launch.

The product lies in the buffer of a result of its size, or in registers, so it costs no memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import KernelCall, Let, OpCall, Var
from pyrelay.ir.types import TensorType, Type
from pyrelay.lower.kernels.kernel import Product
from pyrelay.lower.planning import plan_called, plan_kernels, plan_panels, plan_passing
from pyrelay.lower.planning.finishing import without_product
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import AddressOf, Free, Slot, Value
from pyrelay.lower.planning.plan_library import Finish, is_in_registers, launch_product
from pyrelay.lower.planning.program import Group, name_of
from pyrelay.opt.shapes import is_array

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


def finished_product(p: FunctionPlanner, let: Let, call: KernelCall, group: Group) -> None:
    """Plan a group with a product."""
    product = group.lowering.product
    assert product is not None
    extents = dict(zip(group.dims, call.dims, strict=True))
    operand_types = _types(product, extents)
    made = operand_types[-1]
    assert isinstance(made, TensorType)
    assert isinstance(product.let.rhs, OpCall)
    names = walk.Renaming()
    names.dims.update(extents)
    operation = replace(product.let.rhs, attrs=names.attrs(product.let.rhs.attrs))
    in_registers = is_in_registers(p.program.target, operation, operand_types)
    arrays: dict[int, Value] = {
        k: Slot(p.buffer(a).slot) for k, a in enumerate(call.args) if is_array(a)
    }
    outputs, address, fresh = _buffers(p, let, call, group, None if in_registers else made)
    finish = finish_of(p, call, group, arrays, outputs)
    places = [arrays[k] for k in product.operands]
    with plan_panels.of_product(p, product, call) as panels:
        launch_product(p, operation, operand_types, (*places, address), panels, finish)
    if fresh:
        p.frame.emit(Free(address))


def finish_of(
    p: FunctionPlanner, call: KernelCall, group: Group, arrays: Mapping[int, Value],
    outputs: Sequence[int],
) -> Finish:
    """What finishes the product of a group: a kernel of its arguments in `arrays` that leaves its
    results at the addresses in the slots `outputs`."""
    product, (kernel,) = group.lowering.product, group.lowering.kernels
    assert product is not None
    extents = dict(zip(group.dims, call.dims, strict=True))
    operands: list[Value] = []
    for each in plan_called.operands_of(p, kernel, call, arrays, outputs, extents=extents):
        assert not isinstance(each, AddressOf), "what finishes a product has arrays as results"
        operands.append(each)
    name = name_of(without_product(call.function, product.let))
    number = p.program.kernel(kernel, f"finish_{name}")
    return Finish(number, tuple(operands), dims.substitute(kernel.cost, extents))


def _types(product: Product, extents: dict[Symbol, Extent]) -> list[Type]:
    """The types of a product's operands, as they lie in memory, and of the product."""
    found = []
    for atom in (*product.read, *product.let.outs):
        assert atom.type is not None
        found.append(types.substitute(atom.type, extents))
    return found


def _buffers(
    p: FunctionPlanner, let: Let, call: KernelCall, group: Group, made: TensorType | None
) -> tuple[list[int], Value, bool]:
    """The slot of each result's address, where that of the product is, and whether it is no result.
    It needs memory if it is `made` there or is a result; else its address is 0."""
    product = group.lowering.product
    assert product is not None
    uses = Counter(p.buffer(a) for a in call.args if is_array(a))
    read = {p.buffer(call.args[k]) for k in product.operands}
    home = product.result
    if home is None and made is not None:
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
        return outputs, Slot(outputs[home]), False
    if made is None:
        return outputs, ZERO, False
    address = p.frame.slot()
    p.frame.allocate(address, p.bytes_of(made))
    return outputs, Slot(address), True


def _as_large(out: Var, made: TensorType) -> bool:
    ty = out.type
    assert isinstance(ty, TensorType)
    return ty.dtype.size == made.dtype.size and ty.size == made.size
