"""What functions of a plan do ahead, and that it is done once for extents."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu import programs
from pyrelay.devices.gpu.worked_out import Ahead
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Immediate, Plan, PlanFunction, Slot
from tests.devices.running_kernels import needs_compiler


def ahead(*parameters: int, on_device: frozenset[int] = frozenset()) -> Ahead:
    plan = Plan((PlanFunction("f", 4, 9, ()),))
    return Ahead(plan, parameters, on_device)


def added(target: int, a: int, b: int) -> ins.Binary:
    return ins.Binary("add.i64", target, Slot(a), Slot(b))


def test_what_follows_from_parameters_is_done_ahead() -> None:
    made = ahead(0, 1, 2)
    assert made.take(added(4, 1, 1))
    assert made.take(ins.Select(5, Slot(4), Slot(2), Immediate(3)))
    assert made.taken == [added(4, 1, 1), ins.Select(5, Slot(4), Slot(2), Immediate(3))]
    assert list(made.given) == [1, 2]
    assert made.tested("s5 >= 7", {5}) == made.tested("s5 >= 7", {5}) == "t0"
    assert made.tested("s6 >= 7", {6}) == "(s6 >= 7)"
    assert made.tests == {"s5 >= 7": "t0"}


def test_what_others_change_or_have_looked_at_is_not() -> None:
    made = ahead(0, 1, 2, on_device=frozenset([2]))
    for step in (
        added(4, 1, 2),  # the device knows it
        ins.Checked("add.i64", 4, Slot(0), Slot(1), 0), ins.Binary("add.f64", 4, Slot(0), Slot(1)),
        ins.Unary("move", 4, Slot(0)), ins.Binary("add.i64", 4, Slot(0), ins.Data(0)),
        ins.Binary("add.i64", 4, Immediate(0), Immediate(1)),
    ):
        assert not made.take(step), step
    assert not made.take(added(4, 0, 1))  # written before
    assert not made.take(ins.Free(Slot(5)))
    assert not made.take(added(5, 0, 1))  # read before: it had another meaning
    assert not made.take(added(0, 1, 1))  # a parameter's own slot
    assert not made.take(added(6, 0, 1))  # what has changed since
    assert made.take(added(7, 1, 1))
    assert not made.take(added(7, 1, 1))  # twice
    assert not made.take(added(8, 7, 7))
    assert list(made.given) == [1]


@pytest.fixture
def programs_made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    begun = programs.GpuExecutable.__init__

    def begin(self: Any, *arguments: Any) -> None:
        begun(self, *arguments)
        made.append(self)

    monkeypatch.setattr(programs.GpuExecutable, "__init__", begin)
    return made


@needs_compiler
def test_sizes_are_worked_out_once_for_extents(programs_made: list[Any]) -> None:
    def sums(x: Any) -> Any:
        return x.sum(axis=0)

    function = pyrelay.jit(sums, device="cuda_emulator")
    extents = ((70, 9), (3, 65), (70, 9), (130, 2), (3, 65))
    for rows, columns in extents:
        x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
        np.testing.assert_allclose(function(x), sums(x), rtol=1e-5, atol=1e-5)
    (program,) = programs_made
    assert program.code.worked_out == 1
    found = program.entry.__globals__["known0"]
    assert {frozenset(key) for key in found} == set(map(frozenset, extents))


@needs_compiler
def test_functions_of_a_plan_have_names_of_their_own(programs_made: list[Any]) -> None:
    def recurrent(x: Any, wx: Any, w: Any, b: Any) -> Any:
        n = w.shape[0]
        h, c, hs = np.zeros(n), np.zeros(n), np.zeros((x.shape[0], n))
        for t in range(x.shape[0]):
            z = x[t] @ wx + h @ w + b
            c = c * z[:n] + np.tanh(z[n : 2 * n]) * z[2 * n : 3 * n]
            h = np.tanh(c) * z[3 * n : 4 * n]
            hs[t] = h
        return h, c, hs

    rng = np.random.default_rng(0)
    args = [rng.normal(size=s) for s in ((24, 5), (5, 24), (6, 24), (24,))]
    function = pyrelay.jit(recurrent, device="cuda_emulator")
    for mine, theirs in zip(function(*args), recurrent(*args), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    (program,) = programs_made
    found = re.findall(r"^def (\w+)\(", program.code.source, re.MULTILINE)
    assert len(found) == len(set(found))
    assert {name.rstrip("0123456789") for name in found} >= {"f", "ahead", "w"}
