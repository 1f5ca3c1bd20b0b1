"""Long lines scanned in one pass: tiles that wait for those before them, groups, types, orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.cuda_emulator import INTERRUPTED, EmulatorDriver
from pyrelay.devices.gpu import cuda_one_pass_scans, cuda_scans
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.driver import Text
from pyrelay.ir.types import from_numpy
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler, words
from tests.infer.running import inferred

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of few tiles, so that an emulator has time for several."""
    monkeypatch.setattr(cuda_one_pass_scans, "NEAR", 3)
    monkeypatch.setattr(cuda_one_pass_scans, "FAR", 2)
    monkeypatch.setattr(cuda_one_pass_scans, "LEAST", 1 << 15)


def once(name: str, x: Any, reverse: int = 0, turns: int = 0) -> Any:
    """The lines of `x`, scanned by the kernel."""
    kernel = cuda_scans.scan(name, from_numpy(x.dtype), True).once
    assert kernel is not None
    lines, length = x.shape
    tiles = -(-length // kernel.tile)
    groups = -(-tiles // kernel.group)
    told = lines * (tiles + groups + -(-groups // kernel.larger)) * kernel.words
    y, memory = np.zeros_like(x), np.zeros(kernel.head + told, "u8")
    driver, record = EmulatorDriver(), np.zeros(21, np.int64)
    driver.watched, driver.turns = turns > 0, turns
    (function,) = driver.load([Text(kernel.source, ())])
    for each in (record, x, memory, y):
        driver.sizes[each.ctypes.data] = each.nbytes
    items = lines * tiles
    given = words(record, 0, 0, items, x, memory, y, lines, length, reverse)
    driver.launch(function, items, given, 0)
    assert not record.any()
    return y


def assert_scanned(name: str, x: Any, ufunc: Any) -> None:
    for reverse in (0, 1):
        turned = x[:, :: -1 if reverse else 1]
        expected = ufunc.accumulate(turned, axis=1, dtype=x.dtype)[:, :: -1 if reverse else 1]
        np.testing.assert_array_equal(once(name, x, reverse), expected)


@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_tiles_are_joined_by_groups_and_by_larger_ones(dtype: str) -> None:
    """Lines of fifteen tiles, that is of five groups; elements before the first whole pack."""
    length = 14 * (16384 // np.dtype(dtype).itemsize) + 5
    x = np.random.default_rng(0).integers(-9, 9, (2, length)).astype(dtype)
    assert_scanned("cumsum", x, np.add)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "u1", "i4", "c16", "c8"])
def test_tiles_of_every_size_of_elements(dtype: str) -> None:
    x = np.random.default_rng(1).integers(0, 9, (3, 9001)).astype(dtype)
    assert_scanned("cumsum", x, np.add)
    if x.dtype.kind != "c":
        assert_scanned("running_maximum", x, np.maximum)


def test_sums_have_the_same_bits_whichever_tile_is_first() -> None:
    x = np.random.default_rng(2).normal(size=(1, 33000)).astype("f4")
    first = once("cumsum", x)
    np.testing.assert_allclose(first, x.cumsum(axis=1, dtype="f8"), rtol=1e-4, atol=1e-4)
    for turns in (1, INTERRUPTED, INTERRUPTED + 1):
        assert once("cumsum", x, turns=turns).tobytes() == first.tobytes()


def test_zeros_keep_their_sign_over_tiles() -> None:
    x = np.full((1, 9000), -0.0, "f4")
    assert np.signbit(once("cumsum", x)).all()
    x[0, 8000] = np.nan
    assert np.isnan(once("running_maximum", x)[0, 8000:]).all()


def test_long_lines_take_one_launch_and_short_or_many_ones_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    function = pyrelay.jit(lambda x: np.cumsum(x, axis=1), device="cuda_emulator")
    counts = []
    for shape in ((1, 1000), (1, 5000), (1, 9000), (2, 4500), (512, 64)):
        x, before = np.ones(shape, "f4"), driver.launched
        np.testing.assert_array_equal(function(x), np.cumsum(x, axis=1))
        counts.append(driver.launched - before)
    assert counts == [1, 2, 1, 1, 1]


def test_scans_of_a_loop_take_two_passes() -> None:
    """What a loop's kernel does for each round is small."""

    def rounds(x: Any) -> Any:
        for _ in range(2):
            x = np.cumsum(x)
        return x

    names = []
    for function in (np.cumsum, rounds):
        module = lowered(inferred(function, (np.ones(9),)).module, "fuse", on="cuda_emulator")
        names.append([kernel.name for kernel in plan(module, TARGET).kernels])
    assert [each.count("cumsum") for each in names] == [3, 2]
