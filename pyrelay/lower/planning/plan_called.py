"""What kernels of fused groups are given, and which of them another kernel may call for an item.

In: the call of a fused group. Out: the operands of its kernels; its one kernel, if another one may
call it in place of a launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Const, KernelCall, Let, Var
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.planning.instructions import AddressOf, Operand, Slot, Value
from pyrelay.opt.shapes import is_array

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


def operands_of(
    p: FunctionPlanner, kernel: kernel_ir.Kernel, call: KernelCall, arrays: Mapping[int, Value],
    outputs: Sequence[int], scratch: Sequence[Value] = (),
    extents: Mapping[Symbol, Extent] | None = None,
) -> tuple[Operand, ...]:
    """What a kernel's parameters are, but for those that a product fills in. Sizes that the kernel
    is told are made of what stands in `extents`."""
    operands: list[Operand] = []
    for parameter in kernel.parameters:
        k = parameter.position
        match parameter.role:
            case kernel_ir.ARRAY:
                operands.append(arrays[k])
            case kernel_ir.SCALAR:
                operands += p.value(call.args[k])
            case kernel_ir.EXTENT:
                size = parameter.size
                given = call.dims[k] if size is None else dims.substitute(size, extents or {})
                operands.append(p.sizes.value(given))
            case kernel_ir.OUTPUT:
                operands.append(Slot(outputs[k]))
            case kernel_ir.SLOT:
                operands.append(AddressOf(outputs[k]))
            case kernel_ir.SCRATCH | kernel_ir.ROW:
                operands.append(scratch[k])
    return tuple(operands)


def only_kernel(p: FunctionPlanner, call: KernelCall) -> kernel_ir.Kernel | None:
    """The kernel of a fused group, if it is one that another kernel may call for an item: it writes
    nothing but its results, and finds its scalars where it is."""
    found = p.program.lowering(call.function).lowering
    if len(found.kernels) != 1 or found.scratch or found.written or found.long is not None:
        return None
    if any(alias is not None for alias in found.aliases) or found.product is not None:
        return None
    if found.attention or found.attention_gradient or found.half_product:
        return None
    (kernel,) = found.kernels
    for parameter in kernel.parameters:
        if parameter.role == kernel_ir.SCALAR:
            # Another kernel finds it where it lies; this one would wait for what computes it.
            atom = call.args[parameter.position]
            if not isinstance(atom, Const) and atom not in p.params:
                return None
        elif parameter.role not in (kernel_ir.ARRAY, kernel_ir.EXTENT, kernel_ir.OUTPUT):
            return None
    return None if kernel.routines else kernel


def operands_without_results(
    p: FunctionPlanner, kernel: kernel_ir.Kernel, call: KernelCall
) -> list[Value]:
    """What the parameters are of a kernel that another one calls for an item."""
    arrays: dict[int, Value] = {
        k: Slot(p.buffer(a).slot) for k, a in enumerate(call.args) if is_array(a)
    }
    operands: list[Value] = []
    for each in operands_of(p, kernel_ir.without_results(kernel), call, arrays, ()):
        assert not isinstance(each, AddressOf)
        operands.append(each)
    return operands


def keep(p: FunctionPlanner, maker: Let, number: int) -> None:
    """What a Let reads has to be there until the one of this number."""
    read = {a: number for a in walk.operands(maker.rhs) if isinstance(a, Var)}
    last = p.scope.last
    p.scope.last = {**last, **{a: max(last[a], k) for a, k in read.items() if a in last}}
