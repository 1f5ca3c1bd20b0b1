"""CUDA GPUs: `gpu()`, or a DeviceError that says what is missing.

In: nothing. Out: the device. Importing this looks for no GPU.
"""

from __future__ import annotations

import functools
import importlib.util

from pyrelay.devices.base import Device
from pyrelay.devices.cuda_library import TARGET
from pyrelay.devices.cupy_driver import CupyDriver
from pyrelay.devices.gpu import loaded_by
from pyrelay.errors import DeviceError

_INSTALL = ("pip install pyrelay[cuda13], or [cuda12] for an older driver",)
_OTHERWISE = "use device='cpu'"


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
