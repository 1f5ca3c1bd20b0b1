"""Launches of attention (`attention.py`): one, with no more memory than its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, KernelCall, Let, OpCall
from pyrelay.ir.types import TensorType
from pyrelay.lower import plan_kernels
from pyrelay.lower.frame import ZERO
from pyrelay.lower.instructions import AddressOf, KernelAddress, Launch, Slot, Value, immediate
from pyrelay.lower.memory import is_array
from pyrelay.lower.plan_library import batch_strides
from pyrelay.lower.program import Group, name_of

if TYPE_CHECKING:
    from pyrelay.lower.plan_function import FunctionPlanner

_PICOSECONDS_PER_SCORE = 700  # for its power and its place in maximum and sum


def attention(p: FunctionPlanner, let: Let, call: KernelCall, group: Group) -> None:
    """Plan a group that computes attention: parameters as `target.AttentionKernel` says."""
    found, target = group.lowering.attention, p.program.target.attention
    assert found is not None
    assert target is not None
    extents = dict(zip(group.dims, call.dims, strict=True))

    def type_of(atom: Atom) -> TensorType:
        assert atom.type is not None
        ty = types.substitute(atom.type, extents)
        assert isinstance(ty, TensorType)
        return ty

    scores, product = found.scores.rhs, found.product.rhs
    assert isinstance(scores, OpCall)
    assert isinstance(product, OpCall)
    q, k, v = map(type_of, (*scores.args, product.args[1]))
    made, out = type_of(found.scores.outs[0]), type_of(found.product.outs[0])
    turned = scores.attrs["transpose_a"], scores.attrs["transpose_b"], product.attrs["transpose_b"]
    targets, sources = made.shape[-2:]
    width, depth = out.shape[-1], q.shape[-2] if turned[0] else q.shape[-1]
    batch = out.shape[:-2]
    kernel = target(out.dtype)
    places = [Slot(p.buffer(call.args[place]).slot) for place in found.operands]
    address = p.allocate(let.outs[0].type)
    operands: list[Value] = [*places, Slot(address)]
    lines = (each.shape[-1] for each in (q, k, v))
    operands += p.sizes.values(
        (targets, sources, depth, width, *map(int, turned), *lines, int(found.guarded))
    )
    shaping, shape_cost = _shaping(p, call, group)
    operands += [*shaping[:1], immediate(len(shaping) - 1), immediate(len(batch))]
    strides = (batch_strides(each, batch) for each in (q, k, v))
    for along in zip(batch, *strides, strict=True):
        operands += p.sizes.values(along)
    operands += shaping[1:]
    blocks = dims.quotient(dims.add(targets, kernel.rows - 1), kernel.rows)
    each = dims.add(
        dims.multiply(kernel.picoseconds, dims.add(depth, width)),
        dims.add(_PICOSECONDS_PER_SCORE, dims.substitute(shape_cost, extents)),
    )
    p.frame.emit(
        Launch(
            p.program.source(kernel.source, "attention"), tuple(operands),
            p.sizes.value(dims.product((*batch, blocks))),
            p.sizes.value(dims.product((dims.minimum(targets, kernel.rows), sources, each))),
        )
    )
    p.define(let.outs[0], (address,))


def _shaping(p: FunctionPlanner, call: KernelCall, group: Group) -> tuple[list[Value], Extent]:
    """The kernel that makes scores of products: its address (or 0) and its operands; its cost."""
    if not group.lowering.kernels:
        return [ZERO], 0
    (kernel,) = group.lowering.kernels
    arrays: dict[int, Value] = {
        k: Slot(p.buffer(a).slot) for k, a in enumerate(call.args) if is_array(a)
    }
    values: list[Value] = []
    for each in plan_kernels.operands_of(p, kernel, call, arrays, ()):
        assert not isinstance(each, AddressOf)
        values.append(each)
    number = p.program.kernel(kernel, f"scores_{name_of(call.function)}")
    return [KernelAddress(number), *values], kernel.cost
