"""Devices by name: how kernels are written for one, and how plans are run on it.

In: a name that `Config.device` may have. Out: its `Device`. Nothing of a device is imported or
looked for before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.lower.planning.encoded import EncodedPlan
from pyrelay.lower.planning.instructions import Plan
from pyrelay.lower.planning.target import Target
from pyrelay.lower.text.show import show_kernels
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plan on a device.

    run: takes the plan's parameters and gives its results, or `entry.MISMATCH`. encoded: what the
    device runs, where that can be kept and loaded again. told: lines for `f.explain()`, on how the
    last call ran. direct: the same as `run` for arguments that hardly need a look, with MISMATCH
    for all others; None where there is nothing to be won.
    """

    run: Callable[..., Any]
    encoded: EncodedPlan | None = None
    told: Callable[[], Sequence[str]] = tuple
    direct: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """A place where programs run.

    target: what the planner asks of it. load: a plan -> what runs it. Raises DeviceError where that
    cannot be done. native: whether the callable checks its arguments itself, in machine code.
    shown: a plan -> the texts of its kernels, as the device compiles them.
    """

    name: str
    target: Target
    load: Callable[[Plan], Loaded]
    native: bool = False
    shown: Callable[[Plan], str] = show_kernels


def device(name: str) -> Device:
    """The device of this name. Raises DeviceError where it cannot be used here."""
    kind, _, number = name.partition(":")
    if kind == "cuda":
        from pyrelay.devices.cuda import gpu

        return gpu(int(number) if number else None)
    if name == "cuda_emulator":
        from pyrelay.devices import cuda_emulator

        return cuda_emulator.DEVICE
    from pyrelay.devices import cpu

    return cpu.DEVICE
