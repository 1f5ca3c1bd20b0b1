"""The scalar primitives: what a kernel can compute, and how each target spells it.

The one place with target text.  A name is NumPy's ufunc name where NumPy has one, and means what
that ufunc means on operands of one dtype; a few more names serve reductions and checked integers.
``SCALARS`` maps names to records.  A spelling is a template for ``str.format``: ``{0}``, ``{1}``
and ``{2}`` stand for operands, which must be atoms or parenthesised.

``kernel`` text is in the kernel language of ``devices.compiler.kernel_language``; the functions it
calls are importable from ``devices.compiler.vocabulary``.  ``cuda`` text is CUDA C++; dtypes have
their short names there, and functions that CUDA does not have are in ``ops.cuda_prelude``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pyrelay.ir import types as t
from pyrelay.ir.types import DType
from pyrelay.records import dataclass

# What `result` may be.
SAME = "same"  # the operands' dtype
BOOL = "bool"
WORD = "word"  # i64
FLOAT = "float"  # f64
REAL = "real"  # the part's dtype for complex operands, else the operands' dtype
COMPLEX = "complex"  # the complex dtype whose parts the operands are
TARGET = "target"  # which dtype, who uses the primitive says

NEAR_ANGLE = 2.0**19
"""The largest angle, in radians, that `near_sin`, `near_cos` and `near_tan` take."""

Spelling = Callable[[DType], str]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One primitive.

    name    the key in `SCALARS`.
    arity   number of operands.
    kinds   NumPy's kind letters of the operand dtypes it takes, out of "biufc".
    result  SAME, BOOL, WORD, FLOAT, REAL, COMPLEX or TARGET.
    kernel, cuda  the template for operands of a dtype. Where that of the result is the TARGET they
            are asked with it, and those of `where` and `where_unpredictable` with that of their
            last two operands (the first is a bool).
    """

    name: str
    arity: int
    kinds: str
    result: str
    kernel: Spelling
    cuda: Spelling

    def takes(self, dtype: DType) -> bool:
        """Whether operands may be of `dtype`."""
        if dtype in (t.f16, t.bf16):  # has no arithmetic in kernels (`opt.halves`)
            return self.name in ("cast", "where")
        return dtype.kind in self.kinds

    def result_dtype(self, dtype: DType) -> DType:
        """The result's dtype for operands of `dtype`, where that tells it."""
        if self.result == BOOL:
            return t.bool_
        if self.result == WORD:
            return t.i64
        if self.result == FLOAT:
            return t.f64
        if self.result == REAL and dtype.kind == "c":
            return t.f32 if dtype.size == 8 else t.f64
        if self.result == COMPLEX:
            return t.c64 if dtype.size == 4 else t.c128
        return dtype


LONE: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        **{name: (name, 1) for name in (
            "exp", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "erf",
        )},
        "power": ("pow", 2), "arcsinh": ("asinh", 1), "arccosh": ("acosh", 1),
        "arctanh": ("atanh", 1),
    }
)  # fmt: skip
"""Functions that are the C library's where each waits for the one before: its names of them, and
of how many numbers they are."""


# -- spellings -----------------------------------------------------------------------------------


def _always(text: str) -> Spelling:
    return lambda dtype: text


def _operands(arity: int) -> str:
    return ", ".join(f"{{{place}}}" for place in range(arity))


def _call(name: str, arity: int) -> Spelling:
    return _always(f"{name}({_operands(arity)})")


def _math(name: str, arity: int = 1) -> Spelling:
    """A function of C's math library: `f` at its end for single precision."""
    operands = _operands(arity)
    return lambda dtype: f"{name}{'f' if dtype.size == 4 else ''}({operands})"


def _prelude(name: str, arity: int) -> Spelling:
    return _call(f"pyrelay_{name}", arity)


def _wrapping(template: str) -> Spelling:
    """C arithmetic that wraps around: signed overflow is undefined in C and narrow integers are
    promoted, so integers are computed as unsigned ones and brought back, as bools are from ints."""

    def spell(dtype: DType) -> str:
        if dtype.kind == "b":
            return f"bool({template})"
        if dtype.kind not in "iu":
            return f"({template})"
        wide = "u64" if dtype.size == 8 else "u32"
        text = template
        for place in ("{0}", "{1}"):
            text = text.replace(place, f"{wide}({place})")
        return f"{dtype.name}({text})"

    return spell


def _kinds(default: Spelling, **special: Spelling) -> Spelling:
    """`default`, except for dtypes of the kind letters given."""
    return lambda dtype: special.get(dtype.kind, default)(dtype)


def _cast_name(dtype: DType) -> str:
    return "boolean" if dtype.kind == "b" else dtype.name


# -- the table -----------------------------------------------------------------------------------


def _plain(name: str, arity: int, kinds: str, cuda: Spelling, result: str = SAME) -> Scalar:
    """A primitive that kernels call by its own name."""
    return Scalar(name, arity, kinds, result, _call(name, arity), cuda)


