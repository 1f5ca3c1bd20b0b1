"""Which kernels of a program are compiled, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import programs
from pyrelay.devices.gpu.driver import Compilation, Text
from pyrelay.devices.gpu.program_kernels import names_in
from tests.devices.fake_cupy import Cublas, Machine, installed
from tests.devices.running_kernels import needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The texts that programs of the emulator begin, together where they do that at once."""
    found: list[list[str]] = []
    begin = programs.GpuExecutable.begun

    def note(self: Any, texts: Any) -> Any:
        if texts:
            found.append([text.source for text in texts])
        return begin(self, texts)

    monkeypatch.setattr(programs.GpuExecutable, "begun", note)
    return found


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine()
    with installed(made, monkeypatch, Cublas(made)):
        yield made


def recurrent(x: Any, w: Any) -> Any:
    h = np.zeros(w.shape[0])
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ w)
    return h


ARGS = np.random.default_rng(0).normal(size=(5, 4)), np.random.default_rng(1).normal(size=(4, 4))


@pytest.mark.parametrize("blocks", [0, 1])
def test_kernels_of_a_round_are_compiled_where_a_loop_goes_round_by_round(
    blocks: int, begun: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: blocks)
    function = pyrelay.jit(recurrent, device="cuda_emulator")
    np.testing.assert_allclose(function(*ARGS), recurrent(*ARGS), rtol=1e-12)
    rounds = [each for each in begun if any("tanh" in text for text in each)]
    # What rounds launch comes twice, one by one and in graphs of several rounds.
    assert ["given_precision" in each[0] for each in rounds] == ([True] if blocks else [False] * 2)


def test_loops_of_a_first_call_are_begun_before_it_launches_anything(
    begun: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def both(x: Any, w: Any) -> Any:
        h = recurrent(x, w)
        return recurrent(x * h.sum(), w + 0.5)

    monkeypatch.setattr(programs, "blocks_of", lambda *_: 1)
    launched: list[int] = []
    launch = cuda_emulator.DRIVER.launch

    def count(*given: Any) -> Any:
        launched.append(sum("given_precision" in text for each in begun for text in each))
        return launch(*given)

    monkeypatch.setattr(cuda_emulator.DRIVER, "launch", count)
    function = pyrelay.jit(both, device="cuda_emulator")
    np.testing.assert_allclose(function(*ARGS), both(*ARGS), rtol=1e-12)
    assert launched
    assert set(launched) == {2}
    before = len(begun)
    function(*ARGS)
    assert len(begun) == before


def test_forms_that_extents_choose_are_begun_together(begun: list[list[str]]) -> None:
    def sums(x: Any) -> Any:
        return x.sum(axis=1)

    x = np.random.default_rng(2).normal(size=(2, 1 << 17)).astype(np.float32)
    np.testing.assert_allclose(
        pyrelay.jit(sums, device="cuda_emulator")(x), sums(x), rtol=1e-4, atol=1e-3
    )
    assert [len(each) for each in begun] == [1, 2]  # for many rows; in parts, and these summed up


def test_a_product_of_ours_stands_by_when_the_first_call_is_over(
    machine: Machine, tmp_path: Path
) -> None:
    def product(a: Any, b: Any) -> Any:
        return np.tanh(a @ b)

    a = np.random.default_rng(3).normal(size=(3, 3))
    units: list[int] = []
    launch = machine.launch

    def count(*given: Any, **named: Any) -> None:
        units.append(len(machine.units))
        launch(*given, **named)

    machine.cupy.cuda.driver.launchKernel = count
    with config.override(cache_dir=str(tmp_path)):  # nothing of it is on disk
        function = pyrelay.jit(product, device="cuda")
        np.testing.assert_allclose(function(a, a), product(a, a), rtol=1e-12)
        told = str(function.explain())
    assert units == [1]
    assert len(machine.units) == 2
    named = re.findall(r"\n    \d+\.\d\d s: (.+)", told)  # what took longest first
    assert sorted(named) == ["matmul_kernel", "tanh_kernel"]


def test_units_are_told_by_few_names_of_their_kernels() -> None:
    texts = tuple(Text(str(k), ()) for k in range(9))
    unit = Compilation(texts, 0.0, 1.0)
    assert names_in(unit, {}) == "9 of pyrelay's library"
    names = dict(zip(texts, ("a", "the loop at line 3", "a", "b", "c", "d"), strict=False))
    told = "a, the loop at line 3, b, c, 1 more, 3 of pyrelay's library"
    assert names_in(unit, names) == told
    assert names_in(Compilation(texts[:3], 0.0, 1.0), names) == "a, the loop at line 3"
