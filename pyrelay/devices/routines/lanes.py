"""A small expression layer over LLVM's builder, for writing branch-free scalar functions.

In: an ``IRBuilder`` and LLVM values; out: LLVM instructions.  ``Lane`` wraps a float, integer or
bit and has Python's operators; constants are Python numbers.  What is written with it has no
control flow, so LLVM's loop vectoriser turns a loop of such lanes into vector code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.records import dataclass

Number = Union["Lane", int, float]

_F32, _F64 = llvm.FloatType(), llvm.DoubleType()


@dataclass(frozen=True)
class FloatFormat:
    """The constants of an IEEE 754 binary format."""

    type: Any
    bits: int
    mantissa: int  # stored bits of the significand

    @property
    def integer(self) -> llvm.IntType:
        return llvm.IntType(self.bits)

    @property
    def bias(self) -> int:
        return int(2 ** (self.bits - self.mantissa - 2)) - 1

    @property
    def smallest_normal(self) -> float:
        return float(2.0 ** (1 - self.bias))


SINGLE = FloatFormat(_F32, 32, 23)
DOUBLE = FloatFormat(_F64, 64, 52)


class Lane:
    """One scalar value while code for it is emitted, or a vector of several."""

    __slots__ = ("b", "v")

    def __init__(self, b: IRBuilder, v: Any) -> None:
        self.b, self.v = b, v

    # -- construction --------------------------------------------------------------------------

    @property
    def format(self) -> FloatFormat:
        """The float format of this lane, or of floats as wide as this integer lane."""
        kind = self.kind
        if isinstance(kind, llvm.IntType):
            return SINGLE if kind.width == 32 else DOUBLE
        return SINGLE if kind == _F32 else DOUBLE

    @property
    def kind(self) -> Any:
        """The type of this lane, of each where there are several."""
        kind = self.v.type
        return kind.element if isinstance(kind, llvm.VectorType) else kind

    @property
    def is_float(self) -> bool:
        return not isinstance(self.kind, llvm.IntType)

    def _as_many(self, kind: Any) -> Any:
        """A type for as many lanes."""
        own = self.v.type
        return llvm.VectorType(kind, own.count) if isinstance(own, llvm.VectorType) else kind

    def of(self, number: Number) -> Any:
        """The LLVM value of ``number`` in this lane's type."""
        if isinstance(number, Lane):
            return number.v
        return llvm.Constant(self.v.type, float(number) if self.is_float else int(number))

    def constant(self, number: float) -> Lane:
        return Lane(self.b, self.of(number))

    def _new(self, value: Any) -> Lane:
        return Lane(self.b, value)

    def _intrinsic(self, name: str, *others: Number) -> Lane:
        function = self.b.module.declare_intrinsic(
            name, [self.v.type], llvm.FunctionType(self.v.type, [self.v.type] * (len(others) + 1))
        )
        return self._new(self.b.call(function, [self.v, *(self.of(each) for each in others)]))

    # -- arithmetic ----------------------------------------------------------------------------

    def __add__(self, other: Number) -> Lane:
        emit = self.b.fadd if self.is_float else self.b.add
        return self._new(emit(self.v, self.of(other)))

    def __sub__(self, other: Number) -> Lane:
        emit = self.b.fsub if self.is_float else self.b.sub
        return self._new(emit(self.v, self.of(other)))

    def __mul__(self, other: Number) -> Lane:
        emit = self.b.fmul if self.is_float else self.b.mul
        return self._new(emit(self.v, self.of(other)))

    def __truediv__(self, other: Number) -> Lane:
        return self._new(self.b.fdiv(self.v, self.of(other)))

    def __rsub__(self, other: Number) -> Lane:
        return self.constant(other) - self  # type: ignore[arg-type]

    def __rtruediv__(self, other: Number) -> Lane:
        return self.constant(other) / self  # type: ignore[arg-type]

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Lane:
        return self._new(self.b.fneg(self.v) if self.is_float else self.b.neg(self.v))

    def fma(self, factor: Number, addend: Number) -> Lane:
        """``self * factor + addend``, rounded once where the CPU has such an instruction."""
        return self._intrinsic("llvm.fmuladd", factor, addend)

    def exact_fma(self, factor: Number, addend: Number) -> Lane:
        """``self * factor + addend``, rounded once on every CPU."""
        return self._intrinsic("llvm.fma", factor, addend)

    def sqrt(self) -> Lane:
        return self._intrinsic("llvm.sqrt")

    def abs(self) -> Lane:
        return self._intrinsic("llvm.fabs")

    def floor(self) -> Lane:
        return self._intrinsic("llvm.floor")

    def ceil(self) -> Lane:
        return self._intrinsic("llvm.ceil")

    def rint(self) -> Lane:
        """To the nearest whole number, ties to even."""
        return self._intrinsic("llvm.roundeven")

    def trunc(self) -> Lane:
        return self._intrinsic("llvm.trunc")

    def copysign(self, sign: Lane) -> Lane:
        """The size of this lane with the sign of ``sign``."""
        return self._intrinsic("llvm.copysign", sign)

    def polynomial(self, coefficients: Sequence[float]) -> Lane:
        """``c[0] + c[1] * x + ...``, by Estrin's scheme: short dependency chains."""
        terms: list[Lane] = [self.constant(c) for c in coefficients]
        power = self
        while len(terms) > 1:
            paired = [
                high.fma(power, low) for low, high in zip(terms[::2], terms[1::2], strict=False)
            ]
            if len(terms) % 2:
                paired.append(terms[-1])
            terms = paired
            if len(terms) > 1:
                power = power * power
        return terms[0]

    def horner(self, coefficients: Sequence[float]) -> Lane:
        """The same in one chain: fewer instructions, and no less exact. What limits a loop of short
        functions is how many there are."""
        value = self.constant(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            value = value.fma(self, coefficient)
        return value

    # -- bits ----------------------------------------------------------------------------------

    def bits(self) -> Lane:
        """This float's bit pattern as an integer lane."""
        return self._new(self.b.bitcast(self.v, self._as_many(self.format.integer)))

    def as_float(self) -> Lane:
        """The float with this integer's bit pattern."""
        return self._new(self.b.bitcast(self.v, self._as_many(self.format.type)))

    def to_float(self) -> Lane:
        """This signed integer as a float of the same width."""
        return self._new(self.b.sitofp(self.v, self._as_many(self.format.type)))

    def to_integer(self) -> Lane:
        """This whole number, which is small, as an integer of the same width."""
        magic = 1.5 * 2.0**self.format.mantissa
        return (self + magic).bits() - self.constant(magic).bits()

    def widen(self) -> Lane:
        """This ``f32`` as an ``f64``."""
        return self._new(self.b.fpext(self.v, self._as_many(_F64)))

    def narrow(self) -> Lane:
        """This ``f64`` rounded to ``f32``."""
        return self._new(self.b.fptrunc(self.v, self._as_many(_F32)))

    def shortened(self) -> Lane:
        """The low 32 bits of this integer of 64."""
        return self._new(self.b.trunc(self.v, self._as_many(llvm.IntType(32))))

    def __and__(self, other: Number) -> Lane:
        return self._new(self.b.and_(self.v, self.of(other)))

    def __or__(self, other: Number) -> Lane:
        return self._new(self.b.or_(self.v, self.of(other)))

    def __xor__(self, other: Number) -> Lane:
        return self._new(self.b.xor(self.v, self.of(other)))

    def __invert__(self) -> Lane:
        return self._new(self.b.not_(self.v))

    def __lshift__(self, other: Number) -> Lane:
        return self._new(self.b.shl(self.v, self.of(other)))

    def __rshift__(self, other: Number) -> Lane:
        """Arithmetic: the sign is repeated."""
        return self._new(self.b.ashr(self.v, self.of(other)))

    # -- comparison ----------------------------------------------------------------------------

    def _compare(self, sign: str, other: Number) -> Lane:
        if not self.is_float:
            return self._new(self.b.icmp_signed(sign, self.v, self.of(other)))
        emit = self.b.fcmp_unordered if sign == "!=" else self.b.fcmp_ordered
        return self._new(emit(sign, self.v, self.of(other)))

    def __lt__(self, other: Number) -> Lane:
        return self._compare("<", other)

    def __le__(self, other: Number) -> Lane:
        return self._compare("<=", other)

    def __gt__(self, other: Number) -> Lane:
        return self._compare(">", other)

    def __ge__(self, other: Number) -> Lane:
        return self._compare(">=", other)

    def equals(self, other: Number) -> Lane:
        return self._compare("==", other)

    def differs(self, other: Number) -> Lane:
        return self._compare("!=", other)

    def at_least(self, other: float) -> Lane:
        """Whether this is at least a number, or NaN."""
        return self._new(self.b.fcmp_unordered(">=", self.v, self.of(other)))

    def is_nan(self) -> Lane:
        return self._new(self.b.fcmp_unordered("uno", self.v, self.v))

    def is_number(self) -> Lane:
        return self._new(self.b.fcmp_ordered("ord", self.v, self.v))

    def choose(self, then: Lane, otherwise: Number) -> Lane:
        """``then`` where this bit is set, else ``otherwise``.

        A bit that chooses several floats goes through a part of a general register where LLVM has
        masks (AVX-512) and no vectors: what is computed waits for what that register was before,
        in another round of the loop. So a bit chooses one float only, or integers.
        """
        return self._new(self.b.select(self.v, then.v, then.of(otherwise)))
