"""Quotients of integers of 64 bits that are rounded once, as those of Python's ints are.

In: two i64. Out: the f64 next to ``a / b``, ties to even; what floats give where b is 0. Integers
of up to 53 bits are floats, whose quotient that is. Of longer ones at least 62 bits of the quotient
are computed, the last one set where anything is left, and rounded as an integer becomes a float.
"""

from __future__ import annotations

from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import WORD, Intrinsic, fixed
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.routines.lanes import DOUBLE, Lane
from pyrelay.devices.routines.remainders import divided
from pyrelay.devices.routines.vector_calls import vector_call

__all__ = ["true_quotient"]

_HELD = 2**53
"""Integers below this one are floats."""


def _of_floats(x: Lane, y: Lane) -> Lane:
    return (x.to_float() / y.to_float()).bits()


def _is_long(x: Lane, y: Lane) -> Lane:
    return ((x ^ (x >> 63)) | (y ^ (y >> 63))) > _HELD - 1


def _normalised(b: IRBuilder, number: Any) -> tuple[Any, Any]:
    """The size of a number that is not 0, shifted until its first bit is set, and how far."""
    negative = b.icmp_signed("<", number, llvm.Constant(WORD, 0))
    size = b.select(negative, b.neg(number), number)
    zeros = b.ctlz(size, llvm.Constant(llvm.IntType(1), 0))
    return b.shl(size, zeros), zeros


def _by_digits(x: Lane, y: Lane) -> Lane:
    b, one = x.b, x.constant(1)
    none = x.equals(0) | y.equals(0)
    above, far = (Lane(b, v) for v in _normalised(b, none.choose(one, x).v))
    divisor, near = _normalised(b, none.choose(one, y).v)
    digit = (above & 1) << 31
    first, rest = divided(b, b.lshr(above.v, one.v), digit.v, divisor)
    second, rest = divided(b, rest, llvm.Constant(WORD, 0), divisor)
    found = (Lane(b, first) << 32) | Lane(b, second)
    found = Lane(b, rest).equals(0).choose(found, found | 1)
    scale = ((Lane(b, near) - far + (DOUBLE.bias - 63)) << DOUBLE.mantissa).as_float()
    size = Lane(b, b.uitofp(found.v, DOUBLE.type)) * scale
    sign = ((x ^ y) < 0).choose(size.constant(-1.0), size.constant(1.0))
    return none.choose(_of_floats(x, y), size.copysign(sign).bits())


_quotient = vector_call("true_quotient", _of_floats, _by_digits, _is_long, WORD, 2)


def _emit(b: IRBuilder, _: types.Type, x: Any, y: Any) -> Any:
    return b.bitcast(_quotient.called(b, x, y), DOUBLE.type)


true_quotient = Intrinsic("true_quotient", fixed(types.float64, types.int64, types.int64), _emit)
