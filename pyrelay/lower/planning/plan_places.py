"""Where flags are true, by a device's own kernel.

In: the Let of `true_places`. Out: a launch of the kernel: parameters as `target.PlacesKernel` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrelay.ir import dims
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.types import TensorType
from pyrelay.lower.planning.instructions import Launch, Slot, immediate

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


def places(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """Plan the op by one launch."""
    ty, flags = let.outs[0].type, call.args[0].type
    assert isinstance(ty, TensorType)
    assert isinstance(flags, TensorType)
    kernel = p.program.target.places
    assert kernel is not None
    result, (count,) = p.allocate(ty), flags.shape
    operands = (
        p.scalar(call.args[0]), *p.sizes.values((count,)), Slot(result),
        *p.sizes.values((ty.shape[0],)),
    )
    cost = p.sizes.value(dims.multiply(count, kernel.picoseconds))
    p.frame.emit(Launch(
        p.program.source(kernel.source, call.op.name), operands, immediate(1), cost
    ))
    p.define(let.outs[0], (result,))
