"""Rows added at many indices: to zeros that are made beside, of all numbers of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.cuda_sorted_rows import MOST
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler

ON = "cuda_emulator"
pytestmark = needs_compiler
RNG = np.random.default_rng(5)


def picked(table: Any, i: Any, x: Any) -> Any:
    return (table[i] * x).sum()


of_picked = pyrelay.grad(picked, device=ON)


def expected(table: Any, i: Any, x: Any) -> Any:
    made = np.zeros_like(table)
    np.add.at(made, i, x)
    return made


def arguments(count: int, shape: tuple[int, ...], dtype: str) -> tuple[Any, ...]:
    # Sums of whole numbers are the same in any order.
    i = RNG.integers(-shape[0], shape[0], count)
    return np.ones(shape, dtype), i, RNG.integers(0, 3, (count, *shape[1:])).astype(dtype)


@pytest.mark.parametrize("count", [0, 4095, 4096, MOST + 1])
def test_gradients_of_rows_picked_are_added_to_zeros_however_many_there_are(count: int) -> None:
    args = arguments(count, (7000, 3), "f4")
    np.testing.assert_array_equal(of_picked(*args), expected(*args))


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (9001, 2), (2, 140)])
def test_zeros_of_all_sizes_are_stored(shape: tuple[int, ...]) -> None:
    args = arguments(4100, shape, "f8" if shape[0] == 3 else "f4")
    np.testing.assert_array_equal(of_picked(*args), expected(*args))


def test_zeros_are_no_launch_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    function = pyrelay.jit(filled, device=ON)
    args = arguments(4100, (50, 3), "f4")
    found = []
    for value in (np.float32(0), None):
        before = driver.launched
        function = pyrelay.jit(zeros if value is None else filled, device=ON)
        given = args if value is None else (*args, value)
        np.testing.assert_array_equal(function(*given), expected(*args))
        found.append(driver.launched - before)
    assert found[0] - found[1] == 1


def zeros(table: Any, i: Any, x: Any) -> Any:
    made = np.zeros_like(table)
    np.add.at(made, i, x)
    return made


def filled(table: Any, i: Any, x: Any, value: Any) -> Any:
    made = np.full_like(table, value)
    np.add.at(made, i, x)
    return made


def test_sums_begin_with_a_zero_that_is_positive() -> None:
    table, i = np.ones(9, "f4"), np.arange(4200) % 7
    x = np.full(4200, -0.0, "f4")
    assert not np.signbit(pyrelay.jit(zeros, device=ON)(table, i, x)).any()


def test_zeros_that_something_else_reads_are_stored_before() -> None:
    def function(table: Any, i: Any, x: Any) -> Any:
        made = np.zeros_like(table)
        other = made + 1
        kept = made.copy()
        np.add.at(made, i, x)
        np.add.at(kept, i, x)
        np.add.at(made, i, x)
        return made, other, kept

    args = arguments(4100, (50, 3), "f4")
    for mine, wanted in zip(pyrelay.jit(function, device=ON)(*args), function(*args), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("dtype", ["f2", "c8", "?", "i2"])
def test_zeros_of_types_that_are_not_counted(dtype: str) -> None:
    args = arguments(4100, (500, 2), dtype)
    np.testing.assert_array_equal(pyrelay.jit(zeros, device=ON)(*args), expected(*args))


def test_an_index_outside_is_told_of_a_gradient() -> None:
    table, i, x = arguments(4100, (50, 3), "f4")
    i[70] = 50
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 50"):
        of_picked(table, i, x)


def squares(table: Any, i: Any) -> Any:
    return (table[i] * table[i]).sum()


def halved(table: Any, i: Any, x: Any) -> Any:
    np.add.at(table, i, x / 2)
    return table


def own_rows(table: Any, i: Any, x: Any) -> Any:
    np.add.at(table, i, table[i % 5] * 2)
    return table


def kept(table: Any, i: Any, x: Any) -> Any:
    twice = x * 2
    np.add.at(table, i, twice)
    return twice


def elsewhere(table: Any, i: Any, x: Any) -> Any:
    np.add.at(table, i, x[i // 2] * 2)
    return table


def texts(function: Any, *args: Any) -> list[str]:
    module = lowered(pyrelay.jit(function)._specialised(args, {}).module, "fuse", on=ON)
    made = plan_code(plan(module, TARGET))
    return [text.source for text in (*made.texts, *made.late)]


@pytest.mark.parametrize("count", [3, 4100, MOST + 1])
@pytest.mark.parametrize("shape", [(90,), (90, 3), (9, 300)])
def test_gradients_compute_what_they_add(count: int, shape: tuple[int, ...]) -> None:
    table = RNG.integers(0, 3, shape).astype("f4")
    i = RNG.integers(-shape[0], shape[0], count)
    wanted = expected(table, i, 2 * table[i])
    np.testing.assert_array_equal(pyrelay.grad(squares, device=ON)(table, i), wanted)
    assert any("found(" in text for text in texts(pyrelay.grad(squares), table, i))


@pytest.mark.parametrize("function", [halved, own_rows, kept, elsewhere])
@pytest.mark.parametrize("dtype", ["f2", "c16"])
def test_what_is_added_is_read_before_anything_is(function: Any, dtype: str) -> None:
    table, i, x = arguments(4100, (50, 3), dtype)
    given, wanted = table.copy(), table.copy()
    found = pyrelay.jit(function, device=ON)(given, i % 50, x)
    np.testing.assert_array_equal(found, function(wanted, i % 50, x))
    np.testing.assert_array_equal(given, wanted)


def test_rows_that_something_else_reads_or_that_may_raise_are_made_before() -> None:
    args = arguments(4100, (50, 3), "f4")
    fused = {f: any("found(" in t for t in texts(f, *args)) for f in (halved, kept, elsewhere)}
    assert fused == {halved: True, kept: False, elsewhere: False}


def test_indices_of_several_axes_compute_what_they_add() -> None:
    def function(table: Any, i: Any, x: Any) -> Any:
        return (np.exp2(table[i]) * x).sum()

    table, i = RNG.integers(0, 3, (30, 2)).astype("f8"), RNG.integers(-30, 30, (70, 60))
    x = RNG.integers(0, 3, (70, 60, 2)).astype("f8")
    mine = pyrelay.grad(function, device=ON)(table, i, x)
    wanted = expected(table, i, np.exp2(table[i]) * x * np.log(2))
    np.testing.assert_allclose(mine, wanted, rtol=1e-12)


def test_an_index_outside_is_told_at_its_line_whoever_computes() -> None:
    table, i, _ = arguments(4100, (50, 3), "f4")
    i[[70, 900]] = 50, -51
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0") as many:
        pyrelay.grad(squares, device=ON)(table, i)
    with pytest.raises(IndexError) as few:
        pyrelay.grad(squares, device=ON)(table, i[:100])
    assert str(many.value) == str(few.value)
