"""Where items of kernels access buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay.devices.cuda_emulator import TARGET
from pyrelay.devices.gpu.hazards import Place
from pyrelay.devices.gpu.item_places import Polynomial, places_of
from pyrelay.lower.planning.instructions import Immediate, Launch, Slot
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.infer.running import inferred


def valued(operand: Any) -> Polynomial:
    if isinstance(operand, Immediate):
        return {(): operand.word}
    return {(f"s{operand.index}" if isinstance(operand, Slot) else str(operand),): 1}


def accessed(function: Callable[..., Any], *args: Any) -> list[set[Place | None]]:
    """For each kernel of a program the places of all its accesses."""
    made = plan(lowered(inferred(function, args).module, "fuse", on="cuda_emulator"), TARGET)
    found: list[set[Place | None]] = []
    for step in (i for f in made.functions for i in f.code if isinstance(i, Launch)):
        code = made.kernels[step.kernel].code
        assert code is not None
        places = places_of(code, step, valued)
        found.append(set().union(*places.values()))
    return found


X = np.ones(50)


def test_elements_are_those_of_their_items() -> None:
    (places,) = accessed(lambda x, y: x * 2.0 + y, X, X)
    assert [p is not None and p.addend for p in places] == [frozenset()]


def test_rows_and_parts_have_addends() -> None:
    def gate(z: Any, m: Any, t: int) -> Any:
        n = z.shape[0] // 4
        return z[:n] * z[n : 2 * n] + m[t, :n]

    (places,) = accessed(gate, X[:48], np.ones((3, 12)), 1)
    assert None not in places
    assert len({p.addend for p in places if p is not None}) == 3


def test_what_is_turned_or_chosen_is_anywhere() -> None:
    def turned(x: Any, k: Any) -> Any:
        return x[::-1] + x[k]

    (places,) = accessed(turned, X, np.arange(50))
    assert None in places
    assert len(places) == 2  # the result's
