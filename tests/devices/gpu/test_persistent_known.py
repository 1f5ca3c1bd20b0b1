"""Kernels of loops that are compiled for the extents of calls: when, for which words, and that they
compute the same bits in all orders of blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import persistent_known, programs
from pyrelay.devices.gpu.driver import Text
from pyrelay.devices.gpu.persistent_known import with_known
from pyrelay.errors import DeviceError
from tests.devices.gpu.test_cuda_text import assert_compiles, needs_nvidia
from tests.devices.running_kernels import needs_compiler

ON = "cuda_emulator"
CALLS = 2


def recurrent(x: Any, w: Any) -> Any:
    """Two phases that meet, of several rows."""
    h = np.zeros((x.shape[1], w.shape[0]))
    hs = np.zeros(x.shape)
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ w)
        hs[t] = h
    return h, hs


def arguments(rounds: int = 5, rows: int = 6, n: int = 7) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(rounds, rows, n)), rng.normal(size=(n, n))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[programs.GpuExecutable]:
    """The programs that are made; two calls are enough for a kernel of their own."""
    found: list[programs.GpuExecutable] = []
    begun = programs.GpuExecutable.__init__

    def begin(self: Any, *given: Any) -> None:
        begun(self, *given)
        found.append(self)

    monkeypatch.setattr(programs.GpuExecutable, "__init__", begin)
    monkeypatch.setattr(persistent_known, "CALLS", CALLS)
    return found


def kernels(program: programs.GpuExecutable) -> dict[Any, Any]:
    """The kernels for known extents, by these."""
    return {key[-1]: each for key, each in program.known.made.items() if type(each) is not int}


def test_words_are_constants_and_the_parameters_stay() -> None:
    head = 'extern "C" __global__ void kernel('
    text = Text(f"gridDim.x\n{head}i64 s1, i64 s12, i64 precision) {{\n    s1;\n}}\n", ("i64",) * 3)
    found = with_known(text, {"s1": 64, "precision": 0}, 8)
    assert found.kinds == text.kinds
    assert found.source == (
        f"8u\n{head}i64 given_s1, i64 s12, i64 given_precision) {{\n"
        "    const i64 s1 = 64ll;\n    const i64 precision = 0ll;\n    s1;\n}\n"
    )
    alone = Text(f"blockIdx.x + gridDim.x;\n{head}i64 s1) {{\n}}\n", ("i64",))
    assert with_known(alone, {}, 1).source.startswith("0u + 1u;")
    assert with_known(alone, {}, 2).source.startswith("blockIdx.x + 2u;")


@needs_compiler
@pytest.mark.parametrize("blocks", [1, cuda_emulator.MEETING])
def test_results_have_the_same_bits(
    blocks: int, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: blocks)
    function, args = pyrelay.jit(recurrent, device=ON), arguments()
    first = function(*args)
    for mine, theirs in zip(first, recurrent(*args), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    function(*args)
    (program,) = made
    assert kernels(program) != {}
    for turns in cuda_emulator.ORDERS if blocks > 1 else (0,):
        monkeypatch.setattr(cuda_emulator.DRIVER, "turns", turns)
        np.testing.assert_equal(function(*args), first)


@needs_compiler
def test_they_are_those_of_extents_that_come_again(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 2)
    monkeypatch.setattr(persistent_known, "MOST", 2)
    function = pyrelay.jit(recurrent, device=ON)

    def call(**extents: int) -> None:
        args = arguments(**extents)
        for mine, theirs in zip(function(*args), recurrent(*args), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)

    call()
    (program,) = made
    assert kernels(program) == {}
    call(rounds=3)  # how many rounds there are is no extent of a phase
    assert len(kernels(program)) == 1
    ((words, first),) = kernels(program).items()
    assert {6, 7} <= set(words)
    for _ in range(CALLS):
        call(rows=4)
    assert len(kernels(program)) == 2
    for _ in range(CALLS + 1):
        call(rows=9)
    call()
    assert len(kernels(program)) == 2
    assert kernels(program)[words] is first


@needs_compiler
@pytest.mark.parametrize("error", [DeviceError, RuntimeError])
def test_a_kernel_that_cannot_be_made_leaves_the_other_one(
    error: type[Exception], made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 1)
    function, args = pyrelay.jit(recurrent, device=ON), arguments()
    first = function(*args)
    (program,) = made

    def refuse(texts: Any) -> Any:
        raise error("no memory for a module.")

    monkeypatch.setattr(program, "compiled", refuse)
    for _ in range(CALLS + 1):
        np.testing.assert_equal(function(*args), first)
    assert kernels(program) == {}


@needs_compiler
@needs_nvidia
@pytest.mark.slow
def test_they_compile(
    made: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 2)
    pyrelay.jit(recurrent, device=ON)(*arguments())
    (program,) = made
    (loop, *_) = program.code.persistent
    named = {f"s{loop.loop.given[k]}": 64 for k in loop.extents}
    assert named != {}
    text = with_known(program.code.text_of(loop.launch), {**named, "precision": 0}, 132)
    assert len(assert_compiles([text.source], tmp_path)) < len(
        assert_compiles([program.code.text_of(loop.launch).source], tmp_path)
    ) / 2
