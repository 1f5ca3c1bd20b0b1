"""The planner: a Core module after `fuse` in, the plan that the executor runs out.

    normalise      what is left outside kernels becomes a group of its own
    memory         who owns which buffer, where it dies
    plan_function  one function: blocks, slots, frees; with plan_control (call, if, loop), plan_ops
                   (extents, checks, tapes, views), plan_kernels (launches), plan_scalars
    recursion      scalar functions that call themselves, as native functions
    sizes          extents as slots

Function 0 of a plan is made here: it takes what crosses the boundary apart, checks guards, lends
or copies arguments, calls the entry function, and describes the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType

from pyrelay.errors import InvariantError
from pyrelay.ir import dims, types, walk
from pyrelay.ir.dims import Dim, Extent, Symbol
from pyrelay.ir.nodes import Function, KernelCall, Let, Module, OpCall
from pyrelay.ir.op import Effect, Op
from pyrelay.ir.types import TensorType, Type
from pyrelay.lower.kernels.called_loops import with_called_loops
from pyrelay.lower.kernels.growing_parts import with_growing_parts
from pyrelay.lower.kernels.recursion import recursion
from pyrelay.lower.planning import boundary
from pyrelay.lower.planning.boundary import Parameter, Result
from pyrelay.lower.planning.frame import Frame, Words, word_count
from pyrelay.lower.planning.instructions import (
    Binary,
    Call,
    Copy,
    Free,
    Guard,
    JumpIf,
    JumpUnless,
    Plan,
    PlanFunction,
    Return,
    Slot,
    Unary,
    Value,
)
from pyrelay.lower.planning.memory import consumed_parameters
from pyrelay.lower.planning.normalise import kernels_only
from pyrelay.lower.planning.plan_function import FunctionPlanner
from pyrelay.lower.planning.program import Program
from pyrelay.lower.planning.sizes import Sizes
from pyrelay.lower.planning.target import Target
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """`left op right` must be `truth` for a call to be served; op is ==, !=, <, <=, > or >=."""

    op: str
    left: Extent
    right: Extent
    truth: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """How Python sees the entry function. Empty fields are derived from its types.

    parameters  one per argument; those that are no ObjectParameter are the function's, in order.
    results     one per object that goes back; those that take words are given by `sources`.
    sources     for each result that takes words, which result of the function it is.
    mutated     parameter of the function -> the result that holds its content at the end, which is
                written to the caller's array.
    conditions  on extents; all symbols of the function.
    orders      of parameters whose axes lie in memory otherwise than they stand: those axes.
    """

    parameters: tuple[Parameter, ...] = ()
    results: tuple[Result, ...] = ()
    sources: tuple[int, ...] = ()
    mutated: Mapping[int, int] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    single: bool = False
    orders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def plan(
    module: Module, target: Target, entry: Entry | None = None,
    begin: Callable[[str], object] = str, sizes: Mapping[Symbol, int] = MappingProxyType({}),
) -> Plan:
    """The plan of a module. `begin` is told the text of each kernel as soon as there is one, and
    of parts that kernels will call where the entry's extents have these `sizes`.

    Raises InvariantError if the program is not what `fuse` leaves, or the arguments do not tell the
    entry's extents.
    """
    module = kernels_only(_with_extents_of_results(module), target)
    program = Program(target, begin, sizes)
    entry = _completed(module.main, entry or Entry())
    program.begins_again = not entry.mutated and not any(map(_does_something, _ops(module)))
    forced = {}
    recursive = frozenset(_recursive(module))
    parts = loops = frozenset[str]()
    if target.resumes and recursive:
        module, parts = with_growing_parts(module)
        module, loops = with_called_loops(module, recursive, parts)
    native = recursion(module, recursive, target.resumes, parts, loops)
    if not any(module.entry in walk.called(f) for f in module.functions.values()):
        forced[module.entry] = frozenset(entry.mutated)
    for name in parts & native.native.keys():
        given_back = native.native[name].given_back
        forced[name] = frozenset(k for k in given_back if k is not None)
    consumed = consumed_parameters(module, _written(program), forced)
    numbers = {name: k for k, name in enumerate(module.functions, start=1)}
    planned: dict[str, PlanFunction] = {}
    for name in dict.fromkeys([*native.callees_first(), *module.functions]):
        function = module.functions[name]
        planner = FunctionPlanner(program, numbers, consumed, native, planned, function)
        mutated = entry.mutated if name == module.entry and name in forced else {}
        planned[name] = planner.plan(name in recursive, mutated)
    functions = [_boundary_function(module, entry, consumed[module.entry], numbers)]
    functions += [planned[name] for name in module.functions]
    return Plan(
        tuple(functions), tuple(program.kernels), tuple(program.sites), (), entry.parameters,
        entry.results, entry.single, tuple(program.hosts),
        tuple(program.ufuncs),
    )


def _ops(module: Module) -> Iterator[Op]:
    for function in module.functions.values():
        for let in walk.nested_lets(function.body):
            if isinstance(let.rhs, OpCall):
                yield let.rhs.op


def _does_something(op: Op) -> bool:
    return op.effect is Effect.HOST


def _with_extents_of_results(module: Module) -> Module:
    """The module whose entry also returns the extents of its results that only its run tells."""
    main = module.main
    told = {s for e in main.body.dims for s in dims.symbols(e)}.union(main.dims)
    found = [s for ty in main.result_types if ty is not None for s in types.type_symbols(ty)]
    missing = [dims.of(s) for s in dict.fromkeys(found) if s not in told]
    if not missing:
        return module
    body = replace(main.body, dims=(*main.body.dims, *missing))
    return Module({**module.functions, module.entry: replace(main, body=body)}, module.entry)


def _written(program: Program) -> Callable[[Let], Sequence[int]]:
    def written(let: Let) -> Sequence[int]:
        if not isinstance(let.rhs, KernelCall):
            return ()
        return tuple(program.lowering(let.rhs.function).lowering.written)

    return written


def _recursive(module: Module) -> set[str]:
    """Functions that can be called while they run."""
    calls = {name: walk.called(f) for name, f in module.functions.items()}
    found = set()
    for name in calls:
        reached: set[str] = set()
        pending = list(calls[name])
        while pending:
            callee = pending.pop()
            if callee not in reached:
                reached.add(callee)
                pending += calls[callee]
        if name in reached:
            found.add(name)
    return found


# -- the boundary ----------------------------------------------------------------------------------


def _completed(function: Function, entry: Entry) -> Entry:
    """The entry with its empty fields derived from the function's types."""
    parameters = entry.parameters or tuple(
        _parameter(p.type, k in entry.mutated, entry.orders.get(k, ()))
        for k, p in enumerate(function.params)
    )
    written = set(entry.mutated.values())
    kept = [k for k in range(len(function.body.results)) if k not in written]
    results, sources = entry.results, entry.sources
    if not results:
        results = tuple(_result(function.body.results[k].type) for k in kept)
        sources = tuple(kept)
    return Entry(
        parameters, results, sources, entry.mutated, entry.conditions, entry.single
    )


