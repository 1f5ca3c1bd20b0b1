"""Times on a GPU, where there is one: pyrelay beside CuPy, JAX and PyTorch, as they are installed.

In: names of programs of `benchmarks.gpu_programs`. Out: `Timing`s. CuPy runs them as they stand,
JAX with its own numpy in the place of NumPy's or a version with `scan`, PyTorch a version of each,
as it is ("torch"), replayed as a CUDA graph where launches are what is measured, and under
torch.compile.

Each library has a process of its own (`gpu_worker`), one after the other. A process that ends, as
after an access outside of memory, or does not come back is followed by another one from the next
program on. What fails is noted beside the others, and so is what there was no time for.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gpu_worker import LIBRARIES, MARK, OURS, REFERENCE, module_of

PATIENCE = 60.0
"""Seconds that a program may take with a library, the library's start included."""


@dataclass
class Timing:
    """A program; microseconds of a call, or what went wrong, by library.

    first: seconds of pyrelay's first call. compiled: seconds of that in NVRTC. kernels: how many it
    compiled. rate: bytes that have to be moved in a second, over what a copy moves; 0 if unknown.
    """

    program: str
    microseconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    first: float = 0.0
    compiled: float = 0.0
    kernels: int = 0
    rate: float = 0.0


@dataclass
class Measured:
    """All that is known of a run: the programs, and the libraries' versions."""

    programs: list[Timing]
    versions: dict[str, str] = field(default_factory=dict)


def timings(
    programs: Sequence[str], least: dict[str, int], seconds: float,
    note: Callable[[Measured], None], patience: float = PATIENCE,
) -> Measured:
    """The times of programs. least: the bytes that some have to move. `note` is given what is known
    after each program."""
    until = time.monotonic() + seconds
    found = Measured([Timing(name) for name in programs])
    with tempfile.TemporaryDirectory() as folder:
        for library in (REFERENCE, *LIBRARIES):
            if library == REFERENCE or _installed(library):
                _library(library, found, least, until, Path(folder), note, patience)
    return found


def _library(
    library: str, found: Measured, least: dict[str, int], until: float, folder: Path,
    note: Callable[[Measured], None], patience: float,
) -> None:
    """Time all programs with one library, in as many processes as that takes."""
    copied, first, programs = 0.0, 0, found.programs
    while first < len(programs):
        begun: int | None = None
        end = ""
        for line in _lines((library, str(first), str(folder)), until, patience):
            copied, begun = line.get("copied", copied), line.get("begin", begun)
            if "version" in line:
                found.versions[library] = line["version"]
            timing = programs[first if begun is None else begun]
            if "error" in line:
                timing.errors[library] = line["error"]
            elif "microseconds" in line:
                _noted(timing, library, line, least.get(timing.program, 0), copied)
            if "done" in line:
                first = line["done"] + 1
                note(found)
            if "ended" in line:
                end = line["ended"]
        if not end:
            return
        # Without a program there is no library, and without time none of the others.
        over = begun is None or time.monotonic() >= until
        stop = len(programs) if begun is None or over else begun + 1
        for timing in programs[first:stop]:
            if library not in timing.microseconds:
                timing.errors.setdefault(library, end)
        first = stop


def _noted(timing: Timing, library: str, line: dict[str, Any], least: int, copied: float) -> None:
    timing.microseconds[library] = line["microseconds"]
    if library == OURS:
        timing.first, timing.compiled = line["first"], line["compiled"]
        timing.kernels = line["kernels"]
        if copied:
            timing.rate = least / (line["microseconds"] * 1e-6) / copied


def _lines(
    arguments: Sequence[str], until: float, patience: float
) -> Iterator[dict[str, Any]]:
    """What a process tells; at last how it ended, empty if all was done."""
    # JAX would take most of the memory for itself.
    variables = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    process = subprocess.Popen(
        [*WORKER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=variables,
    )
    told: queue.Queue[str | None] = queue.Queue()

    def follow() -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                told.put(line)
        told.put(None)

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    last, tail = time.monotonic(), ""
    try:
        while True:
            left = min(last + patience, until) - time.monotonic()
            try:
                line = told.get(timeout=max(left, 0.0))
            except queue.Empty:
                late = time.monotonic() >= until
                yield {"ended": "out of time" if late else f"took more than {patience:.0f} s"}
                return
            if line is None:
                status = process.wait()
                end = f"the process ended with status {status}: {tail}"[:200]
                yield {"ended": end if status else ""}
                return
            if line.startswith(MARK):
                last = time.monotonic()
                yield json.loads(line.removeprefix(MARK))
            elif line.strip():
                tail = line.strip()
    finally:
        process.kill()
        process.wait()
        following.join()


WORKER = (sys.executable, "-m", "benchmarks.gpu_worker")


def _installed(library: str) -> bool:
    return importlib.util.find_spec(module_of(library)) is not None
