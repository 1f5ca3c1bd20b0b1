"""Python ints of up to 64 bits without a sign: `x = (x * a + c) & 0xFFFFFFFFFFFFFFFF`.

In: operators on ints, in a program that has a number of 2**63 or more. Out: `values.Natural`, an
int from 0 to 2**64 - 1, where the operator surely gives one; `values.Wrapped`, the low 64 bits of a
sum, a product or the like, and how to compute it as an int of 63 bits and a sign: that is done only
where something else than a mask wants it, and raises OverflowError where it does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.ir import types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.nodes import Atom, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.spellings import MIRRORED, OP_NAMES

LARGEST = 2**64 - 1
#: So many operators may be waiting for a mask: what another use computes is as large.
_DEEPEST = 8
_WRAPPING = {
    "+": "add", "-": "subtract", "*": "multiply", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "<<": "left_shift",
}
_BITWISE = frozenset("&|^")
_NEAR = 8  # so many ops before a mask are looked at
#: The type of a `Natural` that leaves the program.
WHOLE = TensorType(types.u64, (), True)


def constant_of(it: Interpreter, number: Any) -> Atom:
    """The constant that a number known while compiling is.

    Raises NeedsWide for an int of 2**63 or more, and a failure where that is of no help.
    """
    if type(number) is int and not -(2**63) <= number < 2**63:
        if it.program.wide is None and 0 < number <= 2**64:
            raise needs.NeedsWide
        raise it.failure(
            errors.InvalidValueError,
            f"the integer {number} does not fit into 64 bits",
            label="", hints=("write it as a float, or compute it outside",),
        )
    return constant(number)


def is_wide(value: V.Value) -> bool:
    """Whether a value is an int that may not fit into 63 bits and a sign."""
    return isinstance(value, (V.Natural, V.Wrapped)) or (
        isinstance(value, V.Known) and type(value.value) is int
        and not -(2**63) <= value.value < 2**63
    )


def binary(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y` of two ints; None for other values, and where it is computed as ever."""
    if not it.program.wide:
        look_for_wrapping(it, op, x, y)
        return None
    if not (_is_int(x) and _is_int(y)):
        return None
    wide = is_wide(x) or is_wide(y)
    if op in ("&", "%"):
        mask = _mask_of(op, x, y)
        if mask is not None and (wide or mask >= 2**63):
            other = x if op == "%" or isinstance(y, V.Known) else y
            return _natural(it, _low(it, other, "bitwise_and", mask), mask < 2**63)
    if op in _WRAPPING:
        if not wide and (op in _BITWISE or _are_places(x, y)):
            return None
        return _wrapped(it, op, x, y)
    if not wide:
        return None
    x, y = settled(it, x), settled(it, y)
    known = y.value if isinstance(y, V.Known) and type(y.value) is int else None
    if op == ">>" and isinstance(x, V.Natural):
        return _natural(it, _shifted(it, "right_shift", x, y), known is not None and known > 0)
    if op in ("//", "%") and isinstance(x, V.Natural) and known is not None and (
        0 < known <= LARGEST
    ):
        name = "floor_divide" if op == "//" else "remainder"
        small = known > 1 if op == "//" else known <= 2**63
        return _natural(it, _low(it, x, name, known), small)
    if op in ("//", "%") and isinstance(x, V.Natural) and isinstance(y, V.Scalar):
        name = "floor_divide" if op == "//" else "remainder"
        it.call(name, V.Known(0), y)  # raises for zero
        found: Handle = it.builder.call(OPS[name], x.bits, bits_of(it.builder, it.atom(y)))
        return _natural(it, found.atom, op == "%")
    if op == "/" and known is not None and known > 0 and known & (known - 1) == 0:
        b = it.builder
        atom = x.bits if isinstance(x, V.Natural) else it.atom(x)
        return it.call("divide", V.Scalar(
            types.PY_FLOAT, b.cast(atom, types.f64, weak=True)
        ), V.Known(float(known)))
    from pyrelay.infer import operators

    return operators.binary(it, op, *(V.Scalar(types.PY_INT, _atom(it, v)) for v in (x, y)))


def look_for_wrapping(it: Interpreter, op: str, x: V.Value, y: V.Value) -> None:
    """Raises NeedsWide where a mask of 31 bits or more is for a product or a shifted number, whose
    value may need more than 63: its low bits do."""
    if op not in ("&", "%") or not (_is_int(x) and _is_int(y)):
        return
    mask = _mask_of(op, x, y)
    other = x if op == "%" or isinstance(y, V.Known) else y
    if mask is None or mask < 2**31 - 1 or not isinstance(other, V.Scalar):
        return
    pending, lets = [other.atom], it.builder.lets[-_NEAR:]
    for let in reversed(lets):
        if isinstance(let.rhs, OpCall) and any(out is atom for out in let.outs for atom in pending):
            if let.rhs.op.name in ("multiply", "left_shift"):
                raise needs.NeedsWide(soft=mask < 2**63)
            pending += let.rhs.args


