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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
_LARGEST = 640  # Lets of the functions of one kernel


@dataclass(frozen=True, slots=True)
class Homes:
    """What a function's parameters and extents are in terms of the one that a kernel calls: for
    each array one of its arrays, None for scalars and for arrays that calls pass as addresses; for
    each symbol an extent, unless calls pass these."""

    arrays: tuple[Atom | None, ...]
    extents: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class Passing:
    """How the functions that a call runs get their arrays.

    homes: of each. passed: numbers of the array parameters that each takes as addresses, as they
    are other ones in other calls, or other buffers by the end. sized: whether they take extents.
    """

    homes: Mapping[str, Homes]
    passed: Mapping[str, frozenset[int]]
    sized: bool


@dataclass(frozen=True, slots=True)
class Recursion:
    """The functions that native code may call, and those among them that call themselves.

    resumes: whether the plan goes on where the native stack is short. loops: those that are made to
    be entered natively (`called_loops`): the plan hardly ever runs them.
    """

    native: Mapping[str, Threaded]
    recursive: frozenset[str]
    resumes: bool
    loops: frozenset[str]

    def passing(self, caller: str, callee: str) -> Passing | None:
        """How a call that enters native code passes arrays; None if it had better not enter it:
        it does not recurse, is part of a recursion, or native code cannot make it.
        """
        if caller in self.loops or callee not in self.native or self.native[callee].is_part:
            return None
        reached = self.reached(callee)
        if caller in reached or self.recursive.isdisjoint(reached):
            return None
        size = sum(1 for name in reached for _ in self._lets(name))
        return self._passing(callee, reached) if size <= _LARGEST else None

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

    def _lets(self, name: str) -> Iterable[Let]:
        return walk.nested_lets(self.native[name].function.body)

    def _passing(self, name: str, reached: Collection[str]) -> Passing | None:
        """How a call of a function passes arrays; None if it cannot, where the plan does not go on:
        there all calls of a function pass the same ones.
        """
        passed: dict[str, set[int]] = {
            each: _arrays_of(self.native[each].function) if self.native[each].is_part else set()
            for each in reached
        }
        sized = any(self.native[each].function.body.dims for each in reached)
        while True:
            self._spread(passed)
            sized = sized or any(passed.values())
            homes, other = self._homes(name, passed, sized)
            if other is None:
                frozen = {each: frozenset(numbers) for each, numbers in passed.items()}
                return Passing(homes, frozen, sized)
            if not self.resumes:
                return None
            callee, numbers = other
            passed[callee] |= numbers
            sized = True

    def _spread(self, passed: dict[str, set[int]]) -> None:
        """Whoever passes an array as an address gets it as one, and who is passed it."""
        changed = True
        while changed:
            changed = False
            for name in passed:
                here = self.native[name]
                params = {p: k for k, p in enumerate(here.function.params)}
                for call in self._calls(name):
                    for k, arg in enumerate(call.args):
                        j = params.get(here.root(arg)) if is_array(arg) else None  # type: ignore[arg-type]
                        if j is not None and (j in passed[name]) != (k in passed[call.function]):
                            passed[name].add(j)
                            passed[call.function].add(k)
                            changed = True

    def _calls(self, name: str) -> Iterable[FnCall]:
        if not self.native[name].is_part:
            yield from (let.rhs for let in self._lets(name) if isinstance(let.rhs, FnCall))

    def _homes(
        self, name: str, passed: Mapping[str, set[int]], sized: bool
    ) -> tuple[dict[str, Homes], tuple[str, set[int]] | None]:
        """The homes of all functions that a call of one runs; or a function, and those of its
        arrays that are other ones in other calls, none if it is its extents that are."""
        first = self.native[name].function
        arrays = tuple(
            p if is_array(p) and k not in passed[name] else None
            for k, p in enumerate(first.params)
        )
        homes = {name: Homes(arrays, () if sized else tuple(map(dims.of, first.dims)))}
        pending = [name]
        while pending:
            here = self.native[pending.pop()]
            function, own = here.function, homes[here.function.name]
            known = dict(zip(function.params, own.arrays, strict=True))
            sizes = {} if sized else dict(zip(function.dims, own.extents, strict=True))
            for call in self._calls(function.name):
                callee = call.function
                given = tuple(
                    known.get(here.root(a)) if is_array(a) and k not in passed[callee] else None  # type: ignore[arg-type]
                    for k, a in enumerate(call.args)
                )
                extents = () if sized else tuple(dims.substitute(d, sizes) for d in call.dims)
                found = Homes(given, extents)
                if callee not in homes:
                    homes[callee] = found
                    pending.append(callee)
                before = homes[callee].arrays
                differ = {k for k, a in enumerate(given) if a is not before[k]}
                if sized:  # two of one shape have one name each
                    differ |= {k for k, a in enumerate(given) if a is not None
                               and given.index(a) != k}
                if differ:
                    return homes, (callee, differ)
                if not sized and (
                    homes[callee].extents != extents
                    or (self.resumes and not all(map(_is_plain, extents)))
                ):
                    return homes, (callee, set())
        return homes, None

    def kernel(self, name: str, passing: Passing) -> Kernel:
        """The kernel that calls a function: its parameters are the function's arrays, scalars and
        extents; if the plan goes on where the stack is short, the functions that are reached; the
        results but for arrays that stay where they are; and else where to say that the calls nested
        too deeply."""
        numbers = self.reached(name)
        homes, passed = passing.homes, passing.passed
        function = self.native[name].function
        own = [p for k, p in enumerate(function.params) if is_array(p) and k not in passed[name]]
        places: dict[Atom, int] = {array: k for k, array in enumerate(own)}
        written = {
            places[home] for each in numbers for k in self.native[each].written
            if (home := homes[each].arrays[k]) is not None
        }
        given_back = {each: self.native[each].given_back for each in numbers}
        shared = Routines(numbers, given_back, passed, passing.sized, frozenset(written), [])
        arrays = [
            Parameter(ARRAY, k, _dtyped(a).dtype)
            for k, a in enumerate([*own, *(function.params[k] for k in sorted(passed[name]))])
        ]
        extents = [Parameter(EXTENT, k, i64) for k in range(len(function.dims))]
        words: dict[object, Parameter] = dict(zip(own, arrays[: len(own)], strict=True))
        words |= dict(zip(map(dims.of, function.dims), extents, strict=True))
        codes = [Parameter(CODE, k, i64) for k in numbers.values()] if self.resumes else []
        routines = []
        for each, k in numbers.items():
            made = self._routine(each, passing, own, function.dims, shared)
            if self.resumes:
                made = replace(made, planned=self._planned(each, passing, made, codes[k], words))
            routines.append(made)
        args = [_dtyped(a) for a in function.params if not is_array(a)]
        scalars = [Parameter(SCALAR, k, a.dtype) for k, a in enumerate(args)]
        body: list[Statement] = [Read(a, p) for a, p in zip(args, scalars, strict=True)]
        given = self._given(function, passed[name], iter(args), arrays[len(own) :], body)
        if passing.sized:
            sizes = [Local(i64) for _ in extents]
            body += [Read(a, p) for a, p in zip(sizes, extents, strict=True)]
            given += sizes
        outs = [Local(o.dtype) for o in routines[0].results]
        too_deep = None if self.resumes else Local(bool_)
        told = outs if too_deep is None else [*outs, too_deep]
        slots = [Parameter(SLOT, k, o.dtype) for k, o in enumerate(told)]
        body.append(Call(tuple(outs), 0, tuple(given), too_deep))
        zero = Literal(0, i64)
        for slot, out in zip(slots, told, strict=True):
            body.append(Store(slot, zero, out, parallel=False))
        return Kernel(
            (*arrays, *scalars, *extents, *codes, *slots), Local(i64), Local(i64), tuple(body), 1,
            _COST, tuple(shared.sites), self._spans(numbers), with_inlined_calls(routines),
            apart=bool(written),
        )

    @staticmethod
    def _given(
        function: Function, passed: Collection[int], scalars: Iterator[Local],
        addresses: Iterable[Parameter], body: list[Statement],
    ) -> list[Operand]:
        """What a kernel calls its function with, of scalars and addresses that it reads."""
        given: list[Operand] = []
        rest = iter(addresses)
        for k, param in enumerate(function.params):
            if not is_array(param):
                given.append(next(scalars))
            elif k in passed:
                address = Local(i64)
                body.append(Read(address, next(rest)))
                given.append(address)
        return given

    def _routine(
        self, name: str, passing: Passing, arrays: Sequence[Var], symbols: Sequence[Symbol],
        shared: Routines,
    ) -> Routine:
        """The routine of a function; all that one of a part does is to have the plan go on."""
        here = self.native[name]
        if here.is_part:
            function = here.function
            params = [Local(i64 if is_array(p) else _dtyped(p).dtype) for p in function.params]
            params += [Local(i64) for _ in function.dims]
            results = [
                Local(i64 if is_array(r) else _dtyped(r).dtype) for r in function.body.results
            ]
            return Routine(tuple(params), None, tuple(results))
        closed, own = _closed(here.function, passing, arrays, symbols)
        return routine(closed, len(arrays), own, shared)

    def _planned(
        self, name: str, passing: Passing, made: Routine, code: Parameter,
        words: Mapping[object, Parameter],
    ) -> Planned:
        """What the plan is given in the place of a routine."""
        here, homes = self.native[name], passing.homes[name]
        params = iter(made.params)
        given: list[Operand | Parameter] = [
            next(params) if home is None else words[home] for home in homes.arrays
        ]
        if passing.sized:
            given += params
        for extent in homes.extents if not passing.sized else ():
            given.append(Literal(extent, i64) if isinstance(extent, int) else words[extent])
        count = len(here.given_back)
        taken = [n for n, k in enumerate(here.given_back) if k is None or k in passing.passed[name]]
        taken += range(count, count + len(here.function.body.dims))
        return Planned(code, tuple(given), tuple(taken))

    def in_order(
        self, name: str, passing: Passing, arguments: Sequence[Word]
    ) -> tuple[Word, ...]:
        """The words of a call's arguments and extents in the order of the kernel's parameters."""
        params = self.native[name].function.params
        passed, count = passing.passed[name], len(params)
        arrays = [k for k, param in enumerate(params) if is_array(param)]
        order = [k for k in arrays if k not in passed] + [k for k in arrays if k in passed]
        order += [k for k in range(count) if k not in arrays]
        return (*(arguments[k] for k in order), *arguments[count:])

    def staying(self, name: str, passing: Passing) -> tuple[int | None, ...]:
        """For each result of a function the number of the array argument that it is and whose
        buffer it has; None for all that a kernel returns."""
        return tuple(
            None if k in passing.passed[name] else k for k in self.native[name].given_back
        )

    def _spans(self, names: Iterable[str]) -> tuple[Span, ...]:
        lets = [let for name in names for let in self._lets(name)]
        return tuple(dict.fromkeys(let.span for let in lets if let.span is not None))


