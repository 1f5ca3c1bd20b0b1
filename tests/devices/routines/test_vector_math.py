"""Elementary functions of kernels: error bounds against mpmath, special values, vector code."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest

from pyrelay.devices.compiler import kernel_compiler
from pyrelay.devices.compiler.codegen import kernel_machine
from pyrelay.devices.routines.matmul import native_vector_bits
from pyrelay.devices.routines.vector_math import ERROR_BOUNDS
from pyrelay.ops.scalar import LONE, NEAR_ANGLE
from tests.devices.running_kernels import (
    SHORT_NAMES,
    elementwise,
    elementwise_source,
    kernel_assembly,
)

UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp,
    "exp_of_negative": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10,
    "log1p": lambda x: mpmath.log1p(x) if x > -1 else mpmath.log(1 + x),
    "sqrt": mpmath.sqrt,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "near_sin": mpmath.sin,
    "near_cos": mpmath.cos,
    "near_tan": mpmath.tan,
    "tan": mpmath.tan,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh,
    "erf": mpmath.erf,
}
ALONE = sorted(LONE.keys() & UNARY.keys())
NOT_NUMPYS = {"sigmoid", "erf", "exp_of_negative", "near_sin", "near_cos", "near_tan"}
CALLS_LIBRARY = {("sin", "f64"), ("cos", "f64"), ("tan", "f64")}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 8.0, 1e-40, -1e-40, 5e-324, 88.7, 88.8, -87.3,
           -103.9, -104.1, 709.7, 709.8, -745.1, -745.2, 1e30, 3e38, 1e308, np.inf, -np.inf,
           np.nan]  # fmt: skip
FLOATS = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])


def sample(dtype: Any, seed: int = 0) -> np.ndarray:
    """Every exponent with both signs, ordinary sizes, the neighbourhood of 1, special values."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    integer = np.uint32 if dtype == np.float32 else np.uint64
    exponents = np.arange(2 ** (info.bits - info.nmant - 1), dtype=integer)
    if dtype == np.float64:
        exponents = exponents[rng.permutation(2048)[:500]]
    patterns = exponents << integer(info.nmant)
    patterns |= rng.integers(0, 2**info.nmant, patterns.size, dtype=integer)
    everywhere = patterns.view(dtype)
    with np.errstate(over="ignore"):
        special = np.array(SPECIAL).astype(dtype)
    ordinary = [
        rng.standard_normal(300) * 3,
        rng.uniform(-1, 1, 300),
        rng.uniform(-110, 110, 100),
        1 + rng.standard_normal(100) * 0.1,
    ]
    parts = [part.astype(dtype) for part in ordinary]
    return np.concatenate([everywhere, -everywhere, *parts, special])


def quarter_turns(dtype: Any) -> np.ndarray:
    """The floats nearest to multiples of pi / 2, where sines and cosines are smallest."""
    n = np.random.default_rng(1).integers(1, int(NEAR_ANGLE / 1.6), 2000).tolist()
    with mpmath.workprec(200):
        nearest = np.array([float(each * mpmath.pi / 2) for each in n]).astype(dtype)
    return np.concatenate([nearest, -nearest, np.nextafter(nearest, dtype(0))])


