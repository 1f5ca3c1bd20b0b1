"""Times on a GPU as text."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import gpu_report, report
from benchmarks.gpu_report import as_json, replaced, section, table
from benchmarks.gpu_timing import Measured, Timing


def test_cells_of_what_is_missing_are_empty() -> None:
    text = table([
        Timing("a", {"pyrelay": 1.0, "cupy": 2.5}, first=1.0, compiled=0.5, rate=0.9),
        Timing("b", {"jax": 3.0}),
    ])
    assert text.splitlines() == [
        "| microseconds of a call | pyrelay | cupy | jax | over the best other "
        "| of a copy's rate | first call s | NVRTC s |",
        "|---|---|---|---|---|---|---|---|",
        "| a | 1.0 | 2.5 |  | 0.40 | 0.90 | 1.00 | 0.50 |", "| b |  |  | 3.0 |  |  |  |  |",
    ]  # fmt: skip


def test_what_failed_is_told_below() -> None:
    failed = Timing("fails", {}, {"pyrelay": "ValueError: no", "cupy": "KeyError: 1"})
    lines = table([failed, Timing("a", {"pyrelay": 1.0})]).splitlines()
    assert lines[2] == "| fails | - | - |  |  |  |  |"
    assert lines[-2:] == ["fails, pyrelay: ValueError: no", "fails, cupy: KeyError: 1"]


FOUND = Measured([Timing("a", {"pyrelay": 1.0, "jax": 2.0})], {"pyrelay": "1", "jax": "0.11"})


def test_a_section_tells_device_day_and_versions() -> None:
    lines = section(json.loads(json.dumps(as_json(FOUND, "a GPU"))))
    assert lines[0] == gpu_report.HEADING
    assert f"a GPU, {date.today().isoformat()}; pyrelay 1, jax 0.11" in lines
    assert lines[-1] == "| a | 1.0 | 2.0 | 0.50 |  |  |  |"


def test_the_section_of_a_page_is_replaced_and_the_rest_kept() -> None:
    page = replaced("# Benchmarks\n\ntext\n", ["## On a GPU", "", "old"])
    assert page == "# Benchmarks\n\ntext\n\n## On a GPU\n\nold\n"
    assert replaced(page, ["## On a GPU", "", "new"]) == page.replace("old", "new")


def test_a_run_is_kept_and_stands_on_the_page(monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "benchmarks.md"
    page.write_text("# Benchmarks\n")
    file = tmp_path / "gpu_times.json"
    file.write_text(json.dumps(as_json(FOUND, "a GPU")))
    monkeypatch.setattr(gpu_report, "ROOT", tmp_path)
    monkeypatch.setattr(gpu_report, "RESULTS", tmp_path / "results")
    monkeypatch.setattr("sys.argv", ["", str(file)])
    assert gpu_report.newest() == []
    gpu_report.main()
    assert page.read_text().endswith("| a | 1.0 | 2.0 | 0.50 |  |  |  |\n")
    assert gpu_report.newest()[0] == gpu_report.HEADING
    made = report.markdown(report.Run({}, 1), on_gpu=gpu_report.newest())
    assert made.endswith("| a | 1.0 | 2.0 | 0.50 |  |  |  |\n")