def _closed(
    function: Function, passing: Passing, arrays: Sequence[Var], symbols: Sequence[Symbol]
) -> tuple[Function, tuple[Symbol, ...]]:
    """A function over a kernel's own arrays and extents, and the extents that it takes: of these
    are then the shapes of the arrays, too."""
    names = walk.Renaming()
    homes = passing.homes[function.name]
    own = tuple(map(names.symbol, function.dims)) if passing.sized else ()
    pairs = list(zip(function.params, homes.arrays, strict=True))
    params = [names.var(param) for param, array in pairs if array is None]
    called = {a: names.var(p) if passing.sized else a for p, a in pairs if isinstance(a, Var)}
    args = [names.atom(p) if a is None else called[a] for p, a in pairs]  # type: ignore[index]
    extents = tuple(map(dims.of, own)) if passing.sized else homes.extents
    body = walk.instantiate(function, args, extents)
    kept = (called.get(array, array) for array in arrays)
    return Function(function.name, (*kept, *params), body, tuple(symbols)), own


def _arrays_of(function: Function) -> set[int]:
    """The numbers of the array parameters of a function."""
    return {k for k, param in enumerate(function.params) if is_array(param)}


def recursion(
    module: Module, recursive: frozenset[str], resumes: bool,
    parts: frozenset[str] = frozenset(), loops: frozenset[str] = frozenset(),
) -> Recursion:
    """What can be called natively in a module with these recursive functions, parts and loops."""
    found = threaded(module.functions.values(), resumes, parts) if recursive else {}
    return Recursion(found, recursive, resumes, loops)


def _is_plain(extent: Extent) -> bool:
    """Whether an extent is a number or a symbol."""
    found = dims.symbols(extent)
    return isinstance(extent, int) or (len(found) == 1 and extent == dims.of(found[0]))


def _dtyped(atom: Atom) -> Local:
    assert isinstance(atom.type, TensorType)
    return Local(atom.type.dtype)
