"""What `f.code` shows for a GPU is what the device is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator


def rounds(x: Any, n: int) -> Any:
    h = x * 2.0
    for _ in range(n):
        h = np.tanh(h) * 0.5 + x.sum()
    return h


def test_each_text_stands_below_its_lines_and_is_what_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[str] = []

    def load(texts: Any, watched: bool) -> Any:
        given.extend(texts)
        return [None] * len(texts)

    monkeypatch.setattr(cuda_emulator, "load", load)
    function = pyrelay.jit(rounds, device="cuda_emulator")
    function.lower(np.ones(40), 10)
    shown = str(function.code(np.ones(40), 10))
    kernels, _, plan = shown.rpartition("\n\n\n# plan entry")
    assert "launch multiply_kernel" in plan
    assert len(given) >= 3
    for text in given:
        assert text.strip() in kernels
    first = rounds.__code__.co_firstlineno
    file = __name__.rpartition(".")[2]
    assert f"# multiply_kernel\n# {file}.py, line {first + 1}: h = x" in shown
    assert f"# the loop at line {first + 3} as one kernel\n" in shown
    assert "const i32 " in kernels  # as launched for arrays of this size
    assert "more with indices of 64 bits" in kernels
    assert str(function.lower(np.ones(40), 10).code()) == shown
