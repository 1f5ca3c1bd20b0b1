"""The table of scalar primitives: every spelling means what NumPy's ufunc of that name means."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pyrelay.ir.op import OPS
from pyrelay.ir.types import DTYPES, DType, bool_, f64, i64
from pyrelay.ops.scalar import LONE, SCALARS, TARGET, Scalar
from tests.devices.running_kernels import emulate, needs_compiler, run
from tests.dtypes import HERE

NUMPY: dict[str, Callable[..., Any]] = {
    "add_reassociated": np.add,
    "quotient": np.divide,
    "multiply_reassociated": np.multiply,
    "fma": lambda a, b, c: a * b + c,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "erf": np.vectorize(math.erf),
    "near_sin": np.sin,
    "near_cos": np.cos,
    "near_tan": np.tan,
    "lone_erf": np.vectorize(math.erf),
    **{f"lone_{name}": getattr(np, name) for name in LONE.keys() - {"erf"}},
    **{name: OPS[name].numpy for name in ("erfc", "lgamma", "gamma")},
    "real": np.real,
    "imag": np.imag,
    "make_complex": lambda a, b: _paired(a, b),
    "where": lambda a, b, c: np.where(a != 0, b, c),
    "where_unpredictable": lambda a, b, c: np.where(a != 0, b, c),
    "add_overflows": lambda a, b: _overflows(a, b, int.__add__),
    "subtract_overflows": lambda a, b: _overflows(a, b, int.__sub__),
    "multiply_overflows": lambda a, b: _overflows(a, b, int.__mul__),
    "add_remainder": lambda a, b, n: _remainder(a, b, n, int.__add__),
    "subtract_remainder": lambda a, b, n: _remainder(a, b, n, int.__sub__),
    "multiply_remainder": lambda a, b, n: _remainder(a, b, n, int.__mul__),
    "power_remainder": lambda a, b, n: _remainder(a, b, n, pow),
    "true_quotient": lambda a, b: _quotients(a, b),
    "outside": lambda a, b: (a < 0) | (a >= b),
    "truncated": lambda a: np.where(abs(a) < 2**63, a, -(2.0**63)).astype(np.int64),
    "whole": lambda a: a.astype(np.int64),
}
ON_WORDS = {"outside", "true_quotient", "power_remainder"} | {
    f"{name}_{what}" for name in ("add", "subtract", "multiply") for what in (
        "overflows", "remainder",
    )
}
DTYPE = pytest.mark.parametrize("dtype", HERE, ids=str)


def _paired(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind = np.complex64 if a.dtype == np.float32 else np.complex128
    return np.stack([a, b], axis=-1).view(kind)[:, 0]


def _overflows(a: np.ndarray, b: np.ndarray, operation: Any) -> np.ndarray:
    exact = [operation(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return np.array([not -(2**63) <= value < 2**63 for value in exact])


def _remainder(a: np.ndarray, b: np.ndarray, n: np.ndarray, operation: Any) -> np.ndarray:
    numbers = zip(a.tolist(), b.tolist(), n.tolist(), strict=True)
    if operation is pow:
        return np.array([pow(x, y % 2**64, m) if m else 0 for x, y, m in numbers])
    return np.array([operation(x, y) % m if m else 0 for x, y, m in numbers])


def _quotients(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.array([x / y if y else float(np.divide(x, np.float64(y))) for x, y in pairs])


def operands(dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of edge values of a dtype, some ordinary pairs, and a third operand."""
    rng = np.random.default_rng(0)
    edges: list[Any]
    if dtype.kind == "b":
        edges = [False, True]
    elif dtype.kind in "iu":
        info = np.iinfo(dtype.numpy)
        edges = [info.min, info.min + 1, 0, 1, 2, 3, 7, 63, 100, info.max - 1, info.max]
        edges += [-1, -2, -5] if dtype.kind == "i" else []
    elif dtype.kind == "f":
        edges = [0.0, -0.0, 0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 7.0, -0.3, np.inf, -np.inf, np.nan]
    else:
        edges = [0, 1, -1, 1j, 2 - 3j, -0.5 + 0.25j, 3 + 4j]
    a, b = (part.ravel() for part in np.meshgrid(*[np.array(edges, dtype.numpy)] * 2))
    if dtype.kind in "fc":
        extra = rng.uniform(-3, 3, (2, 60)) + (1j * rng.uniform(-3, 3, (2, 60)))
        extra = extra if dtype.kind == "c" else extra.real
        more = extra.astype(dtype.numpy)
        a, b = np.concatenate([a, more[0]]), np.concatenate([b, more[1]])
    return a.copy(), b.copy(), rng.permutation(a)