def _parameter(ty: Type | None, writeable: bool, order: tuple[int, ...]) -> Parameter:
    assert isinstance(ty, TensorType)
    if not ty.shape:
        return boundary.ScalarParameter(types.scalar_kind(ty))
    fixed = tuple(e if isinstance(e, int) else None for e in ty.shape)
    return boundary.ArrayParameter(
        ty.dtype.numpy_name, ty.rank, order, writeable=writeable, extents=fixed
    )


def _result(ty: Type | None) -> Result:
    assert isinstance(ty, TensorType)
    if not ty.shape:
        return boundary.ScalarResult(types.scalar_kind(ty))
    return boundary.ArrayResult(ty.dtype.numpy_name, ty.rank)


def _boundary_function(
    module: Module, entry: Entry, consumed: frozenset[int], numbers: Mapping[str, int]
) -> PlanFunction:
    return _Boundary(module.main, entry, consumed).plan(numbers[module.entry])


class _Boundary:
    """Writes function 0 of a plan."""

    def __init__(self, function: Function, entry: Entry, consumed: frozenset[int]) -> None:
        self.function, self.entry, self.consumed = function, entry, consumed
        self.frame = Frame("entry")
        self.sizes = Sizes(self.frame)
        self.arguments: list[Words] = []
        self.foreign: dict[int, Value] = {}  # addresses of arrays that the caller sees change

    def plan(self, number: int) -> PlanFunction:
        shapes = self._parameters()
        parameters = self.frame.slots
        self._bind_symbols(shapes)
        for condition in self.entry.conditions:
            self._guard(condition)
        arguments: list[Value] = []
        for k, words in enumerate(self.arguments):
            arguments += self._owned(k, words) if k in self.consumed else words
        function = self.function
        results = [self.frame.words(word_count(a.type)) for a in function.body.results]
        extents = self.frame.words(len(function.body.dims))
        arguments += self.sizes.values(tuple(map(dims.of, function.dims)))
        slots = [slot for words in results for slot in words]
        self.frame.emit(Call(number, tuple(arguments), (*slots, *extents)))
        self._bind_results(extents)
        self._rescue(results)
        self._write_back(results)
        values: list[Value] = []
        for source in self.entry.sources:
            values += map(Slot, results[source])
            ty = function.body.results[source].type
            assert isinstance(ty, TensorType)
            values += self.sizes.values(ty.shape)
        self._free_rest(results)
        self.frame.emit(Return(tuple(values)))
        return self.frame.finish(parameters)

    # -- arguments -----------------------------------------------------------------------------

    def _parameters(self) -> list[tuple[Value, ...]]:
        """Give slots to the parameters; the extents of each of the function's parameters."""
        shapes: list[tuple[Value, ...]] = []
        own = [p for p in self.entry.parameters if not isinstance(p, boundary.ObjectParameter)]
        for parameter in own:
            slots = tuple(map(Slot, self.frame.words(parameter.words)))
            if isinstance(parameter, boundary.ArrayParameter):
                if len(shapes) in self.entry.mutated:
                    self.foreign[len(shapes)] = slots[0]
                self.arguments.append(slots[:1])
                shapes.append(slots[1:])
            else:
                self.arguments.append(slots)
                shapes.append(())
        if len(shapes) != len(self.function.params):
            raise InvariantError("the boundary has another number of parameters than the entry")
        return shapes

    def _bind_symbols(self, shapes: Sequence[tuple[Value, ...]]) -> None:
        """Solve the extents of parameters for the symbols; guard what is left to hold."""
        equations: list[tuple[Extent, Value]] = []
        for param, slots in zip(self.function.params, shapes, strict=True):
            if isinstance(param.type, TensorType):
                equations += zip(param.type.shape, slots, strict=True)
        known: dict[Symbol, Value] = {}
        for extent, slot in equations:
            symbol = _plain(extent)
            if symbol is not None and symbol not in known:
                known[symbol] = slot
        self.sizes.bind(known)
        for extent, slot in equations:
            self._solve(extent, slot, known)
        missing = [s.name for s in self.function.dims if s not in known]
        if missing:
            raise InvariantError(f"no argument tells the extent {', '.join(missing)}")
        for extent, slot in equations:
            value = self.sizes.value(extent)
            if value != slot and not isinstance(extent, int):
                self._require(self._compare("eq.i64", value, slot))

    def _solve(self, extent: Extent, slot: Value, known: dict[Symbol, Value]) -> None:
        """Bind the one open symbol of `coefficient * symbol + rest`, e.g. n in f32[2*n + m]."""
        unknown = [s for s in dims.symbols(extent) if s not in known]
        if len(unknown) != 1 or not isinstance(extent, Dim):
            return
        (symbol,) = unknown
        terms = dict(extent.terms)
        coefficient = terms.pop(((symbol, 1),), 0)
        rest = Dim(tuple(terms.items())) if terms else 0
        if coefficient <= 0 or symbol in dims.symbols(rest):
            return
        left = self.sizes.compute("sub.i64", slot, self.sizes.value(rest))
        value = self.sizes.compute("floordiv.i64", left, self.sizes.value(coefficient))
        known[symbol] = value
        self.sizes.bind({symbol: value})

    def _compare(self, op: str, left: Value, right: Value) -> Slot:
        result = self.frame.slot()
        self.frame.emit(Binary(op, result, left, right))
        return Slot(result)

    def _require(self, condition: Slot) -> None:
        self.frame.emit(Guard(condition))

    def _guard(self, condition: Condition) -> None:
        if _always_holds(condition):
            return
        op = _COMPARISONS[condition.op if condition.truth else _OPPOSITE[condition.op]]
        left, right = self.sizes.value(condition.left), self.sizes.value(condition.right)
        self._require(self._compare(op, left, right))

    def _owned(self, k: int, words: Words) -> Words:
        """A consumed argument: the caller's array itself if it is to change, else a copy."""
        param = self.function.params[k]
        if k in self.foreign or not is_array(param):
            return words
        slot = self._copy(words[0], param.type)
        return (Slot(slot),)

    def _copy(self, address: Value, ty: Type | None) -> int:
        slot, size = self.frame.slot(), self._bytes(ty)
        self.frame.allocate(slot, size)
        self.frame.emit(Copy(Slot(slot), address, size))
        return slot

    def _bytes(self, ty: Type | None) -> Value:
        assert isinstance(ty, TensorType)
        return self.sizes.value(dims.multiply(ty.size, ty.dtype.size))

    # -- results -------------------------------------------------------------------------------

    def _bind_results(self, slots: Sequence[int]) -> None:
        """The symbols that the function's body ends with are known now."""
        values: dict[Symbol, Value] = {}
        for extent, slot in zip(self.function.body.dims, slots, strict=True):
            symbol = _plain(extent)
            if symbol is not None and symbol not in self.function.dims:
                values[symbol] = Slot(slot)
        if values:
            self.sizes.bind(values)

    def _array_results(self) -> list[int]:
        return [k for k, a in enumerate(self.function.body.results) if is_array(a)]

    def _rescue(self, results: Sequence[tuple[int, ...]]) -> None:
        """No result may live in the caller's array, unless it is that array's new content."""
        for k in self._array_results():
            slot = results[k][0]
            for parameter, address in self.foreign.items():
                if self.entry.mutated[parameter] == k:
                    continue
                after = self.frame.label("own")
                same = self._compare("eq.i64", Slot(slot), address)
                self.frame.emit(JumpUnless(same, after))
                copy = self._copy(Slot(slot), self.function.body.results[k].type)
                self.frame.emit(Unary("move", slot, Slot(copy)))
                self.frame.place(after)

    def _write_back(self, results: Sequence[tuple[int, ...]]) -> None:
        """Copy new contents that were not made in the caller's array into it."""
        for parameter, k in self.entry.mutated.items():
            after, slot = self.frame.label("inplace"), results[k][0]
            address = self.foreign[parameter]
            self.frame.emit(JumpIf(self._compare("eq.i64", Slot(slot), address), after))
            size = self._bytes(self.function.params[parameter].type)
            self.frame.emit(Copy(address, Slot(slot), size))
            self.frame.place(after)

    def _free_rest(self, results: Sequence[tuple[int, ...]]) -> None:
        """Results that Python does not get; freeing the caller's arrays does nothing."""
        for k in self._array_results():
            if k not in self.entry.sources:
                self.frame.emit(Free(Slot(results[k][0])))


def _always_holds(condition: Condition) -> bool:
    """True for an inequality that follows from extents being no less than 0."""
    op = condition.op if condition.truth else _OPPOSITE[condition.op]
    if op == ">=":
        return dims.non_negative(dims.add(condition.left, dims.multiply(-1, condition.right)))
    if op == "<=":
        return dims.non_negative(dims.add(condition.right, dims.multiply(-1, condition.left)))
    return False


def _plain(extent: Extent) -> Symbol | None:
    """The symbol that the extent is, or None."""
    found = dims.symbols(extent)
    return found[0] if len(found) == 1 and extent == dims.of(found[0]) else None


_COMPARISONS = {
    "==": "eq.i64", "!=": "ne.i64", "<": "lt.i64", "<=": "le.i64", ">": "gt.i64", ">=": "ge.i64",
}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
