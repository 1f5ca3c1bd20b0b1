"""CUDA GPUs: `gpu()`, or a DeviceError that says what is missing.

In: nothing. Out: the device. Importing this looks for no GPU.
"""

from __future__ import annotations

import functools
import importlib.util

from pyrelay.devices.base import Device
from pyrelay.devices.gpu import cuda_diagnosis
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.cupy_driver import CupyDriver
from pyrelay.devices.gpu.kernel_listing import listing
from pyrelay.devices.gpu.programs import loaded_by


def gpu() -> Device:
    """The GPU. Raises DeviceError where there is none that CuPy can use."""
    driver()
    return Device("cuda", TARGET, loaded_by(driver), shown=listing)


@functools.cache
def driver() -> CupyDriver:
    """CuPy's current device. Raises DeviceError where it has none."""
    if importlib.util.find_spec("cupy") is None:
        raise cuda_diagnosis.missing()
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy raises many classes: of its own, ImportError, OSError
        raise cuda_diagnosis.unusable(error) from error
    if not count:
        raise cuda_diagnosis.no_gpu()
    capability = str(cupy.cuda.Device().compute_capability)
    if int(capability) < cuda_diagnosis.LEAST_CAPABILITY:
        raise cuda_diagnosis.too_old(capability)
    return CupyDriver(cupy)
