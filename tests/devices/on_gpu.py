"""A plugin of pytest: tests that run programs on the emulator run them on a GPU.

python -m pytest -m "" -p tests.devices.on_gpu tests/devices/gpu/test_cuda_sorts.py

What a GPU compiles beside a program it compiles at once, as the emulator does. Tests that look at
the emulator itself, by its driver, are left out: their programs run there.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.gpu_report import missing

_OF_THE_EMULATOR = "cuda_emulator.", "cuda_emulator, ", "EmulatorDriver", "emulate("


def pytest_configure(config: Any) -> None:
    from pyrelay.devices import base, cuda, cuda_emulator
    from pyrelay.devices.gpu.cupy_driver import CupyDriver, Driver

    if missing():
        return
    cuda_emulator.DEVICE = cuda.gpu()
    CupyDriver.later = Driver.later  # type: ignore[method-assign]
    assert base.device("cuda_emulator").name == "cuda"


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if missing():
        return
    kept, left = [], []
    for item in items:
        (left if _looks_inside(item) else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def _looks_inside(item: Any) -> bool:
    """Whether a test, or what it is given, names what only the emulator has."""
    if not isinstance(item, pytest.Function):
        return True
    given = [d for k in item.fixturenames for d in item._fixtureinfo.name2fixturedefs.get(k, ())]
    sources = [inspect.getsource(item.function)]
    sources += [
        inspect.getsource(d.func) for d in given if d.func.__module__ == item.function.__module__
    ]
    return any(word in source for source in sources for word in _OF_THE_EMULATOR)
