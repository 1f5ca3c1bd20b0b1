"""The arithmetic of plans on words in Python, for programs whose plan Python steps through.

In: 64-bit words as signed ints: int64, or the bits of floats (`lower/planning/instructions.py`).
Out: the resulting word; a checked operation gives None where it raises. The meaning is that of
`executor_arithmetic`, which is the same in machine code.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
_MASK = (1 << 64) - 1

_WORD, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")


def signed(number: int) -> int:
    """An integer wrapped to a word."""
    return ((number + (1 << 63)) & _MASK) - (1 << 63)


def of_double(value: float) -> int:
    """A float64 as a word."""
    return int(_WORD.unpack(_DOUBLE.pack(value))[0])


def to_double(word: int) -> float:
    """The float64 whose bits a word is."""
    return float(_DOUBLE.unpack(_WORD.pack(word))[0])


def of_single(value: Any) -> int:
    """A number rounded to float32, as a word whose high half is zero."""
    with np.errstate(all="ignore"):
        return int(np.float32(value).view(np.uint32))


def to_single(word: int) -> Any:
    """The float32 in the low half of a word."""
    return np.uint32(word & 0xFFFFFFFF).view(np.float32)


def _truncated(word: int) -> int:
    value = to_double(word)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return HIGHEST if value > 0 else LOWEST
    return min(max(int(value), LOWEST), HIGHEST)


def _wrapped(bits: int, sign: bool) -> Callable[[int], int]:
    half = 1 << (bits - 1)
    if sign:
        return lambda a: ((a + half) & (2 * half - 1)) - half
    return lambda a: a & (2 * half - 1)


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan if value == value else value


def _real(function: Callable[[Any, Any], Any]) -> Callable[[int, int], int]:
    return lambda a, b: of_double(function(to_double(a), to_double(b)))


def _single(function: Callable[[Any, Any], Any]) -> Callable[[int, int], int]:
    def compute(a: int, b: int) -> int:
        with np.errstate(all="ignore"):
            return of_single(function(to_single(a), to_single(b)))

    return compute


def _quotient(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


def _left(a: int, b: int) -> int:
    return signed(a << b) if 0 <= b < 64 else 0


def _right(a: int, b: int) -> int:
    return a >> (b if 0 <= b < 64 else 63)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "le": operator.le, "eq": operator.eq, "ne": operator.ne,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_FLOATING: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
}


def _compared(function: Callable[[Any, Any], Any], read: Callable[[int], Any]) -> Any:
    return lambda a, b: int(function(read(a), read(b)))


UNARY_MEANINGS: dict[str, Callable[[int], int]] = {
    "move": lambda a: a,
    "not": lambda a: int(a == 0),
    "neg.i64": lambda a: signed(-a),
    "abs.i64": lambda a: signed(abs(a)),
    "invert.i64": lambda a: ~a,
    "neg.f64": lambda a: a ^ LOWEST,
    "abs.f64": lambda a: a & HIGHEST,
    "sqrt.f64": lambda a: of_double(_root(to_double(a))),
    "isnan.f64": lambda a: int(math.isnan(to_double(a))),
    "neg.f32": lambda a: a ^ (1 << 31),
    "abs.f32": lambda a: a & ((1 << 31) - 1),
    "sqrt.f32": lambda a: of_single(_root(float(to_single(a)))),
    "i64_to_f64": lambda a: of_double(float(a)),
    "u64_to_f64": lambda a: of_double(float(a & _MASK)),
    "f64_to_i64": _truncated,
    "i64_to_f32": lambda a: of_single(np.int64(a)),
    "f64_to_f32": lambda a: of_single(to_double(a)),
    "f32_to_f64": lambda a: of_double(float(to_single(a))),
    "f64_to_bool": lambda a: int(a & HIGHEST != 0),
    "i64_to_bool": lambda a: int(a != 0),
    **{f"wrap.i{bits}": _wrapped(bits, True) for bits in (8, 16, 32)},
    **{f"wrap.u{bits}": _wrapped(bits, False) for bits in (8, 16, 32)},
}
"""`opcodes.UNARY`."""

BINARY_MEANINGS: dict[str, Callable[[int, int], int]] = {
    "add.i64": lambda a, b: signed(a + b),
    "sub.i64": lambda a, b: signed(a - b),
    "mul.i64": lambda a, b: signed(a * b),
    "floordiv.i64": lambda a, b: signed(a // b) if b else 0,
    "mod.i64": lambda a, b: a % b if b else 0,
    "min.i64": min,
    "max.i64": max,
    "and.i64": operator.and_,
    "or.i64": operator.or_,
    "xor.i64": operator.xor,
    "shl.i64": _left,
    "shr.i64": _right,
    **{f"{name}.i64": _compared(f, int) for name, f in _COMPARISONS.items()},
    "lt.u64": lambda a, b: int(a & _MASK < b & _MASK),
    "le.u64": lambda a, b: int(a & _MASK <= b & _MASK),
    **{f"{name}.f64": _real(f) for name, f in _FLOATING.items()},
    **{f"{name}.f32": _single(f) for name, f in _FLOATING.items()},
    "div.f64": _real(_quotient),
    "div.f32": _single(operator.truediv),
    **{f"{name}.f64": _compared(f, to_double) for name, f in _COMPARISONS.items()},
    **{f"{name}.f32": _compared(f, to_single) for name, f in _COMPARISONS.items()},
}
"""`opcodes.BINARY`."""


def _fitting(number: int) -> int | None:
    return number if LOWEST <= number <= HIGHEST else None


def _power(a: int, b: int) -> int | None:
    if b < 0:
        return None
    if a in (0, 1, -1):
        return int(a ** (b if b < 2 else 2 + b % 2))
    return _fitting(a**b) if b < 64 else None


def _index(a: int, b: int) -> int | None:
    place = a + b if a < 0 else a
    return place if 0 <= place < b else None


def _checked_real(function: Callable[[float, float], float]) -> Callable[[int, int], int | None]:
    def compute(a: int, b: int) -> int | None:
        x, y = to_double(a), to_double(b)
        return of_double(function(x, y)) if y != 0 else None

    return compute


def _whole(a: int, b: int) -> int | None:
    inside = -(2.0**63) <= to_double(a) < 2.0**63
    return _truncated(a) if inside else None


CHECKED_MEANINGS: dict[str, Callable[[int, int], int | None]] = {
    "add.i64": lambda a, b: _fitting(a + b),
    "sub.i64": lambda a, b: _fitting(a - b),
    "mul.i64": lambda a, b: _fitting(a * b),
    "pow.i64": _power,
    "shl.i64": lambda a, b: None if b < 0 or (b > 63 and a) else _fitting(a << min(b, 63)),
    "shr.i64": lambda a, b: None if b < 0 else a >> min(b, 63),
    "floordiv.i64": lambda a, b: _fitting(a // b) if b else None,
    "mod.i64": lambda a, b: a % b if b else None,
    "div.f64": _checked_real(_quotient),
    "floordiv.f64": _checked_real(operator.floordiv),
    "mod.f64": _checked_real(operator.mod),
    "f64_to_i64": _whole,
    "index": _index,
}
"""`opcodes.CHECKED`; None where Python raises or the result does not fit."""