def of_known(it: Interpreter, op: str, x: Any, y: Any) -> V.Value | None:
    """A known int masked with 64 bits, which is one of all that the same code masks."""
    known = V.Known(x), V.Known(y)
    if op not in ("&", "%") or not all(map(_is_int, known)):
        return None
    mask = _mask_of(op, *known)
    if mask is None or mask < 2**63:
        return None
    return V.Natural(_constant(x & mask if op == "%" else x & y))


def compare(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """A comparison of ints, one of which may be 2**63 or more; None for other values."""
    if not (_is_int(x) and _is_int(y) and (is_wide(x) or is_wide(y))):
        return None
    x, y = settled(it, x), settled(it, y)
    if isinstance(x, V.Known) or (isinstance(x, V.Scalar) and not isinstance(y, V.Known)):
        op, x, y = MIRRORED.get(op, op), y, x
    b = it.builder
    if isinstance(y, V.Known) and not 0 <= y.value <= LARGEST:
        if isinstance(x, V.Natural) or not -(2**63) <= y.value < 2**63:
            return V.Known(op in (("!=", ">", ">=") if y.value < 0 else ("!=", "<", "<=")))
        return None
    if isinstance(x, V.Scalar):  # with a known number of 2**63 or more
        return V.Known(op in ("!=", "<", "<="))
    answer = b.call(OPS[OP_NAMES[op]], _bits(it, x), _bits(it, y))
    if isinstance(y, V.Scalar):
        negative = b.call(OPS["less"], it.atom(y), 0)
        answer = b.call(OPS["where"], negative, op in ("!=", ">", ">="), answer)
    return V.Scalar(types.PY_BOOL, b.cast(answer, types.bool_, weak=True))


def unary(it: Interpreter, op: str, x: V.Value) -> V.Value | None:
    """`-x` and `~x` of an int; None for other values."""
    if not _is_int(x) or isinstance(x, V.Known):
        return None
    if op == "+":
        return x if is_wide(x) else None
    return _wrapped(it, "-", V.Known(0 if op == "-" else -1), x)


def settled(it: Interpreter, value: V.Value) -> V.Value:
    """A value that does not wait for a mask any more."""
    if isinstance(value, V.Wrapped):
        return value.whole(it)
    if isinstance(value, V.Known) and is_wide(value) and 0 <= value.value <= LARGEST:
        return V.Natural(_constant(value.value))
    return value


def int_of(b: Builder, bits: Atom) -> Atom:
    """The int of 63 bits and a sign; the running program raises OverflowError for a larger one."""
    half = b.cast(b.call(OPS["right_shift"], bits, _constant(1)), types.i64, weak=True)
    last = b.cast(b.call(OPS["bitwise_and"], bits, _constant(1)), types.i64, weak=True)
    whole: Handle = b.call(OPS["add"], b.call(OPS["multiply"], half, 2), last)
    return whole.atom


def bits_of(b: Builder, number: Atom) -> Atom:
    """The bits of an int; the running program raises OverflowError for a negative one."""
    number = b.cast(number, types.i64, weak=True)
    negative = b.call(OPS["less"], number, 0)
    nothing = b.call(
        OPS["add"], b.call(OPS["where"], negative, -(2**63), 0),
        b.call(OPS["where"], negative, -1, 0),
    )
    return _as_bits(b, b.call(OPS["bitwise_or"], number, nothing).atom)


def bits_of_all(b: Builder, numbers: Atom) -> Atom:
    """As `bits_of`, for an array of ints."""
    assert isinstance(numbers.type, TensorType)
    axes = tuple(range(numbers.type.rank))
    least = b.call(OPS["any"], b.call(OPS["less"], numbers, 0), axes=axes, keepdims=False)
    nothing = bits_of(b, b.cast(b.call(OPS["where"], least, -1, 0), types.i64, weak=True))
    found: Handle = b.call(OPS["bitwise_or"], _as_bits(b, numbers), nothing)
    return found.atom


def encoded(b: Builder, read: Callable[[V.Value], Atom], value: V.Value) -> V.Natural:
    """An int as a `Natural`, where paths meet of which one has one."""
    if isinstance(value, V.Natural):
        return value
    if isinstance(value, V.Known) and 0 <= value.value <= LARGEST:
        return V.Natural(_constant(int(value.value)))
    return V.Natural(bits_of(b, read(value)))


def _are_places(x: V.Value, y: V.Value) -> bool:
    """Whether both are known as sums of loop indices and extents, which what they make is too."""
    from pyrelay.infer.operators import poly_of

    return poly_of(x) is not None and poly_of(y) is not None


def _is_int(value: V.Value) -> bool:
    if isinstance(value, V.Known):
        return type(value.value) in (int, bool)
    if isinstance(value, V.Scalar):
        return value.type in (types.PY_INT, types.PY_BOOL) and not value.kinds
    return isinstance(value, (V.Natural, V.Wrapped))


def _mask_of(op: str, x: V.Value, y: V.Value) -> int | None:
    """The number that is not negative which `&` masks with, also where `%` means that."""
    pairs = (y,) if op == "%" else (y, x)
    for value in pairs:
        if isinstance(value, V.Known):
            number = int(value.value)
            if op == "%":
                power = number > 1 and number & (number - 1) == 0
                return number - 1 if power and number <= 2**64 else None
            return number if 0 <= number <= LARGEST else None
    return None


def _constant(number: int) -> Atom:
    return constant(np.uint64(number & LARGEST))


def _bits(it: Interpreter, value: V.Value) -> Atom:
    """The low 64 bits of an int."""
    if isinstance(value, (V.Natural, V.Wrapped)):
        return value.bits
    if isinstance(value, V.Known):
        return _constant(int(value.value))
    return _as_bits(it.builder, it.atom(value))


def _as_bits(b: Builder, numbers: Atom) -> Atom:
    """The low 64 bits of ints."""
    found: Handle = b.call(OPS["bitcast"], b.cast(numbers, types.i64), dtype=types.u64)
    return found.atom


def _atom(it: Interpreter, value: V.Value) -> Any:
    """An int of 63 bits and a sign; the running program raises OverflowError for another one."""
    if isinstance(value, V.Known) and is_wide(value):
        return int_of(it.builder, _constant(LARGEST))
    return it.builder.cast(it.atom(value), types.i64, weak=True)


def _low(it: Interpreter, x: V.Value, name: str, number: int) -> Atom:
    found: Handle = it.builder.call(OPS[name], _bits(it, x), _constant(number))
    return found.atom


def _shifted(it: Interpreter, name: str, x: V.Value, y: V.Value) -> Atom:
    """The low bits of a shift. The running program raises ValueError for a negative count."""
    if isinstance(y, V.Known) and 0 <= y.value < 64:
        return _low(it, x, name, y.value)
    b, count = it.builder, it.atom(y)
    it.call(name, V.Known(0), V.Scalar(types.PY_INT, count))
    far = b.call(OPS["greater_equal"], count, 64)
    near = b.cast(b.call(OPS["where"], far, 0, count), types.u64)
    moved = b.call(OPS[name], _bits(it, x), near)
    found: Handle = b.call(OPS["where"], far, _constant(0), moved)
    return found.atom


def _natural(it: Interpreter, bits: Atom, small: bool) -> V.Value:
    if small:
        return V.Scalar(types.PY_INT, it.builder.cast(bits, types.i64, weak=True))
    return V.Natural(bits)


def _sum(it: Interpreter, term: Atom, bits: Atom) -> V.Value:
    """A sum of which the low bits are known; less than a term of it, it has one bit more."""
    b = it.builder
    lost = b.call(OPS["where"], b.call(OPS["less"], bits, term), -1, 0)
    found: Handle = b.call(OPS["bitwise_or"], bits, bits_of(b, lost.atom))
    return V.Natural(found.atom)


def _wrapped(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """A sum or the like of which the low bits are computed, and the rest where it is wanted."""
    depth = 1 + max(v.depth if isinstance(v, V.Wrapped) else 0 for v in (x, y))
    if depth > _DEEPEST:
        x, y, depth = settled(it, x), settled(it, y), 1
    if op == "<<":
        bits = _shifted(it, "left_shift", x, y)
    else:
        made: Handle = it.builder.call(OPS[_WRAPPING[op]], _bits(it, x), _bits(it, y))
        bits = made.atom

    def whole(it: Interpreter) -> V.Value:
        a, b = settled(it, x), settled(it, y)
        if op in _BITWISE and (isinstance(a, V.Natural) or isinstance(b, V.Natural)):
            parts = [encoded(it.builder, it.atom, v).bits for v in (a, b)]
            both: Handle = it.builder.call(OPS[_WRAPPING[op]], *parts)
            return V.Natural(both.atom)
        if op == "+" and any(isinstance(v, V.Natural) for v in (a, b)) and all(
            isinstance(v, V.Natural) or (isinstance(v, V.Known) and v.value >= 0) for v in (a, b)
        ):
            return _sum(it, _bits(it, a), bits)
        return it.call(_WRAPPING[op], _atom(it, a), _atom(it, b))

    return V.Wrapped(bits, whole, depth)
