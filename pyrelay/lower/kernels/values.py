"""Scalars of a kernel while it is being written: values, indices of several axes, scopes.

In: operands of kernel IR. Out: `Value`s with Python's operators, that know in which scope they are
defined and, for integers, of which polynomial of extents and indices they are the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyrelay.ir.dims import Extent
from pyrelay.ir.types import DType, i64
from pyrelay.lower.kernels.kernel import Literal, Operand, Statement

if TYPE_CHECKING:
    from pyrelay.lower.kernels.emitter import Emitter


class Scope:
    """A body under construction, with the values that are valid in it."""

    __slots__ = ("barrier", "depth", "known", "memo", "runs", "statements")

    def __init__(self, depth: int, barrier: bool) -> None:
        self.depth, self.barrier = depth, barrier
        self.statements: list[Statement] = []
        self.known: dict[tuple[Any, ...], Value] = {}
        self.memo: dict[tuple[Any, ...], Value] = {}  # elements, see `elements.py`
        self.runs: dict[tuple[Any, ...], Run] = {}

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

    __slots__ = ("extents", "index", "long", "taken_apart")

    def __init__(self, index: Value, extents: Sequence[Extent]) -> None:
        self.index, self.extents = index, tuple(extents)
        #: The axes of other extents than 1.
        self.long = tuple(k for k, extent in enumerate(self.extents) if extent != 1)
        self.taken_apart = False

    def parts(self) -> tuple[Value, ...]:
        """One index per axis."""
        if len(self.extents) == 1:
            return (self.index,)
        zero = self.index.s.const(0, i64)
        return tuple(Part(self, k) if n != 1 else zero for k, n in enumerate(self.extents))


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
        inner = s.size(extents[self.position + 1 :])
        index = s.primitive("floor_divide", self.run.index, inner)
        if self.position:
            index = s.primitive("remainder", index, s.size((extents[self.position],)))
        s.parts.setdefault(index.operand, self)
        return index.operand

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for the same axis of the same run."""
        return ("part", self.run, self.position)


class Shifted(Value):
    """The index of a run's outermost axis and a number more: where a slice or a part of several
    arrays lies. Positions need no division for it."""

    __slots__ = ("by", "part")

    def __init__(self, part: Part, by: Value) -> None:
        inner = by.scope if by.scope.depth > part.scope.depth else part.scope
        super().__init__(part.s, None, i64, inner)
        self.part, self.by = part, by

    @property
    def operand(self) -> Operand:
        """The number, of the index taken out of the run's."""
        taken = Value(self.s, self.part.operand, i64, self.part.run.index.scope)
        return self.s.primitive("add", taken, self.by).operand

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for the same axis and number."""
        return ("shifted", self.part.key, self.by.key)


def outermost(value: Value) -> tuple[Run, Value | None] | None:
    """The run whose outermost axis an index goes along, of several, and how far behind it."""
    part, by = (value.part, value.by) if isinstance(value, Shifted) else (value, None)
    if not isinstance(part, Part) or part.position not in part.run.long[:1]:
        return None
    return (part.run, by) if len(part.run.long) > 1 else None


class Reading(Value):
    """What a variable holds at one moment: never equal to another reading, never moved out."""

    __slots__ = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal to itself alone."""
        return ("reading", self)


def run_at(
    index: Sequence[Any], shape: Sequence[Extent], axis: int
) -> tuple[Run, Value | None] | None:
    """The run whose axes stand in `index` from `axis` on, whole and with the array's extents but
    for the first, and how far behind that it begins; axes of extent 1 are in neither."""
    first = index[axis]
    part, by = (first.part, first.by) if isinstance(first, Shifted) else (part_of(first), None)
    if part is None or part.position not in part.run.long[:1]:
        return None
    run = part.run
    inner = run.long[1:]
    if list(shape[axis + 1 : axis + len(run.long)]) != [run.extents[k] for k in inner]:
        return None
    for each, k in zip(index[axis + 1 :], inner):  # noqa: B905 (the index goes on)
        other = part_of(each)
        if other is None or other.run is not run or other.position != k:
            return None
    return run, by


def part_of(index: Any) -> Part | None:
    """The part of a run that an index is, also where it has been taken out of the run's."""
    if isinstance(index, Part):
        return index
    return index.s.parts.get(index.operand) if type(index) is Value else None


def operand_key(operand: Operand) -> tuple[Any, ...]:
    """Equal for operands that are known to be equal; tells 0.0 from -0.0 and NaN from nothing."""
    if isinstance(operand, Literal):
        return ("literal", operand.dtype.name, repr(operand.value))
    return ("local", operand)
