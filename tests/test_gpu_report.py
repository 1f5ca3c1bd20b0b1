"""`make gpu-test` goes on where the GPU stops a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOST = '''
import os, pytest
from tests import gpu_report

gpu_report.missing = lambda: ""
gpu_report.LIMIT = float(os.environ.get("LIMIT") or "60")
gpu_report.PATIENCE = float(os.environ.get("PATIENCE") or "100")
broken = []
gpu_report.is_lost = lambda: bool(broken)
'''
TESTS = '''
import os, time
import conftest

def test_first():
    print("not shown")

def test_breaks():
    conftest.broken.append(1)
    raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")

def test_needs_the_gpu():
    assert not conftest.broken

def test_hangs():
    if os.environ.get("PATIENCE"):
        time.sleep(60)

def test_last():
    if os.environ.get("LIMIT"):
        time.sleep(60)
    raise ValueError("wrong")
'''


def run(
    folder: Path, *more: str, limit: str = "", patience: str = ""
) -> tuple[str, dict[str, object]]:
    (folder / "conftest.py").write_text(LOST)
    (folder / "test_it.py").write_text(TESTS)
    (folder / "setup.cfg").write_text("[tool:pytest]\n")
    paths = os.pathsep.join([str(ROOT), str(folder)])
    made = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.gpu_report", "-p", "no:cacheprovider",
         *more, "test_it.py"],
        cwd=folder, capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "PYTHONPATH": paths, "OUT": str(folder / "out"), "LIMIT": limit,
             "PATIENCE": patience},
    )  # fmt: skip
    return made.stdout, json.loads((folder / "out" / "gpu_tests.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("-n", "2")])
def test_a_lost_gpu_ends_a_process_and_not_the_run(tmp_path: Path, more: tuple[str, ...]) -> None:
    if more:
        pytest.importorskip("xdist")
    out, told = run(tmp_path, *more)
    assert "| test_it.py | 3 | 2 | 0 |" in out
    assert "FAILED test_it.py::test_last: " in out
    failures = told["failures"]
    assert isinstance(failures, dict)
    assert [name.partition("::")[2] for name in sorted(failures)] == ["test_breaks", "test_last"]
    assert told["complete"]


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("-n", "2")])
def test_a_test_that_hangs_is_left_and_the_others_run(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    if more:
        pytest.importorskip("xdist")
    out, told = run(tmp_path, *more, patience="4")
    assert "| test_it.py | 2 | 3 | 0 |" in out
    why = "crashed while running" if more else "did not come back in 4 s"
    assert any("test_hangs" in line and why in line for line in out.splitlines())
    assert "FAILED test_it.py::test_last: " in out
    assert told["complete"]


@pytest.mark.slow
def test_what_hangs_is_ended_and_the_table_is_printed(tmp_path: Path) -> None:
    out, told = run(tmp_path, limit="8")
    assert "There was no time for all tests." in out
    assert "FAILED test_it.py::test_breaks" in out
    assert not told["complete"]
