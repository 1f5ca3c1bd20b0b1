"""Eigenvalues and singular values alone, where nobody reads the vectors.

In: a module whose derivatives are expanded, so that what reads the vectors is in sight. Out: one
where `eigh`, `eig` and `svd` of which only the values are read are `eigvalsh`, `eigvals` and
`svdvals`, which cost a quarter of that. Singular values of a matrix of which there is a
pseudoinverse too, as in `np.linalg.lstsq`, are the same as those that that is made of.
"""

from __future__ import annotations

from pyrelay.ir import walk
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Atom, Function, Let, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.opt.rewrite import Replacement, Scope, rewrite

#: The op that gives some of the results of another alone, and which.
_ALONE = {"eigh": ("eigvalsh", (0,)), "eig": ("eigvals", (0, 1)), "svd": ("svdvals", (1,))}


def spectra(module: Module) -> Module:
    """The module without vectors that nobody reads."""
    return module.holding({name: _of(f) for name, f in module.functions.items()})


def _of(function: Function) -> Function:
    found = {
        let for let in walk.nested_lets(function.body)
        if isinstance(let.rhs, OpCall) and let.rhs.op.name in _ALONE
    }
    if not found:
        return function
    read: set[Atom] = set(function.body.results)
    for let in walk.nested_lets(function.body):
        read.update(walk.operands(let.rhs))
        for block in walk.blocks(let.rhs):
            read.update(block.results)
    inverted = {
        let.rhs.args[0] for let in walk.nested_lets(function.body)
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "pinv"
    }  # fmt: skip
    outs = {
        out for let in found if walk.operands(let.rhs)[0] not in inverted and not any(
            each in read for k, each in enumerate(let.outs) if k not in _kept(let)
        ) for out in let.outs
    }  # fmt: skip

    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        if not let.outs or let.outs[0] not in outs:
            return None
        assert isinstance(let.rhs, OpCall)
        name, kept = _ALONE[let.rhs.op.name]
        types = tuple(a.type for a in let.rhs.args)
        attrs = {k: v for k, v in let.rhs.attrs.items() if k == "upper"}
        made = builder.call(OPS[name], *let.rhs.args, **attrs)
        values = dict(zip(kept, made if len(kept) > 1 else (made,), strict=True))
        return [
            values[k].atom if k in values else builder.undef(ty).atom
            for k, ty in enumerate(let.rhs.op.relation(types, let.rhs.attrs))
        ]

    return rewrite(function, rule)


def _kept(let: Let) -> tuple[int, ...]:
    assert isinstance(let.rhs, OpCall)
    return _ALONE[let.rhs.op.name][1]
