"""What `make gpu-bench` does on a GPU: processes that stand for those of the libraries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu_timing
from benchmarks.gpu_timing import Measured, Timing

#: A library's process: programs are told by letters, in the order of the table.
SCRIPT = """\
import json, os, sys, time
library, first = sys.argv[1], int(sys.argv[2])
def say(**what):
    print("@gpu@" + json.dumps(what), flush=True)
print("a word of the library's own")
if library == "reference":
    sys.exit(0)
if library == {broken!r}:
    sys.exit("no such library")
say(version="1." + str(len(library)))
for number, kind in list(enumerate({kinds!r}))[first:]:
    say(begin=number)
    if kind == "dies":
        print("the context is lost", flush=True)
        os._exit(3)
    if kind == "hangs":
        time.sleep(60)
    if kind == "fails":
        say(done=number, error="ValueError: no")
    else:
        if not number and library == "pyrelay":
            say(copied=2e6)
        say(done=number, microseconds=float(len(library)), first=0.5, compiled=0.25, kernels=2)
"""


def timed(
    monkeypatch: Any, tmp_path: Path, *kinds: str, broken: str = "", seconds: float = 60.0,
    patience: float = 5.0,
) -> list[Timing]:
    found = measured(
        monkeypatch, tmp_path, *kinds, broken=broken, seconds=seconds, patience=patience
    )
    return found.programs


def measured(
    monkeypatch: Any, tmp_path: Path, *kinds: str, broken: str = "", seconds: float = 60.0,
    patience: float = 5.0,
) -> Measured:
    script = tmp_path / "worker.py"
    script.write_text(SCRIPT.format(kinds=kinds, broken=broken))
    monkeypatch.setattr(gpu_timing, "WORKER", (sys.executable, str(script)))
    monkeypatch.setattr(gpu_timing, "LIBRARIES", {"pyrelay": None, "cupy": None})
    monkeypatch.setattr(gpu_timing, "_installed", lambda library: True)
    noted: list[int] = []
    found = gpu_timing.timings(
        list(kinds), {kinds[0]: 7}, seconds, lambda found: noted.append(len(found.programs)),
        patience,
    )
    assert set(noted) <= {len(kinds)}
    return found


def test_programs_are_timed_by_every_library(monkeypatch: Any, tmp_path: Path) -> None:
    found = timed(monkeypatch, tmp_path, "one", "two")
    assert [t.microseconds for t in found] == [{"pyrelay": 7.0, "cupy": 4.0}] * 2
    assert (found[0].first, found[0].compiled, found[0].kernels) == (0.5, 0.25, 2)
    assert found[0].rate == pytest.approx(0.5)  # 7 bytes in 7 us, of 2 in a us
    assert found[1].rate == 0.0


def test_a_program_that_fails_is_told_and_the_others_are_timed(
    monkeypatch: Any, tmp_path: Path
) -> None:
    found = timed(monkeypatch, tmp_path, "fails", "one")
    assert found[0].errors == {"pyrelay": "ValueError: no", "cupy": "ValueError: no"}
    assert list(found[1].microseconds) == ["pyrelay", "cupy"]


def test_a_process_that_ends_is_followed_by_another(monkeypatch: Any, tmp_path: Path) -> None:
    found = timed(monkeypatch, tmp_path, "one", "dies", "two")
    assert found[1].errors["pyrelay"] == "the process ended with status 3: the context is lost"
    assert [list(t.microseconds) for t in found] == [["pyrelay", "cupy"], [], ["pyrelay", "cupy"]]


def test_a_program_that_does_not_come_back_is_left(monkeypatch: Any, tmp_path: Path) -> None:
    found = timed(monkeypatch, tmp_path, "hangs", "one", patience=1.5)
    assert found[0].errors == {"pyrelay": "took more than 2 s", "cupy": "took more than 2 s"}
    assert list(found[1].microseconds) == ["pyrelay", "cupy"]


def test_a_library_that_does_not_start_has_no_times(monkeypatch: Any, tmp_path: Path) -> None:
    found = timed(monkeypatch, tmp_path, "one", "two", broken="cupy")
    assert [list(t.microseconds) for t in found] == [["pyrelay"]] * 2
    assert {t.errors["cupy"] for t in found} == {
        "the process ended with status 1: no such library"
    }


def test_when_time_is_up_nothing_is_begun(monkeypatch: Any, tmp_path: Path) -> None:
    (found,) = timed(monkeypatch, tmp_path, "one", seconds=-1.0)
    assert found.errors == dict.fromkeys(("reference", "pyrelay", "cupy"), "out of time")


def test_versions_are_told(monkeypatch: Any, tmp_path: Path) -> None:
    assert measured(monkeypatch, tmp_path, "one").versions == {"pyrelay": "1.7", "cupy": "1.4"}
