"""Ops without an element rule as kernels of loops over elements: scans, scatters and places.

In: the Let of such an op. Out: Lets that compute the same, a KernelCall whose function
`kernelise` turns into one serial kernel that writes its result's buffer in place (`opt.scans` has
the loops).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Atom, Const, Function, KernelCall, Let, OpCall, Var
from pyrelay.ir.types import TensorType, Type
from pyrelay.opt.scans import MAKERS, WRITERS


def expanded(let: Let, numbers: Mapping[Atom, Const]) -> tuple[Let, ...] | None:
    """The Lets in place of a scan or scatter; None for another op. `numbers`: what is known to have
    one number everywhere; what is scattered of it is not read from memory."""
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
    given: dict[Atom, Const] = {}
    if call.op.schedule == "scatter" and args[1] in numbers:
        given[args[1]] = numbers[args[1]]
    made = [Var("x", types.substitute(_tensor(a.type), names.dims)) for a in args]
    body = Builder(let.span)
    handles = tuple(body.handle(given.get(a, var)) for a, var in zip(args, made, strict=True))
    params = tuple(var for a, var in zip(args, made, strict=True) if a not in given)
    args = tuple(a for a in args if a not in given)
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
