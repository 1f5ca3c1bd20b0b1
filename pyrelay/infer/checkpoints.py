"""Calls of what `pyrelay.checkpoint` makes: of these a derivative keeps the arguments only.

In: a callable and the arguments of a call. Out: the call of a function of the program's own, whose
floating results pass through the op `ruled`. Their rule is a function that takes the arguments and
the cotangents of the results, runs the callee and its adjoint, and returns the cotangents of the
arguments. It reads the arguments through `barrier`, so that what it computes again is not taken
from the first run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrelay.infer import calls, derivatives, handing_over, needs, specialisation
from pyrelay.infer import values as V
from pyrelay.infer.flow import handling
from pyrelay.infer.function_bodies import Result, Specialisation, argument_types, own_symbols
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import leaf_types
from pyrelay.infer.wrappers import as_closure
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Atom, FnCall, Function, Var, Vjp
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, Type


def call_checkpointed(
    it: Interpreter, request: V.Derivative, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    """The value of `checkpoint(f)(*args, **keywords)`.

    In a `try` that may catch what f raises it is that of f, whose derivative keeps what it needs.
    """
    closure = as_closure(it, request.callee, args, keywords)
    bound = calls.bind_arguments(it, closure, args, keywords)
    arguments = specialisation.arguments_of(it, closure, bound)
    try:
        spec = derivatives.specialised(it, closure, arguments, ())
    except derivatives.NeverReturnsError:
        return calls.call(it, request.callee, args, keywords)
    if handling.must_be_followed(it, spec.name):
        return calls.call(it, request.callee, args, keywords)
    if spec.result is None:
        raise needs.Diverges
    atoms, extents, places = handing_over.encode_arguments(it, spec, arguments)
    wrt = _floating([a.type for a in atoms])
    seeded = _seeded(spec.result)
    node = FnCall(spec.name, tuple(atoms), extents)

    def through(outs: tuple[Var, ...]) -> tuple[Var, ...]:
        if not wrt or not seeded:
            return outs
        rule = _rule(it, spec, spec.result, seeded, wrt)
        passed = [outs[k] for k in seeded]
        operands = (*passed, *atoms, *passed)
        made = it.builder.call(
            OPS["ruled"], *operands, rule=rule, count=len(seeded),
            seeded=tuple(range(len(atoms), len(atoms) + len(seeded))),
            owed=tuple((leaf, k) for k, leaf in enumerate(wrt)), extents=extents,
            takes=tuple(a.type for a in (*atoms, *passed)),
            gives=tuple(atoms[k].type for k in wrt), own=True,
        )
        handles = made if isinstance(made, tuple) else (made,)
        found = {k: h.atom for k, h in zip(seeded, handles, strict=True)}
        return tuple(found.get(k, out) for k, out in enumerate(outs))

    value: V.Value = handing_over.decode_call(it, spec, node, extents, places, through=through)
    return value


def _floating(kinds: Sequence[Type | None]) -> list[int]:
    return [k for k, ty in enumerate(kinds) if isinstance(ty, TensorType) and ty.dtype.is_float]


def _seeded(result: Result) -> list[int]:
    """The floating results; none where the size of one is known only once the function has run:
    no cotangent can be handed over for that."""
    leaves = leaf_types([result.value, *result.contents])
    found = _floating(leaves)
    open_to = set(result.symbols)
    if any(open_to & set(types.type_symbols(leaves[k])) for k in found):
        return []
    return found


def _rule(
    it: Interpreter, spec: Specialisation, result: Result | None, seeded: Sequence[int],
    wrt: Sequence[int],
) -> str:
    """The name of a new function: of the arguments and the cotangents of the results at `seeded`,
    it returns those of the arguments at `wrt`."""
    assert result is not None
    function = it.program.functions[spec.name]
    # Its extents are the symbols of the callee, as what is learnt of these holds for both.
    symbols = own_symbols(spec, argument_types(spec))
    params = tuple(Var(p.name, p.type, span=p.span) for p in function.params)
    leaves = leaf_types([result.value, *result.contents])
    seeds = [Var("seed", leaves[k]) for k in seeded]
    builder = Builder(function.span)
    known = [s for s in seeds if isinstance(s.type, TensorType) and s.type.shape]
    again: list[Atom] = [
        builder.call(OPS["barrier"], p, *known).atom
        if isinstance(p.type, TensorType) and p.type.shape and known else p
        for p in params
    ]
    extents = tuple(map(dims.of, symbols))
    found = tuple(Symbol(s.name, Origin.RUNTIME) for s in result.symbols)
    mapping: dict[Symbol, Extent] = dict(zip(result.symbols, map(dims.of, found), strict=True))
    out_types = [types.substitute(t, mapping) for t in leaves]
    out_types += [ty for k in wrt if (ty := params[k].type) is not None]
    request = Vjp(spec.name, tuple(again), tuple(seeds), tuple(seeded), tuple(wrt), extents)
    outs = builder.bind(request, out_types, dims=found)
    name = it.program.unique(f"{function.name}.again")
    body = builder.block([h.atom for h in outs[len(leaves) :]])
    it.program.functions[name] = Function(
        name, (*params, *seeds), body, symbols, span=function.span
    )
    return name
