"""Recursive functions of scalars as native functions that call each other.

In: the functions of a module after `normalise`. Out: which calls are worth a kernel, and the kernel
that makes such a call.

A call of the plan takes some nanoseconds for each instruction; a native call takes one or two in
all, but the native stack is short. So a kernel tries: where calls nest too deeply for the stack it
gives up, and the plan, whose frames lie in memory, does it all again. Nothing has happened by
then: such functions have no effects, and where they raise, they do so in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyrelay.errors import Span
from pyrelay.ir import walk
from pyrelay.ir.nodes import Atom, FnCall, Function, If, KernelCall, Let, Loop, Module, OpCall
from pyrelay.ir.types import TensorType, bool_, i64
from pyrelay.lower.inlined_calls import with_inlined_calls
from pyrelay.lower.kernel import (
    SCALAR,
    SLOT,
    Call,
    Kernel,
    Literal,
    Local,
    Parameter,
    RaiseSite,
    Read,
    Statement,
    Store,
)
from pyrelay.lower.scalar_program import routine
from pyrelay.opt import scalars
from pyrelay.records import dataclass

_COST = 1_000_000  # picoseconds that a call is taken to last
_MOST_RESULTS = 8
_LARGEST = 400  # Lets of the functions of one kernel


@dataclass(frozen=True, slots=True)
class Recursion:
    """The functions that native code may call, and those among them that call themselves."""

    module: Module
    native: frozenset[str]
    recursive: frozenset[str]

    def is_worth_it(self, caller: str, callee: str) -> bool:
        """Whether a call is to enter native code: it recurses, and is not part of a recursion."""
        if callee not in self.native & self.recursive:
            return False
        reached = self.reached(callee)
        size = sum(1 for name in reached for _ in _all_lets(self.module.functions[name]))
        return caller not in reached and size <= _LARGEST

    def reached(self, name: str) -> dict[str, int]:
        """The functions that a call of one runs, numbered, itself first."""
        numbers = {name: 0}
        pending = [name]
        while pending:
            for callee in walk.called(self.module.functions[pending.pop()]):
                if callee not in numbers:
                    numbers[callee] = len(numbers)
                    pending.append(callee)
        return numbers

    def kernel(self, name: str) -> Kernel:
        """The kernel that calls a function: the result after the function's own tells whether the
        calls nested too deeply."""
        numbers = self.reached(name)
        sites: list[RaiseSite] = []
        functions = [self.module.functions[each] for each in numbers]
        routines = with_inlined_calls([routine(f, numbers, sites) for f in functions])
        function = functions[0]
        args = [_dtyped(a) for a in function.params]
        outs = [_dtyped(a) for a in function.body.results]
        too_deep = Local(bool_)
        scalars = [Parameter(SCALAR, k, a.dtype) for k, a in enumerate(args)]
        slots = [Parameter(SLOT, k, o.dtype) for k, o in enumerate((*outs, too_deep))]
        body: list[Statement] = [Read(a, p) for a, p in zip(args, scalars, strict=True)]
        body.append(Call(tuple(outs), 0, tuple(args), too_deep))
        zero = Literal(0, i64)
        for slot, out in zip(slots, (*outs, too_deep), strict=True):
            body.append(Store(slot, zero, out, parallel=False))
        return Kernel(
            (*scalars, *slots), Local(i64), Local(i64), tuple(body), 1, _COST, tuple(sites),
            _spans(functions), routines,
        )


def recursion(module: Module, recursive: Iterable[str]) -> Recursion:
    """What can be called natively in a module."""
    own = {name for name, f in module.functions.items() if _is_scalar(f)}
    calls = {name: set(walk.called(f)) for name, f in module.functions.items()}
    while True:
        kept = {name for name in own if calls[name] <= own}
        if kept == own:
            break
        own = kept
    return Recursion(module, frozenset(own), frozenset(recursive))


def _is_scalar(function: Function) -> bool:
    """Whether a function computes with scalars only, without effects but failures."""
    atoms = (*function.params, *function.body.results)
    if function.dims or function.body.dims or len(function.body.results) > _MOST_RESULTS:
        return False
    return all(map(_is_word, atoms)) and all(map(_computes, walk.nested_lets(function.body)))


def _computes(let: Let) -> bool:
    rhs = let.rhs
    if let.dims or not all(map(_is_word, let.outs)):
        return False
    match rhs:
        case OpCall():
            return scalars.is_scalar_op(rhs)
        case KernelCall():
            inner = rhs.function
            return not rhs.dims and all(map(_is_word, inner.params)) and all(
                isinstance(each.rhs, (If, Loop, OpCall)) and _computes(each)
                for each in walk.nested_lets(inner.body)
            )
        case FnCall() | Loop():
            return not rhs.dims
    return isinstance(rhs, If)


def _is_word(atom: Atom) -> bool:
    """Whether an atom is a real scalar of at most 64 bits."""
    ty = atom.type
    return isinstance(ty, TensorType) and not ty.shape and ty.dtype.kind != "c"


def _dtyped(atom: Atom) -> Local:
    assert isinstance(atom.type, TensorType)
    return Local(atom.type.dtype)


def _spans(functions: Iterable[Function]) -> tuple[Span, ...]:
    lets = [let for f in functions for let in _all_lets(f)]
    return tuple(dict.fromkeys(let.span for let in lets if let.span is not None))


def _all_lets(function: Function) -> Iterable[Let]:
    for let in walk.nested_lets(function.body):
        yield let
        if isinstance(let.rhs, KernelCall):
            yield from walk.nested_lets(let.rhs.function.body)

