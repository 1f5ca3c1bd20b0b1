"""Reverse mode through calls of recursive functions.

In: a call of a (mutually) recursive function in the forward block. Out: a call of the function's
forward half, which pushes on the tape what the backward half will need, and in the sink a call of
the backward half. Records are pushed when a call returns, so the backward halves, called in reverse
order, pop them in exact reverse through any tree of calls.

    forward(args, tape) -> results, tape
    backward(needed args, cotangents of results, accumulators, tape) -> cotangents of args, tape

Arguments that the backward half needs are passed to it again instead of being pushed: what does not
change along the recursion is then never copied. The cotangent of an array argument that is updated
in parts, or passed on by the recursion, is an accumulator that goes through the calls: a call that
does not read the argument costs nothing then.

Halves depend on the pattern of a call: which arguments are active, which results have a cotangent.
What a half needs and gives is the least fixpoint over the recursion (`Splits.settle`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyrelay.grad.activity import Dependence, active_vars
from pyrelay.grad.branches import needed_symbols, reverse_if
from pyrelay.grad.cotangents import Sink, cotangent_type
from pyrelay.grad.loops import reverse_loop
from pyrelay.grad.prepare import definitions, prepared, recursive_functions
from pyrelay.grad.residuals import is_array, live_lets, repeat, select
from pyrelay.grad.reverse import Flow, ReverseControl, Walker
from pyrelay.grad.tape import pop, push
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Atom, Block, FnCall, Function, If, Let, Loop, Var
from pyrelay.ir.types import TAPE, TensorType, Type
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """A kind of call: the function, its active arguments, its results with a cotangent."""

    function: str
    args: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """The two halves of a function for one pattern.

    needs: arguments passed to the backward half. gives: arguments whose cotangents it returns.
    accumulates: those of them that it takes and returns as accumulators. tape: whether the halves
    use the tape.
    """

    forward: str
    backward: str
    gives: tuple[int, ...]
    needs: tuple[int, ...] = ()
    accumulates: tuple[int, ...] = ()
    tape: bool = False


class Splits:
    """The halves of all recursive functions of a module that a derivative needs."""

    def __init__(
        self, functions: Mapping[str, Function], fresh_name: Callable[[str], str]
    ) -> None:
        self.functions = functions
        self.recursive = recursive_functions(functions)
        self.dependence = Dependence(functions)
        self._fresh_name = fresh_name
        self._splits: dict[Pattern, Split] = {}
        self._halves: dict[Pattern, tuple[Function, Function]] = {}

    def split(self, pattern: Pattern) -> Split:
        """What is known about the halves for a pattern."""
        known = self._splits.get(pattern)
        if known is None:
            masks = self.dependence.masks(pattern.function)
            reads = 0
            for r in pattern.results:
                reads |= masks[r]
            known = Split(
                self._fresh_name(f"{pattern.function}.forward"),
                self._fresh_name(f"{pattern.function}.backward"),
                tuple(p for p in pattern.args if reads >> p & 1),
            )
            self._splits[pattern] = known
        return known

    def settle(self) -> bool:
        """Write all halves on the present knowledge; True if that changed nothing."""
        settled = True
        done: set[Pattern] = set()
        while todo := [p for p in self._splits if p not in done]:
            for pattern in todo:
                done.add(pattern)
                before = self._splits[pattern]
                after, halves = _Half(self, pattern, before).write()
                settled &= after == before and pattern in self._halves
                self._splits[pattern] = after
                self._halves[pattern] = halves
        return settled

    def written(self) -> list[Function]:
        """The halves."""
        return [f for halves in self._halves.values() for f in halves]

    def walker(
        self, function: Function, independent: Sequence[int], seeded: Sequence[int]
    ) -> Walker:
        """What reverses the blocks of a prepared function."""
        params = [function.params[k] for k in independent]
        results = [function.body.results[k] for k in seeded]
        active = active_vars(function.body, params, results, self.dependence)
        control: dict[type, ReverseControl] = {
            If: reverse_if, Loop: reverse_loop, FnCall: self._reverse_call
        }
        return Walker(active, definitions(function.body), control)

    def _reverse_call(self, walker: Walker, let: Let, sink: Sink, flow: Flow) -> list[Let]:
        """Reverse a call; returns the forward Lets that replace it."""
        call = let.rhs
        assert isinstance(call, FnCall)
        cotangents = [sink.take(out) for out in let.outs]
        if all(g is None for g in cotangents):
            return [let]
        pattern = Pattern(
            call.function,
            tuple(k for k, a in enumerate(call.args) if a in walker.active),
            tuple(k for k, g in enumerate(cotangents) if g is not None),
        )
        split = self.split(pattern)
        builder = sink.builder
        given = [g for g in cotangents if g is not None]
        args = [call.args[k] for k in split.needs] + [g.atom for g in given]
        for k in split.accumulates:
            var = call.args[k]
            assert isinstance(var, Var)
            if var not in sink.values:
                sink.updated.add(var)
            args.append(sink.get(var).atom)
            sink.values.pop(var, None)
        extents = list(call.dims)
        callee = self.functions[call.function]
        for k, g in zip(pattern.results, given, strict=True):
            if not is_closed(callee, callee.body.results[k].type):
                extents += g.shape
        out_types = [cotangent_type(call.args[k].type) for k in split.gives]
        before = after = None
        if split.tape:
            before, after = flow.step()
            args.append(sink.tape)
            out_types.append(TAPE)
        outs = builder.bind(
            FnCall(split.backward, tuple(args), tuple(extents)), out_types, name="g"
        )
        if split.tape:
            sink.tape = outs[-1].atom
        for k, g in zip(split.gives, outs, strict=False):
            sink.add(call.args[k], g)
        if before is None or after is None:
            return [replace(let, rhs=replace(call, function=split.forward))]
        forward = FnCall(split.forward, (*call.args, before), call.dims)
        return [Let((*let.outs, after), forward, let.dims, span=let.span)]


def is_closed(function: Function, ty: Type | None) -> bool:
    """True if a type mentions only symbols that callers of the function supply."""
    return ty is None or set(types.type_symbols(ty)) <= set(function.dims)


class _Half:
    """Writes the halves of a function for one pattern."""

    def __init__(self, splits: Splits, pattern: Pattern, split: Split) -> None:
        self.splits, self.pattern, self.split = splits, pattern, split
        self.function = prepared(
            splits.functions[pattern.function], splits.functions, splits.recursive
        )
        self.walker = splits.walker(self.function, pattern.args, pattern.results)
        self.sink = Sink(Builder(self.function.span), self.walker.active)
        self.start = Var("tape", TAPE)
        self.sink.tape = self.start
        self.flow = Flow()

    def write(self) -> tuple[Split, tuple[Function, Function]]:
        """The functions, and what is now known about them."""
        function, split, sink = self.function, self.split, self.sink
        body, params = function.body, function.params
        seeds, symbols = self._seeds()
        accumulators = [Var("g", cotangent_type(params[k].type)) for k in split.accumulates]
        for k, var in zip(split.accumulates, accumulators, strict=True):
            sink.values[params[k]] = sink.builder.handle(var)
        for k, seed in zip(self.pattern.results, seeds, strict=True):
            sink.add(body.results[k], sink.builder.handle(seed))
        self.walker.enter(self._changing_params(), (body,))
        walker = self.walker
        lets = walker.lets(body.lets, sink, self.flow)
        lets = walker.late(params) + lets
        results = [sink.get(params[k]).atom for k in split.gives]
        contents = walker.backward
        code = Block(tuple(live_lets(sink.builder.lets, results, contents)), tuple(results))
        residuals = select(lets, contents.free(code), (), volatile=walker.volatile)
        bound = {s for let in lets for s in let.dims}
        saved_symbols = needed_symbols(code, residuals, bound, contents)
        tape = split.tape or self.flow.used or bool(residuals.saved or saved_symbols)
        read = {*contents.free(code), *walk.free_vars(Block(residuals.repeated, ()))}
        needs = [k for k, p in enumerate(params) if p in read or k in split.needs]
        last = Builder(function.span)
        end = push(last, self.flow.end, residuals.saved, saved_symbols)
        forward = replace(
            function, name=split.forward,
            params=params + (self.flow.current,) * tape,
            body=Block(
                tuple(walker.connected(lets) + last.lets), body.results + (end,) * tape, body.dims
            ),
        )
        names = walker.names
        backward_dims = tuple(map(names.symbol, function.dims + tuple(symbols)))
        inputs = [params[k] for k in needs] + seeds + accumulators
        inner = Builder(function.span)
        first = Var("tape", TAPE)
        backward_params = tuple(map(names.var, inputs)) + (first,) * tape
        names.atoms[self.start] = pop(inner, first, residuals.saved, saved_symbols, names)
        for let in residuals.repeated:
            repeat(inner, let, names)
        final = walker.renaming()
        inner.lets += [walk.copy_let(let, final) for let in code.lets]
        given = [final.atom(a) for a in code.results] + [final.atom(sink.tape)] * tape
        backward = Function(
            split.backward, backward_params, inner.block(given), backward_dims, span=function.span
        )
        shared = self._passed_on() | sink.updated
        accumulates = tuple(
            k for k in split.gives
            if k in split.accumulates or (params[k] in shared and is_array(params[k]))
        )
        after = replace(split, needs=tuple(needs), accumulates=accumulates, tape=tape)
        return after, (forward, backward)

    def _calls(self) -> list[FnCall]:
        """The recursive calls of the body."""
        lets = walk.nested_lets(self.function.body)
        return [let.rhs for let in lets if isinstance(let.rhs, FnCall)]

    def _changing_params(self) -> list[Var]:
        """The parameters that some recursive call of the body does not pass on as they are."""
        calls = self._calls()
        return [p for p in self.function.params if any(p not in call.args for call in calls)]

    def _passed_on(self) -> set[Atom]:
        """What recursive calls share: one array then collects its cotangents from all of them."""
        return {a for call in self._calls() for a in call.args}

    def _seeds(self) -> tuple[list[Var], list[Symbol]]:
        """Cotangents of results; an extent that the function itself finds gets a symbol."""
        seeds: list[Var] = []
        symbols: list[Symbol] = []
        for k in self.pattern.results:
            ty = cotangent_type(self.function.body.results[k].type)
            if isinstance(ty, TensorType) and not is_closed(self.function, ty):
                own = [Symbol("n", dims.Origin.RUNTIME) for _ in ty.shape]
                symbols += own
                ty = replace(ty, shape=tuple(dims.of(s) for s in own))
            seeds.append(Var("g", ty))
        return seeds, symbols
