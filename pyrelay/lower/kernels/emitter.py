"""The scalar emitter `s`: element rules go in as calls of its methods, kernel IR comes out.

Rules speak in `Value`s. Each value is emitted once, into the outermost open scope in which all it
depends on is known; asking again returns the same value (global value numbering, kept per scope).
So loop invariants leave their loops, shared subexpressions stay shared, and work is linear.

Integers that are polynomials of extents and loop indices carry that polynomial: comparisons that it
decides, such as checks that an index is in range, are not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from pyrelay.errors import Span
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.types import DType, TensorType, bool_, i64
from pyrelay.lower.kernels.kernel import (
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
from pyrelay.lower.kernels.values import (
    Part,
    Reading,
    Run,
    Scope,
    Shifted,
    Value,
    outermost,
    part_of,
    run_at,
)
from pyrelay.lower.passes.index_ranges import IndexRanges, polynomial
from pyrelay.ops.scalar import SCALARS

Number: TypeAlias = bool | int | float | complex
_PYTHON_KIND: dict[str, Callable[[Any], Number]] = {"b": bool, "i": int, "u": int, "f": float}
_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "less": lambda a, b: a < b, "less_equal": lambda a, b: a <= b, "equal": lambda a, b: a == b,
    "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b,
    "not_equal": lambda a, b: a != b,
}


_REACHES = {
    "less": ("less", 0), "greater_equal": ("greater_equal", 0), "less_equal": ("less", 1),
    "greater": ("greater_equal", 1),
}
"""What asks the same of a run's index as a comparison does of its outermost axis, with how many
more."""


class Emitter:
    """Writes the statements of one kernel; the methods are what element rules may call.

    `s.<primitive>(...)` works for every name in `ops.scalar.SCALARS`.
    """

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self.scopes = [Scope(0, True)]
        self.parameters: dict[Parameter, None] = {}
        self.sites: list[RaiseSite] = []
        self.trips: dict[Local, Extent] = {}
        self.often_short = False  # reductions have few elements, if their number is not known
        self.alone = False  # a reduction that stands in a kernel is done by one thread
        self.apart = False  # what is reduced does not lie side by side
        self.told_sizes = False  # sizes made of divisions and sums are told, not computed
        self.span: Span | None = None
        self.result: tuple[TensorType, ...] = ()
        self.weak = False
        self._symbols = {symbol: k for k, symbol in enumerate(symbols)}
        self._bound: dict[Symbol, Value] = {}
        self._sizes: dict[Extent, int] = {}
        self.parts: dict[Operand, Part] = {}  # indices that were taken out of others
        self._ranges = IndexRanges()
        self._indices: dict[Symbol, Value] = {}

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

    def address(self, parameter: Parameter) -> Value:
        """The address of an array."""
        self.parameters[parameter] = None
        root = self.scopes[0]
        key = ("address", parameter)
        if key not in root.known:
            local = Local(i64)
            root.statements.append(Read(local, parameter))
            root.known[key] = Value(self, local, i64, root)
        return root.known[key]

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

    def size(self, extents: Sequence[Extent]) -> Value:
        """How many elements so many axes have. Kernels to which launches tell it are one for all
        layers of a network, whose sizes are divisions of each other."""
        size = dims.product(extents)
        if not self.told_sizes or isinstance(size, int) or dims.is_product(size):
            return self.extent(size)
        position = len(self._symbols) + self._sizes.setdefault(size, len(self._sizes))
        value = self.read(Parameter("extent", position, i64, size))
        return Value(self, value.operand, i64, value.scope, size)

    def bind_extent(self, symbol: Symbol, value: Value) -> None:
        """Make a number what a symbol stands for, in the innermost scope and inside it."""
        self._bound[symbol] = value

    def _extent_atom(self, atom: dims.Atom) -> Value:
        match atom:
            case Symbol() if atom in self._bound:
                value = self._bound[atom]
                return Value(self, value.operand, i64, value.scope, dims.of(atom))
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
            extent = polynomial(name, *(v.extent for v in values)) if len(values) == 2 else None
            return Value(self, local, out, home, extent)

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
        if isinstance(a, (Part, Shifted)) or isinstance(b, (Part, Shifted)):
            return self._folded_part(name, a, b)
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
        if name.endswith("_overflows"):
            result = polynomial(name.removesuffix("_overflows"), a.extent, b.extent)
            fits = result is not None and dims.is_small(result)
            return self.const(False, bool_) if fits else None
        if a.extent is None or b.extent is None:
            return None
        if name in ("floor_divide", "remainder"):
            divided = self._divided(name, a.extent, b.extent)
            near = name == "remainder" and divided is None
            return self._near_remainder(a, b) if near else divided
        truth = self._ranges.decided(name, a.extent, b.extent)
        return None if truth is None else self.const(truth, bool_)

    def _folded_part(self, name: str, a: Value, b: Value) -> Value | None:
        """Sums and comparisons of a run's outermost axis, without dividing the run's index."""
        if name in ("add", "multiply") and not isinstance(a, (Part, Shifted)):
            a, b = b, a
        if isinstance(b, (Part, Shifted)):
            return None
        neutral = {"add": 0, "subtract": 0, "multiply": 1, "floor_divide": 1}
        if b.literal is not None and b.literal == neutral.get(name):
            return a
        found = outermost(a)
        if found is None:
            return None
        run, by = found
        if name in ("add", "subtract"):
            part = a.part if isinstance(a, Shifted) else a
            assert isinstance(part, Part)
            shift = self.const(0, i64) if by is None else by
            return Shifted(part, self.primitive(name, shift, b))
        if name not in _REACHES:
            return None
        bound = b if by is None else b - by
        asked, more = _REACHES[name]
        return self.primitive(asked, run.index, (bound + more) * self._inner(run))

    def _divided(self, name: str, a: Extent, b: Extent) -> Value | None:
        """`a // b` or `a % b` without the index of an inner axis: `(i * n + j) // (8 * n)` is
        `i // 8` where j is in 0..n-1."""
        found = self._ranges.divided(a, b)
        if found is None:
            return None
        whole, times, unit, rest = found
        outer = self._polynomial(whole)
        inner = None if name == "floor_divide" else self._polynomial(rest)
        if outer is None or (inner is None and name == "remainder"):
            return None
        outer = self.primitive(name, outer, self.const(times, i64))
        return outer if inner is None else outer * self.extent(unit) + inner

    def _polynomial(self, extent: Extent) -> Value | None:
        """An integer of extents and indices; None where one of them is not at hand."""
        total: Value = self.const(0, i64)
        for monomial, coefficient in () if isinstance(extent, int) else extent.terms:
            term = self.const(coefficient, i64)
            for atom, power in monomial:
                factor = self._atom(atom)
                if factor is None:
                    return None
                for _ in range(power):
                    term = term * factor
            total = total + term
        return total + extent if isinstance(extent, int) else total

    def _atom(self, atom: dims.Atom) -> Value | None:
        if not isinstance(atom, Symbol):
            return None
        index = self._indices.get(atom)
        if index is not None:
            return index if index.scope in self.scopes else None
        known = atom in self._symbols or atom in self._bound
        return self.extent(dims.of(atom)) if known else None

    def _near_remainder(self, a: Value, b: Value) -> Value | None:
        """`a % b` without dividing, of an index that is at most one period away: `(i + 1) % n`."""
        assert a.extent is not None
        assert b.extent is not None
        sides = self._ranges.sides(a.extent, b.extent)
        if sides is None:
            return None
        below, beyond = sides
        value = a
        if beyond:
            value = self.where(a >= b, a - b, value)
        if below:
            value = self.where(a < 0, a + b, value)
        return a if value is a else self.bounded(value, b.extent)

    def cast(self, x: Any, dtype: DType) -> Value:
        """`x` in another element type, by NumPy's rules."""
        value = self.lift(x, dtype)
        if value.dtype == dtype:
            return value
        if value.literal is not None and value.dtype.kind in "bi" and dtype.kind in "if":
            return self.const(dtype.numpy.type(value.literal).item(), dtype)
        return self.primitive("cast", value, dtype=dtype)

    def same_bits(self, x: Value, dtype: DType) -> Value:
        """The number of another element type, of as many bytes, that the bits of `x` are."""
        return self.primitive("bitcast", x, dtype=dtype)

    def where(self, cond: Value, a: Any, b: Any) -> Value:
        """One of two values, both computed."""
        return self.primitive("where", cond, *_alike(self, a, b))

    def scaled(self, g: Value, slope: Value) -> Value:
        """`g * slope`, but 0 where g is 0, whatever the slope.

        A slope that stays the same while g changes is asked once whether it is finite: then a loop
        need not wait for that comparison.
        """
        zero = self.const(0, g.dtype)
        vanishes = self.primitive("equal", g, zero)
        if slope.dtype.kind == "f" and slope.scope.depth < g.scope.depth:
            finite = self.primitive("equal", slope - slope, zero)
            infinite = self.primitive("logical_not", finite)
            vanishes = self.primitive("logical_and", infinite, vanishes)
        return self.where(vanishes, zero, g * slope)

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

    def reload(self, array: Array, index: Value) -> Value:
        """An element that the kernel has stored before, read where the next statement stands."""
        if isinstance(array, Parameter):
            self.parameters[array] = None
        local = Local(array.dtype)
        self.emit(Load(local, array, index.operand, True))
        return Value(self, local, array.dtype, self.scope)

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
        assert isinstance(variable.operand, Local)
        assert variable.dtype == value.dtype
        self.emit(Assign(variable.operand, value.operand))

    # -- control -------------------------------------------------------------------------------

    @contextmanager
    def loop(
        self, start: Any, stop: Any, *, barrier: bool = False, trips: Extent | None = None
    ) -> Iterator[Value]:
        """A counted loop; what does not depend on its index leaves it unless it is a `barrier`:
        a loop of the user's program.

        `trips` is the expected number of iterations where the bounds do not tell it.
        """
        first, last = self.lift(start), self.lift(stop)
        index = Local(i64)
        if trips is None and first.extent is not None and last.extent is not None:
            trips = dims.add(last.extent, dims.multiply(-1, first.extent))
        if trips is not None and all(symbol in self._symbols for symbol in dims.symbols(trips)):
            self.trips[index] = trips  # else it varies with an index of a loop around
        with self.body(barrier) as statements:
            yield self._index(Value(self, index, i64, self.scope), self._index_extent(first, last))
        bounded = last.extent is not None
        self.emit(For(index, first.operand, last.operand, tuple(statements), barrier, bounded))

    @contextmanager
    def lanes(self, count: int, dtype: DType) -> Iterator[Value]:
        """A loop whose rounds are lanes of vectors, as many as small arrays have elements; numbers
        of `dtype` are the largest in it."""
        index = Local(i64)
        self.trips[index] = count
        with self.body() as statements:
            yield Value(self, index, i64, self.scope)
        first, last = Literal(0, i64), Literal(count, i64)
        self.emit(For(index, first, last, tuple(statements), lanes=dtype.size))

    def _index_extent(self, start: Value, stop: Value) -> Extent | None:
        """A fresh symbol for an index that runs from 0 to a known extent."""
        if start.literal != 0 or stop.extent is None:
            return None
        return self._ranges.index(stop.extent)

    def bounded(self, value: Value, stop: Extent) -> Value:
        """`value`, which the caller knows to be in 0..stop-1, with that knowledge attached."""
        return self._index(value, self._ranges.index(stop))

    def _index(self, value: Value, extent: Extent | None) -> Value:
        """The value, which a fresh symbol stands for."""
        found = Value(self, value.operand, i64, value.scope, extent)
        symbol = None if extent is None else dims.plain_symbol(extent)
        if symbol is not None:
            self._indices[symbol] = found
        return found

    def of_elements(
        self, value: Value, index: Sequence[Value], shape: Sequence[Extent]
    ) -> Value:
        """An element at `index` of an array that is the same everywhere: what is made of it stays
        in the loops over these elements, of which there may be none."""
        if value.scope.depth:
            return value
        depth = max((k.scope.depth for k, n in zip(index, shape, strict=True) if n != 1), default=0)
        return Value(self, value.operand, value.dtype, self.scopes[depth], value.extent)

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

    def fail(
        self, exception: str | type[BaseException], parts: Sequence[Any], cond: Any, *values: Any
    ) -> None:
        """Ends the run with an exception if `cond`; `parts` as in `errors.exception_of`."""
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

    # -- indices -------------------------------------------------------------------------------

    def ravel(self, index: Sequence[Any], shape: Sequence[Extent]) -> Value:
        """The C-order flat index of an element of an array of this shape."""
        long = [axis for axis, extent in enumerate(shape) if extent != 1]
        index, shape = [index[axis] for axis in long], [shape[axis] for axis in long]
        terms: list[Value] = []
        axis = 0
        while axis < len(shape):
            found = run_at(index, shape, axis)
            last = axis + (len(found[0].long) if found else 1)
            value = self._whole(*found) if found else self.lift(index[axis])
            terms.append(value * self.size(shape[last:]))
            axis = last
        # Outer terms first: their sum is the same for all of the innermost loop.
        terms.sort(key=lambda v: v.scope.depth)
        total = self.const(0, i64)
        for term in terms:
            total = total + term
        return total

    def regrouped(
        self, index: Sequence[Any], shape: Sequence[Extent], other: Sequence[Extent]
    ) -> tuple[Any, ...]:
        """The indices in an array of another shape of the element at the same place in memory. Axes
        that both have in common stay, and only what lies between them is counted together."""
        if _long(shape) == _long(other):
            rest = (k for k, extent in zip(index, shape, strict=True) if extent != 1)
            return tuple(0 if extent == 1 else next(rest) for extent in other)
        found: tuple[Any, ...] = ()
        start, begin = 0, 0
        for end, stop in _common_ends(shape, other):
            if _runs(index[start:end]) & _runs(index[end:]):
                continue  # one index counts on both sides
            axes, extents = index[start:end], other[begin:stop]
            one = end - start == stop - begin == 1
            found += (
                tuple(axes) if one else self.unravel(self.ravel(axes, shape[start:end]), extents)
            )
            start, begin = end, stop
        return found

    def _whole(self, run: Run, by: Value | None) -> Value:
        """A run's index, so many elements of its outermost axis behind."""
        return run.index if by is None else run.index + by * self._inner(run)

    def _inner(self, run: Run) -> Value:
        """How many indices of a run an index of its outermost axis is."""
        return self.size([run.extents[k] for k in run.long[1:]])

    def unravel(self, flat: Value, shape: Sequence[Extent]) -> tuple[Value, ...]:
        """The indices of the element with a C-order flat index; divided only when looked at."""
        if not shape:
            return ()
        long = [axis for axis, extent in enumerate(shape) if extent != 1]
        if len(long) <= 1 and len(shape) > 1:
            zero = self.const(0, i64)
            return tuple(flat if axis in long else zero for axis in range(len(shape)))
        if len(shape) == 1:
            return (flat,)
        key = (flat.key, tuple(shape))
        run = flat.scope.runs.get(key)
        if run is None:
            run = flat.scope.runs[key] = Run(flat, shape)
        return run.parts()


def _runs(index: Sequence[Any]) -> set[Run]:
    """The runs that indices are parts of."""
    return {part.run for part in map(part_of, index) if part is not None}


def _long(shape: Sequence[Extent]) -> list[Extent]:
    return [extent for extent in shape if extent != 1]


def _common_ends(
    shape: Sequence[Extent], other: Sequence[Extent]
) -> list[tuple[int, int]]:
    """Behind how many axes of two shapes of one size as many elements follow in both, as far as
    that is certain; the last pair is all of both."""
    ends = [(len(shape), len(other))]
    behind: dict[Extent, int] = {1: len(other)}  # axes of the other before so many elements
    for axis in range(len(other) - 1, 0, -1):
        behind.setdefault(dims.product(other[axis:]), axis)
    for axis in range(len(shape) - 1, 0, -1):
        found = behind.get(dims.product(shape[axis:]), 0)
        if 0 < found < ends[-1][1]:
            ends.append((axis, found))
    return ends[::-1]


def _alike(s: Emitter, a: Any, b: Any) -> tuple[Value, Value]:
    dtype = next((v.dtype for v in (a, b) if isinstance(v, Value)), i64)
    return s.lift(a, dtype), s.lift(b, dtype)
