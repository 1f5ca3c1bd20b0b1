"""Arithmetic, rounding, extremes, casts, complex parts.

In: operands of one element type. Out: one number per element. At ties and kinks derivatives are:
abs at 0: 0; maximum, minimum of equal operands: one half to each; clip at its edge: 1 (the interval
is closed); rounding, sign: 0.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir import types
from pyrelay.ir.build import Handle
from pyrelay.ir.op import OPS, Op, Promotion, RelationError, Sample, not_differentiable
from pyrelay.ir.types import DType, TensorType, Type
from pyrelay.ops import python_numbers as py
from pyrelay.ops.elementwise import DISCRETE, STEPS, elementwise, times
from pyrelay.ops.logic import equal, isnan, less, less_equal, logical_and, logical_or, where
from pyrelay.ops.relations import elementwise as same_dtype
from pyrelay.ops.relations import real_part, tensors, unchanged
from pyrelay.ops.samples import binary, floats, integers, spread, unary

_NO_ORDER = "use the real parts or the absolute values of complex numbers."
_COMPLEX = (
    Sample((spread((4,)) + 1j * spread((4,), seed=9), spread((4,), seed=5) - 1j * spread((4,)))),
    Sample((1.5 - 2j, 2j)),
)
_COMPLEX_ONE = (Sample((spread((4,)) + 1j * spread((4,), seed=9),)), Sample((1.5 - 2j,)))
_INTEGERS = (integers((5,), (2, 1)), integers((6,), (6,), low=0, high=250, dtype="u1"),
             Sample((7, -2)), Sample((-9, 4)), integers((8,), (), low=-3, high=3))
_ONE_INTEGER = (integers((5,)), integers((5,), dtype="u1", low=0, high=250), Sample((-3,)))

# -- arithmetic ---------------------------------------------------------------------------------

add = elementwise(
    "add", np.add, (1, 1), promotion=Promotion.ARITHMETIC,
    python=operator.add, guard=py.no_overflow("add"),
    samples=(*binary(), *_INTEGERS, *_COMPLEX), doc="x + y",
)
subtract = elementwise(
    "subtract", np.subtract, (1, -1), promotion=Promotion.ARITHMETIC,
    python=operator.sub, guard=py.no_overflow("subtract"),
    relation=same_dtype("iufc", hint="for conditions write logical_xor."),
    samples=(*binary(), *_INTEGERS, *_COMPLEX), doc="x - y",
)
multiply = elementwise(
    "multiply", np.multiply, (lambda y, a, b: b, lambda y, a, b: a),
    promotion=Promotion.ARITHMETIC, python=operator.mul, guard=py.no_overflow("multiply"),
    samples=(*binary(), *_INTEGERS, *_COMPLEX), doc="x * y",
)


def _scaled(g: Any, slope: Any) -> Any:
    return np.where(np.equal(g, 0), np.zeros((), np.asarray(g).dtype), np.multiply(g, slope))[()]


scale = elementwise(
    "scale", _scaled, (lambda y, g, d: d, lambda y, g, d: g),
    element=lambda s, i, g, d: s.scaled(g(i), d(i)),
    kinds="fc", samples=(*binary(), *_COMPLEX),
    doc="g * d, but 0 where g is 0 even if d is infinite or NaN: how derivatives multiply",
)
divide = elementwise(
    "divide", np.divide,
    (lambda y, a, b: reciprocal(b), lambda y, a, b: -y * reciprocal(b)),
    promotion=Promotion.DIVIDE, python=operator.truediv,
    guard=py.nonzero_divisor(py.DIVIDED_INT_BY_ZERO, py.DIVIDED_FLOAT_BY_ZERO),
    relation=same_dtype("ifc", lambda dtype: dtype if dtype.is_float else types.f64),
    element=lambda s, i, a, b: _quotient(s, i, a, b),
    samples=(*binary(), *_INTEGERS, *_COMPLEX), doc="x / y",
)


def _quotient(s: Any, i: Any, a: Any, b: Any) -> Any:
    """Division; two Python ints give the float next to their quotient."""
    values = a(i), b(i)
    if s.weak:
        guard = py.nonzero_divisor(py.DIVIDED_INT_BY_ZERO, py.DIVIDED_FLOAT_BY_ZERO)
        guard(s, (a, b), values, None)
        if a.dtype is b.dtype is types.i64:
            return s.true_quotient(*values)
    if not a.dtype.is_float:
        values = tuple(s.cast(v, s.result[0].dtype) for v in values)
    return s.divide(*values)


floor_divide = elementwise(
    "floor_divide", np.floor_divide, STEPS, kinds="iuf", promotion=Promotion.NUMBER,
    python=operator.floordiv,
    guard=py.nonzero_divisor(
        py.FLOORED_INT_BY_ZERO, py.FLOORED_FLOAT_BY_ZERO, is_floored=True
    ),
    samples=(*binary(), *_INTEGERS), doc="floor(x / y); integers by 0 give 0, as in NumPy",
)
remainder = elementwise(
    "remainder", np.remainder, (1, lambda y, a, b: -floor_divide(a, b)),
    kinds="iuf", promotion=Promotion.NUMBER, python=operator.mod,
    guard=py.nonzero_divisor(py.REMAINDER_INT_BY_ZERO, py.REMAINDER_FLOAT_BY_ZERO),
    samples=(*binary(), *_INTEGERS), doc="x - floor(x / y) * y, with the sign of y",
)
negative = elementwise(
    "negative", np.negative, (-1,), promotion=Promotion.ARITHMETIC,
    python=operator.neg, guard=py.no_overflow_of_negative,
    relation=same_dtype("iufc", hint="for conditions write '~' or logical_not."),
    samples=(*unary(), *_ONE_INTEGER, *_COMPLEX_ONE), doc="-x",
)
positive = elementwise(
    "positive", np.positive, (1,), kinds="iufc", promotion=Promotion.ARITHMETIC,
    python=operator.pos, element=lambda s, i, x: x(i),
    samples=(*unary(), *_ONE_INTEGER), doc="+x",
)
square = elementwise(
    "square", np.square, (lambda y, x: 2 * x,), promotion=Promotion.NUMBER,
    python=lambda x: x * x, guard=py.no_overflow("multiply"),
    samples=(*unary(), *_ONE_INTEGER, *_COMPLEX_ONE), doc="x * x",
)
reciprocal: Op = elementwise(
    "reciprocal", np.reciprocal, (lambda y, x: -(y * y),), promotion=Promotion.NUMBER,
    element=lambda s, i, x: _inverse(s, x(i), x.dtype),
    samples=(
        *unary(0.3, 3.0), *_COMPLEX_ONE, integers((4,), low=1, high=3), Sample((-2,)),
        Sample((np.array([127, -127, -128, -1, 1, 2, 0], np.int8),)), Sample((np.array([0, 2]),)),
        Sample((np.array([2**32 - 1, 1, 3], np.uint32),)),
    ),
    doc="1 / x, without its fraction for integers",
)


def _inverse(s: Any, value: Any, dtype: DType) -> Any:
    """1 / x; of an integer that is x itself where |x| = 1, else 0."""
    if dtype.is_float:
        return s.reciprocal(value)
    # Not by x * x, which wraps to 1 for the last integer of a type too.
    found = s.where(s.equal(value, s.const(1, dtype)), value, s.const(0, dtype))
    if dtype.kind == "i":
        found = s.where(s.equal(value, s.const(-1, dtype)), value, found)
    if dtype.kind == "i" and dtype.size >= 4:  # NumPy's infinity as an integer
        least = s.const(-(2 ** (8 * dtype.size - 1)), dtype)
        found = s.where(s.equal(value, s.const(0, dtype)), least, found)
    return found


def _slope_of_absolute(y: Handle, x: Handle) -> Any:
    if x.dtype.kind != "c":
        return sign(x)
    return where(equal(y, 0), 0, conj(x) / y)


absolute = elementwise(
    "absolute", np.absolute, (_slope_of_absolute,), promotion=Promotion.ARITHMETIC,
    python=abs, guard=py.no_overflow_of_negative,
    relation=same_dtype("biufc", real_part),
    samples=(*unary(), *_ONE_INTEGER, *_COMPLEX_ONE), doc="|x|; derivative 0 at 0",
)


def _cotangent_of_sign(y: Handle, g: Handle, x: Handle) -> tuple[Any, ...]:
    if x.dtype.kind != "c":
        return (None,)
    # d(z/|z|) = dz/|z| - y Re(conj(y) dz)/|z|
    return (times(g - real(g * y) * conj(y), reciprocal(absolute(x))),)


sign = elementwise(
    "sign", np.sign, vjp=_cotangent_of_sign, kinds="iufc",
    promotion=Promotion.ARITHMETIC,
    samples=(*unary(), *_ONE_INTEGER, *_COMPLEX_ONE), doc="-1, 0 or 1; z / |z| of complex numbers",
)
copysign: Op = elementwise(
    "copysign", np.copysign, (lambda y, a, b: copysign(1, a) * copysign(1, b), None),
    kinds="f", promotion=Promotion.FLOAT, samples=binary(), doc="|x| with the sign of y",
)

# -- rounding -----------------------------------------------------------------------------------


def _rounding(name: str, doc: str) -> Any:
    def element(s: Any, i: Any, x: Any) -> Any:
        return getattr(s, name)(x(i)) if x.dtype.is_float else x(i)

    return elementwise(
        name, getattr(np, name), STEPS, kinds="biuf", element=element,
        samples=(*unary(-9.0, 9.0), *_ONE_INTEGER), doc=doc,
    )


floor = _rounding("floor", "the largest integer not above x, as a number of x's type")
ceil = _rounding("ceil", "the smallest integer not below x, as a number of x's type")
trunc = _rounding("trunc", "x without its fraction, as a number of x's type")
rint = elementwise(
    "rint", np.rint, STEPS, kinds="fc", promotion=Promotion.FLOAT,
    samples=(*unary(-9.0, 9.0), Sample((np.array([0.5, 1.5, 2.5, -0.5]),), {}, False)),
    doc="the nearest integer, halves to the even one",
)

# -- extremes -----------------------------------------------------------------------------------


_COMPLEX_NANS = np.array([[1 + 1j, complex(1, np.nan), complex(np.nan, 1), 2 - 1j]])


def _share(wins: Any, ties: Any, g: Handle) -> Any:
    return where(wins, g, where(ties, 0.5 * g, 0))


def _extreme(name: str, beyond: Any, ignores_nan: bool, doc: str) -> Any:
    """minimum, maximum, fmin, fmax: `beyond(a, b)` is true where `a` is strictly the result."""

    def rule(y: Handle, g: Handle, a: Handle, b: Handle) -> tuple[Any, ...]:
        ties = equal(a, b)
        of_a, of_b = beyond(a, b), beyond(b, a)
        if ignores_nan:
            of_a, of_b = logical_or(of_a, isnan(b)), logical_or(of_b, isnan(a))
        return _share(of_a, ties, g), _share(of_b, ties, g)

    return elementwise(
        name, getattr(np, name), vjp=rule,
        samples=(
            *binary(), *_INTEGERS, *_COMPLEX, Sample((_COMPLEX_NANS, _COMPLEX_NANS.T), {}, False),
            Sample((np.array([True, False]), np.array([True, True]))),
        ),
        doc=doc,
    )


maximum = _extreme("maximum", lambda a, b: less(b, a), False, "the larger; NaN if one is NaN")
minimum = _extreme("minimum", lambda a, b: less(a, b), False, "the smaller; NaN if one is NaN")
fmax = _extreme("fmax", lambda a, b: less(b, a), True, "the larger; the other one if one is NaN")
fmin = _extreme("fmin", lambda a, b: less(a, b), True, "the smaller; the other one if one is NaN")


def _cotangents_of_clip(y: Handle, g: Handle, x: Handle, lo: Handle, hi: Handle) -> tuple[Any, ...]:
    inside = logical_and(less_equal(lo, x), less_equal(x, hi))
    below = logical_and(less(x, lo), less_equal(lo, hi))
    return (
        where(inside, g, 0),
        where(below, g, 0),
        where(less(hi, maximum(x, lo)), g, 0),
    )


clip = elementwise(
    "clip", np.clip, vjp=_cotangents_of_clip,
    relation=same_dtype("biuf", hint=_NO_ORDER),
    element=lambda s, i, x, lo, hi: s.minimum(hi(i), s.maximum(lo(i), x(i))),  # of two zeros x
    samples=(
        Sample((spread((9,)), -0.7, 1.1)),
        Sample((spread((9,)), spread((9,), -2.0, 0.0), spread((9,), 0.0, 2.0))),
        Sample((np.array([-1.0, np.nan, 5.0]), 2.0, 1.0), {}, False),
        Sample((np.arange(-3, 4), -1, 2)), Sample((1.5, 0.0, 1.0)),
    ),
    doc="x kept within lo..hi; derivative 1 at the edges",
)

# -- casts and complex parts --------------------------------------------------------------------


def _cast_type(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    (ty,) = tensors(args)
    dtype, weak = attrs["dtype"], attrs["weak"]
    if weak and ty.shape:
        raise RelationError(f"cannot make a Python number of {ty}", arg=0, kind="type")
    if weak and ty.dtype.kind == "c" and dtype.kind in "if":
        raise RelationError(f"cannot make a real number of {ty}", arg=0, kind="type",
                            hint="take its real part first.")
    return (TensorType(dtype, ty.shape, weak),)


def _cast(x: Any, *, dtype: DType, weak: bool) -> Any:
    if weak:
        return py.fitting(types.python_type(TensorType(dtype, (), True))(x))
    if type(x) is int and dtype.is_integer:
        return _integer_of(x, dtype)
    with np.errstate(all="ignore"):
        array = np.asarray(x)
        if array.dtype.kind == "c" and dtype.kind not in "cb":
            array = array.real
        return array.astype(dtype.numpy)[()]


def _integer_of(x: int, dtype: DType) -> Any:
    """A Python int as a NumPy integer. Raises OverflowError as NumPy 2 does."""
    limits = np.iinfo(dtype.numpy)
    if not limits.min <= x <= limits.max:
        raise OverflowError(f"Python integer {x} out of bounds for {dtype.numpy}")
    return dtype.numpy.type(x)


def _cast_element(s: Any, i: Any, x: Any, *, dtype: DType, weak: bool) -> Any:
    value = x(i)
    if x.dtype.kind == "c" and dtype.kind == "b":
        return s.not_equal(value, s.const(0, x.dtype))
    if x.dtype.kind == "c" and dtype.kind != "c":
        return s.cast(s.real(value), dtype)
    if weak and dtype.kind == "i":
        _check_int_of(s, value, x.dtype)
    elif x.type.weak and x.dtype.kind == "i" and dtype.is_integer and dtype != types.i64:
        limits = np.iinfo(dtype.numpy)
        beyond = s.less(value, s.const(int(limits.min), types.i64))
        if limits.max < py.LARGEST:
            above = s.greater(value, s.const(int(limits.max), types.i64))
            beyond = s.logical_or(beyond, above)
        text = ("Python integer ", 0, f" out of bounds for {dtype.numpy}")
        s.fail("OverflowError", text, beyond, value)
    return value if dtype == x.dtype else s.cast(value, dtype)


def _check_int_of(s: Any, value: Any, dtype: DType) -> None:
    """int(value) exists and fits in 64 bits."""
    if dtype.kind == "u" and dtype.size == 8:
        beyond = s.greater(value, s.const(py.LARGEST, dtype))
        s.fail("OverflowError", (py.TOO_LARGE,), beyond)
    if dtype.kind == "f":
        s.fail("ValueError", (py.INT_OF_NAN,), s.isnan(value))
        s.fail("OverflowError", (py.INT_OF_INFINITY,), s.isinf(value))
        bound = 2.0**63
        inside = s.logical_and(
            s.greater_equal(value, s.const(-bound, dtype)), s.less(value, s.const(bound, dtype))
        )
        s.fail("OverflowError", (py.TOO_LARGE,), s.logical_not(inside))


def _cotangent_of_cast(y: Handle, g: Handle, x: Handle, **attrs: Any) -> tuple[Any, ...]:
    if not (x.dtype.is_float and y.dtype.is_float):
        return (None,)
    return (g if g.dtype == x.dtype else OPS["cast"](g, dtype=x.dtype, weak=False),)


def _to(dtype: DType, weak: bool = False) -> dict[str, Any]:
    return {"dtype": dtype, "weak": weak}


cast = elementwise(
    "cast", _cast, python=_cast, relation=_cast_type, promotion=Promotion.NONE,
    vjp=_cotangent_of_cast, element=_cast_element,
    samples=(
        floats((4,), attrs=_to(types.f64)), floats((4,), attrs=_to(types.c128)),
        Sample((spread((3, 2)),), _to(types.f32), False),
        Sample((spread((5,), -9.0, 9.0),), _to(types.i32), False),
        Sample((np.array([0.0, 2.0, np.nan]),), _to(types.bool_), False),
        Sample((np.array([1 + 2j, 3j]),), _to(types.f64)),
        Sample((2.75,), _to(types.i64, True), False), Sample((2.75,), _to(types.f64)),
        Sample((np.float64(2.75),), _to(types.f64, True)), Sample((200,), _to(types.u8), False),
        Sample((np.array([True, False]),), _to(types.i64), False),
    ),
    doc="x with another element type: NumPy's astype, and Python's int(x), float(x), bool(x)",
)


def have_same_bits(one: DType, other: DType) -> bool:
    """Whether numbers of one dtype can be taken for those of another, of as many bytes."""
    halves = (types.f16, types.bf16)
    return one.size == other.size and all(
        d.kind in "biuf" and d not in halves for d in (one, other)
    )


def _bitcast_type(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    (ty,) = tensors(args)
    dtype = attrs["dtype"]
    if not have_same_bits(ty.dtype, dtype):
        raise RelationError(f"cannot take the bits of {ty} for {dtype}", arg=0, kind="type")
    return (TensorType(dtype, ty.shape),)


def _bitcast_element(s: Any, i: Any, x: Any, *, dtype: DType) -> Any:
    if "b" in (x.dtype.kind, dtype.kind):
        return s.cast(x(i), dtype)
    return s.same_bits(x(i), dtype)


bitcast: Op = elementwise(
    "bitcast", lambda x, *, dtype: np.asarray(x).view(dtype.numpy)[()], DISCRETE,
    relation=_bitcast_type, promotion=Promotion.NONE, element=_bitcast_element,
    samples=(
        Sample((spread((4,)),), {"dtype": types.i64}, False),
        Sample((spread((3,)).astype("f4"),), {"dtype": types.u32}, False),
        Sample((np.array([1, -1, 2**62]),), {"dtype": types.f64}, False),
        Sample((np.array([[200, 3]], "u1"),), {"dtype": types.i8}, False),
        Sample((np.array([True, False]),), {"dtype": types.u8}, False),
        Sample((np.float64(-0.0),), {"dtype": types.i64}, False),
    ),
    doc="the numbers of another dtype that the bits of x are: NumPy's view(dtype)",
)


def _part(name: str, python: Any, rule: Any, of_real: Any, doc: str) -> Any:
    def element(s: Any, i: Any, x: Any) -> Any:
        return getattr(s, name)(x(i)) if x.dtype.kind == "c" else of_real(s, x(i))

    def vjp(y: Handle, g: Handle, x: Handle) -> tuple[Any, ...]:
        return (rule(g, x.dtype.kind == "c"),)

    keeps = name == "conj"
    return elementwise(
        name, getattr(np, name), vjp=vjp, element=element, python=python,
        promotion=Promotion.NUMBER if keeps else Promotion.ARITHMETIC,
        relation=same_dtype("biufc", unchanged if keeps else real_part),
        samples=(*_COMPLEX_ONE, *unary()[:3], *_ONE_INTEGER), doc=doc,
    )


real = _part(
    "real", lambda x: x.real, lambda g, is_complex: make_complex(g, 0) if is_complex else g,
    lambda s, x: x, "the real part",
)
imag = _part(
    "imag", lambda x: x.imag, lambda g, is_complex: make_complex(0, -g) if is_complex else None,
    lambda s, x: s.const(0, s.result[0].dtype), "the imaginary part",
)
conj: Op = _part(
    "conj", lambda x: x.conjugate(), lambda g, is_complex: conj(g) if is_complex else g,
    lambda s, x: x, "the complex conjugate",
)


def _complex_of(dtype: DType) -> DType:
    return types.c64 if dtype == types.f32 else types.c128


def _make_complex(a: Any, b: Any) -> Any:
    whole = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)), np.result_type(a, b, 1j))
    whole.real, whole.imag = a, b
    return whole[()]


make_complex: Op = elementwise(
    "make_complex", _make_complex, python=complex, promotion=Promotion.FLOAT,
    relation=same_dtype("f", _complex_of),
    vjp=lambda y, g, a, b: (real(g), -imag(g)),
    samples=(*binary()[:4], Sample((1.5, float("inf")), {}, False)), doc="a + b * 1j, exactly",
)
stop_gradient = elementwise(
    "stop_gradient", lambda x: x, not_differentiable("by request"), python=lambda x: x,
    element=lambda s, i, x: x(i), samples=(*unary(), *_ONE_INTEGER),
    doc="x, through which no derivative flows",
)
