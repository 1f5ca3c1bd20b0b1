"""Memory access, casts and the kernel language itself: values, vectorisation, refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pyrelay.devices.compiler.kernel_compiler import kernel_object, optimised_module
from pyrelay.devices.compiler.kernel_language import KernelError
from tests.devices.running_kernels import (
    SHORT_NAMES,
    elementwise,
    elementwise_source,
    kernel_assembly,
    run,
)

DTYPES = pytest.mark.parametrize(
    "dtype", list(SHORT_NAMES), ids=[SHORT_NAMES[dtype] for dtype in SHORT_NAMES]
)


def kernel(*body: str, parameters: int = 0) -> str:
    """A kernel of these lines; its parameters are the integers p1, p2, ..."""
    lines = ["from pyrelay.devices.compiler.vocabulary import *", ""]
    lines.append("def kernel(block, begin, end):")
    lines += [f"    p{k} = param_i64(block, {k})" for k in range(1, parameters + 1)]
    return "\n".join([*lines, *(f"    {line}" for line in body), "    return 0", ""])


def values(dtype: np.dtype[Any], count: int = 37) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype) if dtype.kind != "b" else (
        rng.integers(0, 2, count).astype(dtype)
    )  # fmt: skip


def widest(text: str) -> bool:
    """Whether assembly uses this CPU's vectors."""
    return bool(re.search(r"%[yz]mm\d", text))


@DTYPES
def test_elements_are_loaded_and_stored_bit_for_bit(dtype: np.dtype[Any]) -> None:
    short = SHORT_NAMES[dtype]
    x = values(dtype)
    for ordered in ("", "ordered_"):
        out = np.zeros_like(x)
        body = [
            "for i in range(begin, end):",
            f"    store_{ordered}{short}(p2, i, load_{ordered}{short}(p1, i))",
        ]
        run(kernel(*body, parameters=2), x, out, ranges=[(0, 10), (10, x.size)])
        assert out.tobytes() == x.tobytes()


@DTYPES
def test_scalars_travel_through_the_block_and_out_through_slots(dtype: np.dtype[Any]) -> None:
    short = SHORT_NAMES[dtype]
    value = values(dtype)[5]
    slot = np.full(3, -1, np.int64)
    source = kernel(f"store_slot_{short}(p1, 1, param_{short}(block, 2))", parameters=1)
    run(source, slot, value, ranges=[(0, 1)])
    assert slot[0] == -1
    assert slot[1:].tobytes()[: dtype.itemsize] == value.tobytes()
    if dtype.kind in "biu":
        assert slot[1] == np.array(value).astype(np.int64)


@DTYPES
def test_a_local_array_keeps_what_is_stored_in_it(dtype: np.dtype[Any]) -> None:
    short = SHORT_NAMES[dtype]
    x = values(dtype, 16)
    out = np.zeros_like(x)
    body = [
        f"local = local_{short}(16)",
        "for i in range(16):",
        f"    store_ordered_{short}(local, 15 - i, load_{short}(p1, i))",
        "for i in range(16):",
        f"    store_{short}(p2, i, load_ordered_{short}(local, i))",
    ]
    run(kernel(*body, parameters=2), x, out, ranges=[(0, 1)])
    assert out.tobytes() == x[::-1].tobytes()


@pytest.mark.parametrize("short", ["f32", "f64", "i8", "i32", "i64", "c64", "bool"])
def test_an_elementwise_loop_becomes_vector_code_without_alias_checks(short: str) -> None:
    expression = "x0 & x1" if short == "bool" else "x0 + x1"
    text = kernel_assembly(elementwise_source(expression, [short, short], short))
    assert widest(text)


def test_a_loop_over_many_buffers_becomes_vector_code() -> None:
    expression = " + ".join(f"x{place}" for place in range(14))
    assert widest(kernel_assembly(elementwise_source(expression, ["f32"] * 14, "f32")))


def test_a_buffer_may_be_read_and_overwritten_in_place() -> None:
    x = np.arange(1000, dtype=np.float32)
    body = [
        "for i in range(begin, end):",
        "    store_f32(p1, i, load_f32(p1, i) * load_f32(p1, i))",
    ]
    run(kernel(*body, parameters=1), x, ranges=[(0, 1000)])
    np.testing.assert_array_equal(x, np.arange(1000, dtype=np.float32) ** 2)


@pytest.mark.parametrize("rows", [False, True])
def test_rows_of_a_few_elements_become_vectors_where_the_text_says_so(rows: bool) -> None:
    source = kernel(
        "x, y = param_apart(block, 1), param_apart(block, 2)",
        "for i in range(begin, end):", "    for k in range(4):",
        "        store_ordered_f32(y, k, load_ordered_f32(y, k) / load_ordered_f32(x, i * 4 + k))",
    )  # fmt: skip
    text = kernel_assembly(f"SHORT_ROWS = {rows}\n{source}")
    assert bool(re.search(r"\bv?divps|fdiv\s+v\d+\.4s", text)) is rows


