"""Attention as one kernel: blocks of scores are made, used and forgotten.

In: a group that `opt.attention` has made. Out: a `Lowering` that names it, with at most one kernel,
which makes scores of products where they stand (a scale, a mask); `finishing.py` says how the block
of that begins.

For the rows of a block of queries, blocks of keys are taken one after another. The maximum, the sum
of powers and the sum of weighted values are those of the keys so far; a larger maximum scales what
was summed (Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018; Dao et al.,
*FlashAttention*, 2022).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyrelay.ir.nodes import Block, Const, Function, OpCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.lower.kernels.kernel import Attended, Lowering
from pyrelay.lower.planning.finishing import in_place
from pyrelay.opt.attention import Attention
from pyrelay.opt.half_attention import HalfAttention


def attended(
    function: Function, attention: Attention, halves: HalfAttention | None = None
) -> Lowering:
    """The lowering of a group that computes attention, or `halves`."""
    places = {param: k for k, param in enumerate(function.params)}
    scores, product = attention.scores.rhs, attention.product.rhs
    assert isinstance(scores, OpCall)
    assert isinstance(product, OpCall)
    atoms = (*scores.args, product.args[1]) if halves is None else halves.operands
    operands = tuple(places[a] for a in atoms if isinstance(a, Var))
    named = Attended(
        attention.scores, attention.product, operands, attention.guarded,
        len(function.body.results) > 1, bool(attention.kept),
        None if halves is None else (halves.of, halves.rounded), _scale(attention, places),
    )
    if not attention.shaping:
        return Lowering((), attention=named)
    body = Block((attention.scores, *attention.shaping), (attention.scored,))
    shaping = Function(function.name, function.params, body, function.dims, span=function.span)
    return Lowering((in_place(shaping, attention.scores),), attention=named)


def _scale(
    attention: Attention, places: Mapping[Var, int]
) -> tuple[bool, Const | int] | None:
    """Whether scores are products divided by a number, and the number; else they are multiplied by
    it; None where they are anything else."""
    (made,) = attention.scores.outs
    if len(attention.shaping) != 1 or not isinstance(attention.shaping[0].rhs, OpCall):
        return None
    call = attention.shaping[0].rhs
    if call.op.name not in ("divide", "multiply") or len(call.args) != 2 or call.attrs:
        return None
    left, right = call.args
    if call.op.name == "multiply" and right is made:
        left, right = right, left
    ty = right.type
    if left is not made or right is made or not isinstance(ty, TensorType) or ty.rank != 0:
        return None
    assert isinstance(made.type, TensorType)
    if ty.dtype != made.type.dtype:
        return None
    number = right if isinstance(right, Const) else places.get(right)
    return None if number is None else (call.op.name == "divide", number)
