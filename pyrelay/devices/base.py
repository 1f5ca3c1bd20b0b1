"""Devices by name: how kernels are written for one, and how they are loaded.

In: a name that `Config.device` may have. Out: its `Device`. Nothing of a device is imported or
looked for before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyrelay.lower.target import Target


@dataclass(frozen=True, slots=True)
class Device:
    """A place where programs run.

    target: what the planner asks of it. load: texts of kernels -> addresses of native functions
    `int64 (int64 block, int64 begin, int64 end)`, which run the kernel over a range. Raises
    DeviceError where that cannot be done. shares: whether threads may share a kernel's range.
    """

    name: str
    target: Target
    load: Callable[[Sequence[str]], list[int]]
    shares: bool


def device(name: str) -> Device:
    """The device of this name. Raises DeviceError where it cannot be used here."""
    if name == "cuda":
        from pyrelay.devices.cuda import gpu

        return gpu()
    if name == "cuda_emulator":
        from pyrelay.devices import cuda_emulator

        return cuda_emulator.DEVICE
    from pyrelay.devices import cpu

    return cpu.DEVICE
