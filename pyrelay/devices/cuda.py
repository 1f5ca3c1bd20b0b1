"""CUDA GPUs.

In: nothing. Out: `gpu()`, which says in a DeviceError what is missing here.
"""

from __future__ import annotations

import importlib.util

from pyrelay.devices.base import Device
from pyrelay.errors import DeviceError


def gpu() -> Device:
    """The GPU. Raises DeviceError: its kernels are written and compiled, not yet launched."""
    if importlib.util.find_spec("cupy") is None:
        raise DeviceError(
            "device 'cuda' needs CuPy, which is not installed.",
            hints=("pip install pyrelay[cuda13] (or [cuda12]), or use device='cpu'",),
        )
    raise DeviceError(
        "device 'cuda' cannot run programs yet.",
        notes=("kernels are written for GPUs, and run by device='cuda_emulator' on the CPU.",),
        hints=("use device='cpu'",),
    )