def exact(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """``function`` at these floats as objects of mpmath, None where it has no real value."""
    out = np.empty(arrays[0].shape, object)
    for place, values in enumerate(zip(*(each.tolist() for each in arrays), strict=True)):
        try:
            value = function(*(mpmath.mpf(v) for v in values))
        except (ValueError, ZeroDivisionError):
            value = None
        out[place] = None if isinstance(value, mpmath.mpc) else value
    return out


def errors(computed: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Distance in units in the last place; infinite where one is finite and the other is not."""
    info = np.finfo(computed.dtype)
    overflow = mpmath.mpf(float(info.max)) * (1 + mpmath.mpf(2) ** (-info.nmant - 2))
    out = np.zeros(computed.shape)
    for place, (value, truth) in enumerate(zip(computed.tolist(), true, strict=True)):
        if truth is None or mpmath.isnan(truth):
            out[place] = 0.0 if np.isnan(value) else np.inf
        elif np.isinf(value):
            agree = abs(truth) > overflow and (value > 0) == (truth > 0)
            out[place] = 0.0 if agree else np.inf
        else:
            exponent = max(mpmath.frexp(truth)[1] - 1, info.minexp)
            unit = mpmath.mpf(2) ** (exponent - info.nmant)
            out[place] = float(abs(mpmath.mpf(value) - truth) / unit)
    return out


def precision(name: str, x: np.ndarray) -> int:
    """Bits enough for arguments near multiples of pi at the end of the range."""
    return 1250 if name in {"sin", "cos", "tan"} and x.dtype == np.float64 else 350


@FLOATS
@pytest.mark.parametrize("name", UNARY)
def test_errors_stay_within_the_stated_bound(name: str, dtype: Any) -> None:
    x = sample(dtype)
    x = x[np.isfinite(x)]
    if name in {"sinh", "cosh", "exp", "exp2", "expm1", "erf", "tanh", "sigmoid"}:
        x = x[np.abs(x) < 2000]
    if name == "exp_of_negative":
        x = x[(x > -2000) & (x < 1)]
    if name.startswith("near_"):
        x = np.append(x, quarter_turns(dtype))
        x = x[np.abs(x) <= NEAR_ANGLE]
    computed = elementwise(f"{name}(x0)", x, result=dtype)
    with mpmath.workprec(precision(name, x)):
        finite = errors(computed, exact(_with_poles(name), x))
    worst = int(np.argmax(finite))
    assert finite[worst] <= ERROR_BOUNDS[name], (x[worst], computed[worst])


@FLOATS
@pytest.mark.parametrize("name", ALONE)
def test_functions_for_one_number_at_a_time_are_no_less_exact(name: str, dtype: Any) -> None:
    x = np.random.default_rng(0).uniform(0.01, 0.99, 200).astype(dtype)
    x = x + dtype(name == "arccosh")
    computed = elementwise(f"lone_{name}(x0)", x, result=dtype)
    with mpmath.workprec(350):
        assert errors(computed, exact(UNARY[name], x)).max() <= ERROR_BOUNDS[name]


def _with_poles(name: str) -> Callable[[Any], Any]:
    """mpmath's function, infinite where C's is."""
    poles = {
        "log": {0: -mpmath.inf},
        "log2": {0: -mpmath.inf},
        "log10": {0: -mpmath.inf},
        "log1p": {-1: -mpmath.inf},
        "arctanh": {1: mpmath.inf, -1: -mpmath.inf},
    }.get(name, {})
    return lambda x: poles[int(x)] if x in poles else UNARY[name](x)


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p"])
def test_logarithms_of_float32_have_no_division_and_are_off_by_less_than_a_unit(name: str) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(0.3, 3, 50_000), 1 + rng.standard_normal(50_000) * 0.01])
    x = (x - 1 if name == "log1p" else x).astype(np.float32)
    true = getattr(np, name)(x.astype(np.float64))
    off = np.abs(elementwise(f"{name}(x0)", x, result=np.float32) - true)
    assert np.max(off / np.spacing(np.abs(true).astype(np.float32))) < 1.0
    if name != "log1p":
        text = kernel_assembly(elementwise_source(f"{name}(x0)", ["f32"], "f32"))
        assert "div" not in text


def test_powers_of_float32_are_off_by_less_than_a_unit() -> None:
    rng = np.random.default_rng(4)
    x = np.exp(rng.standard_normal(100_000)).astype(np.float32)
    y = (rng.uniform(-120, 120, x.size) / np.log2(x)).astype(np.float32)
    y = np.clip(y, -1e6, 1e6).astype(np.float32)
    true = x.astype(np.float64) ** y.astype(np.float64)
    off = np.abs(elementwise("power(x0, x1)", x, y, result=np.float32) - true)
    assert np.max(off / np.spacing(true.astype(np.float32))) < 1.0


@FLOATS
@pytest.mark.parametrize("name", sorted({*UNARY} - NOT_NUMPYS))
def test_infinities_nan_and_signed_zeros_are_as_in_numpy(name: str, dtype: Any) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    computed = elementwise(f"{name}(x0)", x, result=dtype)
    np.testing.assert_array_equal(np.isnan(computed), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.signbit(computed[finite]), np.signbit(expected[finite]))
    np.testing.assert_array_almost_equal_nulp(computed[finite], expected[finite], 2)
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(computed[infinite], expected[infinite])


def test_sines_of_small_angles_keep_the_sign_of_zero() -> None:
    x = np.array([0.0, -0.0, 5e-324, -5e-324, 1e-300, 2.0**-27])
    found = elementwise("near_sin(x0)", x, result=np.float64)
    np.testing.assert_array_equal(found, np.sin(x))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x))


@FLOATS
def test_sigmoid_and_erf_have_their_limits_at_infinity(dtype: Any) -> None:
    x = np.array([np.inf, -np.inf, np.nan, -0.0], dtype)
    np.testing.assert_array_equal(elementwise("sigmoid(x0)", x, result=dtype), [1, 0, np.nan, 0.5])
    erf = elementwise("erf(x0)", x, result=dtype)
    np.testing.assert_array_equal(erf, [1, -1, np.nan, 0])
    assert np.signbit(erf[3])


@FLOATS
def test_exponentials_of_negative_numbers_end_in_zeros(dtype: Any) -> None:
    x = np.array([-np.inf, -1e30, -2000.0, np.nan, 0.0, -0.0], dtype)
    computed = elementwise("exp_of_negative(x0)", x, result=dtype)
    np.testing.assert_array_equal(computed, [0, 0, 0, np.nan, 1, 1])


@FLOATS
@pytest.mark.parametrize("name", UNARY)
def test_a_loop_over_a_function_becomes_vector_code(name: str, dtype: Any) -> None:
    short = SHORT_NAMES[np.dtype(dtype)]
    text = kernel_assembly(elementwise_source(f"{name}(x0)", [short], short))
    calls = re.findall(r"\bcall\w*\s+(\S+)", text)
    if (name, short) in CALLS_LIBRARY:
        assert calls
    else:
        assert all(each.startswith("pyrelay_vector_") and "_far" in each for each in calls)
        assert re.search(r"%[yz]mm", text)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's sincos")
def test_a_sine_and_a_cosine_of_one_number_are_one_call() -> None:
    text = kernel_assembly(elementwise_source("sin(x0) + cos(x0)", ["f64"], "f64"))
    assert set(re.findall(r"\bcall\w*\s+(\w+)", text)) == {"sincos"}


@FLOATS
def test_tanh_is_odd_and_at_most_one(dtype: Any) -> None:
    x = np.concatenate([np.geomspace(1e-5, 40, 20_000), [0.0, 1e-45, 1e30]]).astype(dtype)
    value = elementwise("tanh(x0)", x, result=dtype)
    negative = elementwise("tanh(x0)", -x, result=dtype)
    np.testing.assert_array_equal(negative, -value)
    assert np.array_equal(np.signbit(negative), ~np.signbit(value))
    assert value.max() == 1.0
    assert value[-1] == 1.0


#: Instructions of a loop over two vectors of 256 bits, on CPUs that multiply and add at once.
FEW_INSTRUCTIONS = {
    ("erf", "f32"): 136, ("erf", "f64"): 250, ("exp", "f32"): 60, ("exp", "f64"): 104,
    ("exp_of_negative", "f32"): 52, ("exp_of_negative", "f64"): 90,
    ("tanh", "f32"): 62, ("tanh", "f64"): 74, ("sigmoid", "f32"): 60, ("sigmoid", "f64"): 98,
    ("log", "f32"): 112, ("log", "f64"): 132,
}  # fmt: skip


@pytest.mark.skipif(native_vector_bits() != 256, reason="counts instructions of one kind of CPU")
@pytest.mark.parametrize(("name", "short"), FEW_INSTRUCTIONS)
def test_loops_take_two_vectors_at_a_time_in_few_instructions(name: str, short: str) -> None:
    text = kernel_assembly(elementwise_source(f"{name}(x0)", [short], short))
    suffix = "ps" if short == "f32" else "pd"
    blocks = re.split(r"^\.L\w+:", text, flags=re.MULTILINE)
    main = max(blocks, key=lambda b: len(re.findall(rf"\tvmovup[sd]\t%ymm|\tvf\w+{suffix}", b)))
    lines = re.findall(r"^\t([a-z]\w*)\t(.*)$", main.split("\tj")[0], flags=re.MULTILINE)
    assert sum(name.startswith("vmov") and target.endswith(")") and target[0] == "%"
               for name, target in lines) >= 2
    assert len(lines) <= FEW_INSTRUCTIONS[name, short]


@pytest.mark.skipif(native_vector_bits() != 512, reason="as many registers as AVX-512 has")
def test_a_loop_over_one_function_takes_four_vectors_at_a_time() -> None:
    def taken(text: str) -> int:
        blocks = re.split(r"^\.L\w+:", kernel_assembly(text), flags=re.MULTILINE)
        return max(len(re.findall(r"\tvmovupd\t%zmm\d+, [^%]*\(%r(?!sp)", each)) for each in blocks)

    assert taken(elementwise_source("log(x0)", ["f64"], "f64")) == 4
    assert taken(elementwise_source("log(x0) * exp(x0)", ["f64"], "f64")) == 2


CHAIN = """from pyrelay.devices.compiler.vocabulary import *


def kernel(block, begin, end):
    a0 = param_apart(block, 0)
    v0 = {zero}
    for i0 in range(end):
        v0 = v0 + {name}(load_{short}(a0, i0))
    store_{short}(a0, 0, v0)
    return 0
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="masks of AVX-512")
@pytest.mark.parametrize("short", ["f32", "f64"])
@pytest.mark.parametrize(
    "name", sorted(UNARY.keys() - {"arcsinh", "arccosh", "near_sin", "near_cos", "near_tan"})
)
def test_one_by_one_no_number_waits_for_the_one_before(
    name: str, short: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if short == "f32" and name in ("sin", "cos", "tan"):
        pytest.skip("integers choose: neither comparison nor minimum")
    kernel_machine()  # LLVM's targets are there
    target = llvm.Target.from_triple(llvm.get_process_triple())
    zen4 = target.create_target_machine(cpu="znver4", opt=3, codemodel="small", reloc="pic")
    monkeypatch.setattr(kernel_compiler, "kernel_machine", lambda: zen4)
    source = CHAIN.format(name=name, short=short, zero="0.0" if short == "f64" else "f32(0.0)")
    text = zen4.emit_assembly(kernel_compiler.optimised_module(source, "test"))
    assert re.search(r"\tvadds[sd]\t", text)  # one by one
    # A mask that comes from a general register, of which `seta` sets 8 bits, waits for the rest.
    assert not re.search(r"\tkmov[a-z]\t%[er]", text)


@FLOATS
def test_power_stays_within_the_stated_bound(dtype: Any) -> None:
    rng = np.random.default_rng(5)
    x = np.abs(np.concatenate([sample(dtype), rng.uniform(0.5, 2, 400).astype(dtype)]))
    y = rng.permutation(np.concatenate([sample(dtype, 1), rng.uniform(-90, 90, 400).astype(dtype)]))
    keep = np.isfinite(x) & np.isfinite(y) & (x > 0) & (np.abs(y) < 1e5)
    x, y = x[keep], y[keep]
    near = np.abs(y * np.log(x.astype(np.float64))) < 800
    x, y = x[near], y[near]
    computed = elementwise("power(x0, x1)", x, y, result=dtype)
    with mpmath.workprec(300):
        finite = errors(computed, exact(mpmath.power, x, y))
    worst = int(np.argmax(finite))
    assert finite[worst] <= ERROR_BOUNDS["power"], (x[worst], y[worst], computed[worst])


EDGES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 1e-39, 1e20, np.inf, -np.inf,
         np.nan]  # fmt: skip


@FLOATS
@pytest.mark.parametrize("name", ["power", "arctan2", "hypot", "logaddexp", "copysign"])
def test_functions_of_two_numbers_agree_with_numpy_at_all_pairs_of_edges(
    name: str, dtype: Any
) -> None:
    x, y = (part.ravel().copy() for part in np.meshgrid(*[np.array(EDGES, dtype)] * 2))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    computed = elementwise(f"{name}(x0, x1)", x, y, result=dtype)
    np.testing.assert_allclose(computed, expected, rtol=4 * np.finfo(dtype).eps)
    settled = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(computed)[settled], np.signbit(expected)[settled])


