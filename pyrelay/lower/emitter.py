"""The scalar emitter `s`: element rules go in as calls of its methods, kernel IR comes out.

Rules speak in `Value`s. Each value is emitted once, into the outermost open scope in which all it
depends on is known; asking again returns the same value (global value numbering, kept per scope).
So loop invariants leave their loops, shared subexpressions stay shared, and work is linear.

Integers that are polynomials of extents and loop indices carry that polynomial: `Emitter.within`
proves from it that an index is in range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Union

from pyrelay.errors import Span
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.types import DType, TensorType, bool_, i64
from pyrelay.lower.kernel import (
    Array,
    Assign,
    Break,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Load,
    Local,
    LocalArray,
    Operand,
    Parameter,
    RaiseSite,
    Read,
    Statement,
    Store,
    While,
)
from pyrelay.ops.scalar import SCALARS

Number = Union[bool, int, float, complex]
_PYTHON_KIND: dict[str, Callable[[Any], Number]] = {"b": bool, "i": int, "u": int, "f": float}
_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "less": lambda a, b: a < b, "less_equal": lambda a, b: a <= b, "equal": lambda a, b: a == b,
    "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b,
    "not_equal": lambda a, b: a != b,
}
# primitive -> whether its i64 result has a clear sign bit, given that of its operands
_SIGN_RULES: dict[str, Callable[[Sequence[bool]], bool]] = {
    "bitwise_and": any, "bitwise_or": all, "bitwise_xor": all,
}


class Scope:
    """A body under construction, with the values that are valid in it."""

    __slots__ = ("barrier", "depth", "known", "memo", "statements")

    def __init__(self, depth: int, barrier: bool) -> None:
        self.depth, self.barrier = depth, barrier
        self.statements: list[Statement] = []
        self.known: dict[tuple[Any, ...], Value] = {}
        self.memo: dict[tuple[Any, ...], Any] = {}

    def snapshot(self) -> Callable[[], None]:
        """A function that brings the scope back to what it is now."""
        count, known, memo = len(self.statements), dict(self.known), dict(self.memo)

        def restore() -> None:
            del self.statements[count:]
            self.known, self.memo = known, memo

        return restore


class Value:
    """A scalar of the kernel under construction; operators are raw arithmetic, never checked."""

    __slots__ = ("dtype", "extent", "held", "s", "scope")

    def __init__(
        self, s: Emitter, held: Operand | None, dtype: DType, scope: Scope,
        extent: Extent | None = None,
    ) -> None:
        self.s, self.held, self.dtype, self.scope, self.extent = s, held, dtype, scope, extent

    @property
    def operand(self) -> Operand:
        """The operand of kernel IR."""
        assert self.held is not None
        return self.held

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for values that are known to be equal."""
        return operand_key(self.operand)

    @property
    def literal(self) -> Any:
        """The number if it is known now, else None."""
        return self.operand.value if isinstance(self.operand, Literal) else None

    def _binary(self, name: str, other: Any, swap: bool = False) -> Value:
        pair = (other, self) if swap else (self, other)
        return self.s.primitive(name, *pair)

    def __add__(self, o: Any) -> Value: return self._binary("add", o)
    def __radd__(self, o: Any) -> Value: return self._binary("add", o, True)
    def __sub__(self, o: Any) -> Value: return self._binary("subtract", o)
    def __rsub__(self, o: Any) -> Value: return self._binary("subtract", o, True)
    def __mul__(self, o: Any) -> Value: return self._binary("multiply", o)
    def __rmul__(self, o: Any) -> Value: return self._binary("multiply", o, True)
    def __floordiv__(self, o: Any) -> Value: return self._binary("floor_divide", o)
    def __rfloordiv__(self, o: Any) -> Value: return self._binary("floor_divide", o, True)
    def __mod__(self, o: Any) -> Value: return self._binary("remainder", o)
    def __rmod__(self, o: Any) -> Value: return self._binary("remainder", o, True)
    def __truediv__(self, o: Any) -> Value: return self._binary("divide", o)
    def __lt__(self, o: Any) -> Value: return self._binary("less", o)
    def __le__(self, o: Any) -> Value: return self._binary("less_equal", o)
    def __gt__(self, o: Any) -> Value: return self._binary("greater", o)
    def __ge__(self, o: Any) -> Value: return self._binary("greater_equal", o)
    def __and__(self, o: Any) -> Value: return self._binary("bitwise_and", o)
    def __rand__(self, o: Any) -> Value: return self._binary("bitwise_and", o, True)
    def __or__(self, o: Any) -> Value: return self._binary("bitwise_or", o)
    def __ror__(self, o: Any) -> Value: return self._binary("bitwise_or", o, True)
    def __xor__(self, o: Any) -> Value: return self._binary("bitwise_xor", o)
    def __eq__(self, o: Any) -> Any: return self._binary("equal", o)
    def __ne__(self, o: Any) -> Any: return self._binary("not_equal", o)
    def __neg__(self) -> Value: return self.s.primitive("negative", self)
    def __invert__(self) -> Value: return self.s.primitive("invert", self)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("the value of a kernel's scalar is not known while it is being written")


