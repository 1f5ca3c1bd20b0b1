"""What decides how programs and kernels are compiled besides what they are.

In: nothing. Out: `installation()`, a digest of versions, pyrelay's files and the processor;
`generators()`, one of what decides machine code, by what the files say: kernels on disk outlive a
new version whose code generators are the same.

A process whose programs come from disk asks for both, and does not import LLVM for them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pyrelay.devices import cache

KIND = "fingerprints"
"""The cache's name for what was found to be in an installation's files."""

_PACKAGE = Path(__file__).parents[1]
_PROCESSOR = Path("/sys/devices/system/cpu/modalias")


@functools.cache
def installation() -> str:
    """Versions, pyrelay's files and the processor. Files count by size and time of change, as
    Python's own byte code does."""
    parts = [sys.version, *_versions()]
    for entry in sorted(_own_files(str(_PACKAGE)), key=lambda entry: entry.path):
        status = entry.stat()
        parts.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    return _digest(parts)


@functools.cache
def _versions() -> tuple[str, ...]:
    import llvmlite

    return llvmlite.__version__, np.__version__, sys.platform, *_processor()


def _processor() -> tuple[str, ...]:
    """The processor's model and features. Linux says both of an x86, in fewer microseconds than
    LLVM takes milliseconds to be imported."""
    if sys.platform == "linux":
        try:
            found = _PROCESSOR.read_text()
        except OSError:
            found = ""
        if found.startswith("cpu:type:x86,"):
            return (found,)
    import llvmlite.binding as llvm

    return (
        llvm.get_process_triple(), llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )  # fmt: skip


def _own_files(folder: str) -> Iterator[os.DirEntry[str]]:
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            yield entry
        elif entry.is_dir():
            yield from _own_files(entry.path)


@functools.cache
def generators() -> str:
    """What decides machine code beside its source. Reading a hundred files takes as long as half
    of a call's other work: what they say is kept on disk for this installation."""
    store = cache.current()
    known = store.get(KIND, installation())
    if known is not None:
        return known.decode()
    digest = hashlib.sha256("\n".join(_versions()).encode())
    for path in generating_files():
        digest.update(path.read_bytes())
    store.put(KIND, installation(), digest.hexdigest().encode())
    return digest.hexdigest()


def generating_files() -> list[Path]:
    """The files that decide what machine code is made: all that a process which only compiles
    reads, the numbers of a plan's operations and the places of fields among them."""
    beside = (
        "lower/planning/opcodes.py", "infer/nodes/instances.py", "python_trees.py", "records.py",
    )  # fmt: skip
    return [*sorted((_PACKAGE / "devices").rglob("*.py")), *(_PACKAGE / name for name in beside)]


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


__all__ = ["generating_files", "generators", "installation"]
