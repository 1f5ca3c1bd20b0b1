"""Ways through loops: what the host computes ahead, and which loops have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyrelay
from pyrelay.devices.cuda_emulator import TARGET
from pyrelay.devices.gpu import guesses
from pyrelay.devices.gpu.device_words import device_slots
from pyrelay.devices.gpu.straight import Straight, straight_loops
from pyrelay.devices.gpu.stretches import runs_on_host
from pyrelay.lower.planning.instructions import JumpIf, JumpUnless
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered

X = np.ones(40)

ON = "cuda_emulator"


def ways(function: Callable[..., Any], *args: Any) -> list[Straight]:
    module = pyrelay.jit(function, device=ON)._specialised(args, {}).module
    made = plan(lowered(module, "fuse", on=ON), TARGET)
    slots = device_slots(
        made, lambda launch, on: runs_on_host(made, launch, on), [set() for _ in made.functions]
    )
    found = []
    for code, known in zip(made.functions, slots, strict=True):
        on_device = frozenset(known)
        found += straight_loops(made, code, on_device, guesses.branches(code, on_device))
    return found


def test_what_the_host_computes_varies_by_round() -> None:
    def falling(x: Any, n: int) -> Any:
        rate = 1.0
        for i in range(n):
            x = x * rate + x.sum() * i
            rate = rate * 0.5
        return x

    (way,) = ways(falling, X, 5)
    assert not way.guesses
    assert len(way.varying) >= 2  # the rate and the count
    assert way.varying <= way.host
    assert not way.varying & set(way.fixed)
    assert any(moves for _, moves in way.buffers)  # x


def test_the_device_may_decide_when_a_loop_ends() -> None:
    def settled(x: Any, most: int) -> Any:
        i = 0
        while i < most and (x * x).sum() > 1e-3:
            x = x * 0.7 + x.max()
            i += 1
        return x

    (way,) = ways(settled, X, 5)
    assert way.guesses
    branches = [s for s in way.steps if isinstance(s.code, (JumpIf, JumpUnless))]
    assert [s.holds for s in branches if s.holds is not None] == [1, 1]


def test_a_branch_has_two_ways() -> None:
    def either(x: Any, n: int) -> Any:
        for i in range(n):
            x = x * 0.5 + x.sum() if i % 3 == 0 else np.sin(x) + x.max()
        return x

    first, second = ways(either, X, 5)
    assert first.first == second.first
    assert first.steps != second.steps


def test_sizes_that_change_have_no_way() -> None:
    def shrinking(x: Any, n: int) -> Any:
        total = 0.0
        for i in range(n):
            total = total + (np.sin(x[i:]) * x[i:].max()).sum()
        return total

    assert ways(shrinking, X, 5) == []


def test_loops_inside_are_gone_through_by_the_plan() -> None:
    def nested(x: Any, n: int) -> Any:
        for i in range(n):
            y = x + i
            for _ in range(i):
                y = np.tanh(y @ x)
            x = x + y
        return x

    # The inner loop's own, and the outer one's where the inner one has no rounds.
    found = ways(nested, np.ones((4, 4)), 5)
    assert len({way.first for way in found}) == 2
    heads = [way.first for way in found]
    assert not any(a.first < b < a.last for a in found for b in heads if b in {
        step.place for step in a.steps
    })


def test_a_loop_with_a_kernel_whose_parameters_are_not_told_has_none() -> None:
    """That of attention over 16 bits gets a description of its operands."""
    def attended(q: Any, k: Any, n: int) -> Any:
        for _ in range(n):
            scores = q @ k.T
            e = np.exp(scores - scores.max(axis=-1, keepdims=True))
            q = e / e.sum(axis=-1, keepdims=True) @ k
        return q

    x = np.ones((6, 16))
    assert ways(attended, x, x, 5) == []
    assert ways(attended, x.astype(np.float16), x.astype(np.float16), 5) == []
