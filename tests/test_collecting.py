"""Compiling changes how often Python collects garbage, and nothing after it."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import collecting, compiled
from pyrelay.collecting import few_collections


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("threshold", [(700, 10, 10), (0, 10, 10), (10**6, 3, 4), (5, 1, 1)])
def test_the_collector_is_afterwards_as_it_was_before(threshold: tuple[int, int, int]) -> None:
    gc.set_threshold(*threshold)
    with few_collections():
        assert (gc.get_threshold()[0] >= 50_000) is (threshold[0] > 0)
        with contextlib.suppress(ZeroDivisionError), few_collections():
            raise ZeroDivisionError
        assert (gc.get_threshold()[0] >= 50_000) is (threshold[0] > 0)
    assert gc.get_threshold() == threshold


def test_a_first_call_collects_a_few_times_only() -> None:
    gc.set_threshold(50, 10, 10)
    seen: list[int] = []

    def note(phase: str, told: dict[str, int]) -> None:
        if phase == "start":
            seen.append(told["generation"])

    f = pyrelay.jit(lambda x: np.tanh(x * 1.0625) @ x + np.sum(np.exp(x)))
    f(np.ones(3))
    g = pyrelay.jit(lambda x: np.tanh(x * 1.03125) @ x + np.sum(np.exp(x)))
    gc.callbacks.append(note)
    try:
        g(np.ones(3))
    finally:
        gc.callbacks.remove(note)
    assert len(seen) < 20
    assert gc.get_threshold() == (50, 10, 10)


def test_threads_change_the_collector_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the last one would leave it as the first one had changed it."""
    gc.set_threshold(700, 10, 10)
    ready, inside = threading.Barrier(2), []
    most = 0

    @contextlib.contextmanager
    def slowly() -> Iterator[None]:
        nonlocal most
        with few_collections():
            inside.append(None)
            most = max(most, len(inside))
            time.sleep(0.1)
            yield
            inside.pop()

    monkeypatch.setattr(compiled, "few_collections", slowly)

    def first_call(number: float) -> None:
        f = pyrelay.jit(lambda x: x + number)
        ready.wait()
        f(2.0)

    threads = [threading.Thread(target=first_call, args=(k,)) for k in (0.5, 1.5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert gc.get_threshold() == (700, 10, 10)


_FIRST_CALLS = """
import gc
import numpy as np
import pyrelay
from pyrelay import collecting

if {frozen}:
    gc.freeze()
seen = [0]
gc.callbacks.append(lambda phase, told: seen.append(len(gc.get_objects(0))))
collecting._UNSEEN = {most}
f = pyrelay.jit(lambda x: np.tanh(x * 1.0625) @ x + np.sum(np.exp(x)))
f(np.ones(3))
print(max(seen), gc.get_freeze_count() > 0)
"""


def _first_call(folder: Path, *, frozen: bool = False, most: int = 300_000) -> tuple[int, bool]:
    """How many young objects a collection saw at most, in a process with one program, and whether
    objects are frozen behind it."""
    script = folder / "script.py"
    script.write_text(_FIRST_CALLS.format(frozen=frozen, most=most))
    found = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=120
    )
    young, left = found.stdout.split()
    return int(young), left == "True"


def test_no_collection_goes_through_what_a_first_call_made(tmp_path: Path) -> None:
    young, frozen = _first_call(tmp_path)
    assert young < 5_000
    assert not frozen


@pytest.mark.parametrize("kept", [{"frozen": True}, {"most": 10}])
def test_objects_stay_young_where_some_are_frozen_or_many_were_moved(
    kept: dict[str, Any], tmp_path: Path
) -> None:
    young, frozen = _first_call(tmp_path, **kept)
    assert young > 20_000
    assert frozen is ("frozen" in kept)


def test_frozen_objects_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting goes through all of them, 10 ms for those of this test run."""
    asked: list[None] = []

    def count() -> int:
        asked.append(None)
        return 1

    monkeypatch.setattr(collecting, "_unseen", 0)
    monkeypatch.setattr(gc, "get_freeze_count", count)
    for _ in range(3):
        with few_collections():
            kept = [[] for _ in range(100)]
    assert len(asked) == 1
    assert len(kept) == 100
