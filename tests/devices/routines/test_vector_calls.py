"""Functions with a quick way for most numbers: all positions, large numbers among small ones."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.devices.running_kernels import elementwise, elementwise_source, kernel_assembly

FUNCTIONS = pytest.mark.parametrize("name", ["sin", "cos", "tan", "near_sin"])


@FUNCTIONS
def test_a_result_does_not_depend_on_where_its_number_lies(name: str) -> None:
    rng = np.random.default_rng(0)
    some = np.concatenate([rng.standard_normal(40) * 10, [1e5, -1e5, 100001, 3e7, -1e30, 3e38]])
    some = some.astype(np.float32)
    alone = np.array([elementwise(f"{name}(x0)", some[k : k + 1], result=np.float32)[0]
                      for k in range(len(some))])  # fmt: skip
    order = np.concatenate([rng.permutation(len(some)) for _ in range(8)])
    together = elementwise(f"{name}(x0)", some[order], result=np.float32)
    np.testing.assert_array_equal(together, alone[order])
    true = getattr(np, name.removeprefix("near_"))(some.astype(np.float64))
    np.testing.assert_allclose(alone, true, rtol=3e-7)


@FUNCTIONS
def test_infinities_among_numbers_spoil_no_neighbour(name: str) -> None:
    x = np.linspace(-50, 50, 200).astype(np.float32)
    expected = elementwise(f"{name}(x0)", x, result=np.float32)
    wild = np.arange(200) % 7 == 3
    x[wild] = np.resize(np.array([np.inf, -np.inf, np.nan], np.float32), wild.sum())
    found = elementwise(f"{name}(x0)", x, result=np.float32)
    np.testing.assert_array_equal(np.isnan(found), wild)
    np.testing.assert_array_equal(found[~wild], expected[~wild])


def test_the_slow_way_is_a_call_behind_a_branch_and_the_quick_one_is_in_line() -> None:
    text = kernel_assembly(elementwise_source("sin(x0) * cos(x1)", ["f32", "f32"], "f32"))
    calls = {*re.findall(r"\bcall\w*\s+(\w+)", text)}
    assert calls
    assert all("_far" in each for each in calls)


def test_functions_of_one_number_of_two_kinds_are_called_in_one_loop() -> None:
    x = np.linspace(-3, 3, 101).astype(np.float32)
    y = np.linspace(-1, 1, 101)
    found = elementwise("f64(sin(x0)) + x1", x, y, result=np.float64)
    np.testing.assert_allclose(found, np.sin(x.astype(np.float64)) + y, rtol=1e-6, atol=1e-7)


def test_the_upper_half_of_a_product_is_that_of_all_its_bits() -> None:
    """By a division whose quotients are such halves."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**64, 1003, dtype=np.uint64)
    x[:6] = 0, 1, 2**32 - 1, 2**32, 2**64 - 2**32, 2**64 - 1
    for divisor in (3, 2**32 - 1, 2**32 + 1, 2**63 + 1, 2**64 - 1):
        found = elementwise(f"floor_divide(x0, u64({divisor}))", x, result=np.uint64)
        assert found.tolist() == [each // divisor for each in x.tolist()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_of_floats_are_exact(dtype: type[np.floating]) -> None:
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    ends = [0, -0.0, 1, -1, 0.1, -7, info.tiny, info.smallest_subnormal, info.max, -info.max]
    ends = np.array([*ends, np.inf, -np.inf, np.nan, 2.0**24, 2.0**53], dtype)
    x, y = (each.ravel() for each in np.meshgrid(ends, ends))
    some, by = ((rng.standard_normal(999) * 10.0 ** rng.integers(-6, most, 999)).astype(dtype)
                for most in (12, 6))  # fmt: skip
    whole = (rng.integers(-(10**6), 10**6, 999).astype(dtype) * by).astype(dtype)
    x = np.concatenate([x, some, whole, np.nextafter(whole, dtype(0)), np.nextafter(whole, some)])
    y = np.concatenate([y, *[by] * 4])
    with np.errstate(all="ignore"):
        for text, given, wanted in [
            ("remainder(x0, x1)", (x, y), x % y), ("floor_divide(x0, x1)", (x, y), x // y),
            ("remainder(x0, 3.0)", (x,), x % dtype(3)), ("remainder(x0, 4.0)", (x,), x % dtype(4)),
            ("floor_divide(x0, 1.0)", (x,), x // dtype(1)),
            ("remainder(x0, 0.5)", (x,), x % dtype(0.5)),
        ]:
            named = text if dtype is np.float64 else text.replace(".0)", ".0))").replace(
                "0.5)", "0.5))").replace(", 3", ", f32(3").replace(", 4", ", f32(4").replace(
                ", 1", ", f32(1").replace(", 0", ", f32(0")
            found = elementwise(named, *given, result=dtype)
            np.testing.assert_array_equal(found, wanted)
            number = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(wanted[number]))


def test_remainders_of_floats_are_vectors_but_for_long_quotients() -> None:
    text = kernel_assembly(elementwise_source("remainder(x0, x1)", ["f64", "f64"], "f64"))
    calls = {*re.findall(r"\bcall\w*\s+(\w+)", text)}
    assert all("_far" in each or each.startswith("fmod") for each in calls)
    assert "vdivpd" in text or "fdiv" in text
