"""Why no GPU can be used: what CuPy says, the driver and the installed wheels in, an error out.

In: nothing, or what CuPy raised. Out: DeviceErrors that say what is missing and what to install,
and the lines about the GPU of `pyrelay.info()`. CuPy is imported by none of this, and the driver is
asked for its version only, which touches no GPU.
"""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import metadata
from typing import Any

from pyrelay.errors import DeviceError

OTHERWISE = "use device='cpu'"

LEAST_CAPABILITY = 80
"""The compute capability that all kernels can be compiled for, times 10."""

_WHEELS = ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")
_NEWEST, _OLDEST = 13, 12  # of the extras
_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_NO_MEMORY = 2  # cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY


def driver_version() -> int:
    """The newest CUDA that the driver knows, 13010 for 13.1; 0 where there is no driver."""
    version = ctypes.c_int()
    try:
        status = ctypes.CDLL(_LIBRARY).cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return 0 if status else version.value


def wheels() -> list[str]:
    """The packages of CuPy that are installed."""
    found = []
    for name in _WHEELS:
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found.append(name)
    return found


def missing() -> DeviceError:
    """CuPy is not installed."""
    return DeviceError(
        "device 'cuda' needs CuPy, which is not installed.",
        notes=_about_driver(driver_version()), hints=(_install(driver_version()), OTHERWISE),
    )