class Run:
    """Neighbouring axes of a space that one index counts, in C order.

    `outermost` says that its index never leaves the extents, so the first axis needs no modulo.
    """

    __slots__ = ("extents", "index", "taken_apart")

    def __init__(self, index: Value, extents: Sequence[Extent]) -> None:
        self.index, self.extents = index, tuple(extents)
        self.taken_apart = False

    def parts(self) -> tuple[Value, ...]:
        """One index per axis."""
        if len(self.extents) == 1:
            return (self.index,)
        return tuple(Part(self, k) for k in range(len(self.extents)))


class Part(Value):
    """The index of one axis of a run; computed by division only if somebody looks at it."""

    __slots__ = ("position", "run")

    def __init__(self, run: Run, position: int) -> None:
        super().__init__(run.index.s, None, i64, run.index.scope)
        self.run, self.position = run, position

    @property
    def operand(self) -> Operand:
        """The index, taken out of the run's."""
        self.run.taken_apart = True
        s, extents = self.s, self.run.extents
        inner = s.extent(dims.product(extents[self.position + 1 :]))
        index = s.primitive("floor_divide", self.run.index, inner)
        if self.position:
            index = s.primitive("remainder", index, s.extent(extents[self.position]))
        return index.operand

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for the same axis of the same run."""
        return ("part", self.run, self.position)


class Reading(Value):
    """What a variable holds at one moment: never equal to another reading, never moved out."""

    __slots__ = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal to itself alone."""
        return ("reading", self)


