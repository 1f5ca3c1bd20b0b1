"""The builder: the only producer of Lets in Core. Handles in, typed Lets out.

`Builder.call` promotes operands as the op's record says, runs its relation and binds the typed
results, so that code is born typed. A `Handle` is an atom that knows its builder and has Python's
operators; derivative rules, `infer` and the passes all write programs with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np

from pyrelay.errors import Span
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import (
    TEMPORARY,
    Atom,
    Attrs,
    Block,
    Const,
    If,
    Let,
    Loop,
    OpCall,
    Rhs,
    Var,
)
from pyrelay.ir.op import OPS, Op, Promotion
from pyrelay.ir.types import DType, TensorType, Type

Operand = Union["Handle", Atom, bool, int, float, complex, np.generic]


class Handle:
    """A typed atom with operators; `h.type`, `h.shape`, `h.dtype`, `h.atom`, `h.builder`."""

    __slots__ = ("atom", "builder")
    __array_ufunc__ = None  # NumPy scalars on the left defer to our reflected operators

    def __init__(self, builder: Builder, atom: Atom) -> None:
        self.builder, self.atom = builder, atom

    @property
    def type(self) -> TensorType:
        """Type of a tensor handle."""
        assert isinstance(self.atom.type, TensorType)
        return self.atom.type

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type.dtype

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.type.shape)

    def __repr__(self) -> str:
        name = self.atom.name if isinstance(self.atom, Var) else self.atom.value
        return f"<{name}: {self.atom.type}>"

    def _binary(self, name: str, other: Any, swap: bool = False) -> Any:
        pair = (other, self) if swap else (self, other)
        return self.builder.call(OPS[name], *pair)

    def __add__(self, o: Any) -> Any: return self._binary("add", o)
    def __radd__(self, o: Any) -> Any: return self._binary("add", o, True)
    def __sub__(self, o: Any) -> Any: return self._binary("subtract", o)
    def __rsub__(self, o: Any) -> Any: return self._binary("subtract", o, True)
    def __mul__(self, o: Any) -> Any: return self._binary("multiply", o)
    def __rmul__(self, o: Any) -> Any: return self._binary("multiply", o, True)
    def __truediv__(self, o: Any) -> Any: return self._binary("divide", o)
    def __rtruediv__(self, o: Any) -> Any: return self._binary("divide", o, True)
    def __floordiv__(self, o: Any) -> Any: return self._binary("floor_divide", o)
    def __rfloordiv__(self, o: Any) -> Any: return self._binary("floor_divide", o, True)
    def __mod__(self, o: Any) -> Any: return self._binary("remainder", o)
    def __rmod__(self, o: Any) -> Any: return self._binary("remainder", o, True)
    def __pow__(self, o: Any) -> Any: return self._binary("power", o)
    def __rpow__(self, o: Any) -> Any: return self._binary("power", o, True)
    def __and__(self, o: Any) -> Any: return self._binary("bitwise_and", o)
    def __or__(self, o: Any) -> Any: return self._binary("bitwise_or", o)
    def __xor__(self, o: Any) -> Any: return self._binary("bitwise_xor", o)
    def __lt__(self, o: Any) -> Any: return self._binary("less", o)
    def __le__(self, o: Any) -> Any: return self._binary("less_equal", o)
    def __gt__(self, o: Any) -> Any: return self._binary("greater", o)
    def __ge__(self, o: Any) -> Any: return self._binary("greater_equal", o)
    def __neg__(self) -> Any: return self.builder.call(OPS["negative"], self)
    def __invert__(self) -> Any: return self.builder.call(OPS["invert"], self)

    # == and != stay identity: handles are keys of dicts. Write `equal(x, y)` instead.


def constant(value: Any, ty: TensorType | None = None) -> Const:
    """A scalar constant; its own type is that of the Python or NumPy number."""
    own = types.of_scalar(value)
    if ty is None:
        if own is None:
            raise TypeError(f"{value!r} is not a number")
        return Const(value, own)
    if ty.weak:
        return Const(types.python_type(ty)(value), ty)
    with np.errstate(all="ignore"):
        return Const(np.asarray(value).astype(ty.dtype.numpy)[()], ty)


def _fits(number: Const, dtype: DType) -> bool:
    """False for a Python int beyond an integer dtype: the running program raises OverflowError."""
    own = number.type
    if not (isinstance(own, TensorType) and own.weak and own.dtype.is_integer and dtype.is_integer):
        return True
    bounds = np.iinfo(dtype.numpy)
    return bool(bounds.min <= number.value <= bounds.max)


def _comparable(dtype: DType, operands: Sequence[Atom]) -> DType:
    """The type in which integers of a dtype and Python ints, which may be beyond it, compare."""
    beyond = [a for a in operands if not (isinstance(a, Const) and _fits(a, dtype))
              and isinstance(a.type, TensorType) and a.type.weak]
    if not beyond:
        return dtype
    if dtype.size < types.i64.size:
        return types.i64
    if dtype == types.u64 and all(isinstance(a, Const) for a in beyond):
        return types.f64  # below 0, all of them
    return dtype


def _computed_in(promotion: Promotion, operands: Sequence[TensorType]) -> tuple[DType, bool]:
    """The type to which operands are cast, and whether it is weak."""
    dtype, weak = types.promote_computed(operands)
    return _adjusted(promotion, dtype, weak, operands), weak


def _adjusted(
    promotion: Promotion, dtype: DType, weak: bool, operands: Sequence[TensorType]
) -> DType:
    match promotion:
        case Promotion.BOOLEAN:
            return types.bool_
        case Promotion.FLOAT if not dtype.is_float:
            # Each operand becomes floating first: i8 and u16 give f32, although i32 is their common
            # type.
            strong = [types.float_of(t.dtype) for t in operands if not t.weak]
            # A Python int beside bools is an integer of 64 bits, and beside integers one of theirs.
            if weak or dtype is types.i64:
                return types.f64
            return max(strong, key=lambda dtype: dtype.size)
        case Promotion.DIVIDE if not weak and not dtype.is_float:
            return types.f64
        case Promotion.ARITHMETIC | Promotion.NUMBER | Promotion.DIVIDE if dtype.kind == "b":
            if weak:
                return types.i64
            return types.i8 if promotion is Promotion.NUMBER else dtype
    return dtype


class _At:
    """New Lets of a builder point at a span in a `with` block: one is around each statement."""

    __slots__ = ("builder", "saved", "span")

    def __init__(self, builder: Builder, span: Span | None) -> None:
        self.builder, self.span = builder, span

    def __enter__(self) -> None:
        self.saved = saved = self.builder.span
        if self.span is not None and (saved is None or not self.span.source.is_library):
            self.builder.span = self.span

    def __exit__(self, *raised: object) -> None:
        self.builder.span = self.saved


class Builder:
    """Collects the Lets of one block. `span` is what new Lets point at."""

    def __init__(self, span: Span | None = None) -> None:
        self.lets: list[Let] = []
        self.span = span

    def at(self, span: Span | None) -> _At:
        """New Lets point at `span`; at the caller's line within pyrelay's own Python functions."""
        return _At(self, span)

    def nested(self) -> Builder:
        """A builder for a block inside this one."""
        return Builder(self.span)

    def handle(self, operand: Operand) -> Handle:
        """A handle of this builder for an atom, a handle of any builder, or a number."""
        if isinstance(operand, Handle):
            return operand if operand.builder is self else Handle(self, operand.atom)
        if isinstance(operand, (Var, Const)):
            return Handle(self, operand)
        return Handle(self, constant(operand))

    def atom(self, operand: Operand) -> Atom:
        """The atom behind an operand."""
        if isinstance(operand, (Var, Const)):
            return operand
        return operand.atom if isinstance(operand, Handle) else constant(operand)

    # -- binding -----------------------------------------------------------------------------

    def bind(
        self, rhs: Rhs, out_types: Sequence[Type], *, name: str = TEMPORARY,
        dims: tuple[Symbol, ...] = (),
    ) -> tuple[Handle, ...]:  # fmt: skip
        """Append a Let of `rhs` with outputs of these types."""
        outs = tuple(Var(name, ty, span=self.span) for ty in out_types)
        self.lets.append(Let(outs, rhs, dims, span=self.span))
        return tuple(Handle(self, v) for v in outs)

    def call(self, op: Op, *operands: Operand, name: str = TEMPORARY, **attrs: Any) -> Any:
        """Emit an op: a Handle, or a tuple of them unless it has exactly one result.

        For an op that binds symbols, returns (results, extents of the symbols).
        Raises RelationError if the op cannot take the operands.
        """
        atoms = self._promoted(op, [self.atom(o) for o in operands])
        arg_types = tuple(a.type for a in atoms)
        if op.binds:
            fresh = tuple(Symbol(name, dims.Origin.RUNTIME) for _ in range(op.binds))
            extents = tuple(dims.of(s) for s in fresh)
            out_types = op.relation(arg_types, {**attrs, "dims": extents})
            results = self.bind(OpCall(op, atoms, Attrs(**attrs)), out_types, name=name, dims=fresh)
            return results, extents
        out_types = op.relation(arg_types, attrs)
        results = self.bind(OpCall(op, atoms, Attrs(**attrs)), out_types, name=name)
        return results[0] if len(results) == 1 else results

    def _promoted(self, op: Op, atoms: list[Atom]) -> tuple[Atom, ...]:
        if op.promotion is Promotion.NONE or not atoms:
            return tuple(atoms)
        if op.promotion is Promotion.CHOICE:
            choice, *rest = atoms
            condition = choice.type
            assert isinstance(condition, TensorType)
            dtype, weak = types.promote_computed([a.type for a in rest])  # type: ignore[misc]
            weak = weak and not condition.shape  # an array of choices makes an array
            return (
                self.cast(choice, types.bool_, weak=condition.weak),
                *(self.cast(a, dtype, weak=weak) for a in rest),
            )
        dtype, weak = _computed_in(op.promotion, [a.type for a in atoms])  # type: ignore[misc]
        if op.promotion is Promotion.COMPARED and not weak and dtype.is_integer:
            dtype = _comparable(dtype, atoms)
        return tuple(self.cast(a, dtype, weak=weak) for a in atoms)

    def cast(self, operand: Operand, dtype: DType, *, weak: bool = False) -> Atom:
        """The operand with another element type; `weak` is for scalars only."""
        atom = self.atom(operand)
        ty = atom.type
        assert isinstance(ty, TensorType)
        weak = weak and not ty.shape
        if ty.dtype == dtype and ty.weak == weak:
            return atom
        target = TensorType(dtype, ty.shape, weak)
        if isinstance(atom, Const) and _fits(atom, dtype):
            return constant(atom.value, target)
        handle: Handle = self.call(OPS["cast"], atom, dtype=dtype, weak=target.weak)
        return handle.atom

    # -- common constructions ------------------------------------------------------------------

    def full(self, value: Operand, shape: Sequence[Extent], dtype: DType) -> Handle:
        """An array filled with a scalar (a scalar if `shape` is ())."""
        scalar = self.cast(value, dtype)
        if not shape:
            return self.handle(scalar)
        handle: Handle = self.call(OPS["broadcast_to"], scalar, shape=tuple(shape))
        return handle

    def zeros(self, ty: TensorType) -> Handle:
        """Zeros of a type."""
        if ty.weak:
            return self.handle(constant(0, ty))
        return self.full(0, ty.shape, ty.dtype)

    def undef(self, ty: Type) -> Handle:
        """A placeholder whose value is never read."""
        handle: Handle = self.call(OPS["undef"], type=ty)
        return handle

    def extent(self, extent: Extent) -> Handle:
        """An extent as a Python int of the program."""
        if isinstance(extent, int):
            return self.handle(extent)
        handle: Handle = self.call(OPS["extent"], size=extent)
        return handle

    def block(
        self, results: Sequence[Operand], extents: Sequence[Extent] = ()
    ) -> Block:
        """The finished block."""
        return Block(tuple(self.lets), tuple(self.atom(r) for r in results), tuple(extents))

    def cond(
        self, test: Operand, then: Callable[[Builder], Sequence[Operand]],
        orelse: Callable[[Builder], Sequence[Operand]],
    ) -> tuple[Handle, ...]:
        """An `If` whose branches are written by functions; both return results of equal types."""
        blocks = []
        for branch in (then, orelse):
            inner = self.nested()
            blocks.append(inner.block(branch(inner)))
        out_types = [a.type for a in blocks[0].results]
        assert out_types == [a.type for a in blocks[1].results]
        return self.bind(If(self.atom(test), blocks[0], blocks[1]), out_types)  # type: ignore[arg-type]

    def counted(
        self, count: Operand, init: Sequence[Operand],
        body: Callable[[Builder, Handle, tuple[Handle, ...]], Sequence[Operand]],
        test: Callable[[Builder, tuple[Handle, ...]], Operand] | None = None,
    ) -> tuple[Handle, ...]:
        """A loop of `count` iterations; `body(builder, index, carried)` returns the next values.

        It ends before them where `test(builder, carried)` does not hold.
        """
        atoms = tuple(self.atom(a) for a in init)
        carried = tuple(Var("c", a.type, span=self.span) for a in atoms)
        index = Var("i", types.PY_INT, span=self.span)
        inner = self.nested()
        following = body(inner, Handle(inner, index), tuple(Handle(inner, v) for v in carried))
        tested = None
        if test is not None:
            asked = self.nested()
            tested = asked.block([test(asked, tuple(Handle(asked, v) for v in carried))])
        loop = Loop(
            carried, atoms, inner.block(following), tested, count=self.atom(count), index=index
        )
        return self.bind(loop, [v.type for v in carried])  # type: ignore[misc]

    def repeated(
        self, init: Sequence[Operand], test: Callable[[Builder, tuple[Handle, ...]], Operand],
        body: Callable[[Builder, tuple[Handle, ...]], Sequence[Operand]],
    ) -> tuple[Handle, ...]:
        """A loop that goes on as long as `test(builder, carried)` holds."""
        atoms = tuple(self.atom(a) for a in init)
        carried = tuple(Var("c", a.type, span=self.span) for a in atoms)
        asked, inner = self.nested(), self.nested()
        goes_on = test(asked, tuple(Handle(asked, v) for v in carried))
        following = body(inner, tuple(Handle(inner, v) for v in carried))
        loop = Loop(carried, atoms, inner.block(following), test=asked.block([goes_on]))
        return self.bind(loop, [v.type for v in carried])  # type: ignore[misc]
