"""CUDA GPUs: `gpu()`, or a DeviceError that says what is missing.

In: nothing, or a GPU's number. Out: the device. Importing this looks for no GPU.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

from pyrelay.devices.base import Device
from pyrelay.devices.gpu import cuda_diagnosis, several_gpus
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.cupy_driver import CupyDriver
from pyrelay.devices.gpu.kernel_listing import listing
from pyrelay.devices.gpu.programs import loaded_by


def gpu(number: int | None = None) -> Device:
    """The GPU of this number; without one, that where a call's arrays lie, or CuPy's current one.

    Raises DeviceError where CuPy can use none, or has none of this number.
    """
    made = driver(number)
    name = "cuda" if number is None else f"cuda:{number}"
    if made.is_only:
        return Device(name, TARGET, loaded_by(driver), shown=listing)
    return Device(name, TARGET, several_gpus.loaded_by(driver, number), shown=listing)


def driver(number: int | None = None) -> CupyDriver:
    """The driver of a GPU: CuPy's current one if no number is given. Raises DeviceError."""
    cupy, count = _cupy()
    if number is not None and number >= count:
        raise cuda_diagnosis.no_such_gpu(number, count)
    return _driver(int(cupy.cuda.runtime.getDevice()) if number is None else number)


@functools.cache
def _driver(number: int) -> CupyDriver:
    cupy, _ = _cupy()
    capability = str(cupy.cuda.Device(number).compute_capability)
    if int(capability) < cuda_diagnosis.LEAST_CAPABILITY:
        raise cuda_diagnosis.too_old(capability)
    return CupyDriver(cupy, number)


@functools.cache
def _cupy() -> tuple[Any, int]:
    """CuPy, and how many GPUs it sees, of which there is at least one."""
    if importlib.util.find_spec("cupy") is None:
        raise cuda_diagnosis.missing()
    try:
        import cupy

        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:  # CuPy raises many classes: of its own, ImportError, OSError
        raise cuda_diagnosis.unusable(error) from error
    if not count:
        raise cuda_diagnosis.no_gpu()
    return cupy, count


def forget_drivers() -> None:
    """Look for CuPy and its GPUs again."""
    _cupy.cache_clear()
    _driver.cache_clear()
