"""Remainders of sums, products and powers that need more than 64 bits.

In: three i64. Out: ``(a + b) % n``, ``(a - b) % n``, ``a * b % n`` or, where b is not negative,
``a ** b % n``, exact, with the sign of n; 0 where n is 0. They are functions of the module, called
where a check has found that the sum, product or power does not fit
(`lower/passes/exact_remainders.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import WORD, Intrinsic, fixed
from pyrelay.devices.compiler.llvm_builder import IRBuilder

__all__ = [
    "add_remainder", "divided", "multiply_remainder", "power_remainder", "subtract_remainder",
]

_LONG = llvm.IntType(128)
_HALF = 32


def _word(value: int) -> Any:
    return llvm.Constant(WORD, value)


def _opposite(b: IRBuilder, rest: Any, size: Any) -> Any:
    """The remainder of the opposite number."""
    zero = b.icmp_unsigned("==", rest, _word(0))
    return b.select(zero, rest, b.sub(size, rest))


def _remainder(b: IRBuilder, number: Any, size: Any) -> Any:
    """A signed number modulo a positive one of at most 2^63, which is not negative."""
    negative = b.icmp_signed("<", number, _word(0))
    rest = b.urem(b.select(negative, b.neg(number), number), size)
    return b.select(negative, _opposite(b, rest, size), rest)


def _sum(b: IRBuilder, x: Any, y: Any, size: Any) -> Any:
    total = b.add(x, y)
    return b.select(b.icmp_unsigned(">=", total, size), b.sub(total, size), total)


def _difference(b: IRBuilder, x: Any, y: Any, size: Any) -> Any:
    return _sum(b, x, _opposite(b, y, size), size)


def divided(b: IRBuilder, above: Any, digit: Any, divisor: Any) -> tuple[Any, Any]:
    """The next digit of a quotient, and what is left: `above`, which is below the divisor, and one
    more digit of 32 bits are divided by the divisor, whose first bit is set (Knuth, The Art of
    Computer Programming 2, 4.3.1, algorithm D, with two digits)."""
    base, low = _word(1 << _HALF), _word((1 << _HALF) - 1)
    first, second = b.lshr(divisor, _word(_HALF)), b.and_(divisor, low)
    guess = b.udiv(above, first)
    rest = b.sub(above, b.mul(guess, first))
    for _ in range(2):  # the guess is too large by two at most
        seen = b.or_(b.shl(rest, _word(_HALF)), digit)
        large = b.or_(
            b.icmp_unsigned(">=", guess, base), b.icmp_unsigned(">", b.mul(guess, second), seen)
        )
        large = b.and_(large, b.icmp_unsigned("<", rest, base))
        guess = b.select(large, b.sub(guess, _word(1)), guess)
        rest = b.select(large, b.add(rest, first), rest)
    whole = b.or_(b.shl(above, _word(_HALF)), digit)
    return guess, b.sub(whole, b.mul(guess, divisor))


def _product(b: IRBuilder, x: Any, y: Any, size: Any) -> Any:
    whole = b.mul(b.zext(x, _LONG), b.zext(y, _LONG))
    zeros = b.ctlz(size, llvm.Constant(llvm.IntType(1), 0))
    divisor = b.shl(size, zeros)
    whole = b.shl(whole, b.zext(zeros, _LONG))
    above = b.trunc(b.lshr(whole, llvm.Constant(_LONG, 64)), WORD)
    below = b.trunc(whole, WORD)
    for digit in (b.lshr(below, _word(_HALF)), b.and_(below, _word((1 << _HALF) - 1))):
        _, above = divided(b, above, digit, divisor)
    return b.lshr(above, zeros)


def _power(b: IRBuilder, x: Any, exponent: Any, size: Any) -> Any:
    """By squaring (Knuth, The Art of Computer Programming 2, 4.6.3, algorithm A)."""
    before, head = b.block, b.append_basic_block("power")
    after = b.append_basic_block("power_done")
    one = b.urem(_word(1), size)
    b.branch(head)
    b.position_at_end(head)
    result, factor, left = (b.phi(WORD) for _ in range(3))
    odd = b.trunc(left, llvm.IntType(1))
    next_result = b.select(odd, _product(b, result, factor, size), result)
    next_factor = _product(b, factor, factor, size)
    next_left = b.lshr(left, _word(1))
    for phi, first, following in (
        (result, one, next_result), (factor, x, next_factor), (left, exponent, next_left),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(following, head)
    b.cbranch(b.icmp_unsigned("!=", next_left, _word(0)), head, after)
    b.position_at_end(after)
    return next_result


def _as_it_is(b: IRBuilder, number: Any, size: Any) -> Any:
    return number


def _intrinsic(
    name: str, combined: Callable[..., Any], second: Callable[..., Any] = _remainder
) -> Intrinsic:
    def function(module: llvm.Module) -> llvm.Function:
        known = module.globals.get(name)
        if known is not None:
            return known
        made = llvm.Function(module, llvm.FunctionType(WORD, [WORD] * 3), name)
        made.linkage = "internal"
        made.attributes.add("cold")
        made.attributes.add("noinline")
        b = IRBuilder(made.append_basic_block("entry"))
        x, y, n = made.args
        none = b.icmp_signed("==", n, _word(0))
        negative = b.icmp_signed("<", n, _word(0))
        size = b.select(none, _word(1), b.select(negative, b.neg(n), n))
        rest = combined(b, _remainder(b, x, size), second(b, y, size), size)
        below = b.and_(negative, b.icmp_unsigned("!=", rest, _word(0)))
        b.ret(b.select(below, b.sub(rest, size), rest))
        return made

    def emit(b: IRBuilder, _: types.Type, *args: Any) -> Any:
        return b.call(function(b.module), args)

    return Intrinsic(name, fixed(types.int64, *(types.int64,) * 3), emit)


add_remainder = _intrinsic("add_remainder", _sum)
subtract_remainder = _intrinsic("subtract_remainder", _difference)
multiply_remainder = _intrinsic("multiply_remainder", _product)
power_remainder = _intrinsic("power_remainder", _power, _as_it_is)