def _infix(
    name: str, sign: str, kinds: str, result: str = SAME, on_bool: str | None = None
) -> Scalar:
    """A primitive that both targets spell as an operator."""
    python, c = _always(f"{{0}} {sign} {{1}}"), _wrapping(f"{{0}} {sign} {{1}}")
    if result == BOOL:
        c = _always(f"({{0}} {sign} {{1}})")
    if on_bool is not None:
        python = _kinds(python, b=_always(f"{{0}} {on_bool} {{1}}"))
        c = _kinds(c, b=_always(f"bool({{0}} {on_bool} {{1}})"))
    return Scalar(name, 2, kinds, result, python, c)


_ARITHMETIC = (
    # On booleans + is "or" and * is "and", as in NumPy.
    _infix("add", "+", "biufc", on_bool="|"),
    _infix("subtract", "-", "iufc"),
    _infix("multiply", "*", "biufc", on_bool="&"),
    _infix("divide", "/", "fc"),
    # The same where divisors come again (`lower/passes/known_divisors`); only on GPUs.
    Scalar(
        "quotient", 2, "f", SAME, _always("{0} / {1}"),
        lambda dtype: "pyrelay_quotient({0}, {1})" if dtype.size == 4 else "({0} / {1})",
    ),
    # The f64 next to the quotient of two i64, as Python divides ints.
    _plain("true_quotient", 2, "i", _prelude("true_quotient", 2), FLOAT),
    _plain("floor_divide", 2, "iuf", _prelude("floor_divide", 2)),
    _plain("remainder", 2, "iuf", _prelude("remainder", 2)),
    _plain("power", 2, "iufc", _kinds(_prelude("power", 2), f=_math("pow", 2))),
    Scalar("negative", 1, "iufc", SAME, _always("-{0}"), _wrapping("-{0}")),
    Scalar("positive", 1, "iufc", SAME, _always("{0}"), _always("{0}")),
    _plain(
        "absolute", 1, "biufc",
        _kinds(
            _always("{0}"), i=_prelude("absolute", 1), f=_math("fabs"), c=_prelude("absolute", 1)
        ),
        REAL,
    ),
    _plain("sign", 1, "iuf", _prelude("sign", 1)),
    _plain("square", 1, "iufc", _prelude("square", 1)),
    _plain(
        "reciprocal", 1, "fc",
        lambda dtype: f"({dtype.name}(1) / {{0}})",
    ),
    # Sums and products whose order LLVM may change, so that reductions become vector code.
    Scalar(
        "add_reassociated", 2, "iufc", SAME, _call("add_reassociated", 2), _wrapping("{0} + {1}")
    ),
    Scalar(
        "multiply_reassociated", 2, "iufc", SAME, _call("multiply_reassociated", 2),
        _wrapping("{0} * {1}"),
    ),
    Scalar("fma", 3, "f", SAME, _call("fma", 3), _math("fma", 3)),
)  # fmt: skip

# Names that are their own spelling in C's math library, f for single precision added.
_MATH = (
    *(
        _plain(name, 1, "fc", _kinds(_math(name), c=_prelude(name, 1)))
        for name in ("sqrt", "exp", "log", "sin", "cos")
    ),
    # Of angles that are at most `NEAR_ANGLE`: without branches, for f64 too.
    *(_plain(f"near_{name}", 1, "f", _math(name)) for name in ("sin", "cos", "tan")),
    # The C library's, for one number at a time.
    *(
        _plain(f"lone_{name}", arity, "f", _math(own, arity))
        for name, (own, arity) in LONE.items()
    ),
    *(
        _plain(name, 1, "f", _math(name))
        for name in (
            "cbrt", "exp2", "expm1", "log2", "log10", "log1p", "tan", "sinh", "cosh", "tanh",
            "erf", "erfc", "lgamma", "floor", "ceil", "trunc", "rint",
        )
    ),
    *(
        _plain(f"arc{name[1:]}", 1, "f", _math(name))
        for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
    ),
    _plain("arctan2", 2, "f", _math("atan2", 2)),
    _plain("hypot", 2, "f", _math("hypot", 2)),
    _plain("gamma", 1, "f", _math("tgamma")),
    _plain("nextafter", 2, "f", _math("nextafter", 2)),
    _plain("copysign", 2, "f", _math("copysign", 2)),
    _plain("sigmoid", 1, "f", _prelude("sigmoid", 1)),
    _plain("logaddexp", 2, "f", _prelude("logaddexp", 2)),
)  # fmt: skip

