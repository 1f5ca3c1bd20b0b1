"""Elementary functions for kernels, of f32, f64, and where they are used of c64 and c128.

In: values of kernel types; out: LLVM instructions emitted in place.  Each intrinsic means what the
NumPy ufunc of its name means for operands of one dtype.  The functions of floats are branch-free,
so that loops over them become vector code, but for those that call the C library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, nan
from types import MappingProxyType
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler.kernel_language import COMPLEX, FLOATS, INTEGERS, Intrinsic, alike
from pyrelay.devices.compiler.kernel_operators import emit_mul, make_complex, parts
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.routines import exponentials as e
from pyrelay.devices.routines import trigonometry as t
from pyrelay.devices.routines.arithmetic import emit_integer_power, lane_hypot
from pyrelay.devices.routines.lanes import Lane

_LaneFunction = Callable[..., Lane]
_ComplexFunction = Callable[[IRBuilder, Any], Any]


def _function(
    name: str, lane: _LaneFunction, arity: int = 1, on_complex: _ComplexFunction | None = None
) -> Intrinsic:
    allowed = FLOATS if on_complex is None else FLOATS + COMPLEX

    def emit(b: IRBuilder, ty: types.Type, *args: Any) -> Any:
        if ty in COMPLEX:
            assert on_complex is not None
            return on_complex(b, *args)
        return lane(*(Lane(b, each) for each in args)).v

    return Intrinsic(name, alike(arity, allowed), emit, chained=True)


# -- complex numbers -----------------------------------------------------------------------------


def _complex(function: Callable[[Lane, Lane], tuple[Lane, Lane]]) -> _ComplexFunction:
    """A function of the parts as a function of LLVM's complex value."""

    def emit(b: IRBuilder, z: Any) -> Any:
        re, im = function(*(Lane(b, part) for part in parts(b, z)))
        return make_complex(b, re.v, im.v)

    return emit


def _complex_exp(re: Lane, im: Lane) -> tuple[Lane, Lane]:
    size = e.lane_exp(re)
    plain, origin = im.equals(0.0) | (_wild(im) & re.equals(inf)), _wild(im) & re.equals(-inf)
    real, imag = size * t.lane_cos(im), im.equals(0.0).choose(im, size * t.lane_sin(im))
    zero = re.constant(0.0)
    return origin.choose(zero, plain.choose(size, real)), origin.choose(zero.copysign(im), imag)


def _wild(x: Lane) -> Any:
    """Infinite, or NaN. What functions give there is in annex G of C99."""
    return ~(x - x).equals(0.0)


def _complex_log(re: Lane, im: Lane) -> tuple[Lane, Lane]:
    return e.lane_log(lane_hypot(re, im)), t.lane_arctan2(im, re)


def _complex_sqrt(re: Lane, im: Lane) -> tuple[Lane, Lane]:
    """The root with a non-negative real part; Kahan's formula scaled against overflow."""
    size = lane_hypot(re * 0.5, im * 0.5) + re.abs() * 0.5
    large = size.sqrt()
    small = large.equals(0.0).choose(large, im.abs() * 0.5 / large)
    right, far = re >= 0.0, im.abs().equals(inf)
    real, imag = right.choose(large, small), right.choose(small, large)
    return far.choose(im.abs(), real), far.choose(im, imag.copysign(im))


def _complex_sin(re: Lane, im: Lane) -> tuple[Lane, Lane]:
    imag = t.lane_cos(re) * t.lane_sinh(im)
    far = im.abs().equals(inf)
    kept = _wild(re) & (im.equals(0.0) | far)
    real = re.equals(0.0).choose(re, t.lane_sin(re) * t.lane_cosh(im))
    return real, kept.choose(far.choose(im.abs(), im), imag)


def _complex_cos(re: Lane, im: Lane) -> tuple[Lane, Lane]:
    far, axis = _wild(re) & im.abs().equals(inf), re.equals(0.0)
    zero = axis | (im.equals(0.0) & _wild(re))
    real, imag = t.lane_cos(re) * t.lane_cosh(im), -(t.lane_sin(re) * t.lane_sinh(im))
    none = axis.choose(-(re * re.constant(1.0).copysign(im)), re.constant(0.0))
    return far.choose(im.abs(), real), zero.choose(none, imag)


def _complex_power(b: IRBuilder, z: Any, w: Any) -> Any:
    """``exp(w log z)``; the powers 0 to 3 are products, and 0 has powers with a positive real part
    only, as in NumPy's `npy_cpow`. Branch-free."""
    ty = types.complex128
    log = _complex(_complex_log)(b, z)
    value = _complex(_complex_exp)(b, emit_mul(b, ty, log, w))
    square = emit_mul(b, ty, z, z)
    (re, im), (p, q) = ([Lane(b, part) for part in parts(b, each)] for each in (z, w))
    real = q.equals(0.0)
    origin, unit = re.equals(0.0) & im.equals(0.0), real & p.equals(0.0)
    at_origin = (p > 0.0).choose(p.constant(0.0), p.constant(nan))
    found = []
    for k, part in enumerate(parts(b, value)):
        lane = Lane(b, part)
        for n, product in ((1.0, z), (2.0, square), (3.0, emit_mul(b, ty, z, square))):
            lane = (real & p.equals(n)).choose(Lane(b, parts(b, product)[k]), lane)
        found.append(unit.choose(lane.constant(1.0 - k), origin.choose(at_origin, lane)).v)
    return make_complex(b, *found)


