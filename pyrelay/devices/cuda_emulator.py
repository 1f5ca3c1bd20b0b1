"""CUDA without a GPU: the source that a GPU would run, compiled by the host's C++ compiler.

In: texts of kernels as `lower.emit_cuda` prints them. Out: addresses of host functions with the ABI
of compiled kernels, so that the executor runs the same plans as it does on the CPU.

The kernels of one plan are one translation unit, and its machine code is kept in the disk cache
under a digest of everything that was compiled. `cuda_emulator_header` says how threads run.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from pyrelay.devices import cache, cuda_library
from pyrelay.devices.base import Device
from pyrelay.devices.cuda_emulator_header import AFTER, BEFORE
from pyrelay.devices.cuda_prelude import BLOCKS, PRELUDE
from pyrelay.errors import DeviceError
from pyrelay.ir.types import DType
from pyrelay.lower.emit_cuda import emit
from pyrelay.lower.target import ConvolutionKernel, MatmulKernel, Target

KIND = "cuda_emulator"
"""The cache's name for the machine code."""

# -ffp-contract=off: products and sums round as in plain Python; -fwrapv: integers wrap around.
_OPTIONS = (
    "-x", "c++", "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-fwrapv", "-ffp-contract=off",
    "-fno-math-errno", "-fvisibility=hidden",
)  # fmt: skip
_PICOSECONDS = 1000  # for a multiplication: nobody shares this work, so it matters to nobody

_addresses: dict[str, int] = {}
_libraries: dict[int, ctypes.CDLL] = {}
_lock = threading.RLock()


def _after_fork() -> None:
    """In a child: a thread that is gone may have held the lock."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def compiler() -> str | None:
    """The path of the C++ compiler: $CXX, or c++, g++ or clang++ of the path; None without one."""
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    return None


@functools.cache
def _version(path: str) -> str:
    asked = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return asked.stdout


def load(sources: Sequence[str]) -> list[int]:
    """The addresses of kernels; those not yet known are compiled together.

    Raises DeviceError where there is no C++ compiler or it rejects the text.
    """
    with _lock:
        fresh = [each for each in dict.fromkeys(sources) if each not in _addresses]
        if fresh:
            library = _library(unit(fresh))
            for number, source in enumerate(fresh):
                entry = getattr(library, f"pyrelay_launch{number}")
                address = ctypes.cast(entry, ctypes.c_void_p).value
                assert address is not None
                _addresses[source] = address
                _libraries[address] = library
        return [_addresses[each] for each in sources]


def know(address: int, buffer: int, nbytes: int) -> None:
    """Tell the kernel at `address` how large a buffer is: indices outside end its next launches
    with status OUT_OF_BOUNDS. A later size for the same buffer counts."""
    _libraries[address].pyrelay_know(ctypes.c_int64(buffer), ctypes.c_int64(nbytes))


def unit(sources: Sequence[str]) -> str:
    """The translation unit of some kernels and their host entries."""
    parts = [BEFORE, PRELUDE, BLOCKS, AFTER]
    for number, source in enumerate(sources):
        threads = block_threads(source)
        text = source.replace('extern "C" __global__', "__global__")
        parts.append(
            f"namespace kernel{number} {{\n{text}\n}}\n#undef BLOCK_THREADS\n"
            f"PYRELAY_ENTRY i64 pyrelay_launch{number}(i64 block, i64 begin, i64 end) {{\n"
            f"    return pyrelay_emulator::launch(\n"
            f"        kernel{number}::kernel, {threads}, (i64 *)block, begin, end);\n}}\n"
        )
    return "\n".join(parts)


def block_threads(source: str) -> int:
    """How many threads work on an item of the parallel axis together."""
    found = re.search(r"^#define BLOCK_THREADS (\d+)$", source, re.MULTILINE)
    return int(found[1]) if found else 1


def _library(text: str) -> ctypes.CDLL:
    path = compiler()
    if path is None:
        raise DeviceError(
            "device 'cuda_emulator' needs a C++ compiler, and none is found.",
            notes=("it looks for $CXX, c++, g++ and clang++.",),
            hints=("install g++, or use device='cpu'",),
        )
    digest = hashlib.sha256("\0".join((_version(path), *_OPTIONS, text)).encode()).hexdigest()
    store = cache.current()
    code = store.get(KIND, digest)
    if code is None:
        code = _compiled(path, text)
        store.put(KIND, digest, code)
    with tempfile.TemporaryDirectory(prefix="pyrelay-") as directory:
        file = Path(directory) / "kernels.so"
        file.write_bytes(code)
        return ctypes.CDLL(str(file))


def _compiled(path: str, text: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="pyrelay-") as directory:
        target = Path(directory) / "kernels.so"
        command = [path, *_OPTIONS, "-", "-o", str(target), "-lm"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DeviceError(
                f"{path} does not compile the kernels of this program.", notes=(done.stderr,)
            )
        return target.read_bytes()


def _matmul(dtype: DType, axes: int) -> MatmulKernel:
    return MatmulKernel(
        cuda_library.matmul(dtype, axes), cuda_library.TILE, cuda_library.TILE, _PICOSECONDS
    )


def _convolution(dtype: DType, what: str, channels_last: bool) -> ConvolutionKernel:
    source = cuda_library.convolution(dtype, what, channels_last)
    return ConvolutionKernel(source, 1, 1, 1, _PICOSECONDS)


TARGET = Target(emit, _matmul, _convolution)
DEVICE = Device("cuda_emulator", TARGET, load, shares=False)
