"""Recursion over data, level by level: one call of a recursive function becomes a loop of batches.

In: a module. Out: the module in which calls of recursive functions whose tree of calls can be laid
out (`call_trees`) run a program without recursion: the calls are laid out in arrays (`linearise`),
then all calls of a case that call nothing are computed at once, then level after level, deepest
first, the calls of each case (`batching`). What a call returns is a row of a table; results of
inner calls are gathered. A product of a matrix with a vector of each node so becomes one product of
matrices per level. Batching by depth: Looks et al. (ICLR 2017); on recursive programs: Cortex,
Fegade et al. (MLSys 2021).

Where plain Python would raise somewhere in the recursion, the recursion itself runs, so what is
raised is what Python meets first. This runs before `grad`: the derivative of a loop of batches is
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Origin, Symbol
from pyrelay.ir.effects import is_pure
from pyrelay.ir.nodes import (
    TEMPORARY,
    Atom,
    Block,
    FnCall,
    Function,
    If,
    Let,
    Module,
    Var,
)
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt import batching, call_trees
from pyrelay.opt.batching import Batch
from pyrelay.opt.call_trees import Case, Recursion
from pyrelay.opt.elements import integer
from pyrelay.opt.forests import Batched, call_many, redirected, refuse, replay, row
from pyrelay.opt.linearise import Linear, Lineariser, as_extent, number


def levels(module: Module) -> Module:
    """Call recursive functions level by level where that is possible and pays."""
    instead: dict[str, Batched] = {}
    taken = set(module.functions)
    for name, function in module.functions.items():
        if name in walk.called(function) and name != module.entry:
            made = _batched(function, taken)
            if made is not None:
                instead[name] = made
    if not instead:
        return module
    functions = {
        name: f if name in instead else replace(f, body=redirected(f.body, instead))
        for name, f in module.functions.items()
    }
    added = {f.name: f for b in instead.values() for f in (b.single, b.many, b.failing)}
    return module.holding({**functions, **added})


def _batched(function: Function, taken: set[str]) -> Batched | None:
    """What stands in for a recursive function; None if it stays as it is."""
    if not _pays(function):
        return None
    try:
        recursion = call_trees.recursion(function)
        if recursion.most_calls < 2:
            return None
        many = _Levels(recursion).function(_name(f"{function.name}.levels", taken))
    except (call_trees.Cannot, batching.Cannot):
        return None
    failing = _replay(function, _name(f"{function.name}.check", taken))
    name = _name(f"{function.name}.batched", taken)
    return Batched(_single(function, recursion.state, many, failing, name), many, failing,
                   recursion.state)


def _name(wanted: str, taken: set[str]) -> str:
    name, k = wanted, 1
    while name in taken:
        name, k = f"{wanted}{k}", k + 1
    taken.add(name)
    return name


def _pays(function: Function) -> bool:
    """True for functions that return arrays, whose sizes callers know."""
    kinds = [a.type for a in function.body.results]
    own = set(function.dims)
    return (
        any(isinstance(t, TensorType) and t.rank for t in kinds)
        and all(isinstance(t, TensorType) and own.issuperset(types.type_symbols(t)) for t in kinds)
        and not function.body.dims
    )


# -- what the recursion raises ---------------------------------------------------------------------


def _replay(function: Function, name: str) -> Function:
    """The function without results: it makes the same calls and raises what the function raises."""
    names = walk.Renaming()
    symbols = tuple(map(names.symbol, function.dims))
    params = tuple(map(names.var, function.params))
    body = _effects(walk.copy_block(function.body, names), (), name)
    return replace(function, name=name, params=params, body=body, dims=symbols)


def _effects(block: Block, kept: Sequence[int], name: str) -> Block:
    """What a block raises and calls, and those of its results."""
    results = tuple(block.results[k] for k in kept)
    needed: set[Atom] = set(results)
    lets: list[Let] = []
    for let in reversed(block.lets):
        rhs = let.rhs
        outs = tuple(k for k, out in enumerate(let.outs) if out in needed)
        if isinstance(rhs, FnCall):
            let = Let((), replace(rhs, function=name), (), span=let.span)
        elif isinstance(rhs, If):
            then, orelse = (_effects(b, outs, name) for b in (rhs.then, rhs.orelse))
            if not outs and not then.lets and not orelse.lets:
                continue
            needed.update(walk.free_vars(then), walk.free_vars(orelse))
            found = tuple(let.outs[k] for k in outs)
            let = Let(found, If(rhs.cond, then, orelse), (), span=let.span)
        elif not outs and is_pure(let):
            continue
        needed.update(walk.operands(let.rhs))
        lets.append(let)
    return Block(tuple(reversed(lets)), results)


# -- the program in batches ------------------------------------------------------------------------


class _Levels:
    """Writes the function that takes the states of many first calls and runs all calls."""

    def __init__(self, recursion: Recursion) -> None:
        self.recursion = recursion
        self.builder = Builder(recursion.function.span)

    def function(self, name: str) -> Function:
        """Params: an array per number of the state, then the shared ones. Results: whether all
        calls go well, then the results with an axis more, in front. Raises batching.Cannot."""
        source, b = self.recursion.function, self.builder
        length = Symbol("n", Origin.RUNTIME)
        rows = TensorType(types.i64, (dims.of(length),))
        roots = [Var("p", rows, span=source.span) for _ in self.recursion.state]
        linear = Lineariser(self.recursion, b).run([b.handle(v) for v in roots])
        tables = self._tables(linear)
        where = b.call(
            OPS["slice"], linear.place, starts=(0,), sizes=(dims.of(length),), steps=(1,)
        )
        results = [b.call(OPS["gather"], table, where, axes=(0,)) for table in tables]
        shared = [p for k, p in enumerate(source.params) if k not in self.recursion.state]
        return Function(
            name, (*roots, *shared), b.block([linear.fine, *results]), (length, *source.dims),
            span=source.span,
        )

    def _tables(self, linear: Linear) -> tuple[Handle, ...]:
        """The results of all calls, in their order."""
        b, recursion = self.builder, self.recursion
        tables: tuple[Handle, ...] = tuple(
            b.undef(TensorType(a.type.dtype, (linear.count, *a.type.shape)))
            for a in recursion.function.body.results if isinstance(a.type, TensorType)
        )
        for k in range(recursion.leaves):
            tables = self._group(b, linear, recursion.cases[k], b.handle(number(k)), tables)
        several = len(recursion.cases) - recursion.leaves

        def level(
            inner: Builder, i: Handle, carried: tuple[Handle, ...]
        ) -> Sequence[Handle]:
            after = inner.call(OPS["add"], integer(inner, i), number(1))
            base = inner.call(OPS["multiply"], after, number(several))
            for k in range(recursion.leaves, len(recursion.cases)):
                group = inner.call(OPS["add"], base, number(k))
                carried = self._group(inner, linear, recursion.cases[k], group, carried)
            return carried

        return b.counted(b.cast(linear.levels, types.i64, weak=True), tables, level)

    def _group(
        self, b: Builder, linear: Linear, case: Case, group: Handle, tables: tuple[Handle, ...]
    ) -> tuple[Handle, ...]:
        """The tables with the results of one group of calls."""
        begin = b.call(OPS["index"], linear.groups, group, axes=(0,))
        end = b.call(
            OPS["index"], linear.groups, b.call(OPS["add"], group, number(1)), axes=(0,)
        )
        start = as_extent(b, begin)
        size = as_extent(b, b.call(OPS["subtract"], end, begin))
        calls = b.call(OPS["slice"], linear.order, starts=(start,), sizes=(size,), steps=(1,))
        batch = Batch(b, size)
        for var, column in zip(case.numbers, linear.numbers, strict=False):
            assert isinstance(var.type, TensorType)
            values = b.call(OPS["gather"], column, calls, axes=(0,))
            batch.bind(var, b.handle(b.cast(values, var.type.dtype)))
        if case.calls:
            first = b.call(OPS["gather"], linear.first, calls, axes=(0,))
            for k, (outs, _) in enumerate(case.calls):
                made = b.call(OPS["add"], first, number(k))
                rows = b.call(OPS["gather"], linear.place, made, axes=(0,))
                for out, table in zip(outs, tables, strict=True):
                    batch.bind(out, b.call(OPS["gather"], table, rows, axes=(0,)))
        for let in case.work:
            batch.let(let)
        following = []
        for table, result in zip(tables, case.results, strict=True):
            whole = table.shape[1:]
            value = b.cast(batch.all(result), table.dtype)
            following.append(b.call(
                OPS["slice_update"], table, value, starts=(start, *[0] * len(whole)),
                sizes=(size, *whole), steps=(1,) * table.rank,
            ))
        return tuple(following)


def _single(
    function: Function, state: tuple[int, ...], many: Function, failing: Function, name: str
) -> Function:
    """The function for one first call."""
    names = walk.Renaming()
    symbols = tuple(map(names.symbol, function.dims))
    params = tuple(map(names.var, function.params))
    b = Builder(function.span)
    call = FnCall(function.name, params, tuple(map(dims.of, symbols)))
    outs = [
        Var(TEMPORARY, types.substitute(a.type, names.dims))
        for a in function.body.results if a.type
    ]
    batched = Batched(function, many, failing, state)
    roots = [
        b.call(OPS["broadcast_to"], b.cast(params[k], types.i64), shape=(1,)).atom for k in state
    ]
    fine, rows = call_many(b, batched, call, roots, 1, [v.type for v in outs])
    replay(b, batched, call, fine)
    refuse(b, fine)
    results = row(b, rows, number(0), [v.type for v in outs])
    return Function(name, params, b.block(results), symbols, span=function.span)
