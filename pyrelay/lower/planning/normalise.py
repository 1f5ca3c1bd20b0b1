"""The last step before planning: everything that is not plan code becomes a KernelCall.

In: a module after `fuse`. Out: a module whose OpCalls are plan ops (`plan_ops.PLAN_OPS`) and
library ops with kernels of their own: a single op with an element rule becomes a group, a scan or
scatter becomes loops (`library.py`) unless the device has kernels for it; an array that is one
number, as `np.add.at(x, places, 1)` adds, is not made for these loops. A product that the device
cannot hand to the kernel which finishes it becomes a library op before that kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyrelay.ir import dims, walk
from pyrelay.ir.contents import Contents
from pyrelay.ir.nodes import (
    Atom,
    Block,
    Const,
    Function,
    KernelCall,
    Let,
    Module,
    OpCall,
    Var,
)
from pyrelay.ir.types import DType, TensorType, i64
from pyrelay.lower.kernels.library import expanded, symbols_of
from pyrelay.lower.planning.finishing import without_product
from pyrelay.lower.planning.frame import word_count
from pyrelay.lower.planning.plan_library import convolution_of
from pyrelay.lower.planning.plan_ops import PLAN_OPS
from pyrelay.lower.planning.target import AttentionGradientKernel, AttentionKernel, Target
from pyrelay.opt.attention import attention_of
from pyrelay.opt.attention_gradient import Gradient, gradient_of
from pyrelay.opt.finishing import gates, operands_of, product_of
from pyrelay.opt.grouping import Grouping
from pyrelay.opt.half_attention import HalfAttention, cast_from, half_attention_of
from pyrelay.opt.half_products import half_product_of
from pyrelay.opt.kernel_calls import kernel_call, lets_of
from pyrelay.opt.shapes import shape_of


def kernels_only(module: Module, target: Target) -> Module:
    """Wrap each op that is left outside kernels; everything else stays as it is."""

    def block(old: Block) -> Block:
        numbers: dict[Atom, Const] = {
            let.outs[0]: x for let in old.lets if (x := _number(let)) is not None
        }
        lets = tuple(new for let in old.lets for new in _lets(let, target, block, numbers))
        if numbers:
            lets = _read(Block(lets, old.results), set(numbers))
        return Block(lets, old.results, old.dims)

    functions = {
        name: replace(function, body=block(function.body))
        for name, function in module.functions.items()
    }
    return module.holding(functions)


def _number(let: Let) -> Const | None:
    """The number that a group fills an array with, if that is all that it does."""
    if not isinstance(let.rhs, KernelCall) or let.rhs.args or len(let.outs) != 1:
        return None
    body = let.rhs.function.body
    makers = {out: each.rhs for each in body.lets for out in each.outs}
    (atom,) = body.results
    while isinstance(atom, Var):
        call = makers.get(atom)
        if not isinstance(call, OpCall) or call.op.name not in ("broadcast_to", "expand_dims"):
            return None
        atom = call.args[0]
    return atom


def _read(block: Block, arrays: set[Atom]) -> tuple[Let, ...]:
    """The Lets of a block but for those that make one of these arrays and nobody reads."""
    read = {atom for here in walk.nested_blocks(block) for atom in here.results}
    for let in walk.nested_lets(block):
        read.update(walk.operands(let.rhs))
    unread = arrays - read
    return tuple(let for let in block.lets if unread.isdisjoint(let.outs))


def _lets(
    let: Let, target: Target, block: Callable[[Block], Block], numbers: Mapping[Atom, Const]
) -> tuple[Let, ...]:
    rhs = let.rhs
    if isinstance(rhs, KernelCall):
        fits = _fits(target, let, rhs)
        if fits is False:
            apart = _regrouped(let)
            return tuple(new for each in apart for new in _lets(each, target, block, numbers))
        product = product_of(rhs.function.body) if fits is None else None
        if product is not None and not _takes(target, product, rhs, len(let.outs)):
            return _apart(let, rhs, product)
        return (let,)
    if isinstance(rhs, OpCall):
        if rhs.op.name in PLAN_OPS:
            return (let,)
        if rhs.op.element is not None:
            return (Let(let.outs, group(let), let.dims, span=let.span),)
        if rhs.op.schedule == "scan" and target.scan is not None and _is_even(let, rhs):
            return (let,)
        if rhs.op.schedule == "sort" and (target.sort or target.line_sort):
            return (let,)
        if rhs.op.schedule == "places" and target.places is not None:
            return (let,)
        if rhs.op.schedule == "scatter" and target.scatter is not None and _is_of_rows(rhs):
            return (let,)
        return expanded(let, numbers) or (let,)
    return (Let(let.outs, walk.replace_blocks(rhs, block), let.dims, span=let.span),)


def _is_even(let: Let, call: OpCall) -> bool:
    """Whether all operands are arrays of the result's shape."""
    ty = let.outs[0].type
    assert isinstance(ty, TensorType)
    return all(isinstance(a, Var) and getattr(a.type, "shape", None) == ty.shape for a in call.args)


def _is_of_rows(call: OpCall) -> bool:
    """Whether a scatter writes whole rows: at indices of the leading axes, one row for each."""
    array, values, *indices = (a.type if isinstance(a, Var) else None for a in call.args)
    if not all(isinstance(ty, TensorType) and ty.shape for ty in (array, values, *indices)):
        return False
    assert isinstance(array, TensorType)
    assert isinstance(values, TensorType)
    chosen = {ty for ty in indices if isinstance(ty, TensorType)}
    shape = next(iter(chosen)).shape
    return (
        chosen == {TensorType(i64, shape)} and call.attrs["axes"] == tuple(range(len(indices)))
        and array.dtype == values.dtype and array.dtype.kind in "iufc"
        and values.shape == (*shape, *array.shape[len(indices) :])
    )


