"""Kernels of loops that are compiled for the extents of calls: which calls have them, for which
words, and that they compute the same bits in all orders of blocks."""

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
    """The programs that are made."""
    found: list[programs.GpuExecutable] = []
    begun = programs.GpuExecutable.__init__

    def begin(self: Any, *given: Any) -> None:
        begun(self, *given)
        found.append(self)

    monkeypatch.setattr(programs.GpuExecutable, "__init__", begin)
    return found


def kernels(program: programs.GpuExecutable) -> dict[Any, Any]:
    """The kernels for known extents, by these."""
    return {key[-1]: each for key, each in program.known.made.items()}


def general(program: programs.GpuExecutable) -> bool:
    """Whether a kernel for any extents was compiled."""
    texts = (program.code.launches[loop.launch].text for loop in program.code.persistent)
    return any(-2 - text in program.late for text in texts)


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
    monkeypatch.setattr(persistent_known, "FIRST", 0)
    any_extents = pyrelay.jit(recurrent, device=ON)
    np.testing.assert_equal(any_extents(*args), first)
    known, other = made
    assert (len(kernels(known)), general(known)) == (1, False)
    assert (len(kernels(other)), general(other)) == (0, True)
    for turns in cuda_emulator.ORDERS if blocks > 1 else (0,):
        monkeypatch.setattr(cuda_emulator.DRIVER, "turns", turns)
        np.testing.assert_equal(function(*args), first)


@needs_compiler
def test_first_extents_have_kernels_at_once_and_others_one_for_any(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 2)
    for name, number in (("FIRST", 2), ("CALLS", 2), ("MOST", 3)):
        monkeypatch.setattr(persistent_known, name, number)
    function = pyrelay.jit(recurrent, device=ON)

    def call(**extents: int) -> Any:
        args = arguments(**extents)
        for mine, theirs in zip(function(*args), recurrent(*args), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        (program,) = made
        return len(kernels(program)), general(program)

    assert call() == (1, False)
    assert call(rounds=3) == (1, False)  # how many rounds there are is no extent of a phase
    assert call(rows=4) == (2, True)  # extents vary
    assert call(rows=9) == (2, True)
    assert call(rows=9) == (3, True)  # these come again
    assert [call(rows=5), call(rows=5), call()] == [(3, True)] * 3
    (words, *_) = kernels(made[0])
    assert {6, 7} <= set(words)


@needs_compiler
@pytest.mark.parametrize("error", [DeviceError, RuntimeError])
def test_a_kernel_that_cannot_be_made_leaves_the_one_for_any_extents(
    error: type[Exception], made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 1)
    begun = programs.GpuExecutable.begun

    def refuse(self: Any, texts: Any) -> Any:
        if any("given_precision" in text.source for text in texts):
            raise error("no memory for a module.")
        return begun(self, texts)

    monkeypatch.setattr(programs.GpuExecutable, "begun", refuse)
    function, args = pyrelay.jit(recurrent, device=ON), arguments()
    for _ in range(2):
        for mine, theirs in zip(function(*args), recurrent(*args), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    (program,) = made
    assert (kernels(program), general(program)) == ({}, True)


@needs_compiler
def test_a_kernel_that_has_no_room_to_meet_runs_as_one_block_and_that_is_told(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda work, meets, most, cores: most)
    monkeypatch.setattr(cuda_emulator.DRIVER, "resident", lambda _: 1)
    function, args = pyrelay.jit(recurrent, device=ON), arguments()
    for mine, theirs in zip(function(*args), recurrent(*args), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert "as one kernel of one block" in str(function.explain())
    ((_, blocks),) = kernels(made[0]).values()
    assert blocks == 1


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
