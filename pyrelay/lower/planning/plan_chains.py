"""Convolutions of single channels between such of one tap: one launch, nothing in memory between.

In: a block. Out: chains of Lets, each a convolution and what finishes it, of which every one but
the last is read by the next one only. Where the sizes of a call are such that what lies between is
much, and its parts fit the room that the device's kernel has, one launch takes the place of theirs;
else they are launched one by one. Sizes are known when the program runs: all of these launches are
in the plan, and the extents of some of them are 0 then, as are the sizes of what lies between.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, KernelCall, Let, OpCall, Var
from pyrelay.ir.types import TensorType, Type
from pyrelay.lower.planning import plan_finishing
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import KernelAddress, Launch, Slot, Value
from pyrelay.lower.planning.plan_library import Finish, finishing, launch_product
from pyrelay.lower.planning.target import FORWARD, ChainKernel
from pyrelay.opt.finishing import finishes, product_of
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner

_LEAST_BYTES = 2**20  # of what lies between, which does not stay in the second cache
_LEAST_POSITIONS = 100  # of an image
_POSITIONS = 1200  # of an image, up to which it is one band; about so many of a band otherwise
_UNITS = 4  # bands of all images, for threads to share them; fewer than twice as many are even
_HALO = 3  # so many times the rows that two bands see both has a band


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution, in extents of the program: `types` are those of its operands and its value.
    `group` is the call that finishes it, if any does."""

    let: Let
    operation: OpCall
    image: Atom
    weights: Atom
    types: tuple[TensorType, TensorType, TensorType]
    group: KernelCall | None


@dataclass(frozen=True, slots=True)
class Chain:
    """Layers that one launch computes where `when` is 1, and not where it is 0; the first of them
    is absent where there are two. `bands`: parts of the rows of an image."""

    layers: tuple[Layer, ...]
    when: Extent
    bands: Extent


@dataclass(frozen=True, slots=True)
class Launched:
    """What a layer is launched with: addresses of its image, its weights and its value."""

    image: Value
    weights: Value
    value: Value
    finish: Finish | None


def find(p: FunctionPlanner, block: Block) -> None:
    """Note in `p.chains` the block's chains, by their Lets. What they read is read where the last
    of them stands."""
    if p.program.target.chain is None or p.part is not None:
        return
    found = [(k, let) for k, let in enumerate(block.lets) if _is_convolution(let)]
    if len(found) < 2:
        return
    uses = Counter(block.results)
    for let in block.lets:
        uses.update(walk.operands(let.rhs))
        for inner in walk.blocks(let.rhs):
            uses.update(walk.free_vars(inner))
    layers: dict[Atom, Layer] = {}
    later: dict[Var, int] = {}
    for k, let in found:
        layer = _layer(p, let)
        if layer is None:
            continue
        layers[let.outs[0]] = layer
        chain = _ending(p, layer, layers, uses)
        if chain is not None:
            p.chains.update((each.let, chain) for each in chain.layers)
            for each in chain.layers:
                later.update((v, k) for v in walk.operands(each.let.rhs) if v in p.scope.last)  # type: ignore[misc]
    if later:
        last = p.scope.last
        p.scope.last = {**last, **{v: max(k, last[v]) for v, k in later.items()}}


def _is_convolution(let: Let) -> bool:
    rhs = let.rhs
    lets = rhs.function.body.lets if isinstance(rhs, KernelCall) else (let,)
    return len(let.outs) == 1 and any(
        isinstance(each.rhs, OpCall) and each.rhs.op.name == "convolve" for each in lets
    )


def _layer(p: FunctionPlanner, let: Let) -> Layer | None:
    """The convolution of a Let with one result, which is as large as that of the convolution."""
    rhs, (out,) = let.rhs, let.outs
    if isinstance(rhs, OpCall):
        operation, operands, group = rhs, rhs.args, None
        kinds: Sequence[Type | None] = [a.type for a in (*operands, out)]
    else:
        assert isinstance(rhs, KernelCall)
        lowered = p.program.lowering(rhs.function)
        product = lowered.lowering.product
        if product is None or product.result is not None or product.gates != 1:
            return None
        if any(kernel.sites for kernel in lowered.lowering.kernels):
            return None
        own = product_of(rhs.function.body)
        assert own is not None
        if not finishes(own, rhs.function.body.lets, shape_of(rhs.function.body.results[0])):
            return None
        assert isinstance(product.let.rhs, OpCall)
        if product.read != product.let.rhs.args:
            return None
        names = walk.Renaming()
        names.dims.update(zip(lowered.dims, rhs.dims, strict=True))
        operation = replace(product.let.rhs, attrs=names.attrs(product.let.rhs.attrs))
        operands, group = tuple(rhs.args[k] for k in product.operands), rhs
        of = (*product.let.rhs.args, *product.let.outs)
        kinds = [a.type and types.substitute(a.type, names.dims) for a in of]
    if operation.op.name != "convolve" or operation.attrs["channels_last"] or len(operands) != 2:
        return None
    x, w, y = kinds
    assert isinstance(x, TensorType)
    assert isinstance(w, TensorType)
    assert isinstance(y, TensorType)
    if x.rank > 4 or not x.dtype == y.dtype == getattr(out.type, "dtype", None):
        return None
    if x.dtype.size < 4 or out in p.rows or out in p.commits:
        return None
    return Layer(let, operation, *operands, (x, w, y), group)