def test_ordered_accesses_keep_a_recurrence() -> None:
    x = np.ones(1000)
    body = [
        "for i in range(1, end):",
        "    store_ordered_f64(p1, i, load_ordered_f64(p1, i - 1) + load_ordered_f64(p1, i))",
    ]
    run(kernel(*body, parameters=1), x, ranges=[(0, 1000)])
    np.testing.assert_array_equal(x, np.arange(1, 1001))


STENCIL = (
    "a, b = param_{0}(block, 1), param_{0}(block, 2)",
    "for i in range(end):",
    "    for k in range(begin, end):",
    "        store_ordered_f64(b, k, load_ordered_f64(a, i) + load_ordered_f64(a, i + k))",
)


@pytest.mark.parametrize(("word", "checked"), [("i64", True), ("apart", False)])
def test_arrays_that_lie_apart_are_not_compared(word: str, checked: bool) -> None:
    source = kernel(*(line.format(word) for line in STENCIL))
    x, y = np.arange(16.0), np.zeros(8)
    run(source, x, y, ranges=[(0, 8)])
    np.testing.assert_array_equal(y, 7 + np.arange(7, 15))
    assert widest(kernel_assembly(source))
    assert ("conflict" in str(optimised_module(source, "test"))) is checked


REDUCTION = (
    "s = f32(0.0)",
    "for i in range(begin, end):",
    "    s = {}",
    "store_slot_f32(p2, 0, s)",
)


def test_a_reassociated_sum_becomes_vector_code_and_a_plain_one_does_not() -> None:
    lines = [line.format("add_reassociated(s, load_f32(p1, i))") for line in REDUCTION]
    assert re.search(r"vaddps.*%[yz]mm", kernel_assembly(kernel(*lines, parameters=2)))
    lines = [line.format("s + load_f32(p1, i)") for line in REDUCTION]
    assert not re.search(r"vaddps.*%[yz]mm", kernel_assembly(kernel(*lines, parameters=2)))


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_a_reassociated_sum_assumes_nothing_about_nan_and_infinity(poison: float) -> None:
    lines = [line.format("add_reassociated(s, load_f32(p1, i))") for line in REDUCTION]
    x = np.ones(333, np.float32)
    x[100] = poison
    out = np.zeros(2, np.float32)
    run(kernel(*lines, parameters=2), x, out, ranges=[(0, 333)])
    np.testing.assert_array_equal(out[0], np.float32(poison))


@pytest.mark.parametrize("name", ["minimum", "maximum"])
@pytest.mark.parametrize("short", ["f32", "i32"])
def test_a_minimum_or_maximum_over_a_loop_becomes_vector_code(name: str, short: str) -> None:
    body = [
        f"s = load_{short}(p1, 0)",
        "for i in range(begin, end):",
        f"    s = {name}(s, load_{short}(p1, i))",
        f"store_slot_{short}(p2, 0, s)",
    ]
    source = kernel(*body, parameters=2)
    assert widest(kernel_assembly(source))
    dtype = np.float32 if short == "f32" else np.int32
    x = np.random.default_rng(0).integers(-1000, 1000, 999).astype(dtype)
    out = np.zeros(2, dtype)
    run(source, x, out, ranges=[(0, 999)])
    assert out[0] == getattr(np, name).reduce(x)
    if short == "f32":
        x[500] = np.nan
        run(source, x, out, ranges=[(0, 999)])
        assert np.isnan(out[0])


@pytest.mark.parametrize("name", ["minimum", "maximum"])
@pytest.mark.parametrize("short", ["f32", "f64"])
@pytest.mark.parametrize("other", ["inf", "nan"])
def test_an_extreme_of_masked_elements_becomes_vector_code(
    name: str, short: str, other: str
) -> None:
    number = f"{short}({'-' * (name == 'maximum')}{other})"
    body = [
        f"s = load_{short}(p1, 0)",
        "for i in range(begin, end):",
        f"    x = load_{short}(p1, i)",
        f"    s = {name}(s, where(x < {short}(5.0), x, {number}))",
        f"store_slot_{short}(p2, 0, s)",
    ]
    given = "from pyrelay.devices.compiler.vocabulary import *"
    source = kernel(*body, parameters=2).replace(given, f"{given}\nfrom math import {other}")
    assert widest(kernel_assembly(source))
    dtype = np.float32 if short == "f32" else np.float64
    x = np.random.default_rng(0).integers(-1000, 1000, 999).astype(dtype)
    out = np.zeros(2, x.dtype)
    x[0] = 3.0
    run(source, x, out, ranges=[(0, 999)])
    wanted = getattr(np, name).reduce(x[x < 5]) if other == "inf" else np.nan
    np.testing.assert_array_equal(out[0], wanted)


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ("5", [0, 1, 2, 3, 4]),
        ("2, 5", [2, 3, 4]),
        ("5, 2", []),
        ("0, 10, 4", [0, 4, 8]),
        ("5, 0, -2", [5, 3, 1]),
        ("9223372036854775805, 9223372036854775807", [2**63 - 3, 2**63 - 2]),
    ],
)
def test_range_counts_as_in_python(bounds: str, wanted: list[int]) -> None:
    out = np.zeros(8, np.int64)
    body = [
        "n = 0",
        f"for i in range({bounds}):",
        "    store_ordered_i64(p1, n, i)",
        "    n += 1",
        "store_ordered_i64(p1, 7, n)",
    ]
    run(kernel(*body, parameters=1), out, ranges=[(0, 1)])
    assert out[7] == len(wanted)
    assert out[: len(wanted)].tolist() == wanted


