"""CUDA C++ in, a loaded module out: NVRTC through CuPy, machine code kept in the disk cache.

CuPy's own `RawModule` adds `-ftz=true`, which takes float32 numbers below the normal ones for 0 as
neither NumPy nor the CPU does; so only its bindings of NVRTC and of the loader are used.
"""

from __future__ import annotations

import hashlib
import threading
import time
from typing import Any

from pyrelay.devices import cache
from pyrelay.devices.gpu import cuda_diagnosis
from pyrelay.devices.gpu.driver import Compilation
from pyrelay.errors import DeviceError

#: -fmad=false: products and sums round as in plain Python; what fuses them says so (`fma`).
OPTIONS = ("-std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true")

KIND = "cuda"
"""The cache's name for the machine code."""


class Compiler:
    """Makes modules of the device that is CuPy's current one.

    compilations: what was compiled or read so far. told: all that machine code depends on but its
    source: the compute capability, versions of CuPy and NVRTC, options. Raises DeviceError where
    there is no NVRTC.
    """

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.compilations: list[Compilation] = []
        self.modules: dict[str, Any] = {}  # by source
        self.lock = threading.Lock()
        try:
            versions = cupy.__version__, *cupy.cuda.compiler.nvrtc.getVersion()
        except Exception as error:  # of what looks for libraries: no class of CuPy's
            raise cuda_diagnosis.no_compiler(error) from error
        self.told = (str(cupy.cuda.Device().compute_capability), *map(str, versions), *OPTIONS)

    def module(self, source: str, kernels: int) -> Any:
        """The module of a source with so many kernels. Raises DeviceError where NVRTC or the driver
        rejects it."""
        with self.lock:
            if source not in self.modules:
                self.modules[source] = self._loaded(source, kernels)
            return self.modules[source]

    def _loaded(self, source: str, kernels: int) -> Any:
        key = hashlib.sha256("\0".join((*self.told, source)).encode()).hexdigest()
        store = cache.current()
        code = store.get(KIND, key)
        if code is not None:
            # What lies on disk may be damaged: it is made again then.
            try:
                made = self._module(code)
                self.compilations.append(Compilation(kernels, 0.0))
                return made
            except RuntimeError as error:
                if cuda_diagnosis.is_of_memory(error):
                    raise
        started = time.perf_counter()
        code = self._compiled(source)
        self.compilations.append(Compilation(kernels, time.perf_counter() - started))
        try:
            made = self._module(code)
        except RuntimeError as error:
            if cuda_diagnosis.is_of_memory(error):
                raise
            raise cuda_diagnosis.not_loaded(error) from error
        store.put(KIND, key, code)
        return made

    def _module(self, code: bytes) -> Any:
        made = self.cupy.cuda.function.Module()
        made.load(code)
        return made

    def _compiled(self, source: str) -> bytes:
        compiler = self.cupy.cuda.compiler
        try:
            made, _ = compiler.compile_using_nvrtc(
                source, OPTIONS, None, "kernels.cu", cache_in_memory=True
            )
        except compiler.CompileException as error:
            raise DeviceError("NVRTC does not compile the kernels.", notes=(str(error),)) from error
        return made if isinstance(made, bytes) else str(made).encode()
