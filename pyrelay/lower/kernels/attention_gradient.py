"""The derivative of attention as one kernel, which makes blocks of scores again.

In: a group that `opt.attention_gradient` has made. Out: a `Lowering` that names it, with up to two
kernels: one that makes scores of products where they stand, as attention has it, and one that makes
cotangents of products of the cotangents of scores, likewise (`finishing.py`).

For a block of scores: p = exp(s - largest) / total, the slopes are do v', the cotangents of the
scores p (slopes - mean); four products add it to the results (Dao, *FlashAttention-2*, 2023,
section 3.1.2).
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir.nodes import Atom, Block, Function, Let, OpCall, Var
from pyrelay.lower.kernels.kernel import AttendedGradient, Lowering
from pyrelay.lower.planning.finishing import in_place
from pyrelay.opt.attention_gradient import Gradient
from pyrelay.opt.half_attention import cast_from


def attended_gradient(function: Function, gradient: Gradient) -> Lowering:
    """The lowering of a group that computes the derivative of attention."""
    makers: dict[Atom, Let] = {out: let for let in gradient.softmax for out in let.outs}
    power = makers[_args(makers[gradient.probabilities])[0]]
    shifted = makers[_args(power)[0]]
    given = (
        *_args(gradient.scores), _args(gradient.slopes)[1], _args(gradient.slopes)[0],
        _root(_args(shifted)[1], makers), _root(_args(makers[gradient.probabilities])[1], makers),
        _args(gradient.centred)[1],
    )  # fmt: skip
    places = {param: k for k, param in enumerate(function.params)}
    halves = cast_from(function.body, gradient)
    if halves is not None:
        casts = {let.outs[0]: _args(let)[0] for let in function.body.lets if len(_args(let)) == 1}
        given = (*(casts[a] for a in given[:4]), *given[4:])  # type: ignore[index]
    kernels = []
    if gradient.shaping:
        lets = (gradient.scores, *gradient.shaping)
        kernels.append(in_place(_part(function, lets, gradient.scored), gradient.scores))
    if gradient.turning:
        product = gradient.product_of_scores
        lets = (product, *gradient.turning)
        kernels.append(in_place(_part(function, lets, gradient.cotangent), product))
    return Lowering(
        tuple(kernels),
        attention_gradient=AttendedGradient(
            gradient.scores, gradient.slopes, gradient.of_q, gradient.of_k, gradient.of_v,
            tuple(places[a] for a in given if isinstance(a, Var)), gradient.guarded,
            bool(gradient.shaping), bool(gradient.turning),
            None if gradient.kept is None else function.params.index(_shown(gradient.kept)),
            halves,
        ),
    )


def _part(function: Function, lets: tuple[Let, ...], result: Atom) -> Function:
    return replace(function, body=Block(lets, (result,)))


def _args(let: Let) -> tuple[Atom, ...]:
    assert isinstance(let.rhs, OpCall)
    return let.rhs.args


def _shown(let: Let) -> Var:
    (kept,) = _args(let)
    assert isinstance(kept, Var)
    return kept


def _root(atom: Atom, makers: dict[Atom, Let]) -> Atom:
    """The parameter that a shift or a divisor is, but where it is replaced."""
    while atom in makers:
        let = makers[atom]
        assert isinstance(let.rhs, OpCall)
        if let.rhs.op.name == "where":  # a shift that is finite, or a sum that is not 0
            atom = next(a for a in let.rhs.args[1:] if isinstance(a, Var))
        else:
            atom = let.rhs.args[0]
    return atom
