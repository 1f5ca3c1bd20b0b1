"""CUDA GPUs: `gpu()`, or a DeviceError that says what is missing.

In: nothing, or texts as `lower.emit_cuda` prints them. Out: the device; PTX, by NVRTC as CuPy loads
it, which needs no GPU. Importing this looks for no GPU.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from typing import Any

from pyrelay.devices.base import Device
from pyrelay.devices.cuda_library import TARGET
from pyrelay.devices.cupy_driver import OPTIONS, CupyDriver, unit
from pyrelay.devices.driver import Text
from pyrelay.devices.gpu import loaded_by
from pyrelay.errors import DeviceError

_ARCHITECTURE = "-arch=compute_90"

_INSTALL = ("pip install pyrelay[cuda13], or [cuda12] for an older driver",)
_OTHERWISE = "use device='cpu'"


def ptx(texts: Sequence[Text]) -> str:
    """PTX of kernels for compute_90.

    Raises DeviceError where CuPy or NVRTC is missing or NVRTC rejects the text.
    """
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(unit(texts), "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(program, (_ARCHITECTURE, *OPTIONS))
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
    """The GPU. Raises DeviceError where there is none that CuPy can use."""
    driver()
    return Device("cuda", TARGET, loaded_by(driver))


@functools.cache
def driver() -> CupyDriver:
    """CuPy's current device. Raises DeviceError where it has none."""
    if importlib.util.find_spec("cupy") is None:
        raise DeviceError(
            "device 'cuda' needs CuPy, which is not installed.", hints=(*_INSTALL, _OTHERWISE)
        )
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy raises many classes: of its own, ImportError, OSError
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise DeviceError(
            "device 'cuda' cannot be used: CuPy finds no GPU or no driver that fits it.",
            notes=(text,), hints=(*_INSTALL, _OTHERWISE),
        ) from error
    if not count:
        raise DeviceError("device 'cuda' cannot be used: there is no GPU.", hints=(_OTHERWISE,))
    return CupyDriver(cupy)
