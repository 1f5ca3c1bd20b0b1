"""Operators of the kernel language.

In: LLVM values and their types; out: LLVM instructions.  ``BINARY``, ``UNARY`` and ``COMPARED`` map
Python's operators to intrinsics; arithmetic means what NumPy's ufuncs mean for operands of one
dtype.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import (
    BOOL,
    COMPLEX,
    EVERYTHING,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    WORD,
    Emit,
    Intrinsic,
    alike,
)
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.routines.matmul import native_vector_bits
from pyrelay.devices.routines.word_arithmetic import (
    long_quotient,
    long_unsigned_quotient,
    upper_half,
    upper_product,
)


def _is_float(ty: types.Type) -> bool:
    return isinstance(ty, types.Float)


def _pairwise(instruction: str) -> Emit:
    """Complex addition or subtraction, part by part."""

    def emit(b: IRBuilder, a: Any, c: Any) -> Any:
        out: Any = llvm.Constant(a.type, llvm.Undefined)
        for part in (0, 1):
            value = getattr(b, instruction)(b.extract_value(a, part), b.extract_value(c, part))
            out = b.insert_value(out, value, part)
        return out

    return emit


def make_complex(b: IRBuilder, re: Any, im: Any) -> Any:
    """The LLVM value of the complex number ``re + 1j * im``."""
    out = llvm.Constant(llvm.LiteralStructType([re.type, im.type]), llvm.Undefined)
    return b.insert_value(b.insert_value(out, re, 0), im, 1)


def parts(b: IRBuilder, z: Any) -> tuple[Any, Any]:
    """Real and imaginary part of an LLVM complex value."""
    return b.extract_value(z, 0), b.extract_value(z, 1)


def _complex_mul(b: IRBuilder, x: Any, y: Any) -> Any:
    (a, c), (d, e) = parts(b, x), parts(b, y)
    re = b.fsub(b.fmul(a, d), b.fmul(c, e))
    im = b.fadd(b.fmul(a, e), b.fmul(c, d))
    return make_complex(b, re, im)


def _complex_div(b: IRBuilder, x: Any, y: Any) -> Any:
    """Smith's algorithm (Comm. ACM 5, 1962), as NumPy's loops; branch-free by selects."""
    (a, c), (d, e) = parts(b, x), parts(b, y)
    zero = llvm.Constant(d.type, 0.0)
    size_d, size_e = _fabs(b, d), _fabs(b, e)
    wide = b.fcmp_ordered(">=", size_d, size_e)
    both_zero = b.and_(b.fcmp_ordered("==", size_d, zero), b.fcmp_ordered("==", size_e, zero))
    large, small = b.select(wide, d, e), b.select(wide, e, d)
    ratio = b.fdiv(small, large)
    scale = b.fdiv(llvm.Constant(d.type, 1.0), b.fadd(large, b.fmul(small, ratio)))
    p, q = b.select(wide, a, c), b.select(wide, c, a)
    re = b.fmul(b.fadd(p, b.fmul(q, ratio)), scale)
    im_wide = b.fsub(c, b.fmul(a, ratio))
    im_tall = b.fsub(b.fmul(c, ratio), a)
    im = b.fmul(b.select(wide, im_wide, im_tall), scale)
    re = b.select(both_zero, b.fdiv(a, size_d), re)
    im = b.select(both_zero, b.fdiv(c, size_d), im)
    return make_complex(b, re, im)


def _fabs(b: IRBuilder, x: Any) -> Any:
    return b.call(b.module.declare_intrinsic("llvm.fabs", [x.type]), [x])


_add_parts, _sub_parts = _pairwise("fadd"), _pairwise("fsub")


def emit_add(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    if ty in COMPLEX:
        return _add_parts(b, x, y)
    return b.fadd(x, y) if _is_float(ty) else b.add(x, y)


def emit_sub(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    if ty in COMPLEX:
        return _sub_parts(b, x, y)
    return b.fsub(x, y) if _is_float(ty) else b.sub(x, y)


def emit_mul(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    if ty in COMPLEX:
        return _complex_mul(b, x, y)
    return b.fmul(x, y) if _is_float(ty) else b.mul(x, y)


def emit_div(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    return _complex_div(b, x, y) if ty in COMPLEX else b.fdiv(x, y)


def emit_neg(b: IRBuilder, ty: types.Type, x: Any) -> Any:
    if ty in COMPLEX:
        re, im = parts(b, x)
        return make_complex(b, b.fneg(re), b.fneg(im))
    return b.fneg(x) if _is_float(ty) else b.neg(x)


def _safe_divisor(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> tuple[Any, Any]:
    """``y`` with 1 where dividing by it would trap, and the bit that says ``y`` was 0.

    ``minimum // -1`` overflows: NumPy answers with the minimum and a remainder of 0, which is what
    dividing by 1 gives.
    """
    one = llvm.Constant(y.type, 1)
    zero = b.icmp_signed("==", y, llvm.Constant(y.type, 0))
    unsafe = zero
    if ty.signed:
        lowest = llvm.Constant(y.type, -(2 ** (ty.bitwidth - 1)))
        overflow = b.and_(
            b.icmp_signed("==", y, llvm.Constant(y.type, -1)), b.icmp_signed("==", x, lowest)
        )
        unsafe = b.or_(zero, overflow)
    return b.select(unsafe, one, y), zero


def _power_of_two(y: Any) -> int | None:
    """The exponent, if a divisor is a power of two that is known now."""
    number = y.constant if isinstance(y, llvm.Constant) else None
    if not isinstance(number, int) or number <= 0 or number & (number - 1):
        return None
    return number.bit_length() - 1


def _is_positive(y: Any) -> bool:
    """Whether a divisor is a number above 0 that is known now."""
    return isinstance(y, llvm.Constant) and isinstance(y.constant, int) and y.constant > 0


def _is_long_by_positive(x: Any, y: Any) -> bool:
    """Whether integers of 64 bits are divided by a number above 0 that is known now. What was made
    of shorter ones LLVM divides in few bits."""
    return x.type == WORD and _is_positive(y) and not _is_widened(x)


def _is_widened(x: Any, deepest: int = 4) -> bool:
    """Whether an integer was made of such of fewer bits."""
    if isinstance(x, llvm.Constant):
        return True
    if not isinstance(x, llvm.Instruction) or not deepest:
        return False
    if x.opname in ("zext", "sext"):
        return True
    return x.opname in ("add", "sub", "mul", "and", "or", "xor", "ashr", "lshr") and all(
        _is_widened(y, deepest - 1) for y in x.operands
    )


def _by_constant(b: IRBuilder, x: Any, y: int) -> tuple[Any, Any, Any]:
    """Of x, or of -1 - x where x is negative, which has 63 bits: itself, and its quotient by a
    positive number; and -1 where x is negative. Twice a number of 63 bits is divided exactly by one
    product with 2**(63 + bits) / y, rounded up (Granlund and Montgomery, "Division by invariant
    integers using multiplication", PLDI 1994)."""
    sign = b.ashr(x, llvm.Constant(WORD, 63))
    size = b.xor(x, sign)
    bits = (y - 1).bit_length()
    factor = llvm.Constant(WORD, -(-(1 << 63 + bits) // y))
    upper = _upper(b, b.add(size, size), factor)
    return size, b.lshr(upper, llvm.Constant(WORD, bits)), sign


def _upper(b: IRBuilder, x: Any, y: Any) -> Any:
    """The upper half of a product of numbers without a sign; of words vectors of two make it more
    slowly than one after the other."""
    if x.type != WORD or native_vector_bits() < 256:
        return upper_half(b, x, y)
    return upper_product.called(b, x, y)


def emit_floordiv(b: IRBuilder, ty: types.Type, x: Any, y: Any, laned: bool = False) -> Any:
    """Integer quotient rounded down; 0 where ``y`` is 0. laned: in the lanes of vectors."""
    shift = _power_of_two(y)
    if shift is not None:  # a shift rounds down
        bits = llvm.Constant(x.type, shift)
        return b.ashr(x, bits) if ty.signed else b.lshr(x, bits)
    if laned and _is_long_by_positive(x, y):
        if not ty.signed:
            return _inverted_floordiv(b, ty, x, y, _inverse(y))
        _, quotient, sign = _by_constant(b, x, y.constant)
        return b.xor(quotient, sign)
    if ty.signed and _is_positive(y):
        # Of the remainder LLVM knows that it has the sign of x, or none.
        below = b.ashr(b.srem(x, y), llvm.Constant(x.type, ty.bitwidth - 1))
        return b.add(b.sdiv(x, y), below)
    divisor, zero = _safe_divisor(b, ty, x, y)
    nothing = llvm.Constant(x.type, 0)
    quotient = _quotient(b, ty, x, divisor, laned and not isinstance(y, llvm.Constant))
    if not ty.signed:
        return b.select(zero, nothing, quotient)
    rest = b.sub(x, b.mul(quotient, divisor))
    inexact = b.icmp_signed("!=", rest, nothing)
    opposite = b.icmp_signed("<", b.xor(rest, divisor), nothing)
    down = b.sub(quotient, b.zext(b.and_(inexact, opposite), x.type))
    return b.select(zero, nothing, down)


def emit_mod(b: IRBuilder, ty: types.Type, x: Any, y: Any, laned: bool = False) -> Any:
    """Integer remainder with the sign of ``y``; 0 where ``y`` is 0. laned: in lanes of vectors."""
    shift = _power_of_two(y)
    if shift is not None:
        return b.and_(x, llvm.Constant(x.type, (1 << shift) - 1))
    if laned and _is_long_by_positive(x, y):
        if not ty.signed:
            return _inverted_mod(b, ty, x, y, _inverse(y))
        size, quotient, sign = _by_constant(b, x, y.constant)
        rest = b.sub(size, b.mul(quotient, y))
        return b.add(b.xor(rest, sign), b.and_(y, sign))
    divisor, zero = _safe_divisor(b, ty, x, y)
    nothing = llvm.Constant(x.type, 0)
    if laned and not isinstance(y, llvm.Constant):
        rest = b.sub(x, b.mul(_quotient(b, ty, x, divisor, True), divisor))
    else:
        rest = b.srem(x, divisor) if ty.signed else b.urem(x, divisor)
    if not ty.signed:
        return b.select(zero, nothing, rest)
    inexact = b.icmp_signed("!=", rest, nothing)
    opposite = b.icmp_signed("<", b.xor(rest, divisor), nothing)
    lifted = b.select(b.and_(inexact, opposite), b.add(rest, divisor), rest)
    return b.select(zero, nothing, lifted)


def _quotient(b: IRBuilder, ty: types.Type, x: Any, y: Any, laned: bool) -> Any:
    """The quotient without its fraction; in lanes by floats, which have vectors, where they hold
    both integers."""
    if not laned:
        return b.sdiv(x, y) if ty.signed else b.udiv(x, y)
    if ty.bitwidth == 64:
        known = long_quotient if ty.signed else long_unsigned_quotient
        return known.called(b, x, y)
    kind = llvm.DoubleType() if ty.bitwidth == 32 else llvm.FloatType()
    widened, cut = (b.sitofp, b.fptosi) if ty.signed else (b.uitofp, b.fptoui)
    return cut(b.fdiv(widened(x, kind), widened(y, kind)), x.type)


# -- division by a function ------------------------------------------------------------------------

#: A function that is called so saves the registers that it uses itself.
_SAVING = "preserve_mostcc"


def _called(name: str, emit: Emit) -> Emit:
    """An operator by a function of the module: a text with many divisions is a third as long."""

    def call(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
        if x.type != WORD or not ty.signed or isinstance(y, llvm.Constant):
            return emit(b, ty, x, y)
        known = b.module.globals.get(name)
        if known is None:
            known = llvm.Function(b.module, llvm.FunctionType(WORD, [WORD, WORD]), name)
            known.linkage, known.calling_convention = "internal", _SAVING
            known.attributes.add("noinline")
            inside = IRBuilder(known.append_basic_block("begin"))
            inside.ret(emit(inside, ty, *known.args))
        return b.call(known, [x, y], cconv=_SAVING)

    return call


# -- division in rounds one by one ----------------------------------------------------------------

_HALF_WORD = llvm.IntType(32)
_SELDOM = (1, 2000)
"""Weights of a branch that is seldom taken; LLVM leaves it a branch, which processors predict."""


def emit_predicted_floordiv(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    """As `emit_floordiv`, where operands of unlike signs are seldom: nothing waits for a choice."""
    if not _is_predicted(ty, y):
        return emit_floordiv(b, ty, x, y)

    def lowered(quotient: Any, rest: Any) -> Any:
        inexact = b.icmp_signed("!=", rest, llvm.Constant(x.type, 0))
        return b.sub(quotient, b.zext(inexact, x.type))

    def by_one_or_none() -> Any:
        zero = b.icmp_signed("==", y, llvm.Constant(y.type, 0))
        return b.select(zero, llvm.Constant(x.type, 0), b.neg(x))

    return _divided(b, x, y, b.udiv, lambda rest: b.sdiv(x, y), lowered, by_one_or_none)


def emit_predicted_mod(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    """As `emit_mod`, where operands of unlike signs are seldom: nothing waits for a choice."""
    if not _is_predicted(ty, y):
        return emit_mod(b, ty, x, y)

    def lifted(_: Any, rest: Any) -> Any:
        exact = b.icmp_signed("==", rest, llvm.Constant(x.type, 0))
        return b.select(exact, rest, b.add(rest, y))

    return _divided(b, x, y, b.urem, lambda rest: rest, lifted, lambda: llvm.Constant(x.type, 0))


def _is_predicted(ty: types.Type, y: Any) -> bool:
    """Whether signs matter to a division by `y`, which is not by 0 or -1 as far as is known."""
    known = isinstance(y, llvm.Constant)
    return ty.signed and not (known and (y.constant in (0, -1) or _power_of_two(y) is not None))


def _is_product(x: Any, deepest: int = 2) -> bool:
    """Whether a number is a product, or a sum with one."""
    if not isinstance(x, llvm.Instruction):
        return False
    if x.opname in ("add", "sub") and deepest:
        return any(_is_product(y, deepest - 1) for y in x.operands)
    return x.opname == "mul"


def _divided(
    b: IRBuilder, x: Any, y: Any, short: Callable[[Any, Any], Any], result: Callable[[Any], Any],
    rounded: Callable[[Any, Any], Any], by_one_or_none: Callable[[], Any],
) -> Any:
    """What `result` makes of a remainder, what `rounded` makes of both where the remainder has
    another sign than `y`, or `by_one_or_none` where `y` is -1 (the quotient may overflow) or 0.

    `short` is the division of numbers of 32 bits without a sign, if both are: it takes processors
    half the time, and no sign is asked for. Of products nobody can guess how long they are.
    """
    after = b.append_basic_block("divided")
    ways = []
    if not isinstance(y, llvm.Constant):
        special, plain = b.append_basic_block("special"), b.append_basic_block("plain")
        if x.type == WORD and not _is_product(x):
            brief, any_, long = (b.append_basic_block(n) for n in ("brief", "short", "long"))
            upper = b.lshr(b.or_(x, y), llvm.Constant(WORD, 32))
            b.cbranch(b.icmp_unsigned("==", upper, llvm.Constant(WORD, 0)), any_, long)
            b.position_at_end(any_)
            b.cbranch(b.icmp_unsigned("==", y, llvm.Constant(WORD, 0)), special, brief, _SELDOM)
            b.position_at_end(brief)
            quick = b.zext(short(b.trunc(x, _HALF_WORD), b.trunc(y, _HALF_WORD)), WORD)
            ways.append((quick, brief))
            b.branch(after)
            b.position_at_end(long)
        both = b.icmp_unsigned("<", b.add(y, llvm.Constant(y.type, 1)), llvm.Constant(y.type, 2))
        b.cbranch(both, special, plain, _SELDOM)
        b.position_at_end(special)
        ways.append((by_one_or_none(), special))
        b.branch(after)
        b.position_at_end(plain)
    rest = b.srem(x, y)
    found = result(rest)
    unlike = b.append_basic_block("unlike")
    opposite = b.icmp_signed("<", b.xor(rest, y), llvm.Constant(x.type, 0))
    ways.append((found, b.block))
    b.cbranch(opposite, unlike, after, _SELDOM)
    b.position_at_end(unlike)
    ways.append((rounded(found, rest), unlike))
    b.branch(after)
    b.position_at_end(after)
    joined = b.phi(x.type)
    for value, block in ways:
        joined.add_incoming(value, block)
    return joined


# -- division by what no round changes ------------------------------------------------------------

def inverse_of(b: IRBuilder, ty: types.Type, y: Any) -> tuple[Any, Any]:
    """The inverse of an integer of n bits, 2**n / y rounded down, and whether `y` has one."""
    zero, one, most = (llvm.Constant(y.type, number) for number in (0, 1, -1))
    has = b.icmp_signed(">", y, zero) if ty.signed else b.icmp_unsigned("!=", y, zero)
    return b.udiv(most, b.select(has, y, one)), has


def _by_inverse(
    b: IRBuilder, ty: types.Type, x: Any, y: Any, inverse: Any
) -> tuple[Any, Any, Any]:
    """Quotient and remainder of a number without a sign, and what turns them into those of `x`:
    None where that is the number itself.

    That number is x, or -1 - x where x is negative, which has the quotient -1 - q and the remainder
    y - 1 - r. Its product with the inverse is too small by less than one quotient, so the quotient
    is the upper half, or one more (Granlund and Montgomery, "Division by invariant integers using
    multiplication", PLDI 1994).
    """
    sign = b.ashr(x, llvm.Constant(x.type, ty.bitwidth - 1)) if ty.signed else None
    size = x if sign is None else b.xor(x, sign)
    quotient = _upper(b, size, inverse)
    return quotient, b.sub(size, b.mul(quotient, y)), sign


def _inverse(y: Any) -> Any:
    """The inverse of an integer that is known now."""
    return llvm.Constant(y.type, (2**y.type.width - 1) // y.constant)


def _inverted_floordiv(b: IRBuilder, ty: types.Type, x: Any, y: Any, inverse: Any) -> Any:
    quotient, rest, sign = _by_inverse(b, ty, x, y, inverse)
    quotient = b.add(quotient, b.zext(b.icmp_unsigned(">=", rest, y), x.type))
    return quotient if sign is None else b.xor(quotient, sign)


def _inverted_mod(b: IRBuilder, ty: types.Type, x: Any, y: Any, inverse: Any) -> Any:
    _, rest, sign = _by_inverse(b, ty, x, y, inverse)
    small = b.select(b.icmp_unsigned(">=", rest, y), b.sub(rest, y), rest)
    return small if sign is None else b.add(b.xor(small, sign), b.and_(y, sign))


def emit_inverted_floordiv(b: IRBuilder, ty: types.Type, x: Any, y: Any, *known: Any) -> Any:
    """As `emit_floordiv`, by an inverse, where `y` has one."""
    inverse, has = known
    return _where_known(
        b, has, lambda: _inverted_floordiv(b, ty, x, y, inverse), lambda: emit_floordiv(b, ty, x, y)
    )


def emit_inverted_mod(b: IRBuilder, ty: types.Type, x: Any, y: Any, *known: Any) -> Any:
    """As `emit_mod`, by an inverse, where `y` has one."""
    inverse, has = known
    return _where_known(
        b, has, lambda: _inverted_mod(b, ty, x, y, inverse), lambda: emit_mod(b, ty, x, y)
    )


def _where_known(
    b: IRBuilder, known: Any, quick: Callable[[], Any], slow: Callable[[], Any]
) -> Any:
    """What is made quickly where a condition holds that is the same in all rounds."""
    yes, no, after = (b.append_basic_block(name) for name in ("quick", "slow", "divided"))
    b.cbranch(known, yes, no)
    arms = []
    for block, make in ((yes, quick), (no, slow)):
        b.position_at_end(block)
        value = make()
        arms.append((value, b.block))
        b.branch(after)
    b.position_at_end(after)
    joined = b.phi(arms[0][0].type)
    for value, block in arms:
        joined.add_incoming(value, block)
    return joined


def emit_shift_left(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    """``x << y``; 0 where ``y`` is negative or not below the width, as NumPy."""
    inside = b.icmp_unsigned("<", y, llvm.Constant(y.type, ty.bitwidth))
    amount = b.select(inside, y, llvm.Constant(y.type, 0))
    return b.select(inside, b.shl(x, amount), llvm.Constant(x.type, 0))


def emit_shift_right(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    """``x >> y``; only the sign is left where ``y`` is negative or not below the width."""
    inside = b.icmp_unsigned("<", y, llvm.Constant(y.type, ty.bitwidth))
    last = llvm.Constant(y.type, ty.bitwidth - 1)
    if ty.signed:
        return b.ashr(x, b.select(inside, y, last))
    shifted = b.lshr(x, b.select(inside, y, last))
    return b.select(inside, shifted, llvm.Constant(x.type, 0))


def _comparison(sign: str) -> Emit:
    def emit(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
        if ty in COMPLEX:
            return _complex_comparison(b, sign, x, y)
        if _is_float(ty):
            return b.fcmp_unordered(sign, x, y) if sign == "!=" else b.fcmp_ordered(sign, x, y)
        if ty in SIGNED:
            return b.icmp_signed(sign, x, y)
        return b.icmp_unsigned(sign, x, y)

    return emit


def _complex_comparison(b: IRBuilder, sign: str, x: Any, y: Any) -> Any:
    (a, c), (d, e) = parts(b, x), parts(b, y)
    if sign == "!=":
        return b.or_(b.fcmp_unordered("!=", a, d), b.fcmp_unordered("!=", c, e))
    same = b.fcmp_ordered("==", a, d)
    if sign == "==":
        return b.and_(same, b.fcmp_ordered("==", c, e))
    # NumPy orders complex numbers by the real part, then by the imaginary part.
    strict = b.fcmp_ordered(sign[0], a, d)
    return b.or_(strict, b.and_(same, b.fcmp_ordered(sign, c, e)))


def emit_truth(b: IRBuilder, ty: types.Type, x: Any) -> Any:
    """Whether ``x`` is not zero."""
    if ty == BOOL:
        return x
    zero = llvm.Constant(x.type, None)
    return _comparison("!=")(b, ty, x, zero)


_BITS = (BOOL, *INTEGERS)

truth = Intrinsic("truth", alike(1, EVERYTHING, BOOL), emit_truth)

BINARY: dict[type[ast.operator], Intrinsic] = {
    ast.Add: Intrinsic("add", alike(2, NUMBERS), emit_add),
    ast.Sub: Intrinsic("subtract", alike(2, NUMBERS), emit_sub),
    ast.Mult: Intrinsic("multiply", alike(2, NUMBERS), emit_mul),
    ast.Div: Intrinsic("divide", alike(2, FLOATS + COMPLEX), emit_div),
    ast.FloorDiv: Intrinsic(
        "int_floor_divide", alike(2, INTEGERS), emit_floordiv, predicted=emit_predicted_floordiv,
        called=_called("floor_quotient", emit_predicted_floordiv),
    ),
    ast.Mod: Intrinsic(
        "int_remainder", alike(2, INTEGERS), emit_mod, predicted=emit_predicted_mod,
        called=_called("floor_remainder", emit_predicted_mod),
    ),
    ast.BitAnd: Intrinsic("bitwise_and", alike(2, _BITS), lambda b, ty, x, y: b.and_(x, y)),
    ast.BitOr: Intrinsic("bitwise_or", alike(2, _BITS), lambda b, ty, x, y: b.or_(x, y)),
    ast.BitXor: Intrinsic("bitwise_xor", alike(2, _BITS), lambda b, ty, x, y: b.xor(x, y)),
    ast.LShift: Intrinsic("left_shift", alike(2, INTEGERS), emit_shift_left),
    ast.RShift: Intrinsic("right_shift", alike(2, INTEGERS), emit_shift_right),
}
UNARY: dict[type[ast.unaryop], Intrinsic] = {
    ast.USub: Intrinsic("negative", alike(1, NUMBERS), emit_neg),
    ast.Invert: Intrinsic("invert", alike(1, _BITS), lambda b, ty, x: b.not_(x)),
    ast.Not: Intrinsic(
        "logical_not", alike(1, EVERYTHING, BOOL), lambda b, ty, x: b.not_(emit_truth(b, ty, x))
    ),
}
COMPARED: dict[type[ast.cmpop], Intrinsic] = {
    op: Intrinsic(name, alike(2, EVERYTHING, BOOL), _comparison(sign))
    for op, name, sign in (
        (ast.Eq, "equal", "=="), (ast.NotEq, "not_equal", "!="),
        (ast.Lt, "less", "<"), (ast.LtE, "less_equal", "<="),
        (ast.Gt, "greater", ">"), (ast.GtE, "greater_equal", ">="),
    )
}  # fmt: skip