def _is_plain(layer: Layer) -> bool:
    """Whether every position sees itself only."""
    attrs, (x, w, y) = layer.operation.attrs, layer.types
    return (
        attrs["groups"] == 1 and set(attrs["stride"]) == {1} and set(attrs["before"]) == {0}
        and set(w.shape[2:]) == {1} and x.shape[2:] == y.shape[2:]
    )  # fmt: skip


def _is_single(layer: Layer) -> bool:
    """Whether every channel is by itself."""
    x, w, _ = layer.types
    return layer.operation.attrs["groups"] == x.shape[1] == w.shape[0] and w.shape[1] == 1


def _ending(
    p: FunctionPlanner, last: Layer, layers: dict[Atom, Layer], uses: Counter[Atom]
) -> Chain | None:
    """The chain that ends with a layer, if there is one and it may ever pay."""

    def before(layer: Layer) -> Layer | None:
        found = layers.get(layer.image)
        if found is None or uses[layer.image] != 1 or found.let in p.chains:
            return None
        return found

    single = before(last)
    if not _is_plain(last) or single is None or not _is_single(single):
        return None
    first = before(single)
    chosen = [single, last] if first is None or not _is_plain(first) else [first, single, last]
    assert p.program.target.chain is not None
    kernel = p.program.target.chain(last.types[0].dtype)
    if any(_words(each) > kernel.finishes for each in chosen):
        return None
    bands = _bands(single)
    when = _when(kernel, chosen, bands)
    return Chain(tuple(chosen), when, bands) if when != 0 else None


def _words(layer: Layer) -> int:
    """At most so many operands has what finishes a layer."""
    return 0 if layer.group is None else 2 * len(layer.group.args) + len(layer.group.dims) + 1


def _rows_and_columns(layer: Layer) -> list[tuple[Extent, ...]]:
    """For both axes the extents of the image, the weights and the result, the stride, the dilation,
    the zeros before."""
    attrs, (x, w, y) = layer.operation.attrs, layer.types
    axes = zip(
        x.shape[2:], w.shape[2:], y.shape[2:], attrs["stride"], attrs["dilation"], attrs["before"],
        strict=True,
    )
    return [(1, 1, 1, 1, 1, 0)] * (4 - x.rank) + list(axes)


def _at_least(extent: Extent, least: Extent) -> Extent:
    """1 if an extent is at least as large, else 0."""
    return dims.minimum(dims.quotient(extent, least), 1)


def _not(flag: Extent) -> Extent:
    return dims.add(1, dims.multiply(-1, flag))


def _bands(single: Layer) -> Extent:
    """An even number of bands for each image, or one."""
    positions = dims.product(single.types[0].shape[2:])
    several = dims.minimum(dims.quotient(positions, _POSITIONS), 1)
    pairs = dims.quotient_up(positions, 2 * _POSITIONS)
    return dims.add(dims.product((2, pairs, several)), _not(several))


