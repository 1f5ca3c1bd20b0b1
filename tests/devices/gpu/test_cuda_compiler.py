"""Units of kernels, compiled by threads."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda
from pyrelay.devices.gpu.cuda_compiler import LEAST_TEXT, MINIMAL, shared_out
from pyrelay.devices.gpu.driver import Compilation, Text, by_the_clock
from pyrelay.errors import DeviceError
from tests.devices.fake_cupy import CompileException, Machine, installed
from tests.devices.running_kernels import needs_compiler


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine()
    with installed(made, monkeypatch):
        yield made


def texts(*lengths: int) -> list[Text]:
    return [Text("x" * length, ()) for length in lengths]


def test_long_texts_are_units_of_their_own_and_come_first() -> None:
    least = LEAST_TEXT
    assert shared_out(texts(least, 3 * least, 2 * least), 8) == [[1], [2], [0]]
    assert shared_out(texts(least, 4 * least, 2 * least), 2) == [[1], [0, 2]]
    assert shared_out(texts(least, 3 * least, 2 * least), 1) == [[0, 1, 2]]


def test_short_texts_share_a_unit() -> None:
    assert shared_out(texts(300, 200, 400), 8) == [[0, 1, 2]]
    assert shared_out(texts(300, 1500, 300), 8) == [[1], [0, 2]]
    assert shared_out([], 8) == []


def test_seconds_by_the_clock_are_those_in_which_anything_was_compiled() -> None:
    made = [Compilation((), 1.0, 3.0), Compilation((), 2.0, 4.0), Compilation((), 6.0, 7.0)]
    assert by_the_clock(made) == 4.0
    assert by_the_clock([made[0], Compilation((), 1.5, 2.0)]) == 2.0
    assert by_the_clock([Compilation((), 0.0, 0.0)]) == by_the_clock([]) == 0.0


def two_kernels(by: float) -> Any:
    """A program of two kernels, with one more number in them that no other test has."""
    def pair(x: Any, y: Any) -> Any:
        return np.tanh(x * by) * np.exp(-x * x), np.exp(y * by) * np.tanh(-y * y)

    return pair


X, Y = np.array([3.0, 1.0, 2.0]), np.ones((2, 2))


@needs_compiler
def test_units_of_a_program_are_compiled_at_the_same_time(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, compile_one = threading.Barrier(2), machine.cupy.cuda.compiler.compile_using_nvrtc

    def meet(*given: Any, **named: Any) -> Any:
        both.wait(20)
        return compile_one(*given, **named)

    monkeypatch.setattr(machine.cupy.cuda.compiler, "compile_using_nvrtc", meet)
    program = two_kernels(0.25)
    function = pyrelay.jit(program, device="cuda")
    with pyrelay.config.override(compile_processes=2):
        for mine, theirs in zip(function(X, Y), program(X, Y), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    made = cuda.driver().compilations
    assert len(made) == len(machine.units) == 2
    told = str(function.explain())
    assert f"in {by_the_clock(made):.2f} s, 2 units of" in told
    assert len(re.findall(r"\n    \d+\.\d\d s: \w+_kernel(?=\n|$)", told)) == 2


@needs_compiler
def test_one_process_compiles_in_the_thread_of_the_caller(machine: Machine) -> None:
    with pyrelay.config.override(compile_processes=1):
        pyrelay.jit(two_kernels(0.375), device="cuda")(X, Y)
    assert len(machine.units) == 1


@needs_compiler
def test_what_a_thread_cannot_compile_the_call_says(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise CompileException("kernels.cu(7): error: no.")

    monkeypatch.setattr(machine.cupy.cuda.compiler, "compile_using_nvrtc", refuse)
    function = pyrelay.jit(two_kernels(0.625), device="cuda")
    for _ in range(2):
        with pytest.raises(DeviceError, match="NVRTC does not compile the kernels") as caught:
            function(X, Y)
        assert "error: no" in str(caught.value)


@needs_compiler
def test_the_compiler_is_asked_for_little(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    compile_one = machine.cupy.cuda.compiler.compile_using_nvrtc

    def note(source: Any, options: Any, *rest: Any, **named: Any) -> Any:
        given.append(options)
        return compile_one(source, options, *rest, **named)

    monkeypatch.setattr(machine.cupy.cuda.compiler, "compile_using_nvrtc", note)
    pyrelay.jit(lambda x: x + 0.875, device="cuda")(np.ones(3))
    assert given[0][-1] == MINIMAL
    monkeypatch.setattr(machine.cupy.cuda.compiler.nvrtc, "getVersion", lambda: (12, 4))
    with installed(machine, monkeypatch):
        pyrelay.jit(lambda x: x + 1.875, device="cuda")(np.ones(3))
    assert MINIMAL not in given[-1]