_ORDER = (
    _plain("minimum", 2, "biuf", _prelude("minimum", 2)),
    _plain("maximum", 2, "biuf", _prelude("maximum", 2)),
    _plain("fmin", 2, "biuf", _kinds(_prelude("minimum", 2), f=_math("fmin", 2))),
    _plain("fmax", 2, "biuf", _kinds(_prelude("maximum", 2), f=_math("fmax", 2))),
    _infix("equal", "==", "biufc", BOOL),
    _infix("not_equal", "!=", "biufc", BOOL),
    _infix("less", "<", "biufc", BOOL),
    _infix("less_equal", "<=", "biufc", BOOL),
    _infix("greater", ">", "biufc", BOOL),
    _infix("greater_equal", ">=", "biufc", BOOL),
    # Whether an index lies outside 0..n-1, the extent n being no less than 0.
    _plain("outside", 2, "i", _always("((u64){0} >= (u64){1})"), BOOL),
    Scalar(
        "where", 3, "biufc", SAME, _call("where", 3), _always("({0} ? {1} : {2})")
    ),
    # One of two words by what nothing foresees: no compiler is to make a branch of it.
    Scalar(
        "where_unpredictable", 3, "i", SAME, _call("where_unpredictable", 3),
        _always("({0} ? {1} : {2})"),
    ),
)  # fmt: skip

_BITS = (
    _plain("logical_and", 2, "biufc", _always("(!!{0} && !!{1})"), BOOL),
    _plain("logical_or", 2, "biufc", _always("(!!{0} || !!{1})"), BOOL),
    _plain("logical_xor", 2, "biufc", _always("(!{0} != !{1})"), BOOL),
    Scalar("logical_not", 1, "biufc", BOOL, _always("not {0}"), _always("(!{0})")),
    _infix("bitwise_and", "&", "biu"),
    _infix("bitwise_or", "|", "biu"),
    _infix("bitwise_xor", "^", "biu"),
    Scalar(
        "invert", 1, "biu", SAME, _always("~{0}"), _kinds(_wrapping("~{0}"), b=_always("(!{0})"))
    ),
    Scalar("left_shift", 2, "iu", SAME, _always("{0} << {1}"), _prelude("left_shift", 2)),
    Scalar("right_shift", 2, "iu", SAME, _always("{0} >> {1}"), _prelude("right_shift", 2)),
)

def _test(name: str, on_integers: str) -> Scalar:
    """A question about floats, whose answer for integers is known."""
    cuda = _kinds(_always(on_integers), f=_always(f"{name}({{0}})"), c=_prelude(name, 1))
    return _plain(name, 1, "biufc", cuda, BOOL)


_TESTS = (
    _test("isnan", "false"),
    _test("isinf", "false"),
    _test("isfinite", "true"),
    *(
        Scalar(
            f"{name}_overflows", 2, "i", BOOL, _call(f"{name}_overflows", 2),
            _prelude(f"{name}_overflows", 2),
        )
        for name in ("add", "subtract", "multiply")
    ),
    # (a + b) % n and the like, of which the sum needs more than 64 bits; 0 where n is 0.
    *(
        _plain(f"{name}_remainder", 3, "i", _prelude(f"{name}_remainder", 3))
        for name in ("add", "subtract", "multiply", "power")
    ),
)  # fmt: skip

_CONVERSIONS = (
    Scalar(
        "cast", 1, "biufc", TARGET,
        lambda dtype: f"{_cast_name(dtype)}({{0}})",
        lambda dtype: f"pyrelay_to<{dtype.name}>::of({{0}})",
    ),
    # The number of another dtype, of as many bytes, that the same bits are.
    Scalar(
        "bitcast", 1, "iuf", TARGET,
        lambda dtype: f"bits_{dtype.name}({{0}})",
        lambda dtype: f"pyrelay_same_bits<{dtype.name}>({{0}})",
    ),
    # Towards zero, or the least i64 where no i64 holds that: x86's conversion.
    _plain(
        "truncated", 1, "f",
        _always("({0} >= -0x1p63 && {0} < 0x1p63 ? i64({0}) : i64(u64(1) << 63))"), WORD,
    ),
    # Towards zero, of a float that is known to fit; of another one, any number.
    _plain("whole", 1, "f", _always("i64({0})"), WORD),
    _plain("real", 1, "biufc", _kinds(_always("{0}"), c=_always("({0}).re")), REAL),
    _plain(
        "imag", 1, "biufc",
        _kinds(lambda dtype: f"{dtype.name}(0)", c=_always("({0}).im")), REAL,
    ),
    _plain("conj", 1, "biufc", _kinds(_always("{0}"), c=_prelude("conj", 1))),
    Scalar(
        "make_complex", 2, "f", COMPLEX,
        lambda dtype: f"{'c64' if dtype.size == 4 else 'c128'}({{0}}, {{1}})",
        _prelude("make", 2),
    ),
)  # fmt: skip

SCALARS: Mapping[str, Scalar] = MappingProxyType(
    {each.name: each for each in _ARITHMETIC + _MATH + _ORDER + _BITS + _TESTS + _CONVERSIONS}
)