class Emitter:
    """Writes the statements of one kernel; the methods are what element rules may call.

    `s.<primitive>(...)` works for every name in `ops.scalar.SCALARS`.
    """

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self.scopes = [Scope(0, True)]
        self.parameters: dict[Parameter, None] = {}
        self.sites: list[RaiseSite] = []
        self.trips: dict[Local, Extent] = {}
        self.span: Span | None = None
        self.result: tuple[TensorType, ...] = ()
        self.weak = False
        self._symbols = {symbol: k for k, symbol in enumerate(symbols)}
        self._bounds: dict[Symbol, Extent] = {}
        self._not_negative_locals: set[tuple[Any, ...]] = set()

    # -- scopes --------------------------------------------------------------------------------

    @property
    def scope(self) -> Scope:
        """The innermost open scope."""
        return self.scopes[-1]

    @contextmanager
    def at(self, depth: int) -> Iterator[None]:
        """Emit as if only the scopes up to `depth` were open (but never outside a barrier)."""
        floor = max(depth, self._floor())
        saved, self.scopes = self.scopes, self.scopes[: floor + 1]
        try:
            yield
        finally:
            self.scopes = saved

    @contextmanager
    def body(self, barrier: bool = True) -> Iterator[list[Statement]]:
        """A new innermost scope; what it has collected belongs to the caller."""
        scope = Scope(len(self.scopes), barrier)
        self.scopes = [*self.scopes, scope]
        try:
            yield scope.statements
        finally:
            self.scopes = self.scopes[:-1]

    def _floor(self) -> int:
        for scope in reversed(self.scopes):
            if scope.barrier:
                return scope.depth
        raise AssertionError

    def _home(self, values: Sequence[Value]) -> Scope:
        return self.scopes[max(self._floor(), *(v.scope.depth for v in values), 0)]

    def _once(
        self, key: tuple[Any, ...], inputs: Sequence[Value],
        make: Callable[[Scope], Value],
    ) -> Value:
        lowest = max((v.scope.depth for v in inputs), default=0)
        for scope in self.scopes[lowest:]:
            if key in scope.known:
                return scope.known[key]
        home = self._home(inputs)
        value = home.known[key] = make(home)
        return value

    def emit(self, statement: Statement) -> None:
        """Append a statement to the innermost scope."""
        self.scope.statements.append(statement)

    # -- leaves --------------------------------------------------------------------------------

    def const(self, value: Any, dtype: DType) -> Value:
        """A number."""
        number = complex(value) if dtype.kind == "c" else _PYTHON_KIND[dtype.kind](value)
        extent = int(number) if dtype == i64 else None  # type: ignore[arg-type]
        return Value(self, Literal(number, dtype), dtype, self.scopes[0], extent)

    def lift(self, value: Any, dtype: DType = i64) -> Value:
        """A value as it is, or a number as a constant of `dtype`."""
        return value if isinstance(value, Value) else self.const(value, dtype)

    def read(self, parameter: Parameter) -> Value:
        """The value of a scalar or extent parameter."""
        self.parameters[parameter] = None

        def make(_: Scope) -> Value:
            local = Local(parameter.dtype)
            root.statements.append(Read(local, parameter))
            return Value(self, local, parameter.dtype, root)

        root = self.scopes[0]
        if ("read", parameter) not in root.known:
            root.known["read", parameter] = make(root)
        return root.known["read", parameter]

    def extent(self, extent: Extent) -> Value:
        """An extent as an i64 value."""
        if isinstance(extent, int):
            return self.const(extent, i64)
        with self.at(0):
            total: Value | None = None
            for monomial, coefficient in extent.terms:
                term = self.const(coefficient, i64)
                for atom, power in monomial:
                    for _ in range(power):
                        term = term * self._extent_atom(atom)
                total = term if total is None else total + term
        assert total is not None
        return Value(self, total.operand, i64, total.scope, extent)

    def _extent_atom(self, atom: dims.Atom) -> Value:
        match atom:
            case Symbol():
                value = self.read(Parameter("extent", self._symbols[atom], i64))
                return Value(self, value.operand, i64, value.scope, dims.of(atom))
            case dims.Quotient(a, b):
                return self.extent(a) // self.extent(b)
            case dims.Remainder(a, b):
                return self.extent(a) % self.extent(b)
            case dims.Extreme(kind, a, b):
                name = "minimum" if kind == "min" else "maximum"
                return self.primitive(name, self.extent(a), self.extent(b))
        raise AssertionError(atom)

    # -- arithmetic ----------------------------------------------------------------------------

    def primitive(self, name: str, *args: Any, dtype: DType | None = None) -> Value:
        """A primitive of the scalar table on values of one dtype; numbers are lifted to it.

        `dtype` is the result's where the table does not tell (`cast`).
        """
        given = next((a.dtype for a in reversed(args) if isinstance(a, Value)), i64)
        values = [self.lift(a, given) for a in args]
        known = self._folded(name, values)
        if known is not None:
            return known
        out = dtype or SCALARS[name].result_dtype(values[-1].dtype)
        key = (name, out.name, *(v.key for v in values))

        def make(home: Scope) -> Value:
            local = Local(out)
            home.statements.append(Compute(local, name, tuple(v.operand for v in values)))
            value = Value(self, local, out, home, _polynomial(name, values))
            if out == i64 and name in _SIGN_RULES:
                signs = [self._not_negative(v) for v in values]
                if _SIGN_RULES[name](signs):
                    self._not_negative_locals.add(value.key)
            return value

        return self._once(key, values, make)

    def _folded(self, name: str, values: list[Value]) -> Value | None:
        """Index arithmetic and truth values that are known now or change nothing."""
        kinds = values[0].dtype.kind
        if len(values) == 2 and values[0].dtype == values[1].dtype == i64:
            return self._folded_index(name, *values)
        if name in ("bitwise_or", "bitwise_and", "logical_or", "logical_and") and kinds == "b":
            for this, other in (values, values[::-1]):
                if this.literal is not None:
                    absorbs = this.literal == (name.endswith("or"))
                    return this if absorbs else other
        if name in ("invert", "logical_not") and kinds == "b" and values[0].literal is not None:
            return self.const(not values[0].literal, bool_)
        if name == "where" and values[0].literal is not None:
            return values[1] if values[0].literal else values[2]
        return None

    def _folded_index(self, name: str, a: Value, b: Value) -> Value | None:
        x, y = a.literal, b.literal
        if x is not None and y is not None:
            if name in _FOLDED:
                result = _FOLDED[name](x, y)
                if isinstance(result, bool):
                    return self.const(result, bool_)
                return self.const(result, i64) if -(2**63) <= result < 2**63 else None
            if name in ("floor_divide", "remainder") and y:
                return self.const(x // y if name == "floor_divide" else x % y, i64)
        if (name in ("add", "subtract") and y == 0) or (
            name in ("multiply", "floor_divide") and y == 1
        ):
            return a
        if (name == "add" and x == 0) or (name == "multiply" and x == 1):
            return b
        if name == "multiply" and 0 in (x, y):
            return self.const(0, i64)
        if name == "less" and y == 0 and self._not_negative(a):
            return self.const(False, bool_)
        if name == "multiply_overflows" and self._small_product(a, b):
            return self.const(False, bool_)
        return None

    def cast(self, x: Any, dtype: DType) -> Value:
        """`x` in another element type, by NumPy's rules."""
        value = self.lift(x, dtype)
        if value.dtype == dtype:
            return value
        if value.literal is not None and value.dtype.kind in "bi" and dtype.kind in "if":
            return self.const(dtype.numpy.type(value.literal).item(), dtype)
        return self.primitive("cast", value, dtype=dtype)

    def where(self, cond: Value, a: Any, b: Any) -> Value:
        """One of two values, both computed."""
        return self.primitive("where", cond, *_alike(self, a, b))

    def __getattr__(self, name: str) -> Callable[..., Value]:
        if name not in SCALARS:
            raise AttributeError(name)
        return partial(self.primitive, name)

    # -- memory --------------------------------------------------------------------------------

    def load(self, array: Array, index: Value, *, parallel: bool = True) -> Value:
        """An element; `parallel` if no iteration of a loop around writes it."""
        if isinstance(array, Parameter):
            self.parameters[array] = None

        def make(home: Scope) -> Value:
            local = Local(array.dtype)
            home.statements.append(Load(local, array, index.operand, parallel))
            return Value(self, local, array.dtype, home)

        if parallel:
            return self._once(("load", array, index.key), [index], make)
        return make(self.scope)

    def store(self, array: Array, index: Value, value: Value, *, parallel: bool = True) -> None:
        """Writes an element."""
        if isinstance(array, Parameter):
            self.parameters[array] = None
        self.emit(Store(array, index.operand, value.operand, parallel))

    def local_array(self, dtype: DType, size: int) -> LocalArray:
        """A small array of this kernel."""
        return LocalArray(dtype, size)

    def variable(self, initial: Value) -> Value:
        """A scalar that can be assigned. As a value it stands for what it holds in the end: read it
        through `now` until then."""
        local = Local(initial.dtype, variable=True)
        self.emit(Assign(local, initial.operand))
        return Value(self, local, initial.dtype, self.scope)

    def now(self, variable: Value) -> Value:
        """What a variable holds now, for use before its next assignment, in the innermost scope."""
        return Reading(self, variable.operand, variable.dtype, self.scope)

    def copy(self, value: Value) -> Value:
        """What a variable holds now, whatever is assigned to it later."""
        return self.variable(value)

    def assign(self, variable: Value, value: Value) -> None:
        """Sets a variable."""
        assert isinstance(variable.operand, Local) and variable.dtype == value.dtype
        self.emit(Assign(variable.operand, value.operand))

    # -- control -------------------------------------------------------------------------------

    @contextmanager
    def loop(
        self, start: Any, stop: Any, *, barrier: bool = False, trips: Extent | None = None
    ) -> Iterator[Value]:
        """A counted loop; what does not depend on its index leaves it unless it is a `barrier`.

        `trips` is the expected number of iterations where the bounds do not tell it.
        """
        first, last = self.lift(start), self.lift(stop)
        index = Local(i64)
        if trips is None and first.extent is not None and last.extent is not None:
            trips = dims.add(last.extent, dims.multiply(-1, first.extent))
        if trips is not None:
            self.trips[index] = trips
        with self.body(barrier) as statements:
            yield Value(self, index, i64, self.scope, self._index_extent(first, last))
        self.emit(For(index, first.operand, last.operand, tuple(statements)))

    def _index_extent(self, start: Value, stop: Value) -> Extent | None:
        """A fresh symbol for an index that runs from 0 to a known extent."""
        if start.literal != 0 or stop.extent is None:
            return None
        symbol = Symbol("i")
        self._bounds[symbol] = stop.extent
        return dims.of(symbol)

    def bounded(self, value: Value, stop: Extent) -> Value:
        """`value`, which the caller knows to be in 0..stop-1, with that knowledge attached."""
        symbol = Symbol("i")
        self._bounds[symbol] = stop
        return Value(self, value.operand, i64, value.scope, dims.of(symbol))

    @contextmanager
    def repeat(self) -> Iterator[None]:
        """An endless loop, left by `leave`."""
        with self.body() as statements:
            yield
        self.emit(While(tuple(statements)))

    def leave(self, cond: Value) -> None:
        """Leaves the innermost loop if `cond`."""
        if cond.literal is not False:
            self.emit(Break(cond.operand))

    def choose(self, cond: Value, then: Callable[[], Value], orelse: Callable[[], Value]) -> Value:
        """One of two values, of which only the one needed is computed."""
        if cond.literal is not None:
            return then() if cond.literal else orelse()
        with self.body() as taken:
            a = self.lift(then())
            chosen = Local(a.dtype, variable=True)
            self.emit(Assign(chosen, a.operand))
        with self.body() as other:
            b = self.lift(orelse(), a.dtype)
            self.emit(Assign(chosen, b.operand))
        assert a.dtype == b.dtype
        self.emit(If(cond.operand, tuple(taken), tuple(other)))
        return Value(self, chosen, a.dtype, self.scope)

    def fail(self, exception: str, parts: Sequence[str | int], cond: Any, *values: Any) -> None:
        """Ends the run with a builtin exception if `cond`; ints in `parts` number the values."""
        test = self.lift(cond, bool_)
        held = [self.lift(v) for v in values]
        key = ("fail", exception, tuple(parts), test.key, *(v.key for v in held))
        if test.literal is False or any(key in scope.known for scope in self.scopes):
            return
        home = self._home([test, *held])
        home.known[key] = test
        dtypes = tuple(v.dtype for v in held)
        self.sites.append(RaiseSite(exception, tuple(parts), dtypes, self.span))
        number = len(self.sites) - 1
        home.statements.append(Fail(test.operand, number, tuple(v.operand for v in held)))

    # -- what is known -------------------------------------------------------------------------

    def within(self, value: Value, stop: Extent) -> bool:
        """True if 0 <= value < stop for certain."""
        if value.extent is None:
            return False
        below = dims.add(dims.add(stop, -1), dims.multiply(-1, value.extent))
        return self._non_negative(value.extent) and self._non_negative(below)

    def _non_negative(self, extent: Extent) -> bool:
        lowest = self._lowest(extent)
        return lowest is not None and dims.non_negative(lowest)

    def _lowest(self, extent: Extent) -> Extent | None:
        """A lower bound without loop indices: each term at the end of their ranges that fits."""
        if isinstance(extent, int):
            return extent
        total: Extent = 0
        for monomial, coefficient in extent.terms:
            term: Extent = coefficient
            for atom, power in monomial:
                if not isinstance(atom, Symbol):
                    inner = dims.Dim(((((atom, 1),), 1),))
                    if any(s in self._bounds for s in dims.symbols(inner)):
                        return None
                    factor: Extent = inner
                elif atom in self._bounds:
                    factor = 0 if coefficient > 0 else dims.add(self._bounds[atom], -1)
                    if any(s in self._bounds for s in dims.symbols(factor)):
                        return None
                else:
                    factor = dims.of(atom)
                for _ in range(power):
                    term = dims.multiply(term, factor)
            total = dims.add(total, term)
        return total

    def _not_negative(self, value: Value) -> bool:
        """True for i64 values whose sign bit is certainly clear."""
        if value.extent is not None:
            return _is_small(value.extent) and self._non_negative(value.extent)
        return value.key in self._not_negative_locals

    def _small_product(self, a: Value, b: Value) -> bool:
        product = _polynomial("multiply", (a, b))
        return product is not None and _is_small(product)

    # -- indices -------------------------------------------------------------------------------

    def ravel(self, index: Sequence[Any], shape: Sequence[Extent]) -> Value:
        """The C-order flat index of an element of an array of this shape."""
        terms: list[Value] = []
        axis = 0
        while axis < len(shape):
            run = _run_at(index, shape, axis)
            last = axis + (len(run.extents) if run else 1)
            if shape[axis:last] != (1,):
                value = run.index if run else self.lift(index[axis])
                terms.append(value * self.extent(dims.product(shape[last:])))
            axis = last
        # Outer terms first: their sum is the same for all of the innermost loop.
        terms.sort(key=lambda v: v.scope.depth)
        total = self.const(0, i64)
        for term in terms:
            total = total + term
        return total

    def unravel(self, flat: Value, shape: Sequence[Extent]) -> tuple[Value, ...]:
        """The indices of the element with a C-order flat index; divided only when looked at."""
        if not shape:
            return ()
        if len(shape) == 1:
            return (flat,)
        run = flat.scope.known.get(("run", flat.key, tuple(shape)))
        if run is None:
            run = Run(flat, shape)  # type: ignore[assignment]
            flat.scope.known["run", flat.key, tuple(shape)] = run  # type: ignore[assignment]
        return run.parts()  # type: ignore[union-attr]


def _alike(s: Emitter, a: Any, b: Any) -> tuple[Value, Value]:
    dtype = next((v.dtype for v in (a, b) if isinstance(v, Value)), i64)
    return s.lift(a, dtype), s.lift(b, dtype)


def _run_at(index: Sequence[Any], shape: Sequence[Extent], axis: int) -> Run | None:
    """The run whose axes stand in `index` from `axis` on, whole and with the array's extents."""
    part = index[axis]
    if not isinstance(part, Part) or part.position:
        return None
    run = part.run
    count = len(run.extents)
    if tuple(shape[axis : axis + count]) != run.extents:
        return None
    for k in range(1, count):
        other = index[axis + k]
        if not isinstance(other, Part) or other.run is not run or other.position != k:
            return None
    return run


def _is_small(extent: Extent) -> bool:
    """True if a polynomial is linear with small coefficients, so it cannot leave 64 bits."""
    if isinstance(extent, int):
        return abs(extent) < 2**31
    return all(
        abs(c) < 2**16 and len(m) <= 1 and all(p == 1 and isinstance(a, Symbol) for a, p in m)
        for m, c in extent.terms
    )


def operand_key(operand: Operand) -> tuple[Any, ...]:
    """Equal for operands that are known to be equal; tells 0.0 from -0.0 and NaN from nothing."""
    if isinstance(operand, Literal):
        return ("literal", operand.dtype.name, repr(operand.value))
    return ("local", operand)


def _polynomial(name: str, values: Sequence[Value]) -> Extent | None:
    """The polynomial of a sum, difference or product of polynomials."""
    if len(values) != 2 or name not in ("add", "subtract", "multiply"):
        return None
    a, b = (v.extent for v in values)
    if a is None or b is None:
        return None
    if name == "multiply":
        return dims.multiply(a, b)
    return dims.add(a, b if name == "add" else dims.multiply(-1, b))
