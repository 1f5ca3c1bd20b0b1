"""Launches of attention (`attention.py`) and of its derivative (`attention_gradient.py`): one each,
with no more memory than their results.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, KernelCall, Let, OpCall
from pyrelay.ir.types import TensorType
from pyrelay.lower.kernels.kernel import Attended, Kernel
from pyrelay.lower.planning import plan_called
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import (
    AddressOf,
    KernelAddress,
    Launch,
    Slot,
    Value,
    immediate,
)
from pyrelay.lower.planning.plan_library import batch_strides
from pyrelay.lower.planning.program import Group, name_of
from pyrelay.opt.shapes import is_array

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_PICOSECONDS_PER_SCORE = 700  # for its power and its place in maximum and sum


def _type(extents: dict[Symbol, Extent], atom: Atom) -> TensorType:
    """The type of an atom of a group, in extents of the program."""
    assert atom.type is not None
    ty = types.substitute(atom.type, extents)
    assert isinstance(ty, TensorType)
    return ty


def attention(p: FunctionPlanner, let: Let, call: KernelCall, group: Group) -> None:
    """Plan a group that computes attention: parameters as `target.AttentionKernel` says."""
    found, target = group.lowering.attention, p.program.target
    assert found is not None
    extents = dict(zip(group.dims, call.dims, strict=True))
    type_of = functools.partial(_type, extents)
    scores, product = found.scores.rhs, found.product.rhs
    assert isinstance(scores, OpCall)
    assert isinstance(product, OpCall)
    q, k, v = map(type_of, (*scores.args, product.args[1]))
    made, out = type_of(found.scores.outs[0]), type_of(found.product.outs[0])
    turned = scores.attrs["transpose_a"], scores.attrs["transpose_b"], product.attrs["transpose_b"]
    targets, sources = made.shape[-2:]
    width, depth = out.shape[-1], q.shape[-2] if turned[0] else q.shape[-1]
    batch = out.shape[:-2]
    if found.halves is None:
        assert target.attention is not None
        kernel = target.attention(out.dtype)
    else:
        assert target.half_attention is not None
        of, rounded = found.halves
        result = let.outs[0].type
        assert isinstance(result, TensorType)
        kernel = target.half_attention(of, result.dtype, rounded)
    places = [Slot(p.buffer(call.args[place]).slot) for place in found.operands]
    addresses = [p.allocate(each.type) for each in let.outs]
    operands: list[Value] = [*places, *map(Slot, addresses)]
    if not found.statistics:
        operands += [ZERO, ZERO]
    operands += [p.sizes.value(_rows(let.outs[-1]))] if found.kept else [ZERO] * 2
    lines = (each.shape[-1] for each in (q, k, v))
    operands += p.sizes.values(
        (targets, sources, depth, width, *map(int, turned), *lines, int(found.guarded))
    )
    kernels = group.lowering.kernels
    shaping, shape_cost = _shaping(p, call, kernels[0] if kernels else None, extents)
    operands += [*shaping[:1], immediate(len(shaping) - 1)]
    if kernel.scales:
        operands += _scale(p, call, found)
    operands.append(immediate(len(batch)))
    strides = (batch_strides(each, batch) for each in (q, k, v))
    for along in zip(batch, *strides, strict=True):
        operands += p.sizes.values(along)
    operands += shaping[1:]
    blocks = dims.quotient_up(targets, kernel.rows)
    each = dims.add(
        dims.multiply(kernel.picoseconds, dims.add(depth, width)),
        dims.add(_PICOSECONDS_PER_SCORE, shape_cost),
    )
    p.program.expect(kernel.ways)
    p.frame.emit(
        Launch(
            p.program.source(kernel.source, "attention"), tuple(operands),
            p.sizes.value(dims.product((*batch, blocks))),
            p.sizes.value(dims.product((dims.minimum(targets, kernel.rows), sources, each))),
        )
    )
    for made_here, address in zip(let.outs, addresses, strict=True):
        p.define(made_here, (address,))


def _scale(p: FunctionPlanner, call: KernelCall, found: Attended) -> tuple[Value, Value]:
    """How scores are scaled, and by what, if that is all that makes them of products."""
    if found.scale is None:
        return ZERO, ZERO
    divides, number = found.scale
    factor = call.args[number] if isinstance(number, int) else number
    return immediate(1 + divides), p.scalar(factor)


def _rows(atom: Atom) -> Extent:
    """How many rows of a matrix there are."""
    assert isinstance(atom.type, TensorType)
    return atom.type.shape[0]


_ENOUGH = 4  # entries of a batch, so that they are shared as a whole


def gradient(p: FunctionPlanner, let: Let, call: KernelCall, group: Group) -> None:
    """Plan a group that computes the derivative of attention: parameters as
    `target.AttentionGradientKernel` says."""
    found, target = group.lowering.attention_gradient, p.program.target
    assert found is not None
    assert target.attention_gradient is not None
    extents = dict(zip(group.dims, call.dims, strict=True))
    type_of = functools.partial(_type, extents)
    scores, slopes = found.scores.rhs, found.slopes.rhs
    assert isinstance(scores, OpCall)
    assert isinstance(slopes, OpCall)
    q, k, v = map(type_of, (*scores.args, slopes.args[1]))
    made, out = type_of(found.scores.outs[0]), type_of(slopes.args[0])
    turned = scores.attrs["transpose_a"], scores.attrs["transpose_b"], not (
        slopes.attrs["transpose_b"]
    )
    targets, sources = made.shape[-2:]
    width, depth = out.shape[-1], q.shape[-2] if turned[0] else q.shape[-1]
    batch = made.shape[:-2]
    kernel = (
        target.attention_gradient(out.dtype) if found.halves is None
        else target.half_attention_gradient(found.halves)
    )
    assert kernel is not None
    operands: list[Value] = [Slot(p.buffer(call.args[place]).slot) for place in found.operands]
    addresses = [p.allocate(each.type) for each in let.outs]
    left = iter(addresses)
    for wanted in (found.of_q, found.of_k, found.of_v):
        operands.append(ZERO if wanted is None else Slot(next(left)))
    if found.kept is None:
        operands += [ZERO, ZERO]
    else:
        kept = call.args[found.kept]
        operands += [Slot(p.buffer(kept).slot), p.sizes.value(_rows(kept))]
    lines = (each.shape[-1] for each in (q, k, v))
    operands += p.sizes.values(
        (targets, sources, depth, width, *map(int, turned), *lines, int(found.guarded))
    )
    kernels = iter(group.lowering.kernels)
    beside: list[Value] = []
    cost: Extent = 0
    for there in (found.shaped, found.turned_back):
        words, more = _shaping(p, call, next(kernels) if there else None, extents)
        operands += [*words[:1], immediate(len(words) - 1)]
        beside += words[1:]
        cost = dims.add(cost, more)
    entries = dims.product(batch)
    whole = dims.minimum(dims.quotient(entries, _ENOUGH), 1) if kernel.wholes else 0
    operands += [p.sizes.value(whole), immediate(len(batch))]
    strides = (batch_strides(each, batch) for each in (q, k, v))
    for along in zip(batch, *strides, strict=True):
        operands += p.sizes.values(along)
    operands += beside
    blocks = dims.add(
        dims.quotient_up(targets, kernel.rows), dims.quotient_up(sources, kernel.columns)
    )
    # 1 where entries are shared as a whole, else the blocks of rows and of columns of each.
    items = dims.add(blocks, dims.multiply(whole, dims.add(1, dims.multiply(-1, blocks))))
    products = dims.multiply(kernel.picoseconds, dims.add(
        dims.multiply(3, depth), dims.multiply(2, width)
    ))
    each = dims.add(products, dims.add(_PICOSECONDS_PER_SCORE, cost))
    p.program.expect(kernel.ways)
    p.frame.emit(
        Launch(
            p.program.source(kernel.source, "attention_gradient"), tuple(operands),
            p.sizes.value(dims.multiply(entries, items)),
            p.sizes.value(dims.quotient(
                dims.product((targets, sources, each)), dims.maximum(items, 1)
            )),
        )
    )
    for variable, address in zip(let.outs, addresses, strict=True):
        p.define(variable, (address,))


def _shaping(
    p: FunctionPlanner, call: KernelCall, kernel: Kernel | None, extents: dict[Symbol, Extent]
) -> tuple[list[Value], Extent]:
    """A kernel that changes products where they lie: its address (or 0), its operands; its cost."""
    if kernel is None:
        return [ZERO], 0
    arrays: dict[int, Value] = {
        k: Slot(p.buffer(a).slot) for k, a in enumerate(call.args) if is_array(a)
    }
    values: list[Value] = []
    for each in plan_called.operands_of(p, kernel, call, arrays, (), extents=extents):
        assert not isinstance(each, AddressOf)
        values.append(each)
    number = p.program.kernel(kernel, f"scores_{name_of(call.function)}")
    return [KernelAddress(number), *values], dims.substitute(kernel.cost, extents)