def no_gpu() -> DeviceError:
    """CuPy and the driver are fine, and there is nothing to run on."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    notes = () if visible is None else (f"CUDA_VISIBLE_DEVICES is {visible!r}.",)
    return DeviceError(
        "device 'cuda' cannot be used: there is no GPU.", notes=notes,
        hints=("nvidia-smi lists the GPUs that the driver sees", OTHERWISE),
    )


def no_such_gpu(number: int, count: int) -> DeviceError:
    """A number that no GPU has."""
    seen = "one GPU, number 0" if count == 1 else f"{count} GPUs, numbers 0 to {count - 1}"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    notes = () if visible is None else (f"CUDA_VISIBLE_DEVICES is {visible!r}.",)
    return DeviceError(
        f"device 'cuda:{number}' cannot be used: CuPy sees {seen}.", notes=notes,
        hints=("use device='cuda' for the GPU where the arrays of a call are",),
    )


def too_old(capability: str) -> DeviceError:
    """A GPU that has not all instructions that kernels are made of."""
    return DeviceError(
        f"device 'cuda' cannot be used: the GPU has compute capability {_dotted(capability)}.",
        notes=(
            f"kernels need {_dotted(str(LEAST_CAPABILITY))} (Ampere): before it there is no "
            "bfloat16, and no TF32.",
        ),
        hints=(OTHERWISE,),
    )


def unusable(error: Exception) -> DeviceError:
    """CuPy cannot be imported, or finds no device."""
    installed, version = wheels(), driver_version()
    said = _said(error)
    wheel = installed[0] if installed else "cupy"
    made_for = _major(wheel)
    if len(installed) > 1:
        return DeviceError(
            "device 'cuda' cannot be used: several packages of CuPy are installed.",
            notes=(f"{_listed(installed)} write the same files.", said),
            hints=(f"{_uninstall(installed)}, then {_install(version)}", OTHERWISE),
        )
    if not version:
        return DeviceError(
            "device 'cuda' cannot be used: there is no NVIDIA driver.",
            notes=(f"the driver's library, {_LIBRARY}, is not found.", said),
            hints=(
                "install NVIDIA's driver; a container needs to be given its GPUs, as by "
                "'docker run --gpus all'",
                OTHERWISE,
            ),
        )
    if "NoDevice" in said:
        return no_gpu()
    if made_for > version // 1000:
        hints = ["update the driver", OTHERWISE]
        if version // 1000 >= _OLDEST:
            hints.insert(0, f"{_uninstall(installed)}, then {_install(version)}")
        return DeviceError(
            f"device 'cuda' cannot be used: {wheel} is for CUDA {made_for}, and the driver is "
            "older.",
            notes=(*_about_driver(version), said), hints=hints,
        )
    failed = "cannot be imported" if isinstance(error, ImportError) else "finds no device"
    return DeviceError(
        f"device 'cuda' cannot be used: CuPy {failed}.",
        notes=(*_about_driver(version), said), hints=(_install(version), OTHERWISE),
    )


def no_compiler(error: Exception) -> DeviceError:
    """CuPy and the GPU are fine, but kernels cannot be compiled."""
    installed = wheels()
    package = f"nvidia-cuda-nvrtc{'-cu12' if installed == ['cupy-cuda12x'] else ''}"
    name = installed[0] if installed else "CuPy"
    return DeviceError(
        "device 'cuda' cannot be used: NVRTC, which compiles kernels, is not found.",
        notes=(f"{name} loads the one of its own CUDA, whatever else is installed.", _said(error)),
        hints=(f"pip install {package}", OTHERWISE),
    )


def not_loaded(error: Exception) -> DeviceError:
    """The driver refuses machine code that NVRTC has made for this GPU."""
    return DeviceError(
        "the GPU's driver does not load the compiled kernels.",
        notes=(_said(error), *_about_driver(driver_version())),
        hints=("update the driver", OTHERWISE),
    )


def is_of_memory(error: Exception) -> bool:
    """Whether what CUDA or its driver refuses is memory: both number that 2."""
    return getattr(error, "status", None) == _NO_MEMORY


def no_room(name: str, free: int, total: int) -> str:
    """There is no memory for the machine code of kernels, or for their stacks."""
    return (
        f"no memory on {name} for compiled kernels: {free >> 20} of {total >> 20} MiB are free, "
        "and the rest is held by arrays of this process, by libraries that take memory ahead, as "
        "JAX does without XLA_PYTHON_CLIENT_PREALLOCATE=false, or by other processes"
    )


def not_begun(error: Exception) -> DeviceError:
    """A kernel was not launched."""
    return DeviceError(
        "the GPU's driver does not launch a kernel.", notes=(_said(error),), hints=(OTHERWISE,)
    )


def stopped(error: Exception) -> DeviceError:
    """What was launched has ended with an error of the device."""
    return DeviceError(
        "the GPU has stopped with an error.",
        notes=(_said(error), "after most such errors a process can use the GPU no more."),
        hints=("device='cuda_emulator' runs the same kernels and checks each index", OTHERWISE),
    )


def described(driver: Any) -> list[str]:
    """What `pyrelay.info()` says of a GPU that can be used: `driver` is a `CupyDriver`."""
    cupy, runtime = driver.cupy, driver.runtime
    told = driver.compiler.told
    lines = [
        f"{driver.name}, compute capability {_dotted(told[0])}; driver for CUDA "
        f"{_version(int(runtime.driverGetVersion()))}",
        f"CuPy {cupy.__version__} for CUDA {_version(int(runtime.runtimeGetVersion()))}, NVRTC "
        f"{told[2]}.{told[3]}, " + ("cuBLAS" if driver.blas is not None else "no cuBLAS"),
    ]
    if driver.blas is None:
        twelve = "-cu12" if wheels() == ["cupy-cuda12x"] else ""
        lines.append(
            f"products of matrices are kernels of pyrelay's: pip install nvidia-cublas{twelve}"
        )
    if len(installed := wheels()) > 1:
        lines.append(f"{_listed(installed)} write the same files: uninstall all, install one")
    return lines


def explained(error: DeviceError) -> list[str]:
    """What `pyrelay.info()` says where none can be used."""
    return [error.message, *error.notes, *(f"hint: {hint}" for hint in error.hints)]


def _said(error: Exception) -> str:
    """What an error says: its first line, or that of the error which CuPy puts in a frame."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =-\t")]
    if "Original error:" in lines[:-1]:
        lines = lines[lines.index("Original error:") + 1 :]
    return lines[0] if lines else type(error).__name__


def _about_driver(version: int) -> tuple[str, ...]:
    if not version:
        return ()
    return (f"the driver knows CUDA up to {_version(version)}.",)


def _install(version: int) -> str:
    """What to install for a driver."""
    if not version:
        return "pip install pyrelay[cuda13], or [cuda12] for an older driver"
    if version // 1000 < _OLDEST:
        return "update the driver, then pip install pyrelay[cuda13]"
    return f"pip install pyrelay[cuda{min(version // 1000, _NEWEST)}]"


def _uninstall(names: list[str]) -> str:
    return "pip uninstall " + " ".join(names)


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _major(wheel: str) -> int:
    """The CUDA that a wheel is made for; 0 for a CuPy built from its source."""
    digits = "".join(c for c in wheel if c.isdigit())
    return int(digits or 0)


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _dotted(capability: str) -> str:
    return f"{capability[:-1]}.{capability[-1]}"
