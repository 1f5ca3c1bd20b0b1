"""CUDA GPUs: the text of kernels compiled for one.

In: texts as `lower.emit_cuda` prints them. Out: PTX, by NVRTC as CuPy loads it, which needs no GPU;
and `gpu()`, which says in a DeviceError why programs cannot run on one here.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from pyrelay.devices.base import Device
from pyrelay.devices.cuda_prelude import BLOCKS, DEVICE, PRELUDE
from pyrelay.errors import DeviceError

#: -fmad=false: products and sums round as in plain Python; what fuses them says so (`fma`).
OPTIONS = ("-arch=compute_90", "-fmad=false", "-std=c++17")

_INSTALL = ("pip install pyrelay[cuda13], or [cuda12] for an older driver",)


def source(text: str) -> str:
    """The whole unit of a kernel's text."""
    return "\n".join((PRELUDE, DEVICE, BLOCKS, text))


def ptx(text: str) -> str:
    """PTX of a kernel's text for compute_90.

    Raises DeviceError where CuPy or NVRTC is missing or NVRTC rejects the text.
    """
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(source(text), "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(program, OPTIONS)
        made: str | bytes = nvrtc.getPTX(program)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise DeviceError("NVRTC does not compile the kernels.", notes=(log,)) from error
    finally:
        nvrtc.destroyProgram(program)
    return made.decode() if isinstance(made, bytes) else made


def _nvrtc() -> Any:
    if importlib.util.find_spec("cupy") is None:
        raise DeviceError("NVRTC is used through CuPy, which is not installed.", hints=_INSTALL)
    from cupy_backends.cuda.libs import nvrtc

    try:
        nvrtc.getVersion()
    except Exception as error:  # CuPy has no class of its own for a library that is missing
        raise DeviceError(
            "CuPy does not find NVRTC.", notes=(str(error).splitlines()[0],), hints=_INSTALL
        ) from error
    return nvrtc


def gpu() -> Device:
    """The GPU. Raises DeviceError: its kernels are written and compiled, not yet launched."""
    raise DeviceError(
        "device 'cuda' cannot run programs yet.",
        notes=("kernels are written for GPUs, and run by device='cuda_emulator' on the CPU.",),
        hints=("use device='cpu'",),
    )
