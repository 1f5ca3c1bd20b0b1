"""Forward mode: a function that also computes how its results move when its arguments do.

In: a function without requests, which of its arguments have a tangent, which results' tangents are
wanted. Out: new functions; the one to call takes the function's arguments, then the tangents, and
returns the function's results, then their tangents. Tangents run beside the values: branches give
them, loops carry them and recursive functions take and return them. Nothing is kept for later, but
that on a tape of the function each floating value has its tangent above it.

An op has one rule, its `vjp`, which is linear in the cotangent. Its transpose takes tangents of the
operands to the tangent of the result, and is reverse mode over the few ops of the rule (Radul et
al., "You Only Linearize Once", 2023, the other way round). An op that its record calls `linear` is
applied to the tangents itself, so that what is stored in place is stored in place beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pyrelay.grad.activity import Dependence, active_vars, carries_derivative
from pyrelay.grad.calls import Pattern
from pyrelay.grad.cotangents import Sink, cotangent_type, fit, strong, zero
from pyrelay.grad.prepare import prepared, recursive_functions
from pyrelay.grad.residuals import live_lets
from pyrelay.grad.reverse import reverse_op
from pyrelay.ir import walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.contents import Contents
from pyrelay.ir.nodes import Atom, Attrs, Block, FnCall, Function, If, Let, Loop, OpCall, Var, Vjp
from pyrelay.ir.op import NotDifferentiable
from pyrelay.ir.types import TAPE, TapeType, TensorType
from pyrelay.ops.program import as_given


class Pushforwards:
    """The functions with tangents that one derivative needs."""

    def __init__(
        self, functions: Mapping[str, Function], fresh_name: Callable[[str], str]
    ) -> None:
        self.functions = functions
        self._recursive = recursive_functions(functions)
        self._dependence = Dependence(functions)
        self._fresh_name = fresh_name
        self._names: dict[Pattern, str] = {}

    def name(self, pattern: Pattern) -> str:
        """The name of the function for a kind of call of a recursive function."""
        if pattern not in self._names:
            self._names[pattern] = self._fresh_name(f"{pattern.function}.tangents")
        return self._names[pattern]

    def written(self) -> list[Function]:
        """The functions that have been asked for by name, and what these ask for."""
        found: dict[Pattern, Function] = {}
        while todo := [p for p in self._names if p not in found]:
            for pattern in todo:
                found[pattern] = self.write(pattern, self._names[pattern])
        return list(found.values())

    def write(self, pattern: Pattern, name: str, *, typed_as_values: bool = False) -> Function:
        """The function for a pattern.

        typed_as_values: tangents have the very types of arguments and results, Python's numbers
        included, as requests want them.
        """
        function = prepared(self.functions[pattern.function], self.functions, self._recursive,
                            rotate=False)
        body = function.body
        moving = [function.params[k] for k in pattern.args]
        wanted = [body.results[k] for k in pattern.results]
        tapes = (
            out for let in walk.nested_lets(body) if walk.is_call(let, "tape_new")
            for out in let.outs
        )
        writer = _Writer(self, active_vars(body, (*moving, *tapes), wanted, self._dependence))
        builder = Builder(function.span)
        seeds = []
        for var in moving:
            if isinstance(var.type, TapeType):
                continue
            ty = var.type if typed_as_values else cotangent_type(var.type)
            seed = Var("seed", ty, span=function.span)
            seeds.append(seed)
            writer.tangents[var] = strong(builder, seed).atom
        writer.lets(body.lets, builder)
        tangents = []
        for result in wanted:
            tangent = writer.tangent(builder, result).atom
            if typed_as_values and isinstance(result.type, TensorType):
                tangent = builder.cast(tangent, result.type.dtype, weak=result.type.weak)
            tangents.append(tangent)
        made = Block(tuple(builder.lets), (*body.results, *tangents), body.dims)
        return replace(function, name=name, params=(*function.params, *seeds), body=made)


class _Writer:
    """Writes the tangents of one function; `tangents` has those that are not zero so far."""

    def __init__(self, functions: Pushforwards, active: set[Var]) -> None:
        self.functions, self.active = functions, active
        self.tangents: dict[Atom, Atom] = {}

    def tangent(self, builder: Builder, atom: Atom) -> Handle:
        """The tangent of a value, zeros if there is none."""
        known = self.tangents.get(atom)
        if known is None:
            return zero(builder, cotangent_type(atom.type))
        return builder.handle(known)

    def bound(self, variables: Iterable[Var]) -> tuple[Var, ...]:
        """New variables for the tangents of variables that a node binds."""
        made = []
        for var in variables:
            tangent = Var(f"d{var.name}", cotangent_type(var.type), span=var.span)
            self.tangents[var] = tangent
            made.append(tangent)
        return tuple(made)

    def block(self, block: Block, wanted: Sequence[int], outer: Builder) -> Block:
        """The block, which gives the tangents of the results at these positions too."""
        builder = outer.nested()
        self.lets(block.lets, builder)
        tangents = tuple(self.tangent(builder, block.results[k]).atom for k in wanted)
        return Block(tuple(builder.lets), block.results + tangents, block.dims)

    def lets(self, lets: Sequence[Let], builder: Builder) -> None:
        """Append these Lets with their tangents."""
        for let in lets:
            with builder.at(let.span):
                match let.rhs:
                    case OpCall(op=op) if op.name in ("tape_push", "tape_pop"):
                        self._on_tape(builder, let, let.rhs)
                    case OpCall():
                        builder.lets.append(let)
                        self._op(builder, let, let.rhs)
                    case If():
                        self._branches(builder, let, let.rhs)
                    case Loop():
                        self._loop(builder, let, let.rhs)
                    case FnCall():
                        self._call(builder, let, let.rhs)
                    case _:
                        raise AssertionError(let.rhs)

    # -- control flow ------------------------------------------------------------------------------

    def _moving(self, variables: Sequence[Var]) -> list[int]:
        return [
            k for k, v in enumerate(variables)
            if v in self.active and not isinstance(v.type, TapeType)
        ]

    def _branches(self, builder: Builder, let: Let, node: If) -> None:
        wanted = self._moving(let.outs)
        arms = [self.block(arm, wanted, builder) for arm in (node.then, node.orelse)]
        outs = let.outs + self.bound(let.outs[k] for k in wanted)
        builder.lets.append(Let(outs, If(node.cond, *arms), let.dims, span=let.span))

    def _loop(self, builder: Builder, let: Let, loop: Loop) -> None:
        live = self._moving(loop.carried)
        init = tuple(self.tangent(builder, loop.init[k]).atom for k in live)
        carried = self.bound(loop.carried[k] for k in live)
        test, handed = loop.test, loop.handed
        if test is not None:
            passed = self._moving(handed)
            test = self.block(test, [k + 1 for k in passed], builder)
            handed += self.bound(handed[k] for k in passed)
        body = self.block(loop.body, [k + loop.exits for k in live], builder)
        node = replace(
            loop, carried=loop.carried + carried, init=loop.init + init, body=body, test=test,
            handed=handed,
        )
        outs = let.outs + self.bound(let.outs[k] for k in live)
        builder.lets.append(Let(outs, node, let.dims, span=let.span))

    def _call(self, builder: Builder, let: Let, call: FnCall) -> None:
        wanted = self._moving(let.outs)
        given = [k for k, a in enumerate(call.args) if a in self.tangents and a in self.active]
        tapes = [k for k, a in enumerate(call.args) if isinstance(a.type, TapeType)]
        if not tapes and not (wanted and given):
            builder.lets.append(let)
            return
        pattern = Pattern(call.function, tuple(sorted([*given, *tapes])), tuple(wanted))
        name = self.functions.name(pattern)
        args = call.args + tuple(self.tangents[call.args[k]] for k in given)
        outs = let.outs + self.bound(let.outs[k] for k in wanted)
        builder.lets.append(Let(outs, FnCall(name, args, call.dims), let.dims, span=let.span))

    # -- ops ---------------------------------------------------------------------------------------

    def _op(self, builder: Builder, let: Let, call: OpCall) -> None:
        if not self._moving(let.outs):
            return
        if any(a in self.tangents for a in call.args):
            if call.op.name == "ruled" and call.attrs["own"]:
                for out, value in zip(let.outs, call.args, strict=False):
                    if value in self.tangents:
                        self.tangents[out] = self.tangents[value]
            elif call.op.name == "ruled":
                self._by_users_rule(builder, let, call)
            elif call.op.linear:
                operands = [
                    self.tangent(builder, a) if carries_derivative(a.type) else a
                    for a in call.args
                ]
                found = builder.call(call.op, *operands, **call.attrs)
                self.tangents[let.outs[0]] = fit(
                    builder, found, cotangent_type(let.outs[0].type)
                ).atom
            elif not isinstance(call.op.vjp, NotDifferentiable):
                self._transposed(builder, let, call)

    def _on_tape(self, builder: Builder, let: Let, call: OpCall) -> None:
        """Floating values have their tangents above them, zeros included: one tape for both."""
        between = Var("tape", TAPE)
        if call.op.name == "tape_push" and carries_derivative(call.args[1].type):
            value = self.tangent(builder, call.args[1]).atom
            builder.lets.append(replace(let, outs=(between,)))
            above = OpCall(call.op, (between, value), call.attrs)
            builder.lets.append(Let(let.outs, above, span=let.span))
        elif call.op.name == "tape_pop" and carries_derivative(let.outs[1].type):
            ty = cotangent_type(let.outs[1].type)
            tangent = Var(f"d{let.outs[1].name}", ty, span=let.outs[1].span)
            above = OpCall(call.op, call.args, Attrs(type=ty))
            builder.lets.append(Let((between, tangent), above, span=let.span))
            builder.lets.append(replace(let, rhs=replace(call, args=(between,))))
            self.tangents[let.outs[1]] = tangent
        else:
            builder.lets.append(let)

    def _by_users_rule(self, builder: Builder, let: Let, call: OpCall) -> None:
        """The tangents of what has a rule that the user wrote: the transpose of that function, a
        request of its own."""
        attrs, count = call.attrs, call.attrs["count"]
        atoms = list(call.args[count:])
        for k in attrs["seeded"]:
            atoms[k] = as_given(builder, zero(builder, cotangent_type(atoms[k].type)),
                                attrs["takes"][k])
        seeds: dict[int, Atom] = {}
        for leaf, out in attrs["owed"]:
            moved = self.tangents.get(call.args[count + leaf])
            ty = attrs["gives"][out]
            if moved is not None and carries_derivative(ty):
                seeds[out] = as_given(builder, fit(builder, moved, cotangent_type(ty)), ty)
        if not seeds:
            return
        request = Vjp(
            attrs["rule"], tuple(atoms), tuple(seeds.values()), tuple(seeds), attrs["seeded"],
            attrs["extents"],
        )
        wanted = [attrs["takes"][k] for k in attrs["seeded"]]
        found = builder.bind(request, [*attrs["gives"], *wanted])[len(attrs["gives"]) :]
        for out, tangent in zip(let.outs, found, strict=True):
            if out in self.active:
                self.tangents[out] = strong(builder, tangent.atom).atom

    def _transposed(self, builder: Builder, let: Let, call: OpCall) -> None:
        """The tangents of an op's results: the transpose of its rule."""
        rule = builder.nested()
        cotangents = {
            out: Var("g", cotangent_type(out.type)) for out in let.outs if out in self.active
        }
        pairs = self._by_rule(rule, let, call, cotangents)
        linear: set[Var] = set(cotangents.values())
        for each in rule.lets:
            assert isinstance(each.rhs, OpCall)
            if not isinstance(each.rhs.op.vjp, NotDifferentiable) and any(
                a in linear for a in each.rhs.args
            ):
                linear.update(o for o in each.outs if carries_derivative(o.type))
        sink = Sink(builder.nested(), linear)
        for cotangent, tangent in pairs:
            sink.add(cotangent, sink.builder.handle(tangent))
        for each in reversed(rule.lets):
            assert isinstance(each.rhs, OpCall)
            reverse_op(each, each.rhs, sink)
        found: dict[Atom, Atom] = {
            out: sink.builder.handle(sink.values[g]).atom
            for out, g in cotangents.items() if g in sink.values
        }
        code = (*rule.lets, *sink.builder.lets)
        live = live_lets(code, found.values(), Contents())
        read = {a for each in live for a in walk.operands(each.rhs)}
        assert read.isdisjoint(linear), f"the rule of {call.op.name} is not linear"
        builder.lets += live
        self.tangents.update(found)

    def _by_rule(
        self, builder: Builder, let: Let, call: OpCall, given: Mapping[Var, Var]
    ) -> list[tuple[Atom, Atom]]:
        """What the rule of an op gives for cotangents of its results: those of the operands that
        have a tangent, each with this tangent."""
        rule = call.op.vjp
        assert not isinstance(rule, NotDifferentiable)
        results = [strong(builder, out) for out in let.outs]
        operands = [strong(builder, a) for a in call.args]
        seeds = [
            builder.handle(given[out]) if out in given
            else zero(builder, cotangent_type(out.type)) if carries_derivative(out.type) else None
            for out in let.outs
        ]
        if len(results) == 1:
            found = rule(results[0], seeds[0], *operands, **call.attrs)
        else:
            found = rule(tuple(results), tuple(seeds), *operands, **call.attrs)
        pairs = []
        for atom, cotangent in zip(call.args, found, strict=True):
            if cotangent is not None and atom in self.tangents:
                ty = cotangent_type(atom.type)
                if callable(cotangent):
                    cotangent = cotangent(zero(builder, ty))
                pairs.append((fit(builder, cotangent, ty).atom, self.tangents[atom]))
        return pairs
