"""Intrinsics of exact operations: rounding, order, selection, logic, integer powers.

In: values of kernel types; out: LLVM instructions emitted in place.  Each means what the NumPy
ufunc of its name means for operands of one dtype.  ``add_reassociated`` and
``multiply_reassociated`` let LLVM change the order of a reduction; they assume nothing about NaN
or infinities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import (
    BIT,
    BOOL,
    COMPLEX,
    EVERYTHING,
    FLOATS,
    INTEGERS,
    LLVM_TYPES,
    MOVED,
    NUMBERS,
    SHORT_NAMES,
    Emit,
    Intrinsic,
    alike,
)
from pyrelay.devices.compiler.kernel_operators import (
    emit_add,
    emit_floordiv,
    emit_inverted_floordiv,
    emit_inverted_mod,
    emit_mod,
    emit_mul,
    emit_predicted_floordiv,
    emit_predicted_mod,
    emit_truth,
    make_complex,
    parts,
)
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.routines.lanes import DOUBLE, SINGLE, Lane
from pyrelay.devices.routines.vector_calls import vector_call

__all__ = [
    "absolute", "add_reassociated", "ceil", "conj", "copysign", "floor", "floor_divide", "fma",
    "fmax", "fmin", "hypot", "imag", "isfinite", "isinf", "isnan", "logical_and", "logical_or",
    "logical_xor", "maximum", "minimum", "multiply_reassociated", "real", "reciprocal",
    "remainder", "rint", "sign", "square", "trunc", "where", "where_unpredictable",
]  # fmt: skip

_REALS = INTEGERS + FLOATS
_ORDERED = (BOOL, *_REALS)
_OF_ONE = ("fneg", "fpext", "fptrunc")  # LLVM's, of one float, NaN where that is


def _real_rule(given: tuple[types.Type, ...]) -> types.Type | None:
    """One operand; the type of its real part."""
    if len(given) != 1 or given[0] not in EVERYTHING:
        return None
    return given[0].underlying_float if given[0] in COMPLEX else given[0]


def _less(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    if ty in INTEGERS and ty.signed:
        return b.icmp_signed("<", x, y)
    return b.icmp_unsigned("<", x, y)


# -- reductions ----------------------------------------------------------------------------------


def _emit_add_reassociated(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    if ty in FLOATS:
        return b.fadd(x, y, flags=("reassoc",))
    if ty in COMPLEX:
        pairs = zip(parts(b, x), parts(b, y), strict=True)
        return make_complex(b, *(b.fadd(p, q, flags=("reassoc",)) for p, q in pairs))
    return emit_add(b, ty, x, y)


def _emit_multiply_reassociated(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    return b.fmul(x, y, flags=("reassoc",)) if ty in FLOATS else emit_mul(b, ty, x, y)


add_reassociated = Intrinsic("add_reassociated", alike(2, NUMBERS), _emit_add_reassociated)
multiply_reassociated = Intrinsic(
    "multiply_reassociated", alike(2, NUMBERS), _emit_multiply_reassociated
)

# -- order and selection -------------------------------------------------------------------------


def _extreme(smaller: bool, skips_nan: bool) -> Callable[..., Any]:
    """Minimum or maximum; a NaN operand is the result, unless ``skips_nan``. Of two zeros it is the
    second, as NumPy's (of NumPy's fmin and fmax it is the second or the first, by where they lie).

    Where one operand is known to be no NaN, one comparison says all; otherwise it is LLVM's own,
    which becomes a vector where a loop reduces by it.
    """

    def emit(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
        if ty not in FLOATS:
            first = _less(b, ty, x, y) if smaller else _less(b, ty, y, x)
            return b.select(first, x, y)
        sign = "<" if smaller else ">"
        identity = math.inf if smaller else -math.inf
        x, y = (_with_opaque(b, each, identity) for each in (x, y))
        if not skips_nan and _is_no_nan(y):
            return b.select(b.fcmp_unordered(sign, x, y), x, y)  # a NaN is not ordered: x
        if not skips_nan and _is_no_nan(x):
            return b.select(b.fcmp_ordered(sign, x, y), x, y)
        suffix = "num" if skips_nan else "imum"
        name = f"llvm.{'min' if smaller else 'max'}{suffix}"
        signature = llvm.FunctionType(x.type, [x.type] * 2)
        function = b.module.declare_intrinsic(name, [x.type], signature)
        return b.call(function, [x, y], fastmath=("nsz",))

    return emit


def _with_opaque(b: IRBuilder, x: Any, identity: float) -> Any:
    """A choice between numbers, of which LLVM does not know those that settle an extreme: its
    ``identity``, and NaN.

    It would make of ``minimum(s, where(c, inf, x))`` a choice between ``s`` and another minimum, in
    which it sees no reduction: loops over masked elements became no vectors.
    """
    if getattr(x, "opname", "") != "select":
        return x
    condition, *arms = x.operands
    hidden = []
    for arm in arms:
        number = _constant(arm)
        settles = number is not None and (number == identity or math.isnan(number))
        hidden.append(_opaque(b, arm.type, number) if settles else _with_opaque(b, arm, identity))
    return x if hidden == arms else b.select(condition, *hidden)


def _opaque(b: IRBuilder, kind: Any, number: float | None) -> Any:
    with b.goto_entry_block():
        room = b.alloca(kind)
        b.store(llvm.Constant(kind, number), room)
        return b.load(room, typ=kind, volatile=True)


def _constant(x: Any) -> float | None:
    """The float that LLVM sees here, if it does."""
    if isinstance(x, llvm.Constant):
        return x.constant if isinstance(x.constant, float) else None
    name = getattr(x, "opname", "")
    if name not in _OF_ONE:
        return None
    number = _constant(x.operands[0])
    return -number if number is not None and name == "fneg" else number


def _is_no_nan(x: Any) -> bool:
    """Whether LLVM sees that a float is no NaN: a constant, or made of an int or a constant."""
    number = _constant(x)
    if number is not None:
        return not math.isnan(number)
    name = getattr(x, "opname", "")
    if name in _OF_ONE:
        return _is_no_nan(x.operands[0])
    if name == "select":
        return all(map(_is_no_nan, x.operands[1:]))
    return name in ("sitofp", "uitofp")


minimum = Intrinsic("minimum", alike(2, _ORDERED), _extreme(smaller=True, skips_nan=False))
maximum = Intrinsic("maximum", alike(2, _ORDERED), _extreme(smaller=False, skips_nan=False))
fmin = Intrinsic("fmin", alike(2, _ORDERED), _extreme(smaller=True, skips_nan=True))
fmax = Intrinsic("fmax", alike(2, _ORDERED), _extreme(smaller=False, skips_nan=True))


def _where_rule(given: tuple[types.Type, ...]) -> types.Type | None:
    fits = len(given) == 3 and given[0] == BOOL and given[1] == given[2] and given[1] in MOVED
    return given[1] if fits else None


def _emit_where(b: IRBuilder, _: types.Type, condition: Any, x: Any, y: Any) -> Any:
    if not isinstance(x.type, llvm.LiteralStructType):
        return b.select(condition, x, y)
    pairs = zip(parts(b, x), parts(b, y), strict=True)
    return make_complex(b, *(b.select(condition, p, q) for p, q in pairs))


where = Intrinsic("where", _where_rule, _emit_where)


def _emit_where_unpredictable(b: IRBuilder, _: types.Type, condition: Any, x: Any, y: Any) -> Any:
    chosen = b.select(condition, x, y)
    if isinstance(chosen, llvm.Instruction):
        chosen.set_metadata("unpredictable", b.module.add_metadata([]))
    return chosen


where_unpredictable = Intrinsic("where_unpredictable", _where_rule, _emit_where_unpredictable)

# -- logic ---------------------------------------------------------------------------------------


def _logical(operation: str) -> Callable[..., Any]:
    def emit(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
        return getattr(b, operation)(emit_truth(b, ty, x), emit_truth(b, ty, y))

    return emit


logical_and = Intrinsic("logical_and", alike(2, EVERYTHING, BOOL), _logical("and_"))
logical_or = Intrinsic("logical_or", alike(2, EVERYTHING, BOOL), _logical("or_"))
logical_xor = Intrinsic("logical_xor", alike(2, EVERYTHING, BOOL), _logical("xor"))

_Test = Callable[[Lane], Lane]


def _float_test(
    name: str, test: _Test, combine: str, on_integers: int, predicted: _Test | None = None
) -> Intrinsic:
    """A question about floats; complex numbers answer by both parts, integers by a constant."""

    def asking(test: _Test) -> Emit:
        def emit(b: IRBuilder, ty: types.Type, x: Any) -> Any:
            if ty in FLOATS:
                return test(Lane(b, x)).v
            if ty in COMPLEX:
                return getattr(b, combine)(*(test(Lane(b, part)).v for part in parts(b, x)))
            return llvm.Constant(BIT, on_integers)

        return emit

    rule = alike(1, EVERYTHING, BOOL)
    return Intrinsic(name, rule, asking(test), predicted=asking(predicted or test))


_INFINITY = float("inf")
isnan = _float_test("isnan", lambda x: x.is_nan(), "or_", 0)
isinf = _float_test("isinf", lambda x: x.abs().equals(_INFINITY), "or_", 0)
# LLVM asks for the bits of one float, by a mask whose length is put into a part of a register: that
# waits for what was there before.
isfinite = _float_test(
    "isfinite", lambda x: x.abs() < _INFINITY, "and_", 1, lambda x: (x - x).is_number()
)

# -- rounding and sign ---------------------------------------------------------------------------


def _lane_function(name: str, function: Callable[..., Lane], arity: int = 1) -> Intrinsic:
    def emit(b: IRBuilder, _: types.Type, *args: Any) -> Any:
        return function(*(Lane(b, each) for each in args)).v

    return Intrinsic(name, alike(arity, FLOATS), emit)


floor = _lane_function("floor", Lane.floor)
ceil = _lane_function("ceil", Lane.ceil)
trunc = _lane_function("trunc", Lane.trunc)
rint = _lane_function("rint", Lane.rint)
copysign = _lane_function("copysign", Lane.copysign, 2)
fma = _lane_function("fma", Lane.fma, 3)


def lane_hypot(x: Lane, y: Lane) -> Lane:
    """``sqrt(x * x + y * y)`` without overflow on the way."""
    if x.format.bits == 32:
        wide_x, wide_y = x.widen(), y.widen()
        size = wide_x.fma(wide_x, wide_y * wide_y).sqrt().narrow()
    else:
        a, c = x.abs(), y.abs()
        large, small = (a > c).choose(a, c), (a > c).choose(c, a)
        # A power of two near the larger one, such that it and its inverse are normal numbers.
        exponents = large.bits() & (0x7FE << 52)
        exponents = (exponents < (2 << 52)).choose(exponents.constant(2 << 52), exponents)
        exponents = (exponents > (0x7FC << 52)).choose(exponents.constant(0x7FC << 52), exponents)
        scale = exponents.as_float()
        inverse = (exponents.constant(0x7FE << 52) - exponents).as_float()
        p, q = large * inverse, small * inverse
        size = p.fma(p, q * q).sqrt() * scale
    infinite = x.abs().equals(_INFINITY) | y.abs().equals(_INFINITY)
    return infinite.choose(x.constant(_INFINITY), size)


hypot = _lane_function("hypot", lane_hypot, 2)


def _emit_absolute(b: IRBuilder, ty: types.Type, x: Any) -> Any:
    if ty in COMPLEX:
        return lane_hypot(*(Lane(b, part) for part in parts(b, x))).v
    if ty in FLOATS:
        return Lane(b, x).abs().v
    if ty == BOOL or not ty.signed:
        return x
    return b.select(b.icmp_signed("<", x, llvm.Constant(x.type, 0)), b.neg(x), x)


def _emit_sign(b: IRBuilder, ty: types.Type, x: Any) -> Any:
    lane = Lane(b, x)
    if ty in INTEGERS and not ty.signed:
        return lane.differs(0).choose(lane.constant(1), 0).v
    rest = lane.constant(0) if ty in INTEGERS else lane.equals(0.0).choose(lane.constant(0.0), lane)
    return (lane > 0).choose(lane.constant(1), (lane < 0).choose(lane.constant(-1), rest)).v


def _emit_conj(b: IRBuilder, ty: types.Type, x: Any) -> Any:
    if ty not in COMPLEX:
        return x
    re, im = parts(b, x)
    return make_complex(b, re, b.fneg(im))


def _emit_real(b: IRBuilder, ty: types.Type, x: Any) -> Any:
    return b.extract_value(x, 0) if ty in COMPLEX else x


def _emit_imag(b: IRBuilder, ty: types.Type, x: Any) -> Any:
    return b.extract_value(x, 1) if ty in COMPLEX else llvm.Constant(x.type, None)


absolute = Intrinsic("absolute", _real_rule, _emit_absolute)
sign = Intrinsic("sign", alike(1, _REALS), _emit_sign)
conj = Intrinsic("conj", alike(1, EVERYTHING), _emit_conj)
real = Intrinsic("real", _real_rule, _emit_real)
imag = Intrinsic("imag", _real_rule, _emit_imag)
square = Intrinsic("square", alike(1, NUMBERS), lambda b, ty, x: emit_mul(b, ty, x, x))


def _emit_reciprocal(b: IRBuilder, ty: types.Type, x: Any) -> Any:
    if ty in FLOATS:
        return (1.0 / Lane(b, x)).v
    # Smith's algorithm, as NumPy's loops have it: not that of a quotient, of 0 NaN.
    re, im = (Lane(b, part) for part in parts(b, x))
    wide = im.abs() <= re.abs()
    large, small = wide.choose(re, im), wide.choose(im, re)
    ratio = small / large
    size = large + small * ratio
    own, other = 1.0 / size, ratio / size
    return make_complex(b, wide.choose(own, other).v, (-wide.choose(other, own)).v)



def _bits(name: str) -> Intrinsic:
    """The number of a type that the bits of another one, of as many bits, are."""
    ty = SHORT_NAMES[name]
    same = [x for other, x in SHORT_NAMES.items() if x in _REALS and other[1:] == name[1:]]

    def emit(b: IRBuilder, given: types.Type, x: Any) -> Any:
        return x if x.type == LLVM_TYPES[ty] else b.bitcast(x, LLVM_TYPES[ty])

    return Intrinsic(f"bits_{name}", alike(1, same, ty), emit)


globals().update({f"bits_{name}": _bits(name) for name, ty in SHORT_NAMES.items() if ty in _REALS})

reciprocal = Intrinsic("reciprocal", alike(1, FLOATS + COMPLEX), _emit_reciprocal)

# -- floor division ------------------------------------------------------------------------------


def _near_remainder(x: Lane, y: Lane) -> Lane:
    """C's remainder where a quotient has no more digits than a float. Whole numbers are rounded to
    themselves, so the quotient without its fraction is right or one too large; what it leaves of x
    is less than y and a multiple of the last digit of y: exact, if it is rounded once."""
    rest = (-(x / y).trunc()).exact_fma(y, x)
    over = ((rest.bits() ^ x.bits()) < 0) & rest.differs(0.0)
    return over.choose(rest + y.abs().copysign(x), rest).copysign(x)


def _is_long(x: Lane, y: Lane) -> Lane:
    """Whether a quotient is as long as a float, or no number; or the divisor is infinite."""
    most = 2.0**x.format.mantissa
    return ~((x / y).abs() < most) | ~(y.abs() < float("inf"))


_REMAINDERS = {
    each.bits: vector_call(
        f"remainder{each.bits}", _near_remainder, lambda x, y: Lane(x.b, x.b.frem(x.v, y.v)),
        _is_long, each.type, 2,
    )
    for each in (SINGLE, DOUBLE)
}


def _is_power(y: Any) -> bool:
    """Whether a divisor is a power of two from 1 on that is known now: no quotient is rounded but
    some below 1, and none is too large."""
    number = y.constant if isinstance(y, llvm.Constant) else None
    return isinstance(number, float) and math.isfinite(number) and (
        number >= 1 and math.frexp(number)[0] == 0.5
    )


def _float_divmod(x: Lane, y: Lane) -> tuple[Lane, Lane]:
    """C's remainder brought to the sign of ``y``, and the quotient that goes with it."""
    if _is_power(y.v):
        rest = (x - (x / y).trunc() * y).copysign(x)
    else:
        rest = _REMAINDERS[x.format.bits](x, y)
    quotient = (x - rest) / y
    inexact = rest.differs(0.0)
    adjust = inexact & ((rest < 0.0) ^ (y < 0.0))
    rest = inexact.choose(adjust.choose(rest + y, rest), x.constant(0.0).copysign(y))
    return adjust.choose(quotient - 1.0, quotient), rest