def expected(scalar: Scalar, arrays: tuple[np.ndarray, ...], dtype: DType) -> np.ndarray:
    function = NUMPY.get(scalar.name) or getattr(np, scalar.name)
    given = arrays[: scalar.arity]
    with np.errstate(all="ignore"):
        return np.asarray(function(*given)).astype(scalar.result_dtype(dtype).numpy)


def _assert_same(computed: np.ndarray, wanted: np.ndarray, name: str) -> None:
    if wanted.dtype.kind == "V":  # bfloat16, whose NaNs NumPy's testing does not know
        computed, wanted = computed.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_array_equal(computed, wanted, err_msg=name)


def agree(scalar: Scalar, computed: np.ndarray, wanted: np.ndarray, dtype: DType) -> None:
    if wanted.dtype.kind not in "fc":
        _assert_same(computed, wanted, scalar.name)
        return
    tolerance = 16 * np.finfo(wanted.dtype).eps
    np.testing.assert_allclose(
        computed, wanted, rtol=tolerance, atol=tolerance, err_msg=scalar.name
    )


def applicable(dtype: DType) -> list[Scalar]:
    """Primitives of this dtype that NumPy can be asked about on these operands."""
    checked = [s for s in SCALARS.values() if s.takes(dtype) and s.result != TARGET]
    return [s for s in checked if s.name not in ON_WORDS or dtype == i64]


def restricted(
    scalar: Scalar, arrays: tuple[np.ndarray, ...], dtype: DType
) -> tuple[np.ndarray, ...]:
    """Without what NumPy refuses or leaves to the platform."""
    a, b, c = arrays
    if dtype.kind == "i" and scalar.name == "power":
        b = np.where(b < 0, np.array(3, dtype.numpy), b)
    if scalar.name == "outside":
        b = np.maximum(b, 0)
    if scalar.name == "whole":
        a = np.clip(np.nan_to_num(a), -(2**62), 2**62)
    if scalar.name == "fma":
        a, b, c = (np.nan_to_num(each, posinf=2, neginf=-2) for each in (a, b, c))
    if dtype.kind == "c" and scalar.name in {"log", "power", "reciprocal", "divide"}:
        a, b = (np.where(each == 0, np.array(1 + 1j, dtype.numpy), each) for each in (a, b))
    return a, b, c


def by_operands(dtype: DType) -> list[tuple[tuple[np.ndarray, ...], list[Scalar]]]:
    """The primitives of a dtype, together with those that are asked about on the same operands."""
    found: dict[bytes, tuple[tuple[np.ndarray, ...], list[Scalar]]] = {}
    for scalar in applicable(dtype):
        given = restricted(scalar, operands(dtype), dtype)
        key = b"".join(each.tobytes() for each in given)
        found.setdefault(key, (given, []))[1].append(scalar)
    return list(found.values())


