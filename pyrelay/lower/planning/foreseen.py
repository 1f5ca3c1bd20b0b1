"""The kernels of a device's library that a program will call, as far as its operations tell.

In: a typed module, before anything is done to it, and what the planner asks of the device. Out:
texts. Another process may compile them meanwhile: they are the longest, and no program's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyrelay.ir import dims, limits, walk
from pyrelay.ir.nodes import Let, Module, OpCall
from pyrelay.ir.types import TensorType
from pyrelay.lower.planning.plan_library import convolution_of
from pyrelay.lower.planning.target import Target
from pyrelay.opt.halves import is_half


def foreseen(module: Module, target: Target) -> list[str]:
    """The texts, each once. Products of small matrices are left out: they may become loops."""
    lets = (let for f in module.functions.values() for let in walk.nested_lets(f.body))
    return list(dict.fromkeys(text for let in lets for text in _kernels(let, target)))


def _kernels(let: Let, target: Target) -> Iterator[str]:
    ty = let.outs[0].type if let.outs else None
    if not isinstance(let.rhs, OpCall) or not isinstance(ty, TensorType) or is_half(ty.dtype):
        return
    if let.rhs.op.name == "convolve":
        yield convolution_of(target, let.rhs, ty.dtype, ty.dtype).source
    elif let.rhs.op.schedule == "matmul" and ty.dtype.kind == "f":
        most = limits.greatest_size(ty.shape)
        if most is None or most > dims.NEAR:
            yield target.matmul(ty.dtype, len(ty.shape) - 2).source
