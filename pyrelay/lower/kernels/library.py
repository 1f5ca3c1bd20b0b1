"""Ops without an element rule as kernels of loops over elements: scans, scatters and places.

In: the Let of such an op. Out: Lets that compute the same, a KernelCall whose function
`kernelise` turns into one serial kernel that writes its result's buffer in place (`opt.scans` has
the loops).
"""

from __future__ import annotations

from collections.abc import Iterable

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Atom, Function, KernelCall, Let, OpCall, Var
from pyrelay.ir.types import TensorType, Type
from pyrelay.opt.scans import MAKERS, WRITERS


def expanded(let: Let) -> tuple[Let, ...] | None:
    """The Lets in place of a scan or scatter; None for another op."""
    call = let.rhs
    if not isinstance(call, OpCall) or call.op.schedule not in WRITERS:
        return None
    build = Builder(let.span)
    args: tuple[Atom, ...] = call.args
    if call.op.schedule in MAKERS:
        args = (*args, build.undef(_tensor(let.outs[0].type)).atom)
    symbols = symbols_of(call, (*args, *let.outs))
    names = walk.Renaming()
    inner = tuple(map(names.symbol, symbols))
    params = tuple(Var("x", types.substitute(_tensor(a.type), names.dims)) for a in args)
    body = Builder(let.span)
    handles = tuple(map(body.handle, params))
    result = WRITERS[call.op.schedule](body, call.op.name, handles, names.attrs(call.attrs))
    function = Function(call.op.name, params, body.block((result,)), inner, span=let.span)
    node = KernelCall(function, args, tuple(map(dims.of, symbols)))
    return (*build.lets, Let(let.outs, node, span=let.span))


def _tensor(ty: Type | None) -> TensorType:
    assert isinstance(ty, TensorType)
    return ty


def symbols_of(call: OpCall, atoms: Iterable[Atom]) -> tuple[Symbol, ...]:
    """The symbols in the shapes of an op's operands and results, and in its attributes."""
    found = [s for a in atoms for s in types.type_symbols(_tensor(a.type))]
    for value in call.attrs.values():
        found += walk.attr_symbols(value)
    return tuple(dict.fromkeys(found))