def _when(kernel: ChainKernel, layers: Sequence[Layer], bands: Extent) -> Extent:
    """1 where one launch is better, else 0."""
    single, last = layers[-2:]
    x, outputs = single.types[0], last.types[2].shape[1]
    entries, channels = x.shape[:2]
    (rows, taps, made_rows, stride, step, _), (columns, _, made_columns, *_) = (
        _rows_and_columns(single)
    )
    room = kernel.room // x.dtype.size // kernel.channels
    high = dims.quotient_up(made_rows, bands)
    beyond = dims.add(dims.multiply(dims.add(taps, -1), step), 1)  # rows that a row sees
    seen = dims.add(dims.multiply(dims.add(high, -1), stride), beyond)
    made = dims.maximum(dims.multiply(high, made_columns), 1)
    positions = dims.multiply(rows, columns)
    one = _not(dims.minimum(dims.quotient(bands, 2), 1))
    both = dims.maximum(dims.add(beyond, dims.multiply(-1, stride)), 1)
    far = _at_least(dims.multiply(high, stride), dims.multiply(_HALO, both))
    units = dims.multiply(entries, bands)
    even = _not(dims.remainder(units, 2))
    conditions = [
        _at_least(dims.product((entries, channels, positions)), _LEAST_BYTES // x.dtype.size),
        _at_least(positions, _LEAST_POSITIONS),
        _at_least(channels, dims.maximum(dims.multiply(2, outputs), 1)),
        _at_least(room, made),
        dims.maximum(one, far),
        _at_least(units, _UNITS),
        dims.maximum(even, _at_least(units, 2 * _UNITS)),
    ]
    if len(layers) == 3:
        lines = dims.maximum(dims.minimum(seen, rows), 1)
        conditions.append(_at_least(room, dims.multiply(lines, dims.maximum(columns, 1))))
    return functools.reduce(dims.minimum, conditions)


def layer(p: FunctionPlanner, let: Let) -> None:
    """Plan one of a chain's Lets: all of them where the last one stands, as that is where every
    size is known."""
    chain = p.chains[let]
    if let is not chain.layers[-1].let:
        return
    launched = [_alone(p, chain, each) for each in chain.layers]
    _launch(p, chain, launched)
    for each in chain.layers[:-1]:
        p.release(each.let)


def _alone(p: FunctionPlanner, chain: Chain, here: Layer) -> Launched:
    """The launch of a layer where sizes are not such that the chain is one."""
    share, (out,) = _not(chain.when), here.let.outs
    if here is chain.layers[-1]:
        address = p.make(out)
    else:
        address = p.frame.slot()
        size = dims.product((out.type.size, out.type.dtype.size, share))  # type: ignore[union-attr]
        p.frame.allocate(address, p.sizes.value(size), passing=True)
        p.define(out, (address,))
    finish = None if here.group is None else _finish(p, here, address, here is chain.layers[-1])
    x, w = (Slot(p.buffer(a).slot) for a in (here.image, here.weights))
    if share != 0:
        launch_product(p, here.operation, here.types, (x, w, Slot(address)), None, finish, share)
    return Launched(x, w, Slot(address), finish)


def _finish(p: FunctionPlanner, here: Layer, address: int, last: bool) -> Finish:
    """What finishes a layer: in place but for the last one, whose product lies in its result."""
    call = here.group
    assert call is not None
    group = p.program.lowering(call.function)
    if not last:
        group = p.program.in_place(group, call.function)
    arrays: dict[int, Value] = {
        k: Slot(p.buffer(a).slot) for k, a in enumerate(call.args) if is_array(a)
    }
    return plan_finishing.finish_of(p, call, group, arrays, [address])


def _launch(p: FunctionPlanner, chain: Chain, launched: Sequence[Launched]) -> None:
    """The launch of a chain: parameters as `target.ChainKernel` says."""
    single, last = chain.layers[-2:]
    target = p.program.target
    assert target.chain is not None
    dtype = last.types[2].dtype
    kernel, alone = target.chain(dtype), target.convolution(dtype, FORWARD, False)
    whole = len(chain.layers) == 3
    entries, between = single.types[0].shape[:2]
    channels: Extent = chain.layers[0].types[0].shape[1] if whole else 0
    outputs = last.types[2].shape[1]
    axes = _rows_and_columns(single)
    absent = () if whole else (ZERO,)
    operands: list[Value] = [
        launched[0].image, *absent, *(each.weights for each in launched), launched[-1].value
    ]
    operands += p.sizes.values((entries, channels, between, outputs, chain.bands))
    for axis in axes:
        operands += p.sizes.values(axis)
    operands.append(KernelAddress(p.program.source(alone.source, "convolve")))
    finished = [None] * len(absent) + [each.finish for each in launched]
    for finish in finished:
        operands += finishing(finish)
    for finish in finished:
        operands += () if finish is None else finish.operands
    (rows, taps0, made_rows, *_), (columns, taps2, made_columns, *_) = axes
    made = dims.multiply(made_rows, made_columns)
    products = dims.product((between, dims.add(
        dims.product((channels, rows, columns)),
        dims.multiply(made, dims.add(outputs, dims.multiply(taps0, taps2))),
    )))
    cost = dims.quotient(dims.multiply(products, alone.picoseconds), chain.bands)
    units = dims.product((entries, chain.bands, chain.when))
    p.program.expect(kernel.calls)
    p.frame.emit(
        Launch(
            p.program.source(kernel.source, "convolve_chain"), tuple(operands),
            p.sizes.value(units), p.sizes.value(cost), evenly=True,
        )
    )