@FLOATS
@pytest.mark.parametrize(("name", "function"), [("arctan2", mpmath.atan2), ("hypot", mpmath.hypot)])
def test_functions_of_two_numbers_stay_within_the_stated_bound(
    name: str, function: Any, dtype: Any
) -> None:
    x = sample(dtype)
    y = np.random.default_rng(3).permutation(sample(dtype, 2))
    keep = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
    x, y = x[keep], y[keep]
    computed = elementwise(f"{name}(x0, x1)", x, y, result=dtype)
    with mpmath.workprec(300):
        finite = errors(computed, exact(function, x, y))
    worst = int(np.argmax(finite))
    assert finite[worst] <= ERROR_BOUNDS[name], (x[worst], y[worst], computed[worst])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=["c64", "c128"])
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos"])
def test_complex_functions_agree_with_numpy(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    z = (rng.standard_normal(200) * 3 + 1j * rng.standard_normal(200) * 3).astype(dtype)
    z[:4] = [1, -1, 1j, -2 - 0j]
    computed = elementwise(f"{name}(x0)", z, result=dtype)
    tolerance = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(computed, getattr(np, name)(z), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=["c64", "c128"])
def test_complex_power_agrees_with_numpy(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    z, w = (
        (rng.standard_normal(100) + 1j * rng.standard_normal(100)).astype(dtype) for _ in range(2)
    )
    z[:2], w[0], w[1] = 0, 0, 2
    computed = elementwise("power(x0, x1)", z, w, result=dtype)
    np.testing.assert_allclose(computed, np.power(z, w), rtol=100 * np.finfo(dtype).eps)


def test_softmax_masks_of_minus_infinity_cost_no_more_than_other_values() -> None:
    x = np.full(4096, -np.inf, np.float32)
    np.testing.assert_array_equal(elementwise("exp(x0)", x, result=np.float32), np.zeros(4096))
