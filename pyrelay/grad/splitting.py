"""A program that pulls cotangents back, split into what runs before they are known and after.

In: a module without requests whose entry takes cotangents behind its other parameters. Out: the
forward half, which takes the other parameters and gives, behind its own results, the residuals; and
the backward half, which takes residuals and cotangents. What to keep and what to compute again is
the minimum cut of `residuals`. Parameters that the backward half reads are residuals like others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pyrelay.grad.residuals import is_repeatable, repeat, select
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.contents import Contents
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.effects import effect_of
from pyrelay.ir.nodes import Atom, Block, Function, Let, Module, OpCall, Var
from pyrelay.ir.op import OPS, Effect
from pyrelay.ir.types import TapeType, TensorType
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Halves:
    """The two programs.

    residuals: of each the number of the parameter of `forward` that it is, None for one that
    `forward` gives behind its own results; `backward` takes them in this order.
    """

    forward: Module
    backward: Module
    residuals: tuple[int | None, ...]


def split(
    module: Module, seeds: int, backward: Sequence[int], kept: Collection[int] = ()
) -> Halves | None:
    """The halves of a program whose last `seeds` parameters are cotangents.

    backward: the numbers of the results that the backward half gives, in this order; the forward
    half has a constant in place of each. kept: the parameters that the caller keeps as they are, so
    that they need not be given back. None if what the backward half needs lies on a tape, which is
    gone once it is read.
    """
    main = module.main
    first = len(main.params) - seeds
    own, cotangents = main.params[:first], main.params[first:]
    before, after = _parted(main.body, cotangents)
    contents = Contents()
    given = [main.body.results[k] for k in backward]
    bound = {*own, *(out for let in before for out in let.outs)}
    code = Block(tuple(after), tuple(given))
    needed = [v for v in contents.free(code) if v in bound]
    if any(isinstance(v.type, TapeType) for v in needed):
        return None
    chosen = select(before, needed, own, [let for let in before if _is_constant(let)])
    mentioned = {*contents.symbols(code), *contents.symbols(Block(chosen.repeated, ()))}
    for var in (*chosen.saved, *cotangents):
        mentioned.update(types.type_symbols(var.type) if var.type else ())
    outside = {*main.dims, *(s for let in before for s in let.dims)}
    symbols = sorted(mentioned & outside, key=lambda s: s.serial)
    solved = _solved([v.type for v in (*chosen.saved, *cotangents)])
    counted = [s for s in symbols if s not in solved]

    names = walk.Renaming()
    told = {s: Var(s.name, types.PY_INT) for s in counted}
    for symbol in solved:
        names.dims[symbol] = dims.of(Symbol(symbol.name, Origin.ENTRY, most=symbol.most))
    builder = Builder(main.span)
    for symbol, var in told.items():
        _, (extent,) = builder.call(OPS["as_extent"], var, name=symbol.name)
        names.dims[symbol] = extent
    params = [_entered(builder, v, names, solved) for v in (*chosen.saved, *cotangents)]
    for let in chosen.repeated:
        repeat(builder, let, names)
    lets = [*builder.lets, *(walk.copy_let(let, names) for let in after)]
    taken = (*params[: len(chosen.saved)], *told.values(), *params[len(chosen.saved) :])
    body = Block(tuple(lets), tuple(map(names.atom, given)))
    mine = {s: None for p in taken for s in types.type_symbols(p.type)}  # type: ignore[arg-type]
    name = f"{module.entry}.backward"
    second = Function(name, taken, body, tuple(mine), span=main.span)

    last = Builder(main.span)
    sizes = [last.extent(dims.of(s)).atom for s in counted]
    places: list[int | None] = []
    more: list[Atom] = []
    for var in chosen.saved:
        number = own.index(var) if var in own else None
        places.append(number if number in kept else None)
        if places[-1] is None:
            more.append(var)
    results = list(main.body.results)
    for k in backward:
        results[k] = constant(False)
    ends = Block((*before, *last.lets), (*results, *more, *sizes), main.body.dims)
    read = {s for p in own for s in types.type_symbols(p.type)}  # type: ignore[arg-type]
    half = replace(main, params=own, body=ends, dims=tuple(s for s in main.dims if s in read))
    functions = {n: f for n, f in module.functions.items() if n != module.entry}
    return Halves(
        replace(module, functions={**functions, module.entry: half}),
        Module({**functions, name: second}, name, frozenset()),
        (*places, *(None for _ in counted)),
    )


def _parted(body: Block, cotangents: Sequence[Var]) -> tuple[list[Let], list[Let]]:
    """The Lets that do not depend on cotangents, and those that do."""
    contents = Contents()
    moving, symbols = set(cotangents), set[Symbol]()
    before: list[Let] = []
    after: list[Let] = []
    for let in body.lets:
        still = moving.isdisjoint(contents.reads(let)) and (
            symbols.isdisjoint(contents.let_symbols(let))
        )
        if still:
            before.append(let)
        else:
            after.append(let)
            moving.update(let.outs)
            symbols.update(let.dims)
    return before, after


def _is_constant(let: Let) -> bool:
    """Whether a Let is made of nothing, as zeros are: it is then made where it is read."""
    rhs = let.rhs
    return (
        isinstance(rhs, OpCall) and not let.dims and effect_of(rhs) is Effect.PURE
        and not any(isinstance(a, Var) for a in rhs.args)
        and not any(isinstance(o.type, TapeType) for o in let.outs)
    ) or is_repeatable(let)


def _solved(given: Sequence[object]) -> dict[Symbol, None]:
    """The symbols that stand alone as an extent of these types."""
    extents = [extent for ty in given if isinstance(ty, TensorType) for extent in ty.shape]
    inside = [(extent, dims.symbols(extent)) for extent in extents]
    return {
        found[0]: None for extent, found in inside
        if len(found) == 1 and extent == dims.of(found[0])
    }


def _entered(
    builder: Builder, var: Var, names: walk.Renaming, solved: Collection[Symbol]
) -> Var:
    """A parameter for a variable of the forward half; of extents of its own where the arguments do
    not tell those of the variable."""
    ty = var.type
    if isinstance(ty, TensorType) and not set(types.type_symbols(ty)) <= set(solved):
        def own(extent: Extent) -> Extent:
            known = set(dims.symbols(extent)) <= set(solved)
            return names.extent(extent) if known else dims.of(Symbol("n", Origin.ENTRY))

        param = Var(var.name, replace(ty, shape=tuple(map(own, ty.shape))), span=var.span)
        wanted = tuple(map(names.extent, ty.shape))
        names.atoms[var] = builder.call(OPS["refine"], param, shape=wanted).atom
        return param
    return names.var(var)
