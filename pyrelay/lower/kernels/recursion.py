"""Recursive functions of scalars and elements as native functions that call each other.

In: the functions of a module after `normalise`. Out: which calls are worth a kernel, and the kernel
that makes such a call. The functions may read arrays that all calls pass on, such as the columns of
a tree, and store into them, such as the board of a search: these are the kernel's, and no arguments
of its functions (`threaded_arrays`).

A call of the plan takes some nanoseconds for each instruction; a native call takes one or two in
all, but the native stack is short. Where calls nest too deeply for it, the plan, whose frames lie
in memory, goes on with the call that is due (`Planned`). Where no plan can do that, on a GPU, the
functions store nothing: the kernel gives up, and the plan does it all again. Nothing has happened
by then: where they raise, they do so in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pyrelay.errors import Span
from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, FnCall, Function, Let, Module, Var
from pyrelay.ir.types import TensorType, bool_, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    CODE,
    EXTENT,
    SCALAR,
    SLOT,
    Call,
    Kernel,
    Literal,
    Local,
    Operand,
    Parameter,
    Planned,
    Read,
    Routine,
    Statement,
    Store,
)
from pyrelay.lower.kernels.scalar_program import Routines, routine
from pyrelay.lower.kernels.threaded_arrays import Threaded, threaded
from pyrelay.lower.passes.inlined_calls import with_inlined_calls
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass

Word = TypeVar("Word")

_COST = 1_000_000  # picoseconds that a call is taken to last
_LARGEST = 400  # Lets of the functions of one kernel


@dataclass(frozen=True, slots=True)
class Homes:
    """What a function's parameters and extents are in terms of the one that a kernel calls: for
    each array one of its arrays (None for scalars), for each symbol an extent."""

    arrays: tuple[Atom | None, ...]
    extents: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class Recursion:
    """The functions that native code may call, and those among them that call themselves.

    `resumes`: whether the plan goes on where the native stack is short.
    """

    native: Mapping[str, Threaded]
    recursive: frozenset[str]
    resumes: bool

    def is_worth_it(self, caller: str, callee: str) -> bool:
        """Whether a call is to enter native code: it recurses, and is not part of a recursion."""
        if callee not in self.native:
            return False
        reached = self.reached(callee)
        if self.recursive.isdisjoint(reached):
            return False
        size = sum(1 for name in reached for _ in self._lets(name))
        return caller not in reached and size <= _LARGEST and self._homes(callee) is not None

    def reached(self, name: str) -> dict[str, int]:
        """The functions that a call of one runs, numbered, itself first."""
        numbers = {name: 0}
        pending = [name]
        while pending:
            for callee in walk.called(self.native[pending.pop()].function):
                if callee not in numbers:
                    numbers[callee] = len(numbers)
                    pending.append(callee)
        return numbers

    def callees_first(self) -> list[str]:
        """The functions in an order in which those of a recursion stand before who enters it."""
        return sorted(self.native, key=lambda name: len(self.reached(name)))

    def given_back(self, name: str) -> tuple[int | None, ...]:
        """For each result of a function the number of the array argument that it is, if it is."""
        return self.native[name].given_back

    def _lets(self, name: str) -> Iterable[Let]:
        return walk.nested_lets(self.native[name].function.body)

    def _homes(self, name: str) -> dict[str, Homes] | None:
        """What the arrays and extents are of all functions that a call of one runs, in terms of its
        own; None unless all calls of a function pass the same ones.
        """
        first = self.native[name].function
        arrays = tuple(p if is_array(p) else None for p in first.params)
        homes = {name: Homes(arrays, tuple(map(dims.of, first.dims)))}
        pending = [name]
        while pending:
            here = self.native[pending.pop()]
            function, own = here.function, homes[here.function.name]
            known = dict(zip(function.params, own.arrays, strict=True))
            sizes = dict(zip(function.dims, own.extents, strict=True))
            for let in walk.nested_lets(function.body):
                call = let.rhs
                if not isinstance(call, FnCall):
                    continue
                roots = map(here.root, call.args)
                passed = tuple(known.get(a) if isinstance(a, Var) else None for a in roots)
                if any(p is None for p, a in zip(passed, call.args, strict=True) if is_array(a)):
                    return None
                found = Homes(passed, tuple(dims.substitute(d, sizes) for d in call.dims))
                if self.resumes and not all(map(_is_plain, found.extents)):
                    return None
                if call.function not in homes:
                    homes[call.function] = found
                    pending.append(call.function)
                elif homes[call.function] != found:
                    return None
        return homes

    def kernel(self, name: str) -> Kernel:
        """The kernel that calls a function: its parameters are the function's arrays, scalars and
        extents; if the plan goes on where the stack is short, the functions that are reached; the
        results that are scalars; and else where to say that the calls nested too deeply."""
        numbers, homes = self.reached(name), self._homes(name)
        assert homes is not None
        function = self.native[name].function
        arrays = [p for p in function.params if is_array(p)]
        places: dict[Atom, int] = {array: k for k, array in enumerate(arrays)}
        written = {
            places[home] for each in numbers for k in self.native[each].written
            if (home := homes[each].arrays[k]) is not None
        }
        given_back = {each: self.native[each].given_back for each in numbers}
        shared = Routines(numbers, given_back, frozenset(written), [])
        given = [Parameter(ARRAY, k, _dtyped(a).dtype) for k, a in enumerate(arrays)]
        extents = [Parameter(EXTENT, k, i64) for k in range(len(function.dims))]
        words: dict[object, Parameter] = {**dict(zip(arrays, given, strict=True))}
        words |= dict(zip(map(dims.of, function.dims), extents, strict=True))
        routines = []
        codes = [Parameter(CODE, k, i64) for k in numbers.values()] if self.resumes else []
        for each, k in numbers.items():
            closed = _closed(self.native[each].function, homes[each], arrays, function.dims)
            made = routine(closed, len(arrays), shared)
            if self.resumes:
                planned = self._planned(each, homes[each], made, codes[k], words)
                made = replace(made, planned=planned)
            routines.append(made)
        args = [_dtyped(a) for a in function.params if not is_array(a)]
        outs = [_dtyped(a) for a in function.body.results if not is_array(a)]
        too_deep = None if self.resumes else Local(bool_)
        told = outs if too_deep is None else [*outs, too_deep]
        scalars = [Parameter(SCALAR, k, a.dtype) for k, a in enumerate(args)]
        slots = [Parameter(SLOT, k, o.dtype) for k, o in enumerate(told)]
        body: list[Statement] = [Read(a, p) for a, p in zip(args, scalars, strict=True)]
        body.append(Call(tuple(outs), 0, tuple(args), too_deep))
        zero = Literal(0, i64)
        for slot, out in zip(slots, told, strict=True):
            body.append(Store(slot, zero, out, parallel=False))
        return Kernel(
            (*given, *scalars, *extents, *codes, *slots), Local(i64), Local(i64), tuple(body), 1,
            _COST, tuple(shared.sites), self._spans(numbers), with_inlined_calls(routines),
            apart=bool(written),
        )

    def _planned(
        self, name: str, homes: Homes, made: Routine, code: Parameter,
        words: Mapping[object, Parameter],
    ) -> Planned:
        """What the plan is given in the place of a routine."""
        scalars = iter(made.params)
        given: list[Operand | Parameter] = [
            next(scalars) if home is None else words[home] for home in homes.arrays
        ]
        for extent in homes.extents:
            given.append(Literal(extent, i64) if isinstance(extent, int) else words[extent])
        back = self.native[name].given_back
        return Planned(code, tuple(given), tuple(n for n, k in enumerate(back) if k is None))

    def in_order(self, name: str, arguments: Sequence[Word]) -> tuple[Word, ...]:
        """The words of a call's arguments and extents in the order of the kernel's parameters."""
        params = self.native[name].function.params
        count = len(params)
        pairs = list(zip(params, arguments[:count], strict=True))
        arrays = [word for param, word in pairs if is_array(param)]
        scalars = [word for param, word in pairs if not is_array(param)]
        return (*arrays, *scalars, *arguments[count:])

    def _spans(self, names: Iterable[str]) -> tuple[Span, ...]:
        lets = [let for name in names for let in self._lets(name)]
        return tuple(dict.fromkeys(let.span for let in lets if let.span is not None))


def _closed(
    function: Function, homes: Homes, arrays: Sequence[Var], symbols: tuple[Symbol, ...]
) -> Function:
    """A function over a kernel's own arrays and extents."""
    names = walk.Renaming()
    pairs = list(zip(function.params, homes.arrays, strict=True))
    params = [names.var(param) for param, array in pairs if array is None]
    args = [names.atom(param) if array is None else array for param, array in pairs]
    body = walk.instantiate(function, args, homes.extents)
    return Function(function.name, (*arrays, *params), body, symbols)


def recursion(module: Module, recursive: frozenset[str], resumes: bool) -> Recursion:
    """What can be called natively in a module with these recursive functions."""
    found = threaded(module.functions.values(), resumes) if recursive else {}
    return Recursion(found, recursive, resumes)


def _is_plain(extent: Extent) -> bool:
    """Whether an extent is a number or a symbol."""
    found = dims.symbols(extent)
    return isinstance(extent, int) or (len(found) == 1 and extent == dims.of(found[0]))


def _dtyped(atom: Atom) -> Local:
    assert isinstance(atom.type, TensorType)
    return Local(atom.type.dtype)
