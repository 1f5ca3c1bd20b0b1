"""Bisection in kernels: the place among sorted numbers, each looked for by a thread of its own."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import pipeline
from pyrelay.devices import cuda_emulator
from tests.devices.gpu.test_graphs import Sized
from tests.devices.running_kernels import kernel_assembly, needs_compiler


def places(a: Any, v: Any) -> Any:
    return np.searchsorted(a, v), np.searchsorted(a, v, side="right")


ANYWHERE = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda_emulator", marks=[
    needs_compiler
])])  # fmt: skip


@ANYWHERE
def test_arrays_of_any_length_are_searched_to_both_ends(device: str) -> None:
    function = pyrelay.jit(places, device=device)
    for n in (*range(18), 31, 32, 33, 1000):
        a = np.arange(n) // 2 * 2.0  # each number twice
        v = np.append(np.arange(-1.0, n + 2.0), [np.nan, np.inf, -np.inf])
        for mine, theirs in zip(function(a, v), places(a, v), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_arrays_of_two_axes_are_looked_for() -> None:
    a, v = np.sort(np.sin(np.arange(30.0))), np.cos(np.arange(60.0)).reshape(12, 5)
    for mine, theirs in zip(pyrelay.jit(places)(a, v), places(a, v), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_numbers_that_rise_fall_and_jump_are_found() -> None:
    function, rng = pyrelay.jit(places), np.random.default_rng(0)
    for n in (9, 30, 100, 700):
        a = np.sort(rng.integers(0, n, n)) * 1.0
        dense, wide = np.arange(-2.0, n + 2.0, 0.25), np.arange(-9.0, n + 9.0, 5.0)
        v = np.concatenate([
            dense, wide, dense[::-1], rng.permutation(dense), dense, np.full(30, np.nan), wide,
            wide[::-1], np.repeat(wide, 20), np.tile([a[0], a[-1]], 20),
        ])
        for mine, theirs in zip(function(a, v), places(a, v), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "u8", "i4", "f2", "f4"])
def test_every_type_of_numbers_is_searched(dtype: str) -> None:
    rng = np.random.default_rng(3)
    a, v = (rng.integers(0, 2 if dtype == "?" else 90, 40).astype(dtype) for _ in range(2))
    a.sort()
    for mine, theirs in zip(pyrelay.jit(places)(a, v[::3]), places(a, v[::3]), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@needs_compiler
@pytest.mark.parametrize("function", [
    lambda a, v: np.searchsorted(a, v) + 1,
    *(pytest.param(function, marks=pytest.mark.slow) for function in (
        lambda a, v: np.searchsorted(np.exp(a), np.exp(v.reshape(10, 30)), side="right"),
        lambda a, v: np.digitize(v, a),
        lambda a, v: np.interp(v, a, a * a),
        lambda a, v: np.isin(v, a),
    )),
])  # fmt: skip
def test_what_is_looked_for_is_the_parallel_axis(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Sized()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    a, v = np.linspace(-1.0, 1.0, 7), np.random.default_rng(0).normal(size=300)
    np.testing.assert_allclose(pyrelay.jit(function, device="cuda_emulator")(a, v), function(a, v))
    # Nothing but what is done to `a` and to single numbers runs over fewer items.
    assert max(driver.items) == 300 or driver.items[-1] == 10
    assert set(driver.items) <= {300, 10, 7, 6, 1}


def test_a_search_in_a_loop_of_numbers_is_part_of_the_loop() -> None:
    def draws(sums: Any, u: Any) -> Any:
        total = 0
        for k in range(u.shape[0]):
            total += np.searchsorted(sums, u[k], side="right") * k
        return total

    sums, u = np.cumsum([0.2, 0.3, 0.5]), np.random.default_rng(1).uniform(size=50)
    function = pyrelay.jit(draws)
    assert function(sums, u) == draws(sums, u)
    spec = function._specialised((sums, u), {})
    assert pipeline.launches(pipeline.planned(spec, pipeline.lowered(spec.module, "fuse"))) == 1


def test_elements_look_first_where_the_one_before_lay() -> None:
    function = pyrelay.jit(places)
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 9, 10, 17, 40, 300):
        a = np.sort(rng.integers(0, 2 * n, n)).astype(float)
        a[n - n // 5 :] = np.nan
        v = np.append(rng.integers(-2, 2 * n + 2, 200).astype(float), [np.nan, np.inf, -np.inf])
        walk = np.cumsum(rng.integers(-9, 10, 200)) % (2.0 * n)
        ends = np.append(np.full(40, 3.0 * n), [-3.0, n / 2, *np.full(40, 3.0 * n)])
        for each in (v, np.sort(v), np.sort(v)[::-1].copy(), walk, v[:0], np.sort(ends), ends):
            for mine, theirs in zip(function(a, each), places(a, each), strict=True):
                np.testing.assert_array_equal(mine, theirs)
    code = str(function.code(a, v))
    before, _ = re.split(r"for i\d in range\(begin, end\)", code)
    assert "v0 = 0\n" in before, "the place before is kept from element to element"


def test_places_among_numbers_at_equal_distances_are_computed() -> None:
    function, rng = pyrelay.jit(places), np.random.default_rng(5)
    even = np.linspace(-3.0, 2.0, 401)
    moved, tiny = even.copy(), np.arange(60) * 5e-324
    moved[17] = moved[18]
    ends = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.7e308, -1.7e308]
    for a in (even, moved, tiny, np.arange(90.0), (np.arange(40) - 20) * 8e306, even[::25]):
        near = np.concatenate([a, np.nextafter(a, -np.inf), np.nextafter(a, np.inf), ends])
        for v in (rng.permutation(near), rng.uniform(-4, 4, 300), near):
            for mine, theirs in zip(function(a, v), places(a, v), strict=True):
                np.testing.assert_array_equal(mine, theirs)
    whole = np.arange(-50, 70, 3)
    v = rng.permutation(np.arange(-60, 90))
    for mine, theirs in zip(function(whole, v), places(whole, v), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("function", [
    lambda v: places(np.cumsum(v), v), lambda v: np.histogram(v, bins=np.arange(1000)),
])
def test_steps_are_chosen_without_branches(function: Any) -> None:
    code = str(pyrelay.jit(function).code(np.arange(1000) * 7919 % 1000))
    (kernel,) = re.findall(r"def \w*search\w*(\(.*?\n\n)\n", code, re.DOTALL)
    vocabulary = "from pyrelay.devices.compiler.vocabulary import *\n"
    text = kernel_assembly(f"{vocabulary}def kernel{kernel}")
    asked = r"\tcmpq\t.*\(%\w+,%\w+,8\).*\n"  # of an element at a computed place
    assert not re.search(asked + r"\tj", text), "a branch that is guessed wrong at every turn"
