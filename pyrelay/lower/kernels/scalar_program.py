"""Scalar control flow as one serial kernel: loops, branches, element reads and writes.

In: a closed function whose values are scalars, and arrays that are read and updated element by
element, or row by row inside loops. Out: a `Lowering` of one kernel that runs its Lets in order. An
updated array is written in its argument's buffer; where the others are is for `program_arrays`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from pyrelay.ir import walk
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import (
    Atom,
    Block,
    FnCall,
    Function,
    If,
    KernelCall,
    Let,
    Loop,
    OpCall,
    Var,
)
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType, bool_, i64
from pyrelay.lower.kernels.elements import Elements
from pyrelay.lower.kernels.kernel import (
    SLOT,
    Assign,
    Body,
    Call,
    Local,
    Lowering,
    Operand,
    Parameter,
    RaiseSite,
    Routine,
)
from pyrelay.lower.kernels.kernel import If as KernelIf
from pyrelay.lower.kernels.program_arrays import ProgramArrays
from pyrelay.lower.kernels.rule_emitter import RuleEmitter
from pyrelay.lower.kernels.values import Value
from pyrelay.lower.passes.bounded_numbers import with_bounded_numbers
from pyrelay.lower.passes.carried_elements import with_carried_elements
from pyrelay.lower.passes.chosen_stores import with_chosen_stores
from pyrelay.lower.passes.cleaning import finish_body, without_unused
from pyrelay.lower.passes.counters import without_counter_checks
from pyrelay.lower.passes.exact_remainders import with_exact_remainders
from pyrelay.lower.passes.followed_kinds import without_followed_kinds
from pyrelay.lower.passes.handed_elements import with_handed_elements
from pyrelay.lower.passes.implied import without_implied_checks
from pyrelay.lower.passes.loop_versions import with_versions
from pyrelay.lower.passes.nest_versions import with_nest_versions
from pyrelay.lower.passes.peeled_rounds import with_peeled_rounds
from pyrelay.lower.passes.short_integers import with_short_integers
from pyrelay.lower.passes.signs import without_certain_checks
from pyrelay.ops.program import pieces
from pyrelay.opt import places
from pyrelay.opt.exchanges import Turn
from pyrelay.opt.given_back import GivenBack
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass


def is_scalar_program(function: Function) -> bool:
    """Whether a fused group is lowered here: it branches, loops, updates, or has scalars only."""
    only_scalars = True
    for let in function.body.lets:
        if isinstance(let.rhs, (If, Loop)):
            return True
        assert isinstance(let.rhs, OpCall)
        if places.updates_element(let.rhs):
            return True
        reduces = let.rhs.op.fusion is Fusion.REDUCTION
        only_scalars &= not reduces and not any(is_array(v) for v in let.outs)
    return only_scalars


def scalar_program(function: Function) -> Lowering:
    """The kernel of a scalar program."""
    program = _Program(function)
    program.block(function.body)
    program.arrays.settle()
    aliases: list[int | None] = []
    s = program.s
    for position, atom in enumerate(function.body.results):
        ty = atom.type
        assert isinstance(ty, TensorType)
        if ty.rank:
            aliases.append(program.arrays.position(atom))
        else:
            aliases.append(None)
            slot = Parameter(SLOT, position, ty.dtype)
            s.store(slot, s.const(0, i64), program.scalar(atom))
    spans = [let.span for let in walk.nested_lets(function.body) if let.span is not None]
    kernel = finish_body(s, Local(i64), Local(i64), 1, spans)
    whole = _without_idle_checks(without_followed_kinds(kernel.body))
    body = with_carried_elements(with_peeled_rounds(whole))
    body = with_nest_versions(body if body is whole else _without_idle_checks(body))
    body = with_bounded_numbers(with_exact_remainders(body))
    body = with_short_integers(body)
    body = with_chosen_stores(without_unused(body))
    body = with_handed_elements(body)
    kernel = replace(kernel, body=without_unused(body), apart=True)
    arrays = program.arrays
    kernels = (kernel,) if kernel.body else ()  # what cannot be noticed is left out
    # An argument that is given back as it is becomes the result's buffer as well.
    written = frozenset(arrays.written).union(a for a in aliases if a is not None)
    return Lowering(
        kernels, tuple(arrays.scratch), tuple(aliases), written, (frozenset(),) * len(aliases)
    )


@dataclass(frozen=True, slots=True)
class Routines:
    """What the routines of one kernel know of each other.

    numbers: of the functions that they are. given_back: see `opt.storage`. passed: the numbers of
    the array parameters that each takes as addresses, the others are the kernel's. sized: whether
    they take extents. written: numbers of the kernel's arrays that any of them stores into. sites:
    where they may fail, of all of them.
    """

    numbers: Mapping[str, int]
    given_back: GivenBack
    passed: Mapping[str, frozenset[int]]
    sized: bool
    written: frozenset[int]
    sites: list[RaiseSite]


def routine(
    function: Function, arrays: int, symbols: Sequence[Symbol], routines: Routines
) -> Routine:
    """A function of scalars as a routine.

    The first parameters, `arrays` of them, and the function's own extents are the kernel's, for all
    routines to read; what it gives back of them is no result. It takes other arrays as addresses,
    and as many as its `symbols` extents, and gives back these arrays' addresses and what extents it
    ends with.
    """
    program = _Program(function, routines)
    s = program.s
    s.sites = routines.sites
    params = []
    for param in function.params[arrays:]:
        assert isinstance(param.type, TensorType)
        params.append(Local(i64 if is_array(param) else param.type.dtype))
        if is_array(param):
            address = Local(i64, variable=True)
            s.emit(Assign(address, params[-1]))
            program.arrays.point(param, address)
        else:
            program.bind(param, Value(s, params[-1], params[-1].dtype, s.scope))
    for symbol in symbols:
        params.append(Local(i64))
        s.bind_extent(symbol, Value(s, params[-1], i64, s.scope))
    program.block(function.body)
    results = program.handed(function.body.results, routines.given_back[function.name],
                             routines.passed[function.name])  # fmt: skip
    results += tuple(s.extent(extent).operand for extent in function.body.dims)
    body = with_versions(_without_idle_checks(tuple(program.s.scope.statements)))
    body = without_unused(with_exact_remainders(body, results), results)
    return Routine(tuple(params), body, results)


def _without_idle_checks(body: Body) -> Body:
    """The body without checks that are known never to fail."""
    return without_implied_checks(without_certain_checks(without_counter_checks(body)))


_ALONE = Routines({}, {}, {}, False, frozenset(), [])


class _Program:
    def __init__(self, function: Function, routines: Routines = _ALONE) -> None:
        self.routines = routines
        self.s = RuleEmitter(function.dims)
        self.s.often_short = True
        self.elements = Elements(self.s, function)
        given = routines.given_back, routines.written
        self.arrays = ProgramArrays(self.s, self.elements, function, *given)
        self.waiting: list[Let] = []  # gathers whose places have not been looked at yet

    # -- values --------------------------------------------------------------------------------

    def scalar(self, atom: Atom) -> Value:
        """The value of a scalar atom."""
        return self.elements.value(atom, ())

    def bind(self, var: Var, value: Value) -> None:
        """Make `value` what `var` stands for in the innermost scope."""
        self.elements.preset(var, (), value)

    # -- statements ----------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Runs the Lets of a block."""
        for let in block.lets:
            self.s.span = let.span
            match let.rhs:
                case If():
                    self._if(let, let.rhs)
                case Loop():
                    self._loop(let, let.rhs)
                case OpCall():
                    self._op(let, let.rhs)
                case KernelCall():
                    self._group(let, let.rhs)
                case FnCall():
                    self._call(let, let.rhs)
                case _:
                    raise AssertionError(let.rhs)

    def _op(self, let: Let, rhs: OpCall) -> None:
        if any(map(is_array, let.outs)):
            if let.outs[0] in self.arrays.storage.absorbed:
                return
            if rhs.op.name in places.UPDATES:
                self.arrays.update(let.outs[0], rhs)
            elif self.arrays.is_own(let.outs[0]):
                self.arrays.fill(let)
            elif let.outs[0] in self.arrays.storage.deferred:
                self.waiting.append(let)
            return  # the elements of others are computed where they are read
        special = _SPECIAL.get(rhs.op.name)
        if special is not None:
            special(self, let, rhs)
            return
        # Arguments first, so that the rule runs only once.
        for arg in rhs.args:
            if not is_array(arg):
                self.scalar(arg)
        values = self.elements.apply(let, (), repeatable=False)
        for out, value in zip(let.outs, values, strict=True):
            self.bind(out, value)
        if self.waiting:
            ends = self.arrays.storage.deferred
            self.waiting = [each for each in self.waiting if ends[each.outs[0]] is not let]

    def _extent(self, let: Let, rhs: OpCall) -> None:
        self.bind(let.outs[0], self.s.extent(rhs.attrs["size"]))

    def _as_extent(self, let: Let, rhs: OpCall) -> None:
        value = self.scalar(rhs.args[0])
        text = "negative dimensions are not allowed"
        self.s.fail("ValueError", (text,), self.s.primitive("less", value, 0))
        self.s.bind_extent(let.dims[0], value)

    def _check_equal(self, let: Let, rhs: OpCall) -> None:
        left, right = self.s.extent(rhs.attrs["left"]), self.s.extent(rhs.attrs["right"])
        differ = self.s.primitive("not_equal", left, right)
        for each in self.waiting:  # which plain Python had done by now
            with self.s.body() as statements:
                self.arrays.look_at(each)
            self.s.emit(KernelIf(differ.operand, tuple(statements), unlikely=True))
        self.s.fail("ValueError", pieces(rhs.attrs["text"]), differ, left, right)

    def _undef(self, let: Let, rhs: OpCall) -> None:
        ty = let.outs[0].type
        assert isinstance(ty, TensorType)
        self.bind(let.outs[0], self.s.const(0, ty.dtype))

    def _raise(self, let: Let, rhs: OpCall) -> None:
        values = [self.scalar(a) for a in rhs.args]
        self.s.fail(rhs.attrs["exception"], rhs.attrs["parts"], True, *values)

    def _group(self, let: Let, rhs: KernelCall) -> None:
        """A fused group in line."""
        for param, arg in zip(rhs.function.params, rhs.args, strict=True):
            self.bind(param, self.scalar(arg))
        self.block(rhs.function.body)
        for out, result in zip(let.outs, rhs.function.body.results, strict=True):
            self.bind(out, self.scalar(result))

    def _call(self, let: Let, rhs: FnCall) -> None:
        s, name, of = self.s, rhs.function, self.routines
        args = self.handed(rhs.args, range(len(rhs.args)), of.passed[name])
        if of.sized:
            args += tuple(s.extent(extent).operand for extent in rhs.dims)
        taken = [
            v for v, k in zip(let.outs, of.given_back[name], strict=True)
            if not is_array(v) or k in of.passed[name]
        ]
        outs = [Local(i64 if is_array(v) else v.type.dtype) for v in taken]  # type: ignore[union-attr]
        sizes = [Local(i64) for _ in let.dims]
        s.emit(Call((*outs, *sizes), of.numbers[name], args))
        for out, local in zip(taken, outs, strict=True):
            if is_array(out):
                self.arrays.moves(out, local)
            else:
                self.bind(out, Value(s, local, local.dtype, s.scope))
        for symbol, local in zip(let.dims, sizes, strict=True):
            s.bind_extent(symbol, Value(s, local, i64, s.scope))

    def handed(
        self, atoms: Sequence[Atom], numbers: Iterable[int | None], passed: Collection[int]
    ) -> tuple[Operand, ...]:
        """The scalars among some atoms, and the addresses of arrays of which the numbers are among
        those that are passed."""
        return tuple(
            (self.arrays.address(a) if is_array(a) else self.scalar(a)).operand  # type: ignore[arg-type]
            for a, k in zip(atoms, numbers, strict=True) if not is_array(a) or k in passed
        )

    def _if(self, let: Let, rhs: If) -> None:
        cond = self.scalar(rhs.cond)
        chosen = {
            out: Local(out.type.dtype, variable=True)  # type: ignore[union-attr]
            for out in let.outs
            if not is_array(out)
        }
        for out in let.outs:
            if self.arrays.is_own(out):
                self.arrays.create(out)
        choices = {c.k: c for c in self.arrays.storage.choices.get(let, ())}
        addresses = {k: Local(i64, variable=True) for k in choices}
        sizes = [Local(i64, variable=True) for _ in let.dims]
        bodies = []
        for number, arm in enumerate((rhs.then, rhs.orelse)):
            with self.s.body() as statements:
                self.block(arm)
                for k, (out, result) in enumerate(zip(let.outs, arm.results, strict=True)):
                    if out in chosen:
                        self.s.emit(Assign(chosen[out], self.scalar(result).operand))
                    elif k not in choices:
                        self.arrays.copy(result, out)
                for k, choice in choices.items():
                    now = self.arrays.address(choice.arms[number])
                    self.s.emit(Assign(addresses[k], now.operand))
                for size, extent in zip(sizes, arm.dims, strict=True):
                    self.s.emit(Assign(size, self.s.extent(extent).operand))
            bodies.append(tuple(statements))
        then, orelse = bodies
        self.s.emit(KernelIf(cond.operand, then, orelse))
        for k, choice in choices.items():
            self.arrays.point(choice.place, addresses[k])
        for symbol, size in zip(let.dims, sizes, strict=True):
            self.s.bind_extent(symbol, Value(self.s, size, i64, self.s.scope))
        for out, local in chosen.items():
            self.bind(out, Value(self.s, local, local.dtype, self.s.scope))

    def _loop(self, let: Let, rhs: Loop) -> None:
        s = self.s
        variables: dict[int, Value] = {}  # of extents by numbers below 0
        for k, extent in enumerate(rhs.init_dims):
            variables[~k] = s.variable(s.extent(extent))
        for k, (var, first) in enumerate(zip(rhs.carried, rhs.init, strict=True)):
            if not is_array(var):
                variables[k] = s.variable(self.scalar(first))
            elif self.arrays.is_own(var):
                self.arrays.create(var)
                self.arrays.copy_to(first, var)
        turns = self.arrays.storage.turns.get(let, ())
        self.arrays.enter(turns)
        repetition: AbstractContextManager[Value | None]
        if rhs.count is None:
            repetition = s.repeat()
        else:
            repetition = s.loop(0, self.scalar(rhs.count), barrier=True)
        with repetition as index:
            if rhs.index is not None and index is not None:
                self.bind(rhs.index, index)
            for k, variable in variables.items():
                inside = Value(s, variable.operand, variable.dtype, s.scope)
                if k < 0:
                    s.bind_extent(rhs.dims[~k], inside)
                else:
                    self.bind(rhs.carried[k], inside)
            self._iteration(let, rhs, variables, turns)
        for k, out in enumerate(let.outs):
            if k in variables:
                self.bind(out, Value(s, variables[k].operand, variables[k].dtype, s.scope))
        for k, symbol in enumerate(let.dims):
            s.bind_extent(symbol, Value(s, variables[~k].operand, i64, s.scope))

    def _iteration(
        self, let: Let, rhs: Loop, variables: dict[int, Value], turns: Sequence[Turn]
    ) -> None:
        s = self.s
        if rhs.test is not None:
            self.block(rhs.test)
            goes_on, *handed = rhs.test.results
            s.leave(s.primitive("logical_not", s.lift(self.scalar(goes_on), bool_)))
            for var, atom in zip(rhs.handed, handed, strict=True):
                self.bind(var, self.scalar(atom))
        self.block(rhs.body)
        results = list(rhs.body.results)
        ends = self.scalar(results.pop(0)) if rhs.exits else None
        following = {
            k: s.extent(rhs.body.dims[~k]) if k < 0 else self.scalar(results[k])
            for k in variables
        }
        assigned = set()
        for k, value in following.items():
            # A variable that has its next value already must be read before: keep a copy.
            if value.held in assigned:
                following[k] = s.copy(value)
            assigned.add(variables[k].held)
        together = self.arrays.storage.together.get(let, ())
        for group in together:
            self.arrays.copy_together([(results[k], rhs.carried[k]) for k in group])
        stored = {k for group in together for k in group}
        turning = {t.k: t for t in turns}
        for k, (var, result) in enumerate(zip(rhs.carried, results, strict=True)):
            if k in turning:
                if turning[k].copied:
                    self.arrays.copy_to(result, turning[k].after)
            elif is_array(var) and k not in stored:
                self.arrays.copy(result, var)
        self.arrays.turn(turns)
        for k, value in following.items():
            if value.held is not variables[k].held:
                s.assign(variables[k], value)
        if ends is not None:
            s.leave(ends)


_SPECIAL: dict[str, Callable[[_Program, Let, OpCall], None]] = {
    "as_extent": _Program._as_extent,
    "check_equal": _Program._check_equal,
    "extent": _Program._extent,
    "undef": _Program._undef,
    "raise": _Program._raise,
}
