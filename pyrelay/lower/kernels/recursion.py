"""Recursive functions of scalars as native functions that call each other.

In: the functions of a module after `normalise`. Out: which calls are worth a kernel, and the kernel
that makes such a call. The functions may read arrays that all calls pass on as they are, such as
the columns of a tree: these are the kernel's, and no arguments of its functions.

A call of the plan takes some nanoseconds for each instruction; a native call takes one or two in
all, but the native stack is short. So a kernel tries: where calls nest too deeply for the stack it
gives up, and the plan, whose frames lie in memory, does it all again. Nothing has happened by
then: such functions have no effects, and where they raise, they do so in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrelay.errors import Span
from pyrelay.ir import dims, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, FnCall, Function, If, KernelCall, Let, Loop, Module, OpCall, Var
from pyrelay.ir.types import TensorType, bool_, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
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
from pyrelay.lower.kernels.scalar_program import routine
from pyrelay.lower.passes.inlined_calls import with_inlined_calls
from pyrelay.lower.planning.instructions import Value
from pyrelay.opt import scalars
from pyrelay.opt.rewrite import Replaced, Replacement, Scope, rewrite
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass

_COST = 1_000_000  # picoseconds that a call is taken to last
_MOST_RESULTS = 8
_LARGEST = 400  # Lets of the functions of one kernel


Homes = tuple[tuple[Atom | None, ...], tuple[Extent, ...]]
"""What a function's parameters and extents are in terms of the one that a kernel calls: for each
array one of its arrays (None for scalars), for each symbol an extent."""


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
        return caller not in reached and size <= _LARGEST and self._homes(callee) is not None

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

    def _homes(self, name: str) -> dict[str, Homes] | None:
        """What the arrays and extents are of all functions that a call of one runs, in terms of its
        own; None unless all calls of a function pass the same ones.
        """
        first = self.module.functions[name]
        homes: dict[str, Homes] = {
            name: (
                tuple(p if is_array(p) else None for p in first.params),
                tuple(map(dims.of, first.dims)),
            )
        }
        pending = [name]
        while pending:
            function = self.module.functions[pending.pop()]
            arrays, extents = homes[function.name]
            known = dict(zip(function.params, arrays, strict=True))
            sizes = dict(zip(function.dims, extents, strict=True))
            for let in walk.nested_lets(function.body):
                call = let.rhs
                if not isinstance(call, FnCall):
                    continue
                passed = tuple(known.get(a) if isinstance(a, Var) else None for a in call.args)
                if any(p is None for p, a in zip(passed, call.args, strict=True) if is_array(a)):
                    return None
                found = passed, tuple(dims.substitute(d, sizes) for d in call.dims)
                if call.function not in homes:
                    homes[call.function] = found
                    pending.append(call.function)
                elif homes[call.function] != found:
                    return None
        return homes

    def kernel(self, name: str) -> Kernel:
        """The kernel that calls a function: its parameters are the function's arrays, scalars and
        extents, the results, and where to say that the calls nested too deeply."""
        numbers, homes = self.reached(name), self._homes(name)
        assert homes is not None
        sites: list[RaiseSite] = []
        functions = [self.module.functions[each] for each in numbers]
        function = functions[0]
        arrays = tuple(p for p in function.params if is_array(p))
        routines = with_inlined_calls([
            routine(_closed(f, homes[f.name], arrays, function.dims), len(arrays), numbers, sites)
            for f in functions
        ])
        args = [_dtyped(a) for a in function.params if not is_array(a)]
        outs = [_dtyped(a) for a in function.body.results]
        too_deep = Local(bool_)
        given = [Parameter(ARRAY, k, _dtyped(a).dtype) for k, a in enumerate(arrays)]
        scalars = [Parameter(SCALAR, k, a.dtype) for k, a in enumerate(args)]
        extents = [Parameter(EXTENT, k, i64) for k in range(len(function.dims))]
        slots = [Parameter(SLOT, k, o.dtype) for k, o in enumerate((*outs, too_deep))]
        body: list[Statement] = [Read(a, p) for a, p in zip(args, scalars, strict=True)]
        body.append(Call(tuple(outs), 0, tuple(args), too_deep))
        zero = Literal(0, i64)
        for slot, out in zip(slots, (*outs, too_deep), strict=True):
            body.append(Store(slot, zero, out, parallel=False))
        return Kernel(
            (*given, *scalars, *extents, *slots), Local(i64), Local(i64), tuple(body), 1, _COST,
            tuple(sites), _spans(functions), routines,
        )

    def in_order(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """The words of a call's arguments and extents in the order of the kernel's parameters."""
        params = self.module.functions[name].params
        count = len(params)
        pairs = list(zip(params, arguments[:count], strict=True))
        arrays = [word for param, word in pairs if is_array(param)]
        scalars = [word for param, word in pairs if not is_array(param)]
        return (*arrays, *scalars, *arguments[count:])


def _closed(
    function: Function, homes: Homes, arrays: tuple[Var, ...], symbols: tuple[Symbol, ...]
) -> Function:
    """A function over a kernel's own arrays and extents, which calls others with scalars only."""
    known, extents = homes
    names = walk.Renaming()
    pairs = list(zip(function.params, known, strict=True))
    params = [names.var(param) for param, array in pairs if array is None]
    args = [names.atom(param) if array is None else array for param, array in pairs]
    body = walk.instantiate(function, args, extents)
    return rewrite(Function(function.name, (*arrays, *params), body, symbols), _for_a_kernel)


def _for_a_kernel(let: Let, builder: Builder, scope: Scope) -> Replacement:
    """Groups in line; calls with scalars only."""
    rhs = let.rhs
    if isinstance(rhs, KernelCall):
        body = walk.instantiate(rhs.function, rhs.args, rhs.dims)
        builder.lets.extend(body.lets)
        return Replaced(body.results)
    if not isinstance(rhs, FnCall):
        return None
    call = FnCall(rhs.function, tuple(a for a in rhs.args if not is_array(a)))
    outs = tuple(Var(out.name, out.type, span=out.span) for out in let.outs)
    builder.lets.append(Let(outs, call, span=let.span))
    return outs


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
    """Whether a function computes with scalars and elements only, without effects but failures."""
    if function.body.dims or len(function.body.results) > _MOST_RESULTS:
        return False
    return all(map(_is_word, function.body.results)) and all(
        _is_word(p) or is_array(p) for p in function.params
    ) and all(map(_computes, walk.nested_lets(function.body)))


def _computes(let: Let) -> bool:
    rhs = let.rhs
    if let.dims or not all(map(_is_word, let.outs)):
        return False
    match rhs:
        case OpCall():
            return scalars.is_scalar_op(rhs)
        case KernelCall():
            return all(
                isinstance(each.rhs, (If, Loop, OpCall)) and _computes(each)
                for each in walk.nested_lets(rhs.function.body)
            )
        case Loop():
            return not rhs.dims
    return isinstance(rhs, (FnCall, If))


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