def _emit_floor_divide(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    if ty in INTEGERS:
        return emit_floordiv(b, ty, x, y, laned=True)
    a, c = Lane(b, x), Lane(b, y)
    quotient, _ = _float_divmod(a, c)
    down = quotient.floor()
    # The quotient is a whole number up to rounding; one just below it must not fall.
    whole = (quotient - down > 0.5).choose(down + 1.0, down)
    signed = quotient.differs(0.0).choose(whole, a.constant(0.0).copysign(a / c))
    return c.equals(0.0).choose(a / c, signed).v


def _emit_remainder(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    if ty in INTEGERS:
        return emit_mod(b, ty, x, y, laned=True)
    a, c = Lane(b, x), Lane(b, y)
    _, rest = _float_divmod(a, c)
    return c.equals(0.0).choose(a.constant(float("nan")), rest).v


def _predicted_floor_divide(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    emit = emit_predicted_floordiv if ty in INTEGERS else _emit_floor_divide
    return emit(b, ty, x, y)


def _predicted_remainder(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    emit = emit_predicted_mod if ty in INTEGERS else _emit_remainder
    return emit(b, ty, x, y)


floor_divide = Intrinsic(
    "floor_divide", alike(2, _REALS), _emit_floor_divide, predicted=_predicted_floor_divide,
    inverted=emit_inverted_floordiv,
)
remainder = Intrinsic(
    "remainder", alike(2, _REALS), _emit_remainder, predicted=_predicted_remainder,
    inverted=emit_inverted_mod,
)


# -- integer powers ------------------------------------------------------------------------------


def emit_integer_power(b: IRBuilder, ty: types.Type, base: Any, exponent: Any) -> Any:
    """``base ** exponent`` by squaring, wrapping around.

    A negative exponent gives the quotient rounded towards zero: 1, -1 or 0.
    """
    kind = base.type
    zero, one, minus_one = (llvm.Constant(kind, n) for n in (0, 1, -1))
    before = b.block
    head, after = b.append_basic_block("power"), b.append_basic_block("power_done")
    b.branch(head)
    b.position_at_end(head)
    result, factor, left = (b.phi(kind) for _ in range(3))
    odd = b.trunc(left, BIT)
    next_result = b.select(odd, b.mul(result, factor), result)
    next_factor = b.mul(factor, factor)
    next_left = b.lshr(left, one)
    for phi, first, following in (
        (result, one, next_result),
        (factor, base, next_factor),
        (left, exponent, next_left),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(following, head)
    b.cbranch(b.icmp_unsigned("!=", next_left, zero), head, after)
    b.position_at_end(after)
    if not ty.signed:
        return next_result
    alternating = b.select(b.trunc(exponent, BIT), minus_one, one)
    inverse = b.select(
        b.icmp_signed("==", base, one),
        one,
        b.select(b.icmp_signed("==", base, minus_one), alternating, zero),
    )
    return b.select(b.icmp_signed("<", exponent, zero), inverse, next_result)
