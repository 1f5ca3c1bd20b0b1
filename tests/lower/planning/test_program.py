"""Equal groups of a plan are lowered once; what fails in one names its own line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.lower.planning import program


def three_groups(x: Any, a: int, b: int) -> Any:
    s = x.sum()
    while s < x[a]:
        s += x[a] * 0.5
    t = np.sort(x + s).sum()
    while t < x[b]:
        t += x[b] * 0.5
    u = np.sort(x - t).sum()
    while u < x[a]:
        u += x[a] * 0.5
    return s, t, u


def test_groups_that_fail_are_lowered_once_and_fail_at_their_own_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, lowered = program.kernelise, []

    def counted(function: Any, **how: Any) -> Any:
        lowering = whole(function, **how)
        lowered.append(any(kernel.sites for kernel in lowering.kernels))
        return lowering

    monkeypatch.setattr(program, "kernelise", counted)
    x, compiled = np.array([3.0, -1.0, -9.0]), pyrelay.jit(three_groups)
    assert compiled(x, 0, 1) == pytest.approx(three_groups(x, 0, 1))
    assert sum(lowered) == 1
    found = []
    for a, b in ((7, 1), (0, 7)):
        with pytest.raises(IndexError) as caught:
            compiled(x, a, b)
        found.append("\n".join(caught.value.__notes__))
    assert "s < x[a]" in found[0]
    assert "t < x[b]" in found[1]