# -- intrinsics ----------------------------------------------------------------------------------

exp = _function("exp", e.lane_exp, 1, _complex(_complex_exp))
exp_of_negative = _function("exp_of_negative", e.lane_exp_of_negative)
exp2 = _function("exp2", e.lane_exp2)
expm1 = _function("expm1", e.lane_expm1)
log = _function("log", e.lane_log, 1, _complex(_complex_log))
log2 = _function("log2", e.lane_log2)
log10 = _function("log10", e.lane_log10)
log1p = _function("log1p", e.lane_log1p)
sqrt = _function("sqrt", Lane.sqrt, 1, _complex(_complex_sqrt))
cbrt = _function("cbrt", t.lane_cbrt)
tanh = _function("tanh", e.lane_tanh)
sigmoid = _function("sigmoid", e.lane_sigmoid)
logaddexp = _function("logaddexp", e.lane_logaddexp, 2)
sin = _function("sin", t.lane_sin, 1, _complex(_complex_sin))
cos = _function("cos", t.lane_cos, 1, _complex(_complex_cos))
near_sin = _function("near_sin", t.lane_near_sin)
near_cos = _function("near_cos", t.lane_near_cos)
near_tan = _function("near_tan", t.lane_near_tan)
tan = _function("tan", t.lane_tan)
arcsin = _function("arcsin", t.lane_arcsin)
arccos = _function("arccos", t.lane_arccos)
arctan = _function("arctan", t.lane_arctan)
arctan2 = _function("arctan2", t.lane_arctan2, 2)
sinh = _function("sinh", t.lane_sinh)
cosh = _function("cosh", t.lane_cosh)
arcsinh = _function("arcsinh", t.lane_arcsinh)
arccosh = _function("arccosh", t.lane_arccosh)
arctanh = _function("arctanh", t.lane_arctanh)
erf = _function("erf", e.lane_erf)
erfc = _function("erfc", t.through_double("erfc"))
lgamma = _function("lgamma", t.through_double("lgamma"))
gamma = _function("gamma", t.through_double("tgamma"))
nextafter = _function("nextafter", t.library("nextafter"), 2)


def _lone(name: str, own: str, arity: int = 1) -> Intrinsic:
    """The C library's function for one number at a time, which it has tables for
    (`ops.scalar.LONE`: a process that only compiles does not import it)."""
    function = t.library(own)

    def emit(b: IRBuilder, ty: types.Type, *args: Any) -> Any:
        return function(*(Lane(b, each) for each in args)).v

    return Intrinsic(f"lone_{name}", alike(arity, FLOATS), emit)


lone_exp, lone_exp2 = _lone("exp", "exp"), _lone("exp2", "exp2")
lone_log, lone_log2 = _lone("log", "log"), _lone("log2", "log2")
lone_log10, lone_log1p = _lone("log10", "log10"), _lone("log1p", "log1p")
lone_power, lone_erf = _lone("power", "pow", 2), _lone("erf", "erf")
lone_sin, lone_cos = _lone("sin", "sin"), _lone("cos", "cos")
lone_arcsinh, lone_arccosh = _lone("arcsinh", "asinh"), _lone("arccosh", "acosh")
lone_arctanh = _lone("arctanh", "atanh")


def _emit_power(b: IRBuilder, ty: types.Type, x: Any, y: Any) -> Any:
    if ty in INTEGERS:
        return emit_integer_power(b, ty, x, y)
    if ty in COMPLEX:
        return _complex_power(b, x, y)
    return e.lane_power(Lane(b, x), Lane(b, y)).v


power = Intrinsic("power", alike(2, INTEGERS + FLOATS + COMPLEX), _emit_power, chained=True)

# Largest error in units in the last place, for f32 and f64, where the result is finite.
ERROR_BOUNDS: Mapping[str, float] = MappingProxyType(
    {
        "exp": 1.1, "exp_of_negative": 1.1, "exp2": 1.1, "expm1": 2.0, "log": 1.0, "log2": 2.0,
        "log10": 2.2, "log1p": 1.0, "tanh": 2.6, "sigmoid": 2.6, "power": 1.2, "sqrt": 0.5,
        "cbrt": 1.5, "hypot": 1.2, "sin": 0.9, "cos": 0.9, "near_sin": 1.0, "near_cos": 1.0,
        "near_tan": 2.5, "tan": 2.4, "arcsin": 2.6, "arccos": 1.6, "arctan": 2.0, "arctan2": 2.6,
        "sinh": 1.6, "cosh": 1.6, "arcsinh": 2.0, "arccosh": 1.7, "arctanh": 2.0, "erf": 1.7,
    }
)  # fmt: skip