def _takes(target: Target, product: Let, call: KernelCall, results: int) -> bool:
    """Whether the device's product hands its parts to a kernel with so many operands."""
    made = product.outs[0].type
    assert isinstance(made, TensorType)
    words = sum(word_count(a.type) for a in call.args) + len(call.dims) + results
    assert isinstance(product.rhs, OpCall)
    if product.rhs.op.schedule == "matmul":
        kernel = target.matmul(made.dtype, made.rank - 2)
        if kernel.panels is None and _is_wider(product, call):
            return False
        return words <= kernel.finishes
    of = operands_of(call.function.body, product)[0].type
    assert isinstance(of, TensorType)
    return words <= convolution_of(target, product.rhs, of.dtype, made.dtype).finishes


def _is_wider(product: Let, call: KernelCall) -> bool:
    """Whether a product is several matrices of the shape of the group's other results."""
    others = [r for r in call.function.body.results if r not in product.outs]
    return bool(others) and gates(product, call.function.body.lets, shape_of(others[0])) > 1


def _fits(target: Target, let: Let, call: KernelCall) -> bool | None:
    """Whether the device has a kernel for attention, its derivative or a product of 16-bit floats;
    None for another group."""
    body = call.function.body
    over_halves = half_attention_of(body)
    if over_halves is not None:
        return _attends(_over_halves(target, over_halves), let, call)
    gradient = gradient_of(body)
    if gradient is not None:
        return _attends(_of_gradient(target, gradient, call), let, call)
    if attention_of(body) is not None:
        return _attends(target.attention, let, call)
    return None if half_product_of(body) is None else target.half_matmul is not None


def _of_gradient(
    target: Target, gradient: Gradient, call: KernelCall
) -> Callable[[DType], AttentionGradientKernel] | None:
    """The device's kernel for a derivative of attention, if it has one."""
    halves = cast_from(call.function.body, gradient)
    if halves is None or target.attention_gradient is None:
        return target.attention_gradient
    found = target.half_attention_gradient(halves)
    return None if found is None else lambda made: found


_STATISTICS = 3
"""Results of attention without scores that are kept."""


def _attends(
    kernel: Callable[[DType], AttentionKernel | AttentionGradientKernel] | None, let: Let,
    call: KernelCall,
) -> bool:
    """Whether the device has a kernel for attention, or its derivative, that takes so many
    operands."""
    ty = let.outs[0].type
    assert isinstance(ty, TensorType)
    if kernel is None:
        return False
    words = sum(word_count(a.type) for a in call.args) + len(call.dims)
    found = kernel(ty.dtype)
    if isinstance(found, AttentionKernel) and len(let.outs) > _STATISTICS and not found.keeps:
        return False
    return words <= found.finishes


def _over_halves(
    target: Target, found: HalfAttention
) -> Callable[[DType], AttentionKernel] | None:
    """The device's kernel for attention over 16-bit floats, if it has one, for a type of result."""
    wanted = target.half_attention
    return None if wanted is None else lambda made: wanted(found.of, made, found.rounded)


def _regrouped(let: Let) -> tuple[Let, ...]:
    """The Lets of a group, in groups as the other Lets of a program."""
    lets = lets_of(let)
    plain = Block(lets, let.outs)
    return Grouping(lets, plain, set(), {}, {}, Contents()).block().lets


def _apart(let: Let, call: KernelCall, product: Let) -> tuple[Let, ...]:
    """The product of a group, and the rest of the group after it."""
    names = walk.Renaming()
    names.atoms.update(zip(call.function.params, call.args, strict=True))
    names.dims.update(zip(call.function.dims, call.dims, strict=True))
    function = without_product(call.function, product)
    read = walk.operands(product.rhs)
    casts = (let for let in call.function.body.lets if let.outs and let.outs[0] in read)
    before = walk.copy_block(Block((*casts, product), product.outs), names)
    (*_, first) = before.lets
    if len(before.lets) > 1:  # of 16-bit floats
        first = kernel_call(before.lets, first.outs, {})
    results = list(zip(let.outs, function.body.results, strict=True))
    itself = [out for out, result in results if result in product.outs]
    if itself:
        first = replace(first, outs=(itself[0],))
        results = [(out, result) for out, result in results if result not in product.outs]
        inner = Block(function.body.lets, tuple(r for _, r in results), function.body.dims)
        function = replace(function, body=inner)
    args = (*call.args, *first.outs)
    taken = set(walk.free_vars(function.body))
    kept = [k for k, param in enumerate(function.params) if param in taken]
    function = replace(function, params=tuple(function.params[k] for k in kept))
    rest = KernelCall(function, tuple(args[k] for k in kept), call.dims)
    return first, Let(tuple(out for out, _ in results), rest, let.dims, span=let.span)


def group(let: Let) -> KernelCall:
    """The op of a Let as a fused group of its own."""
    call = let.rhs
    assert isinstance(call, OpCall)
    args = tuple(dict.fromkeys(a for a in call.args if isinstance(a, Var)))
    names = walk.Renaming()
    symbols = symbols_of(call, (*args, *let.outs))
    inner = tuple(map(names.symbol, symbols))
    params = tuple(map(names.var, args))
    body = walk.copy_block(Block((let,), let.outs), names)
    function = Function(call.op.name, params, body, inner, span=let.span)
    return KernelCall(function, args, tuple(map(dims.of, symbols)))