def test_loops_conditions_and_early_exits_work_as_in_python() -> None:
    body = [
        "n = 0",
        "i = begin",
        "while True:",
        "    i += 1",
        "    if i % 3 == 0 and not i % 2 == 0:",
        "        continue",
        "    if i > 20 or n < 0:",
        "        break",
        "    n = n + i if i < 10 else n - 1",
        "store_slot_i64(p1, 0, n)",
    ]
    out = np.zeros(1, np.int64)
    run(kernel(*body, parameters=1), out, ranges=[(0, 1)])
    n = 0
    for i in range(1, 21):
        if i % 3 == 0 and i % 2 != 0:
            continue
        n = n + i if i < 10 else n - 1
    assert out[0] == n


def test_a_status_other_than_zero_reaches_the_caller() -> None:
    source = "def kernel(block, begin, end):\n    return 1 if end > 5 else 0\n"
    run(source, ranges=[(0, 5)])
    with pytest.raises(AssertionError):
        run(source, ranges=[(0, 6)])


def test_vectors_outlive_a_look_for_ctrl_c() -> None:
    x, out, scales = np.linspace(-1, 1, 60), np.zeros((4, 60)), np.array([2.0, 3.0, 5.0, 7.0])
    body = (
        "x, o, scales = param_apart(block, 1), param_apart(block, 2), param_apart(block, 3)",
        "a, b = load_f64(scales, 0), load_f64(scales, 1)",
        "c, d = load_f64(scales, 2), load_f64(scales, 3)",
        "for k in range(end):",
        "    status = poll(block)",
        "    if status != 0:",
        "        return status",
        "    for i in range(15):",
        "        for j in range(4):",
        "            at = k * 60 + i * 4 + j",
        "            v = load_ordered_f64(x, i * 4 + j)",
        "            store_ordered_f64(o, at, ((v * a + b) * v + c) * v + d)",
    )
    run(kernel(*body), x, out, scales, ranges=[(0, 4)])
    np.testing.assert_allclose(out, np.broadcast_to(((x * 2 + 3) * x + 5) * x + 7, (4, 60)))


def test_complex_numbers_are_made_from_parts() -> None:
    x = np.linspace(-1, 1, 20)
    out = elementwise("c128(x0, f64(2.0)) * c128(x0, -x0)", x, result=np.complex128)
    np.testing.assert_allclose(out, (x + 2j) * (x - 1j * x))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_integer_overflow_is_noticed(name: str) -> None:
    edges = np.array([0, 1, -1, 2, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63)], np.int64)
    x, y = (part.ravel().copy() for part in np.meshgrid(edges, edges))
    noticed = elementwise(f"{name}_overflows(x0, x1)", x, y, result=bool)
    operation = {"add": int.__add__, "subtract": int.__sub__, "multiply": int.__mul__}[name]
    exact = [operation(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert noticed.tolist() == [not -(2**63) <= value < 2**63 for value in exact]


@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
@pytest.mark.parametrize("source", [np.float32, np.float64], ids=["f32", "f64"])
def test_floats_that_fit_become_the_integers_towards_zero(source: Any, target: str) -> None:
    dtype = np.dtype({v: k for k, v in SHORT_NAMES.items()}[target])
    info = np.iinfo(dtype)
    below = np.nextafter(np.array(float(info.max) + 1, source), source(0))
    numbers = [0.0, -0.0, 0.9, 1.5, 100.7, float(below)]
    if info.min < 0:
        numbers += [-0.9, -1.5, float(info.min)]
    x = np.array(numbers, source)
    out = elementwise(f"{target}(x0)", x, result=dtype)
    assert out.tolist() == [int(value) for value in x.tolist()]


@pytest.mark.parametrize("source", [np.float32, np.float64], ids=["f32", "f64"])
def test_nan_and_infinity_become_some_integer(source: Any) -> None:
    x = np.array([np.nan, np.inf, -np.inf], source)
    out = elementwise("i64(x0)", x, result=np.int64)
    assert out.tolist() == [-(2**63)] * 3


@pytest.mark.parametrize(
    "line",
    [
        "x = f32(1.0) + f64(1.0)",
        "x = f32(1.0) + 1",
        "store_f32(begin, 0, 1.0)",
        "x = begin / end",
        "x = [1, 2]",
        "x = len(block)",
        "x = exp(begin)",
        "x = boolean(1) + boolean(0)",
    ],
)
def test_what_is_not_in_the_kernel_language_is_refused(line: str) -> None:
    with pytest.raises(KernelError):
        kernel_object(kernel(line), "test")


def test_a_variable_of_two_types_is_refused() -> None:
    body = ["x = f32(1.0)", "if end > 1:", "    x = f64(1.0)", "store_f64(begin, 0, x)"]
    with pytest.raises(KernelError):
        kernel_object(kernel(*body), "test")
