"""The executor's arithmetic on words: plain, and checked as Python's own numbers are.

In: words that hold int64, float64 or float32 bits. Out: the resulting word, and for checked
operations whether Python would raise (ZeroDivisionError, OverflowError, ...).

Float floor division and remainder follow Python's rules: the remainder has the divisor's sign,
is exact (fmod), and the quotient is consistent with it.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import DOUBLE, FLAG, FLOAT, INT32, Flag, Function, Word
from pyrelay.devices.compiler.llvm_writer import WORD as WORD_TYPE

LOWEST = -(1 << 63)
HIGHEST = (1 << 63) - 1


# ----------------------------------------------------------------------------- conversions


def from_double(f: Function, value: ir.Value) -> Word:
    """A float64 as a word."""
    return Word(f, f.b.bitcast(value, WORD_TYPE))


def from_float(f: Function, value: ir.Value) -> Word:
    """A float32 as a word, high half zero."""
    return Word(f, f.b.zext(f.b.bitcast(value, INT32), WORD_TYPE))


def intrinsic(f: Function, name: str, *arguments: ir.Value) -> ir.Value:
    """Call an LLVM intrinsic on arguments of one type."""
    kind = arguments[0].type
    native = f.module.declare_intrinsic(f"llvm.{name}", [kind], ir.FunctionType(
        kind, [argument.type for argument in arguments]))  # fmt: skip
    return f.b.call(native, arguments)


def truncated(f: Function, number: ir.Value) -> Word:
    """A float64 as int64, towards zero; saturates, NaN gives 0."""
    name = "llvm.fptosi.sat.i64.f64"
    return Word(f, f.b.call(f.symbol(name, [DOUBLE], WORD_TYPE), [number]))


# ------------------------------------------------------------------------------- integers


def _divided(a: Word, b: Word) -> tuple[Word, Word]:
    """Quotient and remainder of int64 rounded down; (0, 0) for b = 0, wraps for LOWEST / -1."""
    f = a.f
    zero, minus = b.equals(0), b.equals(-1)
    safe = (zero | minus).choose(1, b)
    quotient = Word(f, f.b.sdiv(a.raw, safe.raw))
    remainder = Word(f, f.b.srem(a.raw, safe.raw))
    down = remainder.differs(0) & ((remainder ^ b) < 0)
    quotient = down.choose(quotient - 1, quotient)
    remainder = down.choose(remainder + b, remainder)
    quotient = minus.choose(f.number(0) - a, quotient)
    return zero.choose(0, quotient), zero.choose(0, remainder)


def _shifted(a: Word, b: Word, operation: str) -> Word:
    """A shift; counts outside 0..63 give what an unbounded shift would."""
    f = a.f
    outside = f.b.icmp_unsigned(">", b.raw, WORD_TYPE(63))
    count = f.b.select(outside, WORD_TYPE(63), b.raw)
    if operation == "shr":
        return Word(f, f.b.ashr(a.raw, count))
    return Flag(f, outside).choose(0, Word(f, f.b.shl(a.raw, count)))


def _wrapped(bits: int, signed: bool) -> Callable[[Word], Word]:
    def wrap(a: Word) -> Word:
        cut = a.f.b.trunc(a.raw, ir.IntType(bits))
        return Word(a.f, (a.f.b.sext if signed else a.f.b.zext)(cut, WORD_TYPE))

    return wrap


def _unsigned(sign: str) -> Callable[[Word, Word], Word]:
    return lambda a, b: Flag(a.f, a.f.b.icmp_unsigned(sign, a.raw, b.raw)).word()


def _absolute(a: Word) -> Word:
    return (a < 0).choose(a.f.number(0) - a, a)


# --------------------------------------------------------------------------------- floats

_SIGNS = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}


def _compare_floats(sign: str, single: bool) -> Callable[[Word, Word], Word]:
    def compare(a: Word, b: Word) -> Word:
        build = a.f.b.fcmp_unordered if sign == "!=" else a.f.b.fcmp_ordered
        x, y = (a.float(), b.float()) if single else (a.double(), b.double())
        return Flag(a.f, build(sign, x, y)).word()

    return compare


def _float_arithmetic(operation: str, single: bool) -> Callable[[Word, Word], Word]:
    def compute(a: Word, b: Word) -> Word:
        build = getattr(a.f.b, operation)
        if single:
            return from_float(a.f, build(a.float(), b.float()))
        return from_double(a.f, build(a.double(), b.double()))

    return compute


def _float_intrinsic(name: str, single: bool) -> Callable[[Word], Word]:
    def compute(a: Word) -> Word:
        if single:
            return from_float(a.f, intrinsic(a.f, name, a.float()))
        return from_double(a.f, intrinsic(a.f, name, a.double()))

    return compute


def _python_divmod(a: Word, b: Word) -> tuple[Word, Word]:
    """`a // b` and `a % b` of float64, b not 0: as CPython computes them."""
    f, x, y = a.f, a.double(), b.double()
    zero = DOUBLE(0.0)
    fmod = f.symbol("fmod", [DOUBLE, DOUBLE], DOUBLE)
    rest = f.b.call(fmod, [x, y])
    ratio = f.b.fdiv(f.b.fsub(x, rest), y)
    nonzero = f.b.fcmp_unordered("!=", rest, zero)
    differs = f.b.xor(f.b.fcmp_ordered("<", y, zero), f.b.fcmp_ordered("<", rest, zero))
    down = f.b.and_(nonzero, differs)
    ratio = f.b.select(down, f.b.fsub(ratio, DOUBLE(1.0)), ratio)
    remainder = f.b.select(down, f.b.fadd(rest, y), rest)
    remainder = f.b.select(nonzero, remainder, intrinsic(f, "copysign", zero, y))
    floor = intrinsic(f, "floor", ratio)
    up = f.b.fcmp_ordered(">", f.b.fsub(ratio, floor), DOUBLE(0.5))
    quotient = f.b.select(up, f.b.fadd(floor, DOUBLE(1.0)), floor)
    nothing = intrinsic(f, "copysign", zero, f.b.fdiv(x, y))
    is_zero = f.b.fcmp_ordered("==", ratio, zero)
    quotient = f.b.select(is_zero, nothing, quotient)
    return from_double(f, quotient), from_double(f, remainder)


def _is_nan(a: Word) -> Word:
    return Flag(a.f, a.f.b.fcmp_unordered("uno", a.double(), a.double())).word()


def _to_float(a: Word) -> Word:
    return from_float(a.f, a.f.b.sitofp(a.raw, FLOAT))


UNARY_OPERATIONS: dict[str, Callable[[Word], Word]] = {
    "move": lambda a: a,
    "not": lambda a: a.equals(0).word(),
    "neg.i64": lambda a: a.f.number(0) - a,
    "abs.i64": _absolute,
    "invert.i64": lambda a: a ^ -1,
    "neg.f64": lambda a: a ^ LOWEST,
    "abs.f64": lambda a: a & HIGHEST,
    "sqrt.f64": _float_intrinsic("sqrt", False),
    "isnan.f64": _is_nan,
    "neg.f32": lambda a: a ^ (1 << 31),
    "abs.f32": lambda a: a & ((1 << 31) - 1),
    "sqrt.f32": _float_intrinsic("sqrt", True),
    "i64_to_f64": lambda a: from_double(a.f, a.f.b.sitofp(a.raw, DOUBLE)),
    "u64_to_f64": lambda a: from_double(a.f, a.f.b.uitofp(a.raw, DOUBLE)),
    "f64_to_i64": lambda a: truncated(a.f, a.double()),
    "i64_to_f32": _to_float,
    "f64_to_f32": lambda a: from_float(a.f, a.f.b.fptrunc(a.double(), FLOAT)),
    "f32_to_f64": lambda a: from_double(a.f, a.f.b.fpext(a.float(), DOUBLE)),
    "f64_to_bool": lambda a: (a & HIGHEST).differs(0).word(),
    "i64_to_bool": lambda a: a.differs(0).word(),
    **{f"wrap.i{bits}": _wrapped(bits, True) for bits in (8, 16, 32)},
    **{f"wrap.u{bits}": _wrapped(bits, False) for bits in (8, 16, 32)},
}

BINARY_OPERATIONS: dict[str, Callable[[Word, Word], Word]] = {
    "add.i64": lambda a, b: a + b,
    "sub.i64": lambda a, b: a - b,
    "mul.i64": lambda a, b: a * b,
    "floordiv.i64": lambda a, b: _divided(a, b)[0],
    "mod.i64": lambda a, b: _divided(a, b)[1],
    "min.i64": lambda a, b: (a < b).choose(a, b),
    "max.i64": lambda a, b: (a > b).choose(a, b),
    "and.i64": lambda a, b: a & b,
    "or.i64": lambda a, b: a | b,
    "xor.i64": lambda a, b: a ^ b,
    "shl.i64": lambda a, b: _shifted(a, b, "shl"),
    "shr.i64": lambda a, b: _shifted(a, b, "shr"),
    "lt.i64": lambda a, b: (a < b).word(),
    "le.i64": lambda a, b: (a <= b).word(),
    "eq.i64": lambda a, b: a.equals(b).word(),
    "ne.i64": lambda a, b: a.differs(b).word(),
    "gt.i64": lambda a, b: (a > b).word(),
    "ge.i64": lambda a, b: (a >= b).word(),
    "lt.u64": _unsigned("<"),
    "le.u64": _unsigned("<="),
    **{
        f"{name}.{kind}": _float_arithmetic("f" + name, kind == "f32")
        for name in ("add", "sub", "mul", "div")
        for kind in ("f64", "f32")
    },
    **{
        f"{name}.{kind}": _compare_floats(sign, kind == "f32")
        for name, sign in _SIGNS.items()
        for kind in ("f64", "f32")
    },
}


# -------------------------------------------------------------------------------- checked


class Checks:
    """Operations that may fail; `write` gives the result and whether they did."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.power = self._power()

    def write(self, name: str, a: Word, b: Word) -> tuple[Word, Flag]:
        """The instructions of one operation from `opcodes.CHECKED`."""
        f = a.f
        if name in ("add.i64", "sub.i64", "mul.i64"):
            return self._overflowing("s" + name[:3], a, b)
        if name == "index":
            place = (a < 0).choose(a + b, a)
            return place, (place < 0) | (place >= b)
        if name in ("shl.i64", "shr.i64"):
            return self._checked_shift(name[:3], a, b)
        if name in ("floordiv.i64", "mod.i64"):
            quotient, remainder = _divided(a, b)
            fails = b.equals(0)
            if name == "mod.i64":
                return remainder, fails
            return quotient, fails | (a.equals(LOWEST) & b.equals(-1))
        if name == "pow.i64":
            failed = f.address(f.local_words(1))
            result = f.call(self.power, a, b, failed)
            return result, f.load(failed).differs(0)
        if name == "f64_to_i64":
            number = a.double()
            inside = f.b.and_(
                f.b.fcmp_ordered(">=", number, DOUBLE(-(2.0**63))),
                f.b.fcmp_ordered("<", number, DOUBLE(2.0**63)),
            )
            return truncated(f, number), ~Flag(f, inside)
        zero = (b & HIGHEST).equals(0)
        if name == "div.f64":
            return BINARY_OPERATIONS["div.f64"](a, b), zero
        quotient, remainder = _python_divmod(a, b)
        return (quotient if name == "floordiv.f64" else remainder), zero

    def _overflowing(self, name: str, a: Word, b: Word) -> tuple[Word, Flag]:
        f = a.f
        pair = ir.LiteralStructType([WORD_TYPE, FLAG])
        native = f.symbol(f"llvm.{name}.with.overflow.i64", [WORD_TYPE, WORD_TYPE], pair)
        both = f.b.call(native, [a.raw, b.raw])
        return Word(f, f.b.extract_value(both, 0)), Flag(f, f.b.extract_value(both, 1))

    def _checked_shift(self, name: str, a: Word, b: Word) -> tuple[Word, Flag]:
        result = _shifted(a, b, name)
        if name == "shr":
            return result, b < 0
        back = _shifted(result, b, "shr")
        return result, (b < 0) | back.differs(a)

    def _power(self) -> Function:
        """(base, exponent, address of a flag): the power by squaring; the flag is set where the
        exact result does not fit or the exponent is negative."""
        f = Function(self.module, "pyrelay_power", 3)
        base, exponent, failed = f.parameters
        f.store(failed, 0, (exponent < 0).word())
        result, square, left = f.variable(1), f.variable(base), f.variable(exponent)
        too_large = f.variable(0)
        with f.while_(lambda: left.now > 0):
            with f.when((left.now & 1).differs(0)):
                product, overflow = self._overflowing("smul", result.now, square.now)
                result.set(product)
                with f.when(overflow | too_large.now.differs(0)):
                    f.store(failed, 0, 1)
                    f.ret(0)
            squared, overflow = self._overflowing("smul", square.now, square.now)
            square.set(squared)
            too_large.set(too_large.now | overflow.word())
            left.set(left.now >> 1)
        f.ret(result.now)
        return f
