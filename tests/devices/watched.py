"""A plugin of pytest, `-p tests.devices.watched`: the emulator watches, and interrupts threads."""

from __future__ import annotations

from pyrelay.devices import cuda_emulator

cuda_emulator.EmulatorDriver.watched = True
cuda_emulator.EmulatorDriver.turns = cuda_emulator.INTERRUPTED
