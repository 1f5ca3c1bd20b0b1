"""Products of matrices and images of 16-bit floats, which tensor cores take as they are.

In: Core before fusion, in which such a product is that of its operands cast to float32 (`halves`,
and `@` of bfloat16). Out: Core in which the casts and the product stand in one `KernelCall`, whose
operands are the matrices of 16 bits; a transposed one is a flag of the product. A cast of the
result back to their type is part of it where nothing else reads the result. Casts that nothing
else reads are gone. Convolutions and their derivatives likewise. Products of matrices inside of
loops stay, since a kernel that runs a loop has its own.

`half_product_of` finds the same in the body of such a group.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyrelay.ir import walk
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Atom, Attrs, Block, KernelCall, Let, Module, OpCall, Var
from pyrelay.ir.types import DType, TensorType, f32
from pyrelay.opt.dce import dce
from pyrelay.opt.halves import is_half
from pyrelay.opt.kernel_calls import kernel_call
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module

_FLAGS = "transpose_a", "transpose_b"


def half_products(module: Module) -> Module:
    """The module with products of 16-bit floats in kernel calls of their own."""
    readers = Counter(
        atom for function in module.functions.values() for atom in _read(function.body)
    )
    found = rewrite_module(module, functools.partial(_rule, readers))
    return module if found is module else dce(found)


def _read(block: Block) -> Iterator[Atom]:
    """What a block and those in it read, once for each time."""
    yield from block.results
    for let in block.lets:
        yield from walk.operands(let.rhs)
        for inner in walk.blocks(let.rhs):
            yield from _read(inner)


def half_product_of(body: Block) -> Let | None:
    """The product of the group that a body is, if it is one of 16-bit floats."""
    products = [let for let in body.lets if _is_product(let)]
    others = (let for let in body.lets if let not in products)
    if len(products) != 1 or not all(walk.is_call(let, "cast") for let in others):
        return None
    (product,) = products
    place = body.lets.index(product)
    made = {let.outs[0] for let in body.lets[:place]}
    back = body.lets[place + 1 :]
    ends = len(back) < 2 and all(walk.call_of(let).args == product.outs for let in back)
    ends = ends and {_dtype(let.outs[0]) for let in back} <= {
        _dtype(a) for let in body.lets[:place] for a in walk.call_of(let).args
    }
    whole = ends and set(walk.call_of(product).args) == made and body.results == body.lets[-1].outs
    return product if whole else None


def _rule(
    readers: Mapping[Atom, int], let: Let, builder: Builder, scope: Scope
) -> Replacement:
    if not isinstance(let.rhs, OpCall):
        return None
    if let.rhs.op.name == "cast":
        return _narrow(readers, let, builder, scope)
    if not _is_product(let) or (walk.is_call(let, "matmul") and scope.loops):
        return None
    call = walk.call_of(let)
    casts = [_cast(atom, scope) for atom in call.args]
    types = {c.rhs.args[0].type.dtype for c in casts if c is not None}  # type: ignore[union-attr]
    if None in casts or len(types) != 1:
        return None
    members: dict[Atom, Let] = {}
    args: list[Atom] = []
    flags = [walk.is_call(let, "matmul") and call.attrs[name] for name in _FLAGS]
    for k, cast in enumerate(casts):
        assert cast is not None
        source = walk.call_of(cast).args[0]
        made = scope.op(source, "transpose")
        before = turned(made) if made is not None and walk.is_call(let, "matmul") else None
        if before is not None:
            source, flags[k] = before, not flags[k]
        if source not in members:
            ty = source.type
            assert isinstance(ty, TensorType)
            wide = Var("wide", TensorType(f32, ty.shape), span=let.span)
            rhs = OpCall(walk.call_of(cast).op, (source,), walk.call_of(cast).attrs)
            members[source] = Let((wide,), rhs, span=let.span)
        args.append(members[source].outs[0])
    attrs = call.attrs
    if walk.is_call(let, "matmul"):
        attrs = Attrs(**dict(zip(_FLAGS, flags, strict=True)))
    product = Let(let.outs, OpCall(call.op, tuple(args), attrs), span=let.span)
    builder.lets.append(kernel_call((*members.values(), product), let.outs, {}))
    return let.outs


def _narrow(
    readers: Mapping[Atom, int], let: Let, builder: Builder, scope: Scope
) -> Replacement:
    """A cast of a product to the type of its operands, as a part of it."""
    (atom,) = walk.call_of(let).args
    made = scope.definitions.get(atom) if isinstance(atom, Var) else None
    if made is None or readers[atom] != 1 or not isinstance(made.rhs, KernelCall):
        return None
    group, (out,) = made.rhs, let.outs
    body = group.function.body
    assert isinstance(out.type, TensorType)
    types = {a.type.dtype for a in group.args if isinstance(a.type, TensorType)}
    if half_product_of(body) is not body.lets[-1] or types != {out.type.dtype}:
        return None
    inner = Let(
        (Var(out.name, replace(body.results[0].type, dtype=out.type.dtype), span=let.span),),  # type: ignore[type-var]
        OpCall(walk.call_of(let).op, body.results, walk.call_of(let).attrs), span=let.span,
    )
    function = replace(group.function, body=Block((*body.lets, inner), inner.outs))
    builder.lets.append(Let(let.outs, replace(group, function=function), span=let.span))
    return let.outs


def _dtype(atom: Atom) -> DType:
    assert isinstance(atom.type, TensorType)
    return atom.type.dtype


def _cast(atom: Atom, scope: Scope) -> Let | None:
    """The cast of a matrix of 16-bit floats to float32 that an atom is."""
    made = scope.definitions.get(atom) if isinstance(atom, Var) else None
    if made is None or not walk.is_call(made, "cast"):
        return None
    source, ty = walk.call_of(made).args[0].type, made.outs[0].type
    assert isinstance(source, TensorType)
    assert isinstance(ty, TensorType)
    return made if ty.dtype == f32 and is_half(source.dtype) else None


def turned(call: OpCall) -> Atom | None:
    """What a call gives the transpose of, in its last two axes."""
    if call.op.name != "transpose":
        return None
    axes = call.attrs["axes"]
    rank = len(axes)
    return call.args[0] if axes == (*range(rank - 2), rank - 1, rank - 2) else None


def _is_product(let: Let) -> bool:
    """Whether a Let is a product of matrices, or one of those of convolutions."""
    if not isinstance(let.rhs, OpCall) or let.dims:
        return False
    return let.rhs.op.schedule in ("matmul", "convolution")