@DTYPE
def test_kernels_compute_every_primitive_as_numpy_does(dtype: DType) -> None:
    scalars = applicable(dtype)
    arrays = [restricted(scalar, operands(dtype), dtype) for scalar in scalars]
    results = [
        np.zeros(given[0].shape, scalar.result_dtype(dtype).numpy)
        for scalar, given in zip(scalars, arrays, strict=True)
    ]
    lines = ["from pyrelay.devices.compiler.vocabulary import *", ""]
    lines.append("def kernel(block, begin, end):")
    lines.append("    for i in range(begin, end):")
    for place, scalar in enumerate(scalars):
        # Every variable keeps one type, so each primitive has variables of its own.
        variables = [f"x{place}_{k}" for k in range(3)]
        for k, variable in enumerate(variables):
            value = f"load_{dtype.name}(param_i64(block, {4 * place + k + 1}), i)"
            condition = scalar.name.startswith("where") and k == 0
            lines.append(f"        {variable} = {f'boolean({value})' if condition else value}")
        value = scalar.kernel(dtype).format(*variables)
        short = scalar.result_dtype(dtype).name
        lines.append(f"        store_{short}(param_i64(block, {4 * place + 4}), i, {value})")
    lines += ["    return 0", ""]
    parameters = [
        each for given, out in zip(arrays, results, strict=True) for each in (*given, out)
    ]
    run("\n".join(lines), *parameters, ranges=[(0, results[0].size)])
    for scalar, given, computed in zip(scalars, arrays, results, strict=True):
        agree(scalar, computed, expected(scalar, given, dtype), dtype)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "power"])
def test_long_remainders_are_exact(name: str) -> None:
    rng = np.random.default_rng(1)
    given = rng.integers(-(2**63), 2**63, (3, 4000)) >> rng.integers(0, 63, (3, 4000))
    given[2, ::7] = -(2**63)
    found = np.zeros(4000, np.int64)
    lines = [
        f"from pyrelay.devices.compiler.vocabulary import {name}_remainder, load_i64, param_i64",
        "from pyrelay.devices.compiler.vocabulary import store_i64", "",
        "def kernel(block, begin, end):", "    for i in range(begin, end):",
        "        a = load_i64(param_i64(block, 1), i)",
        "        b = load_i64(param_i64(block, 2), i)",
        "        n = load_i64(param_i64(block, 3), i)",
        f"        store_i64(param_i64(block, 4), i, {name}_remainder(a, b, n))", "    return 0", "",
    ]
    run("\n".join(lines), *given, found, ranges=[(0, 4000)])
    np.testing.assert_array_equal(found, NUMPY[f"{name}_remainder"](*given))


@DTYPE
def test_casts_to_every_dtype_are_numpys_astype(dtype: DType) -> None:
    values, _, _ = operands(dtype)
    if dtype.kind in "fc":
        values = np.where(np.isfinite(values), values, np.ones(1, dtype.numpy))
    targets = HERE
    results = [np.zeros(values.shape, target.numpy) for target in targets]
    lines = ["from pyrelay.devices.compiler.vocabulary import *", ""]
    lines.append("def kernel(block, begin, end):")
    lines.append("    x = param_i64(block, 1)")
    lines.append("    for i in range(begin, end):")
    lines.append(f"        v = load_{dtype.name}(x, i)")
    for place, target in enumerate(targets):
        text = SCALARS["cast"].kernel(target).format("v")
        lines.append(f"        store_{target.name}(param_i64(block, {place + 2}), i, {text})")
    lines += ["    return 0", ""]
    run("\n".join(lines), values, *results, ranges=[(0, values.size)])
    for target, computed in zip(targets, results, strict=True):
        agrees_with_astype(values, computed, dtype, target)


def agrees_with_astype(
    values: np.ndarray, computed: np.ndarray, dtype: DType, target: DType
) -> None:
    if target.kind == "u" and dtype.kind in "fc":
        # A negative float has no unsigned value; NumPy's answer depends on the CPU.
        fits = values.real >= 0
        values, computed = values[fits], computed[fits]
    with np.errstate(all="ignore"):
        wanted = (values.real if target.kind not in "bc" else values).astype(target.numpy)
    _assert_same(computed, wanted, f"{dtype} to {target}")


