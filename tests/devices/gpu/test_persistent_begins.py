"""What comes right before a loop of one block, done by its kernel: what that may be, where it is
done otherwise, and that results are Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import programs
from pyrelay.devices.gpu.persistent_choice import BY_PRODUCT, Work, blocks_of
from pyrelay.lower.planning import instructions as ins
from tests.devices.fake_cupy import Cublas, Machine, installed
from tests.devices.running_kernels import needs_compiler

ON = "cuda_emulator"


def recurrent(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    """States of zeros, and a product of all steps' inputs."""
    n = wh.shape[0]
    h, c = b[:n] * 0, b[:n] * 0
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        c = np.tanh(z[:n]) * c + np.tanh(z[n:])
        h = np.tanh(c)
    return h


def of_new_weights(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    """The loop's own product has a right operand that is computed before."""
    n = wh.shape[0]
    h, own = b[:n] * 2, np.tanh(wh)
    for _ in range(x.shape[0]):
        h = np.tanh((h @ own + b)[:n])
    return h


def in_place(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    """An argument is changed before, and a copy of it is what the loop begins with."""
    n = wh.shape[0]
    b += 1
    h = b[:n].copy()
    for _ in range(x.shape[0]):
        h = np.tanh((h @ wh + b)[:n])
    return h


def arguments(rounds: int = 5, n: int = 6, dtype: Any = np.float64) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    shapes = (rounds, 3), (3, 2 * n), (n, 2 * n), (2 * n,)
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[programs.GpuExecutable]:
    """The programs that are made."""
    found: list[programs.GpuExecutable] = []
    begun = programs.GpuExecutable.__init__

    def begin(self: Any, *given: Any) -> None:
        begun(self, *given)
        found.append(self)

    monkeypatch.setattr(programs.GpuExecutable, "__init__", begin)
    monkeypatch.setattr(cuda_emulator.DRIVER, "watched", True)
    return found


def begins(program: programs.GpuExecutable) -> list[type]:
    """What the first loop's kernel begins with."""
    return [type(i) for p in program.code.persistent if not p.large for i in p.loop.begins]


@needs_compiler
@pytest.mark.parametrize("blocks", [0, 1, 3])
@pytest.mark.parametrize("function", [recurrent, of_new_weights, in_place])
def test_results_are_those_of_python(
    function: Any, blocks: int, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: blocks)
    compiled = pyrelay.jit(function, device=ON)
    for rounds in (5, 0, 1):
        mine, theirs = arguments(rounds), arguments(rounds)
        np.testing.assert_allclose(compiled(*mine), function(*theirs), rtol=1e-8)
        np.testing.assert_array_equal(mine[3], theirs[3])
    expected = {recurrent: [ins.Launch, ins.Launch, ins.Copy], in_place: [ins.Launch] * 2}
    assert begins(made[-1]) == expected.get(function, [])


@needs_compiler
def test_a_call_of_one_block_is_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    with installed(machine, monkeypatch, Cublas(machine)):
        function = pyrelay.jit(recurrent)
        args = arguments(dtype=np.float32)
        given = [machine.array(each) for each in args]
        for _ in range(3):
            before, copies = len(machine.launches), len(machine.copies)
            found = function(*given)
        np.testing.assert_allclose(found.get(), recurrent(*args), rtol=1e-5)
        assert (len(machine.launches) - before, len(machine.copies) - copies) == (1, 1)


def test_what_would_take_one_block_long_is_launched() -> None:
    def inside(steps: int, width: int) -> int:
        tiles = -(-steps // 16) * -(-4 * width // 16)
        return blocks_of([Work(tiles, 2400 * width, BY_PRODUCT)], 1, 1)

    assert inside(64, 32) == 1
    assert inside(256, 256) == 0
