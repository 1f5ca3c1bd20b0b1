"""How fast a function is, and what it runs on.

In: functions and arguments. Out: `Timing`; the text of `info()`.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay import config
from pyrelay.devices import cache
from pyrelay.devices.compiler import native
from pyrelay.devices.runtime.threads import usable_threads
from pyrelay.errors import DeviceError
from pyrelay.records import dataclass

_LONG_ENOUGH = 2e-3
"""Seconds one measurement takes at least, so that the clock's steps do not count."""


@dataclass(frozen=True)
class Timing:
    """Seconds: the first call (with what it compiled), and the calls after it.

    kernels: compiled by the first call. best, median: of one later call. calls: how many.
    """

    first: float
    kernels: int
    best: float
    median: float
    calls: int

    def __repr__(self) -> str:
        return (
            f"first call {_shown(self.first)} ({self.kernels} kernels compiled), then "
            f"{_shown(self.best)} best, {_shown(self.median)} median of {self.calls} calls"
        )


def benchmark(
    function: Callable[..., Any], *args: Any, seconds: float = 0.5, **keywords: Any
) -> Timing:
    """Time a function on arguments: the first call apart from the rest.

    Works for plain functions too. seconds: about how long to measure. The arguments are passed as
    they are, so a function that writes into them sees its own results again.

    >>> timing = pyrelay.benchmark(pyrelay.jit(lambda x: x + 1.0), 2.0, seconds=0.01)
    >>> timing.first > timing.best
    True
    """
    compiled = native.counts.compiled
    started = time.perf_counter()
    function(*args, **keywords)
    first = time.perf_counter() - started
    compiled = native.counts.compiled - compiled
    number = 1
    while (once := _time(function, args, keywords, number)) < _LONG_ENOUGH:
        number *= 4
    rounds = max(3, min(100, int(seconds / once)))
    times = sorted(_time(function, args, keywords, number) / number for _ in range(rounds))
    return Timing(first, compiled, times[0], times[rounds // 2], rounds * number)


def _time(function: Callable[..., Any], args: Any, keywords: Any, number: int) -> float:
    started = time.perf_counter()
    for _ in range(number):
        function(*args, **keywords)
    return time.perf_counter() - started


def _shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def info() -> Any:
    """Versions, machine, threads, disk cache and settings, as a text for a report.

    >>> str(pyrelay.info()).split()[0]
    'pyrelay'
    """
    import llvmlite.binding as llvm

    from pyrelay.inspection import Text

    store = cache.current()
    size, count = store.size_on_disk()
    kept = f"{store.directory} ({count} files, {size / 1e6:.1f} MB)" if store.directory else "off"
    rows = (
        ("python", f"{platform.python_version()} on {platform.platform()}"),
        ("packages", ", ".join(f"{n} {_version(n)}" for n in ("numpy", "llvmlite"))),
        ("processor", f"{llvm.get_host_cpu_name()}, {os.cpu_count()} CPUs"),
        ("threads", str(usable_threads(config.current().num_threads))),
        ("disk cache", kept),
        ("gpu", f"\n{'':15}".join(_gpu())),
        ("this process", f"{native.counts.compiled} kernels compiled, "
                         f"{native.counts.loaded} object files loaded"),
    )  # fmt: skip
    lines = [f"pyrelay {_version('pyrelay')}", *(f"  {name:12} {text}" for name, text in rows)]
    return Text("\n".join([*lines, "", config.table()]))


def _gpu() -> list[str]:
    """Whether programs can run on a GPU, with what, or why not."""
    from pyrelay.devices import cuda
    from pyrelay.devices.gpu import cuda_diagnosis

    try:
        return cuda_diagnosis.described(cuda.driver())
    except DeviceError as error:
        return cuda_diagnosis.explained(error)


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return str(np.__version__) if package == "numpy" else "unknown"


__all__ = ["Timing", "benchmark", "info"]
