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
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gpu_worker import LIBRARIES, MARK, OURS, REFERENCE

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


def timings(
    programs: Sequence[str], least: dict[str, int], seconds: float,
    note: Callable[[list[Timing]], None], patience: float = PATIENCE,
) -> list[Timing]:
    """The times of programs. least: the bytes that some have to move. `note` is given what is known
    after each program."""
    until = time.monotonic() + seconds
    found = [Timing(name) for name in programs]
    with tempfile.TemporaryDirectory() as folder:
        for library in (REFERENCE, *LIBRARIES):
            if library == REFERENCE or _installed(library):
                _library(library, found, least, until, Path(folder), note, patience)
    return found


def _library(
    library: str, found: list[Timing], least: dict[str, int], until: float, folder: Path,
    note: Callable[[list[Timing]], None], patience: float,
) -> None:
    """Time all programs with one library, in as many processes as that takes."""
    copied, first = 0.0, 0
    while first < len(found):
        begun: int | None = None
        end = ""
        for line in _lines((library, str(first), str(folder)), until, patience):
            copied, begun = line.get("copied", copied), line.get("begin", begun)
            timing = found[first if begun is None else begun]
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
        stop = len(found) if begun is None or over else begun + 1
        for timing in found[first:stop]:
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
    name = re.split("[ .]", library)[0]
    return importlib.util.find_spec(name) is not None


def table(found: list[Timing]) -> str:
    """The times as a table of Markdown; cells of what is not installed are empty, those of what
    failed hold a dash, and what failed is told below."""
    names = [n for n in LIBRARIES if any(n in t.microseconds or n in t.errors for t in found)]
    head = [
        "microseconds of a call", *names, "over the best other", "of a copy's rate",
        "first call s", "NVRTC s",
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for timing in found:
        cells = [
            f"{timing.microseconds[n]:.1f}" if n in timing.microseconds
            else "-" if n in timing.errors else ""
            for n in names
        ]
        others = [us for n, us in timing.microseconds.items() if n != OURS]
        own = timing.microseconds.get(OURS)
        cells += [f"{own / min(others):.2f}" if own and others else ""]
        cells += [f"{timing.rate:.2f}" if timing.rate else ""]
        cells += [f"{timing.first:.2f}", f"{timing.compiled:.2f}"] if timing.first else ["", ""]
        lines.append(f"| {timing.program} | " + " | ".join(cells) + " |")
    told = [f"{t.program}, {n}: {what}" for t in found for n, what in t.errors.items()]
    return "\n".join([*lines, "", *told]) if told else "\n".join(lines)
