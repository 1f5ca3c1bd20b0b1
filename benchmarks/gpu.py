"""`make gpu-bench`: programs on a GPU, timed; without one, what they ask of it is counted.

python -m benchmarks.gpu [OUT]   prints a table last; with OUT, a folder, writes gpu.json there,
                                 and gpu_times.json where there is a GPU, after each program

A kernel on a GPU that is not compute-bound lasts as long as its bytes take, so they are what can be
known beforehand, beside launches: `gpu_traffic` counts both. Times are those of `gpu_timing`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import gpu_report, gpu_timing
from benchmarks.gpu_programs import COUNTED, LEAST, TIMED
from benchmarks.gpu_traffic import Row, row_of, table
from pyrelay.devices import cuda
from pyrelay.errors import DeviceError

ENOUGH = 540.0
"""Seconds after which nothing is timed any more."""


def counted() -> list[Row]:
    """The rows of all programs; what fails is told in its own."""
    rows = []
    for name, program in COUNTED.items():
        try:
            rows.append(row_of(name, *program))
        except Exception as error:
            rows.append(Row(name, failed=f"{type(error).__name__}: {error}"))
    return rows


def main() -> None:
    rows = counted()
    _write("gpu.json", [asdict(row) for row in rows])
    print(table(rows), end="\n\n", flush=True)
    try:
        driver = cuda.driver()
    except DeviceError as error:
        print(f"Nothing is timed: {error.message}")
        return
    found = gpu_timing.timings(
        list(TIMED), LEAST, ENOUGH,
        lambda found: _write("gpu_times.json", gpu_report.as_json(found, driver.name)),
    )
    print(f"{driver.name}\n\n{gpu_report.table(found.programs)}", flush=True)


def _write(name: str, told: Any) -> None:
    """Write JSON into the folder that was asked for."""
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
