"""The kernels of a device's library that a program will call, as far as its operations tell.

In: a typed module, before anything is done to it, and what the planner asks of the device. Out:
texts. Another process may compile them meanwhile: they are the longest, and no program's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pyrelay.ir import dims, limits, walk
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Let, Module, OpCall
from pyrelay.ir.types import TensorType
from pyrelay.lower.planning.plan_library import (
    convolution_of,
    extents_of_convolution,
    extents_of_product,
)
from pyrelay.lower.planning.program import known_convolution
from pyrelay.lower.planning.target import Target
from pyrelay.opt.halves import is_half


def foreseen(
    module: Module, target: Target, sizes: Mapping[Symbol, int] = MappingProxyType({})
) -> list[str]:
    """The texts, each once, and those of parts that they call where extents have these `sizes`.
    Products of small matrices are left out: they may become loops. So are parts of those whose
    extents are not known: attention has no use for them."""
    lets = (let for f in module.functions.values() for let in walk.nested_lets(f.body))
    return list(dict.fromkeys(text for let in lets for text in _kernels(let, target, sizes)))


def _kernels(let: Let, target: Target, sizes: Mapping[Symbol, int]) -> Iterator[str]:
    ty = let.outs[0].type if let.outs else None
    if not isinstance(let.rhs, OpCall) or not isinstance(ty, TensorType) or is_half(ty.dtype):
        return
    if let.rhs.op.name == "convolve":
        images = convolution_of(target, let.rhs, ty.dtype, ty.dtype)
        yield images.source
        known_sizes = known_convolution(
            *extents_of_convolution(let.rhs, [*(a.type for a in let.rhs.args), ty]), sizes
        )
        if images.calls is not None and known_sizes is not None:
            yield from images.calls(known_sizes)
    elif let.rhs.op.schedule == "matmul" and ty.dtype.kind == "f":
        most = limits.greatest_size(ty.shape)
        if most is None or most > dims.NEAR:
            kernel = target.matmul(ty.dtype, len(ty.shape) - 2)
            yield kernel.source
            known, *transposed = _product(let.rhs, ty, sizes)
            if kernel.ways is not None and None not in known:
                yield from kernel.ways(known, *transposed)


def _product(
    call: OpCall, ty: TensorType, sizes: Mapping[Symbol, int]
) -> tuple[list[int | None], bool, bool]:
    """The extents of a product, as far as they are known, and whether operands are transposed."""
    a = call.args[0].type
    assert isinstance(a, TensorType)
    known = [dims.evaluated(each, sizes) for each in extents_of_product(call.attrs, a, ty)]
    return known, call.attrs["transpose_a"], call.attrs["transpose_b"]
