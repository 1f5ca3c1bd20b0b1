"""Upper halves of products, and quotients, of integers of 64 bits, in vectors too.

In: LLVM values. Out: LLVM instructions, or calls that loops make vectors of (`vector_calls`).

Processors multiply and divide one word by another, and few have vectors of either. An upper half of
a product is four products of halves (Knuth, The Art of Computer Programming 2, 4.3.1, algorithm M).
Quotients of integers that a float holds are those of floats: a quotient is further below the next
whole number than what rounding adds.
"""

from __future__ import annotations

from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import WORD
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.routines.lanes import Lane
from pyrelay.devices.routines.vector_calls import PREFIX, VectorCall, noted, vector_call
from pyrelay.records import dataclass


@dataclass(frozen=True)
class _UpperProduct(VectorCall):
    """The upper half of the product of two words without a sign."""

    def write(self, module: llvm.Module, width: int) -> None:
        function = self.declared(module, width)
        function.attributes.add("alwaysinline")
        b = IRBuilder(function.append_basic_block("entry"))
        x, y = function.args
        b.ret(_by_halves(b, x, y) if width else upper_half(b, x, y))


def upper_half(b: IRBuilder, x: llvm.Value, y: llvm.Value) -> llvm.Value:
    """The upper half of the product of two numbers without a sign, by one of twice their bits.

    Of words it is one of fixed point: what LLVM knows of products of 128 bits by the count of a
    loop, it computes by divisions of 128 bits, which are calls of a library.
    """
    bits = x.type.width
    if x.type == WORD:
        places = llvm.IntType(32)
        signature = llvm.FunctionType(WORD, [WORD, WORD, places])
        fixed = b.module.declare_intrinsic("llvm.umul.fix", [WORD], signature)
        return b.call(fixed, [x, y, llvm.Constant(places, bits)])
    double = llvm.IntType(2 * bits)
    product = b.mul(b.zext(x, double), b.zext(y, double))
    return b.trunc(b.lshr(product, llvm.Constant(double, bits)), x.type)


def _by_halves(b: IRBuilder, x: llvm.Value, y: llvm.Value) -> llvm.Value:
    half, mask = (llvm.Constant(x.type, [n] * x.type.count) for n in (32, 0xFFFFFFFF))
    (x_low, x_high), (y_low, y_high) = ((b.and_(z, mask), b.lshr(z, half)) for z in (x, y))
    middle = b.add(b.mul(x_high, y_low), b.lshr(b.mul(x_low, y_low), half))
    other = b.add(b.mul(x_low, y_high), b.and_(middle, mask))
    upper = b.add(b.mul(x_high, y_high), b.lshr(middle, half))
    return b.add(upper, b.lshr(other, half))


upper_product = _UpperProduct(f"{PREFIX}upper_product", WORD, 2)
noted(upper_product)

_HELD = 2**51
"""Whole numbers below this one become floats, and these whole numbers, by a sum and a difference of
bits, for which all processors have vectors."""


def _as_float(x: Lane) -> Lane:
    """A float of 1.5 * 2**52 has a whole number in its last 51 bits."""
    return (x + 0x4338000000000000).as_float() - 1.5 * 2.0**52


def _near_quotient(x: Lane, y: Lane) -> Lane:
    return (_as_float(x) / _as_float(y)).trunc().to_integer()


def _is_long(x: Lane, y: Lane) -> Lane:
    """Whether one of two numbers is too large."""
    return ((x ^ (x >> 63)) | (y ^ (y >> 63))) > _HELD - 1


def _is_long_unsigned(x: Lane, y: Lane) -> Lane:
    both = x | y
    return (both > _HELD - 1) | (both < 0)


long_quotient = vector_call(
    "quotient", _near_quotient, lambda x, y: Lane(x.b, x.b.sdiv(x.v, y.v)), _is_long, WORD, 2, True
)
"""The quotient of words with a sign without its fraction, if it is a word and y is not 0."""

long_unsigned_quotient = vector_call(
    "unsigned_quotient", _near_quotient, lambda x, y: Lane(x.b, x.b.udiv(x.v, y.v)),
    _is_long_unsigned, WORD, 2, True,
)
"""The same of words without a sign."""
