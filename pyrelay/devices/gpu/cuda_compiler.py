"""CUDA C++ in, a loaded module out: NVRTC through CuPy, machine code kept in the disk cache.

CuPy's own `RawModule` adds `-ftz=true`, which takes float32 numbers below the normal ones for 0 as
neither NumPy nor the CPU does; so only its bindings of NVRTC and of the loader are used.

The bindings let go of Python's lock, and NVRTC lets threads into all but its front end at the same
time, which is a twentieth of what a unit takes: so the kernels of a program are several units.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pyrelay import config
from pyrelay.devices import cache
from pyrelay.devices.gpu import cuda_diagnosis
from pyrelay.devices.gpu.cuda_prelude import BLOCKS, DEVICE, PRELUDE
from pyrelay.devices.gpu.driver import UNDEFINED, Compilation, Text
from pyrelay.devices.runtime.threads import usable_threads
from pyrelay.errors import DeviceError

#: -fmad=false: products and sums round as in plain Python; what fuses them says so (`fma`).
OPTIONS = ("-std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true")

MINIMAL = "--minimal"
"""Without what no kernel of ours names, as textures: a unit begins 8 ms earlier. Machine code is
the same."""

_KNOWS_MINIMAL = (13, 0)

KIND = "cuda"
"""The cache's name for the machine code."""

LEAST_TEXT = 1000
"""Characters of kernels that make a unit: to begin one takes as long as to compile some hundred."""


def unit(texts: Sequence[Text]) -> str:
    """The source of some kernels, which are called kernel0, kernel1, ... there."""
    parts = [PRELUDE, DEVICE, BLOCKS]
    for number, text in enumerate(texts):
        renamed = text.source.replace("void kernel(", f"void kernel{number}(")
        parts.append(f"namespace unit{number} {{\n{renamed}\n}}\n{UNDEFINED}")
    return "\n".join(parts)


def shared_out(texts: Sequence[Text], threads: int) -> list[list[int]]:
    """The numbers of texts in units that so many threads compile, the longest units first: each
    text goes, by their lengths, to the unit that has least so far (R. L. Graham, "Bounds on
    multiprocessing timing anomalies", SIAM J. Appl. Math. 17, 1969)."""
    lengths = [len(text.source) for text in texts]
    count = max(1, min(threads, len(texts), sum(lengths) // LEAST_TEXT))
    units: list[list[int]] = [[] for _ in range(count)]
    filled = [0] * count
    for number in sorted(range(len(texts)), key=lambda k: -lengths[k]):
        least = filled.index(min(filled))
        units[least].append(number)
        filled[least] += lengths[number]
    return [sorted(units[k]) for k in sorted(range(count), key=lambda k: -filled[k]) if units[k]]


class Compiler:
    """Makes modules of a device, the one that is CuPy's current one when this is made.

    compilations: what was compiled or read so far. told: all that machine code depends on but its
    source: the compute capability, versions of CuPy and NVRTC, options. current: what makes the
    device that of a thread. Raises DeviceError where there is no NVRTC.
    """

    def __init__(self, cupy: Any, current: Callable[[], AbstractContextManager[Any]]) -> None:
        self.cupy, self.current = cupy, current
        self.compilations: list[Compilation] = []
        self.units: dict[str, Unit] = {}  # by source
        self.lock = threading.Lock()
        try:
            version = tuple(cupy.cuda.compiler.nvrtc.getVersion())
        except Exception as error:  # of what looks for libraries: no class of CuPy's
            raise cuda_diagnosis.no_compiler(error) from error
        self.options = (*OPTIONS, *[MINIMAL] * (version >= _KNOWS_MINIMAL))
        capability = str(cupy.cuda.Device().compute_capability)
        self.told = (capability, cupy.__version__, *map(str, version), *self.options)

    def begin(
        self, texts: Sequence[Text], told: list[Compilation]
    ) -> list[tuple[Unit, str]]:
        """For each text the unit that it is in, which is on its way, and its name there."""
        threads = config.current().compile_processes or usable_threads(0)
        places: dict[int, tuple[Unit, str]] = {}
        for numbers in shared_out(texts, threads):
            given = tuple([texts[k] for k in numbers])
            source = unit(given)
            with self.lock:
                made = self.units.get(source)
                if made is None:
                    made = self.units[source] = Unit(self, source, given, told)
                    made.begin(threads > 1)
            for k, number in enumerate(numbers):
                places[number] = made, f"kernel{k}"
        return [places[k] for k in range(len(texts))]

    def compiled(self, source: str) -> bytes:
        """Machine code for the device that is current. Raises DeviceError."""
        compiler = self.cupy.cuda.compiler
        try:
            made, _ = compiler.compile_using_nvrtc(
                source, self.options, None, "kernels.cu", cache_in_memory=True
            )
        except compiler.CompileException as error:
            raise DeviceError("NVRTC does not compile the kernels.", notes=(str(error),)) from error
        return made if isinstance(made, bytes) else str(made).encode()


class Unit:
    """A source of some kernels, from when it is asked for to when its module is loaded.

    told: to where its compilation is added, beside the compiler's own list.
    """

    def __init__(
        self, compiler: Compiler, source: str, texts: tuple[Text, ...], told: list[Compilation]
    ) -> None:
        self.compiler, self.source, self.texts = compiler, source, texts
        self.lists = compiler.compilations, told
        self.key = hashlib.sha256("\0".join((*compiler.told, source)).encode()).hexdigest()
        self.store = cache.current()
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None
        self.code: bytes | None = None
        self.was_on_disk = False
        self.error: Exception | None = None
        self.loaded: Any = None

    def begin(self, aside: bool) -> None:
        """Look on disk, and have a thread compile what is not there if that is to be done aside."""
        self.code = self.store.get(KIND, self.key)
        self.was_on_disk = self.code is not None
        if self.code is None and aside:
            thread = threading.Thread(target=self._aside, name="pyrelay")
            try:
                thread.start()
            except RuntimeError:  # no more threads, or Python ends: who waits compiles it
                return
            self.thread = thread

    def module(self) -> Any:
        """The module, when it is there, of the device that is current. Raises DeviceError where
        NVRTC or the driver rejects it."""
        with self.lock:
            if self.loaded is None:
                self.loaded = self._loaded()
                self.code = None
            return self.loaded

    def _loaded(self) -> Any:
        if self.thread is not None:
            self.thread.join()
            self.thread = None
        elif self.was_on_disk and self.code is not None:
            # What lies on disk may be damaged: it is made again then.
            try:
                made = self._module(self.code)
                self._told(0.0, 0.0)
                return made
            except RuntimeError as error:
                if cuda_diagnosis.is_of_memory(error):
                    raise
                self.code = None
        failed, self.error = self.error, None
        if failed is not None:
            raise failed
        if self.code is None:
            self._compile()
        assert self.code is not None
        try:
            made = self._module(self.code)
        except RuntimeError as error:
            if cuda_diagnosis.is_of_memory(error):
                raise
            raise cuda_diagnosis.not_loaded(error) from error
        return made

    def _aside(self) -> None:
        try:
            with self.compiler.current():
                self._compile()
        except Exception as error:  # for whoever waits
            self.error = error

    def _compile(self) -> None:
        began = time.perf_counter()
        self.code = self.compiler.compiled(self.source)
        self._told(began, time.perf_counter())
        self.store.put(KIND, self.key, self.code)

    def _told(self, began: float, ended: float) -> None:
        for each in self.lists:
            each.append(Compilation(self.texts, began, ended))

    def _module(self, code: bytes) -> Any:
        made = self.compiler.cupy.cuda.function.Module()
        made.load(code)
        return made