def cuda_kernel(texts: Sequence[tuple[str, DType]], dtype: DType) -> str:
    """A kernel that stores one expression of `a`, `b` and `c` after another, a buffer for each."""
    places = [f"const {dtype.name} {x} = Buffer<const {dtype.name}>({x}s)[i];" for x in "abc"]
    outs = [f"Buffer<{out.name}> o{k}" for k, (_, out) in enumerate(texts)]
    ins = [f"Buffer<const {dtype.name}> {x}s" for x in "abc"]
    stores = [f"o{k}[i] = {text};" for k, (text, _) in enumerate(texts)]
    return "\n".join([
        'extern "C" __global__ void kernel(',
        "pyrelay_record *record, i64 launch, i64 first, i64 last,", ", ".join([*ins, *outs]), ") {",
        "for (i64 i = first + (i64)blockIdx.x * blockDim.x + threadIdx.x; i < last;",
        "     i += (i64)gridDim.x * blockDim.x) {", *places, *stores, "} }",
    ])  # fmt: skip


def spelled_in_cuda(scalar: Scalar, dtype: DType) -> str:
    first = "pyrelay_to<bool>::of(a)" if scalar.name.startswith("where") else "a"
    return scalar.cuda(dtype).format(first, "b", "c")


@needs_compiler
def test_cuda_spellings_of_every_primitive_agree_with_numpy() -> None:
    kernels, cases = [], []
    for dtype in HERE:
        for given, scalars in by_operands(dtype):
            kernels.append(cuda_kernel(
                [(spelled_in_cuda(s, dtype), s.result_dtype(dtype)) for s in scalars], dtype
            ))  # fmt: skip
            outs = [np.zeros(given[0].shape, s.result_dtype(dtype).numpy) for s in scalars]
            cases.append((given, outs, scalars, dtype))
    calls = [(*given, *outs) for given, outs, _, _ in cases]
    emulate(kernels, *calls, items=[call[0].size for call in calls])
    for given, outs, scalars, dtype in cases:
        for scalar, out in zip(scalars, outs, strict=True):
            agree(scalar, out, expected(scalar, given, dtype), dtype)


@needs_compiler
def test_cuda_casts_to_every_dtype_are_numpys_astype() -> None:
    targets = HERE
    kernels = [
        cuda_kernel([(SCALARS["cast"].cuda(t).format("a"), t) for t in targets], dtype)
        for dtype in targets
    ]
    calls = []
    for dtype in targets:
        values, _, _ = operands(dtype)
        if dtype.kind in "fc":
            values = np.where(np.isfinite(values), values, np.ones(1, dtype.numpy))
        results = [np.zeros(values.shape, target.numpy) for target in targets]
        calls.append((values, values, values, *results))
    emulate(kernels, *calls, items=[call[0].size for call in calls])
    for dtype, (values, _, _, *results) in zip(targets, calls, strict=True):
        for target, computed in zip(targets, results, strict=True):
            agrees_with_astype(values, computed, dtype, target)


def test_results_have_the_dtype_the_table_says() -> None:
    assert SCALARS["less"].result_dtype(f64) == bool_
    assert SCALARS["absolute"].result_dtype(DTYPES["c64"]) == DTYPES["f32"]
    assert SCALARS["make_complex"].result_dtype(f64) == DTYPES["c128"]
    assert SCALARS["add"].result_dtype(i64) == i64


def test_every_kernel_spelling_has_as_many_operands_as_its_arity() -> None:
    for scalar in SCALARS.values():
        for dtype in filter(scalar.takes, DTYPES.values()):
            text = scalar.kernel(dtype)
            used = {place for place in range(4) if f"{{{place}}}" in text}
            assert used == set(range(scalar.arity)), (scalar.name, text)
